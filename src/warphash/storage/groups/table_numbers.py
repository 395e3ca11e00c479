"""Dense numbers for keys, as the values of a table: a key gets the next number when it first appears in a batch.

The walk of a batch, all of it in the engine's memory:

1. Look all keys up; the values of those that are there are their answers. If none is missing, the batch is done.
2. Pack the missing elements in their order, and number their distinct keys (`numbering`).
3. Write the answers of the missing elements.
4. Insert the new keys, with their numbers, as one batch without repeated keys.

The insert comes last, and nothing behind it can fail. So a refused allocation leaves the storage as it was, by the
rules of ``storage/slots.py``. These rules allow an interrupt in the middle of an insert to add some keys of its batch,
and then numbers between those of other keys would be free. Therefore the insert is not interrupted (`uninterrupted`):
after a KeyboardInterrupt, all new keys of the batch are in or none is. Numbers stay dense without a recovery.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import DtypeError, TableFull
from ...runtime.abi import MissingBatch, StoredRows
from ...runtime.engine import Buffer, Engine
from ...runtime.source import GROUPS
from ..batch import Batch
from ..rows import Rows
from ..selection import count, starts_of_flags
from ..uninterrupted import uninterrupted
from .numbering import Numbered, number

__all__ = ["Numbers", "number_keys"]


class Numbers(NamedTuple):
    """What the numbers of a table are like.

    Attributes
    ----------
    first
        The number of the first key of an empty table.
    most
        The greatest number that the values can be.
    key_bytes, value_bytes
        Width of a key, and of a number.
    """

    first: int
    most: int
    key_bytes: int
    value_bytes: int


class _Missing(NamedTuple):
    """The elements of a batch whose keys a storage lacks.

    Attributes
    ----------
    rows, n
        Address of their packed keys, and how many elements there are.
    found, starts
        Of all elements of the batch: which ones have a key of the storage, and how many of these come before each. None
        if all are missing.
    held
        Keeps the memory of ``rows``. None if that is the batch.
    """

    rows: int
    n: int
    found: Buffer | None = None
    starts: Buffer | None = None
    held: Buffer | None = None


class _NewKeys(NamedTuple):
    """The keys of a batch that a storage lacks.

    Attributes
    ----------
    before, size
        How many keys the storage has, and how many of these there are.
    missing
        The elements that have them.
    batch
        These keys once each, with their numbers, to be inserted.
    which
        Which of them each missing element has, uint32.
    numbered
        Their first missing elements.
    held
        Keeps the memory of ``batch``.
    """

    engine: Engine
    before: int
    size: int
    missing: _Missing
    batch: Batch = Batch(0, 0, 0)
    which: Buffer | None = None
    numbered: Numbered | None = None
    held: tuple[Buffer | None, ...] = ()

    def answer(self, batch: Batch, numbers: Numbers) -> None:
        """Write the numbers of the missing elements of a batch to ``batch.held``, and to ``batch.flags`` who adds."""
        if self.which is None or self.numbered is None:  # none is missing
            if batch.flags:
                self.engine.fill(batch.flags, 0, batch.n, batch.stream)
            return
        found, starts = self.missing.found, self.missing.starts
        given = MissingBatch(
            n=batch.n,
            numbers=self.which.ptr,
            firsts=self.numbered.firsts.ptr,
            found=0 if found is None else found.ptr,
            starts=0 if starts is None else starts.ptr,
            answers=batch.held,
            added=batch.flags,
            number_bytes=numbers.value_bytes,
            base=_word(numbers.first + self.before),
        )
        self.engine.program(GROUPS).run("answer_missing", StoredRows(), given, batch.n, batch.stream)

    def elements(self, n: int, which: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """The first elements of some of the new keys, in a batch of ``n``. Waits."""
        assert self.numbered is not None
        engine, found = self.engine, self.missing.found
        firsts: npt.NDArray[np.integer] = engine.to_host(self.numbered.firsts.ptr, np.uint32, self.size)[which]
        if found is None:
            return firsts
        elements: npt.NDArray[np.integer] = np.flatnonzero(engine.to_host(found.ptr, np.uint8, n) == 0)[firsts]
        return elements


def number_keys(rows: Rows, batch: Batch, numbers: Numbers) -> None:
    """Write the number of each key of a batch to ``batch.held``; new keys get the next numbers. Waits.

    Parameters
    ----------
    rows
        Its values are integers. Keys are equal if all of their bytes are.
    batch
        At most 2**31 keys. ``batch.flags``, if given, receives which elements added their keys: the first one of each
        new key.

    Raises
    ------
    DtypeError
        If the values cannot be the numbers of all new keys. The storage is as it was.
    TableFull, MemoryError
        As `Rows.update`. The storage is as it was.
    """
    if batch.n == 0:
        return
    rows.store.finish(batch.stream)
    new = _new_keys(rows, batch, numbers)
    new.answer(batch, numbers)
    if new.size == 0:
        return
    try:
        uninterrupted(partial(_insert, rows, new.batch))
    except TableFull as error:
        if error.keys is None:
            raise
        raise TableFull(str(error), new.elements(batch.n, error.keys)) from error


def _new_keys(rows: Rows, batch: Batch, numbers: Numbers) -> _NewKeys:
    """Write the numbers of known keys of a batch to ``batch.held``, and number the others. Waits."""
    n, stream, size, engine = batch.n, batch.stream, rows.store.size, rows.store.engine
    missing = _find(rows, batch, numbers) if size else _Missing(batch.keys, n)
    if missing.n == 0:
        return _NewKeys(engine, size, 0, missing)
    which = engine.allocate(4 * missing.n, stream)
    width = numbers.key_bytes
    made = number(engine, missing.rows, width, missing.n, numbers=which.ptr, number_bytes=4, stream=stream)
    base = numbers.first + size
    _check(base + made.size - 1, numbers)
    keys = None if made.size == missing.n else engine.allocate(made.size * width, stream)
    values = engine.allocate(made.size * numbers.value_bytes, stream)
    given = MissingBatch(
        n=made.size,
        keys=missing.rows,
        key_bytes=width,
        firsts=made.firsts.ptr,
        out_keys=0 if keys is None else keys.ptr,
        out_numbers=values.ptr,
        number_bytes=numbers.value_bytes,
        base=_word(base),
    )
    engine.program(GROUPS).run("take_firsts", StoredRows(), given, made.size, stream)
    at = missing.rows if keys is None else keys.ptr
    inserted = Batch(at, values.ptr, made.size, unique=True, stream=stream)
    return _NewKeys(engine, size, made.size, missing, inserted, which, made, (keys, values))


def _find(rows: Rows, batch: Batch, numbers: Numbers) -> _Missing:
    """Answer the keys that are there, and pack the others."""
    engine, n, stream, width = rows.store.engine, batch.n, batch.stream, numbers.key_bytes
    found = engine.allocate(n, stream)
    rows.find(batch.keys, n, batch.held, found.ptr, bytes(numbers.value_bytes), stream)
    there = count(engine, found, n, stream)
    if there in (0, n):
        return _Missing(batch.keys, n - there)
    starts, _there = starts_of_flags(engine, found, n, stream)
    held = engine.allocate((n - there) * width, stream)
    given = MissingBatch(n=n, keys=batch.keys, key_bytes=width, out_keys=held.ptr, found=found.ptr, starts=starts.ptr)
    engine.program(GROUPS).run("pack_missing", StoredRows(), given, n, stream)
    return _Missing(held.ptr, n - there, found, starts, held)


def _word(number: int) -> int:
    """A number as the kernels are given it, which may be negative."""
    return number & (1 << 64) - 1


def _check(last: int, numbers: Numbers) -> None:
    """Raise `DtypeError` unless values can be all numbers up to ``last``."""
    if last > numbers.most:
        raise DtypeError(
            f"the new keys of the batch get numbers up to {last:,}, and values of {8 * numbers.value_bytes} bits are "
            f"at most {numbers.most:,}: make the table with a wider type of values"
        )


def _insert(rows: Rows, batch: Batch) -> None:
    """Insert new keys, and end the batch."""
    rows.update(batch)
    rows.store.finish(batch.stream)
