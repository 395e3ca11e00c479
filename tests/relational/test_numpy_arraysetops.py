"""NumPy's own tests of set functions, run against ours with NumPy's defaults.

`docs/relational-peers.md` lists the tests that do not apply, with a reason for each. A test in that list has to fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.peers import expect_failure, lacking, not_applicable

theirs = pytest.importorskip("numpy.lib.tests.test_arraysetops")
LISTED = not_applicable("NumPy")

if np.lib.NumpyVersion(np.__version__) < "2.4.0":
    pytest.skip("the list is that of NumPy 2.4", allow_module_level=True)


def unique(ar: Any, *options: Any, sorted: bool = True, **keywords: Any) -> Any:
    return warphash.unique(np.asanyarray(ar), *options, sorted=sorted, **keywords)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    return warphash.isin(np.asarray(element), np.asarray(test_elements), assume_unique, invert)


def of_two(name: str) -> Any:
    ours = getattr(warphash, name)
    return lambda ar1, ar2, *options, **keywords: ours(np.asanyarray(ar1), np.asanyarray(ar2), *options, **keywords)


OURS = {
    "unique": unique,
    "isin": isin,
    **{name: of_two(name) for name in ("intersect1d", "setdiff1d", "setxor1d", "union1d")},
    **{name: getattr(warphash, name) for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")},
}


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    for name, function in OURS.items():
        if hasattr(theirs, name):
            monkeypatch.setattr(theirs, name, function)
        monkeypatch.setattr(np, name, function)
    if request.node.cls is not None:
        expect_failure(request, LISTED)


class TestSetOps(theirs.TestSetOps):  # type: ignore[misc, name-defined]
    """See the head of this file."""


class TestUnique(theirs.TestUnique):  # type: ignore[misc, name-defined]
    """See the head of this file."""


def test_every_test_that_is_listed_is_there() -> None:
    assert lacking(LISTED, vars(theirs)) == []
