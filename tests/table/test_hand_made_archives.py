"""Saved tables with a right digest and wrong content: either a table that passes its check, or `CorruptFile`.

Each body begins with a file that a table saved, so all but the altered part is as it should be.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.archives import archive, parts_of
from support.cases import design_names, multi_designs
from warphash import CorruptFile, DtypeError, EngineUnavailable, HashMap, HashSet, MultiMap, TableFull
from warphash.designs import registry
from warphash.runtime import cpu

KEYS = np.array([3, 5, 7, 11, 13], np.uint32)
KINDS: dict[str, Callable[..., Any]] = {
    "HashMap": lambda **options: HashMap.from_arrays(KEYS, KEYS, device="cpu", seed=1, **options),
    "HashSet": lambda **options: HashSet.from_arrays(KEYS, device="cpu", seed=1, **options),
    "MultiMap": lambda **options: MultiMap.from_arrays(KEYS, KEYS, device="cpu", seed=1, **options),
}
CLASSES: dict[str, Any] = {"HashMap": HashMap, "HashSet": HashSet, "MultiMap": MultiMap}
ABSENT = object()


class Hand:
    """A saved table that can be altered."""

    def __init__(self, folder: Path, kind: str = "HashMap", **options: Any) -> None:
        self.path, self.kind = folder / "table", CLASSES[kind]
        KINDS[kind](**options).save(self.path)
        self.header, self.rows = parts_of(self.path)

    def altered(self, *place: Any, to: Any) -> dict[str, Any]:
        """The header with one field, named by its path, replaced or taken out."""
        header = copy.deepcopy(self.header)
        *outer, last = place
        where = header
        for step in outer:
            where = where[step]
        if to is ABSENT:
            del where[last]
        else:
            where[last] = to
        return header

    def load(self, header: Any, rows: bytes | None = None, length: int | None = None) -> Any:
        self.path.write_bytes(archive(header, self.rows if rows is None else rows, length))
        return self.kind.load(self.path, device="cpu")

    def refuses(self, header: Any, rows: bytes | None = None, length: int | None = None, says: str = "") -> None:
        with pytest.raises(CorruptFile, match=says or None) as refused:
            self.load(header, rows, length)
        assert str(self.path) in str(refused.value) and "\n" not in str(refused.value)


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    return Hand(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unaltered_file_is_loaded(tmp_path: Path, kind: str) -> None:
    for design in design_names() if kind != "MultiMap" else multi_designs():
        hand = Hand(tmp_path, kind, design=design)
        table = hand.load(hand.header)
        table.check()
        assert (len(table), table.design, table.seed) == (5, design, 1)


NEWER = ("nulls", "floats", "load_bounds", "max_size", "evict", "score", "memory", "names")


@pytest.mark.parametrize("field", NEWER)
def test_a_file_without_a_newer_field_is_loaded(hand: Hand, field: str) -> None:
    assert len(hand.load(hand.altered(field, to=ABSENT))) == 5


NUMBERS = [-1, "5", 5.0, True, None, [5], {}, 2**60, 2**63, 10**30]
WRONG: dict[str, list[Any]] = {
    "kind": ["HashSet", "MultiMap", "Table", 1, None, ["HashMap"]],
    "capacity": NUMBERS,
    "design": ["nope", "auto", "", "BCHT", 1, None, ["cuckoo"], {"cuckoo": 1}],
    "parameters": [None, [], "x", {"nope": 1}, {"capacity": 5}, {"design": "cuckoo"}, {"slots_per_bucket": 7}],
    "load_factor": [0, 0.0, -0.5, 1.5, "0.8", True, None, [0.8], 1e-300, 10**400],
    "load_bounds": [[], [0.1], ["0.1", "0.5"], [0.5, 0.6], [True, 1], [0.1, 0.5, 0.9], 0.5, "0.1", {"0": 1}, [-1, 0.5]],
    "seed": [-1, "5", 5.5, True, None, [5], 2**63, 10**30],
    "hash": ["nope", "", 1, None, ["mixer"]],
    "on_full": ["nope", "", 1, None, ["grow"]],
    "attempts": [0, -1, "8", 8.5, True, None, 2**63],
    "count_probes": [0, 1, "false", None, []],
    "nulls": ["drop", "key", "nope", "", 1, True, ["raise"]],
    "floats": ["bits", "value", "nope", "", 1, True, ["bits"]],
    "max_size": NUMBERS[:4] + NUMBERS[5:],
    "evict": ["lru", "score", "nope", "", 1, True, ["lru"]],
    "score": ["float64", "nope", "", 1, True, ["float64"]],
    "memory": ["host", "nope", "", "/tmp/table", 1, True, ["device"]],
    "names": [[], [None], ["a", None], [["a"], None], [[], None], [None, None, None], "ab", 1, {}, [["a", "b"], None]],
    "count": [*NUMBERS, 4, 6, 0],
    "columns": [[], None, {}, "u4", [1], [[]], [{}], [{"dtype": "<u4"}]],
}


@pytest.mark.parametrize("field", WRONG)
def test_a_field_of_wrong_type_or_out_of_range(hand: Hand, field: str) -> None:
    assert WRONG.keys() == hand.header.keys(), "every field is altered here"
    for wrong in WRONG[field]:
        hand.refuses(hand.altered(field, to=wrong))


def test_a_field_that_is_missing_or_one_too_many(hand: Hand) -> None:
    for field in hand.header.keys() - set(NEWER):
        hand.refuses(hand.altered(field, to=ABSENT), says=field)
    hand.refuses({**hand.header, "extra": 1}, says="extra")
    hand.refuses(hand.altered("columns", 0, "shape", to=ABSENT), says="shape")
    hand.refuses(hand.altered("columns", 0, "extra", to=1), says="extra")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_missing_or_too_many(tmp_path: Path, kind: str) -> None:
    hand = Hand(tmp_path, kind)
    column = hand.header["columns"][0]
    for number in {0, 1, 2, 3} - {len(hand.header["columns"])}:
        rows = hand.rows[: len(KEYS.tobytes())] * number
        hand.refuses({**hand.header, "columns": [column] * number}, rows, says=f"a {kind} has . columns, got {number}")


DTYPES = [
    *(
        "O",
        "|O",
        "|O8",
        "<f4",
        "<f8",
        "<c8",
        "<f2",
        "nonsense",
        "",
        "u4",
        "uint32",
        "=u4",
        "<u3",
        "<u5",
        "<i16",
        "<u4 ",
    ),
    *(
        "|S0",
        "|V0",
        "|V129",
        "<U33",
        pytest.param("|S2147483647", marks=pytest.mark.slow),  # which takes 2 GB of zeros
        "|S99999999999",
        "<M8[foo]",
        "<u4[ns]",
        "<u4,<u4",
        "4u4",
        "(2,)u4",
    ),
    *(",", "(", "__import__('os')", "<u99999999999999999999", "|u4", "<V4", "<S4", "\u0000", "<u4\n"),
    *(1, None, True, {}, [], ["a", "<u4"], [["a"]], [["a", "O"]], [[1, "<u4"]]),
    *(
        [["a", "<u2"], ["a", "<u2"]],
        [["a", "<u4", [-1]]],
        [["a", "<u4", 3]],
        [["a", "<u4", [0]]],
        [["a", "<u4", ["1"]]],
    ),
    *([["a", "<u4", [2**40]]], [["a", "<u4", [1.5]]], [["a", "V2147483647"], ["b", "V2147483647"]], [["a", "|O"]]),
    *([["a", "<u1"], ["", "|V3"]], [["a", [["b", "|O"]]]], [["a", [["b", []]]]], [{"a": "<u4"}], [["a", "<u4", []]]),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_a_type_that_no_table_takes(hand: Hand, dtype: Any) -> None:
    hand.refuses(hand.altered("columns", 0, "dtype", to=dtype))
    if dtype not in ("<f4", "<f8", "<c8", "<f2", "|V129", "<U33"):  # of these widths, values with none of a key's rules
        hand.refuses(hand.altered("columns", 1, "dtype", to=dtype))


@pytest.mark.parametrize(
    "shape",
    [None, 1, "1", {}, [0], [-1], [1.0], [True], ["1"], [None], [2], [2**40], [2**63], [10**30], [1] * 65, [33]],
)
def test_a_shape_of_rows_that_are_not_there(hand: Hand, shape: Any) -> None:
    for column in (0, 1):
        hand.refuses(hand.altered("columns", column, "shape", to=shape))
    empty = {**hand.altered("columns", 0, "shape", to=shape), "count": 0}
    if shape not in ([2],):  # which a table without keys may have
        hand.refuses(empty, b"")


def test_rows_that_are_missing_or_too_many(hand: Hand) -> None:
    for rows in (b"", hand.rows[:-1], hand.rows + b"\0", hand.rows * 2):
        hand.refuses(hand.header, rows)


@pytest.mark.parametrize(
    "header",
    [b"", b"{", b"\xff", b"null", b"[]", b"1", b'"x"', b"{}", b"[" * 100_000, b"9" * 10_000, b"\xef\xbb\xbf{}"],
)
def test_a_header_that_is_none(hand: Hand, header: bytes) -> None:
    hand.refuses(header)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("field", ["load_factor", "capacity", "count"])
def test_a_header_with_numbers_that_are_none(hand: Hand, field: str, constant: str) -> None:
    text = json.dumps(hand.altered(field, to="HERE")).replace('"HERE"', constant)
    hand.refuses(text.encode())


def test_a_header_that_is_longer_or_shorter_than_it_says(hand: Hand) -> None:
    encoded = len(json.dumps(hand.header))
    for length in (0, 1, encoded - 1, encoded + 1, encoded + len(hand.rows) + 1, 2**31, 2**63, 2**64 - 1):
        hand.refuses(hand.header, length=length)


@pytest.mark.parametrize("kind", ["HashMap", "HashSet"])
@pytest.mark.parametrize("design", design_names())
def test_keys_that_repeat(tmp_path: Path, kind: str, design: str) -> None:
    hand = Hand(tmp_path, kind, design=design)
    twice = KEYS.copy()
    twice[4] = twice[0]
    hand.refuses(hand.header, twice.tobytes() + hand.rows[KEYS.nbytes :], says="repeats 1 of its 5 keys")


def test_keys_of_a_multimap_repeat(tmp_path: Path) -> None:
    hand = Hand(tmp_path, "MultiMap")
    table = hand.load(hand.header, bytes(KEYS.nbytes) + hand.rows[KEYS.nbytes :])
    assert table.count([0])[0] == 5
    table.check()


def test_a_multimap_of_wide_rows_or_of_two_tiers(tmp_path: Path) -> None:
    hand = Hand(tmp_path, "MultiMap", design="slab")
    wide = np.arange(10, dtype="<u8").tobytes()
    hand.refuses(hand.altered("columns", 0, "shape", to=[4]), wide + hand.rows[KEYS.nbytes :], says="at most 8 bytes")
    hand.refuses(hand.altered("columns", 1, "shape", to=[4]), hand.rows[KEYS.nbytes :] + wide, says="at most 8 bytes")
    hand.refuses({**hand.header, "design": "tiered", "parameters": {}}, says="'tiered'")
    with pytest.raises(DtypeError, match="at most 8 bytes"):
        MultiMap("u4", "V9", design="slab", device="cpu")
    groups = {**hand.header, "design": "cuckoo", "parameters": {}, "load_factor": 0.5}
    assert hand.load(groups, hand.rows).design == "cuckoo"


@pytest.mark.parametrize("design", design_names())
@pytest.mark.parametrize("parameters", [{}, {"buckets": 7}])
def test_a_capacity_that_no_table_has(tmp_path: Path, design: str, parameters: dict[str, Any]) -> None:
    taken = {p.name for p in registry.get(design).parameters}
    hand = Hand(tmp_path, design=design, **{name: of for name, of in parameters.items() if name in taken})
    for capacity in (2**60, 2**62, 2**38):
        hand.refuses(hand.altered("capacity", to=capacity), says="no table has a capacity of")
        hand.refuses({**hand.altered("load_factor", to=1e-12), "capacity": 1024}, says="no table has a capacity of")


# ---- what is right is loaded
def test_a_table_that_grows_is_loaded_where_there_is_no_memory_for_its_capacity(
    monkeypatch: pytest.MonkeyPatch, hand: Hand
) -> None:
    allocate = cpu.CpuEngine.allocate

    def little(engine: cpu.CpuEngine, nbytes: int, stream: Any = None) -> Any:
        if nbytes > 1 << 20:
            raise MemoryError
        return allocate(engine, nbytes, stream)

    monkeypatch.setattr(cpu.CpuEngine, "allocate", little)
    table = hand.load(hand.altered("capacity", to=1 << 24))
    table.check()
    assert len(table) == 5 and table.capacity < 100
    with pytest.raises(MemoryError):
        hand.load({**hand.altered("capacity", to=1 << 24), "on_full": "raise"})


def test_what_may_not_grow_is_loaded_though_it_was_filled_to_its_last_slots(tmp_path: Path) -> None:
    for design in design_names():
        for seed in range(4):
            table = HashMap("u4", "u4", capacity=300, design=design, device="cpu", on_full="raise", seed=seed)
            keys = np.random.default_rng(seed).permutation(np.arange(4000, dtype=np.uint32))
            step, at = 32, 0
            while step and at < 2000:
                try:
                    table.insert(keys[at : at + step], keys[at : at + step])
                    at += step
                except TableFull:
                    step //= 2
            table.save(tmp_path / "full")
            loaded = HashMap.load(tmp_path / "full", device="cpu")
            loaded.check()
            assert len(loaded) == len(table) and (loaded[keys[:at]] == keys[:at]).all()


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype([("a", "i1"), ("b", "i8")], align=True),
        np.dtype([("a", [("b", "<i2"), ("c", "S3")]), ("d", "<f8", (2, 2))]),
        np.dtype([(("title", "a"), "<i4"), ("b", "?")]),
        np.dtype("M8[25s]"),
        np.dtype("U3"),
        np.dtype("V7"),
        np.dtype("c16"),
    ],
    ids=str,
)
def test_every_type_of_values_comes_back(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    values = np.zeros(5, dtype)
    raw = values.view(np.uint8).reshape(5, -1)
    raw[:, 0] = range(5)
    HashMap.from_arrays(KEYS, values, device="cpu").save(tmp_path / "table")
    table = HashMap.load(tmp_path / "table", device="cpu")
    assert table.value_dtype == dtype
    assert table.find(KEYS)[0].tobytes() == values.tobytes()


def test_rows_of_the_other_byte_order_are_loaded(hand: Hand) -> None:
    swapped = np.frombuffer(hand.rows, "<u4").astype(">u4").tobytes()
    for column in (0, 1):
        hand.header["columns"][column]["dtype"] = ">u4"
    table = hand.load(hand.header, swapped)
    table.check()
    assert (table[KEYS] == KEYS).all()


def test_a_device_that_is_none_is_no_fault_of_the_file(hand: Hand) -> None:
    with pytest.raises((EngineUnavailable, ValueError)) as refused:
        HashMap.load(hand.path, device="tpu")
    assert not isinstance(refused.value, CorruptFile)


# ---- anything
def paths_of(header: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a header."""
    for name in header if isinstance(header, dict) else range(len(header)) if isinstance(header, list) else ():
        yield (*at, name)
        yield from paths_of(header[name], (*at, name))


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 20)
    | st.sampled_from([2**40, 2**60, 2**63, -(2**63), 10**30])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "u4", "<u4", "<f8", "|S3", "O", "grow", "raise", "universal", "cuckoo", "slab", "HashSet"])
    | st.text(max_size=3)
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "HashMap")) for kind in KINDS])
@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@pytest.mark.slow
def test_any_header_is_a_table_or_corrupt(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    hand = Hand(tmp_path, kind)
    header = hand.header
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(list(paths_of(hand.header))))
        header = hand.altered(*place, to=data.draw(ANYTHING | st.just(ABSENT)))
        hand.header = header
    try:
        table = hand.load(header)
    except CorruptFile as error:
        assert "\n" not in str(error)
    else:
        table.check()
        assert len(table) == header["count"]


class TestStrings:
    """Files of keys of type str: their lengths, then their bytes."""

    @pytest.fixture
    def strings(self, tmp_path: Path) -> Hand:
        table = HashSet("str", seed=1)
        table.insert(["a", "é", ""])
        table.save(tmp_path / "table")
        made = Hand.__new__(Hand)
        made.path, made.kind = tmp_path / "table", HashSet
        made.header, made.rows = parts_of(made.path)
        return made

    def file(self, lengths: list[int], data: bytes) -> bytes:
        return np.array(lengths, "<i8").tobytes() + data

    def test_an_unaltered_file_is_loaded(self, strings: Hand) -> None:
        table = strings.load(strings.header)
        table.check()
        assert set(table) == {"a", "é", ""}

    @pytest.mark.parametrize(
        ("lengths", "data"),
        [
            ([1, 2], b"a\xc3\xa9"),  # one length too few
            ([1, 2, 9], b"a\xc3\xa9"),
            ([1, 2, -2], b"a\xc3\xa9"),
            ([1, 2**62, 2**62], b"a\xc3\xa9"),
            ([1, 2, 0], b"a\xc3\xa9more"),
            ([1, 2, 0], b"a\xc3\x28"),  # no UTF-8
            ([2, 1, 0], b"a\xc3\xa9"),  # cut inside a character
            ([1, 1, 0], b"aa"),  # a key twice
            ([1, 2, -1], b"a\xc3\xa9"),  # a null in a table that refuses nulls
        ],
        ids=str,
    )
    def test_wrong_strings(self, strings: Hand, lengths: list[int], data: bytes) -> None:
        strings.refuses(strings.header, self.file(lengths, data))

    def test_wrong_descriptions(self, strings: Hand) -> None:
        for wrong in ({"dtype": "str"}, {"dtype": "str", "shape": [1]}, {"dtype": "text", "shape": []}):
            strings.refuses(strings.altered("columns", 0, to=wrong))
        strings.refuses(strings.altered("max_size", to=5) | {"evict": "lru"})  # without ranks
        assert len(strings.load(strings.altered("max_size", to=5) | {"evict": "lfu"})) == 3
