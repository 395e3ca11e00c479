"""pandas' own tests of get_indexer and get_indexer_non_unique, run against `warphash.Index` with pandas' rules.

`docs/relational-peers.md` lists the tests that do not apply, with a reason for each. A test in that list has to fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.peers import classes_of, expect_failure, lacking, modules_of, not_applicable

pd = pytest.importorskip("pandas", minversion="3.1", reason="the list is that of pandas 3.1")
fixtures = pytest.importorskip("pandas.conftest")
LISTED = not_applicable("get_indexer of pandas")

FILL_METHODS = ("pad", "ffill", "backfill", "bfill", "nearest")


def as_pandas(target: Any) -> Any:
    """Lists as pandas has them: strings beside NaN are no list of one type for us."""
    return pd.Index(target) if isinstance(target, list) else target


def get_indexer(self: Any, target: Any, method: Any = None, limit: Any = None, tolerance: Any = None) -> Any:
    if method is not None and method not in FILL_METHODS:
        raise ValueError("Invalid fill method")  # as pandas
    if (method, limit, tolerance) != (None, None, None):
        raise NotImplementedError("get_indexer of warphash has no method=, limit= and tolerance=")
    index, target = warphash.Index(self), as_pandas(target)
    if not index.is_unique:
        with pytest.raises(warphash.ParameterError, match="get_indexer_non_unique"):
            index.get_indexer(target)
        raise pd.errors.InvalidIndexError(self._requires_unique_msg)  # as pandas
    return np.asarray(index.get_indexer(target))


def get_indexer_non_unique(self: Any, target: Any) -> Any:
    return tuple(map(np.asarray, warphash.Index(self).get_indexer_non_unique(as_pandas(target))))


def get_indexer_for(self: Any, target: Any) -> Any:
    is_unique = warphash.Index(self).is_unique
    return get_indexer(self, target) if is_unique else get_indexer_non_unique(self, target)[0]


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    for function in (get_indexer, get_indexer_non_unique, get_indexer_for):
        monkeypatch.setattr(pd.Index, function.__name__, function)
    if request.node.cls is not None:
        expect_failure(request, LISTED)


any_numeric_ea_and_arrow_dtype = fixtures.any_numeric_ea_and_arrow_dtype
any_string_dtype = fixtures.any_string_dtype
index = fixtures.index
nulls_fixture = fixtures.nulls_fixture
unique_nulls_fixture = fixtures.unique_nulls_fixture
unique_nulls_fixture2 = fixtures.unique_nulls_fixture2
using_infer_string = fixtures.using_infer_string


@pytest.fixture(params=[np.datetime64("NaT", "ns"), np.timedelta64("NaT", "ns")], ids=["datetime64", "timedelta64"])
def np_nat_fixture(request: pytest.FixtureRequest) -> Any:
    return request.param


np_nat_fixture2 = np_nat_fixture

MODULES = modules_of(
    "pandas.tests.indexes",
    {
        "": "test_indexing",
        "Base": "base_class.test_indexing",
        "Categorical": "categorical.test_indexing",
        "Datetimelike": "datetimelike_.test_indexing",
        "Datetimes": "datetimes.test_indexing",
        "Numeric": "numeric.test_indexing",
        "Object": "object.test_indexing",
        "Ranges": "ranges.test_indexing",
        "String": "string.test_indexing",
        "Timedeltas": "timedeltas.test_indexing",
    },
)
"""pandas' modules with tests of these verbs, by the name that their classes have here."""


def is_ours(name: str, test: Any) -> bool:
    """Whether a function is a test that calls one of the verbs."""
    return any("get_indexer" in said for said in (name, *test.__code__.co_names))


CLASSES = classes_of(MODULES, is_ours)
globals().update(CLASSES)


def test_every_test_that_is_listed_is_there() -> None:
    assert lacking(LISTED, CLASSES) == []
