"""The pairs of a join on an emulated GPU, beside lists of Python's."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import missing
from support.refusals import refusing
from warphash.runtime.abi import ROWS_AT_ONCE, RowLists
from warphash.runtime.devices import engine_for
from warphash.storage.joins.device_pairs import DevicePairs

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason="needs the emulated engine")

COUNTS = {
    "one row each": [1] * 40,
    "few rows": [0, 3, 1, 0, 2, 5],
    "one heavy key": [1, 0, 150, 2],
    "no rows": [0, 0, 0],
    "tiles that end with a list": [32, 31, 1, 64],
}
CODES = {
    "none": [],
    "one": [0],
    "some": [*range(40), -1, 1, 1, -1, 2],
    "many without rows": [2, *[-1] * 100, 0, *[-1] * 70, 2, 1],
}


def pairs_on_gpu(lists: RowLists, codes: list[int], keeps_all: bool, out_type: str) -> list[tuple[int, int]]:
    engine = engine_for("emulated")
    given = engine.from_host(np.array([*codes, 0], np.int32))
    made = DevicePairs(engine, lists, given.ptr, len(codes), keeps_all=keeps_all, stream=None)
    dtype = np.dtype(out_type)
    left, right = (engine.allocate(max(1, made.total * dtype.itemsize)) for _ in range(2))
    made.write(left.ptr, right.ptr, dtype.itemsize)
    rows = (engine.to_host(side.ptr, dtype, made.total).tolist() for side in (left, right))
    return list(zip(*rows, strict=True))


@pytest.mark.parametrize("out_type", ["i4", "i8"])
@pytest.mark.parametrize("keeps_all", [False, True])
@pytest.mark.parametrize("codes", CODES.values(), ids=CODES)
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_codes_of_lists(counts: list[int], codes: list[int], keeps_all: bool, out_type: str) -> None:
    engine, codes = engine_for("emulated"), [code if code < len(counts) else -1 for code in codes]
    ends = np.cumsum(counts)
    rows = np.random.default_rng(1).permutation(int(ends[-1]))
    offsets = engine.from_host(np.array([0, *ends, ends[-1]], np.uint32))
    held = engine.from_host(np.concatenate([rows, np.full(ROWS_AT_ONCE, -1)]).astype(np.int32))
    lists = RowLists(offsets=offsets.ptr, size=len(counts), rows=held.ptr, row_bytes=4)
    expected = []
    for i, code in enumerate(codes):
        found = rows[ends[code] - counts[code] : ends[code]].tolist() if code >= 0 else [-1] * keeps_all
        expected += [(i, row) for row in found]
    assert pairs_on_gpu(lists, codes, keeps_all, out_type) == expected


def test_refused_memory_is_an_error() -> None:
    engine = engine_for("emulated")
    offsets, rows = engine.from_host(np.array([0, 1, 3, 3], np.uint32)), engine.from_host(np.arange(7, dtype=np.int32))
    lists = RowLists(offsets=offsets.ptr, size=2, rows=rows.ptr, row_bytes=4)
    for first in (1, 2, 3, 4):
        with refusing(engine, first), pytest.raises(MemoryError):
            pairs_on_gpu(lists, [0, 1, -1], False, "i8")
