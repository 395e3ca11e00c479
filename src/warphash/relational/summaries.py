"""Words of 64 bits that groups keep of values (`storage/groups/records.py`), as arrays.

The arrays are NumPy's, or those of the library of keys on a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..runtime.abi import Accumulation
from ..runtime.devices import engine_for
from ..runtime.engine import Buffer
from ..storage.groups.numbering import record
from ..storage.groups.records import WORD_BYTES, Record, Word, accumulated
from .composites import RowElements, elements_on_gpu
from .elements import Elements
from .items import Items, Missing
from .numbered import Asked, Indices, copied_numbers, key_rows, narrowest_index_type
from .values import AnyValues

__all__ = ["Summaries", "Wanted", "WordArray", "summarised", "summarised_by"]

WordArray = npt.NDArray[Any]
"""Of NumPy, or an array on a GPU: int64, uint64 or float64."""

_INT64, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
_DTYPES = {
    Accumulation.COUNT: _INT64,
    Accumulation.TRUE: _INT64,
    Accumulation.FLOAT_SUM: _FLOAT64,
    Accumulation.FLOAT_PRODUCT: _FLOAT64,
    Accumulation.SQUARES: _FLOAT64,
    Accumulation.DISTANCES: _FLOAT64,
}
"""Types of words. The others are of the kind of the values."""


class Wanted(NamedTuple):
    """A word that each group keeps: of which values, or of all elements."""

    operation: Accumulation
    values: AnyValues | None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the word."""
        if self.values is None or self.operation in _DTYPES:
            return _DTYPES[self.operation]
        return self.values.word_dtype


class Summaries(NamedTuple):
    """Groups in the order of first appearance.

    Attributes
    ----------
    firsts
        The position at which each first appears.
    words
        For each word that was wanted, one of each group.
    codes
        The group of each element, -1 for one that was dropped; None if the pass has not written them.
    """

    firsts: Indices
    words: list[WordArray]
    codes: Indices | None = None


def summarised(elements: Elements, missing: Missing, wanted: Sequence[Wanted], codes: bool = False) -> Summaries:
    """Number elements, and keep words of values, in one pass where that is possible.

    Parameters
    ----------
    elements
        In host memory, or on a GPU, where values are then, too.
    missing
        What elements are that are null, NaN or NaT.
    codes
        Whether to write codes.

    Raises
    ------
    DtypeError, MemoryError
        As `Elements.number`.
    """
    n = len(elements)
    in_one_pass = n and wanted and not codes and elements_on_gpu(elements) is None
    if in_one_pass and (rows := key_rows(_columns_of(elements), missing)):
        made = record(engine_for("cpu"), rows.ptr, rows.width, n, _record_of(wanted))
        return Summaries(copied_numbers(made.firsts, made.size), _word_arrays(made.words, made.size, wanted))
    needs_codes = codes or bool(wanted)
    numbers = elements.number(Asked(needs_codes, nan=missing, null=missing, dtype=narrowest_index_type(n)))
    if not needs_codes:
        return Summaries(numbers.firsts, [])
    words = summarised_by(elements, numbers.code_of_each, len(numbers.firsts), wanted)
    return Summaries(numbers.firsts, words, numbers.codes)


def summarised_by(
    elements: Elements, codes: Indices, groups: int, wanted: Sequence[Wanted], centers: Any = None
) -> list[WordArray]:
    """Keep words of values by the code of each; values with the code -1 are left out.

    Parameters
    ----------
    elements
        Where the codes and the values are, and of whose library.
    centers
        What `Accumulation.SQUARES` and `DISTANCES` subtract of the values of each group, float64.
    """
    n = len(codes)
    if not n or not wanted:
        return [elements.in_type(elements.ranks(groups) * 0, each.dtype) for each in wanted]
    kept = _record_of(wanted)
    if (device := elements_on_gpu(elements)) is not None:
        return device.accumulated(codes, groups, kept, [each.dtype for each in wanted], centers)
    if centers is not None:
        kept = kept.centered(address_of(centers))
    made = accumulated(engine_for("cpu"), address_of(codes), codes.itemsize, (n, groups), kept)
    return _word_arrays(made, groups, wanted)


def _columns_of(elements: Elements) -> list[Items]:
    return [column.items for column in (elements.columns if isinstance(elements, RowElements) else (elements,))]


def _record_of(wanted: Sequence[Wanted]) -> Record:
    """The record of some words, of different columns of values."""
    columns = {word.values: word.values.column for word in wanted if word.values is not None}
    places = {values: place for place, values in enumerate(columns)}
    words = [Word(operation, None if values is None else places[values]) for operation, values in wanted]
    return Record(tuple(columns.values()), tuple(words))


def _word_arrays(buffers: Sequence[Buffer], groups: int, wanted: Sequence[Wanted]) -> list[WordArray]:
    """Memory of the engine as arrays, which keep it."""
    return [_words(buffer, groups, each.dtype) for buffer, each in zip(buffers, wanted, strict=True)]


def _words(buffer: Buffer, groups: int, dtype: np.dtype[Any]) -> WordArray:
    memory: Any = (ctypes.c_uint8 * (WORD_BYTES * groups)).from_address(buffer.ptr)
    memory.owner = buffer
    return np.frombuffer(memory, dtype)
