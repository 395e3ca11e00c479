"""The memory of value lists: a state that a commit replaces, and how it grows (``groups/value_lists.cuh``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.abi import ValueLists
from ...runtime.engine import Buffer, Engine
from ..new_memory import copied, filled

__all__ = ["RECORD_BYTES", "Lists", "empty_lists", "totals_of", "with_room"]

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
        Likewise, of segments. Those of segments to come have any content.
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
    segment_records: Buffer
    segment_room: int
    chunks: tuple[Buffer, ...]
    used: int
    totals: Buffer

    def table(self, row_bytes: int) -> ValueLists:
        """What kernels are given."""
        return ValueLists(self.group_records.ptr, self.segment_records.ptr, row_bytes)

    @property
    def nbytes(self) -> int:
        """Bytes of all memory."""
        fixed = self.group_records, self.segment_records, self.totals
        return sum(buffer.nbytes for buffer in (*fixed, *self.chunks))


def empty_lists(engine: Engine, groups: int, values_bytes: int, stream: Any) -> Lists:
    """Lists of no values, with room for so many groups, a segment for each, and bytes of values."""
    room = max(_LEAST_ROOM, groups)
    of_groups, of_segments = filled(engine, RECORD_BYTES * room, stream), engine.allocate(RECORD_BYTES * room, stream)
    totals = filled(engine, 8 * _TOTALS_WORDS, stream)
    chunk = engine.allocate(max(_LEAST_CHUNK_BYTES, values_bytes), stream)
    return Lists(0, 0, 0, 0, of_groups, room, of_segments, room, (chunk,), 0, totals)


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
        records = copied(engine, lists.segment_records, stream, RECORD_BYTES * room)
        lists = lists._replace(segment_records=records, segment_room=room)
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
