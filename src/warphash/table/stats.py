"""What a table says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Stats"]


@dataclass(frozen=True)
class Stats:
    """Figures of a table at one moment.

    Attributes
    ----------
    size, slots, load_factor
        Keys held, slots to hold them, and their ratio.
    nbytes, bytes_per_pair
        Memory of the table, and that over ``size``.
    memory_utilisation
        Bytes of live pairs over bytes of buckets and nodes in use, and of the rows of wide keys: A Dynamic Hash Table
        for the GPU, section III-C.
    reserve_nbytes
        Bytes of ``nbytes`` that are held in reserve: free nodes of a table whose buckets are lists, and free rows of
        wide keys; otherwise 0.
    design, parameters
        What the table is.
    rebuilds
        How often it moved all its keys, to grow or to draw other hash constants.
    resizes, peak_nbytes
        How often a subtable was doubled or halved, and the most device memory that the table and its resizes held at
        one time; None for a table without subtables. A resize holds both copies of a subtable, or of all when the
        table is built anew, and its working memory: lists, flags, and copies of pairs that move. What other calls work
        with is not counted.
    nodes
        Nodes in use, for slabs their number, of a table whose buckets are lists; otherwise None.
    insert_probes
        Mean buckets read by an insert since the table was made, if it was made with ``count_probes=True``.
    """

    size: int
    slots: int
    load_factor: float
    nbytes: int
    bytes_per_pair: float
    memory_utilisation: float
    reserve_nbytes: int
    design: str
    parameters: dict[str, Any]
    rebuilds: int
    resizes: int | None
    peak_nbytes: int | None
    nodes: int | None
    insert_probes: float | None
