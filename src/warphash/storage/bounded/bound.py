"""The bound of a table, as its options say it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EVICT", "RANKED_ROWS", "Bound"]

EVICT = ("lru", "lfu", "fifo", "score", "random")
"""Policies that say which keys leave (`policies`)."""

RANKED_ROWS = ("lru", "fifo", "score")
"""The policies that keep the rank of each row."""


class Bound(NamedTuple):
    """The bound of a table.

    Attributes
    ----------
    max_size
        Most keys behind an update.
    evict
        Which keys leave: one of `EVICT`.
    """

    max_size: int
    evict: str
