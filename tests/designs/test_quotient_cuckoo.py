"""Quotient cuckoo hashing: the bits of a line, the lines that a find reads, and what happens where sizes change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.faults import at_each_allocation, at_each_line
from support.hashing import permuted
from support.inside import storage_of
from support.passes import in_passes
from support.quotients import FORMS, SLOTS, add, array_of, keys_with, made, value_of
from support.refusals import refusing
from warphash import HashMap, HashSet, TableFull
from warphash.runtime.abi import Op, kind_of
from warphash.storage.batch import Batch
from warphash.storage.quotient import array as quotient
from warphash.storage.quotient import route
from warphash.storage.quotient.array import MOST_RANGE_BUCKETS, geometry_for
from warphash.storage.resize_log import Cause

DEVICES = one_of_each("cpu", "emulated")


def update_without_flags(table: Any, keys: Any, values: Any, op: Op) -> None:
    """Update a table, and do not ask what became of each element."""
    held = [array_of(table).engine.from_host(column) for column in (keys, values)]
    values_at = held[1].ptr if isinstance(table, HashMap) else 0
    storage_of(table).update(Batch(held[0].ptr, values_at, len(keys), op, kind_of(values.dtype)))


def launch_at_most(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a launch have no more elements than this, on any device."""
    for limit in ("LAUNCH_ELEMENTS", "MOST_ELEMENTS"):
        monkeypatch.setattr(route, limit, n)


def bring_to_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a GPU do no batch under locks of buckets."""
    for limit in ("FEW_FOR_A_BUCKET", "MOST_FOR_A_BUCKET"):
        monkeypatch.setattr(route, limit, 0)


def noted_launches(table: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that work on ranges, as they are launched from now on."""
    launched: list[str] = []
    program = array_of(table).program
    run = program.run

    def noted(entry: str, *arguments: Any) -> None:
        name = "build" if entry == "build_groups" else entry
        if name in ("apply", "apply_in_place", "build", "take_over") and arguments[2]:
            launched.append(name)
        run(entry, *arguments)

    monkeypatch.setattr(program, "run", noted)
    return launched


# ---- the hash function, written again
# ---- the bits of a line
def slots_in(lines: Any, slots: int, remainder_bits: int, value: str | None, word_bits: int) -> Any:
    """Occupied and guest bits and remainders of all slots, read as ``kernels/quotient/bucket.cuh`` draws them."""
    bits = np.unpackbits(lines, axis=1, bitorder="little").astype(object)

    def number(first: int, width: int) -> Any:
        return sum(bits[:, first + k] << k for k in range(width))

    if remainder_bits == word_bits:
        return [(bits[:, 32 + j], bits[:, 48 + j], number(64 + word_bits * j, word_bits)) for j in range(slots)]
    if remainder_bits == 46:
        tags = [32 + 16 * j for j in range(slots)]
        first, stride = 32 + 16 * slots, 64 if value == "u4" else 32
        rests = [448 if value == "u8" and j == 3 else first + stride * j for j in range(slots)]
        parts = zip(tags, rests, strict=True)
        return [(bits[:, at], bits[:, at + 1], number(at + 2, 14) | number(rest, 32) << 14) for at, rest in parts]
    first, width = 8 if remainder_bits == 22 and value == "u4" else 32, remainder_bits + 2
    starts = [first + width * j for j in range(slots)]
    return [(bits[:, at], bits[:, at + 1], number(at + 2, remainder_bits)) for at in starts]


@pytest.mark.parametrize(("key", "value", "slots", "buckets", "remainder_bits"), FORMS)
def test_the_bits_of_a_line_tell_home_and_remainder_of_its_keys(
    key: str, value: str | None, slots: int, buckets: int, remainder_bits: int
) -> None:
    table = made(key, value, slots * buckets)
    array, word_bits = array_of(table), 8 * int(key[1])
    assert (array.spec.slots_per_bucket, array.buckets) == (slots, array.ranges * array.table.range_buckets)
    assert buckets <= array.buckets < buckets + array.ranges
    some = np.random.default_rng(1).integers(0, 1 << word_bits, 1200, key)
    assert add(table, np.unique(some)).all()
    keys = np.unique(some)
    lines = array.engine.to_host(array.table.slots, np.uint8, 64 * array.buckets).reshape(-1, 64)
    used = np.flatnonzero(lines.any(axis=1))
    decoded = slots_in(lines[used], slots, remainder_bits, value, word_bits)
    expected = set()
    for h in permuted(array_of(table), keys).tolist():
        home, low = divmod(h * array.buckets, 1 << word_bits)
        expected.add((home, h if remainder_bits == word_bits else low >> word_bits - remainder_bits))
    homes = {(int(used[i]), r[i]) for occupied, guest, r in decoded for i in np.flatnonzero(occupied & ~guest & 1)}
    guests = {(int(used[i]), r[i]) for occupied, guest, r in decoded for i in np.flatnonzero(occupied & guest)}
    elsewhere = expected - homes
    assert len(expected) == len(keys) == len(homes) + len(guests)
    assert homes <= expected and len(elsewhere) == len(guests)
    size = array.table.range_buckets
    assert sorted((b // size, r) for b, r in elsewhere) == sorted((b // size, r) for b, r in guests)
    if value:
        words = lines[used].view(value)
        last = {"u4": words[:, 5::2], "u8": words[:, 3:7]}[value] if remainder_bits == 46 else words[:, -slots:]
        held = [last[i, j] for j, (occupied, *_) in enumerate(decoded) for i in np.flatnonzero(occupied)]
        assert sorted(held) == sorted(value_of(keys, value))
    table.check()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("hash", ["mixer", "universal"])
@pytest.mark.parametrize(
    ("key", "value", "slots", "buckets", "remainder_bits"), [f for f in FORMS if f[3] < 1 << 18 or f[0] == "u8"]
)
def test_every_key_is_itself_again_and_no_other(
    device: str, hash: str, key: str, value: str | None, slots: int, buckets: int, remainder_bits: int
) -> None:
    table = made(key, value, slots * buckets, device=device, hash=hash)
    last = (1 << 8 * int(key[1])) - 1
    keys = np.array([*range(4), *range(last - 3, last + 1), *(1 << b for b in range(2, 8 * int(key[1])))], key)
    add(table, keys)
    assert sorted(table.keys().tolist()) == sorted(keys.tolist()) and len(table) == len(keys)
    assert not table.contains(np.arange(4, 1000, dtype=key)[~np.isin(np.arange(4, 1000, dtype=key), keys)]).any()


@pytest.mark.parametrize(
    ("key", "value", "slots", "buckets", "remainder_bits"), [*FORMS, ("u4", "u4", 10, 1 << 18, 14)]
)
def test_two_hash_values_in_a_row_are_two_keys(
    key: str, value: str | None, slots: int, buckets: int, remainder_bits: int
) -> None:
    table = made(key, value, slots * buckets)
    word, last = np.dtype(key).type, (1 << 8 * int(key[1])) - 1
    drawn = np.random.default_rng(2).integers(2, last - 2, 500, key, endpoint=True)
    even = np.unique(np.concatenate([drawn, np.array([2, last - 1], key)]) & word(last - 1))
    there, before, behind = (keys_with(table, even + word(step)) for step in (0, last, 1))
    assert add(table, there).all() and table.contains(there).all()
    assert not table.contains(before).any() and not table.contains(behind).any()
    assert sorted(table.keys().tolist()) == sorted(there.tolist())
    table.check()


# ---- what a find reads
def test_a_find_reads_the_lines_of_the_simulation() -> None:
    n = int(0.72 * 10 * (1 << 18))  # 0.9 of the bytes of the smallest table with 10 slots a bucket
    table = HashMap.from_arrays(
        *(np.arange(n, dtype=np.uint32),) * 2, design="quotient_cuckoo", load_factor=0.72, device="cpu", seed=5
    )
    array = array_of(table)
    assert array.spec.slots_per_bucket == 10 and n * 8 / (64 * array.buckets) == pytest.approx(0.9, abs=0.001)
    # The keys of a home are Poisson distributed. Those beyond ten are guests elsewhere, and so are a few whose home was
    # full of guests. A simulation has 1.035 if all homes are filled before the first guest comes, otherwise 1.038.
    beyond = sum((k - 10) * 7.2**k * math.exp(-7.2) / math.factorial(k) for k in range(11, 60)) / 7.2
    present = table.probe_counts(np.arange(0, n, 7, dtype=np.uint32)).mean()
    absent = table.probe_counts(np.arange(n, 2 * n, 7, dtype=np.uint32)).mean()
    assert 1 + beyond < present < 1.038
    assert absent == pytest.approx(1.008, abs=0.001)
    assert table.stats().nbytes / n == pytest.approx(8 / 0.9, rel=0.002)


@pytest.mark.parametrize("device", DEVICES)
def test_arrays_of_one_size_share_sizes_and_no_addresses_and_no_constants(device: str) -> None:
    options: Any = {"capacity": 500, "device": device, "design": "quotient_cuckoo"}
    first, second = (HashMap("u4", "u4", seed=seed, **options) for seed in (1, 2))
    one, other = array_of(first), array_of(second)
    assert one._form is other._form and one.buckets == one.table.buckets == other.table.buckets
    assert one.table.slots != other.table.slots and one.table.counters != other.table.counters
    assert one.table.multiplier[0] != other.table.multiplier[0] and not one._form.table.slots
    keys = np.arange(400, dtype=np.uint32)
    add(first, keys)
    assert len(second) == 0 and not second.contains(keys).any()
    add(second, keys)
    first.check(), second.check()


@pytest.mark.parametrize("device", DEVICES)
def test_an_erase_makes_the_filters_anew(device: str) -> None:
    table = made("u4", "u4", 7 * 100, device=device)
    keys = np.arange(640, dtype=np.uint32)
    add(table, keys)
    absent = np.arange(10_000, 12_000, dtype=np.uint32)
    assert table.probe_counts(absent).mean() > 1.005
    table.erase(keys)
    assert (table.probe_counts(absent) == 1).all()
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_the_filters_of_small_batches_do_not_fill_up(device: str) -> None:
    table, rng = made("u4", "u4", 7 * 100, device=device), np.random.default_rng(1)
    keys = np.arange(640, dtype=np.uint32)
    add(table, keys)
    for first in range(640, 640 + 8 * 400, 8):  # none of these makes sure of a new filter
        gone = rng.choice(640, 8, replace=False)
        assert table.erase(keys[gone]).all()
        keys[gone] = np.arange(first, first + 8)
        assert add(table, keys[gone]).all()
    assert table.probe_counts(np.arange(10**6, 10**6 + 3000, dtype=np.uint32)).mean() < 1.15
    table.check()


# ---- few elements for each range
@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
@pytest.mark.parametrize(("key", "value"), [*[*SLOTS][:3], ("u8", "u4"), ("u4", "u8")])
def test_ranges_with_few_elements_stay_in_place(
    device: str, key: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_to_ranges(monkeypatch)
    slots = SLOTS[key, value] * 3000
    table = made(key, value, slots, device=device)
    keys, added = np.arange(1500, dtype=key), np.arange(1500, 1900, dtype=key)
    add(table, keys)
    array, launched = array_of(table), noted_launches(table, monkeypatch)
    assert 4 < array.ranges < 9
    crowded = keys[permuted(array, keys) < np.iinfo(key).max // array.ranges]  # in the first range
    many = np.tile(crowded, 2)[:400]
    for batch, heavy in ((many, ["apply"]), (np.concatenate([many, added[:20]]), ["apply"]), (added[20:], [])):
        launched.clear()
        assert len(batch) <= 128 * array.ranges
        absent = ~np.isin(batch, keys)
        assert (add(table, batch) == absent).all() and launched == ["apply_in_place", *heavy]
    assert len(table) == 1900 and table.contains(added).all()
    launched.clear()
    assert table.erase(added[:200]).all() and launched == ["apply_in_place"]  # too few for a range to have many
    launched.clear()
    gone = np.concatenate([np.tile(crowded, 2)[:400], added[200:]])
    assert np.count_nonzero(table.erase(gone)) == len(crowded) + 200 and launched == ["apply_in_place", "apply"]
    assert sorted(table.keys().tolist()) == sorted(set(keys.tolist()) - set(crowded.tolist()))
    table.check()
    launched.clear()
    many = np.arange(5000, 5000 + 129 * array.ranges, dtype=key)
    assert add(table, many).all() and launched == ["apply"]
    table.check()


# ---- builds
REPEATED = {
    "once": lambda n, rng: np.arange(n),
    "twice": lambda n, rng: rng.permutation(n) // 2,
    "equal": lambda n, rng: np.zeros(n, int),
    "zipf": lambda n, rng: rng.zipf(1.2, n) % n,
}
"""Which of the keys each element has."""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("repeated", REPEATED)
@pytest.mark.parametrize(("key", "value", "slots", "buckets", "remainder_bits"), FORMS)
def test_a_build_adds_each_key_once(
    device: str,
    repeated: str,
    key: str,
    value: str | None,
    slots: int,
    buckets: int,
    remainder_bits: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = made(key, value, slots * buckets, device=device)
    array, rng = array_of(table), np.random.default_rng(4)
    launched = noted_launches(table, monkeypatch)
    last = (2 << 8 * int(key[1])) // array.ranges - 1  # hash value of the first two ranges
    lines = 2 * array.table.range_buckets
    keys = keys_with(table, rng.integers(0, last, int(0.8 * slots * lines), key, endpoint=True))
    keys = keys[REPEATED[repeated](len(keys), rng)]
    update_without_flags(table, keys, np.arange(len(keys), dtype=value or key), Op.KEEP)
    assert launched == ["build"] and array_of(table) is array and len(table) == len(np.unique(keys))
    written = array.engine.to_host(array.table.slots, np.uint8, 64 * lines).reshape(-1, 64)
    decoded = slots_in(written, slots, remainder_bits, value, 8 * int(key[1]))
    assert sum(np.count_nonzero(occupied) for occupied, *_ in decoded) == len(table)
    assert table.contains(keys).all()
    if value:
        assert (keys[table.find(keys)[0].astype(int)] == keys).all()
    if device == "cpu" or buckets < 1 << 18:  # in the emulation, a look at all lines takes seconds
        table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_only_lines_without_a_trace_are_built(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bring_to_ranges(monkeypatch)
    table = made("u4", "u4", 7 * 1500, device=device)
    launched, keys = noted_launches(table, monkeypatch), np.arange(3000, dtype=np.uint32)

    def update(entry: str, keys: Any, op: Op = Op.KEEP) -> None:
        launched.clear()
        update_without_flags(table, keys, ~keys, op)
        assert launched == [entry]
        assert sorted(table.keys().tolist()) == sorted(keys.tolist()) and (table.find(keys)[0] == ~keys).all()
        table.check()

    update("build", keys)
    update("apply", keys)
    launched.clear()
    table.reserve(20_000)  # the array takes over the pairs of another
    assert launched == ["build" if device == "cpu" else "take_over"] and (table.find(keys)[0] == ~keys).all()
    twin = table.copy()
    assert twin.erase(keys).all() and table.contains(keys).all()
    table = twin
    update("apply", keys[:2000])  # the lines have no key, and they are not blank
    table.clear()
    update("build", keys[1000:], Op.REPLACE)
    table.clear()
    assert add(table, keys[:10]).all() and launched[-1] == "build"  # with flags, too


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", [Op.KEEP, Op.REPLACE])
def test_a_build_of_several_launches(device: str, op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    launch_at_most(1100, monkeypatch)
    table = made("u4", "u4", 7 * 1000, device=device)
    launched = noted_launches(table, monkeypatch)
    keys = np.random.default_rng(3).permutation(np.arange(5000, dtype=np.uint32) % np.uint32(3000))
    update_without_flags(table, keys, np.arange(5000, dtype=np.uint32), op)
    assert launched == ["build", *["apply"] * 4]
    assert sorted(table.keys().tolist()) == list(range(3000)) and (keys[table.find(keys)[0]] == keys).all()
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_build_that_does_not_fit_is_done_again(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made("u4", "u4", 7 * 200, device=device)
    array, launched = array_of(table), noted_launches(table, monkeypatch)
    # All home in the first five buckets, which 5 * 7 slots and as many other buckets as the search reaches cannot hold.
    hashes = np.linspace(0, 5 * 2**32 // array.buckets, 1300, endpoint=False).astype(np.uint32)
    keys = keys_with(table, np.concatenate([hashes, hashes[:50]]))
    update_without_flags(table, keys, ~keys, Op.KEEP)
    assert launched[:2] == ["build", "build"] and array_of(table) is not array  # without flags, and with them
    assert (table.find(keys)[0] == ~keys).all() and len(table) == 1300
    table.check()


def _rebuilt(table: Any, keys: Any, all_in: bool | None) -> None:
    """Check a table after a build that may have failed, and build it."""
    held = table.contains(keys)
    assert len(table) == np.count_nonzero(held[:600]) and (held.all() if all_in else not held.any())
    table.check()
    update_without_flags(table, keys, ~keys, Op.KEEP)
    assert len(table) == 600 and (table.find(keys)[0] == ~keys).all()
    table.check()


def _empty(device: str) -> Any:
    return made("u4", "u4", 7 * 200, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_an_interrupted_build_adds_all_keys_or_none(device: str) -> None:
    keys, calls = np.arange(1200, dtype=np.uint32) % np.uint32(600), 0
    with in_passes(30) if device != "cpu" else nullcontext():
        build = partial(update_without_flags, keys=keys, values=~keys, op=Op.KEEP)
        for table, _, _ in at_each_line(partial(_empty, device), build, every=1 if device == "cpu" else 4):
            _rebuilt(table, keys, bool(len(table)))
            calls += 1
    assert calls > 50 // (1 if device == "cpu" else 4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("once", [True, False])
def test_a_build_whose_memory_is_refused_adds_nothing(once: bool, device: str) -> None:
    keys, calls = np.arange(1200, dtype=np.uint32) % np.uint32(600), 0
    with in_passes(30) if device != "cpu" else nullcontext():
        build = partial(update_without_flags, keys=keys, values=~keys, op=Op.KEEP)
        for table, said, _ in at_each_allocation(partial(_empty, device), build, once=once, device=device):
            _rebuilt(table, keys, not said)
            calls += 1
    assert calls > 1


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize(("key", "value"), SLOTS)
@pytest.mark.parametrize("flagged", [False, True])
def test_a_build_compares_no_keys_that_are_said_to_differ(
    device: str, key: str, value: str | None, flagged: bool
) -> None:
    n = 20_000 if device == "cpu" else 3000
    keys = np.random.default_rng(7).permutation(np.arange(n, dtype=key))
    options: Any = {"design": "quotient_cuckoo", "device": device, "seed": 5}

    def built(given: Any) -> Any:
        pairs = (given, value_of(given, value)) if value else (given,)
        if not flagged:
            return (HashMap if value else HashSet).from_arrays(*pairs, assume_unique=True, **options)  # type: ignore[attr-defined]
        table = HashMap(key, value, capacity=n, **options) if value else HashSet(key, capacity=n, **options)
        assert table.insert(*pairs, assume_unique=True).all()
        return table

    table = built(keys)
    table.check()
    assert sorted(table.keys().tolist()) == list(range(n)) and not table.contains(keys + keys.dtype.type(n)).any()
    if value:
        assert (table.find(keys)[0] == value_of(keys, value)).all()
    if not flagged:
        twice = np.resize(keys[: n // 2], n)
        assert len(built(twice)) > n // 2 and built(twice).contains(twice).all()


@contextmanager
def noted_fills(array: Any) -> Iterator[list[int]]:
    """How many bytes are filled each time."""
    filled, fill = [], array.engine.fill

    def noted(target: int, byte: int, nbytes: int, stream: Any = None) -> None:
        filled.append(nbytes)
        fill(target, byte, nbytes, stream)

    with mock.patch.object(array.engine, "fill", noted):
        yield filled


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
@pytest.mark.parametrize("repeated", REPEATED)
def test_no_lines_are_cleared_for_a_build_in_passes(device: str, repeated: str) -> None:
    rng = np.random.default_rng(9)
    with in_passes(30):
        table = made("u4", "u4", 7 * 600, device=device)
        array = array_of(table)
        keys = rng.integers(0, 1 << 32, 2000, np.uint32)[REPEATED[repeated](2000, rng)]  # for some ranges, or for all
        assert array.ranges > 10
        with noted_fills(array) as filled:
            update_without_flags(table, keys, keys, Op.KEEP)
            assert filled and max(filled) < 64 * array.buckets
            assert len(table) == len(np.unique(keys)) and storage_of(table).store.recovery.step is None
            table.check()
            assert sorted(table.keys().tolist()) == np.unique(keys).tolist()
            assert max(filled) < 64 * array.buckets
            table.clear()
            assert max(filled) == 64 * array.buckets
        update_without_flags(table, keys[:20], keys[:20], Op.KEEP)
        assert sorted(table.keys().tolist()) == np.unique(keys[:20]).tolist()
        table.check()


@pytest.mark.parametrize(
    ("keys", "clears"), [(np.arange(6000), False), (np.arange(1000), True), (np.full(6000, 7), False)]
)
@pytest.mark.parametrize("flagged", [False, True])
def test_a_cpu_clears_lines_only_for_a_batch_that_is_applied(keys: Any, clears: bool, flagged: bool) -> None:
    table, keys = made("u4", "u4", 7 * 3000, device="cpu"), keys.astype(np.uint32)
    array = array_of(table)
    assert array.ranges > 4
    array.engine.fill(array.table.slots, 0xA5, array.nbytes - 8 * array.ranges)  # new memory holds anything
    with noted_fills(array) as filled:
        if flagged:
            assert table.insert(keys, ~keys).sum() == len(np.unique(keys))
        else:
            update_without_flags(table, keys, ~keys, Op.KEEP)
        assert (64 * array.buckets in filled) == clears
    assert array_of(table) is array and len(table) == len(np.unique(keys)) and (table.find(keys)[0] == ~keys).all()
    assert not table.contains(keys + np.uint32(10_000)).any()
    table.check()


@pytest.mark.parametrize(("key", "value"), SLOTS)
def test_keys_that_wait_for_the_end_of_a_block_stay_in_order(key: str, value: str | None) -> None:
    """In lines so full that many keys are guests, a key of a block may be there several times, and be known or new."""
    rng = np.random.default_rng(11)
    table = made(key, value, 4000, device="cpu", load_factor=0.85, on_full="raise")
    known = np.arange(1500, dtype=key)
    add(table, known)
    new = np.arange(1500, 3300, dtype=key)
    batch = rng.permutation(np.concatenate([np.repeat(new, 3), known[:300]]))
    firsts = np.zeros(len(batch), bool)
    firsts[np.unique(batch, return_index=True)[1]] = True
    values = () if value is None else (np.arange(len(batch)).astype(value),)
    added = table.insert(batch, *values)
    assert (added == (firsts & (batch >= 1500))).all() and len(table) == 3300
    if value:
        assert (table.find(batch[added])[0] == values[0][added]).all()
        assert not table.assign(batch, *values).any()
        lasts = len(batch) - 1 - np.unique(batch[::-1], return_index=True)[1]
        assert (table.find(batch[lasts])[0] == values[0][lasts]).all()
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_new_table_has_no_keys(device: str) -> None:
    keys = np.arange(500, dtype=np.uint32)
    uses: list[Callable[[Any], Any]] = [
        lambda table: table.contains(keys).any(),
        lambda table: table.find(keys)[1].any(),
        lambda table: len(table.keys()),
        lambda table: (table.probe_counts(keys) != 1).any(),
        lambda table: len(table) or len(table.copy().keys()),
        lambda table: table.erase(keys).any(),
        lambda table: not add(table, keys[:100]).all() or len(table.keys()) != 100,
        lambda table: table.reserve(10_000),
        lambda table: table.shrink(),
        lambda table: table.clear(),
    ]
    for use in uses:
        table = made("u4", "u4", 7 * 100, device=device)
        assert not use(table)
        table.check()
        before = len(table)
        assert add(table, keys)[before:].all() and sorted(table.keys().tolist()) == keys.tolist()
        table.check()


# ---- evictions, and ranges that overflow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value"), SLOTS)
def test_evictions_fill_a_range(device: str, key: str, value: str | None) -> None:
    slots = SLOTS[key, value] * (512 if device == "cpu" else 60)
    table = made(key, value, slots, device=device, on_full="raise")
    keys = np.arange(int(0.93 * slots), dtype=key)
    for part in np.array_split(keys, 3):
        assert add(table, part).all()
    assert table.stats().slots == slots and table.contains(keys).all() and len(table) == len(keys)
    assert table.stats().rebuilds == 0 or slots < 1000
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_table_of_one_bucket_fills_it(device: str) -> None:
    table = made("u4", "u4", 7, device=device, on_full="raise")
    keys = np.arange(8, dtype=np.uint32)
    assert array_of(table).buckets == 1 and add(table, keys[:7]).all()
    with pytest.raises(TableFull):
        add(table, keys[7:])
    assert (table.find(keys[:7])[0] == ~keys[:7]).all() and table.erase(keys[3:4]).all() and add(table, keys[7:]).all()
    assert table.contains(keys).tolist() == [True] * 3 + [False] + [True] * 4
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_keys_of_one_range_move_to_another_table(device: str) -> None:
    table = made("u4", "u4", 7 * 200, device=device)
    array = array_of(table)
    # All home in the first five buckets, which 5 * 7 slots and as many other buckets as the search reaches cannot hold.
    hashes = np.linspace(0, 5 * 2**32 // array.buckets, 1300, endpoint=False).astype(np.uint32)
    keys = keys_with(table, hashes)
    assert add(table, keys).all() and array_of(table) is not array
    assert (table.find(keys)[0] == ~keys).all() and len(table) == len(keys)
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_that_does_not_fit_changes_nothing(device: str) -> None:
    table = made("u4", "u4", 7 * 50, device=device, on_full="raise")
    keys = np.arange(900, dtype=np.uint32)
    add(table, keys[:200])
    with pytest.raises(TableFull) as raised:
        table.upsert(keys, keys, "add")
    assert len(raised.value.keys) and len(table) == 200
    assert (table.find(keys[:200])[0] == ~keys[:200]).all() and not table.contains(keys[200:]).any()
    table.check()


# ---- batches
@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_of_one_key_adds_it_once(device: str) -> None:
    n = 100_000 if device == "cpu" else 700
    table = made("u4", "u4", 1000, device=device)
    keys, ones = np.full(n, 77, np.uint32), np.ones(n, np.uint32)
    assert table.upsert(keys, ones, "add").sum() == 1 and table[77] == n and len(table) == 1
    assert table.erase(keys).sum() == 1 and len(table) == 0
    table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_of_several_launches_is_one_batch(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launch_at_most(1100, monkeypatch)
    monkeypatch.setattr(route, "MOVED_BUCKETS", 100)
    table = made("u4", "u4", 7, device=device)
    keys = np.random.default_rng(3).permutation(np.arange(5000, dtype=np.uint32) % np.uint32(3000))
    added = table.upsert(keys, np.ones_like(keys), "add")
    assert added.sum() == len(table) == 3000 and len(np.unique(keys[added])) == 3000
    held, counts = table.to_arrays()
    assert (np.asarray(counts)[np.argsort(held)] == np.bincount(keys)).all()
    erased = table.erase(np.concatenate([keys, keys + np.uint32(1500)]))
    assert erased.sum() == 3000 and len(table) == 0
    table.check()


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize(("refused", "sizes"), [(0, [5000]), (1, [2500] * 2), (2, [1250] * 4), (3, [])])
def test_where_a_gpu_is_short_of_memory_fewer_elements_are_brought(
    refused: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "LAUNCH_ELEMENTS", 1300)
    keys = np.random.default_rng(3).permutation(np.arange(5000, dtype=np.uint32) % np.uint32(3000))
    table = made("u4", "u4", 8000, device="emulated")
    array, went = array_of(table), list[int]()
    run, make = array.program.run, array._buffers_for
    tries = iter(range(9))

    def refuse(*arguments: Any) -> Any:
        with refusing(array.engine, 1) if next(tries) < refused else nullcontext():
            return make(*arguments)

    def noted(entry: str, table: Any, batch: Any, n: int, *stream: Any) -> None:
        went.extend([n] * (entry == "count"))
        run(entry, table, batch, n, *stream)

    monkeypatch.setattr(array, "_buffers_for", refuse)
    monkeypatch.setattr(array.program, "run", noted)
    if sizes:
        assert table.insert(keys, keys).sum() == 3000 and (table.find(keys)[0] == keys).all()
        table.check()
    else:
        with pytest.raises(MemoryError):
            table.insert(keys, keys)
        assert len(table) == 0
    assert went == sizes


@pytest.mark.parametrize("device", DEVICES)
def test_one_launch_erases_all_rows_of_a_list_on_the_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has memory for all of them, though they are more than a launch mostly has."""
    keys = np.array([f"key {i}" for i in range(5000)], "S24")
    table = made("S24", "u4", 5000, device=device)
    assert table.insert(keys, np.arange(5000, dtype=np.uint32)).all()
    launch_at_most(1100, monkeypatch)
    assert table.erase(keys[:4000]).all() and (table.contains(keys) == (np.arange(5000) >= 4000)).all()
    table.check()


def test_a_small_batch_launches_its_own_ranges_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made("u4", "u4", 100_000)
    array, launched = array_of(table), {}
    run = array.program.run

    def noted(entry: str, table: Any, batch: Any, n: int, stream: Any) -> None:
        launched[entry] = n
        run(entry, table, batch, n, stream)

    monkeypatch.setattr(array.program, "run", noted)
    assert array.ranges > 20
    add(table, np.arange(3, dtype=np.uint32))
    assert launched == {"count": 3, "reserve": 3, "scatter": 3, "build": 3 * 256}
    add(table, np.arange(6, dtype=np.uint32))
    assert launched["apply"] == 6 * 256


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
@pytest.mark.parametrize(("key", "value"), [*[*SLOTS][:3], ("u8", "u4"), ("u4", "u8")])
def test_a_batch_in_passes_whose_flags_nobody_asks_for(device: str, key: str, value: str | None) -> None:
    slots = SLOTS[key, value] * 3000
    with in_passes(MOST_RANGE_BUCKETS):
        table, keys = made(key, value, slots, device=device, on_full="raise"), np.arange(2000, dtype=key)
        array = array_of(table)
        assert array.ranges > 4
        for op in (Op.KEEP, Op.REPLACE):  # a build; then an assignment of other values
            update_without_flags(table, keys, (value_of(keys, value) if op else keys.astype(value or key)), op)
        assert (
            table.contains(keys).all()
            and len(table) == 2000
            and (not value or (table.find(keys)[0] == value_of(keys, value)).all())
        )
        table.check()
        gone = array.engine.from_host(np.concatenate([keys[1::2], keys + keys.dtype.type(2000)]))
        storage_of(table).erase(gone.ptr, 3000, 0, None)
        assert table.contains(keys).tolist() == [True, False] * 1000 and len(table) == 1000
        table.check()


def test_a_batch_in_passes_that_does_not_fit_says_which_elements() -> None:
    with in_passes(MOST_RANGE_BUCKETS):
        table = made("u8", "u8", 3 * 1100, device="emulated", on_full="raise")
        keys = np.concatenate([np.arange(3500, dtype=np.uint64), np.full(40_000, 5, np.uint64)])
        with pytest.raises(TableFull) as raised:
            update_without_flags(table, keys, keys, Op.KEEP)
    numbers = np.asarray(raised.value.keys)
    left = np.unique(keys[numbers])
    assert len(table) == 0 and 3500 - 3303 <= len(left) < 1000
    assert numbers.tolist() == np.flatnonzero(np.isin(keys, left)).tolist()


# ---- sizes
def test_a_form_has_the_fewest_buckets() -> None:
    layout = storage_of(made("u4", "u4", 1)).store.design.layout
    for value_bytes, slots in ((4, (7, 9, 10)), (0, (14, 20, 30))):
        seen, before = [], 0
        for wanted in np.unique(np.geomspace(1, 2e7, 4000).astype(int)):
            each, ranges, range_buckets = geometry_for(int(wanted), layout, 4, value_bytes)
            buckets = ranges * range_buckets
            assert each * buckets >= wanted and range_buckets <= MOST_RANGE_BUCKETS and buckets >= before
            assert geometry_for(each * buckets, layout, 4, value_bytes) == (each, ranges, range_buckets)
            seen, before = [*seen, each], buckets
        assert seen == sorted(seen) and set(seen) == set(slots)


@pytest.mark.parametrize("value", ["u4", None])
def test_a_table_grows_and_shrinks_across_all_forms(value: str | None) -> None:
    options = {"design": "quotient_cuckoo", "device": "cpu", "seed": 3, "capacity": 1}
    table: Any = HashMap("u4", value, **options) if value else HashSet("u4", **options)
    keys, forms = np.arange(30_000, dtype=np.uint32), []
    for part in np.array_split(keys, 12):
        assert add(table, part).all() and table.contains(keys[: len(table)]).all()
        forms.append(array_of(table).spec.slots_per_bucket)
    table.reserve(6_000_000)
    forms.append(array_of(table).spec.slots_per_bucket)
    assert table.contains(keys).all() and not table.contains(keys + np.uint32(30_000)).any()
    assert list(dict.fromkeys(forms)) == ([7, 9, 10] if value else [14, 20, 30])
    table.check()
    table.erase(keys[100:])
    table.shrink()
    assert array_of(table).spec.slots_per_bucket == (7 if value else 14)
    assert sorted(table.keys().tolist()) == keys[:100].tolist()


def moved(table: Any, buckets: int) -> int:
    """Move all pairs to an array of so many buckets or a few more; how many it has."""
    array = array_of(table)
    storage_of(table).store.finish()
    storage_of(table).store.replace(array.spec.slots_per_bucket * buckets, Cause.ASKED, None)
    assert array_of(table) is not array and array_of(table).spec.slots_per_bucket == array.spec.slots_per_bucket
    return int(array_of(table).buckets)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value", "slots", "buckets", "remainder_bits"), FORMS)
def test_full_ranges_move_to_other_ranges(
    device: str,
    key: str,
    value: str | None,
    slots: int,
    buckets: int,
    remainder_bits: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, rng = made(key, value, slots * buckets, device=device), np.random.default_rng(6)
    array, lines = array_of(table), 2 * array_of(table).table.range_buckets
    # Hash values of the first two ranges, so full that many keys are guests.
    last = (2 << 8 * int(key[1])) // array.ranges - 1
    keys = keys_with(table, np.unique(rng.integers(0, last, int(0.87 * slots * lines), key, endpoint=True)))
    assert add(table, keys).all() and array_of(table) is array
    written = array.engine.to_host(array.table.slots, np.uint8, 64 * lines).reshape(-1, 64)
    decoded = slots_in(written, slots, remainder_bits, value, 8 * int(key[1]))
    assert sum(np.count_nonzero(guest) for _, guest, _ in decoded) > 20
    launched = noted_launches(table, monkeypatch)
    for more in (1.4, 1) if buckets > 1 << 18 else (1.4, 1.01, 0.97, 1.65, 1.1, 1):
        moved(table, int(more * buckets))
        assert launched == ["build" if device == "cpu" else "take_over"] and array_of(table).seed == array.seed
        assert table.contains(keys).all() and (not value or (table.find(keys)[0] == value_of(keys, value)).all())
        if device == "cpu" or buckets < 1 << 18:  # in the emulation, a look at all lines takes seconds
            assert len(table) == len(keys) and sorted(table.keys().tolist()) == sorted(keys.tolist())
            table.check()
        launched.clear()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("hash", ["mixer", "universal"])
@pytest.mark.parametrize(("key", "value"), SLOTS)
def test_many_ranges_move_to_more_and_to_fewer(
    device: str, hash: str, key: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotient, "MOST_RANGE_BUCKETS", 30)
    slots = SLOTS[key, value]
    table, rng = made(key, value, slots * 200, device=device, hash=hash), np.random.default_rng(8)
    keys = np.unique(rng.integers(0, 1 << 8 * int(key[1]), int(0.4 * slots * 200), key))
    add(table, keys)
    assert array_of(table).ranges > 6
    for buckets in (210, 450, 1000, 999, 331, 200, 150, 900):
        assert buckets <= moved(table, buckets) < 1.2 * buckets
        assert len(table) == len(keys) and sorted(table.keys().tolist()) == sorted(keys.tolist())
        assert not value or (table.find(keys)[0] == value_of(keys, value)).all()
        table.check()


@pytest.mark.parametrize("device", DEVICES)
def test_ranges_that_get_too_many_keys_move_with_other_hash_constants(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotient, "MOST_RANGE_BUCKETS", 30)
    table = made("u4", "u4", 7 * 900, device=device)
    # The hash values of a fifth of a table. In one of five ranges, a list of 8 elements a bucket cannot hold those for
    # which there are no 7 slots.
    keys = keys_with(table, np.linspace(0, 2**32 // 5, 1000, endpoint=False).astype(np.uint32))
    add(table, keys)
    array, launched = array_of(table), noted_launches(table, monkeypatch)
    small = array.sibling(7 * 150, array.seed)
    assert (small.ranges, small.buckets) == (5, 150)
    outcome = small.take_over(array, 1000)
    assert not outcome.complete and outcome.changed + outcome.unplaced == 1000 and outcome.changed <= 7 * 30
    launched.clear()
    moved(table, 150)
    assert launched[0] == ("build" if device == "cpu" else "take_over") and launched[-1] == "build"
    assert array_of(table).seed != array.seed and len(table) == 1000
    assert (table.find(keys)[0] == ~keys).all() and sorted(table.keys().tolist()) == sorted(keys.tolist())
    table.check()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("same_size", [False, True])
def test_a_move_whose_memory_is_refused_moves_nothing(device: str, same_size: bool) -> None:
    table, keys, calls = made("u4", "u4", 7 * 300, device=device), np.arange(1800, dtype=np.uint32), 0
    add(table, keys)
    arrays = []

    def with_its_array() -> Any:
        arrays.append(array_of(table))
        return table

    def move(table: Any) -> None:
        moved(table, array_of(table).buckets + (0 if same_size else 10))

    for _, said, _ in at_each_allocation(with_its_array, move, once=True, device=device):
        assert (array_of(table) is arrays[-1]) == bool(said)
        assert (table.find(keys)[0] == ~keys).all() and len(table) == len(keys)
        table.check()
        calls += 1
    assert calls > 1


@pytest.mark.parametrize("device", DEVICES)
def test_pairs_that_fit_into_one_launch_move_in_one(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launch_at_most(1100, monkeypatch)
    bring_to_ranges(monkeypatch)
    table, keys = made("u4", "u4", 7 * 500, device=device), np.arange(1100, dtype=np.uint32)
    add(table, keys)
    launched = noted_launches(table, monkeypatch)
    moved(table, array_of(table).buckets)  # with other hash constants
    assert launched == ["build"] and (table.find(keys)[0] == ~keys).all()
    table.check()
    add(table, keys + np.uint32(1100))
    launched.clear()
    moved(table, array_of(table).buckets)
    assert launched[0] == "build" and set(launched[1:]) == {"apply"} and len(table) == 2200
    assert sorted(table.keys().tolist()) == list(range(2200))
    table.check()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("refused", range(5))
def test_where_memory_is_short_pairs_move_in_smaller_pieces(
    device: str, refused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "MOVED_BUCKETS", 100)
    table, keys = made("u4", "u4", 7 * 500, device=device), np.arange(2000, dtype=np.uint32)
    add(table, keys)
    array, tried = array_of(table), list[int]()
    new = array.sibling(array.slots, array.seed + 1)
    take_over = new._take_over

    def noted(other: Any, size: int, buckets: int, stream: Any) -> Any:
        tried.append(buckets)
        with refusing(array.engine, 1, once=False) if len(tried) <= refused else nullcontext():
            return take_over(other, size, buckets, stream)

    monkeypatch.setattr(new, "_take_over", noted)
    if refused < 4:
        assert new.take_over(array, 2000).changed == 2000 and new.broken_buckets() == 0
    else:
        with pytest.raises(MemoryError):
            new.take_over(array, 2000)
        assert not new.cleared
    assert array.buckets == 500 and tried == [500, 250, 125, 63][: refused + 1]


def test_other_sizes_keep_the_hash_constants_and_the_same_size_draws_new_ones() -> None:
    table = made("u4", "u4", 5_000)
    keys = np.arange(4_000, dtype=np.uint32)
    add(table, keys)
    seed = array_of(table).seed
    table.reserve(50_000)
    assert array_of(table).seed == seed
    store = storage_of(table).store
    store.replace(store.slots, Cause.ASKED, None)
    assert array_of(table).seed == seed + 1
    values, found = table.find(keys)
    assert found.all() and (values == ~keys).all()
    table.check()
