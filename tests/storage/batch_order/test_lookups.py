"""Large lookups go in the order of the parts of a table, and their answers come back in that of the caller."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.engines import missing, one_of_each
from support.hashing import first_buckets
from support.inside import storage_of
from support.planting import planted_among
from support.refusals import refusing
from warphash import HashMap, HashSet
from warphash.arrays.adapters.engine import ENGINE_MEMORY
from warphash.arrays.library import ArrayView
from warphash.designs import registry
from warphash.errors import ParameterError
from warphash.runtime.cpu import CpuEngine
from warphash.runtime.devices import engine_for
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine, EmulationError
from warphash.storage.batch_order import calibrate, lookups, ordering
from warphash.storage.batch_order import parts as sizes_of_parts
from warphash.storage.batch_order.lookups import partition_keys
from warphash.storage.hash_constants import MAX_BUCKETS
from warphash.storage.stores import widths_of
from warphash.storage.word_rows import WordRows

DESIGNS: list[dict[str, Any]] = [
    {"design": "bucketed_cuckoo", "slots_per_bucket": 8},
    {"design": "cuckoo"},
    {"design": "iceberg"},
    {"design": "linear_probing"},
    {"design": "power_of_two"},
    {"design": "dynamic_cuckoo"},
    {"design": "quotient_cuckoo"},
]


@pytest.fixture(params=one_of_each("emulated", "cuda"))
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A device of so small a reach that tables of a few keys have several parts."""
    name = str(request.param)
    monkeypatch.setattr(engine_for(name), "reach_bytes", 8192)
    monkeypatch.setattr(engine_for(name), "lanes", 4)
    monkeypatch.setattr(lookups, "FEWEST_PARTITIONED", 1)
    return name


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of keys of the lookups that went by parts and came back."""
    sizes: list[int] = []
    restore = lookups.PartitionedKeys.restore

    def noted(self: Any, values: int, flags: int, stream: Any) -> None:
        sizes.append(int(self._batch.n))
        restore(self, values, flags, stream)

    monkeypatch.setattr(lookups.PartitionedKeys, "restore", noted)
    return sizes


def some_keys(n: int, dtype: str, seed: int = 1) -> np.ndarray:
    """Unique keys, in no order, with those that equal a mark of a slot."""
    rng, top = np.random.default_rng(seed), np.iinfo(dtype).max
    drawn = np.unique(rng.integers(0, top - 2, 2 * n + 9, dtype, endpoint=True))
    return rng.permutation(np.concatenate([np.array([top, top - 1, top - 2], dtype), rng.permutation(drawn)[: n - 3]]))


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("n", [1, 2047, 4096, 9001])
@pytest.mark.parametrize("buckets_of_part", [1, 64])
def test_keys_go_by_parts_and_answers_come_back(device: str, dtype: str, n: int, buckets_of_part: int) -> None:
    table = HashMap(dtype, dtype, capacity=1500, device=device, **DESIGNS[0])
    array, engine, shift = storage_of(table).store.array, engine_for(device), buckets_of_part.bit_length() - 1
    parts = (array.buckets - 1 >> shift) + 1
    assert (buckets_of_part == 1) == (parts > 128) and parts <= sizes_of_parts.MOST_PARTS
    keys = np.random.default_rng(n).integers(0, 999, n).astype(dtype)
    held = engine.from_host(keys)
    parted = partition_keys(array, held.ptr, n, (parts, shift), None)
    assert parted is not None
    copies = engine.to_host(parted.keys, dtype, n)
    assert (np.sort(copies) == np.sort(keys)).all()
    assert (np.diff(first_buckets(array, copies) >> shift) >= 0).all()
    engine.upload(parted.keys, ~copies)
    engine.upload(parted.flags, copies.astype(np.uint8))
    values, flags = engine.from_host(np.zeros(n, dtype)), engine.from_host(np.zeros(n, np.uint8))
    parted.restore(values.ptr, flags.ptr, None)
    assert (engine.to_host(values.ptr, dtype, n) == ~keys).all()
    assert (engine.to_host(flags.ptr, np.uint8, n) == keys.astype(np.uint8)).all()
    engine.fill(flags.ptr, 7, n)
    parted.restore(values.ptr, 0, None)
    assert (engine.to_host(flags.ptr, np.uint8, n) == 7).all()


@pytest.mark.parametrize("setting", DESIGNS, ids=lambda setting: setting["design"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("uint32", "uint32"),
        ("int64", "float64"),
        *(pytest.param(*types, marks=pytest.mark.slow) for types in (("uint32", "int64"), ("S20", "uint16"))),
    ],
)
def test_every_lookup_is_answered_in_order(
    device: str, setting: dict[str, Any], key: str, value: str, restored: list[int]
) -> None:
    n = 3001
    ids = some_keys(2 * n, "uint32" if key == "uint32" else "uint64")
    keys = ids.astype("S20") if key == "S20" else ids.view(key)
    inside, outside, values = keys[:n], keys[n:], np.arange(n).astype(value)
    table = HashMap.from_arrays(inside, values, device=device, **setting)
    order = np.random.default_rng(5).permutation(2 * n)
    asked = np.concatenate([keys[order], inside[:5], inside[:5]])
    found_values, found = table.find(asked, default=7)
    expected = np.concatenate([order < n, np.ones(10, bool)])
    number = np.concatenate([order, np.arange(5), np.arange(5)])
    design = registry.get(setting["design"])
    key_bytes, value_bytes = widths_of(design, np.dtype(key).itemsize, np.dtype(value).itemsize)
    words_differ = design.layout.own_widths and key_bytes != value_bytes
    assert (found == expected).all() and (len(asked) in restored) != words_differ
    assert (found_values == np.where(expected, number, 7).astype(value)).all()
    assert (table.contains(asked) == expected).all() and not table.contains(outside).any()
    gone = np.concatenate([inside[::2], outside[:99], inside[:1]])
    erased = table.erase(gone)
    assert erased.sum() == len(inside[::2]) and not erased[-100:-1].any() and erased[0] != erased[-1]
    assert len(table) == n - len(inside[::2])
    assert (table.contains(inside) == (np.arange(n) % 2 == 1)).all()
    table.check()


def test_a_set_is_asked_and_emptied(device: str, restored: list[int]) -> None:
    keys = some_keys(8000, "uint32")
    table = HashSet.from_arrays(keys[:5000], device=device, **DESIGNS[0])
    assert (table.contains(keys) == (np.arange(8000) < 5000)).all()
    assert (table.erase(keys) == (np.arange(8000) < 5000)).all() and not len(table)
    assert restored == [8000, 8000]


def test_all_keys_are_in_one_part(device: str, restored: list[int]) -> None:
    keys = some_keys(3000, "uint32")
    table = HashMap.from_arrays(keys, ~keys, device=device, **DESIGNS[0])
    asked = np.repeat(keys[:2], 4500)
    values, found = table.find(asked)
    assert found.all() and (values == ~asked).all() and restored == [9000]


def test_the_second_launch_of_a_batch_goes_by_parts_of_its_own(
    device: str, restored: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warphash.storage.lookup.LAUNCH_ELEMENTS", 5000)
    monkeypatch.setattr("warphash.storage.buckets.array.LAUNCH_ELEMENTS", 5000)
    keys = some_keys(9001, "uint32")
    table = HashMap.from_arrays(keys[:6000], ~keys[:6000], device=device, **DESIGNS[0])
    restored.clear()
    values, found = table.find(keys)
    assert (found == (np.arange(9001) < 6000)).all() and (values[:6000] == ~keys[:6000]).all()
    assert table.erase(keys).sum() == 6000 and not len(table)
    assert restored == [5000, 4001] * 2


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize("why", ["no memory", "captured", "few keys"])
def test_where_a_lookup_goes_as_it_came(why: str, restored: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, keys = engine_for("emulated"), some_keys(4000, "uint32")
    monkeypatch.setattr(engine, "reach_bytes", 8192)
    table = HashMap.from_arrays(keys, ~keys, device="emulated", **DESIGNS[0])
    array, out = storage_of(table).store.array, engine.allocate(8 * 4000)
    held = engine.from_host(keys)

    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(engine, "is_captured", lambda _: why == "captured")
    monkeypatch.setattr(engine, "allocate", refuse)
    monkeypatch.setattr(lookups, "FEWEST_PARTITIONED", 4001 if why == "few keys" else 4000)
    storage_of(table).find(held.ptr, 4000, out.ptr, out.ptr + 16000, b"\0", None)
    assert (engine.to_host(out.ptr, np.uint32, 4000) == ~keys).all()
    assert array.erase(held.ptr, 4000, out.ptr) == 4000 and not restored


def on_device(device: str, array: np.ndarray) -> ArrayView:
    """The array in memory of the device's engine."""
    engine = engine_for(device)
    return ENGINE_MEMORY.of(engine.from_host(array.view(np.uint8)), array.shape, array.dtype, engine.device)


def on_host(seen: ArrayView) -> np.ndarray:
    content: np.ndarray = engine_for(seen.device).to_host(seen.ptr, np.uint8, seen.nbytes)
    return content.view(seen.dtype)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The lookups whose order a table could choose: their numbers of keys, and whether the table chose."""
    lookups: list[tuple[int, bool]] = []
    find_in_any_order = WordRows.find_in_any_order

    def noted(self: Any, keys: int, n: int, *rest: Any) -> bool:
        lookups.append((n, find_in_any_order(self, keys, n, *rest)))
        return lookups[-1][1]

    monkeypatch.setattr(WordRows, "find_in_any_order", noted)
    return lookups


@pytest.mark.parametrize("setting", DESIGNS, ids=lambda setting: setting["design"])
@pytest.mark.parametrize(("key", "value"), [("uint32", "uint32"), ("int64", "float64"), ("S4", "int32")])
def test_answers_in_any_order(
    device: str, setting: dict[str, Any], key: str, value: str, chosen: list[tuple[int, bool]], restored: list[int]
) -> None:
    n = 3001
    drawn = some_keys(2 * n, "uint32" if np.dtype(key).itemsize == 4 else "uint64")
    keys = np.char.mod("%04d", np.arange(2 * n)).astype(key) if key == "S4" else drawn.view(key)
    inside, values = keys[:n], np.arange(n).astype(value)
    table = HashMap.from_arrays(inside, values, device=device, **setting)
    restored.clear()
    asked = np.random.default_rng(5).permutation(np.concatenate([keys, inside[:7]]))
    numbers = {k: i for i, k in enumerate(keys.tolist())}
    held = on_device(device, asked)
    answered, found_values, found = map(on_host, table.find(held, default=9, order="any"))
    assert (np.sort(answered) == np.sort(asked)).all() and not (answered == asked).all()
    number = np.array([numbers[k] for k in answered.tolist()])
    assert (found == (number < n)).all()
    assert (found_values == np.where(found, number, 9).astype(value)).all()
    answered, found = map(on_host, table.contains(held, order="any"))
    assert (np.sort(answered) == np.sort(asked)).all()
    assert (found == (np.array([numbers[k] for k in answered.tolist()]) < n)).all()
    assert chosen == [(len(asked), True)] * 2 and not restored


def test_several_launches_in_any_order(
    device: str, chosen: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warphash.storage.lookup.LAUNCH_ELEMENTS", 5000)
    keys = some_keys(9001, "uint32")
    table = HashMap.from_arrays(keys[:6000], ~keys[:6000], device=device, **DESIGNS[0])
    partition = lookups.partition_keys
    for refused in (10, 2):  # the second piece, in the second round
        pieces: list[int] = []

        def some(*arguments: Any, **options: Any) -> Any:
            pieces.append(arguments[2])  # noqa: B023
            return None if len(pieces) == refused else partition(*arguments, **options)  # noqa: B023

        monkeypatch.setattr(lookups, "partition_keys", some)
        answered, values, found = map(on_host, table.find(on_device(device, keys), order="any"))
        assert (np.sort(answered[:5000]) == np.sort(keys[:5000])).all() and pieces == [5000, 4001]
        assert ((answered[5000:] == keys[5000:]).all()) == (refused == 2)
        assert (found == np.isin(answered, keys[:6000])).all() and (values == np.where(found, ~answered, 0)).all()
    assert chosen == [(9001, True)] * 2


def test_an_order_that_is_kept(device: str, chosen: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys come back as they were given where no order would help, or none may be chosen."""
    keys = some_keys(4000, "uint32")
    table = HashMap.from_arrays(keys, ~keys, device=device, **DESIGNS[0])
    few, many = keys[:9].tolist(), on_device(device, keys)
    monkeypatch.setattr(lookups, "FEWEST_PARTITIONED", 10)
    given, values, found = table.find(few, order="any")
    assert given is few and (values == ~keys[:9]).all() and found.all() and not chosen
    monkeypatch.setattr(lookups, "lookup_parts_of", lambda *_: None)
    given, found = table.contains(many, order="any")
    assert given is many and on_host(found).all() and chosen == [(4000, False)]
    given, values, found = table.find(keys, order="any")
    assert given is keys and (values == ~keys).all() and found.all()  # of the host, in pieces
    assert chosen == [(4000, False)]


@pytest.mark.parametrize(
    ("key", "value", "options"),
    [
        ("uint16", "uint32", {}),
        ("uint32", "uint16", {}),
        ("S20", "uint32", {}),
        ("uint32", "uint32", {"max_size": 3000, "evict": "lru"}),
    ],
)
def test_tables_whose_order_is_never_chosen(
    key: str, value: str, options: dict[str, Any], device: str, chosen: list[tuple[int, bool]]
) -> None:
    numbers = np.arange(3000)
    keys = np.char.mod("%020d", numbers).astype(key) if key == "S20" else numbers.astype(key)
    table = HashMap.from_arrays(keys, numbers.astype(value), device=device, **options)
    held = on_device(device, keys)
    given, values, found = table.find(held, order="any")
    assert given is held and (on_host(values) == numbers).all() and on_host(found).all()
    assert not any(done for _, done in chosen)


def test_tables_on_the_cpu_keep_the_order(chosen: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "FEWEST_PARTITIONED", 1)
    for keys, options in (
        (np.array([7, 8, 9]), {}),
        (["a", "b", "c"], {}),
        (pa.array([7, None, 9], pa.int32()), {"nulls": "key"}),
    ):
        table = HashMap.from_arrays(keys, np.arange(3, dtype=np.uint32), device="cpu", **options)
        given, values, found = table.find(keys, order="any")
        assert given is keys and np.asarray(values).tolist() == [0, 1, 2] and np.asarray(found).all()
    assert not chosen


@pytest.mark.parametrize("order", ["table", None, "Any", 1])
def test_an_order_that_is_none(order: Any) -> None:
    table = HashMap.from_arrays([1], [2], device="cpu")
    for verb in (table.find, table.contains):
        with pytest.raises(ParameterError, match='order must be "given" or "any", got'):
            verb([1], order=order)


def test_sets_ask_each_other_in_any_order(device: str, chosen: list[tuple[int, bool]], restored: list[int]) -> None:
    keys = some_keys(9000, "uint32")
    left, right = keys[:6000], keys[3000:]
    one, two = (HashSet.from_arrays(half, device=device, **DESIGNS[0]) for half in (left, right))
    chosen.clear()
    restored.clear()
    for made, expected in [
        (one & two, np.intersect1d(left, right)),
        (one - two, np.setdiff1d(left, right)),
        (one ^ two, np.setxor1d(left, right)),
        (one | two, np.unique(keys)),
    ]:
        assert (np.sort(made.keys()) == expected).all()
    assert not one.isdisjoint(two) and not one <= two and (one & two) <= two
    one -= two
    assert (np.sort(one.keys()) == np.setdiff1d(left, right)).all()
    assert len(chosen) > 5 and all(done for _, done in chosen) and not restored


def test_every_allocation_of_a_comparison_of_sets_is_refused_in_turn(device: str) -> None:
    """An order that costs memory is given up; what the answer itself needs is named by an error."""
    keys = some_keys(5000, "uint32")
    one, two = (HashSet.from_arrays(half, device=device, **DESIGNS[0]) for half in (keys[:4000], keys[1000:]))
    engine, answers = engine_for(device), 0
    for first in range(1, 100):
        with refusing(engine, first) as count:
            try:
                assert not one.isdisjoint(two)
                answers += count.refused
            except MemoryError:
                assert count.refused
        if not count.refused:
            break
    assert count.asked > 3 and answers >= 2  # the copies, and the room of their order
    for table, half in ((one, keys[:4000]), (two, keys[1000:])):
        table.check()
        assert (np.sort(table.keys()) == np.sort(half)).all()


GB, WINDOW_BYTES, H200 = 10**9, 37_748_736, {"reach_bytes": 60 << 30, "lanes": 132 * 2048}


insert_parts_of = partial(sizes_of_parts.parts_of, window_bytes=WINDOW_BYTES)


@pytest.mark.parametrize("function", [insert_parts_of, sizes_of_parts.lookup_parts_of], ids=["insert", "find"])
def test_parts_of_tables_beyond_the_reach_of_translation(function: Callable[..., tuple[int, int] | None]) -> None:
    def parts(table_bytes: int, bucket_bytes: int, n: int) -> tuple[int, int] | None:
        return function(buckets=table_bytes // bucket_bytes, bucket_bytes=bucket_bytes, n=n, **H200)

    assert parts(60 * GB, 64, 50_000_000) is None
    assert parts(100 * GB, 64, 50_000_000) == (12, 27)  # of 8 GiB
    assert parts(100 * GB, 128, 50_000_000) == (12, 26)
    assert parts(64 * MAX_BUCKETS, 64, 50_000_000) == (32, 27)  # 2^35 slots: more than 32 bits can count
    assert parts(100 * GB, 64, 12 * 132 * 2048) == (12, 27)
    assert parts(100 * GB, 64, 12 * 132 * 2048 - 1) is None  # the lanes would be in more than two parts


def test_parts_of_an_insert_that_fills_lines_lie_in_the_cache_if_they_are_few_enough() -> None:
    assert sizes_of_parts.parts_of(100 * GB // 64, 64, WINDOW_BYTES, n=1 << 32, **H200) == (187, 23)  # of 512 MiB
    assert (
        sizes_of_parts.parts_of(100 * GB // 64, 64, WINDOW_BYTES, H200["lanes"], 50_000_000) is None
    )  # all is within reach


def test_parts_that_lie_in_the_cache() -> None:
    """Where several elements read each bucket of a table that is much larger than the cache."""

    def parts(keys: int, n: int) -> tuple[int, int] | None:
        return sizes_of_parts.lookup_parts_of(round(keys / 7.2), 80, n=n, window_bytes=WINDOW_BYTES, **H200)

    assert parts(50_000_000, 50_000_000) == (27, 18)  # of 16 MiB
    assert parts(50_000_000, 1 << 25) == (27, 18)
    assert parts(50_000_000, (1 << 25) - 1) is None  # the launches take longer than the cache saves
    assert parts(200_000_000, 170_000_000) == (106, 18)
    assert parts(400_000_000, 170_000_000) == (106, 19)  # with 212 parts, the way there and back takes longer
    assert parts(1_000_000_000, 1 << 30) == (133, 20)
    assert parts(400_000_000, 160_000_000) is None  # few elements for each bucket
    assert parts(40_000_000, 50_000_000) == (22, 18)
    assert parts(32_000_000, 50_000_000) is None  # a good part of the table lies in the cache as it is
    assert parts(2_000_000_000, 1 << 30) is None  # parts would be far larger than the cache


@pytest.mark.parametrize(
    ("design", "key", "value", "gains"),
    [
        ("quotient_cuckoo", "uint32", "uint32", True),
        ("quotient_cuckoo", "int32", "int16", True),
        ("quotient_cuckoo", "uint64", "uint64", False),
        ("bucketed_cuckoo", "uint32", "uint32", False),
        ("dynamic_cuckoo", "uint32", "uint32", False),
    ],
)
def test_which_lookups_gain_by_the_cache(
    device: str, design: str, key: str, value: str, gains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(lookups, "lookup_parts_of", lambda *arguments: asked.append(arguments[-1]))
    table, keys = HashMap(key, value, capacity=100, design=design, device=device), np.arange(50).astype(key)
    table.insert(keys, keys.astype(value))
    asked.clear()
    assert table.find(keys)[1].all() and table.contains(keys).all()
    assert asked == [gains * engine_for(device).window_bytes] * 2


@pytest.fixture
def small_window(device: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A device with a cache of 4 KB, and numbers of its own."""
    engine = engine_for(device)
    monkeypatch.setattr(engine, "window_bytes", 4096)
    monkeypatch.setattr(engine, "reach_bytes", 1 << 40)
    monkeypatch.setattr(sizes_of_parts, "_FEWEST_CACHED_LOOKUPS", 1000)
    numbers: dict[Any, float] = {}
    monkeypatch.setattr(engine, "recall", numbers.get)
    monkeypatch.setattr(engine, "remember", numbers.__setitem__)
    return device


@pytest.mark.parametrize("value", ["uint32", None])
def test_a_measured_number_decides(small_window: str, value: str | None, restored: list[int]) -> None:
    keys = some_keys(5000, "uint32")
    options = {"device": small_window, **DESIGNS[0]}
    table: Any = HashMap.from_arrays(keys, ~keys, **options) if value else HashSet.from_arrays(keys, **options)
    array, asked = storage_of(table).store.array, np.tile(keys, 3)
    count = parts_of_window(array)
    assert count > 3
    for number, by_parts in ((None, False), (count, True), (count + 1, False), (1, True), (calibrate.NEVER, False)):
        if number is not None:
            array.engine.remember(array.spec, number)
        restored.clear()
        assert table.contains(asked).all()
        assert not value or (table.find(asked)[0] == ~asked).all()
        assert restored == [15000] * by_parts * (2 if value else 1)
    array.engine.remember(array.spec, 1)
    restored.clear()
    assert table.erase(asked).sum() == 5000 and not restored  # erases gain nothing


def parts_of_window(array: Any) -> int:
    spec = array.spec
    parts = sizes_of_parts.cached_parts_of(
        array.buckets, spec.slots_per_bucket * spec.slot_bytes, array.engine.window_bytes
    )
    assert parts is not None
    return parts[0]


@pytest.mark.parametrize("setting", DESIGNS, ids=lambda setting: setting["design"])
@pytest.mark.parametrize(("key", "value"), [("uint32", "uint32"), ("uint64", "uint64"), ("uint32", None)])
def test_the_number_is_measured_and_kept(
    small_window: str, setting: dict[str, Any], key: str, value: str | None, restored: list[int]
) -> None:
    options = {"capacity": 1, "device": small_window, **setting}
    table: Any = HashMap(key, value, **options) if value else HashSet(key, **options)
    store = storage_of(table).store
    number = calibrate.calibrate(store, 4000)
    assert number == calibrate.NEVER or number > 1
    assert store.engine.recall(store.state.array.spec) == number
    sizes = [4000 >> halved for halved in range(6)]
    assert set(restored) <= set(sizes) and restored.count(4000) == 5
    timed = calibrate.time_lookups(store, 4000)
    assert timed is not None and timed.parts > 1 and timed.as_given > 0 and timed.by_parts > 0
    assert calibrate.time_lookups(store, 8) is None or setting["design"] == "cuckoo"


def test_lookups_that_are_timed_are_answered(small_window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[bool] = []
    by_parts, as_given = calibrate.find_by_parts, calibrate.find_as_given

    def checked(find: Any) -> Any:
        def call(array: Any, keys: int, n: int, values: int, flags: int, *rest: Any) -> Any:
            done = find(array, keys, n, values, flags, *rest)
            engine = array.engine
            asked, found = engine.to_host(keys, np.uint64, n), engine.to_host(values, np.uint64, n)
            answered.append(bool((found == asked).all() and engine.to_host(flags, np.uint8, n).all()))
            assert len(np.unique(asked)) == n
            engine.fill(values, 0, 8 * n)
            engine.fill(flags, 0, n)
            return done

        return call

    monkeypatch.setattr(calibrate, "find_by_parts", checked(by_parts))
    monkeypatch.setattr(calibrate, "find_as_given", checked(as_given))
    table = HashMap("uint64", "uint64", device=small_window, **DESIGNS[0])
    assert calibrate.time_lookups(storage_of(table).store, 3000, rounds=2) is not None
    assert answered == [True] * 4


@pytest.mark.parametrize(
    ("seconds", "number"),
    [
        ([(2, 1, 2), (4, 1, 2)], calibrate.NEVER),
        ([(2, 2, 1), (4, 2, 1), (8, 2, 1)], 2),
        ([(2, 1, 2), (4, 2, 1), (8, 2, 1)], 4),
        ([(2, 2, 1), (4, 1, 1), (8, 2, 1)], 8),
        ([(2, 2, 1), (4, 2, 1), (8, 1, 2)], calibrate.NEVER),
        ([], calibrate.NEVER),
    ],
)
def test_the_fewest_parts_of_some_times(seconds: list[tuple[int, float, float]], number: float) -> None:
    assert calibrate.fewest_parts([calibrate.LookupTimes(*each) for each in seconds]) == number


def test_no_memory_for_what_is_measured(small_window: str) -> None:
    table = HashMap("uint32", "uint32", device=small_window, **DESIGNS[0])
    engine, spec = engine_for(small_window), storage_of(table).store.state.array.spec
    for first in range(1, 1000):
        engine.remember(spec, 7.5)
        with refusing(engine, first) as count:
            try:
                calibrate.calibrate(storage_of(table).store, 2000)
                assert engine.recall(spec) != 7.5
            except MemoryError:
                assert count.refused and engine.recall(spec) == 7.5
        if not count.refused:
            break
    assert engine.recall(spec) != 7.5 and not len(table)


@pytest.mark.parametrize("order", ["given", "parts", "auto", "", "other"])
def test_the_order_of_batches_can_be_forced(
    small_window: str, order: str, restored: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[bool] = []
    in_parts = ordering.in_parts

    def noted(*arguments: Any) -> Any:
        copies = in_parts(*arguments)
        moved.append(copies is not None)
        return copies

    monkeypatch.setattr("warphash.storage.update.array_slots.in_parts", noted)
    monkeypatch.setenv("WARPHASH_BATCH_ORDER", order)
    keys = some_keys(6000, "uint32")
    table = HashMap("uint32", "uint32", capacity=9000, device=small_window, **DESIGNS[0])
    table.insert(keys[:5000], ~keys[:5000], assume_unique=True)
    values, found = table.find(keys)
    assert (found == (np.arange(6000) < 5000)).all() and (values[:5000] == ~keys[:5000]).all()
    assert table.contains(keys).sum() == 5000 and table.erase(keys).sum() == 5000 and not len(table)
    assert restored == ([6000] * 3 if order == "parts" else [])
    if order in ("given", "parts"):
        assert moved == [order == "parts"]


@pytest.mark.parametrize("device_name", ["cpu", "emulated"])
def test_where_translation_does_not_matter(device_name: str) -> None:
    reach_bytes = {"cpu": CpuEngine.reach_bytes, "emulated": EmulatedEngine.reach_bytes}[device_name]
    assert sizes_of_parts.lookup_parts_of(1 << 20, 64, reach_bytes, 4, 1 << 31) is None


def test_a_part_of_a_large_table_lies_within_reach() -> None:
    for buckets in (1 << 30, 3 << 29, 1 << 31, MAX_BUCKETS):
        for n in (10**8, 10**9, 1 << 32):
            count, shift = sizes_of_parts.lookup_parts_of(buckets, 64, n=n, **H200) or (0, 0)
            assert 0 < count <= sizes_of_parts.MOST_PARTS and 2 * (64 << shift) <= H200["reach_bytes"]
            assert count - 1 == buckets - 1 >> shift


def disorder(engine: EmulatedEngine, seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether an answer was lost or came to another element, in one schedule."""
    monkeypatch.setattr(emulated, "schedule_seed", seed)
    keys = some_keys(9100, "uint32", seed=3)
    array = storage_of(HashMap("uint32", "uint32", capacity=5000, device="emulated", **DESIGNS[0])).store.array
    monkeypatch.setattr(array, "engine", engine)
    held, out = engine.from_host(keys), engine.from_host(np.zeros(5 * 9100, np.uint8))
    try:
        parted = partition_keys(array, held.ptr, 9100, ((array.buckets - 1 >> 5) + 1, 5), None)
        assert parted is not None
        copies = engine.to_host(parted.keys, np.uint32, 9100)
        engine.upload(parted.flags, copies.astype(np.uint8))
        parted.restore(out.ptr, out.ptr + 4 * 9100, None)
    except EmulationError:
        return True
    values, flags = engine.to_host(out.ptr, np.uint32, 9100), engine.to_host(out.ptr + 4 * 9100, np.uint8, 9100)
    return bool((values != keys).any() or (flags != keys.astype(np.uint8)).any())


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestSchedules:
    def test_all_of_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine()
        assert not any(disorder(engine, seed, monkeypatch) for seed in range(30))

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("(places + TileElements::number(k));\n    block_barrier();\n", "(places + TileElements::number(k));\n"),
            ("fetch_add(tile.counts + place[k], 1u);\n    block_barrier();", "tile.counts[place[k]]++;\n"),
            ("static_cast<u64>(static_cast<u32>(run)) - start", "static_cast<u64>(static_cast<u32>(run))"),
        ],
        ids=["answers are taken before they are there", "a tile is arranged too early", "a run begins too late"],
    )
    def test_a_planted_bug_shows(self, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine(planted_among("RestoreOrder", right, wrong))
        assert any(disorder(engine, seed, monkeypatch) for seed in range(30))
