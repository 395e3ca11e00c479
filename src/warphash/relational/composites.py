"""Elements that are rows of several columns, each an array or a column of its own library and type.

A row is packed into one word. A column of integers gives its distance from the least of them, any other column the
codes of its elements, and each column takes as much of the word as its range. Where a word has no room for the next
column, the rows so far are numbered, and their numbers go on in their place; and so is the column, if need be. So a row
is a word for the kernels that number rows, whatever its columns are. Rows of 16 bytes would take ten times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..errors import DeviceError, ParameterError, ShapeError
from ..runtime.devices import engine_for
from ..runtime.engine import Engine
from ..storage.groups.packing import pack_column
from ..storage.groups.spans import Span, span_of
from .device_elements import DeviceElements
from .elements import ArrayElements, ColumnElements, Elements, HostAnswers, elements_of, is_column
from .items import Missing
from .numbered import Int64s, Numbers, number_rows

__all__ = ["RowElements", "row_elements_of"]

_WORDS = 1 << 64

Codes = npt.NDArray[np.uint64]


def row_elements_of(given: Any, axis: int | None = None) -> Elements:
    """See what a caller gave, as `elements_of`; of a tuple of columns, the rows.

    Raises
    ------
    ShapeError
        If the columns are not of one length.
    DeviceError
        For a column on a GPU.
    """
    if isinstance(given, tuple) and given and all(map(is_column, given)):
        if axis not in (None, 0, -1):
            raise ParameterError(f"rows of columns have one axis, got axis={axis!r}: leave axis= out")
        return RowElements(given)
    return elements_of(given, axis)


class RowElements(HostAnswers):
    """The rows of some columns in host memory. What is taken of them is a tuple of columns."""

    def __init__(self, columns: tuple[Any, ...]) -> None:
        self._columns: list[ArrayElements | ColumnElements] = []
        for column in columns:
            elements = elements_of(column)
            if isinstance(elements, DeviceElements):
                raise DeviceError("expected columns in host memory, got one on a GPU: copy the columns to the host")
            assert isinstance(elements, ArrayElements | ColumnElements)
            self._columns.append(elements)
        lengths = [len(elements) for elements in self._columns]
        if len(set(lengths)) > 1:
            raise ShapeError(f"the columns of rows must be of one length, got {', '.join(map(str, lengths))}")

    def __len__(self) -> int:
        return len(self._columns[0])

    def number(
        self, *, codes: bool = False, counts: bool = False, nan: Missing = "one", null: Missing = "one"
    ) -> Numbers:
        """As `Elements.number`. A row is dropped if one of its items is."""
        n, engine = len(self), engine_for("cpu")
        words, size, kept = np.zeros(n, np.uint64), 1, None
        for elements in self._columns if n else ():
            part, span, there = _part(engine, elements, nan, null)
            if there is not None:
                kept = there if kept is None else kept & there
            if size * span.size >= _WORDS:
                words, size = _as_numbers(words)
            if size * span.size >= _WORDS:
                part, distinct = _as_numbers(part)
                span = Span(0, distinct)
            items, width = address_of(part), part.itemsize
            pack_column(engine, address_of(words), items, width, n, span, is_first=size == 1)
            size *= span.size
        if kept is None:
            return _numbered(words, codes=codes, counts=counts)
        at = np.flatnonzero(kept)
        made = _numbered(words[at], codes=codes, counts=counts)
        spread = None
        if made.codes is not None:
            spread = np.full(len(self), -1, np.int64)
            spread[at] = made.codes
        return Numbers(at[made.firsts], spread, made.counts)

    def taken(self, positions: Int64s) -> Any:
        """As `Elements.taken`, of each column."""
        return tuple(elements.taken(positions) for elements in self._columns)

    def order(self, values: Any) -> Int64s:
        """As `Elements.order`: by the first column, then by the next one."""
        ranks = [_ranks(elements, column) for elements, column in zip(self._columns, values, strict=True)]
        return np.lexsort(ranks[::-1]).astype(np.int64, copy=False)

    def for_each(self, answers: npt.NDArray[Any]) -> Any:
        """As `Elements.for_each`, in the library of the first column."""
        return self._columns[0].for_each(answers)

    def apart(self, answers: npt.NDArray[Any]) -> Any:
        """As `Elements.apart`, in the library of the first column."""
        return self._columns[0].apart(answers)


def _part(
    engine: Engine, elements: ArrayElements | ColumnElements, nan: Missing, null: Missing
) -> tuple[npt.NDArray[Any], Span, npt.NDArray[np.bool_] | None]:
    """Integers that stand for the items of a column, their span, and which items are kept, None if all are."""
    array = elements.array if isinstance(elements, ArrayElements) else None
    if array is not None and array.dtype.kind in "iu":
        return array, span_of(engine, address_of(array), array.itemsize, len(array)), None
    made = elements.number(codes=True, nan=nan, null=null)
    dropped = made.code_of_each < 0
    there = ~dropped if dropped.any() else None
    return np.maximum(made.code_of_each, 0), Span(0, max(1, len(made.firsts))), there


def _as_numbers(words: npt.NDArray[Any]) -> tuple[Codes, int]:
    """The numbers of words, less than 2^31; and how many words differ."""
    made = _numbered(words, codes=True)
    return made.code_of_each.view(np.uint64), max(1, len(made.firsts))


def _numbered(words: npt.NDArray[Any], *, codes: bool = False, counts: bool = False) -> Numbers:
    return number_rows(engine_for("cpu"), words, words.itemsize, codes=codes, counts=counts)


def _ranks(elements: ArrayElements | ColumnElements, values: Any) -> Int64s:
    """The rank of each value of a column: equal values have one rank."""
    order = elements.order(values)
    codes = elements_of(values).number(codes=True).code_of_each[order]
    ranks = np.empty(len(codes), np.int64)
    ranks[order] = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0)
    return ranks
