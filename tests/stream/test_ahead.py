"""Items that a thread makes ahead of the caller."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import warphash
from warphash import stream
from warphash.stream.ahead import ahead


class _Made:
    """A generator of numbers that notes what it has begun, by which threads, and that it was closed."""

    def __init__(self, n: int, fails_at: int = -1) -> None:
        self.begun: list[int] = []
        self.threads: set[int] = set()
        self.is_closed = False
        self._n, self._fails_at = n, fails_at

    def items(self) -> Generator[int, None, None]:
        try:
            for number in range(self._n):
                self.begun.append(number)
                self.threads.add(threading.get_ident())
                if number == self._fails_at:
                    raise OSError("no such item")
                yield number
        finally:
            self.is_closed = True


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_items_keep_their_order_and_come_from_one_other_thread(n: int) -> None:
    made = _Made(n)
    assert list(ahead(made.items())) == list(range(n))
    assert made.is_closed and len(made.threads) == min(n, 1) and threading.get_ident() not in made.threads


def test_an_error_comes_in_the_place_of_its_item() -> None:
    made, seen = _Made(9, fails_at=5), []
    with pytest.raises(OSError, match="no such item"):
        for item in ahead(made.items()):
            seen.append(item)
    assert seen == [0, 1, 2, 3, 4] and made.is_closed


@pytest.mark.parametrize("stop", [KeyboardInterrupt, GeneratorExit])
def test_who_stops_early_waits_for_the_item_that_was_begun(stop: type[BaseException]) -> None:
    made = _Made(1000)
    numbers = ahead(made.items())
    assert [next(numbers), next(numbers)] == [0, 1]
    with pytest.raises(stop):
        numbers.throw(stop)  # type: ignore[attr-defined]
    assert made.is_closed and made.begun in ([0, 1, 2], [0, 1])
    assert not [each for each in threading.enumerate() if each.name.startswith("warphash-ahead")]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_is_read_by_a_thread_of_its_own_if_there_may_be_two(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, readers = tmp_path / "rows.parquet", set()
    parquet.write_table(pa.table({"k": range(5000)}), path)
    batches = parquet.ParquetFile.iter_batches

    def noted(*args: Any, **options: Any) -> Any:
        readers.add(threading.get_ident())
        return batches(*args, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", noted)
    before = warphash.get_num_threads()
    warphash.set_num_threads(threads)
    try:
        made = stream.join(path, pa.table({"k": [4999, 7, 7]}), "k", memory=30_000).read_all()
    finally:
        warphash.set_num_threads(before)
    assert made["k"].to_pylist() == [7, 7, 4999]
    assert (threading.get_ident() in readers) == (threads == 1)
