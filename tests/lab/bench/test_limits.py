"""Tests of limits: those of a rate follow from the figures of the memory, which are measured when they are needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from warphash.lab.bench.ceilings import Ceiling, Ceilings
from warphash.lab.bench.limits import Accesses, Limit, Limits
from warphash.lab.bench.runner import Measurement

FOUND = Measurement(
    data="random",
    design="bucketed_cuckoo",
    parameters={"slots_per_bucket": 8},
    device="cpu",
    n=1000,
    load_factor=0.8,
    key_dtype="uint32",
    value_dtype="uint32",
    operation="find 100",
    rate_per_s=10.0,
    seconds=100.0,
    repetitions=1,
    probes_per_key=1.5,
    bytes_per_pair=10.0,
    mismatches=0,
    table_bytes=10_000,
)
"""1,000 keys of a table of 10,000 bytes, in buckets of 64 bytes, found in one call."""


class _Memory(Ceilings):
    """Memory of which all figures are known: 100 reads, 80 lookups, 40 writes and 50 swaps a second."""

    def __init__(self, copied: float = 1e6, launch: float = 0.0) -> None:
        super().__init__("cpu")
        self.asked: list[str] = []
        self.copied, self.launch = copied, launch

    def of(self, bucket_bytes: int, table_bytes: int) -> Ceiling:
        return Ceiling(bucket_bytes, table_bytes, 100.0, 50.0)

    def again(self, known: Ceiling) -> Ceiling:
        self.asked.append("again")
        return replace(known, reads_per_s=1e9, swaps_per_s=1e9)

    def lookups_per_s(self, place_bytes: int, region_bytes: int, key_bytes: int) -> float:
        self.asked.append(f"lookups of {key_bytes} bytes")
        return 80.0

    def rates(self, *_: Any) -> list[float]:
        return [40.0]

    def copied_per_s(self, nbytes: int) -> float:
        self.asked.append(f"copy of {nbytes}")
        return self.copied

    def launch_s(self) -> float:
        return self.launch


def limit(changes: dict[str, Any], memory: _Memory | None = None) -> Limit:
    found = Limits(memory or _Memory()).of(replace(FOUND, **changes))
    assert found is not None
    return found


def test_a_find_is_a_lookup_and_a_read_for_each_further_probe() -> None:
    found = limit({})
    assert found.lines_per_key == 1.5
    assert found.random_per_s == pytest.approx(1 / (1 / 80 + 0.5 / 100))
    assert found.random_share == pytest.approx(10 / found.random_per_s)
    assert limit({"probes_per_key": 1.0}).random_per_s == pytest.approx(80)


def test_lines_count_wide_buckets_words_and_values_that_lie_apart() -> None:
    wide = {"parameters": {"slots_per_bucket": 32}, "probes_per_key": 1.0}
    assert limit(wide).lines_per_key == 4
    apart = {**wide, "design": "iceberg", "key_dtype": "uint64"}
    assert limit(apart).lines_per_key == 256 / 64 + 1
    assert limit({**apart, "operation": "find 0"}).lines_per_key == 256 / 64
    guests = {"design": "dynamic_cuckoo", "parameters": {}, "probes_per_key": 1.0, "operation": "find 0"}
    assert limit({**guests, "words_per_key": 0.5}).lines_per_key == 128 / 64 + 0.5


def test_an_update_swaps_a_word_for_each_probe() -> None:
    for operation in ("build", "insert", "erase"):
        assert limit({"operation": operation, "probes_per_key": None}).random_per_s == pytest.approx(50)
        assert limit({"operation": operation, "probes_per_key": 2.0}).random_per_s == pytest.approx(25)


def test_a_stream_moves_the_batch_and_the_lines_of_the_table() -> None:
    # A key takes 4 bytes, a value 4, a flag 1; the table has 10 for each key of the batch.
    for operation, moved in (("find 100", 9 + 10), ("build", 8 + 10), ("insert", 9 + 20), ("erase", 5 + 20)):
        assert limit({"operation": operation}).stream_per_s == pytest.approx(1e6 / moved)
    of_a_set = {"value_dtype": None, "probes_per_key": 1.0}
    assert limit(of_a_set).stream_per_s == pytest.approx(1e6 / (5 + 10))
    few = {"rate_per_s": 1.0, "seconds": 10.0, "probes_per_key": 1.0}  # 10 keys touch no more than 10 lines
    assert limit(few).stream_per_s == pytest.approx(1e6 / (9 + 64))


def test_a_launch_bounds_small_batches() -> None:
    bound = limit({"rate_per_s": 1.0, "seconds": 1000.0}, _Memory(copied=1e30, launch=100.0))
    assert bound.stream_per_s == pytest.approx(1000 / 100)
    assert bound.random_per_s == pytest.approx(1 / (1 / 80 + 0.5 / 100 + 0.1))


def test_figures_are_measured_once_and_named_in_the_file() -> None:
    memory = _Memory()
    found = Limits(memory)
    for _ in range(2):
        found.of(FOUND)
    found.of(replace(FOUND, key_dtype="uint64", value_dtype="uint64", parameters={"slots_per_bucket": 8}))
    assert memory.asked == ["lookups of 4 bytes", "copy of 262144", "lookups of 8 bytes"]
    content = found.content()
    assert content["launch_s"] == 0
    assert content["streams"] == [{"bytes": 262144, "bytes_per_s": 1e6}]
    assert content["accesses"] == [vars(Accesses(64, 10_000, 4, 80, 40)), vars(Accesses(128, 10_000, 8, 80, 40))]


def test_a_rate_above_its_random_limit_has_that_measured_again() -> None:
    memory = _Memory()
    found = limit({"rate_per_s": 200.0, "seconds": 5.0, "operation": "build", "probes_per_key": None}, memory)
    assert memory.asked.count("again") == 1
    assert found.random_share < 1


def test_no_room_for_a_region_leaves_the_rate_without_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> float:
        raise MemoryError

    monkeypatch.setattr(_Memory, "lookups_per_s", refuse)
    assert Limits(_Memory()).of(FOUND) is None


def test_a_table_of_too_many_places_has_no_limits() -> None:
    found = Limits(_Memory())
    assert found.of(replace(FOUND, table_bytes=64 << 32)) is None
    assert found.of(replace(FOUND, table_bytes=(64 << 32) - 64)) is not None
