"""Every public verb of every class and design, on threads that share a table: each call is one operation."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from support.cases import design_names, multi_designs
from support.engines import one_of_each
from support.inside import parts_of
from support.verbs import CONSTANT, DERIVED, KINDS, THREADS, VERBS, World, call, has, public
from warphash import HashMap, MultiMap
from warphash.table.locks import ReadWriteLock

TIMES = 5
"""Calls of a verb by each thread."""

IN_SLOTS, IN_ROWS = "u4", "V24"
WIDE = ("bucketed_cuckoo", "slab", "dynamic_cuckoo")
"""Designs of which keys wider than a word are tried, too: in rows, in rows behind lists, and in subtables."""


def worlds() -> list[Any]:
    """Kind, design and key type of each table."""
    found = [(kind, design, IN_SLOTS) for kind in ("HashMap", "HashSet") for design in design_names()]
    found += [("HashMap", design, IN_ROWS) for design in WIDE]
    return found + [("MultiMap", design, IN_SLOTS) for design in multi_designs()]


def crossed() -> list[Any]:
    shown = ("bucketed_cuckoo", IN_SLOTS)
    return [
        pytest.param(
            *world,
            verb,
            id="-".join((*world, verb)),
            marks=[pytest.mark.slow] * (verb in DERIVED and world[1:] != shown),
        )
        for world in worlds()
        for verb in public(world[0])
        if verb in VERBS
    ]


@pytest.fixture(autouse=True)
def threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-6)
    yield
    sys.setswitchinterval(before)


def side_by_side(*works: Callable[[threading.Event], None]) -> None:
    """Run each on a thread of its own; when the first fails or the first `THREADS` are done, all are told to stop."""
    stop = threading.Event()

    def run(work: Callable[[threading.Event], None]) -> None:
        try:
            work(stop)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(run, work) for work in works]
        for future in running[:THREADS]:
            future.exception()
        stop.set()
    for future in running:
        future.result()


def again_and_again(world: World, verb: str, number: int, times: int, stop: threading.Event) -> None:
    for _ in range(times):
        if stop.is_set():
            return
        call(world, verb, world.owns[number])


def come_and_go(world: World, stop: threading.Event) -> None:
    """The writer of the coming keys; it also moves all keys into more and into less memory."""
    turn = 0
    while not stop.is_set():
        world.insert(world.coming)
        if turn % 4 == 0:
            world.table.reserve(8 * len(world.stable))
        world.other.insert(world.keys(world.others))
        world.erase(world.coming)
        if turn % 4 == 2:
            world.table.shrink()
        turn += 1


def try_out(world: World, verb: str, times: int = TIMES) -> None:
    """A verb on two threads, beside the writer."""
    works = [functools.partial(again_and_again, world, verb, number, times) for number in range(THREADS)]
    side_by_side(*works, functools.partial(come_and_go, world))
    if verb == "clear":
        world.table.check()
        return
    world.erase(world.coming)
    world.is_left_with(np.repeat(world.stable, world.copies))


@pytest.mark.parametrize("kind", KINDS)
def test_every_public_verb_is_tried(kind: str) -> None:
    missing = set(public(kind)) - VERBS.keys()
    assert not missing, f"{kind} has {sorted(missing)}: say in support/verbs.py what a thread does with them"


@pytest.mark.parametrize(("kind", "design", "key", "verb"), crossed())
def test_a_verb_beside_itself_and_a_writer(kind: str, design: str, key: str, verb: str) -> None:
    try_out(World(kind, design, key), verb)


@pytest.mark.parametrize("device", one_of_each("emulated"))
@pytest.mark.parametrize(
    ("kind", "design", "verb"),
    [
        *(("MultiMap", "slab", verb) for verb in ("count", "find_all", "stats")),
        *(("HashMap", "dynamic_cuckoo", verb) for verb in ("__len__", "find", "items", "guest_counts", "check")),
    ],
)
def test_a_verb_beside_itself_and_a_writer_on_kernels_of_a_gpu(device: str, kind: str, design: str, verb: str) -> None:
    try_out(World(kind, design, device=device, size=40), verb, times=2)


class _Counted(ReadWriteLock):
    """A lock, and how often a verb has taken it."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def read(self, *given: Any, **options: Any) -> Any:
        self.taken += 1
        return super().read(*given, **options)

    def write(self, *given: Any, **options: Any) -> Any:
        self.taken += 1
        return super().write(*given, **options)


@pytest.mark.parametrize(
    ("kind", "verb"),
    [
        pytest.param(kind, verb, id=f"{kind}-{verb}")
        for kind in KINDS
        for verb in public(kind)
        if verb in VERBS and verb not in CONSTANT and (kind, verb) != ("MultiMap", "guest_counts")
    ],
)
def test_a_verb_takes_the_lock_once(monkeypatch: pytest.MonkeyPatch, kind: str, verb: str) -> None:
    """So nobody can change the table in its midst."""
    lock, seen = _Counted(), list[int]()
    world = World(kind, "slab" if has(kind, "slab", verb) else "dynamic_cuckoo", size=40)
    parts_of(world.table).guarded.lock = lock
    of = next(vars(each)[verb] for each in KINDS[kind].__mro__ if verb in vars(each))

    def counted(*given: Any, **options: Any) -> Any:
        before = lock.taken
        try:
            return (of.fget if isinstance(of, property) else of)(*given, **options)
        finally:
            if any(table is world.table for table in given[:2]):
                seen.append(lock.taken - before)

    monkeypatch.setattr(KINDS[kind], verb, property(counted) if isinstance(of, property) else counted)
    call(world, verb, world.owns[0])
    assert seen and set(seen) == {1}


@pytest.mark.parametrize("key", [IN_SLOTS, IN_ROWS])
@pytest.mark.parametrize("design", design_names())
def test_find_or_insert_answers_with_a_value_that_was_inserted(design: str, key: str) -> None:
    """Beside an eraser of the same keys, the default of a find would be one that was never there."""
    world = World("HashMap", design, key)
    keys = world.keys(world.coming)

    def work(stop: threading.Event, number: int) -> None:
        legal = {world.values(world.coming, more).tobytes(): more for more in range(THREADS)}
        for _ in range(20):
            if stop.is_set():
                return
            values, added = world.table.find_or_insert(keys, world.values(world.coming, number))
            assert legal[values.tobytes()] == number or not world.is_whole(added)

    def erase(stop: threading.Event) -> None:
        while not stop.is_set():
            world.table.erase(keys)

    side_by_side(*(functools.partial(work, number=number) for number in range(THREADS)), erase)
    world.erase(world.coming)
    world.is_left_with(world.stable)


def test_lookups_of_many_lengths_of_a_multimap() -> None:
    """What a lookup tells its kernel is its own: a few keys beside many, of which nobody counts too many."""
    table = MultiMap("u4", "u4", device="cpu", seed=1)
    keys = np.arange(1000, dtype=np.uint32)
    table.insert(keys, keys)

    def work(stop: threading.Event, n: int) -> None:
        for _ in range(1000):
            if stop.is_set():
                return
            assert (table.count(keys[:n]) == 1).all()
            values, offsets = table.find_all(keys[:n])
            assert (values == keys[:n]).all() and (offsets == np.arange(n + 1)).all()

    side_by_side(*(functools.partial(work, n=n) for n in (10, 1000)))


def test_a_clearing_that_was_put_off_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two lookups that come together, the second waits until the first one has cleared the memory."""
    table = HashMap("u4", "u4", capacity=1 << 16, design="bucketed_cuckoo", device="cpu", seed=1)
    keys = np.arange(1 << 10, dtype=np.uint32)
    table.insert(keys, keys)
    table.clear()
    engine, filled, inside = parts_of(table).front.engine, [], threading.Event()
    original = engine.fill

    def fill(*given: Any) -> None:
        filled.append(given)
        inside.wait(0.05)
        original(*given)

    monkeypatch.setattr(engine, "fill", fill)
    side_by_side(*[lambda _stop: np.testing.assert_array_equal(table.contains(keys), False)] * 2)
    assert len(filled) == 1
