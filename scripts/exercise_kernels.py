"""Launch the kernels of every design, of groups, joins and owners, once or more, on few keys, and compare with a dict.

For a sanitizer, which slows a GPU down too much for the test suite::

    compute-sanitizer --tool memcheck --report-api-errors no python scripts/exercise_kernels.py
    compute-sanitizer --tool racecheck python scripts/exercise_kernels.py
    compute-sanitizer --tool synccheck python scripts/exercise_kernels.py

Options: ``--device`` (cuda), ``--keys`` (3000), ``--design`` (all).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any
from unittest import mock

import numpy as np

from warphash import HashMap, HashSet, MultiMap, Operation, group_by
from warphash.designs import registry
from warphash.runtime.abi import ROWS_AT_ONCE, Accumulation, RowLists, ValueType
from warphash.runtime.devices import engine_for
from warphash.settings import ORDER_VARIABLE
from warphash.storage.batch_order import hot_keys, lookups, parts
from warphash.storage.groups.device_places import DevicePlaces
from warphash.storage.groups.device_records import accumulate_on_gpu
from warphash.storage.groups.numbering import number
from warphash.storage.groups.records import Column, Record, Word
from warphash.storage.joins.device_hits import DeviceHits
from warphash.storage.joins.device_pairs import DevicePairs
from warphash.storage.joins.pairs import Pairs
from warphash.storage.owners.flag_bits import FLAG_RUN, pack_flags, unpack_flags
from warphash.storage.owners.owner_order import SHARDS, OwnerOrder, shards_of
from warphash.storage.quotient import route

TYPES = [("u4", "u4"), ("u8", "u8"), ("u4", "u8"), ("u4", None), ("V16", "u4"), ("V24", "V40")]
"""Keys and values in one word, in two, in columns, without values, and in rows or lines."""

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "bucketed_cuckoo": [{"slots_per_bucket": 8}, {"hash": "universal"}, {"max_size": 1000, "evict": "lru"}],
    "power_of_two": [{"slots_per_bucket": 32}],
    "iceberg": [{"slots_per_bucket": 32}],
    "linear_probing": [{"slots_per_bucket": 1}],
    "slab": [{"allocator": "slab_light"}, {"max_size": 1000, "evict": "lfu"}],
    "dynamic_cuckoo": [{"coordination": "voter"}, {"coordination": "spin"}, {"routing": "theorem"}],
    "stadium": [{"ticket_bits": 1}, {"lanes": "clstash"}, {"memory": "host", "access": "sweep"}],
    "two_level_cuckoo": [{"hashes": 3}, {"hashes": 1, "sizing": "squared", "range_slots": 64}],
    "quotient_cuckoo": [
        {"hash": "universal"},
        *({"types": ("u4", value), "load_factor": load} for value in ("u4", None) for load in (0.03, 1e-4)),
    ],
    "tiered": [{"write": "back"}],
}
"""Parameters that lead to other kernels than the defaults, and ``types`` if not of 8 bytes."""

HOT = 3 << 10
"""Elements of a batch with few keys."""

PART_SHIFT = 7
"""Logarithm of the buckets of a part of a table; larger tables have larger parts. Lookups on a GPU go by parts, however
small the table is."""


def parts_of_any_table(buckets: int, bucket_bytes: int, reach_bytes: int, *_: int) -> tuple[int, int] | None:
    """In place of `parts.lookup_parts_of`."""
    return parts._at_most(parts.MOST_PARTS, buckets, PART_SHIFT) if reach_bytes else None


def rows(ids: Any, dtype: str) -> np.ndarray[Any, Any]:
    """Keys or values that are made of numbers: each word of a row is the number."""
    words = np.asarray(ids, "u8")
    return np.repeat(words, int(dtype[1:]) // 8).view(dtype) if dtype.startswith("V") else words.astype(dtype)


def tables(design: str, device: str) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    """Types and options of the tables of a design."""
    for key, value in TYPES:
        yield key, value, {"design": design, "device": device}
    for options in VARIANTS.get(design, []):
        chosen = {"types": ("u8", "u8"), **options}
        yield *chosen.pop("types"), {"design": design, "device": device, **chosen}


def exercise(key: str, value: str | None, options: dict[str, Any], n: int) -> None:
    """Build, insert, look up, change, erase, grow, copy and scan ``n`` keys; compare with a dict."""
    ids = np.random.default_rng(3).permutation(3 * n)
    first, more, absent = ids[:n], ids[n : 2 * n], ids[2 * n :]
    bounded = "max_size" in options
    kind: Any = HashSet if value is None else HashMap
    table = kind(*((key,) if value is None else (key, value)), capacity=n // 8, seed=5, **options)

    def pairs(numbers: Any, add: int = 0) -> tuple[Any, ...]:
        keys = rows(numbers, key)
        return (keys,) if value is None else (keys, rows(np.asarray(numbers) + add, value))

    repeated = np.concatenate([first, first[: n // 3]])
    built = kind.from_arrays(*pairs(repeated), seed=5, **options)
    built.check()
    assert bounded or len(built) == n, f"{built!r} should hold {n:,} keys"
    table.insert(*pairs(repeated))
    model = dict.fromkeys(first.tolist(), 0)
    table.insert(*pairs(more), assume_unique=True)
    model |= dict.fromkeys(more.tolist(), 0)
    if value is not None:
        table.assign(*pairs(more, 1))
        model |= dict.fromkeys(more.tolist(), 1)
        if value.startswith("u"):
            table.upsert(rows(first, key), rows(np.ones(n), value), "add")
            model |= dict.fromkeys(first.tolist(), 1)
            hot = np.resize(first[:7], HOT)
            table.upsert(rows(hot, key), rows(np.ones(HOT), value), "add")
            for number in hot.tolist():
                model[number] += 1
    table.erase(rows(first[::2], key))
    for number in first[::2].tolist():
        del model[number]
    twin = table.copy()
    table.insert(*pairs(absent[: n // 2]))
    table.erase(rows(absent[: n // 2], key))
    table.shrink()
    for made in (table, twin):
        made.check()
        if bounded:
            assert len(made) <= 1000, f"{made!r} is larger than its bound"
            continue
        assert len(made) == len(model), f"{made!r} should hold {len(model):,} keys"
        assert made.contains(rows(list(model), key)).all() and not made.contains(rows(first[::2], key)).any()
        if value is not None:
            expected = rows(np.array(list(model)) + np.array(list(model.values())), value)
            if value.startswith("V"):  # an upsert needs numbers, so these keep their first values
                expected = rows([i + (i in set(more.tolist())) for i in model], value)
            assert (made[rows(list(model), key)] == expected).all(), f"{made!r} holds wrong values"
    if bounded:
        table.evict(10)


def exercise_mixed(design: str, device: str, n: int) -> None:
    """A mixed batch, in which each key has one operation."""
    table = HashMap("u8", "u8", design=design, device=device, capacity=4 * n, seed=5)
    keys = np.arange(4 * n, dtype="u8")
    table.insert(keys[: 2 * n], keys[: 2 * n])
    operations = np.resize([Operation.FIND, Operation.ERASE, Operation.ASSIGN, Operation.INSERT], 4 * n).astype("u1")
    values, done = table.execute(operations, keys, keys + np.uint64(1))
    held, found = keys < 2 * n, operations == Operation.FIND
    assert (done == np.where(found | (operations == Operation.ERASE), held, ~held)).all()
    assert (values[found & held] == keys[found & held]).all()
    table.check()


def exercise_pairs(design: str, device: str, n: int) -> None:
    """Keys that repeat, in a MultiMap."""
    table = MultiMap("u8", "u8", design=design, device=device, capacity=n, seed=5)
    keys = np.repeat(np.arange(n, dtype="u8"), 3)
    table.insert(keys, np.arange(3 * n, dtype="u8"))
    assert (table.count(keys[::3]) == 3).all()
    values, offsets = table.find_all(keys[::3])
    assert len(values) == 3 * n and offsets[-1] == 3 * n
    assert table.erase(keys[::3]).all() and (table.erase_all(keys[: 3 * (n // 2) : 3]) == 2).all()
    table.flush()
    assert len(table) == 2 * (n - n // 2)
    table.check()
    reuse = {"reuse_erased": True} if design == "slab" else {}
    mixed = MultiMap("u8", "u8", design=design, device=device, capacity=n, seed=5, **reuse)
    mixed.insert(keys, keys)
    assert mixed.erase(keys[::3]).all()
    operations = np.resize([Operation.FIND, Operation.ERASE, Operation.INSERT], 3 * n).astype("u1")
    values, done = mixed.execute(operations, keys, keys)
    assert done.all() and (values[operations == Operation.FIND] == keys[operations == Operation.FIND]).all()
    mixed.check()
    assert (mixed.count(keys[::3]) == 2).all()


def exercise_numbers(device: str, n: int) -> None:
    """Numbers, first elements and counts of equal, few, many and distinct keys, as they come and by parts."""
    engine = engine_for(device)
    for width, distinct, order in product((4, 8, 16), (1, 7, n // 3, n), ("auto", "parts")):
        numbers = np.random.default_rng(5).integers(0, distinct, n)
        keys = np.repeat(numbers.astype(f"u{min(width, 8)}"), max(1, width // 8))
        held, room = engine.from_host(keys), engine.allocate(8 * n)
        with mock.patch.dict(os.environ, {ORDER_VARIABLE: order}):
            made = number(engine, held.ptr, width, n, numbers=room.ptr, counts=True)
        model: dict[int, list[int]] = {}
        for element, key in enumerate(numbers.tolist()):
            model.setdefault(key, []).append(element)
        assert made.counts is not None and made.size == len(model)
        elements = list(model.values())
        assert engine.to_host(made.firsts.ptr, np.uint32, made.size).tolist() == [its[0] for its in elements]
        assert engine.to_host(made.counts.ptr, np.uint32, made.size).tolist() == [len(its) for its in elements]
        number_of = {key: at for at, key in enumerate(model)}
        assert engine.to_host(room.ptr, np.uint64, n).tolist() == [number_of[key] for key in numbers.tolist()]


def exercise_groups(device: str, n: int) -> None:
    """Pairs in groups, of keys with one value, with a few and with many: built, inserted, merged and erased."""
    for repeats in (1, 3, n):
        distinct = n // repeats
        keys, values = np.resize(np.arange(distinct, dtype="u8"), n), np.arange(n, dtype="u4")
        table = MultiMap("u8", "u4", device=device, seed=5)
        for half in (slice(n // 2), slice(n // 2, n)):
            table.insert(keys[half], values[half])
        asked = keys[:distinct]
        expected = [values[key::distinct].tolist() for key in asked.tolist()]
        for made in (table, table.copy(), MultiMap.from_arrays(keys, values, device=device, seed=5)):
            held, offsets = made.find_all(asked)
            assert [part.tolist() for part in np.split(held, offsets[1:-1])] == expected
            assert made.count(asked).tolist() == [len(its) for its in expected]
            made.check()
        assert table.erase(asked).all() and table.count(asked).tolist() == [len(its) - 1 for its in expected]
        table.erase_all(asked[::2])
        table.check()
        assert len(table) == sum(len(its) - 1 for its in expected[1::2])
        if device == "cpu":
            made = group_by(keys).agg(total=(values, "sum"), greatest=(values, "max"))
            assert made["total"].tolist() == list(map(sum, expected))
            assert made["greatest"].tolist() == list(map(max, expected))


def exercise_joins(device: str, n: int) -> None:
    """Pairs of elements with all rows of their keys: of keys with a row each, with a few or none, and with many."""
    engine, random = engine_for(device), np.random.default_rng(5)
    make: Any = Pairs if device == "cpu" else partial(DevicePairs, stream=None)
    code_types = ("i4", "i8") if device == "cpu" else ("i4",)  # a GPU has codes of 4 bytes
    all_counts = ([1] * n, [0, 3, 1, 0, 2] * (n // 5), [1, 0, n, 2])
    for counts, keeps_all, code_type, out_type in product(all_counts, (False, True), code_types, ("i4", "i8")):
        ends, codes = np.cumsum(counts), random.integers(-1, len(counts), min(n, 2 * len(counts))).astype(code_type)
        rows = random.permutation(ends[-1]).astype(code_type)
        offsets = engine.from_host(np.array([0, *ends, ends[-1]], "u4"))
        held = engine.from_host(np.concatenate([rows, np.full(ROWS_AT_ONCE, -1, code_type)]))
        of_keys = RowLists(offsets=offsets.ptr, size=len(counts), rows=held.ptr, row_bytes=rows.itemsize)
        of_rows = RowLists(row_bytes=rows.itemsize)  # the row of a code is the code
        alone = {-1: [-1] * keeps_all}
        rows_of_keys = dict(enumerate(part.tolist() for part in np.split(rows, ends[:-1]))) | alone
        models = [(of_keys, rows_of_keys)]
        if device == "cpu":  # a GPU has other kernels for these (exercise_places)
            models.append((of_rows, {code: [code] for code in range(len(counts))} | alone))
        given = engine.from_host(codes)
        for lists, model in models:
            made = make(engine, lists, given.ptr, len(codes), keeps_all=keeps_all)
            expected = [(element, row) for element, code in enumerate(codes.tolist()) for row in model[code]]
            assert made.total == len(expected), f"{made.total:,} pairs should be {len(expected):,}"
            out = np.dtype(out_type)
            sides = [engine.allocate(max(1, out.itemsize * made.total)) for _ in range(2)]
            made.write(*(side.ptr for side in sides), out.itemsize)
            written = [engine.to_host(side.ptr, out, made.total).tolist() for side in sides]
            assert list(zip(*written, strict=True)) == expected, "pairs should come by elements, and then by rows"


def exercise_owners(device: str, n: int) -> None:
    """Batches in the order of their owners, and back, with columns of all widths that have kernels of their own."""
    engine, random = engine_for(device), np.random.default_rng(5)
    for width, ranks in product((4, 8, 12), (3, 40)):
        columns = [random.integers(0, 256, (n, bytes_), "u1") for bytes_ in (width, 1, 2, 4, 8, 16, 24)]
        widths = [column.shape[1] for column in columns]
        given = [engine.from_host(column) for column in columns]
        moved, restored = ([engine.allocate(column.nbytes) for column in columns] for _ in range(2))
        shards, counts = engine.allocate(2 * n), engine.allocate(8 * ranks)
        shards_of(engine, given[0].ptr, width, n, shards.ptr, None)
        owners = engine.to_host(shards.ptr, "u2", n).astype("i8") * ranks // SHARDS
        order = OwnerOrder(engine, given[0].ptr, width, n, ranks, counts.ptr, None)
        order.move([(a.ptr, b.ptr, bytes_) for a, b, bytes_ in zip(given, moved, widths, strict=True)], None)
        order.restore([(a.ptr, b.ptr, bytes_) for a, b, bytes_ in zip(moved, restored, widths, strict=True)], None)
        assert (engine.to_host(counts.ptr, "i8", ranks) == np.bincount(owners, minlength=ranks)).all()
        sorted_by_owner = np.argsort(owners, kind="stable")
        for column, there, back in zip(columns, moved, restored, strict=True):
            rows_there, rows_back = (engine.to_host(held.ptr, "u1", column.size) for held in (there, back))
            assert (rows_there == column[sorted_by_owner].ravel()).all(), "rows should be in the order of owners"
            assert (rows_back == column.ravel()).all(), "rows should be in the order of the batch again"
    exercise_flag_bits(device, n)


def exercise_flag_bits(device: str, n: int) -> None:
    """Flags as bits and back: of whole runs, and of tails of all kinds of lengths."""
    engine, tails = engine_for(device), [0, 1, 7, 8, 9, FLAG_RUN - 1]
    whole = n // FLAG_RUN * FLAG_RUN
    flags = np.random.default_rng(3).integers(0, 2, whole + sum(tails), "u1")
    places = np.concatenate([np.arange(whole), *(whole + FLAG_RUN * at + np.arange(t) for at, t in enumerate(tails))])
    rows = whole + FLAG_RUN * len(tails)
    given, bits, back = engine.from_host(flags), engine.allocate(rows // 8), engine.allocate(rows)
    pack_flags(engine, given.ptr, bits.ptr, whole, tails, None)
    unpack_flags(engine, bits.ptr, back.ptr, rows, None)
    expected = np.zeros(rows, "u1")
    expected[places] = flags
    assert (engine.to_host(back.ptr, "u1", rows) == expected).all(), "flags should come back, and zeros behind a tail"


def exercise_places(device: str, n: int) -> None:
    """The first elements of words, where they are looked up, and the elements that have one."""
    engine, random = engine_for(device), np.random.default_rng(7)
    for key_type, distinct in product(("u2", "u4", "u8"), (7, n)):
        held = random.integers(0, distinct, n).astype(key_type)
        asked = random.integers(0, 2 * distinct, 3 * n).astype(key_type)
        kept, sought, codes = engine.from_host(held), engine.from_host(asked), engine.allocate(4 * len(asked))
        made = DevicePlaces(engine, kept.ptr, held.itemsize, n, None)
        made.find(sought.ptr, len(asked), codes.ptr, 4, None)
        firsts = {word: n - 1 - place for place, word in enumerate(held[::-1].tolist())}
        expected = [firsts.get(word, -1) for word in asked.tolist()]
        assert engine.to_host(codes.ptr, "i4", len(asked)).tolist() == expected, "words should lead to first elements"
        hits = DeviceHits(engine, codes.ptr, "codes", len(asked), None)
        outs = [engine.allocate(max(1, 8 * hits.total)) for _ in range(2)]
        hits.write(*(out.ptr for out in outs), 8)
        pairs = [(place, code) for place, code in enumerate(expected) if code >= 0]
        written = [engine.to_host(out.ptr, "i8", hits.total).tolist() for out in outs]
        assert list(zip(*written, strict=True)) == pairs, "elements that were found should be listed in order"


def exercise_records(device: str, n: int) -> None:
    """Sums and minima by the numbers of elements: of groups that a block keeps words of, and of more than these."""
    engine, random = engine_for(device), np.random.default_rng(6)
    words = Word(Accumulation.SUM, 0), Word(Accumulation.MIN, 0), Word(Accumulation.FLOAT_SUM, 1)
    for groups, number_type in product((1, 7, n), ("i4", "i8")):
        numbers, values = random.integers(-1, groups, n).astype(number_type), random.integers(-99, 99, n)
        held = [engine.from_host(array) for array in (numbers, values, values.astype("f4"))]
        columns = Column(held[1].ptr, ValueType.INT64), Column(held[2].ptr, ValueType.FLOAT32)
        outs = [engine.allocate(8 * groups) for _ in words]
        record, at = Record(columns, words), [out.ptr for out in outs]
        accumulate_on_gpu(engine, held[0].ptr, numbers.itemsize, (n, groups), record, at, None)
        by_group = [values[numbers == group].tolist() for group in range(groups)]
        sums = [sum(its) for its in by_group]
        expected = sums, [min(its, default=np.iinfo(np.int64).max) for its in by_group], sums
        for out, kind, its in zip(outs, ("i8", "i8", "f8"), expected, strict=True):
            assert engine.to_host(out.ptr, kind, groups).tolist() == its, "groups should have the words of their values"


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--device", default="cuda")
    options.add_argument("--keys", type=int, default=3000)
    options.add_argument("--design", choices=registry.names(), action="append")
    given = options.parse_args()
    by_parts = mock.patch.multiple(lookups, FEWEST_PARTITIONED=1, lookup_parts_of=parts_of_any_table)
    few = {"FEWEST_ELEMENTS": 1, "FEWEST_PER_RANGE": 0, "FEWEST_PER_SCATTERED_RANGE": 0, "ONE_PASS_RANGES": 2}
    # Tables of quotients have 10, 22 and thousands of ranges.
    ways = {"MOST_COUNTED_BINS": dict.fromkeys((4, 8), 10), "MOST_BINS": 16}
    in_passes = mock.patch.multiple(route, **few, **ways)
    for design in given.design or registry.names():
        made = list(tables(design, given.device))
        for key, value, chosen in made:
            with mock.patch.object(hot_keys, "FEWEST_AGGREGATED", HOT), by_parts, in_passes:
                exercise(key, value, chosen, given.keys)
        if "execute" in registry.get(design).capabilities:
            exercise_mixed(design, given.device, given.keys)
        if registry.get(design).layout.keeps_duplicates:
            exercise_pairs(design, given.device, given.keys)
        print(f"{design}: {len(made)} kinds of tables are right", flush=True)
    if not given.design:
        exercise_numbers(given.device, given.keys)
        exercise_groups(given.device, given.keys)
        print("groups: numbers, and pairs of keys that repeat, are right", flush=True)
        exercise_joins(given.device, given.keys)
        print("joins: pairs of elements and rows are right", flush=True)
        exercise_owners(given.device, given.keys)
        print("owners: orders of owners, and flags as bits, are right", flush=True)
        if given.device != "cpu":
            exercise_places(given.device, given.keys)
            exercise_records(given.device, given.keys)
            print("records: sums and minima of groups are right", flush=True)


if __name__ == "__main__":
    main()
