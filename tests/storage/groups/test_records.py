"""Records of groups, made while keys are numbered and by numbers, beside NumPy's sums in the order of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warphash
from support.changing import changed_meanwhile
from support.refusals import refusing
from warphash.runtime.abi import Accumulation, ValueType
from warphash.runtime.devices import engine_for
from warphash.runtime.engine import Buffer
from warphash.storage.groups import numbering, word_numbers, word_records
from warphash.storage.groups.numbering import record
from warphash.storage.groups.records import Column, Record, Word, accumulated
from warphash.storage.groups.ways import Way, room_of, stretches_of

WAYS = [None, Way(1), Way(3), Way(2, 3), Way(3, 6), Way(2, by_place=True)]

ways = pytest.mark.parametrize("way", WAYS, ids=str)


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """That many threads."""
    warphash.set_num_threads(request.param)
    yield request.param
    warphash.set_num_threads(None)


def choose(monkeypatch: pytest.MonkeyPatch, way: Way | None) -> None:
    if way is not None:
        monkeypatch.setattr(word_numbers, "way_of", lambda *_: way)


def kept_of(integers: npt.NDArray[Any], floats: npt.NDArray[Any], valid: npt.NDArray[Any]) -> Record:
    columns = (
        Column(integers.ctypes.data, ValueType.INT16),
        Column(floats.ctypes.data, ValueType.FLOAT64, valid.ctypes.data),
    )
    words = (
        Word(Accumulation.SUM, 0),
        Word(Accumulation.FLOAT_SUM, 1),
        Word(Accumulation.COUNT, None),
        Word(Accumulation.COUNT, 1),
        Word(Accumulation.MAX, 0),
        Word(Accumulation.TRUE, 0),
    )
    return Record(columns, words)


class Rows:
    """Keys, values, and what groups keep of them."""

    def __init__(self, n: int, distinct: int, width: int = 8) -> None:
        random = np.random.default_rng(n + distinct)
        self.keys = random.integers(0, distinct, n).astype(f"u{width}") * (3 if width > 2 else 1)
        self.integers = random.integers(-3, 4, n).astype("i2")
        self.floats = random.normal(size=n) * 10.0 ** random.integers(-9, 9, n)
        self.valid = random.random(n) < 0.7
        self.kept = kept_of(self.integers, self.floats, self.valid)
        _, firsts, codes = np.unique(self.keys, return_index=True, return_inverse=True)
        self.firsts = np.sort(firsts)
        self.codes = np.argsort(np.argsort(firsts))[codes].astype("u4")

    @property
    def size(self) -> int:
        return len(self.firsts)

    def check(self, words: tuple[Buffer, ...]) -> None:
        engine, size = engine_for("cpu"), self.size
        made = [engine.to_host(word.ptr, np.int64, size) for word in words]
        total, floats, most = np.zeros(size, "i8"), np.zeros(size), np.full(size, -4)
        np.add.at(total, self.codes, self.integers)
        np.add.at(floats, self.codes[self.valid], self.floats[self.valid])
        np.maximum.at(most, self.codes, self.integers)
        expected = [
            total,
            floats.view("i8"),
            np.bincount(self.codes),
            np.bincount(self.codes[self.valid], minlength=size),
            most,
            np.bincount(self.codes[self.integers != 0], minlength=size),
        ]
        for mine, theirs in zip(made, expected, strict=True):
            assert np.array_equal(mine, theirs)


def check_recorded(rows: Rows) -> None:
    keys, engine = rows.keys, engine_for("cpu")
    made = record(engine, keys.ctypes.data, keys.itemsize, len(keys), rows.kept)
    assert made.size == rows.size
    assert np.array_equal(engine.to_host(made.firsts.ptr, np.uint32, made.size), rows.firsts)
    rows.check(made.words)


@ways
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize(("n", "distinct"), [(1, 1), (500, 200), (20_000, 1), (70_001, 200), (70_001, 60_000)])
def test_one_pass(
    threads: int, way: Way | None, width: int, n: int, distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(monkeypatch, way if n > 10_000 else None)
    check_recorded(Rows(n, min(distinct, 2 ** (8 * width)), width))


@pytest.mark.parametrize("number_bytes", [4, 8])
@pytest.mark.parametrize(("n", "distinct"), [(1, 1), (500, 200), (70_001, 200), (70_001, 60_000)])
def test_by_numbers(threads: int, number_bytes: int, n: int, distinct: int) -> None:
    rows = Rows(n, distinct)
    numbers = rows.codes.astype(f"u{number_bytes}")
    rows.check(accumulated(engine_for("cpu"), numbers.ctypes.data, number_bytes, (n, rows.size), rows.kept))


@pytest.mark.parametrize("number_bytes", [4, 8])
def test_numbers_of_no_group_are_left_out(number_bytes: int) -> None:
    numbers, values = np.array([0, -1, 1, -1, 0], f"i{number_bytes}"), np.array([1, 100, 3, 100, 5], "u1")
    kept = Record((Column(values.ctypes.data, ValueType.UINT8),), (Word(Accumulation.SUM, 0),))
    engine = engine_for("cpu")
    (word,) = accumulated(engine, numbers.ctypes.data, number_bytes, (5, 2), kept)
    assert engine.to_host(word.ptr, np.int64, 2).tolist() == [6, 3]


@ways
def test_wrong_estimates(way: Way | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """More keys than there is room for, or other stretches than were expected: values are accumulated by numbers."""
    choose(monkeypatch, way)
    calls = []
    monkeypatch.setattr(numbering, "accumulated", lambda *given: calls.append(1) or accumulated(*given))
    monkeypatch.setattr(word_records, "room_of", lambda *_: 100)
    check_recorded(Rows(70_001, 300))
    assert len(calls) == (way is None or not way.part_bits)
    monkeypatch.setattr(word_records, "room_of", room_of)
    seen = iter([1, 2, 2, 2, 2])
    monkeypatch.setattr("warphash.storage.groups.records.stretches_of", lambda *_: next(seen))
    rows = Rows(70_001, 300)
    record(engine_for("cpu"), rows.keys.ctypes.data, 8, len(rows.keys), rows.kept)
    assert len(calls) == 1 + (way is None or not way.part_bits)


@pytest.mark.parametrize("once", [True, False])
@ways
def test_refused_memory_is_an_error(way: Way | None, once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, way)
    engine, rows = engine_for("cpu"), Rows(20_000, 900)
    for first in range(1, 100):
        with refusing(engine, first, once=once) as refusals:
            try:
                check_recorded(rows)
            except MemoryError:
                assert refusals.refused
                continue
        assert not refusals.refused
        return
    raise AssertionError("the call still asks for memory")


@ways
def test_keys_that_change_meanwhile_break_no_memory(way: Way | None, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, way)
    n, engine = 100_000, engine_for("cpu")
    rows = Rows(n, 50_000)
    keys = rows.keys

    def change(random: np.random.Generator) -> None:
        keys[random.integers(0, n, 1000)] = random.integers(0, 1 << 31, 1000)

    with changed_meanwhile(change):
        for _ in range(5):
            made = record(engine, keys.ctypes.data, 8, n, rows.kept)
            assert 1 <= made.size <= n
            assert engine.to_host(made.firsts.ptr, np.uint32, made.size).max() < n
            assert engine.to_host(made.words[2].ptr, np.int64, made.size).sum() <= n


M = 1 << 20


@pytest.mark.parametrize(
    ("given", "stretches"),
    [
        ((0, 0), 1),
        ((M - 1, 1), 1),
        ((2 * M - 1, 1), 1),
        ((2 * M, 1), 2),
        ((2 * M, M // 8), 2),
        ((2 * M, M // 8 + 1), 1),
        ((10 * M, 1), 8),
        ((100 * M, M // 4), 64),
        ((100 * M, M // 4 + 1), 1),
        ((2**31, 1), 64),
    ],
)
def test_stretches(given: tuple[int, int], stretches: int) -> None:
    assert stretches_of(*given) == stretches
