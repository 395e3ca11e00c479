"""Batches that bring many times more elements to a range of a quotient table than it has slots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.faults import FAMILIES, VERBS, Repeating, all_faults, check_harmless, interrupts, scenarios
from support.passes import in_passes
from support.planting import planted, planted_among
from support.quotients import SLOTS, add, array_of, check_combined, entries, launches, made, value_of
from support.types import Array
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine, EmulationError
from warphash.storage.batch_order import hot_keys
from warphash.storage.quotient import array as quotient
from warphash.storage.quotient import route

DEVICES = one_of_each("emulated", "cuda")
TYPES = [(*types, slots) for types, slots in SLOTS.items()]
"""Types of keys and of values, and slots of a bucket."""

BATCHES = ("equal", "half", "sorted", "few", "first hot, then different")


@pytest.fixture(autouse=True)
def no_sums_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hot keys come to the table."""
    monkeypatch.setattr(hot_keys, "FEWEST_AGGREGATED", 1 << 40)


def batch(name: str, n: int, dtype: str) -> Array:
    """Keys of some distribution."""
    rng = np.random.default_rng(n)
    hot = np.where(rng.random(n) < 0.5, 0, np.arange(n) % (n // 8))
    numbers: dict[str, Array] = {
        "equal": np.zeros(n, np.int64),
        "half": hot,
        "sorted": np.arange(n) // 200,
        "few": rng.integers(0, 50, n),
        "first hot, then different": np.concatenate([np.zeros(n - n // 4, np.int64), np.arange(n // 4)]),
    }
    return (numbers[name].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(dtype)


def check_verbs(key: str, value: str | None, slots: int, device: str, keys: Array) -> bool:
    """Do all verbs that change a table with a batch, and check each. Whether each of them had crowded ranges."""
    there = np.unique(keys)
    table = made(key, value, max(slots * 8, 2 * len(there)), device)
    crowded = []

    def noted(call: Any) -> Any:
        with launches(table) as launched:
            answer = call()
        crowded.append("apply_crowds" in entries(launched))
        return answer

    def check_new(flags: Array, kept: int = 0) -> None:
        assert np.array_equal(np.sort(keys[flags]), there) and len(table) == len(there) + kept
        assert table.contains(there).all()
        table.check()

    check_new(noted(lambda: add(table, keys)))  # a build
    assert not noted(lambda: add(table, keys)).any()
    other = keys.dtype.type(12345)
    if value:
        assert (table.find(there)[0] == value_of(there, value)).all()
        ones = np.ones(len(keys), value)
        assert not noted(lambda: table.upsert(keys, ones, "add")).any()
        times = np.unique(keys, return_counts=True)[1].astype(value)
        assert (table.find(there)[0] == value_of(there, value) + times).all()
        values = np.arange(len(keys)).astype(value)
        assert not noted(lambda: table.assign(keys, values)).any()
        assert (keys[table.find(there)[0]] == there).all()  # the value of one of the elements
    erased = noted(lambda: table.erase(keys))
    assert np.array_equal(np.sort(keys[erased]), there) and len(table) == 0
    assert not table.contains(there).any()
    table.check()
    add(table, np.array([other]))
    check_new(noted(lambda: add(table, keys)), kept=1)  # into lines with a pair
    if value:
        assert (table.find(there)[0] == value_of(there, value)).all() and table.find(np.array([other]))[0] == value_of(
            other, value
        )
    return all(crowded)


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("passes", [False, True], ids=["one by one", "in passes"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value", "slots"), TYPES)
def test_every_element_counts(device: str, key: str, value: str | None, slots: int, name: str, passes: bool) -> None:
    with in_passes(64) if passes else mock.patch.object(quotient, "MOST_RANGE_BUCKETS", 64):
        assert check_verbs(key, value, slots, device, batch(name, 40_000, key))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("one_pass_ranges", [2, 512], ids=["two passes", "one pass"])
def test_flags_on_their_way_back_leave_the_elements(device: str, one_pass_ranges: int) -> None:
    """A batch of few elements has its flags brought back before anybody knows whether ranges are crowded."""
    with in_passes(64, one_pass_ranges), mock.patch.object(quotient, "_FEWEST_ALIKE", 1 << 22):
        assert check_verbs("u4", "u4", 7, device, batch("half", 40_000, "u4"))


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_of_several_launches(device: str) -> None:
    """The lists of a launch are done with before the next one."""
    with in_passes(64), mock.patch.multiple(route, MOST_ELEMENTS=15_000, LAUNCH_ELEMENTS=15_000):
        assert check_verbs("u4", "u4", 7, device, batch("half", 40_000, "u4"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ["add", "min", "max", "or", "and", "xor"])
def test_operations_on_one_value(device: str, op: str) -> None:
    table = made("u4", "u4", 7 * 100, device)
    keys = np.where(np.arange(30_000) % 7 > 0, 5, 1000).astype(np.uint32)
    values = np.random.default_rng(2).integers(0, 1 << 32, len(keys), np.uint32)
    add(table, np.array([5], np.uint32))
    with launches(table) as launched:
        added = table.upsert(keys, values, op)
    assert "apply_crowds" in entries(launched) and np.count_nonzero(added) == 1 and keys[added] == 1000
    check_combined(table, op, keys, values, {5: ~np.uint32(5)})


@pytest.mark.parametrize("device", DEVICES)
def test_a_table_of_one_bucket_that_grows(device: str) -> None:
    keys = batch("first hot, then different", 40_000, "u4")
    table = made("u4", "u4", 4, device, load_factor=0.7)
    assert array_of(table).buckets == 1
    assert add(table, keys).sum() == len(np.unique(keys)) == len(table) and (table.find(keys)[0] == ~keys).all()
    table.check()


@pytest.mark.parametrize("passes", [False, True], ids=["one by one", "in passes"])
@pytest.mark.parametrize("device", DEVICES)
def test_no_range_is_crowded_where_all_get_as_much(device: str, passes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few elements are a crowd for the emulated kernels. The kernels of a GPU get a larger batch."""
    n, most_buckets = 8_000_000, 2
    if device == "emulated":
        n, engine = 40_000, EmulatedEngine(with_small_crowds)
        monkeypatch.setattr(emulated, "engine", lambda: engine)
    with in_passes(most_buckets) if passes else mock.patch.object(quotient, "MOST_RANGE_BUCKETS", most_buckets):
        table = made("u4", "u4", 30_000, device)
        assert array_of(table).ranges > 4 * 256
        number = np.random.default_rng(3).integers(0, 15_000, n)
        keys = (number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(np.uint32)
        for turn in (1, 2):  # a build, and an update
            with launches(table) as launched:
                table.upsert(keys, np.ones(n, np.uint32), "add")
            assert "apply_crowds" not in entries(launched)
            there, times = np.unique(keys, return_counts=True)
            assert len(table) == len(there) and (table.find(there)[0] == turn * times).all()
        with launches(table) as launched:
            erased = table.erase(keys)
        assert "apply_crowds" not in entries(launched) and np.array_equal(np.sort(keys[erased]), there)
        assert len(table) == 0
        table.check()


def with_small_crowds(source: str) -> str:
    """Kernels for which a few elements crowd a range."""
    if "struct Sampled" not in source:
        return source
    numbers = "kFewestSampled = 2048, kMostSampled = 20480;"
    return planted(planted(source, numbers, "kFewestSampled = 2, kMostSampled = 3;"), "kChunk = 4096;", "kChunk = 16;")


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestFaults:
    @pytest.fixture(autouse=True)
    def crowds(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        engine, none_of_few = EmulatedEngine(with_small_crowds), {"MOST_FOR_A_BUCKET": 0, "FEW_FOR_A_BUCKET": 0}
        monkeypatch.setattr(emulated, "engine", lambda: engine)
        with mock.patch.multiple(route, SPARE_ELEMENTS=8, **none_of_few):
            yield

    @pytest.mark.parametrize("lines", ["some", pytest.param("more", marks=pytest.mark.slow)])
    @pytest.mark.parametrize("passes", [False, True], ids=["one by one", "in passes"])
    @pytest.mark.parametrize("verb", ["insert", "assign", "erase"])
    def test_a_fault_leaves_the_table_whole(self, verb: str, passes: bool, lines: str) -> None:
        with in_passes() if passes else nullcontext():
            for scenario in scenarios("emulated", ["quotients"], [verb]):
                check_harmless(all_faults(scenario, every=31 if lines == "some" else 5))

    @pytest.mark.parametrize("lines", ["some", pytest.param("more", marks=pytest.mark.slow)])
    @pytest.mark.parametrize("passes", [False, True], ids=["one by one", "in passes"])
    def test_an_interrupted_upsert_adds_all_values_of_a_key_or_none(self, passes: bool, lines: str) -> None:
        scenario = Repeating(FAMILIES["quotients"], VERBS["upsert"], "emulated")
        with in_passes() if passes else nullcontext():
            check_harmless(interrupts(scenario, every=31 if lines == "some" else 5))


SPLIT_ADDITION = """[&] {
  const u32 before = load_relaxed(counter_of(t, crowd.range));
  store_relaxed(counter_of(t, crowd.range), before + 1);
  return before;
}()"""


def disorder(plant: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a batch comes out wrong in one schedule."""
    engine = EmulatedEngine(plant)
    monkeypatch.setattr(emulated, "schedule_seed", seed)
    monkeypatch.setattr(emulated, "engine", lambda: engine)
    with ExitStack() as stack:
        if seed % 2:
            stack.enter_context(in_passes(8))
        stack.enter_context(mock.patch.multiple(route, MOST_FOR_A_BUCKET=0, FEW_FOR_A_BUCKET=0))
        try:
            assert check_verbs("u4", "u4", 7, "emulated", batch(BATCHES[seed % len(BATCHES)], 4000, "u4"))
        except (AssertionError, EmulationError, IndexError):
            return True
    return False


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestSchedules:
    @pytest.mark.slow
    def test_all_of_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert not any(disorder(with_small_crowds, seed, monkeypatch) for seed in range(30))

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("if (sampled.has(k, crowd.total)) continue;", ""),
            ("fetch_add(counter_of(t, crowd.range), 1u)", SPLIT_ADDITION),
            ("first_chunk <= chunk", "first_chunk < chunk"),
            ("{range, total, static_cast<u32>(before), 0}", "{range, total, 0, 0}"),
            ("if (!b.erases) return combine_in(line, first_bit(hits), b, place);", "if (!b.erases) return kThere;"),
            ("return b.erases ? kThere : kListed;", "return kThere;"),
            ("(b.rest ? pointer<const u32>(b.rest)[start + element] : m.sampled.place(element))", "element"),
        ],
        ids=[
            "an element of the sample is done twice",
            "two elements have one place in the list",
            "the first chunk of a range goes to another",
            "all ranges begin with one chunk",
            "a value is forgotten",
            "an absent key is forgotten",
            "other elements are applied than those of the sample and the list",
        ],
    )
    def test_a_planted_bug_shows(self, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
        plant = planted_among("struct Sampled", right, wrong)
        assert any(disorder(lambda source: plant(with_small_crowds(source)), seed, monkeypatch) for seed in range(30))

    def test_a_planted_bug_of_a_build_shows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Most homes are full when the repeated keys are sought, so many elements stay in the list."""
        right = "block_barrier();  // all have read this part of the list, and may write there"
        keys = np.random.default_rng(3).permutation(np.arange(9000, dtype=np.uint32) % np.uint32(3300))

        def goes_wrong(engine: EmulatedEngine, seed: int) -> bool:
            monkeypatch.setattr(emulated, "schedule_seed", seed)
            monkeypatch.setattr(emulated, "engine", lambda: engine)
            table = made("u4", "u4", 7 * 512, "emulated")
            try:
                assert add(table, keys).sum() == len(table) == 3300 and (table.find(keys)[0] == ~keys).all()
                assert array_of(table).ranges == 1
                table.check()
            except (AssertionError, EmulationError, IndexError):
                return True
            return False

        bad = EmulatedEngine(planted_among("struct BuildRange", right, ""))
        engine = EmulatedEngine()
        assert not any(goes_wrong(engine, seed) for seed in range(10))
        assert any(goes_wrong(bad, seed) for seed in range(30))
