"""Floating-point keys by an explicit rule: by their bits, or by their values."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from support.cases import design_names
from support.engines import missing
from warphash import DtypeError, HashMap, HashSet, MultiMap, ParameterError

DEVICES = [device for device in ("cpu", "emulated") if not missing(device)]
OTHER_NAN = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
GIVEN = np.array([0.0, -0.0, np.nan, OTHER_NAN, -np.nan, 1.5, np.inf, 1.5])


def bits(keys: np.ndarray) -> set[int]:
    return set(np.asarray(keys).view(f"u{np.asarray(keys).dtype.itemsize}").tolist())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
class TestRules:
    def test_by_bits(self, dtype: str, device: str) -> None:
        given = GIVEN.astype(dtype)
        table = HashSet(dtype, floats="bits", device=device)
        table.insert(given)
        assert bits(table.keys()) == bits(given) and table.keys().dtype == dtype
        assert table.contains(given).all() and not table.contains(given + given.dtype.type(3))[5]
        assert table.erase(given[:1]).all() and table.contains(given[1:2]).all()

    def test_by_value(self, dtype: str, device: str) -> None:
        given = GIVEN.astype(dtype)
        before = given.copy()
        table = HashMap(dtype, "int64", floats="value", device=device)
        assert table.insert(given, np.arange(8)).sum() == 4
        assert bits(table.keys()) == bits(np.array([0.0, np.nan, 1.5, np.inf], dtype))
        assert bits(given) == bits(before), "the caller's keys are as they were"
        assert table.contains(given).all() and table.contains([-0.0, 7.0]).tolist() == [True, False]
        assert table[-0.0] in (0, 1) and float("nan") in table and 2.5 not in table
        assert table.upsert(given, np.full(8, 10), "last").sum() == 0 and table[np.nan] == 10
        table.check()


@pytest.mark.parametrize("design", design_names())
def test_every_design(design: str) -> None:
    table = HashSet.from_arrays(GIVEN, floats="value", design=design, device="cpu")
    assert len(table) == 4 and table.contains(GIVEN).all()
    table.check()


def test_copies_keep_the_rule(tmp_path: Path) -> None:
    table = HashSet.from_arrays(GIVEN, floats="value", device="cpu")
    table.save(tmp_path / "set")
    for twin in (table.copy(), pickle.loads(pickle.dumps(table)), HashSet.load(tmp_path / "set"), table | table):
        assert twin == table and -0.0 in twin and len(twin) == 4
        twin.add(-np.nan)
        assert len(twin) == 4
    assert set(table.union([2.5, -0.0])) > {0.0, 1.5, 2.5}


def test_rules_do_not_mix() -> None:
    with pytest.raises(DtypeError, match="one key type, got float64, floats='bits' and float64, floats='value'"):
        _ = HashSet("f8", floats="bits", device="cpu") | HashSet("f8", floats="value", device="cpu")


def test_rows_and_multimaps() -> None:
    rows = np.array([[0.0, 1.0], [-0.0, 1.0]], np.float32)
    assert len(HashSet.from_arrays(rows, floats="value", device="cpu")) == 1
    table = MultiMap("f8", "int64", floats="value", device="cpu")
    table.insert(GIVEN, np.arange(8))
    assert table.count([0.0, np.nan]).tolist() == [2, 3]


def test_without_a_rule_floats_are_refused() -> None:
    with pytest.raises(DtypeError, match="exact equality"):
        HashSet("float64", device="cpu")
    with pytest.raises(DtypeError, match="exact equality"):
        HashSet.from_arrays(GIVEN, device="cpu")


def test_wrong_rules_and_types() -> None:
    with pytest.raises(ParameterError, match="floats must be one of"):
        HashSet("f8", floats="nearly", device="cpu")
    for dtype in ("int64", "longdouble", "c16", [("a", "f8")]):
        with pytest.raises(DtypeError, match="floats='bits' is for keys of float16, float32 or float64"):
            HashSet(dtype, floats="bits", device="cpu")
    with pytest.raises(DtypeError, match="at most 128 bytes"):
        HashSet(("f8", (17,)), floats="bits", device="cpu")
