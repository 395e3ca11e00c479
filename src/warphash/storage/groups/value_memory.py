"""The memory of value lists: a state that a commit replaces, and how it grows (``groups/value_lists.cuh``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.abi import ValueLists
from ...runtime.engine import Buffer, Engine

__all__ = ["Lists", "empty_lists", "totals_of", "with_room"]

_LEAST_ROOM = 16
_LEAST_CHUNK_BYTES = 1 << 12
_ALIGNMENT_BYTES = 8
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
    states, ends, group_room
        ``ValueLists``, and how many groups have memory.
    begins, links, segment_room
        Likewise, of segments.
    chunks, used
        The memory of values, of which the last one takes new ones; and how many of its bytes are in use.
    totals
        ``ListTotals``, which kernels write.
    """

    groups: int
    segments: int
    size: int
    held: int
    states: Buffer
    ends: Buffer
    group_room: int
    begins: Buffer
    links: Buffer
    segment_room: int
    chunks: tuple[Buffer, ...]
    used: int
    totals: Buffer

    def table(self, row_bytes: int) -> ValueLists:
        """What kernels are given."""
        return ValueLists(
            states=self.states.ptr,
            ends=self.ends.ptr,
            begins=self.begins.ptr,
            links=self.links.ptr,
            row_bytes=row_bytes,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all memory."""
        fixed = self.states, self.ends, self.begins, self.links, self.totals
        return sum(buffer.nbytes for buffer in (*fixed, *self.chunks))


def empty_lists(engine: Engine, groups: int, values_bytes: int, stream: Any) -> Lists:
    """Lists of no values, with room for so many groups, a segment for each, and bytes of values."""
    room = max(_LEAST_ROOM, groups)
    arrays = [engine.allocate(8 * room, stream) for _ in range(4)]
    states, ends, begins, links = arrays
    engine.fill(states.ptr, 0, states.nbytes, stream)
    totals = engine.allocate(8 * _TOTALS_WORDS, stream)
    engine.fill(totals.ptr, 0, totals.nbytes, stream)
    chunk = engine.allocate(max(_LEAST_CHUNK_BYTES, values_bytes), stream)
    return Lists(0, 0, 0, 0, states, ends, room, begins, links, room, (chunk,), 0, totals)


def with_room(engine: Engine, lists: Lists, groups: int, segments: int, values_bytes: int, stream: Any) -> Lists:
    """The same lists with room for so many groups and segments in all, and so many new bytes of values.

    Raises
    ------
    MemoryError
        If there is no memory. The given lists are as they were.
    """
    if groups > lists.group_room:
        room = max(groups, 2 * lists.group_room)
        states = _larger(engine, lists.states, 8 * room, stream)
        engine.fill(states.ptr + 8 * lists.group_room, 0, 8 * (room - lists.group_room), stream)
        lists = lists._replace(states=states, ends=_larger(engine, lists.ends, 8 * room, stream), group_room=room)
    if segments > lists.segment_room:
        room = max(segments, 2 * lists.segment_room)
        begins, links = (_larger(engine, array, 8 * room, stream) for array in (lists.begins, lists.links))
        lists = lists._replace(begins=begins, links=links, segment_room=room)
    last, used = lists.chunks[-1], lists.used + _ALIGNMENT_BYTES - 1 & -_ALIGNMENT_BYTES
    lists = lists._replace(used=used)
    if used + values_bytes > last.nbytes:
        made = engine.allocate(max(values_bytes, 2 * last.nbytes), stream)
        kept = lists.chunks if lists.held else ()
        lists = lists._replace(chunks=(*kept, made), used=0)
    return lists


def _larger(engine: Engine, array: Buffer, nbytes: int, stream: Any) -> Buffer:
    made = engine.allocate(nbytes, stream)
    engine.copy(made.ptr, array.ptr, array.nbytes, stream)
    return made


def totals_of(engine: Engine, lists: Lists, stream: Any) -> tuple[int, int]:
    """What kernels have noted: groups and segments. Waits."""
    groups, segments = engine.to_host(lists.totals.ptr, np.uint64, _TOTALS_WORDS, stream).tolist()
    return groups, segments
