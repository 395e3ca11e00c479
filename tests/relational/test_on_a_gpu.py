"""The relational verbs of arrays on a GPU: emulated, with arrays of PyTorch and of NumPy that pass for arrays there."""

from __future__ import annotations

import importlib.util
import math
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash
from support.engines import missing
from support.relational import FLOATS, INTEGERS, Oracle, in_order, shown
from warphash.arrays import view
from warphash.arrays.adapters.numpy import NUMPY
from warphash.arrays.library import ArrayView
from warphash.runtime.devices import engine_for
from warphash.runtime.memory import bytes_at

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason="needs the emulated engine")
few = settings(max_examples=10)
LIBRARIES = [name for name in ("torch", "cupy") if name == "cupy" or importlib.util.find_spec("torch")]
TYPES = {
    "bool": (True, False),
    "uint8": (0, 1, 255),
    "int32": INTEGERS,
    "int64": INTEGERS,
    "uint32": (0, 1, 2**32 - 1),
    "uint64": (0, 1, 2**63, 2**64 - 1),
    "float32": FLOATS,
    "float64": FLOATS,
}


class OnDevice:
    """An adapter whose arrays pass for arrays of the emulated GPU.

    An array that is seen is copied to that GPU. A new one lies there.

    Parameters
    ----------
    library
        The adapter of arrays in host memory.
    kind
        The library that it passes for.
    of_host
        Makes an array of one of NumPy's, with the same memory.
    """

    def __init__(self, library: Any, kind: str, of_host: Any) -> None:
        self._library, self.kind, self._of_host = library, kind, of_host

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def see(self, array: Any) -> ArrayView:
        host = np.asarray(array).view(np.ndarray)
        memory = engine_for("emulated").from_host(np.ascontiguousarray(host)) if host.size else None
        ptr = memory.ptr if memory else 0
        return ArrayView(ptr, host.shape, host.dtype, "emulated", None, array, None, self, memory)  # type: ignore[arg-type]

    def empty(self, like: ArrayView, shape: Any, dtype: Any, allocator: Any) -> ArrayView:
        nbytes = math.prod(shape) * dtype.itemsize
        memory = engine_for("emulated").allocate(max(1, nbytes))
        host = bytes_at(memory.ptr, nbytes).view(dtype).reshape(shape)
        owner = self._of_host(host)
        weakref.finalize(owner, lambda held: None, memory)  # the memory lives as long as the array
        return ArrayView(memory.ptr, shape, dtype, "emulated", None, owner, None, self, memory)  # type: ignore[arg-type]

    def cast(self, array: Any, dtype: Any) -> Any:
        return self._library.cast(array, dtype) if self.kind == "torch" else array.astype(dtype)

    def export(self, made: ArrayView) -> Any:
        return made.owner

    def is_captured(self) -> bool:
        return False


class Array(np.ndarray):
    """An array of a library that calls itself CuPy."""


@pytest.fixture(params=LIBRARIES)
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes an array on the emulated GPU."""
    if request.param == "torch":
        import torch

        from warphash.arrays.adapters.torch import LIBRARY

        monkeypatch.setitem(view.known_libraries, torch.Tensor, OnDevice(LIBRARY, "torch", torch.from_numpy))
        return lambda items, dtype: torch.from_numpy(np.array(items, dtype))

    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setitem(view.known_libraries, Array, OnDevice(NUMPY, "cupy", lambda host: host.view(Array)))
    return lambda items, dtype: np.array(items, dtype).view(Array)


def items_of(made: Any) -> list[Any]:
    return list(np.asarray(made).reshape(-1))


kinds = pytest.mark.parametrize("dtype", TYPES)


@pytest.mark.parametrize("dtype", TYPES)
def test_verbs_of_distinct_elements(make: Any, dtype: str) -> None:
    @few
    @given(st.lists(st.sampled_from(TYPES[dtype]), min_size=1, max_size=12))
    def check(items: list[Any]) -> None:
        array = make(items, dtype)
        one, apart, dropped = (Oracle(items, nan=rule) for rule in ("one", "apart", "dropped"))
        made = warphash.unique(array, True, True, True)
        assert all(type(part) is type(array) for part in made)
        assert shown(items_of(made[0])) == shown(one.values)
        assert [items_of(part) for part in made[1:]] == [one.firsts, one.codes, one.counts]
        assert shown(items_of(warphash.unique(array, sorted=True))) == shown(in_order(one.values))
        made = warphash.unique_all(array)
        assert [items_of(part) for part in made[1:]] == [apart.firsts, apart.codes, apart.counts]
        codes, uniques = warphash.factorize(array)
        assert items_of(codes) == dropped.codes and shown(items_of(uniques)) == shown(dropped.values)
        codes, uniques = warphash.factorize(array, sort=True)
        assert shown(items_of(uniques)) == shown(in_order(dropped.values))
        expected = [None if code < 0 else shown(dropped.values)[code] for code in dropped.codes]
        assert [None if code < 0 else shown(items_of(uniques))[code] for code in items_of(codes)] == expected
        values, counts = warphash.value_counts(array, normalize=True)
        pairs = sorted(zip(shown(dropped.values), dropped.counts, strict=True), key=lambda pair: -pair[1])
        assert shown(items_of(values)) == [value for value, _ in pairs]
        assert items_of(counts) == [count / sum(dropped.counts) for _, count in pairs]
        for keep, others in (("first", lambda at: one.codes[:at]), ("last", lambda at: one.codes[at + 1 :])):
            flags = [code in others(at) for at, code in enumerate(one.codes)]
            assert items_of(warphash.duplicated(array, keep)) == flags  # type: ignore[arg-type]
        assert items_of(warphash.duplicated(array, False)) == [one.codes.count(code) > 1 for code in one.codes]
        assert warphash.nunique(array) == len(dropped.values)

    check()


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_of_32_bits(make: Any, dtype: str) -> None:
    def numbers(x: Any, sort: bool, index_dtype: str) -> list[Any]:
        _, *made = warphash.unique(x, True, True, True, sorted=sort, index_dtype=index_dtype)
        return [*made, warphash.factorize(x, sort=sort, index_dtype=index_dtype)[0]]

    @few
    @given(st.lists(st.sampled_from(TYPES[dtype]), min_size=1, max_size=12), st.booleans())
    def check(items: list[Any], sort: bool) -> None:
        array = make(items, dtype)
        for x in (array, (array, array)):
            for made, expected in zip(numbers(x, sort, "int32"), numbers(x, sort, "int64"), strict=True):
                assert type(made) is type(expected) and items_of(made) == items_of(expected)
                assert (np.asarray(made).dtype, np.asarray(expected).dtype) == (np.int32, np.int64)

    check()


@pytest.mark.parametrize("dtype", TYPES)
def test_isin(make: Any, dtype: str) -> None:
    some = st.lists(st.sampled_from(TYPES[dtype]), min_size=1, max_size=8)

    @few
    @given(some, some, st.booleans(), st.booleans())
    def check(items: list[Any], others: list[Any], equal_nan: bool, of_host: bool) -> None:
        array = make(items, dtype)
        there = np.array(others, dtype) if of_host else make(others, dtype)
        made = warphash.isin(array, there, equal_nan=equal_nan)
        keys = [item for item in others if item == item]
        has_nan = equal_nan and any(item != item for item in others)
        expected = [has_nan if item != item else item in keys for item in items]
        assert type(made) is type(array) and items_of(made) == expected
        assert items_of(warphash.isin(array, there, equal_nan=equal_nan, invert=True)) == [
            not flag for flag in expected
        ]

    check()


def test_rows(make: Any) -> None:
    rows = np.array([[3.0, -0.0], [1.0, math.nan], [3.0, 0.0], [1.0, math.nan], [1.0, 2.0]])
    for axis in (0, 1):
        given_array = make(rows if axis == 0 else rows.T.copy(), "f8")
        values, indices, inverse, counts = warphash.unique(given_array, True, True, True, axis=axis)
        assert np.asarray(values).shape == ((3, 2) if axis == 0 else (2, 3))
        assert [items_of(part) for part in (indices, inverse, counts)] == [[0, 1, 4], [0, 1, 0, 1, 2], [2, 2, 1]]
        ordered = np.asarray(warphash.unique(given_array, axis=axis, sorted=True, return_index=True)[1])
        assert ordered.tolist() == [4, 1, 0]
    assert items_of(warphash.unique(make(rows, "f8"), True, axis=0, equal_nan=False)[1]) == [0, 1, 3, 4]
    assert np.asarray(warphash.unique(make(np.zeros((3, 0)), "f8"), axis=0)).shape == (1, 0)


@pytest.mark.parametrize("first", TYPES)
def test_rows_of_columns(make: Any, first: str) -> None:
    @few
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        types = [first, *data.draw(st.lists(st.sampled_from(sorted(TYPES)), max_size=2))]
        n = data.draw(st.integers(1, 12))
        lists = [data.draw(st.lists(st.sampled_from(TYPES[name]), min_size=n, max_size=n)) for name in types]
        columns = tuple(make(items, name) for items, name in zip(lists, types, strict=True))
        rows = list(zip(*lists, strict=True))
        one = Oracle(rows)
        values, *made = warphash.unique(columns, True, True, True)
        assert all(type(part) is type(columns[0]) for part in (*values, *made))
        assert [shown(items_of(part)) for part in values] == [
            shown([items[at] for at in one.firsts]) for items in lists
        ]
        assert [items_of(part) for part in made] == [one.firsts, one.codes, one.counts]
        has_nan = [any(item != item for item in row) for row in rows]
        alone = [at for at, row in enumerate(rows) if has_nan[at] or one.codes.index(one.codes[at]) == at]
        assert items_of(warphash.unique(columns, True, equal_nan=False)[1]) == alone
        ordered = items_of(warphash.unique(columns, True, sorted=True)[1])
        ranks = [[in_order(items).index(item) if item == item else n for item in items] for items in lists]
        assert ordered == sorted(one.firsts, key=lambda at: [rank[at] for rank in ranks])
        codes, uniques = warphash.factorize(columns)
        kept = list(dict.fromkeys(code for code, is_nan in zip(one.codes, has_nan, strict=True) if not is_nan))
        assert items_of(codes) == [kept.index(code) if code in kept else -1 for code in one.codes]
        assert len(uniques[0]) == len(kept) == warphash.nunique(columns)
        lasts = [at for at in range(n) if one.codes[at] not in one.codes[at + 1 :]]
        assert items_of(warphash.duplicated(columns, "last")) == [at not in lasts for at in range(n)]
        assert items_of(warphash.value_counts(columns, sort=False, dropna=False)[1]) == one.counts

    check()


def test_columns_on_several_devices(make: Any) -> None:
    with pytest.raises(warphash.DeviceError, match="one device"):
        warphash.unique((make([1, 2], "i8"), np.arange(2)))
    assert [len(part) for part in warphash.unique((make([], "i8"), make([], "f4")))] == [0, 0]


def test_shapes(make: Any) -> None:
    array = make([[3, 1], [1, 3]], "i8")
    assert np.asarray(warphash.unique_inverse(array)[1]).tolist() == [[0, 1], [1, 0]]
    assert np.asarray(warphash.duplicated(array)).tolist() == [[False, False], [True, True]]
    assert np.asarray(warphash.isin(array, [1])).tolist() == [[False, True], [True, False]]
    assert [len(made) for made in warphash.unique(make([], "i8"), True, True, True, sorted=True)] == [0, 0, 0, 0]


def test_what_is_refused(make: Any) -> None:
    array = make([1, 2], "i8")
    for call in (
        lambda: warphash.union1d(array, array),
        lambda: warphash.setdiff1d(array, [1]),
        lambda: warphash.Index(array),
        lambda: warphash.isin([1], array),
    ):
        with pytest.raises(warphash.DeviceError, match="host memory"):
            call()
    with pytest.raises(warphash.DtypeError, match="convert one"):
        warphash.isin(array, make([1.0], "f8"))
    with pytest.raises(warphash.DtypeError, match="complex"):
        warphash.unique(make([1j], "c16"))
