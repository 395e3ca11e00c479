"""The slab list: the end of its pool, that no key is stored twice, how well it uses memory, and what it reads."""

from __future__ import annotations

import copy
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from support.cases import MultiCase
from support.engines import one_of_each
from support.lists import nodes_of_a_list
from support.mixed import Recorder
from support.model import Model
from support.types import Array
from warphash import HashMap, HashSet, MultiMap, Operation, ParameterError, TableFull
from warphash.lab.figures import catalogue
from warphash.lab.figures.catalogue import Point
from warphash.storage.chains.chain_array import ChainArray
from warphash.storage.chains.node_pool import SlabPool

N = 600


def table_of(n: int, rng: np.random.Generator, **options: Any) -> tuple[HashMap, Model, np.ndarray]:
    keys = rng.permutation(np.arange(40 * N, dtype=np.uint32))
    table = HashMap("u4", "u4", design="slab", device="cpu", capacity=N, **options)
    model = Model()
    model.inserted(keys[:n], keys[:n], table.insert(keys[:n], keys[:n]))
    return table, model, keys


@pytest.mark.parametrize("verb", ["insert", "assign", "upsert"])
def test_without_memory_for_more_slabs_nothing_changes(
    verb: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, model, keys = table_of(N, rng, rebucket=False)

    def refuse(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(SlabPool, "grow", refuse)
    batch = keys[N // 2 :]  # some are there
    with pytest.raises(TableFull, match="no room; the table is as it was"):
        getattr(table, verb)(batch, batch + 1, *(["add"] if verb == "upsert" else []))
    model.agrees(table, keys)
    monkeypatch.undo()
    model.inserted(batch, batch, table.insert(batch, batch))
    model.agrees(table, keys)


@pytest.mark.parametrize("design", ["slab", "lock_free_chaining"])
@pytest.mark.parametrize("verb", ["assign", "upsert"])
def test_counts_are_put_back_with_the_slots(verb: str, design: str, rng: np.random.Generator) -> None:
    """Of keys, or the table has fewer than none; of erased slots, or nobody looks for the room that they have."""
    keys = np.arange(5000, dtype=np.uint32)
    table = HashMap("u4", "u4", design=design, device="cpu", capacity=20, on_full="raise", rebucket=False, seed=1)
    model = Model()

    def does_not_fit() -> None:
        with pytest.raises(TableFull, match="the table is as it was"):
            getattr(table, verb)(keys, keys + 1, *(["add"] if verb == "upsert" else []))
        model.agrees(table, keys[:100])

    does_not_fit()  # an empty table is not copied beforehand
    while True:
        try:
            model.inserted(keys[len(model) :][:1], keys[:1], table.insert(keys[len(model) :][:1], keys[:1]))
        except TableFull:
            break
    full = len(model)
    model.erased(keys[: full // 2], table.erase(keys[: full // 2]))
    does_not_fit()
    model.inserted(keys[: full // 2], keys[: full // 2], table.insert(keys[: full // 2], keys[: full // 2]))
    assert len(table) == full
    model.erased(keys[:full], table.erase(keys[:full]))
    does_not_fit()  # nor is one that holds only erased slots
    model.inserted(keys[:full], keys[:full], table.insert(keys[:full], keys[:full]))
    model.agrees(table, keys[:100])


def test_erased_slots_of_a_fixed_table_come_back(rng: np.random.Generator) -> None:
    table, model, keys = table_of(0, rng, on_full="raise", rebucket=False)
    for _ in range(12):
        batch = rng.choice(keys, N, replace=False)
        model.inserted(batch, batch, table.insert(batch, batch))
        model.erased(batch, table.erase(batch))
    assert len(table) == 0
    model.inserted(keys[:N], keys[:N], table.insert(keys[:N], keys[:N]))
    model.agrees(table, keys)
    table.check()


def test_a_key_erased_in_front_of_its_list_is_not_stored_twice(rng: np.random.Generator) -> None:
    """With erased slots used again, the second insert would come before the key that is still there."""
    keys = np.arange(100, dtype=np.uint32)
    table = HashMap("u4", "u4", design="slab", device="cpu", capacity=1, rebucket=False)  # one bucket
    table.insert(keys, keys)
    assert table.stats().slots == 15
    table.erase(keys[:40])
    assert not table.insert(keys[40:], keys[40:]).any()
    assert table.insert(keys, keys).sum() == 40
    table.check()


def test_lists_are_shortened_by_more_buckets(rng: np.random.Generator) -> None:
    table, model, keys = table_of(N, rng)
    for part in np.array_split(keys[N:], 4):
        model.inserted(part, part, table.insert(part, part))
        assert table.load_factor <= 1
    assert table.probe_counts(keys).mean() < 1.5
    assert table.stats().rebuilds > 0
    model.agrees(table, keys)


@pytest.mark.parametrize(("load", "slabs_per_bucket"), [(0.7, 1.068), (1.0, 1.432), (2.0, 2.454)])
def test_slabs_per_bucket(load: float, slabs_per_bucket: float) -> None:
    """What an absent key reads is its bucket's whole list; the lengths are those of a Poisson distribution."""
    n = 1_000_000
    keys = np.random.default_rng(3).permutation(np.arange(2 * n, dtype=np.uint32))
    table = HashMap("u4", "u4", design="slab", device="cpu", capacity=int(n / load), load_factor=1, rebucket=False)
    table.insert(keys[:n], keys[:n])
    assert table.probe_counts(keys[n:]).mean() == pytest.approx(slabs_per_bucket, rel=0.005)


# ---- how well memory is used
@dataclass(frozen=True)
class Kind:
    """What lies in a slot, and how many of them in a slab."""

    key: str
    value: str | None
    bytes: int
    pairs: int

    def table(self, lists: int, **options: Any) -> Any:
        """Of so many lists for good."""
        options = {"design": "slab", "device": "cpu", "seed": 5, "buckets": lists, "rebucket": False, **options}
        return HashSet(self.key, **options) if self.value is None else HashMap(self.key, self.value, **options)

    def insert(self, table: Any, keys: Array) -> None:
        keys = keys.astype(self.key)
        assert table.insert(keys, *([keys] if self.value else [])).all()

    def utilisation(self, table: Any) -> float:
        """Bytes of pairs over those of slabs in use."""
        return len(table) * self.bytes / (128 * int(table.stats().nodes))


KINDS = {"32-bit pairs": Kind("u4", "u4", 8, 15), "32-bit keys": Kind("u4", None, 4, 30)}
LONG = {"64-bit pairs": Kind("u8", "u8", 16, 7), "64-bit keys": Kind("u8", None, 8, 15)}
MILLION = 1_000_000


@pytest.fixture(scope="module")
def million() -> Array:
    drawn = np.random.default_rng(17).integers(0, 2**32, MILLION + 2000, dtype=np.uint32)
    return np.random.default_rng(18).permutation(np.unique(drawn))[:MILLION]


@pytest.mark.parametrize("family", ["mixer", "universal"])
@pytest.mark.parametrize("point", catalogue.load("slab4c").published, ids=lambda point: f"{point.series}-{point.x:g}")
def test_utilisation_over_the_slab_count(point: Point, family: str, million: Array) -> None:
    """Figure 4c, and the same for keys alone: as published, and as chance has it."""
    kind = KINDS[point.series]
    lists = round(MILLION / (point.x * kind.pairs))
    mean = MILLION / lists
    expected = mean * kind.bytes / (128 * nodes_of_a_list(mean, kind.pairs))
    assert expected == pytest.approx(point.value, abs=0.0006), "published are three digits"
    table = kind.table(lists, hash=family, capacity=MILLION)
    kind.insert(table, million)
    assert table.stats().slots == lists * kind.pairs
    assert kind.utilisation(table) == pytest.approx(point.value, abs=0.003)
    assert kind.utilisation(table) == pytest.approx(expected, abs=0.0025)


@pytest.mark.parametrize("name", [*KINDS, *LONG])
def test_one_list_uses_slabs_best(name: str, million: Array) -> None:
    """Of fewer lists, fewer slabs have vacant slots, down to one list, of which only the last slab may have any."""
    kind = {**KINDS, **LONG}[name]
    n = 200 * kind.pairs
    used = []
    for lists in (n, 1000, 100, 10, 1):
        table = kind.table(lists)
        kind.insert(table, million[:n])
        used.append(kind.utilisation(table))
    assert used == sorted(used) and used[-2] > 0.95 * used[-1]
    assert used[-1] == (0.875 if name == "64-bit pairs" else 0.9375)
    for more, slabs in ((1, 201), (kind.pairs - 1, 201), (1, 202)):
        kind.insert(table, million[n : n + more])
        assert table.stats().nodes == slabs
        n += more


@pytest.mark.parametrize("name", [*KINDS, *LONG])
@pytest.mark.parametrize("design", ["slab", "lock_free_chaining"])
def test_memory_of_a_table_filled_to_the_last_slot(design: str, name: str, million: Array) -> None:
    """Pairs over all bytes of the table: never more than a half with a pointer beside each, as Misra's list has it."""
    kind = {**KINDS, **LONG}[name]
    most = 0.5 if design == "lock_free_chaining" else 0.875 if name == "64-bit pairs" else 0.9375
    lists = 1024 if design == "slab" else 1 << 14  # a table that may not grow has as many nodes more
    table = kind.table(lists, design=design, capacity=1, on_full="raise")
    slots = 2 * table.stats().slots
    full = 0.0
    while len(table) < slots:
        batch, million = million[:slots].astype(kind.key), million[slots:]
        with pytest.raises(TableFull, match="found no node"):
            table.execute(np.full(slots, Operation.INSERT, np.uint8), batch, *([batch] if kind.value else []))
        full, before = len(table) * kind.bytes / table.nbytes, full
        assert before < full < most
        stats = table.stats()
        assert full < stats.memory_utilisation <= most
        assert stats.memory_utilisation + stats.reserve_nbytes / stats.nbytes > 0.97 * full
    assert (len(table), table.stats().nodes) == (slots, 2 * lists)
    assert full > 0.97 * most
    assert (table.stats().memory_utilisation, table.stats().reserve_nbytes) == (most, 0)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize(
    ("slabs", "published"), [(0.2, 0.188), (0.7, 0.614), (1.1, 0.652), (2, 0.764), (3, 0.811), (5, 0.858)]
)
def test_memory_utilisation_over_the_slabs_of_a_bucket(device: str, slabs: float, published: float) -> None:
    """Bytes of pairs over those of slabs in use: what the pool holds in reserve beside them is told apart."""
    n = 100_000 if device == "cpu" else 600
    lists = round(n / (15 * slabs))
    expected = 8 * 15 * slabs / (128 * nodes_of_a_list(15 * slabs, 15))
    assert expected == pytest.approx(published, abs=0.003)
    table = HashMap("u4", "u4", design="slab", device=device, seed=5, buckets=lists, rebucket=False, capacity=n)
    keys = np.random.default_rng(19).permutation(np.arange(n, dtype=np.uint32))
    table.insert(keys, keys)
    stats = table.stats()
    assert stats.memory_utilisation == pytest.approx(expected, abs=0.003 if device == "cpu" else 0.06)
    assert stats.memory_utilisation == 8 * n / (128 * stats.nodes)
    beside = stats.nbytes - stats.reserve_nbytes - 128 * stats.nodes
    assert 0 < beside < 0.01 * stats.nbytes + 4096, "counts and bitmaps of the pool, and the list of marks"


@pytest.mark.parametrize("load", [0.1, 1.0, 5.0])
def test_a_list_has_a_node_for_each_key(load: float, million: Array) -> None:
    """And one if it has none: so at most half of the nodes' bytes are of keys, and less where lists are empty."""
    lists = 40_000
    n = int(load * lists)
    table = HashSet("u4", design="lock_free_chaining", device="cpu", buckets=lists, rebucket=False, seed=5)
    table.insert(million[:n])
    empty = table.stats().nodes - n
    assert empty == pytest.approx(lists * math.exp(-load), rel=0.03, abs=60)
    stored = table.probe_counts(million[:n])
    absent = table.probe_counts(million[n : 2 * n])
    # A key stands as far behind in its list as there are keys before it, and an absent one is looked for to the end.
    assert stored.mean() == pytest.approx(1 + load / 2, rel=0.02)
    assert absent.mean() == pytest.approx(load + math.exp(-load), rel=0.02)


# ---- what is read
@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("design", ["slab", "cuckoo"])
def test_at_best_everything_reads_one_bucket(design: str, device: str, million: Array) -> None:
    """An insert and a find of each key, and of a slab list a find of an absent one, as long as no list has a second."""
    own = {"buckets": 4096} if design == "slab" else {}
    table = HashMap("u4", "u4", design=design, device=device, capacity=4096, count_probes=True, seed=5, **own)
    for key in million[:20]:
        table.insert([key], [key])
    assert table.stats().insert_probes == 1
    assert (table.probe_counts(million[:20]) == 1).all()
    assert (table.probe_counts(million[20:40]) == 1).all()


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("name", KINDS)
def test_each_slab_of_a_list_is_one_more_read(name: str, device: str, million: Array) -> None:
    """Of its only list, an insert reads all slabs that there are, and the one that it adds."""
    kind = KINDS[name]
    n = 3 * kind.pairs + 1
    # Of a table that may grow, the batch that first needs a slab finds no pool, and begins once more.
    table = kind.table(1, device=device, count_probes=True, on_full="raise")
    slab_of_key = np.arange(n) // kind.pairs + 1
    for number in range(n):
        assert (table.probe_counts(million[n : n + 3]) == (slab_of_key[number - 1] if number else 1)).all()
        kind.insert(table, million[number : number + 1])
        assert table.stats().insert_probes == pytest.approx(slab_of_key[: number + 1].mean())
    np.testing.assert_array_equal(table.probe_counts(million[:n]), slab_of_key)


# ---- erased slots that are used again
def churned(table: MultiMap, rng: np.random.Generator, rounds: int, by_execute: bool) -> list[int]:
    """Nodes behind each of some rounds that erase pairs and add as many of the same keys; checks the pairs."""
    keys = rng.permutation(np.repeat(np.arange(300), 7))
    keys = np.concatenate([keys, np.full(1500, 7)]).astype(np.uint32)  # a list that is entered at its tail
    held = Counter(keys.tolist())
    table.insert(keys, keys + 1)
    nodes = [table.stats().nodes]
    for number in range(rounds):
        gone = rng.choice(keys, 900, replace=False)  # of the long list, more than its first nodes hold
        assert table.erase(gone).all()
        if by_execute:
            found, done = table.execute(np.full(len(gone), Operation.INSERT, np.uint8), gone, gone + 1)
            assert done.all() and not found.any()
        else:
            table.insert(gone, gone + 1)
        nodes.append(table.stats().nodes)
        if number % 10 == 0:
            columns = table.to_arrays()
            np.testing.assert_array_equal(columns[1], columns[0] + 1)
            assert Counter(columns[0].tolist()) == held
            np.testing.assert_array_equal(table.count(keys[:50]), [held[key] for key in keys[:50].tolist()])
            table.check()
    return nodes


@pytest.mark.parametrize("by_execute", [False, True], ids=["insert", "execute"])
def test_nodes_do_not_grow_where_erased_slots_are_used_again(
    by_execute: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no list is packed meanwhile; without the parameter, lists are, and have more nodes until they are."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a list was packed")

    options = {"design": "slab", "device": "cpu", "capacity": 4000, "buckets": 100, "rebucket": False, "seed": 1}
    with monkeypatch.context() as patch:
        patch.setattr(ChainArray, "pack", refuse)
        reusing = churned(MultiMap("u4", "u4", reuse_erased=True, **options), rng, 60, by_execute)
    assert set(reusing) == {reusing[0]}
    others = churned(MultiMap("u4", "u4", **options), rng, 60, by_execute)
    assert max(others) > 1.2 * others[0]


def test_a_flush_packs_lists_whose_erased_slots_are_used_again(rng: np.random.Generator) -> None:
    keys = np.repeat(np.arange(50, dtype=np.uint32), 40)
    table = MultiMap(
        "u4", "u4", design="slab", device="cpu", capacity=2000, reuse_erased=True, buckets=10, rebucket=False
    )
    table.insert(keys, keys)
    before = table.stats().nodes
    assert table.erase(keys[: len(keys) // 2]).all()
    assert table.stats().nodes == before and table.flush() > 0
    assert table.stats().nodes < 0.7 * before
    twin = copy.deepcopy(table)
    for each in (table, twin):
        np.testing.assert_array_equal(np.sort(each.keys()), keys[len(keys) // 2 :])
        each.check()


def test_a_table_that_may_not_grow_uses_erased_slots_again(rng: np.random.Generator) -> None:
    keys = np.arange(40, dtype=np.uint32)
    table = MultiMap("u4", "u4", design="slab", device="cpu", capacity=40, on_full="raise", reuse_erased=True, seed=1)
    with pytest.raises(TableFull, match="the table is as it was"):
        table.insert(np.repeat(keys, 50), np.repeat(keys, 50))
    while True:
        try:
            table.insert(keys, keys)
        except TableFull:
            break
    full = len(table)
    for _ in range(20):
        gone = rng.permutation(table.keys())[: full // 2]
        assert table.erase(gone).all()
        table.insert(gone, gone)
        assert len(table) == full
        table.check()


def test_a_mixed_batch_that_uses_erased_slots_again_has_an_order(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPHASH_NUM_THREADS", "2")
    for key, value in (("u4", "u4"), ("u8", "u8")):
        case = MultiCase("cpu", "slab", key, value, {"reuse_erased": True})
        recorder = Recorder(case, case.table(capacity=4))
        keys = case.keys(4000, rng)
        for _ in range(4):
            halves = [
                rng.permuted(np.repeat(np.arange(len(keys)), 5).reshape(-1, 40), axis=1).ravel() for _ in range(2)
            ]
            batch = np.concatenate(halves)
            operations = rng.choice([Operation.FIND, Operation.INSERT, Operation.ERASE], len(batch)).astype(np.uint8)
            recorder.execute(operations, keys[batch])
        recorder.table.check()


def test_a_key_that_stands_once_takes_no_erased_slot() -> None:
    for make in (
        lambda: HashMap("u4", "u4", device="cpu", design="slab", reuse_erased=True),
        lambda: HashSet("u4", device="cpu", design="slab", reuse_erased=True),
    ):
        with pytest.raises(ParameterError, match="reuse_erased=True is for a MultiMap"):
            make()
