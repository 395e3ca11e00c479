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
from warphash import HashMap, MultiMap, TableFull
from warphash.runtime.devices import engine_for
from warphash.storage.chains.chain_array import ChainArray
from warphash.storage.chains.element_lists import ElementLists
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
