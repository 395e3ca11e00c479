"""Words among others of a small span, beside a set of Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.refusals import refusing
from warphash.runtime.devices import engine_for
from warphash.storage.groups.members import mark_members

TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def marked(words: Any, others: Any) -> list[bool] | None:
    """The flags, or None if nothing was flagged."""
    flags = np.full(len(words), 7, "u1")
    at = words.ctypes.data, len(words), others.ctypes.data, len(others), words.itemsize, flags.ctypes.data
    if not mark_members(engine_for("cpu"), *at):
        assert set(flags) <= {7}
        return None
    assert set(flags) <= {0, 1}
    return [flag == 1 for flag in flags.tolist()]


@pytest.mark.parametrize("low", ["least", "around zero", "greatest"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("threads", [1, 3])
def test_words_are_among_others(dtype: str, low: str, threads: int) -> None:
    limits, random = np.iinfo(dtype), np.random.default_rng(1)
    first = {"least": limits.min, "around zero": max(limits.min, -40), "greatest": limits.max - 99}[low]
    warphash.set_num_threads(threads)
    try:
        for n in (1, 65, 30_000) if limits.bits > 16 else (9_000, 30_000):
            others = np.array([first + int(x) for x in random.integers(0, 100, 50)], dtype)
            near = [(first + int(x)) % (limits.max + 1) for x in random.integers(0, 120, n // 2)]
            words = np.array([*near, *random.integers(limits.min, limits.max, n - n // 2, dtype, True)], dtype)
            members = set(others.tolist())
            assert marked(words, others) == [word in members for word in words.tolist()]
    finally:
        warphash.set_num_threads(None)


def test_a_large_span_is_left_to_a_table() -> None:
    words = np.arange(100)
    assert marked(words.astype("u2"), words.astype("u2")) is None  # the span of the type is taken
    assert marked(words, np.array([0, 1 << 40])) is None
    assert marked(words, np.array([], "i8")) is None
    assert marked(np.zeros(3, "V3"), np.zeros(3, "V3")) is None


def test_refused_memory_is_an_error() -> None:
    words = np.arange(1000)
    for first in (1, 2):
        with refusing(engine_for("cpu"), first), pytest.raises(MemoryError):
            marked(words, words)
