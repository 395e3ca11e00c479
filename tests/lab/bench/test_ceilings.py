"""Tests of ceilings: reads cover whole places inside the region, ratios are right, each ceiling is measured once."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import ENGINES, one_of_each
from warphash.errors import EngineUnavailable
from warphash.lab.bench import ceilings
from warphash.lab.bench.ceilings import CEILING, Ceiling, Ceilings, Reads, Region, reads_of
from warphash.lab.bench.runner import Lab, Setting
from warphash.lab.data import workloads
from warphash.runtime.abi import Launch
from warphash.runtime.devices import engine_for

WIDTHS_BYTES = (4, 8, 16, 32, 64, 128, 256, 512)
PLACES = 1 << 15
GATHERS = 4096


@pytest.fixture
def quick(monkeypatch):
    """Make one short run for each rate."""
    monkeypatch.setattr(ceilings, "_LINES", {"cpu": 1 << 12, "cuda": 1 << 12})
    monkeypatch.setattr(ceilings, "_ENOUGH_S", 0.0)
    monkeypatch.setattr(ceilings, "_FEWEST", 1)


def walked(device: str, entry: str, width: int, places: int = PLACES) -> np.ndarray:
    """The region's 4-byte words after a walk, with a row for each place."""
    engine = engine_for(device)
    region = engine.allocate(places * width)
    engine.fill(region.ptr, 0, places * width)
    drawn_from = Region(address=region.ptr, places=places, place_bytes=width)
    launched = GATHERS if device == "cpu" else GATHERS * max(1, width // 16) // 16
    engine.program(CEILING).run(entry, drawn_from, Launch(n=GATHERS, random=12345), launched, None)
    return engine.to_host(region.ptr, np.uint32, places * width // 4).reshape(places, width // 4)


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
@pytest.mark.parametrize("width", WIDTHS_BYTES)
def test_a_swap_adds_one_to_each_place_read(device, width):
    counts = walked(device, "read_and_swap", width)
    per_place = counts.sum(axis=1)
    assert 0.95 * GATHERS < per_place.sum() <= GATHERS  # a swap that lost a race is not repeated
    assert width == 4 or not counts[:, 1::2].any()  # the upper half of a swapped word
    # Places are drawn evenly: one draw in 16 repeats an earlier place.
    assert 0.92 * GATHERS < (per_place > 0).sum() < 0.96 * GATHERS
    quarters = per_place.reshape(4, -1).sum(axis=1)
    assert abs(quarters - GATHERS / 4).max() < GATHERS / 16


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
@pytest.mark.parametrize("width", WIDTHS_BYTES)
def test_an_exchange_writes_to_each_place_read(device, width):
    per_place = walked(device, "read_and_exchange", width).sum(axis=1)
    assert (per_place > 0).sum() == (walked(device, "read_and_swap", width).sum(axis=1) > 0).sum()
    assert per_place.sum() <= GATHERS  # if two reads see the same word, one write is lost


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
@pytest.mark.parametrize("width", WIDTHS_BYTES)
def test_a_read_changes_nothing(device, width):
    assert not walked(device, "read", width).any()
    assert not walked(device, "read", width, places=1).any()


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
@pytest.mark.parametrize("width", WIDTHS_BYTES)
def test_accesses_are_verified(device, width, monkeypatch):
    found = Ceilings(device)
    for entry in ("read", "read_and_swap", "read_and_exchange"):
        assert found.wrong_places(entry, width) == 0
    run = Ceilings._run
    monkeypatch.setattr(Ceilings, "_run", lambda self, entry, *of: run(self, "read_and_swap", *of))
    assert 2400 < found.wrong_places("read", width) < 2800  # 1 - 1 / e of 4096 places were written
    monkeypatch.setattr(Ceilings, "_run", lambda self, entry, *of: run(self, "read", *of))
    assert 2400 < found.wrong_places("read_and_exchange", width) < 2800  # they were not
    monkeypatch.setattr(Ceilings, "_run", lambda self, entry, at, n, first: run(self, entry, at, n, first + n))
    assert 2200 < found.wrong_places("read_and_swap", width) < 2600  # other places, or more often


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
def test_lookups_read_their_key_and_their_place(device, monkeypatch):
    found = Ceilings(device)
    for place_bytes in WIDTHS_BYTES:
        for key_bytes in (4, 8):
            assert found.wrong_lookups(place_bytes, key_bytes) == 0
    launch = Ceilings._launch

    def others(self, spec, entry, places, batch):
        batch.random += 1
        launch(self, spec, entry, places, batch)

    monkeypatch.setattr(Ceilings, "_launch", others)
    assert found.wrong_lookups(64, 4) > 4000  # of 4096


def test_figures_of_this_machine_are_positive(quick, monkeypatch):
    monkeypatch.setattr(ceilings, "_LOOKUPS", {"cpu": 1 << 12})
    memory = Ceilings("cpu")
    assert 0 < memory.launch_s() < 1
    assert memory.copied_per_s(1 << 16) > 0
    assert memory.lookups_per_s(64, 1 << 16, 8) > 0
    assert memory.free_bytes() == pytest.approx(ceilings.free_host_bytes(), rel=0.5)


def test_a_ratio_is_the_rate_of_probes_over_the_ceiling():
    ceiling = Ceiling(bucket_bytes=64, region_bytes=1 << 20, reads_per_s=200.0, swaps_per_s=100.0)
    assert ceiling.ratio("find 100", 50.0, 2.0) == 0.5
    assert ceiling.ratio("find 0", 50.0, 1.0) == 0.25
    assert ceiling.ratio("build unique", 50.0, None) == 0.5  # one probe at least
    assert ceiling.ratio("insert", 50.0, 1.5) == 0.75


def test_a_ceiling_is_measured_once_for_tables_of_about_one_size(quick, monkeypatch):
    found = Ceilings("cpu")
    first = found.of(64, 1_000_000)
    assert first.bucket_bytes == 64
    assert first.region_bytes >= 1_000_000
    assert min(first.reads_per_s, first.swaps_per_s) > 0
    assert found.of(64, 1_000_000) is first
    assert found.of(64, 999_000) is first
    assert found.of(128, 1_000_000) is not first
    assert found.of(64, 2_000_000) is not first
    assert len(found.measured) == 3
    assert found.measured[0] is first


def test_the_region_is_as_large_as_the_table_but_never_smaller_than_a_place(quick):
    for table_bytes in (1, 63, 64, 65, 1000, 123_456, 1 << 20):
        region = Ceilings("cpu").of(512, table_bytes).region_bytes
        assert max(512, table_bytes) <= region <= max(512, table_bytes * 17 / 16 + 1)


@pytest.mark.parametrize(
    ("key", "value", "slots", "bytes_"),
    [(4, 4, 8, (64, 0)), (8, 4, 8, (128, 0)), (8, 4, 32, (256, 8)), (8, 0, 16, (128, 0)), (2, 1, 8, (64, 0))],
)
def test_a_probe_reads_the_slots_of_a_bucket_or_their_keys(key, value, slots, bytes_):
    assert reads_of(key, value, "iceberg", {"slots_per_bucket": slots}) == Reads(*bytes_)


@pytest.mark.parametrize(("key", "value"), [(4, 4), (4, 0), (8, 4), (8, 0)])
def test_a_slot_is_a_bucket_of_the_classic_table_and_a_slab_has_its_width(key, value):
    assert reads_of(key, value, "cuckoo", {}) == Reads((8 if key > 4 else 4) * (2 if value else 1), 0)
    assert reads_of(key, value, "slab", {}) == Reads(128, 0)
    lines_and_words = reads_of(key, value, "dynamic_cuckoo", {})
    assert (lines_and_words.bucket_bytes, lines_and_words.value_bytes) == (128, value)
    assert lines_and_words.words_share == 8 / (128 + 128 // max(4, key) * value + 12)
    slot = Reads(8 if key > 4 else 4, 0, True)
    assert reads_of(key, 0, "linear_probing", {"slots_per_bucket": 1}) == slot


def test_a_value_apart_from_its_key_is_read_where_the_key_is_found(monkeypatch):
    rates = {16: 100.0, 64: 100.0, 128: 50.0, 512: 20.0}  # per second, of places so wide
    monkeypatch.setattr(Ceilings, "_measure", lambda _, wide, region: Ceiling(wide, region, rates[wide], 10.0))
    found, apart, slots = Ceilings("cpu"), Reads(128, 8), Reads(128, 0)
    assert found.ratio(slots, 1 << 20, "find 100", 25.0, 1.0) == 0.5
    assert found.ratio(apart, 1 << 20, "find 100", 25.0, 1.0) == 0.75  # the CPU reads a line of 64 bytes for the value
    assert found.ratio(apart, 1 << 20, "find 50", 25.0, 1.0) == 0.625
    assert found.ratio(apart, 1 << 20, "find 0", 25.0, 1.0) == 0.5
    assert found.ratio(apart, 1 << 20, "build", 5.0, 1.0) == 0.5
    told = Reads(128, 8, words_share=1 / 16)
    assert found.ratio(told, 1 << 20, "find 100", 25.0, 1.0, 0.5) == 0.875
    assert (64, 1 << 16) in {(ceiling.bucket_bytes, ceiling.region_bytes) for ceiling in found.measured}
    assert found.ratio(Reads(64, 0, True), 1 << 20, "find 0", 25.0, 3.0) == 0.75
    assert found.ratio(Reads(16, 0, True), 1 << 20, "find 0", 25.0, 3.0) == 0.375  # four places share a line
    assert found.ratio(Reads(128, 512), 1 << 20, "find 100", 10.0, 1.0) == 0.7


def test_every_measurement_has_a_ratio(quick):
    operations = ("build", "build unique", "insert", "find 100", "find 0")
    lab = Lab("cpu", repetitions=1, with_ceilings=True)
    for value in ("uint32", None):
        workload = workloads.make(5_000, "uint32", value, seed=1)
        for name in ("cuckoo", "iceberg"):
            for m in lab.measure(workload, Setting(name, {}), 0.7, operations):
                assert m.ceiling_ratio is not None
                assert m.ceiling_ratio > 0
    assert {c.bucket_bytes for c in lab.ceilings} == {8, 4, 128, 64}


def test_a_rate_above_its_ceiling_has_that_measured_again(monkeypatch):
    rates = iter([(1.0, 1.0), (1e15, 0.5)])  # other work slowed the first measurement
    monkeypatch.setattr(Ceilings, "_measure", lambda self, *key: Ceiling(*key, *next(rates)))
    lab = Lab("cpu", repetitions=1, with_ceilings=True)
    workload = workloads.make(500, "uint32", "uint32", seed=1)
    table, _ = Lab("cpu", repetitions=1).measure_build(workload, Setting("cuckoo", {}), 0.7)
    assert lab.measure_find(table, workload, 1.0).ceiling_ratio < 1
    assert [(c.reads_per_s, c.swaps_per_s) for c in lab.ceilings] == [(1e15, 1.0)]
    assert lab.measure_find(table, workload, 0.0).ceiling_ratio < 1  # without a third measurement


def test_a_lab_measures_ceilings_only_where_they_are_wanted():
    lab = Lab("cpu", repetitions=1)
    measured = lab.measure(workloads.make(500, "uint32", "uint32", seed=1), Setting("cuckoo", {}), 0.7, ("build",))
    assert measured[0].ceiling_ratio is None
    assert lab.ceilings == []


@pytest.mark.parametrize("refusal", [MemoryError, EngineUnavailable])
def test_no_room_or_no_compiler_for_a_ceiling_costs_the_ratio_only(monkeypatch, refusal):
    def refuse(*_):
        raise refusal

    monkeypatch.setattr(Ceilings, "of", refuse)
    lab = Lab("cpu", repetitions=1, with_ceilings=True)
    measured = lab.measure(workloads.make(500, "uint32", "uint32", seed=1), Setting("cuckoo", {}), 0.7, ("build",))
    assert measured[0].ceiling_ratio is None
    assert measured[0].mismatches == 0
