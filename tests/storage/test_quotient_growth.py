"""A quotient table that grows for a large batch writes its new lines once: with old pairs and with the batch."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.faults import at_each_allocation, at_each_line
from support.hashing import permuted
from support.inside import storage_of
from support.passes import in_passes
from support.planting import planted_among
from support.quotients import SLOTS, add, array_of, entries, keys_with, launches, made, value_of
from support.types import Array
from warphash import HashMap
from warphash.runtime.abi import Op, kind_of
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine, EmulationError
from warphash.storage import estimate
from warphash.storage.batch import Batch
from warphash.storage.quotient.array import QuotientArray
from warphash.storage.quotient.route import LAUNCH_ELEMENTS, MOST_ELEMENTS, Facts, pass_plan_for, plan_to_grow
from warphash.storage.scratch import Outcome

DEVICES = one_of_each("emulated", "cuda")
TYPES = [*SLOTS]
HELD = 400
"""Keys of a table before it grows."""


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def different_keys_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a table grow for the different keys of a small batch, too."""
    monkeypatch.setattr(estimate, "FEWEST_SKETCHED", 0)


def keys_of(dtype: str, n: int, seed: int = 7) -> Array:
    return np.unique(np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, n + 99, dtype, endpoint=True))[:n]


def held_table(key: str, value: str | None, device: str, keys: Array, **options: Any) -> Any:
    """A table that is full of these keys, to the last one that it takes without growing."""
    slots = int(len(keys) / (0.9 * 0.85)) + 1
    table = made(key, value, int(0.7 * slots) + 1, device, load_factor=0.7, **options)
    add(table, keys)
    assert array_of(table).slots < 1.3 * slots
    return table


def grown(table: Any, call: Any) -> tuple[Any, list[str]]:
    """The answer of a call, and the kernels that it launched: the table has grown, and kept its constants."""
    before = array_of(table)
    with launches(table) as launched:
        answer = call()
    assert array_of(table).buckets > before.buckets and array_of(table).seed == before.seed
    return answer, [entry for entry in entries(launched) if entry != "find"]  # a sample of the batch


def check_pairs(table: Any, keys: Array, values: Array | None) -> None:
    """The table has these keys and no others, with these values."""
    assert len(table) == len(keys) and np.array_equal(np.sort(table.keys()), np.sort(keys))
    found = table.find(keys)[0] if isinstance(table, HashMap) else None
    assert table.contains(keys).all() and (values is None or (found == values).all())
    absent = np.setdiff1d(keys_of(str(keys.dtype), 500, seed=99), keys)
    assert not table.contains(absent).any()
    table.check()


@pytest.mark.parametrize(("key", "value"), TYPES)
@pytest.mark.parametrize("range_buckets", [32, 64])
def test_new_keys_come_in_with_the_old_pairs(device: str, key: str, value: str | None, range_buckets: int) -> None:
    keys = keys_of(key, 6 * HELD)
    np.random.default_rng(1).shuffle(keys)
    with in_passes(range_buckets):
        table = held_table(key, value, device, keys[:HELD])
        for first, end in ((HELD, 2 * HELD), (2 * HELD, 6 * HELD)):
            added, launched = grown(table, lambda part=keys[first:end]: add(table, part))
            assert launched == ["take_over_with"] and added.all()
            check_pairs(table, keys[:end], value_of(keys[:end], value) if value else None)


@pytest.mark.parametrize(("key", "value"), TYPES)
@pytest.mark.parametrize("scatter", [False, True])
@pytest.mark.parametrize("op", ["insert", "assign"])
def test_known_and_repeated_keys_of_the_batch(device: str, key: str, value: str | None, scatter: bool, op: str) -> None:
    keys, rng = keys_of(key, 3 * HELD), np.random.default_rng(2)
    rng.shuffle(keys)
    batch = rng.permutation(np.concatenate([keys[HELD // 2 :], keys[HELD:], keys[: HELD // 4]]))
    with in_passes(24, scatter=scatter):
        table = held_table(key, value, device, keys[:HELD])
        numbers = np.arange(len(batch)).astype(value or key)
        if value:
            verb = table.insert if op == "insert" else table.assign
            added, launched = grown(table, lambda: verb(batch, numbers))
        else:
            added, launched = grown(table, lambda: table.insert(batch))
        assert launched == ["take_over_with"]
        assert np.array_equal(np.sort(batch[added]), np.sort(keys[HELD:]))
        check_pairs(table, keys, None)
        if value and op == "insert":
            assert (table.find(keys[:HELD])[0] == value_of(keys[:HELD], value)).all()
            assert (table.find(batch[added])[0] == numbers[added]).all()
        elif value:
            there = np.unique(batch)
            assert (batch[table.find(there)[0].astype(int)] == there).all()
            rest = np.setdiff1d(keys, there)
            assert (table.find(rest)[0] == value_of(rest, value)).all()


def test_a_batch_without_flags(device: str) -> None:
    keys = keys_of("u4", 3 * HELD)
    with in_passes(16):
        table = held_table("u4", "u4", device, keys[:HELD])
        batch = np.concatenate([keys[HELD // 2 :], keys[HELD:]])
        held = [array_of(table).engine.from_host(column) for column in (batch, ~batch)]
        given = Batch(held[0].ptr, held[1].ptr, len(batch), Op.KEEP, kind_of(batch.dtype))
        _, launched = grown(table, lambda: storage_of(table).update(given))
        assert launched == ["take_over_with"]
        check_pairs(table, keys, ~keys)


def test_keys_that_are_wrongly_said_to_differ(device: str) -> None:
    keys = keys_of("u4", 3 * HELD)
    with in_passes(16):
        table = held_table("u4", "u4", device, keys[:HELD])
        batch = np.concatenate([keys[HELD // 2 :], keys[HELD:]])
        added, launched = grown(table, lambda: add(table, batch, assume_unique=True))
        assert launched == ["take_over_with"] and added.sum() == 2 * HELD
        check_pairs(table, keys, ~keys)


@pytest.mark.parametrize("hot", ["new", "there"])
@pytest.mark.parametrize(("key", "value"), [("u4", "u4"), ("u8", None)])
def test_a_range_with_a_hot_key(device: str, key: str, value: str | None, hot: str) -> None:
    keys, rng = keys_of(key, 3 * HELD), np.random.default_rng(3)
    rng.shuffle(keys)
    many = np.full(60_000, keys[HELD if hot == "new" else 0])
    batch = rng.permutation(np.concatenate([keys[HELD:], many]))
    with in_passes(16):
        table = held_table(key, value, device, keys[:HELD])
        added, launched = grown(table, lambda: add(table, batch))
        assert launched == ["take_over_with", "apply_some", "apply_crowds", "apply_some"]
        assert np.array_equal(np.sort(batch[added]), np.sort(keys[HELD:]))
        check_pairs(table, keys, value_of(keys, value) if value else None)


def test_pairs_that_are_guests_stay(device: str) -> None:
    """More keys for a line than it has slots, before and after."""
    with in_passes(64):
        table = held_table("u4", "u4", device, keys_of("u4", HELD))
        table.clear()
        buckets = array_of(table).buckets
        homes = np.arange(0, buckets, 16, dtype=np.uint64)
        hashes = [(homes * (1 << 32) // buckets + 5 + k).astype(np.uint32) for k in range(18)]
        keys = np.unique(keys_with(table, np.concatenate(hashes)))
        first, rest = keys[::2], np.union1d(keys[1::2], keys_of("u4", 3 * HELD, seed=11))
        rest = np.setdiff1d(rest, first)
        add(table, first)
        _, launched = grown(table, lambda: add(table, rest))
        assert launched == ["take_over_with"]
        keys = np.concatenate([first, rest])
        check_pairs(table, keys, ~keys)


@pytest.mark.parametrize("fits", [True, False])
def test_a_first_batch_with_flags_needs_no_cleared_lines(device: str, fits: bool) -> None:
    keys = keys_of("u4", 20_000)
    with in_passes(64):  # the lines are too many to be set to 0 with the counters
        table = made("u4", "u4", 30_000 if fits else 500, device, load_factor=0.7)
        engine, filled = array_of(table).engine, list[int]()
        fill = engine.fill

        def noted(target: int, byte: int, nbytes: int, stream: Any = None) -> None:
            filled.append(nbytes)
            fill(target, byte, nbytes, stream)

        with mock.patch.object(engine, "fill", noted):
            assert add(table, keys).all()
        assert 64 * array_of(table).buckets not in filled
        check_pairs(table, keys, ~keys)


def narrow(table: Any, keys: Array, parts: int) -> Array:
    """Keys whose hash values are in the first of so many parts."""
    return keys[permuted(array_of(table), keys) < (1 << 32) // parts]


def test_a_batch_that_its_ranges_have_no_room_for_goes_another_way(device: str) -> None:
    with in_passes(16):
        held = keys_of("u4", HELD)
        table = held_table("u4", "u4", device, held)
        crowd = np.setdiff1d(narrow(table, keys_of("u4", 300_000, seed=5), 40), held)
        with mock.patch.object(
            QuotientArray, "grown_with", autospec=True, side_effect=QuotientArray.grown_with
        ) as made:
            assert add(table, crowd).all()
        assert made.call_count == 1
        keys = np.concatenate([held, crowd])
        check_pairs(table, keys, ~keys)


def test_an_outcome_that_is_not_complete_leaves_the_table(device: str) -> None:
    keys, go = keys_of("u4", 3 * HELD), QuotientArray._take_over_with

    def failing(*given: Any) -> Outcome:
        return go(*given)._replace(unplaced=1)

    with in_passes(16):
        table = held_table("u4", "u4", device, keys[:HELD])
        with mock.patch.object(QuotientArray, "_take_over_with", failing):
            added, launched = grown(table, lambda: add(table, keys[HELD:]))
        assert launched[:2] == ["take_over_with", "take_over"] and added.all()
        check_pairs(table, keys, ~keys)


def test_what_does_not_grow_so(device: str) -> None:
    """Values that are added, few elements, and lines that keep other parts of hashes."""
    keys = keys_of("u4", 30_000)
    with in_passes(16):
        table = held_table("u4", "u4", device, keys[:HELD])
        _, launched = grown(table, lambda: table.upsert(keys[: 2 * HELD], ~keys[: 2 * HELD], "add"))
        assert launched[0] == "take_over"
        table = held_table("u4", "u4", device, keys[:HELD])
        with launches(table) as launched_by:
            assert add(table, keys[HELD:]).all()  # other lines have another program
        assert array_of(table).spec.slots_per_bucket > 7 and "take_over_with" not in entries(launched_by)
        check_pairs(table, keys, ~keys)
    table = held_table("u4", "u4", device, keys[:HELD])
    _, launched = grown(table, lambda: add(table, keys[HELD : 2 * HELD]))  # too few for passes
    assert launched[0] == "take_over"


def test_the_plan_of_a_batch_that_comes_with_the_pairs() -> None:
    facts, keep = Facts(True, 11_500_000, 22_461, 4, 8), Op.KEEP
    assert plan_to_grow(facts, 10_000_000, keep) == pass_plan_for(facts, 10_000_000) is not None
    assert plan_to_grow(facts, 1_000_000, keep) is None  # fewer than 64 for each range
    assert plan_to_grow(facts, MOST_ELEMENTS, keep) is not None and plan_to_grow(facts, MOST_ELEMENTS + 1, keep) is None
    assert plan_to_grow(facts._replace(on_gpu=False), LAUNCH_ELEMENTS, keep) is None


def test_a_batch_that_can_be_left_comes_with_the_pairs_if_it_is_large() -> None:
    facts = Facts(True, 4_000_000, 7813, 4, 8, puts_alone=True)
    assert plan_to_grow(facts, 2_000_000, Op.KEEP) is not None and plan_to_grow(facts, 1_999_999, Op.KEEP) is None
    assert plan_to_grow(facts, 1_999_999, Op.ADD) is not None  # it has no lanes
    assert plan_to_grow(facts._replace(puts_alone=False), 1_999_999, Op.KEEP) is not None


@pytest.mark.parametrize("once", [True, False])
def test_refused_memory_leaves_the_table_whole(device: str, once: bool) -> None:
    keys = keys_of("u4", 3 * HELD)
    with in_passes(64):
        ways, faults = set[str](), 0
        for table, said, refused in at_each_allocation(
            lambda: held_table("u4", "u4", device, keys[:HELD]), lambda t: add(t, keys[HELD:]), once=once, device=device
        ):
            ways.add("refused" if refused else "done")
            faults += refused
            held = keys[:HELD] if said else keys
            check_pairs(table, held, ~held)
        assert faults > 3 and "done" in ways


def test_an_interrupt_leaves_the_table_whole(device: str) -> None:
    keys, half = keys_of("u4", 3 * HELD), 0
    with in_passes(64):
        for table, place, done in at_each_line(
            lambda: held_table("u4", "u4", device, keys[:HELD]), lambda t: add(t, keys[HELD:]), every=17
        ):
            assert len(table) in (HELD, 3 * HELD) and (not done or len(table) == 3 * HELD)
            held = keys[: len(table)]
            check_pairs(table, held, ~held)
            half += bool(place) and "quotient" in place
        assert half > 5


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestSchedules:
    def is_wrong(self, engine: EmulatedEngine, seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
        """Whether a key, a value or a flag was wrong in one schedule."""
        monkeypatch.setattr(emulated, "schedule_seed", seed)
        monkeypatch.setattr(emulated, "engine", lambda: engine)
        rng = np.random.default_rng(seed)
        with in_passes(8):
            table = made("u4", "u4", 500, "emulated", load_factor=0.7)
            spots = rng.integers(0, 1 << 32, 20, np.uint32)
            crowd = keys_with(table, np.unique(spots[:, None] + np.arange(12, dtype=np.uint32)))  # 12 have one home
            keys = np.append(crowd, np.setdiff1d(keys_of("u4", 2500, seed), crowd))
            repeated = np.full(5000, keys[550])
            batch = rng.permutation(np.concatenate([keys[250:], keys[500:], crowd[:100], repeated]))
            add(table, keys[:500])
            try:
                added, launched = grown(table, lambda: add(table, batch))
                assert launched[0] == "take_over_with"
                assert np.array_equal(np.sort(batch[added]), np.sort(keys[500:]))
                check_pairs(table, keys, ~keys)
            except (AssertionError, EmulationError, IndexError):
                return True
        return False

    def test_all_of_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine()
        assert not any(self.is_wrong(engine, seed, monkeypatch) for seed in range(12))

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("if constexpr (kWithBatch) Base::set_bit(hashes[j]);", ""),
            ("const bool is_pair = first < behind;", "const bool is_pair = false;"),
            ("*counter_of(Base::t, Base::range) = elements;", ""),
            ("const u32 behind = (n_pairs + threads - 1) / threads * threads;", "const u32 behind = n_pairs;"),
            ("if (!crowded) Base::put_first_keys();\n    block_barrier();", "if (!crowded) Base::put_first_keys();"),
        ],
        ids=[
            "a pair sets no bit",
            "pairs have flags",
            "a crowded range has no elements",
            "a round has pairs and elements",
            "elements are settled before they are listed",
        ],
    )
    def test_a_planted_bug_shows(self, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine(planted_among("struct TakeOverLines", right, wrong))
        assert any(self.is_wrong(engine, seed, monkeypatch) for seed in range(12))
