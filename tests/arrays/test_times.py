"""Times with a zone: keys are instants, as UTC has them, whichever library and zone they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warphash import HashMap, HashSet

INSTANTS = np.array(["2020-01-01T00:00", "2020-07-01T00:00", "1969-12-31T23:59"], "M8[us]")


LIBRARIES = ["pandas", "pandas-arrow", "polars", "pyarrow"]


def column(library: str, zone: str) -> Any:
    module = pytest.importorskip(library.partition("-")[0])
    match library:
        case "pandas-arrow":
            arrow = pytest.importorskip("pyarrow")
            kind = arrow.timestamp("us", zone)
            return module.Series(arrow.array(INSTANTS, kind), dtype=module.ArrowDtype(kind))
        case "pandas":
            return module.Series(INSTANTS).dt.tz_localize("UTC").dt.tz_convert(zone)
        case "polars":
            return module.Series(INSTANTS).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        case _:
            return module.array(INSTANTS, module.timestamp("us", zone))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_times_of_a_zone_are_instants(library: str, zone: str) -> None:
    table = HashMap.from_arrays(column(library, zone), np.arange(3), device="cpu")
    assert table.key_dtype == INSTANTS.dtype
    assert set(table.keys(like="numpy").tolist()) == set(INSTANTS.tolist())
    assert table[INSTANTS].tolist() == [0, 1, 2]
    for other in LIBRARIES:
        assert np.asarray(table[column(other, "Asia/Kolkata")]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("library", ["pandas", "pandas-arrow"])
def test_an_index_of_pandas(library: str) -> None:
    pd = pytest.importorskip("pandas")
    table = HashMap.from_arrays(pd.Index(column(library, "Europe/Berlin")), np.arange(3), device="cpu")
    assert table[INSTANTS].tolist() == [0, 1, 2]


@pytest.mark.parametrize("library", ["pandas", "pandas-arrow"])
def test_a_frame_of_pandas(library: str) -> None:
    """Rows of two times; and of one time, joined from two pieces."""
    pd = pytest.importorskip("pandas")
    given = column(library, "Europe/Berlin")
    frame = pd.DataFrame({"from": given, "to": given[::-1].reset_index(drop=True)})
    table = HashMap.from_arrays(frame, np.arange(3), device="cpu")
    assert table.key_dtype == np.dtype(("M8[us]", (2,)))
    assert table[np.stack([INSTANTS, INSTANTS[::-1]], axis=1)].tolist() == [0, 1, 2]
    assert table.find(frame)[0].tolist() == [0, 1, 2]
    joined = HashMap.from_arrays(pd.concat([given, given]), np.tile(np.arange(3), 2), device="cpu")
    assert len(joined) == 3 and joined[INSTANTS].tolist() == [0, 1, 2]


@pytest.mark.parametrize("library", LIBRARIES)
def test_values_and_answers(library: str) -> None:
    """Times of a zone as values, and as what answers are to be like, of another length."""
    given = column(library, "Europe/Berlin")
    table = HashMap.from_arrays(np.arange(3), given, device="cpu")
    assert table[np.arange(3)].tolist() == INSTANTS.tolist()
    keys = HashSet.from_arrays(INSTANTS[:2], device="cpu").keys(like=given)
    assert type(keys).__module__.partition(".")[0] == library.partition("-")[0]
    assert set(np.asarray(keys).tolist()) == set(INSTANTS[:2].tolist())


@pytest.mark.parametrize("nulls", ["key", "drop"])
def test_nulls_among_times_in_arrow_memory(nulls: str) -> None:
    pd = pytest.importorskip("pandas")
    given = column("pandas-arrow", "Europe/Berlin")
    given = pd.concat([given, pd.Series([None], dtype=given.dtype)], ignore_index=True)
    table = HashSet.from_arrays(given, nulls=nulls, device="cpu")
    assert len(table) == 3 + (nulls == "key")
    assert table.contains(given).tolist() == [True, True, True, nulls == "key"]
    assert table.contains(INSTANTS).all()


def test_dates_in_arrow_memory() -> None:
    pd, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    days = INSTANTS.astype("M8[D]")
    given = pd.Series(arrow.array(days), dtype=pd.ArrowDtype(arrow.date32()))
    table = HashMap.from_arrays(given, np.arange(3), device="cpu")
    assert table.key_dtype == days.dtype and table[days].tolist() == table[given].tolist() == [0, 1, 2]
