"""Columns of several axes, and columns of unequal lengths: rows are taken as rows, and never as their items."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash

VECTORS = np.array([[1.0, 2, 3], [4, 5, 6]])
KEYS = np.array([[1, 2], [3, 4], [1, 2]])


def as_lists(frame: Any) -> dict[str, Any]:
    return {name: column.tolist() for name, column in frame.items()}


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_columns_of_vectors_are_taken_by_rows(library: str) -> None:
    make = np.array if library == "numpy" else pytest.importorskip("torch").tensor
    left, right = {"id": make([20, 10])}, {"id": make([10, 20]), "emb": make(VECTORS.tolist())}
    for how in ("inner", "left", "right", "outer"):
        made = as_lists(warphash.merge(left, right, how))
        turned = how != "right"
        assert made == {
            "id": [20, 10] if turned else [10, 20],
            "emb": [[4, 5, 6], [1, 2, 3]] if turned else [[1, 2, 3], [4, 5, 6]],
        }
    assert as_lists(warphash.merge(right, left, "left"))["emb"] == VECTORS.tolist()
    assert as_lists(warphash.merge(right, left, "semi"))["emb"] == VECTORS.tolist()
    lacking = as_lists(warphash.merge({"id": make([30, 10])}, right, "left"))["emb"]
    assert np.array_equal(lacking, [[np.nan] * 3, [1, 2, 3]], equal_nan=True)
    twice = {"id": make([1, 2, 1]), "emb": make([[1.0, 2], [3, 4], [5, 6]])}
    assert as_lists(warphash.drop_duplicates(twice, "id")) == {"id": [1, 2], "emb": [[1, 2], [3, 4]]}
    assert as_lists(warphash.drop_duplicates(twice, "id", keep="last")) == {"id": [2, 1], "emb": [[3, 4], [5, 6]]}


def test_a_missing_vector_has_as_many_items_as_the_others() -> None:
    none = {"id": np.empty(0, np.int64), "emb": np.empty((0, 3))}
    made = warphash.merge({"id": np.array([1, 2])}, none, "left")["emb"]
    assert made.shape == (2, 3) and np.isnan(made).all()
    whole = {"id": np.array([2]), "n": np.array([[7, 8]])}
    assert warphash.merge({"id": np.array([1, 2])}, whole, "left")["n"].tolist() == [[None, None], [7, 8]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: warphash.merge({"k": KEYS}, {"k": KEYS[:1]}),
        lambda: warphash.drop_duplicates({"k": KEYS}, "k"),
        lambda: warphash.group_by({"k": KEYS, "v": np.arange(3)}, "k"),
        lambda: warphash.unique({"k": KEYS}),
    ],
)
def test_a_column_of_vectors_is_no_key(call: Any) -> None:
    with pytest.raises(warphash.ShapeError, match=r"column 'k' has shape \(3, 2\): give each of its columns a name"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: warphash.join(KEYS, np.arange(3)),
        lambda: warphash.join(np.arange(3), KEYS),
        lambda: warphash.join([[1, 2], [3, 4], [1, 2]], np.arange(3)),
        lambda: warphash.Index(KEYS),
        lambda: warphash.Index(np.arange(3)).join(KEYS),
        lambda: warphash.group_by(KEYS),
        lambda: warphash.join(KEYS, warphash.HashMap.from_arrays(np.arange(3), np.arange(3))),
    ],
)
def test_keys_whose_rows_are_numbered_have_one_axis(call: Any) -> None:
    with pytest.raises(warphash.ShapeError, match=r"one axis, got one of shape \(3, 2\): .* tuple\(rows\.T\)"):
        call()


def test_the_mend_of_an_array_of_rows_works() -> None:
    pairs = warphash.join(tuple(KEYS.T), tuple(KEYS[:1].T))
    assert pairs.left.tolist() == [0, 2] and pairs.right.tolist() == [0, 0]
    assert warphash.isin(KEYS, KEYS[:1]).tolist() == [[True, True], [False, False], [True, True]]  # as NumPy has it
    assert warphash.unique(KEYS).tolist() == [1, 2, 3, 4]
    assert warphash.Index(np.array([4, 2])).get_indexer(KEYS).tolist() == [[-1, 1], [-1, 0], [-1, 1]]


def test_a_table_of_rows_joins_an_array_of_rows() -> None:
    table = warphash.HashMap.from_arrays(KEYS[:2], np.array([70, 80]))
    for how, left, right in (("inner", [0, 2], [70, 70]), ("left", [0, 1, 2], [70, -1, 70])):
        pairs = warphash.join(np.array([[1, 2], [5, 6], [1, 2]]), table, how)
        assert (pairs.left.tolist(), pairs.right.tolist()) == (left, right)


UNEQUAL: dict[str, Any] = {"k": np.array([1, 2]), "v": np.array([7, 8, 9, 10])}


@pytest.mark.parametrize(
    "call",
    [
        lambda: warphash.merge({"k": np.array([1, 2])}, UNEQUAL),
        lambda: warphash.merge(UNEQUAL, {"k": np.array([1, 2])}, "left"),
        lambda: warphash.drop_duplicates(UNEQUAL, "k"),
        lambda: warphash.group_by(UNEQUAL, "k"),
        lambda: warphash.isin(UNEQUAL, UNEQUAL),
    ],
)
def test_columns_of_a_mapping_are_of_one_length(call: Any) -> None:
    with pytest.raises(warphash.ShapeError, match="must be of one length, got 2 in 'k', 4 in 'v': give one item"):
        call()


def test_a_column_of_a_mapping_is_no_single_value() -> None:
    with pytest.raises(warphash.ShapeError, match="'v' is a single value: repeat it"):
        warphash.drop_duplicates({"k": np.array([1, 2]), "v": np.array(7)}, "k")
    with pytest.raises(warphash.ShapeError, match="'v' is a single value: repeat it"):
        warphash.drop_duplicates({"k": np.array([1, 2]), "v": "ab"}, "k")
    with pytest.raises(warphash.ShapeError, match=r"one axis, got shape \(2, 1\) in column 'v'"):
        warphash.drop_duplicates({"k": np.array([1, 2]), "v": np.array([["a"], [None]], object)}, "k")
