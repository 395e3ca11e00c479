"""Keys that leave a table by their rank, or by a comparison of a column with a bound: `HashMap.evict`, `erase_if`."""

from __future__ import annotations

from typing import Any

from ..arrays.library import ArrayView, Library
from ..arrays.strings import StringArray
from ..errors import DtypeError, ParameterError, UnsupportedVerb
from ..runtime.abi import kind_of
from ..runtime.engine import Buffer
from ..storage.bounded.least import Numbers, keys_that_compare
from ..storage.bounded.numbers import bounded_by
from .base import BaseTable
from .options import integer

__all__ = ["erase_if", "evict"]


def evict(table: BaseTable, n: int, like: Any) -> list[Any]:
    """Have the ``n`` keys of least rank leave; return the keys, and the values of a table with values."""
    table._need("erase")
    if table._bound is None:
        raise UnsupportedVerb(
            "evict takes the keys of least rank out of a bounded table, and this one has no bound: make it with "
            "max_size=, or call erase or erase_if"
        )
    wanted = integer("n", n, 0)
    library, device = table._kind_like(like)
    made = table._alone(_evict_locked, table, wanted, library, device)
    columns = [column for column in (table._key, table._value) if column is not None]
    return table._exported(made, columns, library)


def _evict_locked(table: BaseTable, wanted: int, library: Library, device: str) -> list[ArrayView | StringArray]:
    storage, engine = table._bounded, table._engine
    like = library.see(library.example(device))
    keys, n, _ = storage.least(wanted, like.stream)
    columns: list[tuple[Any, Buffer]] = [(table._key, keys)]
    if table._value is not None:
        width = table._value.nbytes
        values = engine.allocate(max(1, n * width), like.stream)
        storage.unused.find(keys.ptr, n, values.ptr, 0, bytes(width), like.stream)
        columns.append((table._value, values))
    outs = [library.empty(like, (n, *column.shape), column.dtype, engine) for column, _ in columns]

    def body(_n: int, _at: list[int], to: list[int]) -> None:
        for at, (column, buffer) in zip(to, columns, strict=True):
            engine.copy(at, buffer.ptr, n * column.nbytes, like.stream)

    # What leaves is copied out before it leaves, so it is not lost for want of memory.
    table._run(body, [], outs, like.stream)
    left = [table._owned_locked(outs[0]), *outs[1:]]
    if n:
        storage.drop(keys, n, like.stream)
    return left


def erase_if(table: BaseTable, column: str, comparison: str, bound: Any) -> int:
    """Erase the keys whose number in a column compares with a bound; how many they were."""
    table._need("erase")
    columns = {"keys": table._key, "values": table._value, "scores": table._score}
    if column not in columns or (chosen := columns[column]) is None:
        have = [name for name, held in columns.items() if held is not None]
        raise ParameterError(f"column must be one of {have}, got {column!r}")
    if chosen.shape or chosen.dtype.kind not in "biuf" or chosen.dtype.itemsize > 8:
        raise DtypeError(f"erase_if compares single numbers of at most 64 bits, and {column} are {chosen.numpy}")
    how = bounded_by(chosen.dtype, comparison, bound)
    if how is False:
        return 0
    return table._alone(_erase_if_locked, table, column, how)


def _erase_if_locked(table: BaseTable, column: str, how: Any) -> int:
    storage, engine, width = table._storage, table._engine, table._key.nbytes
    n = storage.store.size
    if n == 0:
        return 0
    keys = engine.allocate(n * width)
    numbers, chosen = keys, table._key
    if column == "keys":
        storage.scan(n, keys.ptr, 0, None)
    elif column == "values":
        assert table._value is not None
        chosen = table._value
        numbers = engine.allocate(n * chosen.nbytes)
        storage.scan(n, keys.ptr, numbers.ptr, None)
    else:
        assert table._score is not None
        chosen = table._score
        numbers = engine.allocate(8 * n)
        table._bounded.scan(n, keys.ptr, 0, None, numbers.ptr)
    leaving: Buffer | None = keys
    if how is not True:
        ranked = column == "scores"
        asked = Numbers(numbers.ptr, 8 if ranked else chosen.nbytes, kind_of(chosen.dtype), ranked, *how)
        leaving, n = keys_that_compare(engine, keys, width, asked, n, None)
    if leaving is None:
        return 0
    storage.erase(leaving.ptr, n, 0, None)
    storage.store.finish(None)
    return n
