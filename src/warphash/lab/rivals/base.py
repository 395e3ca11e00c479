"""What a rival is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Rival"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Rival:
    """One way to look keys up.

    Attributes
    ----------
    name
        For the report.
    build
        Keys and values to a structure.
    find
        Structure and keys to ``found``, bool[n].
    builds
        Whether build makes a table; if not, every find makes one and throws it away.
    most_keys
        Keys up to which it is worth the wait.
    """

    name: str
    build: Callable[[Array, Array], Any]
    find: Callable[[Any, Array], npt.NDArray[np.bool_]]
    builds: bool = True
    most_keys: int = 1 << 40
