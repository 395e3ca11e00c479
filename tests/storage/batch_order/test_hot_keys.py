"""Hot keys of an update or erase: combined a block at a time, ahead of the table."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.extremes import numbers, winners
from support.faults import FAMILIES, VERBS, Repeating, all_faults, check_harmless
from support.planting import planted_among
from support.types import Array
from warphash import HashMap, HashSet, MultiMap, TableFull
from warphash.runtime.abi import Op
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine, EmulationError
from warphash.storage import word_rows
from warphash.storage.batch import Batch
from warphash.storage.batch_order import hot_keys, sample
from warphash.storage.batch_order.hot_keys import Aggregator

DEVICES = one_of_each("emulated", "cuda")
DESIGNS = ("bucketed_cuckoo", "two_level_cuckoo", "quotient_cuckoo", "slab", "dynamic_cuckoo", "stadium")
COMBINED = {"add": np.add, "min": np.minimum, "max": np.maximum, "or": np.bitwise_or, "xor": np.bitwise_xor}


@pytest.fixture(autouse=True)
def aggregates(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Sample small batches, too; the sizes of what was left of each batch that was combined."""
    left: list[int] = []
    real = Aggregator.left_of

    def noted(self: Aggregator, *given: Any, **how: Any) -> Any:
        made = real(self, *given, **how)
        left.extend([] if made is None else [made.batch.n])
        return made

    monkeypatch.setattr(hot_keys, "FEWEST_AGGREGATED", 256)
    monkeypatch.setattr(sample, "_LEAST_REPEATED", 1 / 32)
    monkeypatch.setattr(Aggregator, "left_of", noted)
    yield left


def batches(n: int) -> dict[str, Array]:
    """Numbers of keys."""
    rng = np.random.default_rng(3)
    hot = np.where(rng.random(n) < 0.7, 0, rng.integers(0, n, n))
    half = rng.integers(0, n // 2, n)
    return {
        "again and again": np.where(rng.random(n) < 0.1, rng.integers(0, 60, n), np.arange(n)),
        "equal": np.zeros(n, np.int64),
        "one is hot": hot,
        "few": rng.integers(0, 40, n),
        "sorted": np.sort(rng.integers(0, n // 20, n)),
        "first hot, then different": np.concatenate([half[: n // 2] % 5, half[n // 2 :]]),
    }


def expected(ids: Array, values: Array, op: str, old: int, was: Array) -> Array:
    """The values of keys 0 to the last, of which the first ``old`` had values before; others are the first given."""
    keys = np.unique(ids)
    out = np.zeros(max(old, ids.max() + 1), values.dtype)
    out[:old] = was
    fresh = keys >= old
    start = {"min": values.max(), "max": values.min()}.get(op, values.dtype.type(0))
    out[keys[fresh]] = start
    COMBINED[op].at(out, ids, values)
    return out


@pytest.mark.parametrize("shape", ["equal", "one is hot", "few", "sorted", "first hot, then different"])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("device", DEVICES)
def test_every_value_counts_once(device: str, design: str, shape: str, aggregates: list[int]) -> None:
    n, old = (1511, 30) if device == "emulated" else (2_600_011, 3000)
    ids = batches(n)[shape]
    for key, value in [("u8", "i8"), ("u4", "u4"), *([("u4", "u8"), ("i8", "u4")] if design == "stadium" else [])]:
        table = HashMap(key, value, design=design, capacity=2 * n, device=device, seed=5)
        keys, values = (ids * 7).astype(key), np.random.default_rng(1).integers(0, 100, n).astype(value)
        was = np.arange(old).astype(value)
        table.insert((np.arange(old) * 7).astype(key), was)
        added = table.upsert(keys, values, "add")
        right = expected(ids, values, "add", old, was)
        there = np.union1d(np.arange(old), ids)
        np.testing.assert_array_equal(table[(there * 7).astype(key)], right[there])
        table.check()
        assert len(table) == len(there)
        assert added.sum() == len(there) - old and set(ids[added]) == set(there[there >= old])
    assert aggregates and max(aggregates) < n


@pytest.mark.parametrize(("dtype", "op"), [(d, op) for d in ("i4", "u8", "u1", "f4", "f8") for op in COMBINED])
@pytest.mark.parametrize("device", DEVICES)
def test_each_operation_of_each_type(device: str, dtype: str, op: str, aggregates: list[int]) -> None:
    if dtype[0] == "f" and op in ("or", "xor"):
        return
    n = 997 if device == "emulated" else 2_300_007
    ids = batches(n)["one is hot"]
    values = np.random.default_rng(2).integers(-90, 90, n).astype(dtype)
    table = HashMap("u4", dtype, capacity=2 * n, device=device)
    table.upsert(ids.astype("u4"), values, op)
    there = np.unique(ids)
    np.testing.assert_array_equal(table[there.astype("u4")], expected(ids, values, op, 0, values[:0])[there])
    assert aggregates


@pytest.mark.parametrize(("dtype", "op"), [("f4", "min"), ("f8", "max")])
@pytest.mark.parametrize("device", DEVICES)
def test_extremes_of_hot_keys_are_right_to_the_bit(device: str, dtype: str, op: str, aggregates: list[int]) -> None:
    rng, n = np.random.default_rng(2), 997 if device == "emulated" else 2_300_007
    ids = batches(n)["few"].astype("u4")
    values = rng.choice(numbers(dtype), n)
    some = ids % 3 == 0
    values[some] = rng.choice(np.array([0.0, -0.0], dtype), np.count_nonzero(some))
    table = HashMap("u4", dtype, capacity=2 * n, device=device)
    table.upsert(ids, values, op)
    right = winners(ids, values, op)
    assert [value.tobytes() for value in table[np.array([*right], "u4")]] == [*right.values()]
    assert aggregates


@pytest.mark.parametrize("shape", ["equal", "few", "again and again"])
@pytest.mark.parametrize("device", DEVICES)
def test_of_values_that_replace_each_other_one_stays(device: str, shape: str, aggregates: list[int]) -> None:
    n, old = (1511, 20) if device == "emulated" else (2_600_011, 2000)
    ids = batches(n)[shape]
    table = HashMap("u8", "u4", capacity=2 * n, device=device)
    table.insert(np.arange(old, dtype="u8"), np.full(old, n, "u4"))
    added = table.assign(ids.astype("u8"), np.arange(n, dtype="u4"))
    there = np.unique(ids)
    np.testing.assert_array_equal(ids[table[there.astype("u8")]], there)
    assert added.sum() == (there >= old).sum() and len(table) == len(np.union1d(there, np.arange(old)))
    assert aggregates


@pytest.fixture
def for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every batch for one with many more elements than the table has slots."""
    monkeypatch.setattr(word_rows, "_ELEMENTS_FOR_FEW", 0)


@pytest.mark.parametrize("shape", ["equal", "one is hot", "few", "sorted"])
@pytest.mark.parametrize("design", [*DESIGNS, "power_of_two", "linear_probing"])
@pytest.mark.parametrize("device", DEVICES)
def test_each_key_goes_in_and_out_once(
    device: str, design: str, shape: str, for_few: None, aggregates: list[int]
) -> None:
    n, old = (1511, 30) if device == "emulated" else (2_600_011, 3000)
    ids = batches(n)[shape]
    there = np.union1d(np.arange(old), ids)
    for key, value in [("u8", "u8"), ("u4", "u4"), ("u2", "u1"), ("i8", None)]:
        if key == "u2" and ids.max() >= 1 << 16:
            continue
        kind: Any = HashSet if value is None else lambda key, **how: HashMap(key, value, **how)  # noqa: B023
        keys, numbers = ids.astype(key), np.arange(n)
        values = [] if value is None else [numbers.astype(value)]
        table = kind(key, design=design, capacity=n, device=device, seed=5)
        table.insert(np.arange(old).astype(key), *[np.full(old, 200, value) for _ in values])
        aggregates.clear()
        added = table.insert(keys, *values)
        assert len(aggregates) == 1
        assert added.sum() == len(there) - old and set(ids[added]) == set(there[there >= old])
        table.check()
        assert len(table) == len(there) and table.contains(there.astype(key)).all()
        if values:
            given = {int(i): set(values[0][ids == i].tolist()) for i in there[there >= old][:20]}
            assert all(table[np.array([i], key)][0] in given[i] for i in given)
            assert (table[np.arange(old).astype(key)] == np.full(old, 200, value)).all()
        aggregates.clear()
        erased = table.erase(keys)
        assert len(aggregates) == 1 and max(aggregates) < n
        gone = np.unique(ids)
        assert erased.sum() == len(gone) and set(ids[erased]) == set(gone.tolist())
        assert len(table) == len(there) - len(gone) and not table.contains(keys).any()
        assert not table.erase(keys).any()
        table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_every_element_of_a_multimap_counts(device: str, for_few: None, aggregates: list[int]) -> None:
    keys = np.repeat(np.arange(4, dtype="u8"), 300)
    table = MultiMap("u8", "u8", design="slab", device=device)
    table.insert(keys, np.arange(1200, dtype="u8"))
    assert len(table) == 1200
    assert table.erase(keys[100:]).sum() == 1100 and len(table) == 100
    assert not aggregates


@pytest.mark.parametrize("device", DEVICES)
def test_the_verbs_that_hot_keys_would_hold_up(device: str, aggregates: list[int]) -> None:
    keys = np.arange(4000, dtype="u8") // 1000
    wide, small = (HashMap("u8", "u8", capacity=capacity, device=device) for capacity in (4000, 4))
    chosen = HashMap("u8", "u8", capacity=4000, device=device, design="power_of_two")
    wide.insert(keys, keys)
    wide.erase(keys)
    assert not aggregates  # elements that find their key, and change nothing, do not wait for each other
    chosen.insert(keys, keys)
    assert len(aggregates) == 1
    small.insert(keys, keys)
    small.erase(keys)
    assert len(aggregates) == 3 and not len(small)


@pytest.mark.parametrize("device", DEVICES)
def test_batches_that_nothing_would_help(device: str, aggregates: list[int]) -> None:
    keys = np.arange(2000, dtype="u8")
    table = HashMap("u8", "u8", capacity=4000, device=device)
    table.upsert(keys, keys, "add")
    table.insert(keys // 1000, keys)
    table.upsert(keys[:100] // 50, keys[:100], "add")
    assert not aggregates
    table.upsert(keys // 1000, keys, "add")
    assert aggregates == [pytest.approx(4, abs=4)] or max(aggregates) < 600


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_that_does_not_fit_names_its_keys(device: str, aggregates: list[int]) -> None:
    table = HashMap("u8", "u8", capacity=64, on_full="raise", device=device)
    table.insert(np.arange(10, dtype="u8"), np.arange(10, dtype="u8"))
    ids = np.concatenate([np.zeros(3000, np.int64), np.arange(1000, 3000)])
    with pytest.raises(TableFull) as caught:
        table.upsert(ids.astype("u8"), np.ones(len(ids), "u8"), "add")
    assert aggregates and len(table) == 10 and table[0] == 0
    assert set(caught.value.keys) <= set(range(1000, 3000)) and len(caught.value.keys)


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize("family", ["buckets", "subtables", "tickets"])
def test_faults_add_all_values_of_a_key_or_none(family: str, aggregates: list[int]) -> None:
    scenario = Repeating(FAMILIES[family], VERBS["upsert"], "emulated")
    faults = [*all_faults(scenario, every=61)]
    check_harmless(faults)
    assert aggregates and len(faults) > 10


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize("verb", ["insert", "erase"])
@pytest.mark.parametrize("family", ["buckets", "subtables", "tickets", "lists", "quotients"])
def test_faults_of_a_batch_for_few_keys(family: str, verb: str, for_few: None, aggregates: list[int]) -> None:
    scenario = Repeating(FAMILIES[family], VERBS[verb], "emulated")
    faults = [*all_faults(scenario, every=61)]
    check_harmless(faults)
    assert aggregates and len(faults) > 10


def is_wrong(engine: EmulatedEngine, seed: int, shape: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the values of some key do not add up, in one schedule; or a key has an element that is not its own."""
    monkeypatch.setattr(emulated, "schedule_seed", seed)
    monkeypatch.setattr(sample, "_LEAST_REPEATED", 0)
    ids = batches(20_001)[shape].astype("u4")
    values = np.arange(len(ids)).astype("u8")
    store: Any = SimpleNamespace(engine=engine, seed=seed, spec=SimpleNamespace(word_bytes=4, value_word_bytes=8))
    held, flags = [engine.from_host(array) for array in (ids, values)], engine.allocate(len(ids))
    batch = Batch(held[0].ptr, held[1].ptr, len(ids), Op.ADD, 64 << 8, flags.ptr)
    try:
        left = Aggregator().left_of(store, batch)
    except EmulationError:
        return True
    assert left is not None
    columns, n = ((left.batch.keys, "u4"), (left.batch.values, "u8"), (left.elements, "u4")), left.batch.n
    keys, sums, elements = (engine.to_host(at, dtype, n) for at, dtype in columns)
    right, made = np.zeros((2, ids.max() + 1), np.uint64)
    np.add.at(right, ids, values)
    np.add.at(made, keys, sums)
    return bool((right != made).any() or (ids[elements] != keys).any() or len(np.unique(elements)) < n)


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestSchedules:
    @pytest.mark.parametrize("shape", ["equal", "sorted", "again and again"])
    def test_all_of_many(self, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine()
        assert not any(is_wrong(engine, seed, shape, monkeypatch) for seed in range(10))

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("    block_barrier();  // before entries are taken again\n", ""),
            (
                "if (compare_exchange_word(shared.owners + at, kNowhere, row.element(k)) != kNowhere) continue;",
                "fetch_add(&shared.listed, 0u); shared.owners[at] = row.element(k);",
            ),
            ("if (lane()) row.open &=", "if (lane() > 1) row.open &="),
        ],
        ids=["taken too early", "taken by two", "summed twice"],
    )
    def test_a_planted_bug_shows(self, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine(planted_among("struct Aggregate ", right, wrong))
        shapes = ("equal", "sorted", "again and again")
        assert any(is_wrong(engine, seed, shape, monkeypatch) for seed in range(1, 30) for shape in shapes)
