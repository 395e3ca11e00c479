"""Ranges of an array on several threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from warphash import get_num_threads, set_num_threads
from warphash.arrays.threads import in_threads


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = get_num_threads()
    set_num_threads(4)
    yield
    set_num_threads(before)


@pytest.mark.parametrize("n", [0, 1, 9, 10, 39, 40, 1001])
def test_ranges_cover_all_elements(n: int) -> None:
    seen, names = np.zeros(n, int), set()

    def work(begin: int, end: int) -> None:
        seen[begin:end] += 1
        names.add(threading.get_ident())

    in_threads(n, 10, work)
    assert (seen == 1).all() and (n < 20 or len(names) > 1) and threading.get_ident() in names


def test_an_error_comes_behind_the_last_range() -> None:
    ended: list[int] = []

    def work(begin: int, end: int) -> None:
        if begin == 0:
            raise MemoryError
        ended.append(begin)

    with pytest.raises(MemoryError):
        in_threads(40, 10, work)
    assert sorted(ended) == [10, 20, 30]


def test_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the interpreter ends."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    seen: list[tuple[int, int]] = []
    in_threads(40, 10, lambda begin, end: seen.append((begin, end)))
    assert sorted(seen) == [(0, 10), (10, 20), (20, 30), (30, 40)]
