"""Relational verbs over ranks, beside the same of the rows of all ranks together: of NumPy, pandas and Python."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from .batches import KEYS, SIZES, keys_of, plain
from .ranks import Ranks

LIBRARIES = ["numpy", "torch"]


def given_in(library: str, array: Any) -> Any:
    import torch

    return torch.from_numpy(array) if library == "torch" and array.dtype.kind != "S" else array


def as_numpy(array: Any) -> Any:
    return np.asarray(array)


def my_keys(
    kind: str, sizes: tuple[int, ...], seed: int, library: str, distinct: int = 120, heavy: bool = False
) -> Any:
    import torch.distributed as dist

    return given_in(library, keys_of(kind, sizes, seed, distinct, heavy=heavy)[dist.get_rank()])


# ---- unique
def unique_of(kind: str, sizes: tuple[int, ...], library: str, equal_nan: bool) -> tuple[list[Any], list[int]]:
    import warphash.distributed as wd

    keys = my_keys(kind, sizes, 1, library)
    axis = 0 if kind == "rows" else None
    values, counts = wd.unique(keys, True, axis, sorted=True, equal_nan=equal_nan)
    assert type(values) is type(counts) is type(keys)
    if kind != "S":
        assert values.dtype == keys.dtype
    alone = wd.unique(keys, axis=axis, equal_nan=equal_nan)
    assert Counter(plain(alone)) == Counter(plain(values))
    firsts = [value for value in plain(values) if value is not None]
    assert firsts == sorted(firsts)
    return plain(values), as_numpy(counts).tolist()


@pytest.mark.parametrize("sizes", SIZES.values(), ids=list(SIZES))
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_unique_is_that_of_all_rows(ranks: Ranks, kind: str, sizes: tuple[int, ...], library: str) -> None:
    expected = Counter(key for keys in keys_of(kind, sizes, 1) for key in plain(keys))
    made = ranks.run(unique_of, kind, sizes, library, True)
    found = [pair for values, counts in made for pair in zip(values, counts, strict=True)]
    assert len(found) == len(expected)
    assert dict(found) == dict(expected)


def test_unique_can_keep_each_nan(ranks: Ranks) -> None:
    expected = Counter(key for keys in keys_of("float64", (0, 700, 41), 1) for key in plain(keys))
    made = ranks.run(unique_of, "float64", (0, 700, 41), "torch", False)
    found = [pair for values, counts in made for pair in zip(values, counts, strict=True)]
    assert Counter(found) == Counter(
        {(key, n): 1 for key, n in expected.items() if key is not None} | {(None, 1): expected[None]}
    )


def unique_of_others() -> tuple[Any, ...]:
    """Of rows of a tuple of columns, of the columns of a matrix, and of the items of one."""
    import torch.distributed as dist

    import warphash.distributed as wd

    rank = dist.get_rank()
    first, second = np.array([1, 1, 2]) + rank, np.array([b"x", b"yy", b"x"])
    columns = wd.unique((first, second))
    matrix = np.array([[1, 2, 1], [rank, 0, rank]])
    return (
        list(zip(columns[0].tolist(), columns[1].tolist(), strict=True)),
        wd.unique(matrix, axis=1).T.tolist(),
        wd.unique(matrix).tolist(),
    )


def test_unique_takes_tuples_and_matrices(ranks: Ranks) -> None:
    rows, columns, items = (sorted(itertools.chain(*made)) for made in zip(*ranks.run(unique_of_others), strict=True))
    assert rows == [(1, b"x"), (1, b"yy"), (2, b"x"), (2, b"yy"), (3, b"x"), (3, b"yy"), (4, b"x")]
    assert columns == [[1, 0], [1, 1], [1, 2], [2, 0]]
    assert items == [0, 1, 2]


# ---- isin
def isin_of(kind: str, sizes: tuple[int, ...], other_kind: str, library: str, equal_nan: bool) -> list[bool]:
    import warphash.distributed as wd

    keys = my_keys(kind, sizes, 1, library)
    others = my_keys(other_kind, tuple(n // 10 for n in sizes[::-1]), 2, library)
    if kind == "rows":
        keys, others = (tuple(side[:, column] for column in range(3)) for side in (keys, others))
    flags = wd.isin(keys, others, equal_nan=equal_nan)
    inverted = wd.isin(keys, others, invert=True, equal_nan=equal_nan)
    assert (as_numpy(flags) == ~as_numpy(inverted)).all()
    assert type(flags) is type(keys[0] if kind == "rows" else keys)
    return as_numpy(flags).tolist()


PAIRS = [*((kind, kind) for kind in KEYS), ("int64", "float64"), ("float64", "int64"), ("uint32", "int64")]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=list(SIZES))
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
@pytest.mark.parametrize("library", LIBRARIES)
def test_isin_looks_in_the_rows_of_all_ranks(
    ranks: Ranks, kinds: tuple[str, str], sizes: tuple[int, ...], library: str
) -> None:
    kind, other = kinds
    known = {key for keys in keys_of(other, tuple(n // 10 for n in sizes[::-1]), 2) for key in plain(keys)}
    for equal_nan in (False, True):
        made = ranks.run(isin_of, kind, sizes, other, library, equal_nan)
        for keys, flags in zip(keys_of(kind, sizes, 1), made, strict=True):
            assert flags == [key in known and (equal_nan or key is not None) for key in plain(keys)]


# ---- group_by
def grouped(kind: str, sizes: tuple[int, ...], library: str, heavy: bool, nulls: Any) -> dict[Any, Any]:
    import torch.distributed as dist

    import warphash.distributed as wd

    rank = dist.get_rank()
    keys = my_keys(kind, sizes, 1, library, 40, heavy)
    in_numpy = kind == "S"  # tensors of bytes there are none
    whole, real = (given_in("numpy" if in_numpy else library, column) for column in values_of(sizes[rank], rank))
    if kind == "rows":
        keys = tuple(keys[:, column] for column in range(3))
    made = wd.group_by(keys, nulls=nulls, order="sorted").agg(
        size="size",
        count=(real, "count"),
        sum=(whole, "sum"),
        real=(real, "sum"),
        mean=(whole, "mean"),
        min=(whole, "min"),
        max=(real, "max"),
        first=(whole, "first"),
        last=(whole, "last"),
        any=(whole, "any"),
        all=(whole, "all"),
    )
    columns = [as_numpy(made[name]).tolist() for name in made]
    assert all(type(made[name]) is type(keys[0] if kind == "rows" else keys) for name in made)
    assert as_numpy(made["min"]).dtype == as_numpy(whole).dtype
    if kind == "rows":
        groups = list(zip(*(as_numpy(column).tolist() for column in made.keys), strict=True))
    else:
        groups = plain(made.keys)
    assert len(groups) == len(set(groups)) == len(columns[0])
    return dict(zip(groups, zip(*columns, strict=True), strict=True))


def values_of(n: int, rank: int) -> tuple[Any, Any]:
    chance = np.random.default_rng(rank + 50)
    return chance.integers(-3, 4, n).astype(np.int16), chance.integers(0, 100, n) / 4


def expected_groups(kind: str, sizes: tuple[int, ...], heavy: bool) -> dict[Any, Any]:
    rows = defaultdict(list)
    for rank, keys in enumerate(keys_of(kind, sizes, 1, 40, heavy=heavy)):
        for key, whole, real in zip(plain(keys), *values_of(sizes[rank], rank), strict=True):
            rows[key].append((int(whole), float(real)))
    made = {}
    for key, pairs in rows.items():
        whole, real = [a for a, _ in pairs], [b for _, b in pairs]
        n = len(pairs)
        ends = whole[0], whole[-1], any(whole), all(whole)
        made[key] = (n, n, sum(whole), sum(real), sum(whole) / n, min(whole), max(real), *ends)
    return made


@pytest.mark.parametrize("sizes", SIZES.values(), ids=list(SIZES))
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_groups_are_those_of_all_rows(ranks: Ranks, kind: str, sizes: tuple[int, ...], library: str) -> None:
    heavy = sizes == SIZES["even"]
    made = ranks.run(grouped, kind, sizes, library, heavy, "key")
    expected = expected_groups(kind, sizes, heavy)
    assert sum(map(len, made)) == len(expected)
    assert {key: answers for part in made for key, answers in part.items()} == expected


def test_groups_can_leave_nan_out(ranks: Ranks) -> None:
    made = ranks.run(grouped, "float64", (0, 700, 41), "numpy", False, "drop")
    expected = expected_groups("float64", (0, 700, 41), False)
    assert None in expected
    assert {None: expected[None]} | {key: row for part in made for key, row in part.items()} == expected


def refused(operation: str) -> str:
    import warphash
    import warphash.distributed as wd

    keys = np.arange(9)
    try:
        wd.group_by(keys).agg(x=(keys, operation))
    except warphash.CollectiveError as error:
        assert len(wd.group_by(keys).size()) <= 9
        return str(error)
    return "nothing"


def test_an_aggregate_without_parts_is_refused(ranks: Ranks) -> None:
    (text,) = set(ranks.run(refused, "median"))
    assert "size, count, sum, prod" in text
    assert "warphash.distributed.exchange" in text


# ---- join
def joined(case: Any, how: Any, nulls: Any, small_bytes: int, library: str) -> tuple[list[int], list[int] | None]:
    import torch.distributed as dist

    import warphash.distributed as wd

    rank = dist.get_rank()
    left, right = (given_in(library, side[rank]) for side in sides_of(case))
    if case[0] == "rows":
        left, right = (tuple(side[:, column] for column in range(3)) for side in (left, right))
    pairs = wd.join(left, right, how, nulls=nulls, small_bytes=small_bytes)
    assert type(pairs.left) is type(left[0] if case[0] == "rows" else left)
    return as_numpy(pairs.left).tolist(), None if pairs.right is None else as_numpy(pairs.right).tolist()


def sides_of(case: Any) -> tuple[list[Any], list[Any]]:
    """The keys of each rank, of both sides. A heavy key is the fifth; the seventh of floats is NaN."""
    kind, other, sizes, heavy_on = case
    left = keys_of(kind, sizes, 11, 90, heavy="l" in heavy_on)
    right = keys_of(other, tuple(n // 4 for n in sizes[::-1]), 12, 90, heavy="r" in heavy_on)
    return left, right


def expected_pairs(case: Any, how: str, nulls: str) -> Counter[tuple[int, int | None]]:
    left, right = ([key for keys in side for key in plain(keys)] for side in sides_of(case))
    rows = defaultdict(list)
    for row, key in enumerate(right):
        if nulls == "equal" or key is not None:
            rows[key].append(row)
    pairs = [(row, other) for row, key in enumerate(left) for other in rows.get(key, ())]
    lefts, rights = {a for a, _ in pairs}, {b for _, b in pairs}
    if how == "semi":
        return Counter((row, None) for row in lefts)
    if how == "anti":
        return Counter((row, None) for row in range(len(left)) if row not in lefts)
    if how in ("left", "outer"):
        pairs += [(row, -1) for row in range(len(left)) if row not in lefts]
    if how in ("right", "outer"):
        pairs += [(-1, row) for row in range(len(right)) if row not in rights]
    return Counter(pairs)


CASES = [
    *((kind, kind, sizes, "") for kind in KEYS for sizes in SIZES.values()),
    *((kind, kind, (400, 0, 300), heavy) for kind in ("int64", "float64", "rows") for heavy in ("l", "r", "lr")),
    ("int64", "float64", (0, 700, 41), ""),
    ("float64", "int64", (0, 700, 41), "l"),
]


@pytest.mark.parametrize("small_bytes", [1 << 20, 0], ids=["gathered", "exchanged"])
@pytest.mark.parametrize("sides", CASES, ids=lambda case: "-".join(map(str, case)).replace(" ", ""))
def test_pairs_are_those_of_all_rows(ranks: Ranks, sides: Any, small_bytes: int) -> None:
    case = sides
    library = "torch" if case[3] or case[2][0] == 0 else "numpy"
    for how in ("inner", "left", "right", "outer", "semi", "anti"):
        for nulls in ("unequal", "equal") if "float64" in case else ("unequal",):
            made = ranks.run(joined, case, how, nulls, small_bytes, library)
            pairs = Counter(
                pair
                for left, right in made
                for pair in zip(left, [None] * len(left) if right is None else right, strict=True)
            )
            assert pairs == expected_pairs(case, how, nulls), (how, nulls)


def joined_by_rows(n: int, heavy_on: str) -> tuple[int, int, list[bool]]:
    """Join many rows with a heavy key: how many pairs, the sum of their rows, and which left rows are this rank's."""
    import torch.distributed as dist

    import warphash.distributed as wd

    rank = dist.get_rank()
    left, right = many(n, heavy_on)
    pairs = wd.join(left[rank], right[rank], small_bytes=0)
    rows = pairs.left if heavy_on == "left" else pairs.right
    heavy = np.concatenate(left)[pairs.left] == 5
    return len(pairs.left), int(pairs.left @ (pairs.right % 1009)), (rows[heavy] // n == rank).tolist()


def many(n: int, heavy_on: str) -> tuple[list[Any], list[Any]]:
    """The keys of three ranks; few rows of the other side have the heavy key."""
    chance = np.random.default_rng(4)
    sides = []
    for side in ("left", "right"):
        keys = chance.permutation(3 * n) + 10
        keys[chance.permutation(3 * n)[:3]] = 5
        if side == heavy_on:
            keys[chance.random(3 * n) < 0.9] = 5
        sides.append(np.split(keys, 3))
    return sides[0], sides[1]


@pytest.mark.parametrize("heavy_on", ["left", "right"])
def test_rows_of_a_heavy_key_stay(ranks: Ranks, heavy_on: str) -> None:
    import pandas as pd

    n = 10_000
    left, right = (pd.DataFrame({"key": np.concatenate(side)}) for side in many(n, heavy_on))
    expected = left.reset_index().merge(right.reset_index(), on="key")
    made = ranks.run(joined_by_rows, n, heavy_on)
    assert sum(count for count, _, _ in made) == len(expected)
    assert sum(total for _, total, _ in made) == int((expected.index_x * (expected.index_y % 1009)).sum())
    assert sum(len(stay) for _, _, stay in made) > n
    assert all(all(stay) for _, _, stay in made)


def wrong_join(fault: str) -> str:
    import torch.distributed as dist

    import warphash
    import warphash.distributed as wd

    keys, how = np.arange(4), "inner"
    is_wrong = dist.get_rank() == 2
    if fault == "how":
        how = "left" if is_wrong else how
    try:
        wd.join(keys, (keys, keys) if is_wrong and fault == "columns" else keys, how)
    except warphash.CollectiveError as error:
        assert len(wd.unique(keys)) <= 4
        return str(error)
    return "nothing"


@pytest.mark.parametrize(("fault", "said"), [("how", "how='left'"), ("columns", "failed on rank 2: ShapeError")])
def test_a_join_that_is_wrong_on_one_rank_fails_on_all(ranks: Ranks, fault: str, said: str) -> None:
    (text,) = set(ranks.run(wrong_join, fault))
    assert said in text
