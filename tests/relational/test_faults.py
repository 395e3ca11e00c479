"""Memory that is refused, interrupts, and calls of several threads: the relational verbs keep nothing, so no answer is
wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import warphash
from support.faults import interrupted
from support.refusals import refusing
from warphash.runtime.devices import engine_for

FILES = re.compile("relational/|storage/|arrays/")
GENERATOR = np.random.default_rng(7)
FEW = GENERATOR.integers(0, 50, 200)
MANY = GENERATOR.integers(0, 40_000, 200_000)
WIDE = np.repeat(GENERATOR.integers(0, 300, 5000), 3).reshape(-1, 3)
FLOATS = np.where(FEW % 5 == 0, np.nan, FEW / 4)
TEXTS = np.array([None if number % 9 == 0 else f"text {number}" for number in FEW], object)


def reloaded(keys: Any) -> warphash.Index:
    with TemporaryDirectory() as folder:
        warphash.Index(keys).save(Path(folder, "index"))
        return warphash.Index.load(Path(folder, "index"))


def aggregates(keys: Any, values: Any, order: Any = "first", nulls: Any = "key") -> tuple[Any, ...]:
    grouped = warphash.group_by(keys, order=order, nulls=nulls)
    asked = {name: (values, name) for name in ("sum", "max", "std", "last", "nunique", "median")}
    return (*grouped.agg(size="size", **asked).columns.values(), *grouped.rows())


CALLS: dict[str, Callable[[], Any]] = {
    "unique of few": lambda: warphash.unique(FEW, True, True, True, sorted=True),
    "unique of many, int32": lambda: warphash.unique(MANY, True, True, True, sorted=True, index_dtype="int32"),
    "unique of many": lambda: warphash.unique(MANY, True, True, True),
    "unique rows": lambda: warphash.unique(WIDE, True, True, True, axis=0),
    "unique rows of columns": lambda: warphash.unique((FEW, FLOATS, TEXTS), True, True, True, sorted=True)[1:],
    "factorize rows of many": lambda: warphash.factorize((MANY, MANY[::-1] * 2**40, MANY % 7))[0],
    "unique floats": lambda: warphash.unique_all(FLOATS),
    "factorize texts": lambda: warphash.factorize(TEXTS),
    "value_counts": lambda: warphash.value_counts(MANY),
    "duplicated": lambda: warphash.duplicated(MANY, "last"),
    "isin of few": lambda: warphash.isin(FEW, FEW[:20]),
    "isin of many": lambda: warphash.isin(MANY, MANY[:5000] * 2),
    "isin of texts": lambda: warphash.isin(TEXTS, TEXTS[:50]),
    "group_by of few": lambda: aggregates(FEW, FLOATS),
    "group_by of many": lambda: aggregates(MANY, MANY, "first"),
    "group_by of parts": lambda: aggregates(MANY * 2**40 + np.arange(len(MANY)) % 7, MANY),
    "group_by of texts": lambda: aggregates(TEXTS, FLOATS, "sorted", "drop"),
    "group_by of rows": lambda: aggregates((FEW, TEXTS), FLOATS),
    "setxor1d": lambda: warphash.setxor1d(FEW, FEW[:30]),
    "Index": lambda: warphash.Index(MANY).get_indexer_non_unique(MANY[:1000] * 2),
    "Index of a file": lambda: reloaded(TEXTS).get_indexer_non_unique(TEXTS[::-1]),
    "isin of rows": lambda: warphash.isin((FEW, TEXTS), (FEW[:50], TEXTS[:50])),
    "setxor1d of rows": lambda: warphash.setxor1d((FEW, MANY[:200]), (FEW[:50], MANY[:50]), sorted=False)[1],
    "Index of rows": lambda: warphash.Index((FEW, FLOATS)).get_indexer_non_unique((FEW[:9], FLOATS[:9])),
    "join of few": lambda: warphash.join(FEW, FEW[:20], "outer"),
    "join of many": lambda: warphash.join(MANY, np.arange(0, 40_000, 3), "right"),
    "join of sparse keys": lambda: warphash.join(MANY * 2**40, np.arange(0, 40_000, 3) * 2**40, "left"),
    "join of keys that repeat": lambda: warphash.join(MANY[:5000] * 2**40, MANY * 2**40, "outer", index_dtype="int32"),
    "join of rows": lambda: warphash.join((FEW, FLOATS, TEXTS), (FEW[:50], FLOATS[:50], TEXTS[:50]), "left"),
    "join of texts": lambda: warphash.join(TEXTS, TEXTS[:50], "outer", nulls="equal", validate="m:m"),
    "join with a check": lambda: warphash.join(MANY, np.arange(40_000), "anti", validate="m:1")[0],
    "join with a table": lambda: warphash.join(FEW, warphash.MultiMap.from_arrays(FEW[:50], np.arange(50)), "left"),
    "join of an Index": lambda: warphash.Index(FEW).join(FLOATS, "right"),
    "Index of texts": lambda: warphash.Index(TEXTS).contains(TEXTS[::-1]),
}

calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def parts(made: Any) -> list[Any]:
    return [np.asarray(part).tolist() for part in (made if isinstance(made, tuple) else (made,))]


def are_equal(made: Any, expected: Any) -> bool:
    return str(parts(made)) == str(parts(expected))  # NaN equals NaN


@calls
@pytest.mark.parametrize("once", [True, False])
def test_refused_memory_gives_no_wrong_answer(call: Callable[[], Any], once: bool) -> None:
    expected, refused = call(), 0
    for first in count(1):
        with refusing(engine_for("cpu"), first, once=once) as refusals:
            try:
                assert are_equal(call(), expected)
            except MemoryError:
                refused += 1
        assert are_equal(call(), expected)
        if not refusals.refused:
            break
    assert refused > 0


@calls
def test_interrupts_give_no_wrong_answer(call: Callable[[], Any]) -> None:
    """At some lines, of which most differ from call to call."""
    expected, places = call(), set()
    for number in count(1, 23):
        interrupt, done = interrupted(call, number, FILES)
        if done:
            break
        places.add(interrupt.place)
    assert places and are_equal(call(), expected)


@calls
def test_two_threads_at_once(call: Callable[[], Any]) -> None:
    expected = call()
    with ThreadPoolExecutor(2) as threads:
        made = [answer.result() for answer in [threads.submit(call) for _ in range(6)]]
    assert all(are_equal(each, expected) for each in made)


def test_an_index_that_threads_share() -> None:
    index = warphash.Index(np.arange(10_000) * 3)
    sought = np.arange(30_000)
    expected = np.where(sought % 3 == 0, sought // 3, -1)
    with ThreadPoolExecutor(4) as threads:
        made = [answer.result() for answer in [threads.submit(index.get_indexer, sought) for _ in range(12)]]
    assert all(np.array_equal(each, expected) for each in made)
