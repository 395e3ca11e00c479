"""The record that describes a rival."""

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
    """A library's way to look keys up.

    Attributes
    ----------
    name
        Name in the report.
    build
        Function from keys and values to a structure.
    find
        Function from the structure and keys to ``found``, bool[n].
    builds
        Whether ``build`` makes a hash table. If not, every ``find`` makes a hash table and throws it away.
    most_keys
        Largest number of keys that the rival handles in reasonable time.
    """

    name: str
    build: Callable[[Array, Array], Any]
    find: Callable[[Any, Array], npt.NDArray[np.bool_]]
    builds: bool = True
    most_keys: int = 1 << 40
