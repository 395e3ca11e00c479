"""The elements of a batch that found no slot, listed on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..runtime.abi import Flag
from ..runtime.engine import Buffer, Engine
from .chosen_elements import listing

__all__ = ["Listed", "list_unplaced"]


class Listed(NamedTuple):
    """Numbers of some elements of a batch, on the device.

    Attributes
    ----------
    past_first
        Their keys are not in the table, and the first buckets of these are full; some keys may repeat.
    """

    numbers: Buffer
    n: int
    past_first: bool = False


def list_unplaced(engine: Engine, flags: int, n: int, stream: Any = None) -> Listed:
    """List the elements that an update has flagged as unplaced. Waits.

    Parameters
    ----------
    flags
        Address of the flags of ``n`` elements.

    Raises
    ------
    MemoryError
        If there is no room for the list.
    """
    made = listing(engine, flags, n, Flag.UNPLACED, stream)
    return Listed(made.listed, made.counted())
