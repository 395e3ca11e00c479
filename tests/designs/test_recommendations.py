"""What `design="auto"` chooses, cell by cell of Table I of the paper (docs/fidelity.md#bght-recommendations)."""

from __future__ import annotations

from typing import Any

import pytest

from designs.published import RECOMMENDATIONS
from support.engines import missing
from warphash import HashMap, HashSet
from warphash.runtime.devices import engine_for

DEPARTURES = {("query", "insertion"): 8}
"""Cells whose design has other slots in a bucket here: one line of 64 bytes where the load factor does not matter."""


@pytest.mark.parametrize("cell", RECOMMENDATIONS, ids="-".join)
def test_a_cell_of_the_table_chooses_the_design_of_the_paper(cell: tuple[str, str]) -> None:
    design, slots_per_bucket = RECOMMENDATIONS[cell]
    for priorities in (cell, cell[::-1]):
        table = HashSet("uint32", priorities=priorities, device="cpu")
        assert table.design == design
        assert table.stats().parameters["slots_per_bucket"] == DEPARTURES.get(cell, slots_per_bucket)


@pytest.mark.parametrize("priorities", [(), ("load_factor",), ("insertion",), ("load_factor", "insertion", "query")])
def test_without_stability_all_cells_are_one_design(priorities: tuple[str, ...]) -> None:
    """The three priorities together, and each alone, are no cells of the table."""
    assert HashSet("uint32", priorities=priorities, device="cpu").design == "bucketed_cuckoo"


@pytest.mark.parametrize("priorities", ["query", ("query",), ("query", "query")])
def test_lookups_alone_choose_the_design_that_is_found_in_fastest(priorities: str | tuple[str, ...]) -> None:
    assert HashSet("uint32", priorities=priorities, device="cpu").design == "quotient_cuckoo"


def test_stability_alone_keeps_every_key_in_its_place() -> None:
    for others in ((), ("insertion", "query"), ("load_factor", "insertion", "query")):
        table = HashSet("uint32", priorities=("stability", *others), device="cpu")
        assert table.design == "iceberg"


BUCKETED, QUOTIENT = "bucketed_cuckoo", "quotient_cuckoo"


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize(
    ("given", "on_a_gpu", "elsewhere"),
    [
        ({}, QUOTIENT, BUCKETED),
        ({"capacity": 10_000, "on_full": "raise", "hash": "universal", "count_probes": True}, QUOTIENT, BUCKETED),
        ({"priorities": ("query",)}, QUOTIENT, QUOTIENT),
        ({"priorities": ("insertion",)}, QUOTIENT, BUCKETED),
        ({"priorities": ("insertion", "query")}, QUOTIENT, BUCKETED),
        ({"priorities": ("insertion", "load_factor")}, BUCKETED, BUCKETED),
        ({"priorities": ("stability",)}, "iceberg", "iceberg"),
        ({"load_factor": 0.95}, BUCKETED, BUCKETED),
        ({"load_bounds": (0.2, 0.9)}, BUCKETED, BUCKETED),
        ({"max_size": 100}, BUCKETED, BUCKETED),
        ({"slots_per_bucket": 16}, BUCKETED, BUCKETED),
    ],
)
def test_on_a_gpu_nothing_asked_for_is_the_design_of_large_batches(
    given: dict[str, Any], on_a_gpu: str, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What says how a table should be says it of slots, or of small updates: `bucketed_cuckoo` has more of both."""
    asked = {"device": "emulated", **given}
    assert HashMap("uint32", "uint32", **asked).design == elsewhere
    monkeypatch.setattr(type(engine_for("emulated")), "device", "cuda:0")
    assert HashMap("uint32", "uint32", **asked).design == on_a_gpu
