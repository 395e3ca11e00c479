"""The pairs of a join beside lists of Python's, and with guards around what is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import warphash
from warphash.runtime.abi import ROWS_AT_ONCE, RowLists
from warphash.runtime.devices import engine_for
from warphash.storage.joins.pairs import Pairs

GUARD = 16
TYPES = pytest.mark.parametrize(("code_type", "out_type"), [("i4", "i4"), ("i4", "i8"), ("i8", "i4"), ("i8", "i8")])
SHARES = pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])


@pytest.fixture(params=[1, 3], autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    warphash.set_num_threads(request.param)
    yield
    warphash.set_num_threads(None)


def written(lists: RowLists, codes: Any, keeps_all: bool, out_type: str) -> list[tuple[int, int]]:
    """The pairs that are written to two arrays, each between guards."""
    made = Pairs(engine_for("cpu"), lists, codes.ctypes.data, len(codes), keeps_all=keeps_all)
    sides = [np.full(made.total + 2 * GUARD, -77, out_type) for _ in range(2)]
    left, right = (side[GUARD : GUARD + made.total] for side in sides)
    made.write(left.ctypes.data, right.ctypes.data, left.itemsize)
    for side in sides:
        assert set(side[:GUARD]) | set(side[len(side) - GUARD :]) == {-77}
    return list(zip(left.tolist(), right.tolist(), strict=True))


def drawn(n: int, size: int, missing: float, code_type: str) -> Any:
    random = np.random.default_rng(n + size)
    return np.where(random.random(n) < missing, -1, random.integers(0, max(1, size), n)).astype(code_type)


@TYPES
@SHARES
@pytest.mark.parametrize("keeps_all", [False, True])
@pytest.mark.parametrize("n", [0, 1, 1024, 1025, 40_000])
def test_codes_that_are_rows(n: int, keeps_all: bool, missing: float, code_type: str, out_type: str) -> None:
    codes = drawn(n, 1000, missing, code_type)
    expected = [(i, code) for i, code in enumerate(codes.tolist()) if keeps_all or code >= 0]
    assert written(RowLists(row_bytes=codes.itemsize), codes, keeps_all, out_type) == expected


@TYPES
@SHARES
@pytest.mark.parametrize("keeps_all", [False, True])
@pytest.mark.parametrize(("n", "most"), [(0, 3), (1, 9), (1025, 3), (1025, 12), (30_000, 2), (300, 900)])
def test_codes_of_lists(n: int, most: int, keeps_all: bool, missing: float, code_type: str, out_type: str) -> None:
    random, size = np.random.default_rng(n), 200
    counts = random.integers(0, most + 1, size)
    rows = random.permutation(int(counts.sum())).astype(code_type)
    ends = np.cumsum(counts)
    offsets = np.array([0, *ends, ends[-1]], np.uint32)
    held = np.concatenate([rows, np.full(ROWS_AT_ONCE, -1, code_type)])
    lists = RowLists(offsets=offsets.ctypes.data, size=size, rows=held.ctypes.data, row_bytes=held.itemsize)
    codes = drawn(n, size, missing, code_type)
    expected = []
    for i, code in enumerate(codes.tolist()):
        found = rows[ends[code] - counts[code] : ends[code]].tolist() if code >= 0 else [-1] * keeps_all
        expected += [(i, row) for row in found]
    assert written(lists, codes, keeps_all, out_type) == expected
