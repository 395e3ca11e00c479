"""Keys that leave a table by their rank, or by a comparison of a column with a bound: `HashMap.evict`, `erase_if`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..arrays.library import ArrayView, Library
from ..arrays.row_type import Column
from ..arrays.strings import StringArray
from ..errors import DtypeError, ParameterError, UnsupportedVerb
from ..runtime.abi import kind_of
from ..runtime.engine import Buffer
from ..storage.bounded.least import Numbers, keys_that_compare
from ..storage.bounded.numbers import bounded_by
from .options import integer
from .parts import Parts
from .scans import owned

if TYPE_CHECKING:
    from ..storage.bounded.bounded_rows import BoundedRows

__all__ = ["erase_if", "evict"]


def evict(parts: Parts, n: int, like: Any) -> list[Any]:
    """Have the ``n`` keys of least rank leave; return the keys, and the values of a table with values."""
    parts.facts.need("erase")
    if parts.facts.bound is None:
        raise UnsupportedVerb(
            "evict takes the keys of least rank out of a bounded table, and this one has no bound: make it with "
            "max_size=, or call erase or erase_if"
        )
    wanted = integer("n", n, 0)
    library, device = parts.front.kind_like(like)
    made = parts.guarded.alone(_evict_locked, parts, wanted, library, device)
    return [column.exported(rows, library) for rows, column in zip(made, parts.front.stored, strict=True)]


def _evict_locked(parts: Parts, wanted: int, library: Library, device: str) -> list[ArrayView | StringArray]:
    front = parts.front
    storage, engine, value = cast("BoundedRows", parts.guarded.storage), front.engine, front.value
    like = library.see(library.example(device))
    keys, n, _ = storage.least(wanted, like.stream)
    buffers: list[Buffer] = [keys]
    if value is not None:
        values = engine.allocate(max(1, n * value.nbytes), like.stream)
        storage.unused.find(keys.ptr, n, values.ptr, 0, bytes(value.nbytes), like.stream)
        buffers.append(values)
    outs = [front.rows_for(like, column, n) for column in front.stored]

    def body(_n: int, _at: list[int], to: list[int]) -> None:
        for at, column, buffer in zip(to, front.stored, buffers, strict=True):
            engine.copy(at, buffer.ptr, n * column.nbytes, like.stream)

    # What leaves is copied out before it leaves, so it is not lost for want of memory.
    front.run(body, [], outs, like.stream)
    left = [owned(engine, column, rows) for column, rows in zip(front.stored, outs, strict=True)]
    if n:
        storage.drop(keys, n, like.stream)
    return left


def erase_if(parts: Parts, column: str, comparison: str, bound: Any) -> int:
    """Erase the keys whose number in a column compares with a bound; how many they were."""
    parts.facts.need("erase")
    front = parts.front
    columns = {"keys": front.key, "values": front.value, "scores": front.score}
    if column not in columns or (chosen := columns[column]) is None:
        have = [name for name, held in columns.items() if held is not None]
        raise ParameterError(f"column must be one of {have}, got {column!r}")
    if chosen.shape or chosen.dtype.kind not in "biuf" or chosen.dtype.itemsize > 8:
        raise DtypeError(f"erase_if compares single numbers of at most 64 bits, and {column} are {chosen.name}")
    how = bounded_by(chosen.dtype, comparison, bound)
    if how is False:
        return 0
    return parts.guarded.alone(_erase_if_locked, parts, column, chosen, how)


def _erase_if_locked(parts: Parts, column: str, chosen: Column, how: Any) -> int:
    storage, engine, width = parts.guarded.storage, parts.front.engine, parts.front.key.nbytes
    n, ranked = storage.store.size, column == "scores"
    if n == 0:
        return 0
    keys = numbers = engine.allocate(n * width)
    number_bytes = 8 if ranked else chosen.nbytes
    if column == "keys":
        storage.scan(n, keys.ptr, 0, None)
    else:
        numbers = engine.allocate(n * number_bytes)
        if ranked:
            cast("BoundedRows", storage).scan(n, keys.ptr, 0, None, numbers.ptr)
        else:
            storage.scan(n, keys.ptr, numbers.ptr, None)
    leaving: Buffer | None = keys
    if how is not True:
        asked = Numbers(numbers.ptr, number_bytes, kind_of(chosen.dtype), ranked, *how)
        leaving, n = keys_that_compare(engine, keys, width, asked, n, None)
    if leaving is None:
        return 0
    storage.erase(leaving.ptr, n, 0, None)
    storage.store.finish(None)
    return n
