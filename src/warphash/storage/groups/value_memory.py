"""The memory of value lists: a state that a commit replaces, and how it grows (``groups/value_lists.cuh``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.abi import SEGMENT_BITS, ValueLists
from ...runtime.engine import Buffer, Engine
from ..new_memory import copied, filled

__all__ = ["MOST_SEGMENTS", "RECORD_BYTES", "Lists", "empty_lists", "totals_of", "with_room"]

MOST_SEGMENTS = 1 << SEGMENT_BITS
"""Segments that have a number."""

_LEAST_ROOM = 16
_LEAST_CHUNK_BYTES = 1 << 12
_ALIGNMENT_BYTES = 8
RECORD_BYTES = 16
"""Of a group, and of a segment."""
_TOTALS_WORDS = 2
"""Of ``ListTotals``: groups and segments."""


class Lists(NamedTuple):
    """What a commit replaces.

    Attributes
    ----------
    groups, segments
        How many there are.
    size
        Values of all groups.
    held
        Values in memory, erased ones included.
    group_records, group_room
        A record for each group, and how many have memory. Those of groups to come are all 0.
    segment_records, segment_room
        Likewise, of segments: None as long as no group has needed one. Those of segments to come have any content.
    chunks, used
        The memory of values, of which the last one takes new ones; and how many of its bytes are in use.
    totals
        ``ListTotals``, which kernels write.
    """

    groups: int
    segments: int
    size: int
    held: int
    group_records: Buffer
    group_room: int
    segment_records: Buffer | None
    segment_room: int
    chunks: tuple[Buffer, ...]
    used: int
    totals: Buffer

    def table(self, row_bytes: int) -> ValueLists:
        """What kernels are given."""
        segments = self.segment_records
        return ValueLists(self.group_records.ptr, segments.ptr if segments else 0, row_bytes)

    @property
    def nbytes(self) -> int:
        """Bytes of all memory."""
        segments = () if self.segment_records is None else (self.segment_records,)
        return sum(buffer.nbytes for buffer in (self.group_records, self.totals, *segments, *self.chunks))


def empty_lists(engine: Engine, groups: int, values_bytes: int, stream: Any) -> Lists:
    """Lists of no values, with room for so many groups and bytes of values, and for no segments."""
    room = max(_LEAST_ROOM, groups)
    records, totals = filled(engine, RECORD_BYTES * room, stream), filled(engine, 8 * _TOTALS_WORDS, stream)
    chunk = engine.allocate(max(_LEAST_CHUNK_BYTES, values_bytes), stream)
    return Lists(0, 0, 0, 0, records, room, None, 0, (chunk,), 0, totals)


def with_room(engine: Engine, lists: Lists, groups: int, segments: int, values_bytes: int, stream: Any) -> Lists:
    """The same lists with room for so many groups and segments in all, and so many new bytes of values.

    Raises
    ------
    MemoryError
        If there is no memory. The given lists are as they were.
    """
    if groups > lists.group_room:
        room = max(groups, 2 * lists.group_room)
        held = lists.group_records.nbytes
        records = copied(engine, lists.group_records, stream, RECORD_BYTES * room)
        engine.fill(records.ptr + held, 0, records.nbytes - held, stream)
        lists = lists._replace(group_records=records, group_room=room)
    if segments > lists.segment_room:
        room = max(segments, 2 * lists.segment_room)
        nbytes, known = RECORD_BYTES * room, lists.segment_records
        made = engine.allocate(nbytes, stream) if known is None else copied(engine, known, stream, nbytes)
        lists = lists._replace(segment_records=made, segment_room=room)
    last, used = lists.chunks[-1], lists.used + _ALIGNMENT_BYTES - 1 & -_ALIGNMENT_BYTES
    lists = lists._replace(used=used)
    if used + values_bytes > last.nbytes:
        made = engine.allocate(max(values_bytes, 2 * last.nbytes), stream)
        kept = lists.chunks if lists.held else ()
        lists = lists._replace(chunks=(*kept, made), used=0)
    return lists


def totals_of(engine: Engine, lists: Lists, stream: Any) -> tuple[int, int]:
    """What kernels have noted: groups and segments. Waits."""
    groups, segments = engine.to_host(lists.totals.ptr, np.uint64, _TOTALS_WORDS, stream).tolist()
    return groups, segments
