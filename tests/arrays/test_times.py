"""Times with a zone: keys are instants, as UTC has them, whichever library and zone they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warphash import HashMap

INSTANTS = np.array(["2020-01-01T00:00", "2020-07-01T00:00", "1969-12-31T23:59"], "M8[us]")


def column(library: str, zone: str) -> Any:
    module = pytest.importorskip(library)
    match library:
        case "pandas":
            return module.Series(INSTANTS).dt.tz_localize("UTC").dt.tz_convert(zone)
        case "polars":
            return module.Series(INSTANTS).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        case _:
            return module.array(INSTANTS, module.timestamp("us", zone))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_times_of_a_zone_are_instants(library: str, zone: str) -> None:
    table = HashMap.from_arrays(column(library, zone), np.arange(3), device="cpu")
    assert table.key_dtype == INSTANTS.dtype
    assert set(table.keys(like="numpy").tolist()) == set(INSTANTS.tolist())
    assert table[INSTANTS].tolist() == [0, 1, 2]
    for other in ("pandas", "polars", "pyarrow"):
        assert np.asarray(table[column(other, "Asia/Kolkata")]).tolist() == [0, 1, 2]


def test_an_index_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    table = HashMap.from_arrays(pd.DatetimeIndex(column("pandas", "Europe/Berlin")), np.arange(3), device="cpu")
    assert table[INSTANTS].tolist() == [0, 1, 2]
