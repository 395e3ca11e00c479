"""pandas' own tests of merge and join, with the pairs of rows from `warphash.join`.

pandas reads the frames, and makes the keys of both sides equal in type. Ours pairs the rows of the columns and indexes.
pandas then makes the frame of these pairs. Where it sorts by keys, our pairs are sorted by the ranks that pandas gives
the keys. It pairs indexes itself if they are equal or empty, or if only one has several levels.

`docs/relational-peers.md` lists the tests that do not apply, with a reason for each. A test in that list has to fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.peers import classes_of, expect_failure, lacking, modules_of, not_applicable

pd = pytest.importorskip("pandas", minversion="3.1", reason="the list is that of pandas 3.1")
merging = pytest.importorskip("pandas.core.reshape.merge")
fixtures = pytest.importorskip("pandas.conftest")
MODULES = modules_of(
    "pandas.tests.reshape.merge",
    {
        "Merge": "test_merge",
        "Join": "test_join",
        "Multi": "test_multi",
        "Antijoin": "test_merge_antijoin",
    },
)
"""pandas' modules with tests of merges, by the first part of the names that their classes have here."""
LISTED = not_applicable("merge of pandas")

ranks_of = merging._factorize_keys
"""pandas' ranks of the keys of two columns."""

calls: list[str] = []
"""The ``how`` of each join of ours."""


def ranks_of_pairs(left: Any, right: Any, left_ranks: Any, right_ranks: Any) -> Any:
    """The rank of each pair's key, which the right side has if the left one has no row."""
    ranks = np.empty(len(left), np.int64)
    ranks[left >= 0] = left_ranks[left[left >= 0]]
    ranks[left < 0] = right_ranks[right[left < 0]]
    return ranks


def get_join_indexers(left_keys: Any, right_keys: Any, sort: bool = False, how: Any = "inner") -> Any:
    """The pairs of two lists of columns, in the order of pandas: by keys with ``sort``, or else as ours."""
    calls.append(how)
    sides = [keys[0] if len(keys) == 1 else tuple(keys) for keys in (left_keys, right_keys)]
    left, right = warphash.join(*sides, how, nulls="equal")
    if sort:
        by_column = [ranks_of(*keys, sort=True)[:2] for keys in zip(left_keys, right_keys, strict=True)]
        by_keys = np.lexsort([ranks_of_pairs(left, right, *ranks) for ranks in reversed(by_column)])
        left, right = left[by_keys], right[by_keys]
    return left, right


def get_join_indexers_non_unique(left: Any, right: Any, sort: bool = False, how: Any = "inner") -> Any:
    return get_join_indexers([left], [right], sort, how)


def columns_of(index: Any) -> list[Any]:
    return [index.get_level_values(level)._values for level in range(index.nlevels)]


def left_join_on_index(left_ax: Any, right_ax: Any, join_keys: Any, sort: bool = False) -> Any:
    left, right = get_join_indexers(join_keys, columns_of(right_ax), sort, "left")
    if sort or len(left) != len(left_ax):
        return left_ax.take(left), left, right
    return left_ax, None, right


def join_of_indexes(self: Any, other: Any, how: Any = "left", sort: bool = False) -> Any:
    left, right = get_join_indexers(columns_of(self), columns_of(other), sort or how == "outer", how)
    if how == "right":
        return other.take(right), left, right
    index = self.take(left)
    if how == "outer" and (left < 0).any():
        index = index.putmask(left < 0, other.take(right))
    return index, left, right


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(merging, "get_join_indexers", get_join_indexers)
    monkeypatch.setattr(merging, "get_join_indexers_non_unique", get_join_indexers_non_unique)
    monkeypatch.setattr(merging, "_left_join_on_index", left_join_on_index)
    monkeypatch.setattr(pd.RangeIndex, "_join_monotonic", join_of_indexes)
    for name in ("_join_monotonic", "_join_non_unique", "_join_via_get_indexer"):
        monkeypatch.setattr(pd.Index, name, join_of_indexes)
    if request.node.cls is not None:
        expect_failure(request, LISTED)


any_int_numpy_dtype = fixtures.any_int_numpy_dtype
any_numeric_ea_dtype = fixtures.any_numeric_ea_dtype
any_string_dtype = fixtures.any_string_dtype
index = fixtures.index
join_type = fixtures.join_type
lexsorted_two_level_string_multiindex = fixtures.lexsorted_two_level_string_multiindex
multiindex_dataframe_random_data = fixtures.multiindex_dataframe_random_data
string_dtype = fixtures.string_dtype
unit = fixtures.unit
using_infer_string = fixtures.using_infer_string


@pytest.fixture(params=[True, False])
def sort(request: pytest.FixtureRequest) -> Any:
    return request.param


CLASSES = classes_of(MODULES)
globals().update(CLASSES)


def test_every_test_that_is_listed_is_there() -> None:
    assert lacking(LISTED, CLASSES) == []


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
@pytest.mark.parametrize("keys", [["k"], ["k", "l"]], ids=["column", "columns"])
@pytest.mark.parametrize("indexed", [(), ("left",), ("right",), ("left", "right")], ids=str)
def test_a_merge_takes_its_pairs_from_ours(how: str, keys: list[str], indexed: tuple[str, ...]) -> None:
    frames, options = {}, {}
    for side, rows in {"left": [3, 1, 2], "right": [2, 4, 3]}.items():
        frames[side] = pd.DataFrame({"k": rows, "l": rows, "m": range(3)})
        if side in indexed:
            frames[side], options[f"{side}_index"] = frames[side].set_index(keys), True
        else:
            options[f"{side}_on"] = keys
    calls.clear()
    merged = pd.merge(**frames, how=how, **options)
    assert len(merged) == {"inner": 2, "left": 3, "right": 3, "outer": 4}[how]
    assert len(calls) == 1
