"""The groups of a batch's keys: numbers that a table of keys has, and numbers for the keys that it lacks."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...runtime.abi import ListBatch, ValueLists
from ...runtime.engine import Buffer, Engine
from ...runtime.source import VALUE_LISTS
from ..batch import Batch
from ..rows import Rows
from .numbering import number
from .table_numbers import NewKeys, Numbers, new_keys
from .word_numbers import GroupRows

__all__ = ["MOST_GROUPS", "NUMBER_BYTES", "BatchGroups", "counted_up", "groups_of", "numbers_of", "taken"]

NUMBER_BYTES = 4
MOST_GROUPS = 2**32 - 1
"""Groups, and segments: their numbers have 32 bits."""


class BatchGroups(NamedTuple):
    """The groups of the elements of a batch.

    Attributes
    ----------
    new
        The keys that have no group yet. Their groups come behind those there are.
    size, groups, counts
        How many groups the batch has; these groups, uint32[size], and how many elements each has, uint32[size]; in the
        order in which they first appear.
    places
        Which of these each element has, uint32[n].
    group_rows
        As `Numbered.group_rows`.
    """

    new: NewKeys
    size: int
    groups: Buffer
    counts: Buffer
    places: Buffer
    group_rows: GroupRows | None = None


def numbers_of(index: Rows, groups: int, keys: int, n: int, stream: Any) -> tuple[Buffer, Buffer]:
    """The numbers of keys, uint32[n]; and which keys have one. ``groups`` is how many numbers there are."""
    engine = index.store.engine
    numbers, flags = engine.allocate(max(1, NUMBER_BYTES * n), stream), engine.allocate(max(1, n), stream)
    if groups:
        index.find(keys, n, numbers.ptr, flags.ptr, bytes(NUMBER_BYTES), stream)
    else:
        engine.fill(flags.ptr, 0, max(1, n), stream)
    return numbers, flags


def groups_of(index: Rows, batch: Batch, key_bytes: int) -> BatchGroups:
    """The groups of the keys of a batch of at least one element. Waits.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    engine, n, stream = index.store.engine, batch.n, batch.stream
    numbers = engine.allocate(NUMBER_BYTES * n, stream)
    asked = Batch(batch.keys, 0, n, held=numbers.ptr, stream=stream)
    kind = Numbers(0, MOST_GROUPS - 1, key_bytes, NUMBER_BYTES)
    new = new_keys(index, asked, kind, grouped=True)
    if new.missing.n == n:  # so the batch has the new keys alone
        assert new.values is not None and new.which is not None
        assert new.numbered is not None and new.numbered.counts is not None
        return BatchGroups(new, new.size, new.values, new.numbered.counts, new.which, new.numbered.group_rows)
    new.answer(asked, kind)
    places = engine.allocate(NUMBER_BYTES * n, stream)
    own = number(
        engine,
        numbers.ptr,
        NUMBER_BYTES,
        n,
        numbers=places.ptr,
        number_bytes=NUMBER_BYTES,
        counts=True,
        grouped=True,
        stream=stream,
    )
    assert own.counts is not None
    groups = taken(engine, numbers.ptr, NUMBER_BYTES, own.firsts, own.size, stream)
    return BatchGroups(new, own.size, groups, own.counts, places, own.group_rows)


def taken(engine: Engine, rows: int, row_bytes: int, elements: Buffer, n: int, stream: Any) -> Buffer:
    """The rows of ``n`` elements, whose numbers are uint32."""
    out = engine.allocate(max(1, n * row_bytes), stream)
    batch = ListBatch(n=n, numbers=elements.ptr, keys=rows, key_bytes=row_bytes, out_keys=out.ptr)
    engine.program(VALUE_LISTS).run("take_rows", ValueLists(), batch, n, stream)
    return out


def counted_up(engine: Engine, first: int, n: int, stream: Any) -> Buffer:
    """The numbers from ``first`` on, uint32[n]."""
    out = engine.allocate(max(1, NUMBER_BYTES * n), stream)
    batch = ListBatch(n=n, numbers=out.ptr, groups=first)
    engine.program(VALUE_LISTS).run("count_up", ValueLists(), batch, n, stream)
    return out
