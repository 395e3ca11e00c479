"""Tests of the report: it fits in 80 columns, and it shows each lookup's share of the ceiling."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

pytest.importorskip("rich")

from rich.console import Console

from warphash.lab.bench.runner import Measurement
from warphash.lab.bench.standard import OPERATIONS
from warphash.lab.report import tables

FASTEST = Measurement(
    data="TPC-H LINE",
    design="bucketed_cuckoo",
    parameters={"slots_per_bucket": 16},
    device="cuda:0",
    n=6_001_215,
    load_factor=0.8,
    key_dtype="uint64",
    value_dtype="uint32",
    operation="",
    rate_per_s=0.0,
    seconds=1.0,
    repetitions=5,
    probes_per_key=1.04,
    bytes_per_pair=20.0,
    mismatches=0,
    ceiling_ratio=0.83,
)


def shown(measurements):
    text = io.StringIO()
    Console(file=text, width=80).print(tables.render(measurements, "TPC-H LINE"))
    return text.getvalue()


def at(rate, **changes):
    return [replace(FASTEST, operation=operation, rate_per_s=rate, **changes) for operation in OPERATIONS]


@pytest.mark.parametrize("rate", [1e3, 7.68e6, 99.96e6, 214e6, 999.9e6, 1.2e9, 45.9e9, 150e9])
def test_nothing_is_cut_at_80_columns(rate):
    text = shown(at(rate))
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


@pytest.mark.parametrize(("rate", "cell", "unit"), [(7.684e6, "7.68", "Million"), (45.91e9, "45.9", "Billion")])
def test_rates_have_three_digits_of_the_unit_named(rate, cell, unit):
    text = shown(at(rate))
    assert text.split().count(cell) == len(OPERATIONS)
    assert f"{unit} keys per second" in text


def test_the_share_of_the_ceiling_stands_beside_the_probes():
    present, absent = at(2e6)[2], at(1e6, ceiling_ratio=0.5, probes_per_key=1.33)[4]
    assert "1.04|1.33 0.83|0.50" in shown([present, absent])
    unknown = shown([replace(present, ceiling_ratio=None), absent])
    assert "0.50" in unknown
    assert "None" not in unknown


def test_bytes_per_pair_are_told_as_a_range_where_tables_differ():
    assert "20.0 bytes per pair" in shown(at(1e6))
    other = at(1e6, design="iceberg", bytes_per_pair=9.5)
    assert "9.5 to 20.0 bytes per pair" in shown([*at(1e6), *other])


def test_a_wrong_answer_is_no_rate():
    words = shown(at(1e6, mismatches=3)).split()
    assert words.count("FAIL") == len(OPERATIONS)
    assert "NO" in words
