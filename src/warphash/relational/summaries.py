"""Words of 64 bits that groups keep of values (`storage/groups/records.py`), as arrays of NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..runtime.abi import Accumulation, ValueType
from ..runtime.devices import engine_for
from ..runtime.engine import Buffer
from ..storage.groups.numbering import record
from ..storage.groups.records import WORD_BYTES, Column, Record, Word, accumulated
from .composites import RowElements
from .elements import Elements
from .items import Items, Missing
from .numbered import Asked, Indices, copied_numbers, key_rows, narrowest_index_type
from .values import Values

__all__ = ["Summaries", "Wanted", "WordArray", "summarised", "summarised_by"]

WordArray = npt.NDArray[np.uint64]


class Wanted(NamedTuple):
    """A word that each group keeps: of which values, or of all elements."""

    operation: Accumulation
    values: Values | None


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
        In host memory.
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
    if n and wanted and not codes and (rows := key_rows(_columns_of(elements), missing)):
        made = record(engine_for("cpu"), rows.ptr, rows.width, n, _record_of(wanted))
        return Summaries(copied_numbers(made.firsts, made.size), [_words(word, made.size) for word in made.words])
    needs_codes = codes or bool(wanted)
    numbers = elements.number(Asked(needs_codes, nan=missing, null=missing, dtype=narrowest_index_type(n)))
    if not needs_codes:
        return Summaries(numbers.firsts, [])
    words = summarised_by(numbers.code_of_each, len(numbers.firsts), wanted)
    return Summaries(numbers.firsts, words, numbers.codes)


def summarised_by(
    codes: Indices, groups: int, wanted: Sequence[Wanted], centers: npt.NDArray[np.float64] | None = None
) -> list[WordArray]:
    """Keep words of values by the code of each; values with the code -1 are left out.

    Parameters
    ----------
    centers
        What `Accumulation.SQUARES` subtracts of the values of each group.
    """
    n = len(codes)
    if not n or not wanted:
        return [np.zeros(groups, np.uint64) for _ in wanted]
    kept = _record_of(wanted, 0 if centers is None else address_of(centers))
    made = accumulated(engine_for("cpu"), address_of(codes), codes.itemsize, (n, groups), kept)
    return [_words(word, groups) for word in made]


def _columns_of(elements: Elements) -> list[Items]:
    return [column.items for column in (elements.columns if isinstance(elements, RowElements) else (elements,))]


def _record_of(wanted: Sequence[Wanted], centers: int = 0) -> Record:
    """The record of some words, of different columns of values."""
    columns = {word.values: _column_of(word.values) for word in wanted if word.values is not None}
    places = {values: place for place, values in enumerate(columns)}
    words = [Word(operation, None if values is None else places[values], centers) for operation, values in wanted]
    return Record(tuple(columns.values()), tuple(words))


def _column_of(values: Values) -> Column:
    valid = 0 if values.valid is None else address_of(values.valid)
    if values.numbers is None:  # which are counted
        return Column(valid, ValueType.UINT8, valid)
    return Column(address_of(values.numbers), values.number_type, valid)


def _words(buffer: Buffer, groups: int) -> WordArray:
    """Memory of the engine as an array, which keeps it."""
    memory: Any = (ctypes.c_uint8 * (WORD_BYTES * groups)).from_address(buffer.ptr)
    memory.owner = buffer
    return np.frombuffer(memory, np.uint64)
