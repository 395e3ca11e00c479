"""Lookups of many words in a map in host memory. Where few are there, a filter leaves most of the others out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..runtime.devices import engine_for
from ..storage.batch_order.sample import sample_rows
from ..storage.joins.word_filter import Likely, WordFilter
from ..table.maps import HashMap
from .numbered import Indices

__all__ = ["SomeCodes", "some_codes_in"]

_SAMPLED = 1 << 10
_MOST_FOUND = 1 / 5
"""Of a sample: if fewer are there, a filter takes less time than a lookup of each word."""

_FEWEST_WORDS = 1 << 17
_WORDS_OF_KEY = 2
"""Words for each key of the map. With fewer, to make the filter takes longer than it saves."""


class SomeCodes(NamedTuple):
    """The codes of some elements, among which are all that are there.

    Attributes
    ----------
    places
        Where these elements are, ascending; None: these are all elements.
    codes
        Of each of them; -1 for one that is not there.
    """

    places: npt.NDArray[Any] | None
    codes: Indices


def some_codes_in(table: HashMap[Any, Any], words: npt.NDArray[Any], dtype: np.dtype[Any]) -> SomeCodes:
    """The values of words that may be there, in a type of integers.

    Raises
    ------
    MemoryError
        If there is no room.
    """
    likely = _likely(table, words)
    sought = words if likely is None else likely.words
    return SomeCodes(None if likely is None else likely.elements, np.asarray(table.find(sought, -1)[0], dtype))


def _likely(table: HashMap[Any, Any], words: npt.NDArray[Any]) -> Likely | None:
    """The words that may be there, if it pays to know them."""
    n, width, size = len(words), words.dtype.itemsize, len(table)
    if words.dtype.kind != "u" or width not in (4, 8) or not size or n < max(_FEWEST_WORDS, _WORDS_OF_KEY * size):
        return None
    engine, at = engine_for("cpu"), address_of(words)
    sample = sample_rows(engine, at, width, n, _SAMPLED)
    if np.count_nonzero(table.contains(sample)) >= _MOST_FOUND * _SAMPLED:
        return None
    keys = np.ascontiguousarray(table.keys(like="numpy"))
    return WordFilter(engine, address_of(keys), width, len(keys)).likely(at, n)
