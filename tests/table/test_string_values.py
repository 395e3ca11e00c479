"""Maps whose values are strings of any length: every verb, with keys of every kind, against a dict."""

from __future__ import annotations

import copy
import pickle
import random
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import design_names, mixed_designs
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
    ShapeError,
    UnsupportedVerb,
)
from warphash.designs import registry
from warphash.storage.strings import held_strings, string_table

TEXTS = ["", "a", "a\0", "\0", "é", "漢" * 40, "x" * 5000, *(f"text {n}" for n in range(50))]
BYTES = [text.encode() + b"\xff\0"[: number % 3] for number, text in enumerate(TEXTS)]
KEY_TYPES = ["int64", "int32", "S12", ("int32", (3,)), "str", "bytes"]


def keys_of(kind: Any, numbers: Any) -> Any:
    """A key of a type for each number."""
    match kind:
        case "str":
            return [f"{'k' * (number % 30)}{number}" for number in numbers]
        case "bytes":
            return [b"\xff\0" + str(number).encode() for number in numbers]
        case "S12":
            return np.array([str(number) for number in numbers], "S12")
        case ("int32", (3,)):
            return np.array([[number, -number, 7] for number in numbers], "int32").reshape(-1, 3)
    return np.array(list(numbers), kind)


def number_of(kind: Any, key: Any) -> int:
    """The number of a key."""
    match kind:
        case "str":
            return int(key.lstrip("k"))
        case "bytes":
            return int(key[2:])
        case ("int32", (3,)):
            return int(key[0])
    return int(key)


def pairs_of(table: HashMap, kind: Any) -> dict[int, Any]:
    """All pairs, by the numbers of their keys."""
    keys, values = table.to_arrays(like="numpy")
    assert len(keys) == len(values) == len(table)
    return {number_of(kind, key): value for key, value in zip(keys, values.tolist(), strict=True)}


def listed(column: Any) -> list[Any]:
    """The items of a column of any library."""
    to_list = next(name for name in ("to_pylist", "to_list", "tolist") if hasattr(column, name))
    items: list[Any] = getattr(column, to_list)()
    return items


def map_of(texts: list[Any], kind: str = "str", **options: Any) -> HashMap:
    """A map from 0, 1 and so on to some texts."""
    table = HashMap("int64", kind, **options)
    table.insert(np.arange(len(texts)), texts)
    return table


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings that nobody holds are forgotten early, and room is made for few strings at a time."""
    monkeypatch.setattr(held_strings, "FEWEST_TO_COLLECT", 40)
    monkeypatch.setattr(held_strings, "BYTES_TO_COLLECT", 1 << 14)
    monkeypatch.setattr(string_table, "PIECE", 64)


def agree_with_a_dict(kind: Any, value: str, texts: list[Any], **options: Any) -> None:
    """Call random verbs on a table and on a dict."""
    draw, model = random.Random(4), dict[int, Any]()
    table = HashMap(kind, value, capacity=16, seed=2, **options)
    absent = texts[4]
    erases = "erase" in registry.get(table.design).capabilities
    for _ in range(40):
        ids = [draw.randrange(120) for _ in range(40)]
        values = [draw.choice(texts) for _ in ids]
        once = sorted(set(ids))
        keys, new = keys_of(kind, ids), set(ids) - model.keys()
        match draw.choice(["insert", "assign", "first", "last", "find_or_insert", "one", "erase", "pop", "shrink"]):
            case "insert":
                added = table.insert(keys, values)
                assert added.sum() == len(new)
                model |= {i: v for i, v, is_new in zip(ids, values, added, strict=True) if is_new}
            case "assign":
                assert table.assign(keys_of(kind, once), values[: len(once)]).sum() == len(new)
                model |= dict(zip(once, values, strict=False))
            case "first" | "last" as op:
                assert table.upsert(keys, values, op).sum() == len(new)
                pairs = list(zip(ids, values, strict=True))
                model = dict(reversed(pairs)) | model if op == "first" else model | dict(pairs)
            case "find_or_insert":
                held, added = table.find_or_insert(keys, values)
                assert added.sum() == len(new)
                model |= {i: v for i, v, is_new in zip(ids, values, added, strict=True) if is_new}
                assert held.tolist() == [model[i] for i in ids]
            case "one":
                key = keys_of(kind, ids[:1])[0]
                table[key] = values[0]
                assert table[key] == table.get(key) == table.setdefault(key, values[1]) == values[0]
                model[ids[0]] = values[0]
            case "erase" if erases:
                assert table.erase(keys).sum() == len(set(ids) & model.keys())
                model = {i: v for i, v in model.items() if i not in ids}
            case "pop" if erases:
                gone = list(model)[:20]
                assert table.pop(keys_of(kind, gone)).tolist() == [model.pop(i) for i in gone]
            case "shrink" if "shrink" in registry.get(table.design).capabilities:
                table.shrink()
        found, there = table.find(keys, default=absent)
        assert found.tolist() == [model.get(i, absent) for i in ids]
        assert there.tolist() == table.contains(keys).tolist() == [i in model for i in ids]
    assert pairs_of(table, kind) == model
    table.check()


@pytest.mark.parametrize("value", ["str", "bytes"])
@pytest.mark.parametrize("kind", KEY_TYPES, ids=str)
def test_verbs_agree_with_a_dict(kind: Any, value: str) -> None:
    agree_with_a_dict(kind, value, TEXTS if value == "str" else BYTES)


@pytest.mark.parametrize("kind", ["int64", "str"])
@pytest.mark.parametrize("design", design_names())
def test_every_design_has_such_values(design: str, kind: str) -> None:
    agree_with_a_dict(kind, "str", TEXTS, design=design)


class TestStringsThatNobodyHolds:
    def test_overwritten_values_are_forgotten(self) -> None:
        table = map_of(TEXTS)
        for turn in range(300):
            table.assign(np.arange(20), [f"{turn} {n}" for n in range(20)])
        assert storage_of(table).strings.used <= 2 * len(table) + 40 + 20
        table.shrink()
        assert storage_of(table).strings.used == len(set(table.values().tolist())) == len(table)
        table.check()

    def test_few_long_values_are_forgotten_too(self) -> None:
        """Strings that are few enough to stay by their number go by their bytes."""
        table, sizes = HashMap("int64", "bytes"), list[int]()
        for turn in range(200):
            table[turn % 3] = bytes([turn]) * 10_000
            sizes.append(table.nbytes)
        assert max(sizes) < sizes[0] + 40 * 10_000
        assert dict(table.items()) == {key: bytes([199 - (1 - key) % 3]) * 10_000 for key in range(3)}
        table.check()

    def test_strings_that_are_all_held_stay(self) -> None:
        table = HashMap("int64", "bytes")
        for turn in range(60):
            table[turn] = bytes([turn]) * 2000
        assert {int(key): value for key, value in table.items()} == {n: bytes([n]) * 2000 for n in range(60)}

    def test_values_that_are_kept_leave_new_ones_behind(self) -> None:
        """An insert of keys that are there gives its strings numbers that nobody holds."""
        table = map_of(TEXTS)
        for turn in range(100):
            assert not table.insert(np.arange(20), [f"{turn} {n}" for n in range(20)]).any()
        assert storage_of(table).strings.used <= 2 * len(table) + 40 + 20
        assert pairs_of(table, "int64") == dict(enumerate(TEXTS))

    def test_erased_and_popped_keys_leave_nothing(self) -> None:
        table = map_of(TEXTS)
        assert table.pop([0, 1]).tolist() == TEXTS[:2] and table.erase(np.arange(10)).sum() == 8
        table.shrink()
        assert storage_of(table).strings.used == len(TEXTS) - 10
        table.clear()
        assert len(table) == 0 and table.values().tolist() == [] and not table.contains([11]).any()
        table.insert([1], ["again"])
        assert dict(table.items()) == {1: "again"}

    def test_clear_needs_no_memory(self) -> None:
        table = map_of(TEXTS)
        came, done = faulty_call("refusal", 1, table.clear)
        assert came and done and len(table) == 0
        table.insert(np.arange(len(TEXTS)), TEXTS)
        assert pairs_of(table, "int64") == dict(enumerate(TEXTS))


class TestForms:
    @pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
    def test_values_of_each_library(self, library: str) -> None:
        module = pytest.importorskip(library)
        make = {"numpy": "array", "pandas": "Series", "polars": "Series", "pyarrow": "array"}[library]
        text = module.dtypes.StringDType() if library == "numpy" else None
        column = getattr(module, make)(["b", "é\0", "b"], *([text] if text else []))
        keys = getattr(module, make)([3, 1, 2])
        table = HashMap.from_arrays(keys, column)
        assert table.value_dtype == np.dtype("str") and table.device == "cpu"
        held, found = table.find(keys)
        for answer in (held, table.values(), table[keys], table.to_arrays()[1], table.find_or_insert(keys, column)[0]):
            assert type(answer).__module__.partition(".")[0] == library
        assert listed(held) == listed(table.pop(keys)) == ["b", "é\0", "b"] and all(listed(found)) and len(table) == 0

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "warphash"])
    def test_values_come_back_to_a_library_by_name(self, library: str) -> None:
        """Behind keys of any type, the name of a library of columns is one, and so is a column of strings."""
        pytest.importorskip(library)
        table = HashMap("int64", "str", device="cpu")
        table.insert([3], ["é"])
        column = table.values(like=library)
        for answer in (column, table.values(like=column), table.to_arrays(like=column)[1]):
            assert type(answer) is type(column) and listed(answer) == ["é"]
        assert type(column).__module__.partition(".")[0] == library and listed(table.keys(like=column)) == [3]

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_categories_are_their_strings(self, library: str) -> None:
        module, given = pytest.importorskip(library), ["b", "a", "b"]
        match library:
            case "pandas":
                column = module.Series(given, dtype="category")
            case "polars":
                column = module.Series(given, dtype=module.Categorical)
            case _:
                column = module.array(given).dictionary_encode()
        table = HashMap.from_arrays(np.arange(3), column)
        assert table.value_dtype == np.dtype("str") and table.find(np.arange(3))[0].tolist() == given
        table.assign(np.arange(1, 4), column)
        assert pairs_of(table, "int64") == {0: "b", 1: "b", 2: "a", 3: "b"}

    @pytest.mark.parametrize("values", [["x", "yz"], ("x", "yz"), np.array(["x", "yz"]), np.array(["x", "yz"], object)])
    def test_lists_and_arrays(self, values: Any) -> None:
        table = HashMap("int64", "str")
        assert table.insert([1, 2], values).all() and table.find([1, 2])[0].tolist() == ["x", "yz"]

    def test_bytes_of_arrays(self) -> None:
        table = HashMap("int64", "bytes")
        table.insert([1, 2], np.array([b"x", b"yz"]))
        assert table.find([1, 2])[0].tolist() == [b"x", b"yz"]

    def test_a_series_keeps_its_index(self) -> None:
        pd = pytest.importorskip("pandas")
        for kind, ids in (("int64", [1, 9]), ("str", ["one", "nine"])):
            table = HashMap(kind, "str", device="cpu")
            table.insert(pd.Series(ids[:1]), pd.Series(["text"]))
            values, found = table.find(pd.Series(ids, index=[5, 6], name="q"), default="none")
            assert values.tolist() == ["text", "none"] and values.index.tolist() == found.index.tolist() == [5, 6]
            assert values.name == "q"

    def test_a_batch_of_two_axes(self) -> None:
        table = map_of(TEXTS)
        found = table.find(np.array([[1, 2], [4, 99]]), default="-")[0]
        assert found.shape == (2, 2) and found.tolist() == [["a", "a\0"], ["é", "-"]]

    def test_tensors_are_answered_with_arrays(self) -> None:
        torch = pytest.importorskip("torch")
        values, found = map_of(TEXTS).find(torch.tensor([4, 99]))
        assert values.tolist() == ["é", ""] and isinstance(values, np.ndarray) and isinstance(found, torch.Tensor)

    def test_one_string_for_all_keys(self) -> None:
        table = HashMap("int64", "str")
        table.insert(np.arange(1000), "the same " * 20)
        table.assign(np.arange(500), pytest.importorskip("pandas").Series(["other"])[0])
        assert set(table.values().tolist()) == {"the same " * 20, "other"} and storage_of(table).strings.used == 2

    def test_keys_that_the_type_does_not_have(self) -> None:
        table = map_of(TEXTS)
        values, found = table.find([4, 1.5, "no", 2**70], default="-")
        assert values.tolist() == ["é", "-", "-", "-"] and found.tolist() == [True, False, False, False]
        assert table.pop([4, "no"], "-").tolist() == ["é", "-"]

    def test_flags_of_the_caller(self) -> None:
        table, flags = map_of(TEXTS), np.ones(2, np.bool_)
        values, found = table.find(np.array([4, 99]), found=flags)
        assert found is flags and flags.tolist() == [True, False] and values.tolist() == ["é", ""]
        with pytest.raises(DtypeError, match=r"out= takes rows of a fixed width, .* leave out= out"):
            table.find(np.array([4]), out=np.empty(1, "U5"))


class TestDictManners:
    def test_updates(self) -> None:
        table, other = map_of(TEXTS), map_of(["zero", "one"])
        table.update({100: "hundred"})
        table.update([(101, "a"), (101, "b")])
        table |= other
        assert pairs_of(table, "int64") == dict(enumerate(TEXTS)) | {0: "zero", 1: "one", 100: "hundred", 101: "b"}
        assert map_of(["a", "b"]) == map_of(["a", "b"], design="slab") != map_of(["a", "b\0"])
        assert map_of([b"a"], "bytes") != map_of(["a"]) != HashMap.from_arrays(np.arange(1), np.arange(1), device="cpu")
        assert map_of([]) == map_of([], "bytes")
        with pytest.raises(DtypeError, match="update takes a HashMap of int64 and str, got"):
            table.update(HashMap("int64", "int64", device="cpu"))

    def test_items(self) -> None:
        table = map_of(TEXTS)
        assert dict(table.items()) == dict(enumerate(TEXTS)) and sorted(table) == list(range(len(TEXTS)))
        assert (2, "a\0") in table.items() and (2, "a") not in table.items() and (999, "") not in table.items()
        del table[2]
        assert (2, "a\0") not in table.items()

    def test_one_key(self) -> None:
        table = HashMap("str", "str")
        table["a"] = "text"
        assert table["a"] == "text" and table.get("b") is None and table.get("b", 5) == 5
        assert table.setdefault("a", "new") == "text" and table.setdefault("b", "new") == "new"
        assert table.pop("b") == "new" and table.pop("b", None) is None
        with pytest.raises(KeyError, match="b"):
            table["b"]
        assert table.get(["a", "b"], "-").tolist() == ["text", "-"]

    def test_what_it_says(self) -> None:
        table = map_of(["a"])
        assert repr(table).startswith("<HashMap key=int64, value=str: 1 keys in")
        assert table.value_dtype == np.dtype("str") and HashMap("int64", bytes).value_dtype == np.dtype("bytes")
        assert table.stats().nbytes == table.nbytes > 0 and "<td>str</td>" in table._repr_html_()


class TestCopies:
    @pytest.mark.parametrize("kind", ["int64", "str"])
    def test_copies_share_nothing(self, kind: str, tmp_path: Path) -> None:
        table = HashMap(kind, "str")
        table.insert(keys_of(kind, range(len(TEXTS))), TEXTS)
        table.erase(keys_of(kind, range(3, 9)))
        expected = pairs_of(table, kind)
        table.save(tmp_path / "map")
        twins = [table.copy(), copy.deepcopy(table), pickle.loads(pickle.dumps(table)), HashMap.load(tmp_path / "map")]
        for twin in (*twins, table.__replace__(design="stadium"), table.__replace__(max_size=100)):
            assert twin == table and twin.value_dtype == table.value_dtype
            twin[keys_of(kind, [0])[0]] = "changed"
            twin.erase(keys_of(kind, [1]))
            twin.check()
            assert pairs_of(table, kind) == expected

    def test_bytes_and_nothing_in_files(self, tmp_path: Path) -> None:
        table = map_of(BYTES, "bytes")
        table.save(tmp_path / "map")
        assert pairs_of(HashMap.load(tmp_path / "map"), "int64") == dict(enumerate(BYTES))
        HashMap("int64", "str").save(tmp_path / "empty")
        assert len(HashMap.load(tmp_path / "empty")) == 0
        with pytest.raises(CorruptFile):
            HashSet.load(tmp_path / "map")

    def test_values_stay_when_the_table_goes(self) -> None:
        table = map_of(TEXTS)
        values, arrow = table.values(), table.find(np.arange(len(TEXTS)))[0]
        table.close()
        assert sorted(values.tolist()) == sorted(TEXTS) and arrow.tolist() == TEXTS


class TestBounded:
    @pytest.mark.parametrize("evict", ["lru", "lfu", "fifo", "random", "score"])
    @pytest.mark.parametrize("kind", ["int64", "str"])
    def test_values_leave_with_their_keys(self, kind: str, evict: str) -> None:
        table = HashMap(kind, "str", max_size=100, evict=evict, seed=1)
        for turn in range(10):
            ids = range(50 * turn, 50 * turn + 80)
            scores = {"scores": np.array(ids)} if evict == "score" else {}
            table.assign(keys_of(kind, ids), [f"value {i}" for i in ids], **scores)
            assert len(table) <= 100
            table.check()
        held = pairs_of(table, kind)
        assert all(value == f"value {i}" for i, value in held.items()) and table.stats().evicted > 0
        assert storage_of(table).strings.used <= 2 * 100 + 40 + 80
        keys, values = table.evict(7)
        assert [held.pop(number_of(kind, key)) for key in keys] == values.tolist() and pairs_of(table, kind) == held


@pytest.mark.parametrize("design", mixed_designs())
def test_a_mixed_batch(design: str) -> None:
    table = map_of(["zero", "one", "two"], design=design)
    operations = [Operation.FIND, Operation.INSERT, Operation.ERASE, Operation.ASSIGN, Operation.FIND]
    found, done = table.execute(operations, [0, 9, 1, 2, 7], ["", "nine", "", "new", ""], default="-")
    assert found.tolist() == ["zero", "-", "-", "-", "-"] and done.tolist() == [True, True, True, False, False]
    assert pairs_of(table, "int64") == {0: "zero", 9: "nine", 2: "new"}
    assert table.execute([Operation.FIND], [0])[0].tolist() == ["zero"]


def test_keys_that_may_be_null() -> None:
    for nulls, ids in (("key", {1: "a", None: "b", 2: "c"}), ("drop", {1: "a", 2: "c"})):
        table = HashMap("int64", "str", nulls=nulls, device="cpu")
        table.insert([1, None, 2], ["a", "b", "c"])
        assert dict(table.items()) == ids
        assert table.find([2, None], default="-")[0].tolist() == ["c", ids.get(None, "-")]
        held, added = table.find_or_insert([None, 5], ["x", "y"])
        assert held.tolist() == [ids.get(None, ""), "y"] and added.tolist() == [False, True]


def test_threads_see_whole_batches() -> None:
    """Readers see values of one batch, while strings are forgotten and their numbers given to others."""
    table, stop, wrong = map_of(TEXTS), threading.Event(), list[str]()
    coming = np.arange(1000, 1100)

    def look() -> None:
        while not stop.is_set():
            values, found = table.find(coming)
            turns = {value.partition(" ")[0] for value in values.tolist()}
            if len(turns) != 1 or len(set(found.tolist())) != 1:
                wrong.append(f"values of {turns}")
            keys, held = table.to_arrays()
            if dict(zip(keys.tolist(), held.tolist(), strict=True)).get(4) != "é":
                wrong.append("to_arrays")

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(60):
        table.assign(coming, [f"{turn} {n}" for n in range(100)])
        if turn % 5 == 4:
            table.erase(coming)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    table.check()


def test_threads_with_keys_of_their_own() -> None:
    """Each thread finds its own values, whatever strings the others have forgotten meanwhile."""
    table, wrong = map_of(TEXTS), list[str]()

    def work(first: int) -> None:
        ids, draw, model = np.arange(first, first + 60), random.Random(first), dict[int, str]()
        for turn in range(50):
            values = [f"{first} {turn} {'x' * draw.randrange(90)}" for _ in ids]
            if turn % 3:
                table.assign(ids, values)
                model = dict(zip(ids.tolist(), values, strict=True))
            else:
                held, _ = table.find_or_insert(ids, values)
                model = dict(zip(ids.tolist(), values, strict=True)) | model
                if held.tolist() != [model[key] for key in ids.tolist()]:
                    wrong.append(f"find_or_insert of {first} in turn {turn}")
            gone = draw.sample(sorted(model), 20)
            if table.pop(gone).tolist() != [model.pop(key) for key in gone]:
                wrong.append(f"pop of {first} in turn {turn}")
            if table.find(ids, default="-")[0].tolist() != [model.get(key, "-") for key in ids.tolist()]:
                wrong.append(f"find of {first} in turn {turn}")
            if turn % 10 == 9:
                table.shrink()
                twin = table.copy()
                if twin.find(ids, default="-")[0].tolist() != [model.get(key, "-") for key in ids.tolist()]:
                    wrong.append(f"copy of {first} in turn {turn}")

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    table.check()


@pytest.mark.parametrize("kind", ["interrupt", "refusal"])
def test_a_fault_leaves_whole_pairs(kind: str) -> None:
    """A fault while strings are forgotten and overwritten leaves each key with an old or a new value."""
    batch = [f"new {n} {'x' * (n % 50)}" for n in range(len(TEXTS))]
    for number in range(1, 10_000, 5 if kind == "interrupt" else 1):
        table = map_of(TEXTS, seed=3)
        for turn in range(3):
            table.assign(np.arange(40), [f"{turn} {n}" for n in range(40)])
        before = pairs_of(table, "int64")
        faulty, done = faulty_call(kind, number, partial(table.assign, np.arange(len(batch)), batch))
        if not faulty:
            break
        held, after = pairs_of(table, "int64"), dict(enumerate(batch))
        assert all(held[key] in (before[key], after[key]) for key in after), number
        assert held == after or not done
        if kind == "refusal":
            assert held in (before, after)
        table.check()
        table.assign(np.arange(len(batch)), batch)
        assert pairs_of(table, "int64") == after
    assert number > 5


class TestRefusals:
    @pytest.mark.parametrize("wrong", [[1], [b"a"], np.arange(1), [["a"]]], ids=str)
    def test_what_is_no_string(self, wrong: Any) -> None:
        table = map_of(["a"])
        with pytest.raises(DtypeError, match="values must be strings, as the table was made"):
            table.assign([0], wrong)
        with pytest.raises(DtypeError, match="the default is no str"):
            table.find([0], default=wrong)
        assert dict(table.items()) == {0: "a"}

    def test_nulls(self) -> None:
        for values in ([None, "a"], np.array(["a", None], object)):
            with pytest.raises(
                DtypeError, match=r"expected values that are strings, got 1 nulls among them: drop or fi"
            ):
                HashMap("int64", "str", nulls="key").insert([1, 2], values)
        with pytest.raises(DtypeError, match="the default is no str"):
            map_of(["a"]).find([0], default=None)

    def test_verbs_of_numbers(self) -> None:
        table = map_of(TEXTS)
        for op in ("add", "min", "max", "or"):
            with pytest.raises(UnsupportedVerb, match=rf"upsert '{op}' combines \w+, not str"):
                table.upsert([1], ["a"], op)
        with pytest.raises(DtypeError, match="number gives integers, and the values of the table are str"):
            table.number([1])
        with pytest.raises(DtypeError, match=r"compares single numbers .* and values are str"):
            table.erase_if("values", "<", "a")
        with pytest.raises(UnsupportedVerb, match="a plan is for values of a fixed width"):
            table.plan(3)
        assert table.erase_if("keys", "<", 5) == 5

    @pytest.mark.parametrize("device", ["cuda", "cuda:1", "emulated"])
    def test_other_devices(self, device: str) -> None:
        with pytest.raises(DeviceError, match=r"values of type str live on the CPU alone, got .*give device='cpu'"):
            HashMap("int64", "str", device=device)

    def test_lengths(self) -> None:
        table = map_of(["a"])
        with pytest.raises(ShapeError, match="2 keys and 3 values"):
            table.insert([1, 2], ["a", "b", "c"])
        with pytest.raises(ShapeError, match="the default is a single str, got 2"):
            table.find([1], default=["a", "b"])

    def test_a_multi_map(self) -> None:
        for kind in ("str", "bytes", str):
            with pytest.raises(DtypeError, match=r"values of a MultiMap are of a fixed width, got .*as in U16"):
                MultiMap("int64", kind)
        pandas = pytest.importorskip("pandas")
        with pytest.raises(DtypeError, match="fixed width, got strings of any length: give the length"):
            MultiMap.from_arrays([1, 2], pandas.Series(["a", "b"]))

    def test_a_batch_that_does_not_fit(self) -> None:
        table = map_of(TEXTS, design="linear_probing", capacity=len(TEXTS), load_factor=1.0, on_full="raise")
        with pytest.raises(warphash.TableFull) as caught:
            table.insert(np.arange(1000, 1200), [f"{n}" for n in range(200)])
        assert set(caught.value.keys.tolist()) <= set(range(1000, 1200)) and len(caught.value.keys)
        assert pairs_of(table, "int64") == dict(enumerate(TEXTS))
        table.check()
