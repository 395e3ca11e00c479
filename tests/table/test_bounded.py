"""Bounded tables: who leaves, what is answered, and what is kept by copies, pickles and files."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import warphash
from support.cases import ONE_OF_EACH_FAMILY, Case, design_names, is_map, only, rare
from support.engines import one_of_each
from support.inside import storage_of
from support.refusals import held_memory
from support.types import Array
from warphash import DtypeError, HashMap, HashSet, MultiMap, ParameterError, UnsupportedVerb
from warphash.designs import registry
from warphash.runtime.devices import engine_for
from warphash.storage.bounded import bounded_rows
from warphash.storage.bounded.bound import EVICT
from warphash.storage.strings import held_strings, string_table

engines = pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
policies = pytest.mark.parametrize("evict", EVICT)
DESIGNS = {name: registry.get(name) for name in design_names()}
ERASING = [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in ONE_OF_EACH_FAMILY))
    for name, d in DESIGNS.items()
    if "erase" in d.capabilities and "device" in d.memories
]
DAILY_TYPES = {("u4", "u4"), ("u8", "V24"), ("V24", None), ("str", "u8")}
TYPES = [
    pytest.param(*types, marks=[pytest.mark.slow] * (types not in DAILY_TYPES))
    for types in (
        *(("u4", "u4"), ("u8", "u8"), ("V24", "u8"), ("u8", "V24"), ("u8", None), ("V24", None)),
        *(("str", "u8"), ("str", "V24"), ("str", None)),
    )
]
where_keys_live = only(lambda device, key: device == "cpu" or key != "str")


class Bounded:
    """A bounded table whose keys and values are made of numbers."""

    def __init__(self, key: str = "u8", value: str | None = "u8", **options: Any) -> None:
        self.key, self.value = key, value
        options = {"max_size": 100, "device": "cpu", "seed": 3, **options}
        self.scored = options.get("evict") == "score"
        self.table: Any = HashSet(key, **options) if value is None else HashMap(key, value, **options)

    def keys(self, ids: Any) -> Array:
        return rows(ids, self.key)

    def pairs(self, ids: Any) -> tuple[Array, ...]:
        return (self.keys(ids),) if self.value is None else (self.keys(ids), rows(ids, self.value))

    def insert(self, ids: Any, scores: Any = None) -> Array:
        options = {"scores": np.asarray(ids if scores is None else scores, "f8")} if self.scored else {}
        added: Array = self.table.insert(*self.pairs(ids), **options)
        return added

    def ids(self, table: Any = None) -> list[int]:
        """The numbers of all keys, ascending. Each key has its own value."""
        table = self.table if table is None else table
        table.check()
        if self.value is None:
            return sorted(numbers(table.keys()))
        keys, values = map(numbers, table.to_arrays())
        assert keys == values and len(table) == len(keys)
        return sorted(keys)


def rows(ids: Any, dtype: str) -> Array:
    words = np.asarray(ids, "u8")
    if dtype == "str":
        return np.array([f"{'key ' * (number % 20)}{number}" for number in words.tolist()], object)
    return np.repeat(words, 3).view(dtype) if dtype == "V24" else words.astype(dtype)


def numbers(held: Array) -> list[int]:
    if held.dtype.kind in "OT":
        return [int(key.rpartition(" ")[2]) for key in held]
    words = np.ascontiguousarray(held).view("u8").reshape(-1, 3)[:, 0] if held.dtype.kind == "V" else held
    return [int(number) for number in words]


# ---- who leaves
@engines
@pytest.mark.parametrize("design", ERASING)
@pytest.mark.parametrize(("key", "value"), TYPES)
@policies
@where_keys_live
def test_no_more_keys_than_the_bound_stay(device: str, design: str, key: str, value: str | None, evict: str) -> None:
    made = Bounded(key, value, design=design, device=device, evict=evict)
    for at in range(0, 600, 60):
        ids = np.arange(at, at + 60)
        assert made.insert(ids).all()
        held = made.ids()
        assert len(held) == min(at + 60, 100)
        if evict in ("lru", "fifo", "score"):
            assert set(held) >= set(range(max(0, at), at + 60))
        assert made.table.stats().evicted == at + 60 - len(held)
    assert made.table.stats().max_size == 100


ONE_OF_EACH = pytest.mark.parametrize("design", ONE_OF_EACH_FAMILY)


@engines
@ONE_OF_EACH
def test_fifo_keys_leave_in_the_order_in_which_they_came(device: str, design: str) -> None:
    made = Bounded(design=design, device=device, evict="fifo")
    for at in range(0, 100, 20):
        made.insert(np.arange(at, at + 20))
    made.table.find(made.keys(np.arange(20)))
    made.table.assign(*made.pairs(np.arange(20)))
    assert not made.insert(np.arange(20)).any()  # no use makes a key younger
    made.insert(np.arange(500, 530))
    held = made.ids()
    assert held[10:] == [*range(40, 100), *range(500, 530)] and set(held[:10]) < set(range(20, 40))


USES: dict[str, Callable[[Bounded, Array], Any]] = {
    "find": lambda made, ids: made.table.find(made.keys(ids)),
    "contains": lambda made, ids: made.table.contains(made.keys(ids)),
    "get": lambda made, ids: made.table[made.keys(ids)],
    "insert": lambda made, ids: made.table.insert(*made.pairs(ids)),
    "assign": lambda made, ids: made.table.assign(*made.pairs(ids)),
    "upsert": lambda made, ids: made.table.upsert(*made.pairs(ids), "max"),
    "upsert last": lambda made, ids: made.table.upsert(*made.pairs(ids), "last"),
    "find_or_insert": lambda made, ids: made.table.find_or_insert(*made.pairs(ids)),
    "in": lambda made, ids: [key in made.table for key in made.keys(ids).tolist()],
}


@engines
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("key", ["u8", "u4", "str"])
@where_keys_live
def test_lru_keys_stay_that_were_used(device: str, use: str, key: str) -> None:
    made = Bounded(key, device=device)  # "lru" is the default
    for at in range(0, 100, 10):
        made.insert(np.arange(at, at + 10))
    USES[use](made, np.arange(5, 25))
    made.insert(np.arange(500, 580))
    assert made.ids() == [*range(5, 25), *range(500, 580)]


@engines
@pytest.mark.parametrize("look", ["check", "keys", "len", "probe_counts", "stats", "copy", "erase absent"])
def test_what_is_no_use_of_a_key_changes_no_rank(device: str, look: str) -> None:
    made = Bounded(device=device)
    made.insert(np.arange(50))
    made.insert(np.arange(50, 100))
    table = made.table
    calls: dict[str, Callable[[], Any]] = {
        "check": table.check,
        "keys": table.keys,
        "len": table.__len__,
        "probe_counts": lambda: table.probe_counts(made.keys(np.arange(50))),
        "stats": table.stats,
        "copy": table.copy,
        "erase absent": lambda: table.erase(made.keys(np.arange(900, 950))),
    }
    calls[look]()
    made.insert(np.arange(500, 550))
    assert made.ids() == [*range(50, 100), *range(500, 550)]


@engines
@ONE_OF_EACH
@pytest.mark.parametrize("key", ["u8", "str"])
@where_keys_live
def test_lfu_frequent_keys_stay_and_keep_their_history(
    device: str, design: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strings, too, although those that left are forgotten, and others have their numbers."""
    monkeypatch.setattr(held_strings, "FEWEST_TO_COLLECT", 0)
    made = Bounded(key, design=design, device=device, evict="lfu")
    for _ in range(12):
        made.insert(np.arange(60))
    for at in range(1000, 3000, 50):  # a scan of keys that come once
        made.insert(np.arange(at, at + 50))
    assert set(range(60)) <= set(made.ids())
    for _ in range(30):  # other keys become more frequent
        made.insert(np.arange(100, 200))
    assert made.ids() == [*range(100, 200)]
    for _ in range(25):
        made.insert(np.arange(40))  # these have left, and their counts go on: 12 + 25 are more than 30
    assert set(range(40)) <= set(made.ids())


@engines
def test_lfu_counts_finds_of_keys_that_are_there(device: str) -> None:
    made = Bounded(device=device, evict="lfu")
    made.insert(np.arange(100))
    for _ in range(3):
        made.table.find(made.keys(np.arange(30)))
        made.table.contains(made.keys(np.arange(700, 800)))  # absent: nobody asked for these to be kept
    made.insert(np.arange(700, 800))
    assert set(range(30)) <= set(made.ids())
    twice = Bounded(device=device, evict="lfu")
    twice.insert(np.arange(100))
    twice.table.find(twice.keys(np.arange(40)))
    twice.insert(np.arange(700, 900))
    assert set(range(40)) <= set(twice.ids())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lfu_keeps_nine_tenths_of_what_an_oracle_would_keep(seed: int) -> None:
    """Zipf 1.0 over ten times more keys than the bound, 400 accesses for each key of the bound.

    The oracle keeps the keys that were most frequent in the whole stream. Of keys that are as frequent as the last of
    these, the oracle may keep any.
    """
    random, most, keys = np.random.default_rng(seed), 1000, 10_000
    chances = 1 / np.arange(1, keys + 1)
    stream = random.choice(keys, 400 * most, p=chances / chances.sum())
    names = random.permutation(1 << 20)[:keys].astype("u8")
    table = HashSet("u8", max_size=most, evict="lfu", device="cpu", seed=seed)
    for part in np.split(stream, 400):
        table.insert(names[part])
    times = np.bincount(stream, minlength=keys)
    kept = table.contains(names)
    assert len(table) == most
    assert np.count_nonzero(kept & (times >= np.sort(times)[-most])) >= 0.9 * most
    assert times[kept].sum() >= 0.98 * np.sort(times)[-most:].sum()


@engines
@ONE_OF_EACH
@pytest.mark.parametrize("score", ["u8", "f4", *rare("i8", "f8", "i2")])
def test_keys_of_the_least_scores_leave(device: str, design: str, score: str) -> None:
    made = Bounded(design=design, device=device, evict="score", score=score)
    random, model = np.random.default_rng(1), dict[int, float]()
    least = 0 if score == "u8" else -30_000
    scores = dict(enumerate(random.permutation(np.arange(least, least + 1000))))
    for at in range(0, 400, 40):
        ids = np.arange(at, at + 40)
        given = np.array([scores[i] for i in ids], score)
        made.table.insert(*made.pairs(ids), scores=given)
        model |= {i: scores[i] for i in range(at, at + 40)}
        model = dict(sorted(model.items(), key=lambda item: -item[1])[:100])
        assert made.ids() == sorted(model)


@engines
def test_assign_changes_a_score_and_insert_does_not(device: str) -> None:
    made = Bounded(device=device, evict="score")
    made.insert(np.arange(100))
    made.table.insert(*made.pairs(np.arange(10)), scores=np.full(10, 1e9))
    made.table.assign(*made.pairs(np.arange(10, 20)), scores=np.full(10, 1e9))
    made.table.upsert(*made.pairs(np.arange(20, 30)), "max", scores=np.full(10, np.inf))
    made.table.upsert(*made.pairs(np.arange(30, 40)), "first", scores=np.full(10, 1e9))
    made.table.upsert(*made.pairs(np.arange(40, 50)), "last", scores=np.full(10, 1e9))
    made.table.find_or_insert(*made.pairs(np.arange(99, 101)), scores=np.array([np.nan, np.nan]))
    assert made.ids() == [*range(100)]  # the key whose score was NaN has left at once
    made.table.evict(30)
    assert made.ids() == [*range(10, 30), *range(40, 50), *range(60, 100)]


@engines
@ONE_OF_EACH
def test_random_keys_leave(device: str, design: str) -> None:
    made = Bounded(design=design, device=device, evict="random", max_size=200)
    made.insert(np.arange(200))
    made.insert(np.arange(200, 400))
    held = np.array(made.ids())
    assert len(held) == 200 and 60 < np.count_nonzero(held < 200) < 140
    again = Bounded(design=design, device=device, evict="random", max_size=200)
    again.insert(np.arange(200))
    again.insert(np.arange(200, 400))
    assert again.ids() == held.tolist(), "one seed, one choice"


# ---- long streams and long batches
@pytest.mark.parametrize("design", ERASING)
@policies
def test_a_stream_of_many_more_keys_runs_in_bounded_memory(design: str, evict: str) -> None:
    engine = engine_for("cpu")
    with held_memory(engine) as held:
        made = Bounded(design=design, evict=evict, max_size=2000)
        random, peaks, seen = np.random.default_rng(4), [], 0
        for turn in range(60):
            ids = np.concatenate([np.arange(seen, seen + 500), random.integers(0, seen + 500, 500)])
            made.insert(ids)
            seen += 500
            if turn in (29, 59):
                peaks.append(held.peak)
                assert len(made.ids()) == 2000
        assert peaks[1] <= 1.1 * peaks[0], "30,000 different keys later, no more memory was ever held"


@policies
def test_a_stream_of_strings_runs_in_bounded_memory(evict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that left are forgotten, also inside of a batch far longer than the bound."""
    monkeypatch.setattr(held_strings, "FEWEST_TO_COLLECT", 64)
    monkeypatch.setattr(string_table, "PIECE", 64)
    monkeypatch.setattr(bounded_rows, "LEAST_PIECE", 16)
    made, most = Bounded("str", evict=evict, max_size=200), 0
    keep = string_table.StringTable.intern

    def noted(table: Any, *rest: Any) -> None:
        nonlocal most
        keep(table, *rest)
        most = max(most, table.used)

    monkeypatch.setattr(string_table.StringTable, "intern", noted)
    for at in range(0, 6000, 1500):
        added = made.insert(np.arange(at, at + 1500))
        assert added.all() and len(made.ids()) == 200
    assert most <= 2 * 250 + 64 + 50


def test_nulls_that_are_dropped_have_no_scores() -> None:
    table = HashMap("str", "i8", max_size=3, evict="score", nulls="drop")
    table.insert(["a", None, "b", "c", None, "d"], np.arange(6), scores=np.array([5.0, 99, 1, 7, 0, 6]))
    assert dict(table.items()) == {"a": 0, "c": 3, "d": 5}


@engines
@policies
def test_a_batch_far_longer_than_the_bound_goes_in_pieces(device: str, evict: str) -> None:
    with mock.patch.object(bounded_rows, "LEAST_PIECE", 16):
        made = Bounded(device=device, evict=evict)
        most = [0]
        inner = type(storage_of(made.table).inner)
        name = "scan_numbers" if hasattr(inner, "scan_numbers") else "scan"
        scan = getattr(inner, name)

        def noted(storage: Any, room: int, *rest: Any, **options: Any) -> int:
            most[0] = max(most[0], room)
            return int(scan(storage, room, *rest, **options))

        with mock.patch.object(inner, name, noted):
            added = made.insert(np.arange(1000))
        assert added.all() and most[0] == 100 + 25
        held = made.ids()
        assert len(held) == 100
        if evict in ("lru", "fifo", "score"):
            assert held == [*range(900, 1000)]
        values, found = made.table.find(made.keys(np.arange(1000)))
        assert (values[found] == np.flatnonzero(found)).all() and found.sum() == 100


def test_a_key_may_be_added_twice_in_one_long_batch() -> None:
    with mock.patch.object(bounded_rows, "LEAST_PIECE", 16):
        made = Bounded(evict="fifo", max_size=40)
        added = made.insert(np.concatenate([np.arange(10), np.arange(100, 200), np.arange(10)]))
        assert added.all() and made.ids() == [*range(10), *range(170, 200)]


def test_a_table_that_may_not_grow_takes_pieces_that_fit() -> None:
    made = Bounded(evict="fifo", on_full="raise", max_size=1000)
    made.insert(np.arange(100_000))
    assert len(made.ids()) == 1000 and made.table.stats().rebuilds <= 1


def test_held_values_and_answers_of_a_long_batch() -> None:
    with mock.patch.object(bounded_rows, "LEAST_PIECE", 16):
        made = Bounded(evict="fifo")
        made.insert(np.arange(50))
        held, added = made.table.find_or_insert(made.keys(np.arange(25, 325)), rows(np.arange(1025, 1325), "u8"))
        assert (added == (np.arange(25, 325) >= 50)).all()
        assert (held == np.where(added, np.arange(1025, 1325), np.arange(25, 325))).all()


def test_a_table_larger_than_its_bound_after_a_refusal_is_within_it_after_the_next_update() -> None:
    made = Bounded(evict="fifo")
    made.insert(np.arange(100))
    with mock.patch.object(type(storage_of(made.table)), "least", side_effect=MemoryError("none left")):
        made.insert(np.arange(100, 150))  # the batch is in; nothing could leave
    assert made.ids() == [*range(150)]
    twin = made.table.copy()
    with (
        mock.patch.object(type(storage_of(made.table)), "least", side_effect=MemoryError("none left")),
        pytest.raises(MemoryError),
    ):
        made.insert(np.arange(150, 160))
    assert made.ids() == [*range(150)]
    made.insert(np.arange(150, 160))
    assert len(made.ids()) == 100
    assert len(made.ids(pickle.loads(pickle.dumps(twin)))) == 100


# ---- evict
@engines
@ONE_OF_EACH
@policies
@pytest.mark.parametrize(("key", "value"), [("u8", "u8"), ("V24", "u8"), ("u4", None), ("str", "u8")])
@where_keys_live
def test_evict_returns_exactly_what_left(device: str, design: str, evict: str, key: str, value: str | None) -> None:
    made = Bounded(key, value, design=design, device=device, evict=evict)
    for at in range(0, 90, 30):
        made.insert(np.arange(at, at + 30))
    before = set(made.ids())
    for n in (0, 1, 40, 1000):
        answer = made.table.evict(n)
        keys = numbers(answer if value is None else answer[0])
        assert value is None or keys == numbers(answer[1])
        assert len(keys) == len(set(keys)) == min(n, len(before)) and set(keys) <= before
        before -= set(keys)
        assert set(made.ids()) == before
        if evict in ("lru", "fifo") and n == 1:
            assert set(keys) < set(range(30))
        if evict == "score" and n == 40:
            assert sorted(keys) == [*range(1, 41)]
    assert made.table.stats().evicted == 90
    made.insert(np.arange(20))
    assert made.ids() == [*range(20)]


def test_evict_needs_a_bound_and_a_number() -> None:
    with pytest.raises(UnsupportedVerb, match="has no bound: make it with max_size="):
        HashMap("u8", "u8", device="cpu").evict(5)
    with pytest.raises(UnsupportedVerb, match="has no bound"):
        HashSet("u8", device="cpu").evict(5)
    for wrong in (-1, 1.5, "5", True):
        with pytest.raises(ParameterError):
            Bounded().table.evict(wrong)


# ---- erase_if
COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


@only(lambda case: is_map(case) and not case.parameters)
def test_erase_if_of_values_agrees_with_numpy(case: Case, rng: np.random.Generator) -> None:
    keys, values = case.keys(case.n, rng), case.values(case.n, rng)
    assert values is not None
    if values.ndim > 1 or values.dtype.kind not in "iuf":
        with pytest.raises(DtypeError, match="erase_if compares single numbers"):
            case.from_arrays(keys, values).erase_if("values", "<", 5)
        return
    values = values[: len(keys)]
    for comparison, compare in COMPARISONS.items():
        table = case.from_arrays(keys, values)
        stays = ~compare(values, 50)
        assert table.erase_if("values", comparison, 50) == np.count_nonzero(~stays)
        found = table.contains(keys)
        assert (found == stays).all() and len(table) == np.count_nonzero(stays)
        table.check()


@engines
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize("bound", [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan])
def test_erase_if_of_special_floats(device: str, dtype: str, bound: float) -> None:
    values = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 2.0, -2.0], dtype)
    keys = np.arange(len(values), dtype="u4")
    for comparison, compare in COMPARISONS.items():
        table = HashMap.from_arrays(keys, values, device=device)
        goes = compare(values, np.dtype(dtype).type(bound))
        assert table.erase_if("values", comparison, bound) == goes.sum()
        assert sorted(table.keys().tolist()) == keys[~goes].tolist()


@engines
@ONE_OF_EACH
@pytest.mark.parametrize("dtype", ["i8", "u4", "u1", *rare("u8", "i4", "i2")])
def test_erase_if_of_keys(device: str, design: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    keys = np.array([info.min, info.min + 1, 0, 1, 2, 100, info.max - 1, info.max], dtype)
    keys = np.unique(keys)
    for comparison, compare in COMPARISONS.items():
        for bound in (info.min, info.min - 1, 0, 1, 1.5, info.max, info.max + 1):
            table = HashSet.from_arrays(keys, device=device, design=design)
            goes = np.array([compare(int(key), bound) for key in keys])
            assert table.erase_if("keys", comparison, bound) == goes.sum(), (comparison, bound)
            assert sorted(table.keys().tolist()) == keys[~goes].tolist()


@engines
@pytest.mark.parametrize("score", ["f8", "i4"])
def test_erase_if_of_scores(device: str, score: str) -> None:
    made = Bounded(device=device, evict="score", score=score)
    made.table.insert(*made.pairs(np.arange(50)), scores=np.arange(-25, 25).astype(score))
    if score == "f8":
        made.table.assign(*made.pairs([49]), scores=np.array([np.nan]))
        assert made.table.erase_if("scores", "==", np.nan) == 0
    else:
        made.table.erase(made.keys([49]))
    assert made.table.erase_if("scores", "<", -10.5) == 15
    assert set(made.ids()) - {49} == {*range(15, 49)}
    assert made.table.erase_if("scores", "!=", 7) == (34 if score == "f8" else 33)
    assert made.ids() == [32]


def test_erase_if_says_what_is_wrong() -> None:
    table = HashMap("u8", "f4", device="cpu")
    with pytest.raises(ParameterError, match=r"column must be one of \['keys', 'values'\], got 'scores'"):
        table.erase_if("scores", "<", 5)
    with pytest.raises(ParameterError, match="comparison must be one of"):
        table.erase_if("values", "=<", 5)
    for bound in ("5", None, [5], np.array([1, 2])):
        with pytest.raises(DtypeError, match="bound that is a number"):
            table.erase_if("values", "<", bound)
    with pytest.raises(DtypeError, match="single numbers"):
        HashSet("V24", device="cpu").erase_if("keys", "<", 5)
    with pytest.raises(ParameterError, match=r"one of \['keys'\], got 'values'"):
        HashSet("u8", device="cpu").erase_if("values", "<", 5)
    assert table.erase_if("values", "<", 5) == 0


# ---- what is kept
COPIES: dict[str, Callable[[Any, Path], Any]] = {
    "copy": lambda table, folder: table.copy(),
    "deepcopy": lambda table, folder: copy.deepcopy(table),
    "pickle": lambda table, folder: pickle.loads(pickle.dumps(table)),
    "file": lambda table, folder: _through_file(table, folder / "table"),
    "replace": lambda table, folder: table.__replace__(design="slab"),
    "attempts": lambda table, folder: table.__replace__(attempts=3),
}


def _through_file(table: Any, path: Path) -> Any:
    table.save(path)
    return type(table).load(path, device=table.device)


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize(("key", "value"), [("u8", "u8"), ("V24", None), ("str", "u8"), ("str", None)])
@policies
def test_copies_are_bounded_and_keep_ranks(way: str, evict: str, key: str, value: str | None, tmp_path: Path) -> None:
    made = Bounded(key, value, evict=evict)
    for at in range(0, 100, 20):
        made.insert(np.arange(at, at + 20))
    twin = COPIES[way](made.table, tmp_path)
    assert made.ids(twin) == made.ids() and twin.stats().max_size == 100
    made.table = twin
    made.insert(np.arange(200, 250), scores=np.arange(1000, 1050))
    held = made.ids()
    assert len(held) == 100
    if evict in ("lru", "fifo", "score"):
        assert set(held) >= {*range(60, 100), *range(200, 250)}
    if way == "copy":
        assert twin.stats().evicted == 50


@pytest.mark.parametrize("key", ["u8", "str"])
def test_a_copy_of_a_sketch_knows_the_frequencies(key: str) -> None:
    made = Bounded(key, evict="lfu")
    for _ in range(15):
        made.insert(np.arange(100))
    made.table = made.table.copy()
    made.insert(np.arange(500, 800))
    assert len(set(made.ids()) & {*range(100)}) >= 95  # of 300 keys, some share all counters with frequent ones


def test_other_bounds_of_the_same_keys() -> None:
    made = Bounded(evict="fifo")
    for at in range(0, 100, 20):
        made.insert(np.arange(at, at + 20))
    table = made.table
    assert made.ids(table.__replace__(max_size=40)) == [*range(60, 100)]
    assert table.__replace__(max_size=None).stats().max_size is None
    assert made.ids(table.__replace__(max_size=None)) == [*range(100)]
    assert len(made.ids(table.__replace__(max_size=40, evict="lfu"))) == 40
    with pytest.raises(ParameterError, match="have no scores of this type"):
        table.__replace__(evict="score")
    scored = Bounded(evict="score")
    scored.insert(np.arange(100))
    assert scored.ids(scored.table.__replace__(max_size=10)) == [*range(90, 100)]
    assert len(scored.table.__replace__(evict="lru", max_size=10)) == 10
    plain = HashMap.from_arrays(np.arange(50), np.arange(50), device="cpu")
    assert len(plain.__replace__(max_size=20)) == 20
    made.table.clear()
    made.insert(np.arange(7))
    assert made.ids() == [*range(7)]


def test_the_result_of_set_algebra_has_no_bound() -> None:
    sets = [Bounded(value=None, evict=evict) for evict in ("score", "lfu")]
    for number, made in enumerate(sets):
        made.insert(np.arange(100 * number, 100 * number + 100))
    left, right = (made.table for made in sets)
    assert len(left | right) == 200 and (left | right).stats().max_size is None
    assert len(left & right) == 0 and left.isdisjoint(right) and len(left - right) == 100


# ---- options
def test_from_arrays_takes_a_bound() -> None:
    keys = np.arange(10_000, dtype="u8")
    for evict in EVICT:
        options = {"scores": keys.astype("f8")} if evict == "score" else {}
        table = HashMap.from_arrays(keys, keys, max_size=300, evict=evict, device="cpu", **options)
        assert len(table) == 300 and table.stats().evicted == 9700
        table.check()
        assert len(HashSet.from_arrays(keys, max_size=300, evict=evict, device="cpu", **options)) == 300
    assert table.capacity >= 300


@pytest.mark.parametrize("evict", ["lfu", "random"])
@pytest.mark.parametrize(
    ("design", "in_file", "options"),
    [
        ("stadium", False, {}),
        ("stadium", True, {}),
        ("tiered", False, {"write": "back", "device_capacity": 30}),
        ("tiered", True, {"write": "back", "device_capacity": 30}),
        ("tiered", True, {"write": "through", "device_capacity": 30}),
    ],
)
@engines
def test_pairs_that_are_not_on_the_device(
    device: str, design: str, in_file: bool, options: dict[str, Any], evict: str, tmp_path: Path
) -> None:
    """A table in the memory of the host, in tiers or in a file is bounded too, by what keeps no rank beside a pair."""
    rng, path, model = np.random.default_rng(0), tmp_path / "table", dict[int, int]()
    memory = path if in_file else "host"
    table = HashMap("u8", "u8", design=design, memory=memory, device=device, max_size=100, evict=evict, **options)

    def pairs(of: HashMap) -> dict[int, int]:
        return dict(zip(*(column.tolist() for column in of.to_arrays()), strict=True))

    for step in range(1, 13):
        keys = np.unique(np.minimum(rng.zipf(1.2, 90), 500)).astype(np.uint64)
        values = rng.integers(0, 1000, len(keys), np.uint64)
        table.assign(keys, values)
        model |= dict(zip(keys.tolist(), values.tolist(), strict=True))
        held = pairs(table)
        assert len(held) == len(table) <= 100 and held.items() <= model.items()
        found_values, found = table.find(keys)
        assert found.tolist() == [key in held for key in keys.tolist()]
        assert found_values.tolist() == [held.get(key, 0) for key in keys.tolist()]
        table.check()
        if step % 4 == 0:
            twin = table.copy()
            left, values = table.evict(7)
            assert held == pairs(table) | dict(zip(left.tolist(), values.tolist(), strict=True))
            assert len(table) == len(held) - 7 and not table.contains(left).any()
            twin.insert(keys + np.uint64(1000), keys)
            assert len(twin) <= 100 and pairs(pickle.loads(pickle.dumps(twin))) == pairs(twin)
            if in_file:
                held = pairs(table)
                table.close()
                table = HashMap.open(path, device=device)
                assert pairs(table) == held
    assert len(table) > 80


@pytest.mark.parametrize("evict", EVICT)
def test_an_upsert_of_narrow_values_says_what_keeps_it(evict: str) -> None:
    """A table with ranks keeps rows, and rows are combined 4 or 8 bytes at a time."""
    table = HashMap("u8", "u2", max_size=10, evict=evict, device="cpu")
    keys, values = np.arange(5, dtype=np.uint64), np.ones(5, np.uint16)
    scores = {"scores": np.arange(5.0)} if evict == "score" else {}
    if evict in ("lru", "fifo", "score"):
        with pytest.raises(UnsupportedVerb, match=r"4 or 8 bytes.*evict=.*these have 2 bytes: widen"):
            table.upsert(keys, values, "add", **scores)
        assert len(table) == 0
        wide = HashMap("u8", "u4", max_size=10, evict=evict, device="cpu")  # as the error says
        wide.upsert(keys, values.astype("u4"), "add", **scores)
        assert len(wide) == 5
    else:
        table.upsert(np.tile(keys, 3), np.tile(values, 3), "add")
        assert table.find(keys)[0].tolist() == [3] * 5


def test_options_that_no_table_can_have() -> None:
    def refused(message: str, **options: Any) -> None:
        with pytest.raises(ParameterError, match=message):
            HashMap("u8", "u8", device="cpu", **options)

    for wrong in (0, -1, 1.5, "many", True, 2**63):
        refused("max_size must be", max_size=wrong)
    refused("evict must be one of", max_size=5, evict="mru")
    refused("give max_size, too", evict="lru")
    refused("leave it out", max_size=5, evict="lru", score="f8")
    refused("leave it out", score="f8")
    for score in ("V8", "M8[s]", ("f8", (2,)), "S4", "?", "c16"):
        refused("score must be a type", max_size=5, evict="score", score=score)
    refused("in 'host': give evict='lfu' or 'random'", max_size=5, design="stadium", memory="host")
    refused("in 'host': give evict='lfu' or 'random'", max_size=5, design="tiered")
    with pytest.raises(ParameterError, match="a HashMap or a HashSet"):
        MultiMap("u8", "u8", device="cpu", max_size=5)


def test_scores_are_given_where_they_are_needed_and_nowhere_else() -> None:
    scored, plain = Bounded(evict="score"), Bounded(evict="lru")
    keys = np.arange(5, dtype="u8")
    for call in (
        lambda: scored.table.insert(keys, keys),
        lambda: scored.table.assign(keys, keys),
        lambda: scored.table.upsert(keys, keys, "add"),
        lambda: scored.table.upsert(keys, keys, "last"),
        lambda: scored.table.find_or_insert(keys, keys),
        lambda: scored.table.__setitem__(keys, keys),
    ):
        with pytest.raises(ParameterError, match="give scores="):
            call()
    with pytest.raises(ParameterError, match="leave it out"):
        plain.table.insert(keys, keys, scores=keys.astype("f8"))
    with pytest.raises(DtypeError):
        scored.table.insert(keys, keys, scores=keys + 2**53)
    with pytest.raises(warphash.ShapeError, match="5 keys and 4 scores"):
        scored.table.insert(keys, keys, scores=np.zeros(4))
    assert len(scored.table) == len(plain.table) == 0


def test_a_design_that_does_not_erase_has_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    design = replace(registry.get("iceberg"), capabilities=frozenset({"insert", "find"}))
    monkeypatch.setitem(registry._BY_NAME, "iceberg", design)
    with pytest.raises(UnsupportedVerb, match="'iceberg' has no erase; these have"):
        HashMap("u8", "u8", device="cpu", design="iceberg", max_size=5)


def test_a_bounded_table_has_no_execute() -> None:
    made = Bounded(design="slab", evict="lfu")
    with pytest.raises(UnsupportedVerb, match="a bounded table has no execute"):
        made.table.execute(np.zeros(3, "u1"), made.keys(np.arange(3)))
