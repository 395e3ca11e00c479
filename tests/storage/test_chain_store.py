"""Tables of chains are whole after every interrupt and refusal, and erased slots come back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import list_designs
from support.engines import one_of_each
from support.inside import parts_of, storage_of
from support.refusals import refusing
from support.types import Array
from warphash import HashMap, MultiMap, Operation, TableFull
from warphash.runtime.devices import engine_for
from warphash.storage import policies
from warphash.storage.chains import chain_array
from warphash.storage.chains.chain_array import ChainArray
from warphash.storage.chains.element_lists import ElementLists
from warphash.storage.chains.node_pool import SlabPool
from warphash.storage.chains.repeated_keys import RepeatedKeys
from warphash.storage.policies import most_tombstones

CHAINS = f"{Path(warphash.__file__).parent}/storage/chains/"
HELD, GONE = np.arange(1, 61), np.arange(61, 81)
"""Keys in the table, and keys that were in it."""

Verb = Callable[[Any, Array], Any]
Values = dict[int, tuple[int, ...]]
"""The values of each key, ascending."""

CALLS: dict[str, Verb] = {
    "insert": lambda table, keys: table.insert(keys, 3 * keys),
    "assign": lambda table, keys: table.assign(keys, 3 * keys),
    "upsert": lambda table, keys: table.upsert(keys, 3 * keys, "add"),
    "find_or_insert": lambda table, keys: table.find_or_insert(keys, 3 * keys),
    "erase": lambda table, keys: table.erase(keys),
    "erase_all": lambda table, keys: table.erase_all(keys),
    "clear": lambda table, keys: table.clear(),
    "flush": lambda table, keys: table.flush(),
    "shrink": lambda table, keys: table.shrink(),
    "reserve": lambda table, keys: table.reserve(3000),
}


def pairs(table: Any) -> Values:
    found: dict[int, list[int]] = {}
    for key, value in zip(*(column.tolist() for column in table.to_arrays()), strict=True):
        found.setdefault(key, []).append(value)
    return {key: tuple(sorted(values)) for key, values in found.items()}


def after(verb: str, keys: Array, multi: bool) -> Values:
    """What the table holds when the call is done."""
    held = {int(key): (int(key),) for key in HELD}
    for key in keys.tolist():
        if verb in ("insert", "find_or_insert"):
            held[key] = tuple(sorted((*held.get(key, ()), 3 * key))) if multi else held.get(key, (3 * key,))
        elif verb == "assign":
            held[key] = (3 * key,)
        elif verb == "upsert":
            held[key] = (sum(held.get(key, ())) + 3 * key,)
        elif verb == "erase":
            held[key] = held.get(key, ())[1:]
        elif verb == "erase_all":
            held[key] = ()
    return {} if verb == "clear" else {key: values for key, values in held.items() if values}


def table_of(kind: Any, design: str, device: str, on_full: str) -> Any:
    table = kind("u8", "u8", design=design, device=device, capacity=72, seed=3, on_full=on_full)
    for part in np.array_split(np.concatenate([HELD, GONE]), 3):
        table.insert(part.astype("u8"), part.astype("u8"))
    table.erase(GONE.astype("u8"))
    return table


def batch_of(many: int) -> Array:
    """Keys that are held and others, of which some repeat."""
    new = np.arange(1000, 1000 + many)
    ids = np.concatenate([HELD[:20], new, HELD[:4], new[: many // 2]])
    return np.random.default_rng(4).permutation(ids).astype("u8")


def is_whole(table: Any, *legal: Values) -> None:
    """Each key is as in one of the legal tables; counts are right, and the next calls."""
    now = pairs(table)
    for key in set(now).union(*legal):
        assert any(now.get(key) == held.get(key) for held in legal), (key, now.get(key))
    assert len(table) == sum(map(len, now.values()))
    table.check()
    fresh = np.arange(5000, 5004, dtype="u8")
    try:
        table.insert(fresh, fresh)
    except TableFull:
        assert parts_of(table).facts.options["on_full"] == "raise"
    else:
        assert table.erase(fresh).all()
    assert pairs(table) == now


# ---- interrupts
class Interrupt:
    """Raises KeyboardInterrupt at the ``number``-th line that runs in ``storage/chains``."""

    def __init__(self, number: int) -> None:
        self.number, self.lines = number, 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(CHAINS):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.number:
                raise KeyboardInterrupt
        return self


def interrupted(call: Callable[[], Any], number: int) -> tuple[bool, Exception | None]:
    """Whether a call was interrupted at a line, and what else it raised."""
    interrupt, before = Interrupt(number), sys.gettrace()
    sys.settrace(interrupt)
    try:
        call()
    except KeyboardInterrupt:
        return True, None
    except TableFull as error:
        return interrupt.lines >= number, error
    finally:
        sys.settrace(before)
    return interrupt.lines >= number, None


def verbs_of(multi: bool) -> list[str]:
    others = ("assign", "upsert", "find_or_insert") if multi else ("erase_all",)
    return [verb for verb in CALLS if verb not in others]


KINDS = [(HashMap, verb) for verb in verbs_of(False)] + [(MultiMap, verb) for verb in verbs_of(True)]


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("on_full", ["grow", pytest.param("raise", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "verb"), KINDS, ids=lambda given: getattr(given, "_kind", given))
def test_an_interrupt_at_any_line_leaves_the_table_whole(kind: Any, verb: str, on_full: str, device: str) -> None:
    keys = batch_of(200 if device == "emulated" else 900)
    before, done = after("", keys, False), after(verb, keys, kind is MultiMap)
    step = 61 if device == "emulated" else 7
    number, hit = 1, True
    while hit:
        table = table_of(kind, "slab", device, on_full)
        hit, error = interrupted(lambda table=table: CALLS[verb](table, keys), number)
        is_whole(table, *([before] if error else [before, done] if hit else [done]))
        number += step


# ---- refusals
DAILY = {("slab", "grow", True), ("slab", "raise", False), ("lock_free_chaining", "grow", False)}
REFUSALS = [
    pytest.param(
        design,
        on_full,
        once,
        *device.values,
        id=f"{design}-{on_full}-{'once' if once else 'for_good'}-{device.values[0]}",
        marks=[pytest.mark.slow] * ((design, on_full, once) not in DAILY),
    )
    for device in one_of_each("cpu", "emulated")
    for design in list_designs()
    for on_full in ("grow", "raise")
    for once in (True, False)
]


@pytest.mark.parametrize(("design", "on_full", "once", "device"), REFUSALS)
@pytest.mark.parametrize(("kind", "verb"), KINDS, ids=lambda given: getattr(given, "_kind", given))
def test_a_refused_allocation_leaves_the_table_as_it_was(
    kind: Any, verb: str, design: str, on_full: str, once: bool, device: str
) -> None:
    keys = batch_of(200 if device == "emulated" else 900)
    before, done = after("", keys, False), after(verb, keys, kind is MultiMap)
    for first in range(1, 200):
        table, raised = table_of(kind, design, device, on_full), False
        with refusing(engine_for(device), first, once=once) as count:
            try:
                CALLS[verb](table, keys)
            except (MemoryError, TableFull):
                raised = True
        is_whole(table, before if raised else done)
        if not count.refused:
            return
    raise AssertionError("it still asks for memory after 200 allocations")


@pytest.mark.slow
@pytest.mark.parametrize("interrupted_at", [0, 2])
@pytest.mark.parametrize("kind", [HashMap, MultiMap])
def test_an_undo_of_many_elements_needs_no_memory(
    kind: Any, interrupted_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list that is kept is too short for them. An undo that is interrupted goes on where it stopped."""
    n, held = 70_000, np.arange(1000, dtype="u4")
    table = kind("u4", "u4", design="slab", device="cpu", capacity=n // 3, on_full="raise", seed=3)
    for _ in range(2):
        table.insert(held, held)
    kept, keys = pairs(table), np.arange(n, dtype="u4")
    engine = engine_for("cpu")
    allocate, launch, pieces = engine.allocate, ChainArray.launch, ElementLists.pieces
    entries, lists = [], []

    def little(nbytes: int, stream: Any = None) -> Any:
        if nbytes > 100_000:
            raise MemoryError("a list of all elements does not fit")
        return allocate(nbytes, stream)

    def noted_launch(self: ChainArray, entry: str, *given: Any, **named: Any) -> None:
        entries.append(entry)
        launch(self, entry, *given, **named)

    def noted_pieces(self: ElementLists, which: Array, stream: Any) -> Iterator[Any]:
        for number, piece in enumerate(pieces(self, which, stream)):
            if entries[-1] in ("erase", "retract"):
                lists.append(piece)
                if len(lists) == interrupted_at:
                    raise KeyboardInterrupt
            assert number < 10
            yield piece

    monkeypatch.setattr(ChainArray, "launch", noted_launch)
    monkeypatch.setattr(ElementLists, "pieces", noted_pieces)
    monkeypatch.setattr(engine, "allocate", little)
    with pytest.raises((TableFull, KeyboardInterrupt)):
        table.insert(keys, keys)
    monkeypatch.undo()
    assert len(lists) > 2 or (kind is HashMap and interrupted_at)
    held_now = pairs(table)
    if kind is MultiMap or not interrupted_at:
        assert held_now == kept
    assert all(held_now[key] == values for key, values in kept.items())
    table.check()


def test_a_copy_has_memory_of_its_own() -> None:
    for kind in (HashMap, MultiMap):
        table = table_of(kind, "slab", "cpu", "grow")
        keys = batch_of(900)
        table.insert(keys, keys)
        store = storage_of(table).store
        kept, twin = pairs(table), store.copy()
        storage_of(table).store = twin
        assert pairs(table) == kept and twin.size == store.size
        table.insert(keys + np.uint64(7000), keys)
        table.check()
        table.erase(keys)
        storage_of(table).store = store
        assert pairs(table) == kept
        table.check()


# ---- erased slots
@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("on_full", ["grow", "raise"])
@pytest.mark.parametrize("design", list_designs())
def test_erased_slots_are_bounded_behind_every_erase(
    design: str, on_full: str, device: str, rng: np.random.Generator
) -> None:
    n = 2500 if device == "emulated" else 12000
    table = HashMap("u4", "u4", design=design, device=device, capacity=n, on_full=on_full, seed=3)
    keys = rng.permutation(np.arange(10 * n, dtype="u4"))
    store, memory = storage_of(table).store, set()
    for number in range(8):
        batch = keys[number * n : number * n + n]
        table.insert(batch, batch)
        for part in np.array_split(batch, (3, 1, 7, 2)[number % 4]):
            assert table.erase(part).all()
            assert store.tombstones <= most_tombstones(store.size)
        assert len(table) == 0
        memory.add(table.nbytes)
    assert len(memory) == 1


def test_an_erase_of_all_keys_clears_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.arange(20_000, dtype="u4")
    table = HashMap("u4", "u4", design="slab", device="cpu", capacity=len(keys), seed=3)
    table.insert(keys, keys)
    monkeypatch.delattr(ChainArray, "pack")
    assert table.erase(keys).all()
    stats = table.stats()
    assert (stats.size, stats.rebuilds, storage_of(table).store.tombstones) == (0, 0, 0)
    assert stats.nodes == stats.slots // 15
    assert table.insert(keys, keys).all()
    table.check()


@pytest.mark.parametrize(("kept", "moves"), [(200, True), (8000, False)])
def test_the_cheaper_way_frees_erased_slots(kept: int, moves: bool) -> None:
    keys = np.arange(20_000, dtype="u4")
    for kind in (HashMap, MultiMap):
        table = kind("u4", "u4", design="slab", device="cpu", capacity=len(keys), seed=3)
        table.insert(keys, keys)
        memory = table.nbytes
        table.erase(keys[kept:])
        assert storage_of(table).store.tombstones == 0
        assert table.stats().rebuilds == moves and table.nbytes == memory
        assert pairs(table) == {key: (key,) for key in range(kept)}
        table.check()


# ---- batches that run out of nodes
Call = Callable[[Any, Array, Array], Any]

BATCHES: dict[str, tuple[Any, Call]] = {
    "MultiMap.insert": (MultiMap, lambda table, keys, values: table.insert(keys, values)),
    "MultiMap.execute": (
        MultiMap,
        lambda table, keys, values: table.execute(np.full(len(keys), Operation.INSERT, "u1"), keys, values),
    ),
    "HashMap.assign": (HashMap, lambda table, keys, values: table.assign(keys, values)),
    "HashMap.execute": (
        HashMap,
        lambda table, keys, values: table.execute(np.full(len(keys), Operation.ASSIGN, "u1"), keys, values),
    ),
}


class Traffic:
    """What calls copy between an engine and the host, and how often a call launches its batch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
        self.copies: list[int] = []
        self.rounds = 0
        engine, launch = engine_for(device), ChainArray.launch
        to_host, from_host, upload = engine.to_host, engine.from_host, engine.upload

        def noted_to_host(ptr: int, dtype: Any, count: int, stream: Any = None) -> Any:
            self.copies.append(np.dtype(dtype).itemsize * count)
            return to_host(ptr, dtype, count, stream)

        def noted_from_host(array: Array, stream: Any = None) -> Any:
            self.copies.append(array.nbytes)
            return from_host(array, stream)

        def noted_upload(target: int, array: Array, stream: Any = None) -> None:
            self.copies.append(array.nbytes)
            upload(target, array, stream)

        def noted_launch(array: ChainArray, entry: str, *given: Any, **named: Any) -> None:
            self.rounds += entry in (*array.entries, "append_runs")
            launch(array, entry, *given, **named)

        monkeypatch.setattr(engine, "to_host", noted_to_host)
        monkeypatch.setattr(engine, "from_host", noted_from_host)
        monkeypatch.setattr(engine, "upload", noted_upload)
        monkeypatch.setattr(ChainArray, "launch", noted_launch)

    def of(self, call: Callable[[], Any], least: int) -> tuple[list[int], int]:
        """The sizes of the copies of at least so many bytes in a call, ascending; and its rounds."""
        self.copies.clear()
        self.rounds = 0
        call()
        return sorted(nbytes for nbytes in self.copies if nbytes >= least), self.rounds


def repeated(n: int, rng: np.random.Generator) -> Array:
    """Most elements are of a hundredth as many keys, and the others of different keys."""
    often = rng.integers(0, n // 100, n - n // 5)
    return rng.permutation(np.concatenate([often, np.arange(4 * n, 4 * n + n // 5)])).astype("u4")


def few_lists(kind: Any, design: str, device: str, n: int, nodes: int | None = None) -> Any:
    """A table of some lists that stay as they are, with room for ``n`` keys, or with so few nodes at first."""

    def with_nodes(engine: Any, blocks: int, super_blocks: int, units: int | None, *given: Any) -> SlabPool:
        return SlabPool(engine, blocks, super_blocks or 1, nodes or units, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain_array, "SlabPool", with_nodes)
        return kind("u4", "u4", design=design, device=device, capacity=n, buckets=n // 100, rebucket=False, seed=3)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("design", list_designs())
@pytest.mark.parametrize("batch", BATCHES)
def test_elements_without_a_node_stay_on_the_device(
    batch: str, design: str, device: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """A batch of several rounds copies no more than one of a single round, except a few counts."""
    n = 40_000 if device == "cpu" else 4000
    kind, call = BATCHES[batch]
    keys, values = repeated(n, rng), np.arange(n, dtype="u4")
    model: dict[int, list[int]] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        model.setdefault(key, []).append(value)
    monkeypatch.setattr(policies, "nodes_to_hold", lambda n, lists: 0)  # or a pool grows ahead of a small batch
    traffic = Traffic(monkeypatch, device)
    copies, rounds = [], []
    for nodes in (5, None):
        table = few_lists(kind, design, device, 2 * n, nodes)
        copied, launched = traffic.of(lambda table=table: call(table, keys, values), n)
        copies.append(copied)
        rounds.append(launched)
        found = pairs(table)
        if kind is MultiMap:
            assert found == {key: tuple(sorted(of_key)) for key, of_key in model.items()}
        else:
            assert found.keys() == model.keys()
            assert all(value in model[key] for key, (value,) in found.items())
        table.check()
    assert rounds[0] > 1 == rounds[1]
    assert copies[0] == copies[1]


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("design", list_designs())
def test_runs_keep_their_order_over_several_rounds(
    design: str, device: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    n = 20_000 if device == "cpu" else 3000
    monkeypatch.setattr(policies, "nodes_to_hold", lambda n, lists: 0)
    traffic, engine = Traffic(monkeypatch, device), engine_for(device)
    table = few_lists(MultiMap, design, device, 2 * n, 5)
    keys, values = np.sort(rng.integers(0, n // 50, n)).astype("u4"), np.arange(n, dtype="u4")
    held = engine.from_host(keys), engine.from_host(values)
    rows = RepeatedKeys(storage_of(table))
    copied, rounds = traffic.of(lambda: rows.insert_runs(held[0].ptr, held[1].ptr, n, None), n)
    assert rounds > 1 and not copied
    found, offsets = table.find_all(np.unique(keys))
    assert found.tolist() == values.tolist()
    assert offsets.tolist() == [*np.searchsorted(keys, np.unique(keys)).tolist(), n]
    table.check()


FEW_NODES = {"slab": 3, "lock_free_chaining": 24}
"""Enough for the pairs of `held_and_added` in ten lists, and too few for a batch of 1,000 pairs."""


def held_and_added(batch: str, table: Any, keys: Array) -> tuple[Values, Values]:
    """Insert some pairs; what the table holds now, and behind a batch of pairs ``(key, 3 * key)``."""
    held = np.arange(0, 40, 2, dtype="u4")
    table.insert(held, held)
    before = {int(key): (int(key),) for key in held}
    done = dict(before)
    for key in keys.tolist():
        done[key] = (*done.get(key, ()), 3 * key) if batch.startswith("MultiMap") else (3 * key,)
    return before, {key: tuple(sorted(values)) for key, values in done.items()}


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("design", list_designs())
@pytest.mark.parametrize("batch", BATCHES)
def test_refused_memory_behind_the_first_round_does_no_harm(
    batch: str, design: str, device: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """An update is taken back. Of a mixed batch, the error names the keys of what was not done."""
    monkeypatch.setattr(policies, "nodes_to_hold", lambda n, lists: 0)
    kind, call = BATCHES[batch]
    keys = repeated(1000, rng)
    raised = 0
    for first in range(1, 40):
        table = few_lists(kind, design, device, 1000, FEW_NODES[design])
        before, done = held_and_added(batch, table, keys)
        legal = [done]
        with refusing(engine_for(device), first, once=False) as count:
            try:
                call(table, keys, 3 * keys)
            except (MemoryError, TableFull) as error:
                raised += 1
                legal = [before]
                if batch.endswith("execute") and isinstance(error, TableFull):
                    legal = all_but(error.keys.tolist(), done, before, kind is MultiMap)
        is_whole(table, *legal)
        if not count.refused:
            break
    assert raised and not count.refused


def all_but(missing: list[int], done: Values, before: Values, multi: bool) -> list[Values]:
    """The tables that a mixed batch may leave, key by key, where an element of each of these keys found no node."""
    left = {key: list(values) for key, values in done.items()}
    for key in missing:
        if multi:
            left[key].remove(3 * key)
        else:
            left[key] = list(before.get(key, ()))
    undone = {key: tuple(values) for key, values in left.items() if values}
    return [undone] if multi else [undone, done]  # another element of the key may have found a node


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("batch", ["MultiMap.insert", "HashMap.assign"])
def test_an_interrupt_between_rounds_leaves_the_table_whole(
    batch: str, device: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(policies, "nodes_to_hold", lambda n, lists: 0)
    kind, call = BATCHES[batch]
    keys = repeated(1000, rng)
    step = 61 if device == "emulated" else 5
    number, hit, rounds = 1, True, 0
    traffic = Traffic(monkeypatch, device)
    while hit:
        table = few_lists(kind, "slab", device, 1000, FEW_NODES["slab"])
        before, done = held_and_added(batch, table, keys)
        traffic.rounds = 0
        hit, _ = interrupted(lambda table=table: call(table, keys, 3 * keys), number)
        rounds = traffic.rounds
        is_whole(table, *([before, done] if hit else [done]))
        number += step
    assert rounds > 1
