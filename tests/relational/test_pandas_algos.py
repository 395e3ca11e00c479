"""pandas' own tests of factorize, unique, isin, value_counts and duplicated, run against ours with pandas' rules.

`docs/relational-peers.md` lists the tests that do not apply, with a reason for each. A test in that list has to fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.peers import expect_failure, lacking, not_applicable

pd = pytest.importorskip("pandas", minversion="3.1", reason="the list is that of pandas 3.1")
theirs = pytest.importorskip("pandas.tests.test_algos")
LISTED = not_applicable("pandas")


def array_of(values: Any) -> Any:
    """The array behind a Series, with which pandas answers."""
    if not isinstance(values, pd.Series):
        return values
    return np.asarray(values) if isinstance(values.dtype, np.dtype) else values.array


def factorize(values: Any, sort: bool = False, use_na_sentinel: bool = True) -> Any:
    codes, uniques = warphash.factorize(values, sort=sort, nulls="drop" if use_na_sentinel else "key")
    return np.asarray(codes), pd.Index(uniques) if isinstance(values, pd.Series | pd.Index) else uniques


def unique(values: Any) -> Any:
    return array_of(warphash.unique(values))


def isin(comps: Any, values: Any) -> Any:
    if not (pd.api.types.is_list_like(comps) and pd.api.types.is_list_like(values)):
        raise TypeError("only list-like objects are allowed to be passed to isin(), you passed a `int`")  # as pandas
    return np.asarray(warphash.isin(comps, list(values) if isinstance(values, set) else values, equal_nan=True))


def value_counts(
    values: Any,
    sort: bool = True,
    ascending: bool = False,
    normalize: bool = False,
    bins: Any = None,
    dropna: bool = True,
) -> Any:
    assert bins is None
    return warphash.value_counts(pd.Series(values), sort=sort, ascending=ascending, normalize=normalize, dropna=dropna)


def duplicated(values: Any, keep: Any = "first", mask: Any = None) -> Any:
    return np.asarray(warphash.duplicated(values, keep))


class Replaced:
    """A module with some functions of ours."""

    def __init__(self, module: Any, **ours: Any) -> None:
        self._module, self._ours = module, ours

    def __getattr__(self, name: str) -> Any:
        return self._ours[name] if name in self._ours else getattr(self._module, name)


OURS = {
    "factorize": factorize,
    "unique": unique,
    "isin": isin,
    "value_counts_internal": value_counts,
    "duplicated": duplicated,
}


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(theirs, "algos", Replaced(theirs.algos, **OURS))
    monkeypatch.setattr(theirs, "pd", Replaced(pd, unique=unique, factorize=factorize))
    if request.node.cls is not None:
        expect_failure(request, LISTED)


NUMBERS = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8"]


@pytest.fixture(params=NUMBERS)
def any_real_numpy_dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[*NUMBERS, "c8", "c16", "bool", "M8[ns]", "m8[ns]", str, object])
def any_numpy_dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["Int64", "UInt8", "Float64"])
def any_numeric_ea_dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["s", "ms", "us", "ns"])
def unit(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[[3, 1, 3], ["a", "b"], [0.5, 1.5, 0.5]])
def index(request: pytest.FixtureRequest) -> Any:
    return pd.Index(request.param)


@pytest.fixture
def index_or_series_obj_orderable(index: Any) -> Any:
    return index


@pytest.fixture
def unique_nulls_fixture() -> Any:
    return None


@pytest.fixture
def unique_nulls_fixture2() -> Any:
    return np.nan


@pytest.fixture(params=[True, False])
def sort(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[True, False])
def writable(request: pytest.FixtureRequest) -> Any:
    return request.param


class TestFactorize(theirs.TestFactorize):  # type: ignore[misc, name-defined]
    """See the head of this file."""


class TestUnique(theirs.TestUnique):  # type: ignore[misc, name-defined]
    """See the head of this file."""


class TestIsin(theirs.TestIsin):  # type: ignore[misc, name-defined]
    """See the head of this file."""


class TestValueCounts(theirs.TestValueCounts):  # type: ignore[misc, name-defined]
    """See the head of this file."""


class TestDuplicated(theirs.TestDuplicated):  # type: ignore[misc, name-defined]
    """See the head of this file."""


def test_every_test_that_is_listed_is_there() -> None:
    assert lacking(LISTED, vars(theirs)) == []
