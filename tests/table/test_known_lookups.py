"""Lookups by compiled code: which arrays it knows, which tables it leaves alone, and what it answers on a GPU."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing
from warphash import HashMap, HashSet
from warphash.arrays.library import ELSEWHERE
from warphash.runtime.cuda import _streams  # type: ignore[attr-defined]
from warphash.storage.lookup import NO_FIELDS
from warphash.table.base import BaseTable

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
    """In place of a `WordStorage`."""

    def __init__(self, **changes: Any) -> None:
        step, fields = changes.get("step"), changes.get("find_fields", NO_FIELDS)
        array = SimpleNamespace(find_fields=fields, program=SimpleNamespace(kernels={}), table=b"12345678")
        self.store = SimpleNamespace(recovery=SimpleNamespace(step=step), state=SimpleNamespace(array=array))


def lookups(makes_values: bool = True, stream: int = 7) -> Any:
    known = _streams.KnownArrays(Array, ((("dtype",), "u4"), (("is_contiguous()",), True)), ("data", "ptr"))
    make_values = (lambda shape: Array(shape, "f4", 512)) if makes_values else None
    return _streams.Lookups(
        known, lambda: stream, make_values, lambda shape: Array(shape, "?", 256), 3, 1000, Storage, NO_FIELDS, PLACES
    )


def test_what_is_seen_of_known_arrays() -> None:
    values, found, *rest = lookups().see(Array((5,)))
    assert (values.dtype, found.dtype, values.shape, found.shape) == ("f4", "?", (5,), (5,))
    assert rest == [4096, 5, 512, 256, 7]
    values, found, *rest = lookups(makes_values=False).see(Array((999,)))
    assert values is None and found.shape == (999,) and rest == [4096, 999, 0, 256, 7]


@pytest.mark.parametrize(
    "array",
    [
        Other((5,)),
        Array((5,), "i4"),
        Array((5,), is_dense=False),
        Array((5,), at=4098),  # not aligned
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
    ],
    ids=["of another type", "with an update to finish", "with displaced pairs", "without a loaded kernel"],
)
def test_other_storages_go_the_usual_way(storage: Any) -> None:
    made = lookups()
    assert made.launch(storage, 0, made.see(Array((5,)))) == -1


def test_an_error_of_an_array_comes_out() -> None:
    class Broken(Array):
        @property
        def dtype(self) -> Any:  # type: ignore[override]
            raise ZeroDivisionError

        @dtype.setter
        def dtype(self, _: Any) -> None:
            pass

    known = _streams.KnownArrays(Broken, ((("dtype",), "u4"),), ("data", "ptr"))
    made = _streams.Lookups(known, lambda: 0, None, Array, 3, 10, Storage, NO_FIELDS, PLACES)
    with pytest.raises(ZeroDivisionError):
        made.see(Broken((5,)))


def test_tables_of_host_memory_have_none() -> None:
    table = HashMap.from_arrays(np.arange(9), np.arange(9), device="cpu")
    for _ in range(2):
        assert table.find(np.arange(9))[1].all() and not any(table._lookups.values())


# ---- on a GPU
def arrays_of(name: str, host: Any) -> Any:
    library = pytest.importorskip(name)
    return library.asarray(host) if name == "cupy" else library.from_numpy(host).cuda()


def on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array.cpu().numpy()


def usual_way(table: Any) -> Any:
    """A mock of the usual way of a lookup, which counts how often a lookup goes there."""
    return mock.patch.object(BaseTable, "_find", autospec=True, side_effect=BaseTable._find)


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
        with pytest.raises(Exception, match="int64"):
            table.find(arrays_of(library, host.astype(np.int64) << 20))

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
        assert not any(bounded._lookups.values())
