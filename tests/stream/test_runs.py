"""Sorted runs and their merge: in one pass or more, in blocks of any size, by one column or two."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from warphash.stream import runs as runs_module
from warphash.stream.runs import Runs
from warphash.stream.workspace import Workspace


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many runs each merge had."""
    made = []
    merge = Runs._merge

    def noted(self: Any, files: Any) -> Any:
        made.append(len(files))
        return merge(self, files)

    monkeypatch.setattr(Runs, "_merge", noted)
    return made


@pytest.mark.parametrize("n", [1, 2, 47, 48, 49, 100])
@pytest.mark.parametrize("memory", [2_000, 100_000, 100_000_000])
@pytest.mark.parametrize("order", [["a"], ["a", "b"]], ids=["one", "two"])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_runs_are_merged_in_order(n: int, memory: int, order: list[str], is_sorted: bool, passes: list[int]) -> None:
    chance = random.Random(n)
    rows = [(a, b) for a in range(700) for b in range(1 if order == ["a"] else 3)]
    parts: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for row in rows:
        chance.choice(parts).append(row)
    with Workspace(memory) as work:
        runs = Runs(order, work)
        for part in parts:
            if not is_sorted:
                chance.shuffle(part)
            columns = list(zip(*part, strict=True)) or [(), ()]
            table = pa.table({name: pa.array(column, pa.int64()) for name, column in zip("ab", columns, strict=True)})
            runs.add([table], is_sorted=is_sorted)
        made = pa.concat_tables(list(runs.merged()))
    assert list(zip(made["a"].to_pylist(), made["b"].to_pylist(), strict=True)) == rows
    assert len(passes) == {1: 0, 49: 8, 100: 11}.get(n, 1)
    assert max(passes, default=0) <= 48


@pytest.mark.parametrize(("n", "width"), [(0, 1), (1, 1), (5, 5), (48, 48), (49, 7), (100, 10), (2304, 48), (2305, 14)])
def test_merges_are_as_narrow_as_their_passes_allow(n: int, width: int) -> None:
    assert runs_module._width(n) == width


def test_small_parts_are_handled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of two levels of 32 parts make about as many runs as their bytes take of the share of memory."""
    from warphash import stream

    added = []
    add = Runs.add

    def noted(self: Any, tables: Any, **how: Any) -> None:
        added.append(len(tables[0]))
        add(self, tables, **how)

    monkeypatch.setattr(Runs, "add", noted)
    n, memory = 60_000, 100_000
    made = stream.unique(pa.table({"k": range(n)}), memory=memory)
    assert made.read_all()["k"].to_pylist() == list(range(n))
    least = math.ceil(n * 16 / (memory // 12))
    assert sum(added) == n
    assert least <= len(added) <= 3 * least
