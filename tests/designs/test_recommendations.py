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


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize(
    ("given", "design"),
    [
        ({}, "quotient_cuckoo"),
        ({"capacity": 10_000, "on_full": "raise", "hash": "universal", "count_probes": True}, "quotient_cuckoo"),
        ({"priorities": ("query",)}, "quotient_cuckoo"),
        ({"priorities": ("insertion",)}, "bucketed_cuckoo"),
        ({"priorities": ("stability",)}, "iceberg"),
        ({"load_factor": 0.95}, "bucketed_cuckoo"),
        ({"load_bounds": (0.2, 0.9)}, "bucketed_cuckoo"),
        ({"max_size": 100}, "bucketed_cuckoo"),
        ({"slots_per_bucket": 16}, "bucketed_cuckoo"),
    ],
)
def test_on_a_gpu_nothing_asked_for_is_the_design_of_large_batches(
    given: dict[str, Any], design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What says how a table should be says it of slots, or of small updates: `bucketed_cuckoo` has more of both."""
    asked = {"device": "emulated", **given}
    assert HashMap("uint32", "uint32", **asked).design == ("bucketed_cuckoo" if not given.get("priorities") else design)
    monkeypatch.setattr(type(engine_for("emulated")), "device", "cuda:0")
    assert HashMap("uint32", "uint32", **asked).design == design
