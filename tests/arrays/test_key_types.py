"""A key type is one whose items are equal exactly if their bytes are; the mend of every refusal is followed here."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from warphash import DtypeError, HashMap, HashSet, MultiMap

FLOATS = [
    *("f2", "f4", "f8", "c8", "c16", ("f4", (3,)), ("c16", (2,))),
    [("a", "f4"), ("b", "i4")],
    [("a", "i4"), ("b", [("c", "c16"), ("d", "f8", (2,))])],
    np.dtype({"names": ["a", "b"], "formats": ["f4", "i4"], "offsets": [0, 0]}),
]
PADDED = [
    np.dtype([("a", "u1"), ("b", "i8")], align=True),
    np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2], "itemsize": 8}),
    np.dtype({"names": ["a"], "formats": [[("x", "u1"), ("y", "u2")]], "itemsize": 6}),
    np.dtype([("a", np.dtype([("x", "u1"), ("y", "i4")], align=True), (2,))]),
]
MEND = re.compile(r"which loses nothing[^:]*: (keys\..*)$")


def followed(error: DtypeError, keys: np.ndarray) -> np.ndarray:
    """The keys after the conversion that the error advises."""
    found = MEND.search(str(error))
    assert found, f"no mend in: {error}"
    made: np.ndarray = eval(found[1], {"keys": keys})
    return made


def fields(item: Any) -> Any:
    """The numbers of records, whatever lies between them."""
    return [fields(part) for part in item] if isinstance(item, np.ndarray | np.void) else item


@pytest.mark.parametrize("dtype", FLOATS + PADDED, ids=str)
def test_a_refused_type_and_its_mend(dtype: Any) -> None:
    full = np.dtype(dtype)
    n = 6
    raw = np.arange(n * full.itemsize, dtype=np.uint8)
    keys = raw.view(full) if full.subdtype is None else raw.view(full.base).reshape(n, *full.shape)
    for make in (HashSet, lambda key: HashMap(key, "u4", device="cpu")):
        with pytest.raises(DtypeError):
            make(full)
    with pytest.raises(DtypeError) as refused:
        HashSet.from_arrays(keys, device="cpu")
    mended = followed(refused.value, keys)
    table = HashSet.from_arrays(mended, device="cpu")
    assert len(table) == n and table.contains(mended).all()
    if full in PADDED:
        assert fields(mended) == fields(keys)
    else:
        assert mended.tobytes() == keys.tobytes()


@pytest.mark.parametrize("dtype", ["g", "G", [("a", "g")]], ids=str)
def test_extended_floats_say_that_the_mend_rounds(dtype: Any) -> None:
    with pytest.raises(DtypeError, match="rounds"):
        HashSet(dtype, device="cpu")


def test_records_without_gaps_are_keys() -> None:
    for dtype in (
        np.dtype([("a", "u1"), ("b", "i8")]),
        np.dtype([(("title", "a"), "i4"), ("b", "S3")]),
        np.dtype({"names": ["all", "low"], "formats": ["u4", "u2"], "offsets": [0, 0]}),
        np.dtype([("a", [("x", "u1"), ("y", "M8[s]")], (2,))]),
    ):
        keys = np.zeros(2, dtype)
        keys.view(np.uint8)[0] = 1
        table = HashSet.from_arrays(keys, device="cpu")
        assert len(table) == 2 and table.contains(keys).all()


def test_values_may_be_floats_and_padded() -> None:
    padded = np.dtype([("a", "f4"), ("b", "f8")], align=True)
    table = HashMap.from_arrays([1, 2], np.array([(1, 2), (3, 4)], padded), device="cpu")
    assert table[2]["b"] == 4


@pytest.mark.parametrize("kind", ["M8[s]", "m8[ns]"])
def test_nat_is_one_key(kind: str) -> None:
    nats = np.array(["NaT", "NaT", 5], kind)
    table = HashSet.from_arrays(nats, device="cpu")
    assert len(table) == 2 and table.contains(nats).all()
    nat = nats[0]
    assert nat in table and None not in table
    counts = MultiMap.from_arrays(nats, np.arange(3), device="cpu")
    assert counts.count(nats[:1])[0] == 2
