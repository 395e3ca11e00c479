"""Tables whose keys are strings of any length: every verb, in every design, against a dict."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
import threading
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import warphash
from support.cases import design_names
from support.faults import faulty_call
from support.inside import storage_of
from warphash import (
    CorruptFile,
    DeviceError,
    DtypeError,
    HashMap,
    HashSet,
    MultiMap,
    Operation,
    ParameterError,
    UnsupportedVerb,
)
from warphash.designs import registry
from warphash.storage.strings import held_strings, string_table

KEYS = ["", "a", "a\0", "\0", "é", "x" * 300, *(f"key {n}" for n in range(50))]


def map_of(keys: list[str], **options: Any) -> HashMap:
    table = HashMap("str", "int64", **options)
    table.insert(keys, np.arange(len(keys)))
    return table


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings that are no keys are forgotten early, and room is made for few strings at a time."""
    monkeypatch.setattr(held_strings, "FEWEST_TO_COLLECT", 40)
    monkeypatch.setattr(string_table, "PIECE", 64)


@pytest.mark.parametrize("design", design_names())
def test_verbs_agree_with_a_dict(design: str) -> None:
    draw, model = random.Random(4), dict[str, int]()
    table = HashMap("str", "int64", design=design, capacity=16, seed=2)
    has = registry.get(design).capabilities
    for _ in range(30):
        keys = [f"{'x' * draw.randrange(30)}{draw.randrange(150)}" for _ in range(40)]
        values = np.array([draw.randrange(1000) for _ in keys])
        new = len(set(keys) - model.keys())
        match draw.choice(["insert", "assign", "upsert", "first", "last", "find_or_insert", "erase", "pop"]):
            case "insert":
                added = table.insert(keys, values)
                assert added.sum() == new
                model |= {key: int(value) for key, value, is_new in zip(keys, values, added, strict=True) if is_new}
            case "assign":
                values = np.array([len(key) for key in keys])
                assert table.assign(keys, values).sum() == new
                model |= {key: len(key) for key in keys}
            case "upsert":
                assert table.upsert(keys, values, "add").sum() == new
                for key, value in zip(keys, values.tolist(), strict=True):
                    model[key] = model.get(key, 0) + value
            case "first" | "last" as op:
                assert table.upsert(keys, values, op).sum() == new
                pairs = list(zip(keys, values.tolist(), strict=True))
                model = dict(reversed(pairs)) | model if op == "first" else model | dict(pairs)
            case "find_or_insert":
                held, inserted = table.find_or_insert(keys, values)
                assert inserted.sum() == new
                model |= {key: int(value) for key, value, is_new in zip(keys, values, inserted, strict=True) if is_new}
                assert held.tolist() == [model[key] for key in keys]
            case "erase" if "erase" in has:
                assert table.erase(keys).sum() == len(set(keys) & model.keys())
                model = {key: value for key, value in model.items() if key not in keys}
            case "pop" if "erase" in has:
                gone = list(model)[:20]
                assert table.pop(gone).tolist() == [model.pop(key) for key in gone]
        found, there = table.find(keys, default=-1)
        assert found.tolist() == [model.get(key, -1) for key in keys]
        assert there.tolist() == table.contains(keys).tolist() == [key in model for key in keys]
    assert dict(table.items()) == model and len(table) == len(model)
    table.check()


def test_strings_that_are_no_keys_are_forgotten() -> None:
    table = HashSet("str")
    for turn in range(20):
        keys = [f"{turn} {n}" for n in range(100)]
        table.insert(keys)
        table.erase(keys[:-2])
    assert set(table) == {f"{turn} {n}" for turn in range(20) for n in (98, 99)}
    assert storage_of(table).strings.used < 400
    table.shrink()
    assert storage_of(table).strings.used == len(table) == 40
    table.check()
    table.clear()
    assert len(table) == 0 and list(table) == [] and not table.contains(["0 98"]).any()


def test_clear_needs_no_memory() -> None:
    table = map_of(KEYS)
    came, done = faulty_call("refusal", 1, table.clear)
    assert came and done and len(table) == 0 and not table.contains(KEYS).any()
    table.insert(KEYS, np.arange(len(KEYS)))
    assert dict(table.items()) == dict(zip(KEYS, range(len(KEYS)), strict=True))
    table.check()


def test_a_batch_that_does_not_fit_names_its_keys() -> None:
    table = map_of(KEYS, design="linear_probing", capacity=len(KEYS), load_factor=1.0, on_full="raise")
    before = dict(table.items())
    with pytest.raises(warphash.TableFull) as caught:
        table.insert([f"more {n}" for n in range(100)], np.arange(100))
    assert set(caught.value.keys.tolist()) <= {f"more {n}" for n in range(100)} and len(caught.value.keys)
    assert dict(table.items()) == before
    table.check()


class TestMultiMap:
    """Strings with several values, against a dict of lists."""

    @staticmethod
    def filled(**options: Any) -> tuple[MultiMap, dict[str, list[int]]]:
        draw, model, table = random.Random(3), dict[str, list[int]](), MultiMap("str", "int64", seed=2, **options)
        for number in range(60):
            keys = draw.sample(KEYS, 20)  # values of one batch come in any order, so each key comes once
            values = [draw.randrange(1000) for _ in keys]
            table.insert(keys, np.array(values))
            for key, value in zip(keys, values, strict=True):
                model.setdefault(key, []).append(value)
            if number % 7 == 6:
                gone = draw.sample(KEYS, 9)
                assert table.erase_all(gone).tolist() == [len(model.pop(key, ())) for key in gone]
                some = draw.sample(KEYS, 9)
                assert table.erase(some).tolist() == [bool(model.get(key, [])[:1]) for key in some]
                for key in some:
                    model[key] = model.get(key, [])[1:]
        return table, {key: values for key, values in model.items() if values}

    @staticmethod
    def agree(table: MultiMap, model: dict[str, list[int]]) -> None:
        names = [*KEYS, "absent"]
        values, offsets = table.find_all(names)
        held = [values[at:end].tolist() for at, end in itertools.pairwise(offsets.tolist())]
        assert held == [model.get(key, []) for key in names]
        assert table.count(names).tolist() == [*map(len, held)]
        first, found = table.find(names, default=-1)
        assert first.tolist() == [model.get(key, [-1])[0] for key in names]
        assert found.tolist() == table.contains(names).tolist() == [key in model for key in names]
        assert len(table) == sum(map(len, model.values())) and set(table.keys(like="numpy").tolist()) == set(model)
        table.check()

    @pytest.mark.parametrize("design", ["auto", "slab"])
    def test_verbs(self, design: str) -> None:
        table, model = self.filled(design=design)
        self.agree(table, model)
        assert table["a"].tolist() == model["a"] and ("a", model["a"][0]) in table.items()
        with pytest.raises(KeyError, match="nowhere"):
            table["nowhere"]
        table.shrink()
        self.agree(table, model)

    def test_a_mixed_batch_of_lists(self) -> None:
        table, model = self.filled(design="slab")
        ops = [Operation.INSERT, Operation.FIND, Operation.ERASE]
        found, done = table.execute(ops, ["new", "a", "nowhere"], [3, 0, 0])
        assert found.tolist() == [0, model["a"][0], 0] and done.tolist() == [True, True, False]
        table.erase_all(KEYS)
        table.shrink()
        assert storage_of(table).strings.used == 1 and list(table.items()) == [("new", 3)]

    def test_copies_keep_the_order_of_values(self, tmp_path: Path) -> None:
        table, model = self.filled()
        table.save(tmp_path / "table")
        copied = (copy.deepcopy(table), pickle.loads(pickle.dumps(table)), MultiMap.load(tmp_path / "table"))
        for twin in (table.copy(), table.__replace__(load_factor=0.4), *copied):
            self.agree(twin, model)
        table.shrink()
        self.agree(table, model)

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_a_column(self, library: str) -> None:
        module = pytest.importorskip(library)
        column = getattr(module, "array" if library == "pyarrow" else "Series")(["b", "a", None, "b"])
        for nulls, counts in (("drop", [2, 1, 0, 2]), ("key", [2, 1, 1, 2])):
            table = MultiMap.from_arrays(column, np.arange(4), nulls=nulls)
            assert np.asarray(table.count(column)).tolist() == counts
            values, offsets = table.find_all(column)
            assert len(values) == sum(counts) and np.diff(np.asarray(offsets)).tolist() == counts

    def test_a_rule_that_changes(self) -> None:
        """A copy that drops nulls, of a table whose nulls are a key."""
        table = MultiMap("str", "int64", nulls="key")
        for number in range(3):
            table.insert(["b", None, "a"], np.arange(3) + 10 * number)
        twin = table.__replace__(nulls="drop")
        assert twin["a"].tolist() == [2, 12, 22] and twin["b"].tolist() == [0, 10, 20] and len(twin) == 6

    def test_values_of_a_fixed_width_and_nulls(self) -> None:
        table = MultiMap("int64", "int64", nulls="key")
        table.insert([1, None, 1], np.arange(3))
        assert table.count([1, None, 2]).tolist() == [2, 1, 0]

    def test_a_closed_table(self) -> None:
        table, _ = self.filled()
        table.close()
        with pytest.raises(warphash.WarphashError, match="closed"):
            table.count(KEYS)


class TestSetsWithoutAnswers:
    """If nobody asks which keys are new, a set of strings inserts the strings that get a number now."""

    def test_as_a_set(self) -> None:
        draw, model, table = random.Random(7), set[str](), HashSet("str", capacity=4, seed=2, nulls="drop")
        for turn in range(30):
            keys = [f"{'x' * draw.randrange(60)}{draw.randrange(200)}" for _ in range(40)]
            table.update(keys)
            model |= set(keys)
            if turn % 3 == 0:  # their strings stay, and are no keys
                gone = draw.sample(sorted(model), 5)
                assert table.erase(gone).all()
                model -= set(gone)
            table.add(keys[0])
            model.add(keys[0])
            assert set(table) == model and len(table) == len(model)
        table.check()
        assert set(HashSet.from_arrays([None, "b", None, "a", "b"], nulls="drop")) == {"a", "b"}

    def test_a_batch_that_does_not_fit_names_its_keys(self) -> None:
        options: dict[str, Any] = {"design": "linear_probing", "load_factor": 1.0, "on_full": "raise"}
        table = HashSet("str", capacity=len(KEYS), **options)
        table.update(KEYS)
        more = [f"more {n % 100}" for n in range(200)]
        with pytest.raises(warphash.TableFull) as caught:
            table.update(more)
        assert set(caught.value.keys.tolist()) <= set(more) and len(caught.value.keys)
        assert set(table) == set(KEYS)
        table.check()

    @pytest.mark.parametrize("kind", ["interrupt", "refusal"])
    def test_a_fault_changes_nothing_or_all_keys(self, kind: str) -> None:
        """A fault leaves whole keys, and the same call does the rest."""
        batch = [f"{n % 70} {'x' * (n % 50)}" for n in range(150)]
        for number in range(1, 10_000, 3 if kind == "interrupt" else 1):
            table = HashSet("str", capacity=16, seed=3)
            table.update(KEYS)
            table.erase(KEYS[:1] if number % 2 else [])
            before, every = set(table), set(table) | set(batch)
            faulty, done = faulty_call(kind, number, partial(table.update, batch))
            if not faulty:
                break
            held = set(table)
            assert before <= held <= every and len(table) == len(held) and (held == every or not done), number
            if kind == "refusal":
                assert held in (before, every)
            table.check()
            table.update(batch)
            assert set(table) == every
            table.check()
        assert number > 5


class TestDictManners:
    def test_one_key(self) -> None:
        table = map_of(KEYS)
        assert table["é"] == KEYS.index("é") and table.get("no") is None and table.get("no", 5) == 5
        assert "a" in table and "no" not in table and 5 not in table and b"a" not in table and ("a",) not in table
        table["new"] = 9
        assert table.pop("new") == 9 and table.setdefault("new", 3) == 3
        del table["new"]
        assert "new" not in table and len(table) == len(KEYS)

    def test_a_missing_key_is_named(self) -> None:
        table = map_of(KEYS)
        with pytest.raises(KeyError, match=r"^'no, and 1 more keys that are not there'$"):
            table[["a", "no", "neither"]]
        with pytest.raises(KeyError, match=r"^'no'$"):
            del table["no"]
        with pytest.raises(KeyError, match="no"):
            table.pop(["a", "no"])

    def test_updates(self) -> None:
        table, other = map_of(KEYS), map_of(["q", "a"])
        table.update({"dict": 7})
        table |= other
        assert table["dict"] == 7 and table["q"] == 0 and table["a"] == 1
        assert dict((other | {"z": 5}).items()) == {"q": 0, "a": 1, "z": 5}
        assert map_of(["a", "b"]) == map_of(["a", "b"], design="slab") != map_of(["b", "a"])

    def test_order_of_keys_and_values(self) -> None:
        table = map_of(KEYS)
        assert dict(zip(table.keys(), table.values().tolist(), strict=True)) == dict(table.items())
        assert dict(table.items()) == {key: number for number, key in enumerate(KEYS)}

    def test_what_it_says(self) -> None:
        table = map_of(["a"])
        assert repr(table).startswith("<HashMap key=str, value=int64: 1 keys in")
        assert table.key_dtype == np.dtype("str") and HashSet("bytes").key_dtype == np.dtype("bytes")
        assert table.stats().nbytes == table.nbytes and "<td>str</td>" in table._repr_html_()


class TestSetAlgebra:
    def test_operators(self) -> None:
        ours, theirs = HashSet("str"), HashSet("str", design="slab")
        left, right = set(KEYS[:30]), set(KEYS[20:40])
        ours.insert(list(left)), theirs.insert(list(right))
        for made, expected in (
            (ours | theirs, left | right),
            (ours & theirs, left & right),
            (ours - theirs, left - right),
            (ours ^ theirs, left ^ right),
            (ours.union(["new"]), left | {"new"}),
        ):
            assert set(made) == expected
            made.check()
        assert not ours <= theirs and ours & theirs <= ours and not ours.isdisjoint(theirs)
        ours |= theirs
        ours -= theirs
        assert set(ours) == left - right
        ours.add("one"), ours.discard("one"), ours.discard("one")
        with pytest.raises(KeyError):
            ours.remove("one")


class TestCopies:
    @pytest.fixture
    def table(self) -> HashMap:
        made = map_of(KEYS)
        made.erase(KEYS[3:9])
        return made

    def test_copies_share_nothing(self, table: HashMap) -> None:
        for twin in (table.copy(), copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
            assert twin == table and twin.key_dtype == table.key_dtype
            twin.insert(["more"], [1])
            twin.erase(["a"])
            twin.check()
            assert "more" not in table and "a" in table

    def test_another_design(self, table: HashMap) -> None:
        made = table.__replace__(design="stadium")
        assert made == table and made.design == "stadium"

    @pytest.mark.parametrize("kind", ["str", "bytes"])
    def test_files(self, tmp_path: Path, kind: str) -> None:
        keys = KEYS if kind == "str" else [key.encode() + b"\xff" for key in KEYS]
        table = HashSet(kind)
        table.insert(keys)
        table.save(tmp_path / "set")
        loaded = HashSet.load(tmp_path / "set")
        assert loaded == table and set(loaded) == set(keys)
        empty = HashSet(kind)
        empty.save(tmp_path / "empty")
        assert len(HashSet.load(tmp_path / "empty")) == 0

    def test_a_file_of_another_class(self, tmp_path: Path, table: HashMap) -> None:
        table.save(tmp_path / "map")
        assert HashMap.load(tmp_path / "map") == table
        with pytest.raises(CorruptFile):
            HashSet.load(tmp_path / "map")

    def test_keys_stay_when_the_table_goes(self, table: HashMap) -> None:
        keys, arrow = table.keys(), table.keys(like="warphash")
        expected = set(table)
        table.close()
        assert set(keys) == set(arrow) == expected


class TestForms:
    @pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
    def test_keys_come_back_as_they_were_given(self, library: str) -> None:
        module = pytest.importorskip(library)
        if library == "numpy":
            column = module.array(["b", "a", "b"], module.dtypes.StringDType())
        else:
            column = {"pandas": "Series", "polars": "Series", "pyarrow": "array"}[library]
            column = getattr(module, column)(["b", "a", "b"])
        table = HashSet.from_arrays(column)
        assert table.key_dtype == np.dtype("str") and table.device == "cpu"
        assert type(table.keys()).__module__.split(".")[0] == library and sorted(table) == ["a", "b"]
        assert type(table.keys(like=column)) is type(table.keys(like=library)) is type(table.keys())
        assert np.asarray(table.contains(column)).tolist() == [True, True, True]
        pairs = HashMap.from_arrays(column, np.arange(3))
        assert np.asarray(pairs[column]).tolist()[:2] == [pairs["b"], 1]

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_categories_are_their_strings(self, library: str) -> None:
        module = pytest.importorskip(library)
        given = ["b", "a", "b", "a"]
        match library:
            case "pandas":
                column = module.Series(given, dtype="category")
            case "polars":
                column = module.Series(given, dtype=module.Categorical)
            case _:
                column = module.array(given).dictionary_encode()
        table = HashMap.from_arrays(column, np.arange(4))
        assert dict(table.items()).keys() == {"a", "b"} and table.key_dtype == np.dtype("str")
        assert np.asarray(table.find(column)[0]).tolist() == np.asarray(table.find(given)[0]).tolist()
        table.upsert(column, np.ones(4, int), "add")
        assert np.asarray(table.erase(column)).sum() == 2 and len(table) == 0

    def test_names_of_the_type(self) -> None:
        for name in (str, "str", np.dtype("str"), np.dtypes.StringDType()):
            assert HashSet(name).key_dtype == np.dtype("str")
        for name in (bytes, "bytes", np.dtype("bytes")):
            table = HashSet(name)
            table.insert([b"\xff", b"\xff\0"])
            assert table.key_dtype == np.dtype("bytes") and sorted(table) == [b"\xff", b"\xff\0"]

    def test_other_libraries_have_no_strings(self) -> None:
        with pytest.raises(ParameterError, match="columns of numpy, pandas, polars, pyarrow, warphash, got"):
            map_of(KEYS).keys(like="torch")


class TestNulls:
    """Columns with nulls, by the three rules."""

    GIVEN: ClassVar[list[Any]] = ["a", None, "b", None, ""]

    def test_as_one_key(self) -> None:
        table = HashMap("str", "int64", nulls="key")
        assert table.insert(self.GIVEN, np.arange(5)).sum() == 4 and None in table
        assert set(table) == set(self.GIVEN) and table[None] in (1, 3) and table.get("") == 4
        table[None] = 7
        assert dict(table.items()) == {"a": 0, None: 7, "b": 2, "": 4}
        for twin in (table.copy(), pickle.loads(pickle.dumps(table)), table.__replace__(design="slab")):
            assert twin == table and None in twin
        table.check()
        assert table.erase([None, "x"]).tolist() == [True, False] and None not in table
        with pytest.raises(KeyError, match="None"):
            table[None]

    def test_in_a_file(self, tmp_path: Path) -> None:
        table = HashSet("bytes", nulls="key")
        table.insert([b"", None, b"\xff"])
        table.save(tmp_path / "set")
        loaded = HashSet.load(tmp_path / "set")
        assert loaded == table and set(loaded) == {b"", None, b"\xff"}

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_in_a_column(self, library: str) -> None:
        module = pytest.importorskip(library)
        column = getattr(module, "array" if library == "pyarrow" else "Series")(self.GIVEN)
        table = HashSet.from_arrays(column, nulls="key")
        keys = table.keys()
        assert set(table) == set(self.GIVEN) and np.asarray(table.contains(column)).all()
        held = keys.tolist() if library == "pandas" else keys.to_pylist() if library == "pyarrow" else keys.to_list()
        assert len(held) == 4 and {"a", "b", ""} == {key for key in held if isinstance(key, str)}
        dropped = HashMap.from_arrays(column, np.arange(5), nulls="drop")
        assert dict(dropped.items()) == {"a": 0, "b": 2, "": 4}
        with pytest.raises(DtypeError, match="2 nulls among them"):
            HashSet.from_arrays(column)

    def test_dropped(self) -> None:
        table = HashMap("str", "int64", nulls="drop")
        expected = [True, False, True, False, True]
        assert table.insert(self.GIVEN, np.arange(5)).tolist() == expected
        assert table.contains(self.GIVEN).tolist() == expected and None not in table
        values, found = table.find(self.GIVEN, default=-1)
        assert values.tolist() == [0, -1, 2, -1, 4] and found.tolist() == expected
        assert not table.upsert(self.GIVEN, np.full(5, 10), "add").any()
        held, inserted = table.find_or_insert([None, "c", "a"], np.array([1, 2, 3]))
        assert held.tolist() == [0, 2, 10] and inserted.tolist() == [False, True, False]
        table.upsert([None, "a"], np.array([5, 6]), "last")
        table.assign([None, None], np.array([5, 6]))
        assert dict(table.items()) == {"a": 6, "b": 12, "": 14, "c": 2}
        assert table.erase(self.GIVEN).tolist() == expected
        table.check()

    def test_a_full_table_names_the_key_behind_a_null(self) -> None:
        table = HashSet("str", design="linear_probing", capacity=4, load_factor=1.0, on_full="raise", nulls="drop")
        with pytest.raises(warphash.TableFull) as caught:
            table.insert([None, *(f"{n}" for n in range(100))])
        assert None not in caught.value.keys.tolist() and len(table) == 0

    def test_rules_do_not_mix(self) -> None:
        left, right = HashSet("str"), HashSet("str", nulls="key")
        right.insert([None])
        for combine in (lambda: left | right, lambda: left <= right, lambda: left.update(right)):
            with pytest.raises(DtypeError, match="one key type, got str and str, nulls='key'"):
                combine()

    def test_other_rules_and_types(self) -> None:
        with pytest.raises(ParameterError, match="nulls must be one of"):
            HashSet("str", nulls="ignore")

    def test_a_mixed_batch_leaves_none_out(self) -> None:
        table = HashMap("str", "int64", design="slab", nulls="drop")
        with pytest.raises(UnsupportedVerb, match="drop them first"):
            table.execute(np.array([Operation.FIND], np.uint8), [None])


class TestRefusals:
    @pytest.mark.parametrize("wrong", [[1], [b"a"], np.arange(2), [["a"]]], ids=str)
    def test_what_is_no_string(self, wrong: Any) -> None:
        table = map_of(["a"])
        if isinstance(wrong, list) and not isinstance(wrong[0], list):  # an item that the type cannot represent
            assert table.find(wrong)[1].tolist() == [False]
        else:
            with pytest.raises(DtypeError, match="must be strings, as the table was made"):
                table.find(wrong)
        with pytest.raises(DtypeError, match="must be strings, as the table was made"):
            table.insert(wrong, np.zeros(len(wrong)).astype(int))
        assert len(table) == 1

    def test_nulls(self) -> None:
        with pytest.raises(DtypeError, match="2 nulls among them: drop or fill the nulls first"):
            HashSet("str").insert(["a", None, None])

    @pytest.mark.parametrize("device", ["cuda", "cuda:1", "emulated"])
    def test_other_devices(self, device: str) -> None:
        with pytest.raises(DeviceError, match=r"live on the CPU alone, got .*give device='cpu', or give"):
            HashMap("str", "int64", device=device)

    def test_options(self, tmp_path: Path) -> None:
        with pytest.raises(ParameterError, match="a table in a file has no keys of type int32, nulls='key'"):
            HashMap("int32", "int64", nulls="key", device="cpu", design="stadium", memory=tmp_path / "table")

    def test_verbs_of_numbers(self) -> None:
        with pytest.raises(DtypeError, match="compares single numbers"):
            map_of(KEYS).erase_if("keys", "<", 3)


def test_values_are_compared() -> None:
    table = map_of(KEYS)
    assert table.erase_if("values", ">=", 5) == len(KEYS) - 5 and set(table) == set(KEYS[:5])


def test_a_mixed_batch() -> None:
    table = map_of(["a", "b"], design="slab")
    operations = np.array([Operation.FIND, Operation.INSERT, Operation.ERASE, Operation.FIND], np.uint8)
    found, done = table.execute(operations, ["a", "c", "b", "z"], np.array([0, 7, 0, 0]), default=-1)
    assert found.tolist() == [0, -1, -1, -1] and done.tolist() == [True, True, True, False]
    assert dict(table.items()) == {"a": 0, "c": 7}


def test_threads_see_whole_batches() -> None:
    """Lookups of a batch that comes and goes, while strings are forgotten and their numbers given to others."""
    table, stop, wrong = map_of(KEYS), threading.Event(), list[str]()
    coming = [f"coming {n}" for n in range(100)]

    def look() -> None:
        while not stop.is_set():
            seen = table.contains([*KEYS, *coming])
            if not seen[: len(KEYS)].all() or len(set(seen[len(KEYS) :].tolist())) != 1:
                wrong.append(f"{seen.sum()} keys")
            keys, values = table.to_arrays()
            if not set(KEYS) <= set(keys) or dict(zip(keys, values, strict=True))["é"] != KEYS.index("é"):
                wrong.append("to_arrays")

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(60):
        table.insert(coming, np.arange(100))
        table.erase(coming)
        passing = [f"passing {turn} {n}" for n in range(30)]
        table.insert(passing, np.arange(30))
        table.erase(passing)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    table.check()


class TestAnswers:
    """Lookups of a column are answered with columns of its library, as for keys of a fixed width."""

    def test_a_series_keeps_its_index(self) -> None:
        pd = pytest.importorskip("pandas")
        table = HashMap("str", "int64")
        added = table.insert(pd.Series(["a", "b"], index=[7, 9]), np.arange(2))
        assert added.index.tolist() == [7, 9] and added.all()
        asked = pd.Series(["b", "x", "a"], index=[5, 6, 8], name="q")
        values, found = table.find(asked, default=-1)
        for answer in (values, found, table.contains(asked)):
            assert isinstance(answer, pd.Series) and answer.index.tolist() == [5, 6, 8] and answer.name == "q"
        assert values.tolist() == [1, -1, 0] and found.tolist() == [True, False, True]
        assert table[asked[found]].tolist() == [1, 0] and table.get(asked, -1).index.tolist() == [5, 6, 8]
        assert isinstance(table.keys(), pd.Series) and isinstance(table.values(), pd.Series)

    @pytest.mark.parametrize("library", ["polars", "pyarrow"])
    def test_a_column_of(self, library: str) -> None:
        module = pytest.importorskip(library)
        make = module.Series if library == "polars" else module.array
        table = HashMap.from_arrays(make(["a", "b"]), np.arange(2))
        for answer in (*table.find(make(["b", "x"])), table[make(["b"])], table.values()):
            assert type(answer).__module__.startswith(library)
        assert np.asarray(table[make(["b", "a"])]).tolist() == [1, 0]

    def test_lists_and_single_strings_are_answered_with_arrays(self) -> None:
        table = HashMap("str", "int64")
        table.assign(["a", "b"], np.arange(2))
        assert isinstance(table.find(["a"])[0], np.ndarray) and isinstance(table["b"], np.int64)

    @pytest.mark.parametrize("nulls", ["drop", "key"])
    def test_nulls_have_answers_too(self, nulls: str) -> None:
        pd = pytest.importorskip("pandas")
        for key, column in (("str", ["a", None, "b"]), ("int64", pd.array([1, None, 2], "Int64"))):
            table = HashMap(key, "int64", nulls=nulls, device="cpu")
            asked = pd.Series(column, index=[7, 8, 9])
            assert table.insert(asked, np.arange(3)).index.tolist() == [7, 8, 9]
            assert table.contains(asked).tolist() == [True, nulls == "key", True]
