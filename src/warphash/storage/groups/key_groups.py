"""The groups of a batch's keys: numbers that a table of keys has, and numbers for the keys that it lacks."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...runtime.abi import ListBatch, ValueLists
from ...runtime.engine import Buffer, Engine
from ...runtime.source import VALUE_LISTS
from ..rows import Rows
from ..selection import count, inverted, select, starts_of_flags
from .numbering import number

__all__ = ["NUMBER_BYTES", "BatchGroups", "counted_up", "groups_of", "numbers_of", "taken"]

NUMBER_BYTES = 4


class _Given(NamedTuple):
    """Rows of a caller's, as a `Buffer`."""

    ptr: int
    nbytes: int


class BatchGroups(NamedTuple):
    """The groups of the elements of a batch.

    Attributes
    ----------
    numbers
        The group of each element, uint32[n].
    new, new_keys
        How many keys have no group yet; and these keys, whose groups come behind those there are, in this order.
    size, groups, counts
        How many groups the batch has; these groups, uint32[size], and how many elements each has, uint32[size]; in the
        order in which they first appear.
    places
        Which of these each element has, uint32[n].
    """

    numbers: Buffer
    new: int
    new_keys: Buffer | None
    size: int
    groups: Buffer
    counts: Buffer
    places: Buffer


def numbers_of(index: Rows, groups: int, keys: int, n: int, stream: Any) -> tuple[Buffer, Buffer]:
    """The numbers of keys, uint32[n]; and which keys have one. ``groups`` is how many numbers there are."""
    engine = index.store.engine
    numbers, flags = engine.allocate(max(1, NUMBER_BYTES * n), stream), engine.allocate(max(1, n), stream)
    if groups:
        index.find(keys, n, numbers.ptr, flags.ptr, bytes(NUMBER_BYTES), stream)
    else:
        engine.fill(flags.ptr, 0, max(1, n), stream)
    return numbers, flags


def groups_of(index: Rows, groups: int, keys: int, key_bytes: int, n: int, stream: Any) -> BatchGroups:
    """The groups of the keys of a batch of at least one element. Waits.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    engine = index.store.engine
    if not groups:
        numbers = engine.allocate(NUMBER_BYTES * n, stream)
        made = number(
            engine, keys, key_bytes, n, numbers=numbers.ptr, number_bytes=NUMBER_BYTES, counts=True, stream=stream
        )
        assert made.counts is not None
        new_keys = taken(engine, keys, key_bytes, made.firsts, made.size, stream)
        every = counted_up(engine, 0, made.size, stream)
        return BatchGroups(numbers, made.size, new_keys, made.size, every, made.counts, numbers)
    numbers, found = numbers_of(index, groups, keys, n, stream)
    new, missing_keys = _number_missing(engine, groups, keys, key_bytes, n, numbers, found, stream)
    places = engine.allocate(NUMBER_BYTES * n, stream)
    own = number(
        engine,
        numbers.ptr,
        NUMBER_BYTES,
        n,
        numbers=places.ptr,
        number_bytes=NUMBER_BYTES,
        counts=True,
        stream=stream,
    )
    assert own.counts is not None
    in_batch = taken(engine, numbers.ptr, NUMBER_BYTES, own.firsts, own.size, stream)
    return BatchGroups(numbers, new, missing_keys, own.size, in_batch, own.counts, places)


def _number_missing(
    engine: Engine, groups: int, keys: int, key_bytes: int, n: int, numbers: Buffer, found: Buffer, stream: Any
) -> tuple[int, Buffer | None]:
    """Number the keys that were not found behind the others; how many they are, and the keys."""
    missing = inverted(engine, found, n)
    if not count(engine, missing, n):
        return 0, None
    rows, m = select(engine, _Given(keys, n * key_bytes), key_bytes, n, missing)
    own = engine.allocate(NUMBER_BYTES * m, stream)
    made = number(engine, rows.ptr, key_bytes, m, numbers=own.ptr, number_bytes=NUMBER_BYTES, stream=stream)
    before, _ = starts_of_flags(engine, found, n)
    batch = ListBatch(n=n, numbers=numbers.ptr, flags=found.ptr, offsets=before.ptr, counts=own.ptr, groups=groups)
    engine.program(VALUE_LISTS).run("take_numbers", ValueLists(), batch, n, stream)
    return made.size, taken(engine, rows.ptr, key_bytes, made.firsts, made.size, stream)


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
