"""Saved and pickled indexes: every kind of keys, and files that are torn, foreign, altered or made by hand."""

from __future__ import annotations

import copy
import datetime
import os
import pickle
import signal
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.archives import archive, parts_of, save_and_kill
from support.relational import KINDS, Kind, items_of, lists_of, shown
from warphash import CorruptFile, DtypeError, HashMap, HashSet, Index, PathError

few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
kinds = pytest.mark.parametrize("kind", KINDS, ids=str)


def reloaded(index: Index, folder: Path) -> Index:
    index.save(folder / "index")
    return Index.load(folder / "index")


def numbers(made: Any) -> list[Any]:
    return np.asarray(made).tolist()


def answers(index: Index, sought: Any) -> list[Any]:
    """All that an index says about some keys."""
    positions, missing = index.get_indexer_non_unique(sought)
    unique = numbers(index.get_indexer(sought)) if index.is_unique else None
    flags = numbers(index.contains(sought))
    return [len(index), index.is_unique, numbers(positions), numbers(missing), unique, flags]


# ---- round trips
@kinds
@few
@given(data=st.data())
def test_round_trip(kind: Kind, tmp_path: Path, data: st.DataObject) -> None:
    items, sought = data.draw(lists_of(kind)), kind.make(data.draw(lists_of(kind)))
    index = Index(kind.make(items))
    loaded = reloaded(index, tmp_path)
    for other in (loaded, reloaded(loaded, tmp_path), *(pickle.loads(pickle.dumps(made)) for made in (index, loaded))):
        assert answers(other, sought) == answers(index, sought)
        assert other.get_indexer_non_unique(sought)[0].__class__ is index.get_indexer_non_unique(sought)[0].__class__
    keys = loaded.keys()
    assert type(keys) is np.ndarray and keys.shape == (len(items),)
    assert shown(list(keys)) == shown(items)
    assert answers(Index(keys), sought) == answers(index, sought)
    if kind.library == "numpy" and kind.dtype != "object":
        assert keys.dtype == kind.make(items).dtype.newbyteorder("=")


MOMENT = datetime.datetime(2020, 5, 17, 3, 4, 5)


@pytest.mark.parametrize(
    ("library", "make", "items"),
    [
        ("pandas", lambda pd, items: pd.Series(items, dtype="datetime64[us, Europe/Berlin]"), [MOMENT, None]),
        ("pandas", lambda pd, items: pd.Series(items, dtype="category"), [3, None, 5]),
        ("pandas", lambda pd, items: pd.Index(items), ["a", "b"]),
        ("pandas", lambda pd, items: pd.Series(items, dtype="Float32"), [1.5, None, -0.0]),
        ("pyarrow", lambda pa, items: pa.array(items, pa.decimal128(20, 2)), [Decimal("1.50"), None, Decimal("-2")]),
        ("pyarrow", lambda pa, items: pa.array(items, pa.string_view()), ["a", None, "of more than 12 bytes"]),
        ("pyarrow", lambda pa, items: pa.array(items, pa.date32()), [MOMENT.date(), None]),
        ("pyarrow", lambda pa, items: pa.array(items, pa.timestamp("ns", "UTC")), [MOMENT, None, None]),
        ("pyarrow", lambda pa, items: pa.array(items, pa.list_(pa.int16(), 2)), [[1, 2], [3, 4], [1, 2]]),
        ("pyarrow", lambda pa, items: pa.array(items).dictionary_encode(), ["a", None, "ß"]),
        ("polars", lambda pl, items: pl.Series(items, dtype=pl.Categorical), ["a", None, "ß"]),
        ("polars", lambda pl, items: pl.Series(items, dtype=pl.Duration("ms")), [datetime.timedelta(3), None]),
        ("polars", lambda pl, items: pl.Series(items, dtype=pl.Binary), [b"a", None, b"a\0"]),
    ],
)
def test_columns_of_other_types(library: str, make: Callable[..., Any], items: list[Any], tmp_path: Path) -> None:
    keys = make(pytest.importorskip(library), items)
    index, reversed_keys = Index(keys), make(pytest.importorskip(library), items[::-1])
    loaded = reloaded(index, tmp_path)
    assert answers(loaded, reversed_keys) == answers(index, reversed_keys)
    assert answers(loaded, reversed_keys)[-1] == [True] * len(items)
    assert answers(pickle.loads(pickle.dumps(loaded)), reversed_keys) == answers(index, reversed_keys)
    held = loaded.keys()
    assert len(held) == len(items) and [item is None for item in held] == [item is None for item in items]
    if library == "pyarrow" and isinstance(items[0], Decimal):
        assert held.tolist() == items


def test_many_keys(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3).permutation(1 << 17)
    for keys in (numbers, numbers // 3, numbers.astype("S6"), [f"key {number}" for number in numbers]):
        index, sought = Index(keys), keys[1000:5000]
        loaded = reloaded(index, tmp_path)
        assert answers(loaded, sought) == answers(index, sought)
        assert np.array_equal(loaded.keys(), np.asarray(index.keys(), loaded.keys().dtype))


@pytest.mark.parametrize("keys", [np.empty(0, "i2"), np.empty(0, "U3"), [], np.empty(0, object)], ids=str)
def test_no_keys(keys: Any, tmp_path: Path) -> None:
    loaded = reloaded(Index(keys), tmp_path)
    assert len(loaded) == 0 and len(loaded.keys()) == 0 and loaded.get_indexer([1]).tolist() == [-1]


def test_a_copy_is_the_index_itself() -> None:
    index = Index([1, 2])
    assert copy.copy(index) is index and copy.deepcopy([index])[0] is index


# ---- files
OLD = np.array([3, 5, 7])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "index"
    Index(["a", "bc", None]).save(path)
    return path


def refused(path: Path, says: str = "") -> None:
    with pytest.raises(CorruptFile, match=says or None) as error:
        Index.load(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_truncated_or_altered_anywhere(saved: Path) -> None:
    content = saved.read_bytes()
    for at in range(len(content)):
        saved.write_bytes(content[:at])
        refused(saved)
        saved.write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :])
        refused(saved)
    saved.write_bytes(content + b"\0")
    refused(saved, "truncated or altered")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"warphsh2" + b"\0" * 99, pickle.dumps([1])])
def test_foreign_and_newer_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    refused(path, "no saved Index of this version")


def test_files_of_tables_and_of_indexes_are_told_apart(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="holds no HashSet: it holds a 'Index'"):
        HashSet.load(saved, device="cpu")
    HashMap.from_arrays(OLD, OLD, device="cpu").save(tmp_path / "map")
    refused(tmp_path / "map", "holds no Index: it holds a 'HashMap'")


def test_paths_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Index.load(tmp_path / "nothing")
    with pytest.raises(OSError):
        Index.load(tmp_path)
    for path in (tmp_path, tmp_path / "no folder" / "index"):
        with pytest.raises(PathError):
            Index(OLD).save(path)


def test_a_save_that_is_refused_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()
    overlapping = np.dtype({"names": ["all", "low"], "formats": ["u4", "u2"], "offsets": [0, 0]})
    with pytest.raises(DtypeError):
        Index(np.arange(3, dtype="u4").view(overlapping)).save(saved)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MemoryError):
        Index(OLD).save(saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]  # noqa: PTH208


def test_a_save_replaces_the_old_file(saved: Path) -> None:
    Index(OLD).save(str(saved))
    assert Index.load(str(saved)).keys().tolist() == OLD.tolist()


KILLED = """
import sys, numpy as np, warphash
index = warphash.Index(np.arange(1_000_000))
print("ready", flush=True)
while True:
    index.save(sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("delay_s", [0.005, 0.02])
def test_killed_save_leaves_a_whole_file(saved: Path, delay_s: float) -> None:
    save_and_kill(KILLED, saved, delay_s)
    assert len(Index.load(saved)) in (3, 1_000_000)


# ---- files made by hand
TEXT, INT32, FLAGS = ({"dtype": dtype, "shape": []} for dtype in ("str", "<i4", "|b1"))


def header(count: Any, *columns: Any) -> dict[str, Any]:
    return {"kind": "Index", "count": count, "columns": list(columns)}


@pytest.mark.parametrize(
    ("head", "rows", "says"),
    [
        ([1], b"", "JSON object"),
        ({**header(0, INT32), "extra": 1}, b"", "extra"),
        ({"kind": "Index"}, b"", "count"),
        (header(-1, INT32), b"", "count"),
        (header(True, INT32), b"\0" * 4, "count"),
        (header(1 << 40, INT32), b"", "count"),
        (header(1), b"", "columns"),
        (header(1, INT32, INT32), b"\0" * 8, "columns"),
        (header(1, INT32, FLAGS, FLAGS), b"\0" * 6, "columns"),
        (header(2, INT32), b"\0" * 4, "2 rows of int32"),
        (header(1, INT32), b"\0" * 5, "1 bytes follow"),
        (header(1, {"dtype": "|O8", "shape": []}), b"\0" * 8, "no NumPy type"),
        (header(1, {"dtype": "|S129", "shape": []}), b"\0" * 129, "128 bytes"),
        (header(1, {"dtype": "<i8", "shape": [17]}), b"\0" * 136, "128 bytes"),
        (header(1, TEXT), (2).to_bytes(8, "little") + b"\xc3\x28", ""),
        (header(1, TEXT), (9).to_bytes(8, "little") + b"a", "length"),
        (b"\xff", b"", ""),
        (b'{"kind": NaN}', b"", "no JSON"),
        (b"[" * 100_000, b"", ""),
    ],
)
def test_a_right_digest_and_wrong_content(tmp_path: Path, head: Any, rows: bytes, says: str) -> None:
    path = tmp_path / "index"
    path.write_bytes(archive(head, rows))
    refused(path, says)


def test_flags_of_any_byte_and_keys_at_any_address(tmp_path: Path) -> None:
    path = tmp_path / "index"
    for spaces in range(8):
        path.write_bytes(
            archive(
                str(header(3, INT32, FLAGS)).replace("'", '"').encode() + b" " * spaces,
                b"".join((OLD.astype("<i4").tobytes(), bytes([1, 0, 255]))),
            )
        )
        assert Index.load(path).keys().tolist() == [3, None, 7]


@pytest.mark.filterwarnings("ignore:invalid value")  # of a NaN that signals
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_of_a_header_or_of_rows(tmp_path: Path, data: st.DataObject) -> None:
    """An index whose keys can be read, or `CorruptFile`."""
    path = tmp_path / "index"
    Index(data.draw(st.sampled_from([OLD, ["a", None, "bc"], np.array([0.5, np.nan])]))).save(path)
    head, rows = parts_of(path)
    place = data.draw(st.sampled_from(["count", "columns", "dtype", "shape", "rows"]))
    junk = st.one_of(st.none(), st.integers(-1, 9), st.text(max_size=4), st.lists(st.integers(-1, 3), max_size=2))
    if place == "rows":
        at = data.draw(st.integers(0, len(rows)))
        rows = rows[:at] + data.draw(st.binary(max_size=3)) + rows[at + data.draw(st.integers(0, 3)) :]
    elif place in head:
        head[place] = data.draw(junk)
    else:
        known = st.sampled_from(["<f4", ">i8", "<M8[s]", "bytes", "str", "<U2", "|V3", [["a", "<i2"], ["b", "<f2"]]])
        head["columns"][0][place] = data.draw(st.one_of(junk, known))
    path.write_bytes(archive(head, rows))
    try:
        index = Index.load(path)
    except CorruptFile:
        return
    assert len(index.keys()) == len(index) and items_of(index.contains(index.keys())) == [True] * len(index)
