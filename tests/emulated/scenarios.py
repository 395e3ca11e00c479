"""What is raced: batches that make the lanes of a kernel meet, each verb checked against the dict oracle."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest

import warphash
from support.cases import Case, MultiCase
from support.hashing import mixed
from support.inside import storage_of
from support.mixed import Recorder
from support.model import Model
from support.multi_model import MultiModel
from support.passes import in_one_launch, in_passes
from support.quotients import array_of, held_locks, keys_with
from support.types import Array, special_keys
from warphash import Operation
from warphash.designs.layout import LINE_BYTES, Quotients
from warphash.errors import TableFull, WarphashError
from warphash.runtime.cuda.nvrtc import CompileError
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine
from warphash.storage.quotient import array as quotient_array
from warphash.storage.quotient import route
from warphash.storage.tickets import array as ticket_array

Scenario = Callable[[Case, np.random.Generator], None]


def without_cas128(source: str) -> str:
    """Kernels for a GPU that swaps no 16 bytes at once."""
    return f"#define WARPHASH_NO_CAS128\n{source}"


@dataclass(frozen=True)
class Races:
    """One kind of table, and how its kernels are compiled.

    Attributes
    ----------
    word, value
        Types of keys and of values, which are the same if ``value`` is empty.
    multi
        Whether it is a `MultiMap`.
    """

    design: str
    word: str
    parameters: dict[str, Any] = field(default_factory=dict)
    rewrite: Callable[[str], str] = str
    value: str = ""
    multi: bool = False

    def __str__(self) -> str:
        notes = ["locks"] * (self.rewrite is without_cas128) + [self.value] * bool(self.value) + ["multi"] * self.multi
        return "-".join([self.design, *(f"{k}={v}" for k, v in self.parameters.items()), self.word, *notes])

    @property
    def axes(self) -> dict[str, str]:
        """What kinds of tables differ in."""
        return {"races": str(self)}

    @property
    def case(self) -> Case:
        kind = MultiCase if self.multi else Case
        return kind("emulated", self.design, self.word, self.value or self.word, self.parameters)

    @property
    def is_wide(self) -> bool:
        """Whether keys or values are wider than a word."""
        case = self.case
        return max(case.key_dtype.itemsize, 0 if case.is_set else case.value_dtype.itemsize) > 8


@cache
def _engine(rewrite: Callable[[str], str]) -> EmulatedEngine:
    return EmulatedEngine(rewrite)


@contextmanager
def emulation(rewrite: Callable[[str], str], seed: int) -> Iterator[None]:
    """Tables on device "emulated" run rewritten kernels, under the schedules of ``seed``."""
    with (
        mock.patch.object(emulated, "engine", lambda: _engine(rewrite)),
        mock.patch.object(emulated, "schedule_seed", seed),
    ):
        yield


def failure(scenario: Scenario, races: Races, seed: int) -> str | None:
    """Run one scenario under one schedule; what went wrong, if anything did."""
    with emulation(races.rewrite, seed):
        try:
            scenario(races.case, np.random.default_rng(seed))
        except CompileError:
            raise
        except (AssertionError, WarphashError) as error:
            return f"{scenario.__name__} on {races}, schedule_seed {seed}: {str(error) or type(error).__name__}"
    return None


def assert_no_failure(scenario: Scenario, races: Races, seeds: range) -> None:
    for seed in seeds:
        if said := failure(scenario, races, seed):
            pytest.fail(said)


# ---- the scenarios
def pool(case: Case, rng: np.random.Generator, n: int) -> Array:
    """``n`` distinct keys, of which eight are patterns that slots use themselves, or nearly."""
    return np.concatenate([case.keys(n - 8, rng), special_keys(case.key_dtype)])


def crowd(keys: Array, n: int, rng: np.random.Generator) -> Array:
    """``n`` elements over few keys, so that a key's copies are in one warp, in others and in other blocks."""
    return rng.choice(keys, n)


def numbers(case: Case, n: int) -> Array:
    """Distinct values: a mixture of two shows."""
    return (np.arange(1, n + 1, dtype=np.uint64) * 0x0000000100000001).astype(case.value_dtype)


def copies_of_new_keys(case: Case, rng: np.random.Generator) -> None:
    """Two batches that insert each key many times, into buckets that fill up meanwhile."""
    keys = pool(case, rng, 96)
    table, model = case.table(capacity=64, on_full="grow"), Model()
    for some in (keys[:40], keys):
        batch = crowd(some, 600, rng)
        values = numbers(case, len(batch))
        model.inserted(batch, values, table.insert(batch, values))
    model.agrees(table, keys)


def evictions(case: Case, rng: np.random.Generator) -> None:
    """Distinct keys for nearly all slots, at once: many chains of evictions through the same buckets."""
    keys = pool(case, rng, 300)
    table, model = case.table(capacity=len(keys)), Model()
    values = numbers(case, len(keys))
    model.inserted(keys, values, table.insert(keys, values, assume_unique=True))
    model.agrees(table)


def hot_keys(case: Case, rng: np.random.Generator) -> None:
    """Upserts and assignments of a few keys by everybody; some are there, some are new."""
    keys = pool(case, rng, 24)
    table, model = case.table(capacity=64), Model()
    for op in ("add", "min", "xor", "max"):
        batch = crowd(keys, 400, rng)
        values = numbers(case, len(batch))
        model.upserted(batch, values, op, table.upsert(batch, values, op), table)
        model.finds(table, keys)
    batch = crowd(keys, 400, rng)
    values = numbers(case, len(batch))
    model.assigned(batch, values, table.assign(batch, values), table)
    model.agrees(table)


def sums_of_new_keys(case: Case, rng: np.random.Generator) -> None:
    """Upserts of keys that are new, copies far enough apart for different warps: one adds the key, others its value."""
    keys = pool(case, rng, 240)
    table, model = case.table(capacity=300), Model()
    for some in (keys[:120], keys[120:]):
        batch = np.concatenate([rng.permutation(few) for few in np.split(some, 4) for _ in range(8)])
        values = numbers(case, len(batch))
        model.upserted(batch, values, "add", table.upsert(batch, values, "add"), table)
    model.agrees(table, keys)


def erased_and_inserted_again(case: Case, rng: np.random.Generator) -> None:
    """Copies of a key race to erase it; then copies of new keys race for the tombstones."""
    keys = pool(case, rng, 120)
    table, model = case.table(capacity=100), Model()
    model.inserted(keys[:80], numbers(case, 80), table.insert(keys[:80], numbers(case, 80)))
    for _ in range(2):
        batch = crowd(keys[20:], 500, rng)
        model.erased(batch, table.erase(batch))
        batch = crowd(keys, 500, rng)
        values = numbers(case, len(batch))
        model.inserted(batch, values, table.insert(batch, values))
    model.agrees(table, keys)


def erased_in_passes(case: Case, rng: np.random.Generator) -> None:
    """The same in a quotient table, whose batches come to the ranges in passes."""
    with in_passes():
        erased_and_inserted_again(case, rng)


def copies_under_locks(case: Case, rng: np.random.Generator) -> None:
    """Copies of keys that are new, and of keys that are there, for a quotient table in which each takes locks."""
    with in_one_launch():
        hot_keys(case, rng)
        copies_of_new_keys(case, rng)
        sums_of_new_keys(case, rng)


def crowds_under_locks(case: Case, rng: np.random.Generator) -> None:
    """Distinct keys that fill the last slots of a quotient table: many move for others, or are left to the ranges."""
    with in_one_launch():
        keys = pool(case, rng, 400)
        table, model = case.table(capacity=len(keys), load_factor=0.85), Model()
        for few in np.split(keys, 8):
            values = numbers(case, len(few))
            model.inserted(few, values, table.insert(few, values))
            table.check()
            assert not len(held_locks(table)), "a lock is held"
        model.agrees(table, keys)


def by_ranges(case: Case, rng: np.random.Generator) -> None:
    """Batches whose elements all come to the ranges of a quotient table, one by one."""
    with mock.patch.multiple(route, FEW_FOR_A_BUCKET=0, MOST_FOR_A_BUCKET=0):
        for scenario in (copies_of_new_keys, sums_of_new_keys, hot_keys, evictions, builds, erased_and_inserted_again):
            scenario(case, rng)


def crowds_of_few(case: Case, rng: np.random.Generator) -> None:
    """Batches that are one launch each: copies of few keys, and keys that fill most slots of a quotient table."""
    hot_keys(case, rng)
    copies_of_new_keys(case, rng)
    keys = pool(case, rng, 400)
    table, model = case.table(capacity=len(keys), load_factor=0.85), Model()
    for few in np.split(keys, 8):
        batch = np.concatenate([few, rng.choice(few, 10)])
        values = numbers(case, len(batch))
        model.inserted(batch, values, table.insert(batch, values))
        assert not len(held_locks(table)), "a lock is held"
    model.agrees(table, keys)


def crowds_of_one_home(case: Case, rng: np.random.Generator) -> None:
    """More keys of one bucket than it has slots, in one batch of few: some are guests."""
    table, model = case.table(capacity=300), Model()
    array = array_of(table)
    width = (1 << 8 * case.key_dtype.itemsize) // array.buckets
    hashes = 3 * width + np.arange(1, 3 * array.spec.slots_per_bucket // 2) * (width // 64)
    keys = rng.permutation(keys_with(table, hashes.astype(case.key_dtype)))
    values = numbers(case, len(keys))
    model.inserted(keys, values, table.insert(keys, values))
    assert not len(held_locks(table)), "a lock is held"
    model.agrees(table, keys)


def with_a_full_range(case: Case, under_locks: bool, capacity: int = 300) -> tuple[Any, Array]:
    """A quotient table, and more keys of its first range than that has slots; their batches are left."""
    table = case.table(capacity=capacity, load_factor=1.0)
    array = array_of(table)
    assert array.ranges > 10
    if under_locks:
        storage_of(table).store.finish()
        array._is_blank = False  # a table that has had pairs
    of_first_range = np.arange(40) * ((1 << 8 * case.key_dtype.itemsize) // array.ranges // 41)
    return table, keys_with(table, of_first_range.astype(case.key_dtype))


@contextmanager
def ranges_of_two_buckets(under_locks: bool) -> Iterator[None]:
    """Tables made inside have such ranges. Their updates of few elements are two launches under locks, or one."""
    limits = {"MOST_FOR_A_BUCKET": 0 if under_locks else 6, "FEW_FOR_A_BUCKET": 1000}
    with mock.patch.object(quotient_array, "MOST_RANGE_BUCKETS", 2), mock.patch.multiple(route, **limits):
        yield


def adopted_pairs(case: Case, rng: np.random.Generator) -> None:
    """More keys than a range has slots, in batches of few, each key twice: a quotient table adopts the others."""
    for under_locks in (False, True):
        with ranges_of_two_buckets(under_locks):
            table, keys = with_a_full_range(case, under_locks)
            model, keys = Model(), rng.permutation(np.repeat(keys, 2))
            values = numbers(case, len(keys))
            added = table.insert(keys, values)
            assert storage_of(table).store.state.awaited == len(keys)
            model.inserted(keys, values, added)
            model.agrees(table, keys)


def adopted_pairs_that_come_again(case: Case, rng: np.random.Generator) -> None:
    """A quotient table has adopted pairs, and then all lines are vacant when their keys come again."""
    for under_locks in (False, True):
        with ranges_of_two_buckets(under_locks):
            table, keys = with_a_full_range(case, under_locks)
            array = array_of(table)
            before, values = np.split(numbers(case, 2 * len(keys)), 2)
            assert table.insert(keys, before).all()
            slots = array.scan(0, 0, 0)
            array.engine.fill(array.table.slots, 0, array.buckets * LINE_BYTES)
            keys = rng.permutation(keys)
            added = table.assign(keys, values)
            assert np.count_nonzero(added) == slots < len(keys), "adopted keys were added again"
            assert storage_of(table).store.state.awaited == 2 * len(keys)
            assert (table.find(keys)[0] == values).all(), "an adopted pair has another value"
            table.check()


def adopted_pairs_are_erased(case: Case, rng: np.random.Generator) -> None:
    """Keys of a quotient table leave and come again, while it has adopted pairs, and nobody waits for any batch."""
    with ranges_of_two_buckets(under_locks=True):
        table, keys = with_a_full_range(case, under_locks=True, capacity=2000)
        store, model = storage_of(table).store, Model()
        model.inserted(keys, numbers(case, len(keys)), table.insert(keys, numbers(case, len(keys))))
        for n in (30, 25):
            gone = rng.permutation(np.repeat(rng.choice(keys, n, replace=False), 3))
            model.erased(gone, table.erase(gone))
            batch = rng.permutation(np.repeat(rng.choice(keys, 20, replace=False), 2))
            values = numbers(case, len(batch))
            model.inserted(batch, values, table.insert(batch, values))
        assert len(store.state.left) == 5, "nobody has waited"
        gone = rng.permutation(np.concatenate([keys[:20], keys[:20]]))
        model.erased(gone, table.erase(gone))
        model.agrees(table, keys)


def many_behind_adopted_pairs(case: Case, rng: np.random.Generator) -> None:
    """A quotient table has adopted pairs, so all elements of the next batch, more than a thousand, go to one block."""
    with ranges_of_two_buckets(under_locks=True):
        table, keys = with_a_full_range(case, under_locks=True, capacity=4000)
        model = Model()
        model.inserted(keys, numbers(case, len(keys)), table.insert(keys, numbers(case, len(keys))))
        batch = np.concatenate([np.repeat(case.keys(300, rng), 4), rng.permutation(np.repeat(keys, 4))])
        values = numbers(case, len(batch))
        added = table.insert(batch, values)
        assert storage_of(table).store.state.awaited == len(keys) + len(batch)
        model.inserted(batch, values, added)
        model.agrees(table)


def left_by_the_locks(case: Case, rng: np.random.Generator) -> None:
    """Batches of a few keys, of which the locks leave more elements than a block has threads."""
    with in_one_launch():
        keys = pool(case, rng, 60)
        table, model = case.table(capacity=400), Model()
        for few in (keys[:4], keys[4:24], keys[10:]):
            batch = rng.permutation(np.concatenate([few, np.repeat(few[:2], 900)]))
            values = numbers(case, len(batch))
            model.inserted(batch, values, table.insert(batch, values))
            values = numbers(case, len(batch))
            model.assigned(batch, values, table.assign(batch, values), table)
            values = numbers(case, len(batch))
            model.upserted(batch, values, "add", table.upsert(batch, values, "add"), table)
        model.agrees(table, keys)


@dataclass(frozen=True)
class FirstRange:
    """Hash values of the first range of a quotient table with buckets enough for slots that one store fills.

    Attributes
    ----------
    buckets, size
        Of the table, and of the range.
    """

    buckets: int
    size: int

    @classmethod
    def of(cls, table: Any, slots: int) -> FirstRange:
        array = array_of(table)
        assert array.spec.slots_per_bucket == slots
        return cls(array.buckets, array.table.range_buckets)

    def hash_in(self, home: int, remainder: int) -> int | None:
        """The hash value of a home and a remainder, if there is one."""
        found = -(-((home << 32) + (remainder << 18)) // self.buckets)
        return found if found * self.buckets >> 18 == (home << 14) + remainder else None

    def second_of(self, home: int, remainder: int) -> int:
        """The second bucket of a key."""
        return int(home + 1 + (mixed(remainder, 32) * (self.size - 1) >> 32)) % self.size

    def of_home(self, home: int, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
        """The remainders of a home with their hash values, in a random order."""
        remainders = (int(r) for r in rng.permutation(1 << 14))
        return ((r, h) for r in remainders if (h := self.hash_in(home, r)) is not None)


def with_a_first_range(case: Case) -> tuple[Any, FirstRange, int]:
    """A quotient table whose slots one store fills, its first range, and the slots of a bucket."""
    slots, fewest = Quotients().forms(4, case.value_dtype.itemsize)[0]
    table = case.table(capacity=slots * (fewest + 300), load_factor=1.0)
    return table, FirstRange.of(table, slots), slots


def puts_without_locks(case: Case, rng: np.random.Generator) -> None:
    """Guests of full buckets, and keys of other homes that differ from them by the mark of a guest alone.

    A lane that sees a guest before its mark takes it for that other key.
    """
    with in_one_launch():
        (table, first, slots), model = with_a_first_range(case), Model()
        full, guests, twins, stuck = list[int](), list[int](), list[int](), list[int]()
        for number in range(6):
            home = 10 * number
            pairs = first.of_home(home, rng)
            full += [h for _, (_, h) in zip(range(slots - number % 2), pairs, strict=False)]
            while len(guests) < 10 * (number + 1):
                remainder, guest = next(pairs)
                second = first.second_of(home, remainder)
                twin = first.hash_in(second, remainder)
                if second % 10 and twin is not None:
                    guests.append(guest)
                    twins.append(twin)
            between = ((r, h) for r, h in pairs if first.second_of(home, r) in range(0, 60, 10))
            stuck += [h for _, (_, h) in zip(range(4), between, strict=False)]
        there, new = (keys_with(table, np.array(hashes, np.uint32)) for hashes in (full, guests + twins + stuck))
        everything = np.concatenate([there, new])
        model.inserted(there, numbers(case, len(there)), table.insert(there, numbers(case, len(there))))
        batch = rng.permutation(np.concatenate([there, new, new[::-1], new]))
        values = numbers(case, len(batch))
        model.assigned(batch, values, table.assign(batch, values), table)
        model.erased(there[::2], table.erase(there[::2]))
        batch = rng.permutation(np.concatenate([everything, everything]))
        values = numbers(case, len(batch))
        model.inserted(batch, values, table.insert(batch, values))
        assert not len(held_locks(table)), "a lock is held"
        assert len(table) == len(model) == len(everything)  # to look at all buckets takes long
        model.finds(table, rng.permutation(everything))


def moves_to_one_slot(case: Case, rng: np.random.Generator) -> None:
    """All keys of several full buckets have one second bucket, with one vacant slot: one of them can move there.

    Each of these buckets gets one more key, whose second bucket is another of them. So each wants that slot.
    """
    with in_one_launch():
        (table, first, slots), model = with_a_first_range(case), Model()
        there, stuck = list[int](), list[int]()
        for number in range(6):
            target, homes = 50 * number + 40, range(50 * number, 50 * number + 40, 5)
            there += [h for _, (_, h) in zip(range(slots - 1), first.of_home(target, rng), strict=False)]
            for home in homes:
                seconds = {h: first.second_of(home, r) for r, h in first.of_home(home, rng)}
                there += [h for h, second in seconds.items() if second == target][:slots]
                stuck += [h for h, second in seconds.items() if second in homes][:1]
        old, new = (keys_with(table, np.array(hashes, np.uint32)) for hashes in (there, stuck))
        model.inserted(old, numbers(case, len(old)), table.insert(old, numbers(case, len(old))))
        model.inserted(new, numbers(case, len(new)), table.insert(new, numbers(case, len(new))))
        assert not len(held_locks(table)), "a lock is held"
        everything = np.concatenate([old, new])
        assert len(table) == len(model) == len(everything)  # to look at all buckets takes long
        model.finds(table, rng.permutation(everything))


def guests_that_come_again(case: Case, rng: np.random.Generator) -> None:
    """Homes of guests get vacant slots, and then the guests are inserted again: each is there already."""
    with in_one_launch():
        keys = pool(case, rng, 300)
        table, model = case.table(capacity=len(keys), load_factor=0.85), Model()
        for few in (keys[:100], keys[99:]):  # behind batches of new keys alone, the table would grow for known ones
            model.inserted(few, numbers(case, len(few)), table.insert(few, numbers(case, len(few))))
        model.erased(keys[:120], table.erase(keys[:120]))
        rest = rng.permutation(keys[120:])
        values = numbers(case, len(rest))
        model.inserted(rest, values, table.insert(rest, values))
        model.agrees(table, keys)


def erased_alone(case: Case, rng: np.random.Generator) -> None:
    """Copies of a key race to erase it from a quotient table, each in a lane of its own."""
    with in_one_launch():
        erased_and_inserted_again(case, rng)


def churned(case: Case, rng: np.random.Generator) -> None:
    """Few keys at a time leave a full table by ranges, and others come: absent keys do not take more and more reads."""
    with mock.patch.multiple(route, FEW_FOR_A_BUCKET=0, MOST_FOR_A_BUCKET=0):
        keys = np.arange(640).astype(case.key_dtype)
        table = case.table(capacity=700, load_factor=1.0, on_full="raise")
        table.insert(keys, numbers(case, len(keys)))
        absent, probes = np.arange(10**6, 10**6 + 3000).astype(case.key_dtype), list[float]()
        for turn in range(300):
            gone = rng.choice(len(keys), 8, replace=False)
            assert table.erase(keys[gone]).all()
            keys[gone] = np.arange(640 + 8 * turn, 648 + 8 * turn).astype(case.key_dtype)
            assert table.insert(keys[gone], numbers(case, 8)).all()
            if turn >= 150 and turn % 10 == 9:
                probes.append(table.probe_counts(absent).mean())  # more and more, until filters are made anew
        assert np.mean(probes) < 1.15, "probes of absent keys"
        table.check()


def churned_and_left(case: Case, rng: np.random.Generator) -> None:
    """The same in a table that nobody waits for: ranges are entered into a list, and their filters made anew.

    Of 8 + 8 bytes, 40 buckets have 120 slots. At times a range of them gets more keys than it has room for, and the
    table is rebuilt, as it should be. So such a table has larger ranges, and more slots.
    """
    is_wide = case.key_dtype.itemsize > 4
    with mock.patch.object(quotient_array, "MOST_RANGE_BUCKETS", 90 if is_wide else 40):
        keys = np.arange(3100).astype(case.key_dtype)
        table = case.table(capacity=5400 if is_wide else 4200, load_factor=1.0)
        table.insert(keys, numbers(case, len(keys)))
        absent, probes = np.arange(10**6, 10**6 + 3000).astype(case.key_dtype), list[float]()
        first = array_of(table)
        for turn in range(100):
            gone = rng.choice(len(keys), 200, replace=False)
            assert table.erase(np.concatenate([keys[gone], keys[gone[::2]]])).sum() == 200
            assert storage_of(table).store.state.left, "the erase was waited for"
            keys[gone] = np.arange(3100 + 200 * turn, 3300 + 200 * turn).astype(case.key_dtype)
            assert table.insert(keys[gone], numbers(case, 200)).all()
            if turn >= 50 and turn % 10 == 9:
                probes.append(table.probe_counts(absent).mean())
            if turn % 20 == 19:
                assert len(table) == 3100 and table.contains(keys).all() and array_of(table) is first
                of_ranges = first.engine.to_host(first.table.counters, np.uint32, first.ranges)
                assert not of_ranges.any(), "a counter is kept"
                before = first._updates.batch.renewals_before
                assert not first.engine.to_host(before, np.uint64, 1).any(), "the length of a list is kept"
        assert np.mean(probes) < 1.08, "probes of absent keys"
        table.check()


def crowded_range(case: Case, rng: np.random.Generator) -> None:
    """Few keys for a table of several ranges, and one that most of the elements have."""
    with mock.patch.multiple(route, FEW_FOR_A_BUCKET=0, MOST_FOR_A_BUCKET=0):
        keys = pool(case, rng, 100)
        table, model = case.table(capacity=20_000, on_full="raise"), Model()
        for op in ("add", "max"):
            batch = rng.permutation(np.concatenate([keys, np.repeat(keys[:1], 400)]))
            values = numbers(case, len(batch))
            model.upserted(batch, values, op, table.upsert(batch, values, op), table)
        model.agrees(table)


def all_erased_at_once(case: Case, rng: np.random.Generator) -> None:
    """A full table loses all of its keys in one batch, while searches for the others go past them."""
    keys = pool(case, rng, 150)
    for _ in range(3):
        table, model = case.table(capacity=len(keys), load_factor=1.0, on_full="raise"), Model()
        model.inserted(keys, numbers(case, len(keys)), table.insert(keys, numbers(case, len(keys))))
        batch = rng.permutation(np.concatenate([keys, keys[::3]]))
        model.erased(batch, table.erase(batch))
        model.agrees(table, keys)


def small_batches(case: Case, rng: np.random.Generator) -> None:
    """Batches of no more elements than one block takes, in which keys repeat: each is one kernel."""
    keys = pool(case, rng, 60)
    table, model = case.table(capacity=40, on_full="grow"), Model()
    for _ in range(6):
        batch = crowd(keys, 60, rng)
        values = numbers(case, len(batch))
        model.inserted(batch, values, table.insert(batch, values))
        model.upserted(batch, values, "add", table.upsert(batch, values, "add"), table)
        batch = crowd(keys, 30, rng)
        model.erased(batch, table.erase(batch))
        assert len(table) == len(model)
    model.agrees(table, keys)


def batches_that_grow(case: Case, rng: np.random.Generator) -> None:
    """Batches of new keys into a table that was made for few; then the first go, and all come again."""
    keys = pool(case, rng, 400)
    table, model = case.table(capacity=8, on_full="grow"), Model()
    for batch in np.array_split(keys, 4):
        values = numbers(case, len(batch))
        model.inserted(batch, values, table.insert(batch, values))
    model.erased(keys[:6], table.erase(keys[:6]))
    values = numbers(case, len(keys))
    model.inserted(keys, values, table.insert(keys, values))
    model.agrees(table, keys)
    table.check()


def evictions_from_lines_of_one_key(case: Case, rng: np.random.Generator) -> None:
    """Keys as wide as a bucket, many of whose first ones are taken: chains through locked buckets, values behind."""
    keys = np.arange(1, 201).astype("S128")
    for seed in range(4):
        rng.shuffle(keys)
        options = {"capacity": 200, "load_factor": 0.8, "seed": seed, **case.parameters}
        table = warphash.HashMap("S128", "u8", device=case.engine, design=case.design, **options)
        values = keys.astype("u8")
        assert table.insert(keys, values, assume_unique=True).all()
        found_values, found = table.find(keys)
        assert found.all() and (found_values == values).all()
        table.check()


def subtables_that_grow_and_shrink(case: Case, rng: np.random.Generator) -> None:
    """Doubled and halved several times, each subtable in its turn; all keys are found behind each batch."""
    keys = np.arange(1, 1201).astype(case.key_dtype)
    rng.shuffle(keys)
    table = case.table(capacity=64, alpha=0.4, beta=0.85)
    for batch in np.split(keys, 12):
        table.insert(batch, numbers(case, 100))
    before = table.stats()
    for number, batch in enumerate(np.split(keys, 12)[:-1], 1):
        table.erase(batch)
        assert table.find(keys[100 * number :])[1].all()
        table.check()
    after = table.stats()
    assert after.resizes >= before.resizes + 3 and after.rebuilds == before.rebuilds, "not halved one by one"


def batches_of_many_rows(case: Case, rng: np.random.Generator) -> None:
    """More elements than lanes run at once: warps whose lanes collaborate have their pools full and empty by turns."""
    keys = pool(case, rng, 4000)
    table, model = case.table(capacity=3300, load_factor=0.95, on_full="raise"), Model()
    new = keys[:3000]
    model.inserted(new, numbers(case, 3000), table.insert(new, numbers(case, 3000), assume_unique=True))
    model.finds(table, keys)
    batch = crowd(keys[2700:3300], 3000, rng)
    model.inserted(batch, numbers(case, 3000), table.insert(batch, numbers(case, 3000)))
    batch = crowd(keys, 3000, rng)
    model.erased(batch, table.erase(batch))
    model.agrees(table, keys)
    table.check()


def sums_of_rows(case: Case, rng: np.random.Generator) -> None:
    """Everybody adds rows of numbers to a few keys, of which some are new."""
    table = warphash.HashMap("u8", ("f4", (5,)), device=case.engine, design=case.design, capacity=100, seed=3)
    sums = np.zeros((9, 5), np.float32)
    for first in (0, 3):
        ids = rng.integers(first, first + 6, 200)
        rows = rng.integers(0, 100, (200, 5)).astype(np.float32)  # whose sums are exact
        np.add.at(sums, ids, rows)
        added = table.upsert(ids.astype(np.uint64), rows, "add")
        assert added.sum() == (6 if first == 0 else 3)
    assert (table[np.arange(9, dtype=np.uint64)] == sums).all()
    table.check()


def builds(case: Case, rng: np.random.Generator) -> None:
    """Tables made of arrays: of keys that nearly fill them, and of keys that repeat."""
    keys, full = pool(case, rng, 300), {"capacity": 300}
    some_twice = rng.permutation(np.concatenate([keys[:270], keys[:30]]))
    with mock.patch.object(route, "MOST_FOR_A_BUCKET", 0):  # no build of a quotient table is an update of few
        for batch, fill in (
            (keys, full),
            (some_twice, full),
            (crowd(keys, 900, rng), {}),
            (np.repeat(keys[:3], 200), {}),
        ):
            values = numbers(case, len(batch))
            table = case.from_arrays(batch, values, **fill)
            found_values, found = table.find(batch)
            given = set(zip(batch.tolist(), values.tolist(), strict=True))
            assert len(table) == len(np.unique(batch)) and found.all()
            assert given.issuperset(zip(batch.tolist(), found_values.tolist(), strict=True))
            table.check()


def moves(case: Case, rng: np.random.Generator) -> None:
    """A quotient table of several ranges, in which many keys are guests, moves to more lines and to fewer ones."""
    with in_passes(range_buckets=24):
        keys = pool(case, rng, 300)
        table, model = case.table(capacity=300, load_factor=0.8), Model()
        model.inserted(keys, numbers(case, 300), table.insert(keys, numbers(case, 300)))
        for capacity in (330, 700, 0):
            if capacity:
                table.reserve(capacity)
            else:
                model.erased(keys[:30], table.erase(keys[:30]))
                table.shrink()
            model.agrees(table, keys)
            table.check()


SCENARIOS: tuple[Scenario, ...] = (
    copies_of_new_keys,
    evictions,
    hot_keys,
    sums_of_new_keys,
    erased_and_inserted_again,
    small_batches,
    batches_that_grow,
    builds,
)


# ---- of lists: finds, inserts, assigns and erases in one launch
def mixed_batches(case: Case, rng: np.random.Generator) -> None:
    """Everybody meets at a few keys, whose new slots come at the ends of lists that get longer meanwhile."""
    keys = pool(case, rng, 14)
    recorder = Recorder(case, case.table(capacity=4, on_full="grow"))
    for n in (40, 60, 40, 250, 100, 60):
        recorder.execute(*recorder.drawn(keys, n, rng))
    recorder.table.check()


def mixed_batches_until_full(case: Case, rng: np.random.Generator) -> None:
    """The pool ends within a batch; some find no room, then erased slots come back, and not always enough of them."""
    keys = pool(case, rng, 90)
    recorder = Recorder(case, case.table(capacity=4, on_full="raise"))
    everything = rng.permutation(keys)
    recorder.execute(np.full(len(keys), Operation.INSERT, np.uint8), everything)
    assert recorder.full == 1, "there was room for all"
    for n in (80, 250, 60):
        recorder.execute(*recorder.drawn(keys, n, rng))
    recorder.erase_everything(everything)
    recorder.execute(*recorder.drawn(keys[-10:], 100, rng))
    recorder.table.check()


def finds_beside_first_inserts(case: Case, rng: np.random.Generator) -> None:
    """Two keys come into empty lists, while finds read a node some of whose slots are filled meanwhile."""
    keys = pool(case, rng, 10)[:2]
    recorder = Recorder(case, case.table(capacity=4, on_full="grow"))
    for _ in range(20):
        operations = rng.choice([Operation.FIND, Operation.INSERT], 40).astype(np.uint8)
        recorder.execute(operations, rng.choice(keys, 40))
        recorder.table.clear()
        recorder.pairs = {}


def pairs_that_repeat(case: Case, rng: np.random.Generator) -> None:
    """A key stands many times: copies race to be appended, erased from the front, all erased, and taken back."""
    of_pairs = MultiCase(case.engine, case.design, case.key, case.value, case.parameters)
    keys = pool(case, rng, 12)
    table, model = of_pairs.table(capacity=40, on_full="raise"), MultiModel()
    while True:
        batch, values = crowd(keys, 40, rng), crowd(numbers(case, 8), 40, rng)  # a pair stands several times too
        try:
            table.insert(batch, values)
        except TableFull:
            model.agrees(table, keys)
            break
        model.inserted(batch, values, table)
    batch = crowd(keys, 30, rng)
    model.erased(batch, table.erase(batch))
    batch = crowd(keys[:4], 60, rng)
    model.erased_all(batch, table.erase_all(batch))
    model.agrees(table, keys)
    batch = np.repeat(keys[5:9], 5)
    table.insert(batch, numbers(case, 20))
    model.inserted(batch, numbers(case, 20), table)
    model.agrees(table, keys)


def erased_slots_used_again(case: Case, rng: np.random.Generator) -> None:
    """Copies race for the slots that copies of the same keys left, in as many nodes as there were."""
    parameters = {**case.parameters, "reuse_erased": True}
    of_pairs = MultiCase(case.engine, case.design, case.key, case.value, parameters)
    keys = pool(case, rng, 12)
    table, held = of_pairs.table(capacity=200), Counter[tuple[int, int]]()
    batch, values = crowd(keys, 200, rng), numbers(case, 200)
    table.insert(batch, values)
    held.update(zip(batch.tolist(), values.tolist(), strict=True))
    nodes = table.stats().nodes
    for _ in range(3):
        gone = crowd(keys, 90, rng)
        before = Counter(as_pairs(table))
        assert before == held
        erased = gone[table.erase(gone)]
        held = Counter(as_pairs(table))
        assert held <= before and Counter(key for key, _ in (before - held).elements()) == Counter(erased.tolist())
        values = numbers(case, len(erased))
        table.insert(erased, values)
        held.update(zip(erased.tolist(), values.tolist(), strict=True))
        assert Counter(as_pairs(table)) == held
        assert table.stats().nodes == nodes
        table.check()


def as_pairs(table: Any) -> Iterator[tuple[int, int]]:
    """All pairs of a table."""
    return zip(*(column.tolist() for column in table.to_arrays()), strict=True)


def copies_of_lists(case: Case, rng: np.random.Generator) -> None:
    """A full table is made again of its pairs, which are added in their order, key by key, until nodes are missing."""
    of_pairs = MultiCase(case.engine, case.design, case.key, case.value, case.parameters)
    keys = pool(case, rng, 40)
    table, model = of_pairs.table(capacity=40, on_full="raise"), MultiModel()
    for n in (40, 40, 25, 12, 6, 3, 2, 1):
        batch, values = crowd(keys, n, rng), numbers(case, n)
        try:
            table.insert(batch, values)
        except TableFull:
            continue
        model.inserted(batch, values, table)
    twin = copy.deepcopy(table)
    model.agrees(twin, keys)
    model.agrees(table)


def batches_as_large_as_the_pool(case: Case, rng: np.random.Generator) -> None:
    """As many elements as nodes are free: while they are placed, some hold nodes that others need."""
    keys = pool(case, rng, 150)
    table, model = case.table(capacity=24, on_full="raise"), Model(case.is_set)
    nodes = storage_of(table).store.array.pool
    while (n := min(nodes.free(), len(keys) - len(model))) > 0:
        batch = keys[len(model) :][:n]
        try:
            values = None if case.is_set else numbers(case, n)
            model.inserted(batch, values, case.insert(table, batch, values))
        except TableFull:
            break
        model.agrees(table)
    model.agrees(table, keys)


def values_under_shared_locks(case: Case, rng: np.random.Generator) -> None:
    """Keys that stay, and all of whose wide values are overwritten and read under two sequence locks."""
    with mock.patch.object(ticket_array, "_MOST_VERSIONS", 2):
        keys = pool(case, rng, 12)
        recorder = Recorder(case, case.table(capacity=40))
        recorder.execute(np.full(len(keys), Operation.INSERT, np.uint8), keys)
        for n in (60, 12, 200):
            operations = rng.choice([Operation.FIND, Operation.ASSIGN], n).astype(np.uint8)
            recorder.execute(operations, rng.choice(keys, n))
        recorder.execute(*recorder.drawn(keys, 200, rng))


MIXED_SCENARIOS: tuple[Scenario, ...] = (mixed_batches, mixed_batches_until_full, finds_beside_first_inserts)
