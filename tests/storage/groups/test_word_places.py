"""Codes of words of a small span, beside a dict of Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.refusals import refusing
from warphash.runtime.devices import engine_for
from warphash.storage.groups.word_places import WordPlaces, places_of

TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def made(words: Any, codes: Any) -> WordPlaces | None:
    places = places_of(engine_for("cpu"), words.ctypes.data, words.itemsize, len(words))
    if places is not None:
        places.put(words.ctypes.data, len(words), codes.ctypes.data, codes.itemsize)
    return places


@pytest.mark.parametrize("code_type", ["i4", "i8"])
@pytest.mark.parametrize("low", ["least", "around zero", "greatest"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("threads", [1, 3])
def test_codes_of_words(dtype: str, low: str, code_type: str, threads: int) -> None:
    limits, random = np.iinfo(dtype), np.random.default_rng(1)
    size = 250 if limits.bits == 8 else 40_000
    first = {"least": limits.min, "around zero": max(limits.min, -100), "greatest": limits.max - size + 1}[low]
    span = range(first, min(limits.max, first + size - 1) + 1)
    warphash.set_num_threads(threads)
    try:
        words = np.array(random.permutation(span)[: len(span) * 3 // 4], dtype)
        codes = random.permutation(len(words)).astype(code_type)
        places = made(words, codes)
        assert places is not None and places.used == len(words)
        expected = dict(zip(words.tolist(), codes.tolist(), strict=True))
        sought = np.concatenate([words, random.integers(limits.min, limits.max, 30_000, dtype, True)])
        found = np.full(len(sought), 77, code_type)
        places.find(sought.ctypes.data, len(sought), found.ctypes.data, found.itemsize)
        assert found.tolist() == [expected.get(word, -1) for word in sought.tolist()]
    finally:
        warphash.set_num_threads(None)


def test_a_word_that_repeats_has_one_of_its_codes() -> None:
    words, codes = np.array([5, 7, 5, 9, 5]), np.arange(5)
    places = made(words, codes)
    assert places is not None and places.used == 3
    found = np.empty(5, np.int64)
    places.find(words.ctypes.data, 5, found.ctypes.data, 8)
    assert found[0] in (0, 2, 4) and set(found[[0, 2, 4]]) == {found[0]} and found[[1, 3]].tolist() == [1, 3]


def test_a_large_span_is_left_to_a_table() -> None:
    codes = np.arange(100)
    assert made(np.array([0, 1 << 40]), codes[:2]) is None
    assert made(np.arange(100, dtype="u2"), codes) is None  # the span of the type is taken
    assert made(np.array([], "i8"), codes[:0]) is None
    assert made(np.zeros(3, "V3"), codes[:3]) is None


def test_refused_memory_is_an_error() -> None:
    words = np.arange(1000)
    for first in (1, 2):
        with refusing(engine_for("cpu"), first), pytest.raises(MemoryError):
            made(words, words)
