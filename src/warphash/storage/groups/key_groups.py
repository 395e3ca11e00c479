"""The groups of a batch's keys: numbers that a table of keys has, and numbers for the keys that it lacks.

The distinct keys of the batch are numbered first, in the order in which they appear (`numbering`). Only these are
looked up in the table of keys. The keys that it lacks get the next numbers of groups, in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.abi import ListBatch, ValueLists, kind_of
from ...runtime.engine import Buffer, Engine
from ...runtime.source import VALUE_LISTS
from ..batch import Batch
from ..rows import Rows
from ..scratch import starts_of
from ..selection import words_to_starts
from .numbering import Numbered, number
from .value_memory import Lists

__all__ = [
    "MOST_GROUPS",
    "NUMBER_BYTES",
    "NUMBER_KIND",
    "BatchGroups",
    "Found",
    "KeyGroups",
    "counted_up",
    "groups_of",
    "numbers_of",
    "take_rows",
]

NUMBER_BYTES = 4
NUMBER_KIND = kind_of(np.dtype(np.uint32))
MOST_GROUPS = 2**32 - 1
"""Their numbers have 32 bits."""


class Found(NamedTuple):
    """What a lookup of keys has found.

    Attributes
    ----------
    numbers
        Address of the number of each key that is there, uint32[n].
    flags
        Address of a byte for each key: 1 if it is there.
    memory
        That of both.
    """

    numbers: int
    flags: int
    memory: Buffer


class KeyGroups(NamedTuple):
    """The groups of different keys.

    Attributes
    ----------
    numbers
        Address of the number of the group of each key, uint32.
    new
        The keys without a group before, and their numbers, to be inserted into the table of keys.
    found
        Which keys had a group before. None if there were no groups.
    needs
        As `ListBatch.needs`. None if no key had a group.
    segments
        How many new segments the groups need.
    held
        Keeps the memory of ``numbers`` and ``new``.
    """

    numbers: int
    new: Batch
    found: Found | None = None
    needs: Buffer | None = None
    segments: int = 0
    held: tuple[Buffer, ...] = ()


class BatchGroups(NamedTuple):
    """The groups of the elements of a batch.

    Attributes
    ----------
    keys
        The distinct keys of the batch, and how many elements each has.
    places
        Which of these each element has, uint32[n].
    groups
        Their groups.
    rows
        Keeps the memory of the distinct keys. None if that is the batch.
    """

    keys: Numbered
    places: Buffer
    groups: KeyGroups
    rows: Buffer | None

    def elements(self, engine: Engine, which: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """The first elements of some of the new keys. Waits."""
        size, found = self.keys.size, self.groups.found
        if found is not None:
            which = np.flatnonzero(engine.to_host(found.flags, np.uint8, size) == 0)[which]
        elements: npt.NDArray[np.integer] = engine.to_host(self.keys.firsts.ptr, np.uint32, size)[which]
        return elements


def numbers_of(index: Rows, groups: int, keys: int, n: int, stream: Any) -> Found:
    """The numbers of keys. ``groups`` is how many numbers there are."""
    engine = index.store.engine
    _, flags, end = starts_of((NUMBER_BYTES * n, n))
    memory = engine.allocate(max(1, end), stream)
    found = Found(memory.ptr, memory.ptr + flags, memory)
    if groups:
        index.find(keys, n, found.numbers, found.flags, bytes(NUMBER_BYTES), stream)
    else:
        engine.fill(found.flags, 0, n, stream)
    return found


def groups_of(index: Rows, lists: Lists, value_bytes: int, batch: Batch, key_bytes: int) -> BatchGroups:
    """The groups of the keys of a batch of at least one element: those that ``lists`` has, and new ones. Waits.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    engine, n, stream = index.store.engine, batch.n, batch.stream
    places = engine.allocate(NUMBER_BYTES * n, stream)
    keys = number(
        engine,
        batch.keys,
        key_bytes,
        n,
        numbers=places.ptr,
        number_bytes=NUMBER_BYTES,
        counts=True,
        grouped=True,
        stream=stream,
    )
    rows = None if keys.size == n else engine.allocate(keys.size * key_bytes, stream)
    if rows:
        take_rows(engine, batch.keys, key_bytes, keys.firsts, keys.size, rows.ptr, stream)
    distinct = Batch(rows.ptr if rows else batch.keys, 0, keys.size, kind=NUMBER_KIND, unique=True, stream=stream)
    if lists.groups:
        groups = _groups_beside(index, lists, value_bytes, distinct, key_bytes)
    else:
        numbers = counted_up(engine, 0, keys.size, stream)
        groups = KeyGroups(numbers.ptr, distinct._replace(values=numbers.ptr), held=(numbers,))
    return BatchGroups(keys, places, groups, rows)


def _groups_beside(index: Rows, lists: Lists, value_bytes: int, distinct: Batch, key_bytes: int) -> KeyGroups:
    """The groups of different keys, some of which ``lists`` may have. Waits."""
    engine, size, stream = index.store.engine, distinct.n, distinct.stream
    found = numbers_of(index, lists.groups, distinct.keys, size, stream)
    needs = engine.allocate(8 * size, stream)
    asked = ListBatch(n=size, numbers=found.numbers, flags=found.flags, needs=needs.ptr, groups=lists.groups)
    program, table = engine.program(VALUE_LISTS), lists.table(value_bytes)
    program.run("needs", table, asked, size, stream)
    total = words_to_starts(engine, needs, size, stream, needed=lambda total: total >> 32 < size)  # some have a group
    new, segments = divmod(total, 1 << 32)
    if new == 0:
        return KeyGroups(found.numbers, distinct._replace(n=0), found, needs, segments)
    if new == size:
        program.run("count_up", table, asked, size, stream)
        return KeyGroups(found.numbers, distinct._replace(values=found.numbers), found)
    _, numbers_at, end = starts_of((new * key_bytes, NUMBER_BYTES * new))
    memory = engine.allocate(end, stream)
    asked.keys, asked.key_bytes = distinct.keys, key_bytes
    asked.out_keys, asked.new_numbers = memory.ptr, memory.ptr + numbers_at
    program.run("name_new", table, asked, size, stream)
    inserted = distinct._replace(keys=asked.out_keys, values=asked.new_numbers, n=new)
    return KeyGroups(found.numbers, inserted, found, needs, segments, (memory,))


def take_rows(engine: Engine, rows: int, row_bytes: int, elements: Buffer, n: int, out: int, stream: Any) -> None:
    """Copy the rows of ``n`` elements, whose numbers are uint32, to an address."""
    batch = ListBatch(n=n, numbers=elements.ptr, keys=rows, key_bytes=row_bytes, out_keys=out)
    engine.program(VALUE_LISTS).run("take_rows", ValueLists(), batch, n, stream)


def counted_up(engine: Engine, first: int, n: int, stream: Any) -> Buffer:
    """The numbers from ``first`` on, uint32[n]."""
    out = engine.allocate(max(1, NUMBER_BYTES * n), stream)
    batch = ListBatch(n=n, numbers=out.ptr, groups=first)
    engine.program(VALUE_LISTS).run("count_up", ValueLists(), batch, n, stream)
    return out
