"""Batches that compiled code knows: which arrays they have, which tables it leaves alone, and what comes of them."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing
from support.inside import parts_of, storage_of
from warphash import HashMap, HashSet, TableFull, WarphashError
from warphash.arrays.dlpack import LEGACY_STREAM
from warphash.arrays.library import ELSEWHERE, KnownArrays
from warphash.runtime.cuda import _streams  # type: ignore[attr-defined]
from warphash.storage.lookup import NO_FIELDS
from warphash.storage.word_rows import WordRows
from warphash.table.front import PRESENCE
from warphash.table.known_batches import KnownLookups, known_lookups, known_updates, share, shared
from warphash.table.lookups import Lookups
from warphash.table.updates import Updates

PLACES = (0, 8, 16, 24, 32, 40)
"""Of words in a batch of five."""


class Array:
    """An array of a library that these tests make up."""

    def __init__(self, shape: Any, dtype: str = "u4", at: int = 4096, is_dense: bool = True) -> None:
        self.shape, self.dtype, self.data, self._is_dense = shape, dtype, SimpleNamespace(ptr=at), is_dense

    def is_contiguous(self) -> bool:
        return self._is_dense


class Other(Array):
    """An array of a subclass: what its attributes answer is its own affair."""


class Storage:
    """In place of a `WordRows`."""

    def __init__(self, **changes: Any) -> None:
        step, fields = changes.get("step"), changes.get("find_fields", NO_FIELDS)
        program = changes.get("program", SimpleNamespace(kernels={}))
        array = SimpleNamespace(find_fields=fields, program=program, table=b"12345678")
        self.store = SimpleNamespace(recovery=SimpleNamespace(step=step), state=SimpleNamespace(array=array))


def known(dtype: str = "u4") -> Any:
    return _streams.KnownArrays(Array, ((("dtype",), dtype), (("is_contiguous()",), True)), ("data", "ptr"))


def lookups(makes_values: bool = True, stream: int = 7) -> Any:
    make_values = (Array, "f4", 512) if makes_values else None
    makers = [make_values, (Array, "?", 256)]
    return _streams.KnownBatch([known()], lambda: stream, makers, 3, 1000)


def updates() -> Any:
    return _streams.KnownBatch([known(), known("f8")], lambda: 7, [(Array, "?", 256)], 0, 1000)


def test_what_is_seen_of_known_arrays() -> None:
    values, found, *rest = lookups().see(Array((5,)))
    assert (values.dtype, found.dtype, values.shape, found.shape) == ("f4", "?", (5,), (5,))
    assert rest == [5, 7, 4096, 512, 256]
    values, found, *rest = lookups(makes_values=False).see(Array((999,)))
    assert values is None and found.shape == (999,) and rest == [999, 7, 4096, 0, 256]
    added, *rest = updates().see(Array((5,), at=4098), Array((5,), "f8", 8192))
    assert (added.dtype, added.shape) == ("?", (5,)) and rest == [5, 7, 4098, 8192, 256]


def test_the_legacy_stream_has_a_number_of_its_own() -> None:
    assert lookups(stream=0).see(Array((5,)))[3] == LEGACY_STREAM


def test_arrays_are_made_of_a_plain_shape() -> None:
    class Shape(tuple):  # type: ignore[type-arg]
        pass

    made = lookups().see(Array(Shape((5,))))
    assert [type(array.shape) for array in made[:2]] == [tuple, tuple] and made[0].shape == (5,)


@pytest.mark.parametrize(
    "values",
    [Array((6,), "f8"), Array((5, 1), "f8"), Array((5,)), Array((5,), "f8", is_dense=False), None],
    ids=["of another length", "of rows", "of another type", "with gaps", "none"],
)
def test_pairs_that_do_not_fit_go_the_usual_way(values: Any) -> None:
    assert updates().see(Array((5,)), values) is None
    with pytest.raises(TypeError, match="as many arrays"):
        updates().see(Array((5,)))


@pytest.mark.parametrize(
    "array",
    [
        Other((5,)),
        Array((5,), "i4"),
        Array((5,), is_dense=False),
        Array((5,), at=4098),  # not aligned
        Array((5,), at=0),  # without memory
        Array(()),
        Array((0,)),
        Array((5, 1)),
        Array((1000,)),  # too many
        Array([5]),  # the shape of no known library
        [1, 2],
        None,
    ],
    ids=lambda array: f"{type(array).__name__} {getattr(array, 'shape', '')}",
)
def test_other_arrays_go_the_usual_way(array: Any) -> None:
    assert lookups().see(array) is None


def test_arrays_of_another_device_go_the_usual_way() -> None:
    assert lookups(stream=ELSEWHERE).see(Array((5,))) is None


@pytest.mark.parametrize(
    "storage",
    [
        SimpleNamespace(**vars(Storage())),
        Storage(step=print),
        Storage(find_fields={"displaced": 1}),
        Storage(),  # no find was ever launched
        Storage(program=SimpleNamespace()),
    ],
    ids=[
        "of another type",
        "with an update to finish",
        "with displaced pairs",
        "without a loaded kernel",
        "that are swept",
    ],
)
def test_other_storages_go_the_usual_way(storage: Any) -> None:
    find = _streams.Find(Storage, WordRows.loaded_find, PLACES)
    assert find.launch(storage, 0, lookups().see(Array((5,)))) == -1


def test_an_error_of_an_array_comes_out() -> None:
    class Broken(Array):
        @property
        def dtype(self) -> Any:  # type: ignore[override]
            raise ZeroDivisionError

        @dtype.setter
        def dtype(self, _: Any) -> None:
            pass

    broken = _streams.KnownArrays(Broken, ((("dtype",), "u4"),), ("data", "ptr"))
    with pytest.raises(ZeroDivisionError):
        _streams.KnownBatch([broken], lambda: 0, [None, (Array,)], 3, 10).see(Broken((5,)))


def test_an_array_that_is_transformed_goes_the_usual_way() -> None:
    """As a tensor under PyTorch's vmap, which raises RuntimeError when it is asked for its address."""

    class Transformed(SimpleNamespace):
        @property
        def ptr(self) -> int:
            raise RuntimeError("no address")

    array = Array((5,))
    array.data = Transformed()
    assert lookups().see(array) is None


def test_a_table_of_rows_knows_what_no_table_of_numbers_knows() -> None:
    """Rows of one item have the type of an item, and a shape of their own."""
    numbers, rows = (HashMap("int64", value, device="cpu") for value in ("int32", ("int32", (1,))))
    known = KnownLookups(lambda *arrays: None, lambda *given: -1)
    for table, is_shared in ((rows, False), (numbers, True)):
        parts = parts_of(table)
        share(parts.facts, parts.front, known, "find")
        assert (shared(parts.facts, parts.front, "find") is known) is is_shared
    parts_of(numbers).facts.known.clear()


def test_an_error_of_a_maker_comes_out() -> None:
    def without_memory(shape: Any) -> Any:
        raise MemoryError

    with pytest.raises(MemoryError):
        _streams.KnownBatch([known()], lambda: 0, [(Array,), (without_memory,)], 3, 10).see(Array((5,)))


def test_tables_of_host_memory_have_none() -> None:
    table = HashMap.from_arrays(np.arange(9), np.arange(9), device="cpu")
    for _ in range(2):
        assert table.find(np.arange(9))[1].all() and not table.assign(np.arange(9), np.arange(9)).any()
    assert not any(parts_of(table).lookups.known.values()) and not any(parts_of(table).updates.known.values())


@pytest.mark.parametrize(("dtype", "known_to"), [("i2", (False, True)), ("i4", (True, True)), ("S4", (True, True))])
def test_which_types_of_keys_are_known(dtype: str, known_to: tuple[bool, bool]) -> None:
    """A lookup goes to its launch if keys are as wide as words."""
    table = HashMap(dtype, "i4", device="cpu")
    of_type = lambda view, dtype: KnownArrays(Array, (), ("data", "ptr"), lambda: 0)  # noqa: E731
    library = SimpleNamespace(known=of_type, maker=lambda view, dtype: (Array,))
    seen: Any = SimpleNamespace(library=library)
    front = parts_of(table).front
    with mock.patch.object(front, "engine", SimpleNamespace(compiled=_streams)):
        lookups = known_lookups(front, storage_of(table), Array, seen, front.value, PRESENCE)
        updates = known_updates(front, Array, [seen, seen], PRESENCE)
    assert (lookups is not None, updates is not None) == known_to


def test_a_known_lookup_goes_to_its_launch() -> None:
    """With the storage, the default as a word, and what was seen; -1 sends it the usual way."""
    table = HashMap.from_arrays(np.arange(9), np.arange(9), device="cpu")
    keys, made, launched = np.arange(3), (np.full(3, 5), np.ones(3, bool), 3), []

    def launch(storage: Any, absent: int, seen: Any) -> int:
        launched.append((storage, absent, seen))
        return 0 if len(launched) == 1 else -1

    known = KnownLookups(lambda given: made if given is keys else None, launch)
    parts_of(table).lookups.known[np.ndarray, True] = known
    assert table.find(keys, default=-2)[0] is made[0]
    assert launched == [(storage_of(table), (1 << 64) - 2, made)]
    assert table.find(keys)[0].tolist() == [0, 1, 2] and len(launched) == 2
    assert table.find(keys + 1)[0].tolist() == [1, 2, 3] and len(launched) == 2


@pytest.mark.parametrize("knows_more", [True, False])
def test_a_known_lookup_behind_an_update_is_launched_when_that_is_finished(knows_more: bool) -> None:
    table = HashMap.from_arrays(np.arange(9), np.arange(9), device="cpu")
    keys, made, steps, pending = np.arange(3), (np.full(3, 5), np.ones(3, bool), 3), list[int](), list[bool]()
    recovery = storage_of(table).store.recovery
    recovery.step = lambda stream: steps.append(1)

    def launch(storage: Any, absent: int, seen: Any) -> int:
        pending.append(storage.store.pending)
        return 0 if knows_more and not pending[-1] else -1

    parts_of(table).lookups.known[np.ndarray, True] = KnownLookups(lambda given: made, launch)
    values, _ = table.find(keys)
    assert pending == [True, False] and steps == [1] and recovery.step is None
    assert values is made[0] if knows_more else values.tolist() == [0, 1, 2]


@pytest.mark.parametrize("has_values", [True, False])
def test_a_known_update_is_not_seen_again(has_values: bool) -> None:
    table: Any = HashMap("i8", "i8", device="cpu") if has_values else HashSet("i8", device="cpu")
    keys, added = np.arange(5), np.zeros(5, bool)
    given = (keys, keys) if has_values else (keys,)
    at = [array.ctypes.data for array in given]
    parts_of(table).updates.known[np.ndarray] = lambda *arrays: (added, 5, None, *at, added.ctypes.data)
    with mock.patch.object(Updates, "view_pairs") as went:
        assert table.insert(*given) is added and added.all()
    assert not went.called and table.contains(keys).all() and len(table) == 5


def test_what_a_table_knows_serves_the_next_one() -> None:
    """If it has the same facts and types, and an update has been seen to come of arrays of the same kind."""
    keys, added = np.arange(5), np.zeros(5, bool)
    at = keys.ctypes.data, keys.ctypes.data, added.ctypes.data
    see = lambda *arrays: (added, 5, None, *at)  # noqa: E731
    first = HashMap("i8", "i8", device="cpu", attempts=77)
    share(parts_of(first).facts, parts_of(first).front, see, np.ndarray)
    for types, is_known in ((("i8", "i8"), True), (("i8", "u8"), False), (("u8", "i8"), False)):
        table: Any = HashMap(*types, device="cpu", attempts=77)
        assert parts_of(table).facts is parts_of(first).facts
        given = [array.astype(dtype) for array, dtype in zip((keys, keys), types, strict=True)]
        for times in range(3):
            with mock.patch.object(Updates, "view_pairs", autospec=True, side_effect=Updates.view_pairs) as went:
                table.insert(*given)
            assert went.called == (times == 0 or not is_known)
        assert table.contains(given[0]).all() and len(table) == 5
    other = HashMap("i8", "i8", device="cpu", attempts=77, on_full="raise")
    assert not parts_of(other).facts.known
    parts_of(first).facts.known.clear()


def test_lookups_of_a_table_serve_the_next_one() -> None:
    table = HashMap.from_arrays(np.arange(9), np.arange(9), device="cpu", attempts=77)
    made = np.full(3, 5), np.ones(3, bool), 3
    known = KnownLookups(lambda given: made, lambda storage, absent, seen: 0)
    share(parts_of(table).facts, parts_of(table).front, known, np.ndarray, True)
    try:
        assert table.find(np.arange(3))[0] is made[0]
        assert HashMap.from_arrays(np.arange(9), np.arange(9), device="cpu", attempts=77)[3] == 3
        assert table.contains(np.arange(20)).sum() == 9  # of which nobody knows more
    finally:
        parts_of(table).facts.known.clear()


# ---- on a GPU
def arrays_of(name: str, host: Any) -> Any:
    library = pytest.importorskip(name)
    return library.asarray(host) if name == "cupy" else library.from_numpy(host).cuda()


def on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array.cpu().numpy()


def usual_way(table: Any) -> Any:
    """A mock of the usual way of a lookup, which counts how often a lookup goes there."""
    return mock.patch.object(Lookups, "find", autospec=True, side_effect=Lookups.find)


@pytest.mark.cuda
@pytest.mark.skipif(bool(missing("cuda")), reason=missing("cuda") or "it runs")
@pytest.mark.parametrize("library", ["cupy", "torch"])
class TestOnGpu:
    @pytest.mark.parametrize("design", ["quotient_cuckoo", "bucketed_cuckoo", "slab", "dynamic_cuckoo", "cuckoo"])
    @pytest.mark.parametrize(("key", "value"), [("int32", "float32"), ("int64", "int64"), ("int32", "int32")])
    def test_the_answers(self, library: str, design: str, key: str, value: str) -> None:
        rng = np.random.default_rng(1)
        host = np.unique(rng.integers(-(1 << 31), 1 << 31, 3000)).astype(key)
        kept, values = host[::2], rng.permutation(len(host[::2])).astype(value)
        table = HashMap.from_arrays(arrays_of(library, kept), arrays_of(library, values), design=design)
        expected = dict(zip(kept.tolist(), values.tolist(), strict=True))
        for n in (1, 31, 33, 1000, len(host)):
            asked = rng.permutation(host)[:n]
            keys = arrays_of(library, asked)
            for default in (0, -5, 7):
                table.find(keys)  # whatever it needs to know
                with usual_way(table) as went:
                    got, found = table.find(keys, default)
                    there = table.contains(keys)
                    there_again = table.contains(keys)
                assert type(got) is type(keys) and type(found) is type(keys)
                assert on_host(got).dtype == np.dtype(value) and on_host(found).dtype == np.bool_
                assert on_host(got).tolist() == [expected.get(k, default) for k in asked.tolist()]
                for flags in (found, there, there_again):
                    assert on_host(flags).tolist() == [k in expected for k in asked.tolist()]
                if design in ("quotient_cuckoo", "cuckoo"):
                    assert went.call_count <= 1  # the first one of contains

    @pytest.mark.parametrize("design", ["quotient_cuckoo", "bucketed_cuckoo", "slab", "stadium"])
    @pytest.mark.parametrize(("key", "value"), [("int32", "float32"), ("int64", "int16"), ("int32", None)])
    def test_updates(self, library: str, design: str, key: str, value: str | None) -> None:
        rng = np.random.default_rng(1)
        make: Any = HashMap if value else HashSet
        table = make(key, *([value] if value else []), design=design, capacity=100)
        expected: dict[int, Any] = {}
        for n in (1, 300, 1000, 1000, 20_000):  # in which the table grows
            host = rng.integers(0, 15_000, n).astype(key)
            values = (host % 100).astype(value or "u1")
            given = [arrays_of(library, host), *([arrays_of(library, values)] if value else [])]
            with mock.patch.object(Updates, "view_pairs", autospec=True, side_effect=Updates.view_pairs) as went:
                added = table.insert(*given)
            assert type(added) is type(given[0]) and went.call_count == (n == 1)
            assert sorted(host[on_host(added)].tolist()) == sorted(set(host.tolist()) - set(expected))
            expected |= dict.fromkeys(host.tolist(), 0)
            assert len(table) == len(expected)
            if value:
                with mock.patch.object(Updates, "view_pairs") as went:
                    assert not on_host(table.assign(*given)).any()
                    assert not on_host(table.upsert(*given, "max")).any()
                assert not went.called and (on_host(table.find(given[0])[0]) == values).all()
        table.check()

    @pytest.mark.parametrize("key", ["int8", "int16"])
    def test_keys_narrower_than_words(self, library: str, key: str) -> None:
        host = np.arange(100).astype(key)
        keys = arrays_of(library, host)
        table, members = HashMap(key, key), HashSet(key)
        for _ in range(3):
            table.assign(keys, keys)
            members.insert(keys)
            assert (on_host(table.find(keys)[0]) == host).all() and on_host(table.contains(keys)).all()
            assert on_host(members.contains(keys)).all() and not on_host(members.contains(keys - 100)).any()

    def test_updates_in_arrays_that_it_does_not_know(self, library: str) -> None:
        host = np.arange(3000, dtype=np.int32)
        keys = arrays_of(library, host)
        table = HashMap("int32", "int32")
        assert on_host(table.insert(keys, keys)).all()
        assert not on_host(table.assign(keys[::3], keys[::3])).any()
        assert not on_host(table.assign(keys[:0], keys[:0])).any()
        assert on_host(table.assign(keys.reshape(50, 60), keys.reshape(50, 60))).shape == (50, 60)
        assert not on_host(table.assign(keys, arrays_of(library, host.astype(np.int16)))).any()
        assert not on_host(table.assign(keys, host)).any() and not table.assign(host, host).any()
        assert (on_host(table.find(keys)[0]) == host).all()
        for values in (keys[1:], None):
            with pytest.raises(WarphashError):
                table.insert(keys, values)
        with pytest.raises(WarphashError):
            table.insert(keys, arrays_of(library, host.astype(np.int64) << 32))
        full = HashMap("int32", "int32", capacity=100, on_full="raise")
        for n in (10, 3000):
            with pytest.raises(TableFull) if n > 10 else nullcontext() as raised:
                full.insert(keys[:n], keys[:n])
        assert len(full) == 10 and raised is not None and len(raised.value.keys)
        assert (on_host(table.find(keys)[0]) == host).all()

    def test_what_changes_between_two_lookups(self, library: str) -> None:
        host = np.arange(20_000, dtype=np.int32)
        keys = arrays_of(library, host)
        table = HashMap("int32", "int32", capacity=100)
        for end in (50, 100, 5000, 20_000):  # in which the table grows
            table.insert(keys[:end], keys[:end])
            for _ in range(2):
                values, found = table.find(keys)
                assert (on_host(found) == (host < end)).all() and (on_host(values) == host * (host < end)).all()
        table.assign(keys[:500], keys[500:1000])  # nobody waits for it
        assert (on_host(table.find(keys[:1000])[0]) == np.r_[host[500:1000], host[500:1000]]).all()
        table.erase(keys[:10])
        assert not on_host(table.contains(keys[:10])).any()
        table.clear()
        assert not on_host(table.contains(keys)).any()
        copy = table.copy()
        copy.insert(keys, keys)
        assert on_host(copy.contains(keys)).all() and not on_host(table.contains(keys)).any()

    def test_arrays_that_it_does_not_know(self, library: str) -> None:
        host = np.arange(3000, dtype=np.int32)
        keys = arrays_of(library, host)
        table = HashMap.from_arrays(keys, keys)
        for _ in range(2):
            assert on_host(table.find(keys)[1]).all()
        assert (on_host(table.find(keys[::3])[0]) == host[::3]).all()
        assert on_host(table.find(keys.reshape(50, 60))[0]).shape == (50, 60)
        assert on_host(table.find(keys[:0])[0]).shape == (0,)
        assert (table.find(host)[0] == host).all() and table.find([5])[1].all()
        wide = arrays_of(library, host.astype(np.int64) << 20)  # of which int32 has two thirds, and the table one key
        assert on_host(table.find(wide)[1]).nonzero()[0].tolist() == [0]

    def test_on_streams_of_the_library(self, library: str) -> None:
        host = np.arange(3000, dtype=np.int32)
        keys = arrays_of(library, host)
        table, module = HashMap.from_arrays(keys, keys), pytest.importorskip(library)
        streams = module.cuda
        for _ in range(20):
            stream = streams.Stream()
            with streams.stream(stream) if library == "torch" else stream:
                more = keys + 1
                values, found = table.find(more)
                again = on_host(values + 0)
            assert (again[:-1] == host[1:]).all() and on_host(found).sum() == 2999

    def test_by_several_threads_beside_updates(self, library: str) -> None:
        host = np.arange(4000, dtype=np.int32)
        keys = arrays_of(library, host)
        table, wrong = HashMap.from_arrays(keys[:2000], keys[:2000]), list[str]()

        def work(number: int) -> None:
            for _ in range(200):
                if number == 0:
                    table.assign(keys[2000:3000], keys[2000:3000])
                    table.erase(keys[2000:3000])
                values, found = table.find(keys)
                ok = on_host(found)
                if not ok[:2000].all() or ok[3000:].any() or (on_host(values)[ok] != host[ok]).any():
                    wrong.append("a find")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    def test_of_sets_and_of_bounded_tables(self, library: str) -> None:
        host = np.arange(1000, dtype=np.int64)
        keys = arrays_of(library, host)
        members, bounded = HashSet.from_arrays(keys), HashMap("int64", "int64", max_size=5000)
        bounded.insert(keys, keys)
        for _ in range(3):
            assert on_host(members.contains(keys)).all() and not on_host(members.contains(keys + 1000)).any()
            assert (on_host(bounded.find(keys)[0]) == host).all()
            assert not on_host(bounded.assign(keys, keys)).any() and not on_host(members.insert(keys)).any()
        assert not any(parts_of(bounded).lookups.known.values())
