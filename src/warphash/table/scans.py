"""The one path of verbs that read all keys: all rows of some columns, as arrays of a library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import NUMPY
from ..arrays.library import ArrayView, Library
from ..arrays.row_type import Column
from ..arrays.string_column import StringColumn
from ..arrays.strings import StringArray
from ..errors import WarphashError
from ..runtime.engine import Engine
from .facts import Facts
from .front import Front
from .guarded import Guarded
from .key_columns import CompositeColumn
from .stats import Figures

if TYPE_CHECKING:
    from ..storage.bounded.bounded_rows import BoundedRows

__all__ = ["Scans", "owned"]

RANKS = Column(np.dtype(np.uint64), ())
"""The ranks that a bounded table keeps beside its pairs."""


def owned(engine: Engine, column: Column, rows: ArrayView) -> ArrayView | StringArray:
    """Rows of a table that stay valid behind its lock, which the caller holds: strings of any length are copied."""
    if not (isinstance(column, StringColumn | CompositeColumn) and column.has_any_length):
        return rows
    from ..storage.strings.string_table import packed

    offsets, data, valid = packed(engine, rows.ptr, rows.rows)
    return StringArray(offsets, data, column.text, valid)


class Scans:
    """The reads of all keys of a table."""

    __slots__ = ("_facts", "_figures", "_front", "_guarded")

    def __init__(self, facts: Facts, front: Front, guarded: Guarded, figures: Figures) -> None:
        self._facts, self._front, self._guarded, self._figures = facts, front, guarded, figures

    def read(self, like: Any, *columns: Column) -> list[Any]:
        """All rows of some columns, as arrays like ``like`` (`BaseTable.keys`)."""
        library, device = self._front.kind_like(like)
        made = self._guarded.settled(self.owned_columns_locked, library, device, columns)
        return [column.exported(rows, library) for rows, column in zip(made, columns, strict=True)]

    def owned_columns_locked(
        self, library: Library, device: str, columns: Sequence[Column]
    ) -> list[ArrayView | StringArray]:
        """All rows of some columns, valid behind the lock, too."""
        made = zip(self.scanned_locked(library, device, columns), columns, strict=True)
        return [owned(self._front.engine, column, rows) for rows, column in made]

    def scanned_locked(self, library: Library, device: str, columns: Sequence[Column]) -> list[ArrayView]:
        """All rows of some columns: of keys, values and ranks, in this order."""
        front, storage = self._front, self._guarded.storage
        n = storage.store.size
        like = library.see(library.example(device))
        outs = [front.rows_for(like, column, n) for column in columns]
        stored = n

        def body(_n: int, _at: list[int], to: list[int]) -> None:
            nonlocal stored
            keys = to[0] if columns[0] is front.key else 0
            values = next((at for at, column in zip(to, columns, strict=True) if column is front.value), 0)
            if columns[-1] is RANKS:
                stored = cast("BoundedRows", storage).scan(n, keys, values, like.stream, to[-1])
            else:
                stored = storage.scan(n, keys, values, like.stream)

        front.run(body, [], outs, like.stream)
        if stored != n:
            state = self._figures.repr_locked()
            raise WarphashError(f"{state} is broken: {stored:,} keys are stored, and {n:,} are counted")
        return outs

    def on_host_locked(
        self, *, ranks: bool = False
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
        """All keys; all values, if the table has values; and all ranks, if it keeps ``ranks``; in host memory."""
        columns = [*self._front.stored, *([RANKS] if ranks and self._facts.keeps_ranks else [])]
        made = self.owned_columns_locked(NUMPY, "cpu", columns)
        held: list[Any] = [rows if isinstance(rows, StringArray) else rows.owner for rows in made]
        keys, *others = held
        values = None if self._front.value is None else others.pop(0)
        return keys, values, others[0] if others else None
