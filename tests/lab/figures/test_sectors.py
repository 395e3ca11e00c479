"""Sectors per key, counted from the buckets that an operation reads (docs/fidelity.md#bght-sectors)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from warphash import HashMap
from warphash.lab.bench.ceilings import reads_of
from warphash.lab.bench.runner import Lab
from warphash.lab.figures import catalogue, experiments
from warphash.lab.figures.sectors import sectors_per_key

FEW, SOME, MANY = 4_000, 12_000, 200_000
"""Keys: of many, few are placed at once, so few read their buckets again. Of few, none may need a third bucket."""
DESIGNS: dict[str, tuple[str, dict[str, Any]]] = {
    "1cht": ("cuckoo", {}),
    "bcht": ("bucketed_cuckoo", {"slots_per_bucket": 16}),
    "bp2ht": ("power_of_two", {"slots_per_bucket": 16}),
    "iht": ("iceberg", {"slots_per_bucket": 16, "threshold": 0.8, "early_exit": False}),
}
"""Those of Figure 15: buckets of 128 bytes, and a threshold of 13 keys."""


def counted(device: str, name: str, n: int) -> tuple[float, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Sectors of an insert in the mean, and of each find of a present and of an absent key, at load 0.8."""
    design, parameters = DESIGNS[name]
    keys = np.random.default_rng(4).permutation(np.arange(2 * n, dtype=np.uint32))
    held, absent = keys[:n], keys[n:]
    options: dict[str, Any] = {"design": design, "load_factor": 0.8, "on_full": "raise", "device": device, "seed": 3}
    table = HashMap.from_arrays(held, held, assume_unique=True, count_probes=True, **options, **parameters)
    reads = reads_of(4, 4, design, table.stats().parameters)
    finds = [
        np.array([sectors_per_key("find 100", probes, reads) for probes in table.probe_counts(asked).tolist()])
        for asked in (held, absent)
    ]
    return sectors_per_key("insert unique", table.stats().insert_probes or 0, reads), *finds


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize(("name", "least", "most"), [("1cht", 1, 4), ("bcht", 4, 12), ("bp2ht", 4, 8), ("iht", 4, 12)])
def test_a_find_moves_four_sectors_for_each_bucket(name: str, least: int, most: int, device: str) -> None:
    """As the paper counts; of 1CHT a sector for each slot, where the paper counts two, which memory gives at once."""
    _, present, absent = counted(device, name, MANY if device == "cuda" else SOME)
    assert (present.min(), present.max()) == (least, most)
    assert absent.max() == most
    assert name not in ("bp2ht", "iht") or absent.min() == most


def test_an_insert_moves_one_sector_more_than_a_find() -> None:
    """BCHT and IHT find a key where the insert has looked first, so a find reads what the insert read."""
    for name, more in (("bcht", 1.0), ("iht", 1.2)):
        insert, present, _ = counted("cpu", name, MANY)
        assert insert - present.mean() == pytest.approx(more, abs=0.1)


def test_an_insert_with_two_choices_moves_five_sectors_more() -> None:
    """A bucket and a swap more than a find that ends in the first bucket, which two thirds of the finds do."""
    insert, present, _ = counted("cpu", "bp2ht", MANY)
    assert insert == pytest.approx(present.min() + 5, abs=0.05)
    assert insert - present.mean() == pytest.approx(1 + 4 * (2 - 4 / 3), abs=0.1)


def test_the_figure_counts_them_too() -> None:
    found = catalogue.load("figsectors")
    ours = {
        (point.series, point.panel, point.x): point.value
        for point, _ in experiments.measured(found, Lab("cpu", 1), 20_000, 1, lambda _: None)
    }
    for series in found.series:
        probes_per_sector = 1 if series.design == "cuckoo" else 4
        assert ours[series.label, "find 0", 0.6] >= probes_per_sector
        assert ours[series.label, "build unique", 0.6] >= probes_per_sector + 1
    assert ours["BP2HT, b = 16", "find 0", 0.8] == 8 and ours["IHT, b = 16", "find 0", 0.8] == 12
