"""What comes in at the front door: kept exactly or refused, against a dict of exact values that shares no code.

Types, containers and verbs are crossed at random; `WARPHASH_FUZZ_EXAMPLES` asks for more than the usual number.
"""

from __future__ import annotations

import datetime
import math
import numbers
import os
import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.exact_values import NOT_HELD, plain, plain_of_array, plain_of_other_array
from warphash import DtypeError, HashMap, HashSet, MultiMap, ShapeError, WarphashError

EXAMPLES = int(os.environ.get("WARPHASH_FUZZ_EXAMPLES", "300"))
DEVICES = os.environ.get("WARPHASH_FUZZ_DEVICES", "cpu").split(",")

KEY_TYPES = [
    *("?", "i1", "u1", "i4", "u4", "i8", "u8", "S3", "U2", "V3", "S12", "M8[s]", "M8[D]", "M8[ns]", "m8[ms]"),
    [("a", "i4"), ("b", "S2")],
    [("a", "u1"), ("b", [("c", "i2"), ("d", "U1")])],
    ("i4", (2,)),
    ("u8", (3,)),
]
VALUE_TYPES = ["i4", "u1", "f4", "f8", "?", "S3", "U2", "M8[ms]", ("i2", (2,)), [("x", "f4"), ("y", "i8")]]


def typed(dtype: Any) -> np.dtype[Any]:
    return np.dtype(dtype)


# ---- items: most of them such as the type could hold, some that no type or another one holds

WHOLE = st.one_of(
    st.integers(-3, 9),
    st.sampled_from([s * 2**n + d for n in (7, 8, 31, 32, 53, 63, 64, 70) for s in (1, -1) for d in (-1, 0, 1)]),
)
NUMBERS = st.one_of(
    WHOLE,
    st.booleans(),
    st.sampled_from([2.0, -1.0, 2.9, 0.5, 0.1, -0.0, 1e30, 1e300, math.inf, math.nan]),
    st.sampled_from([np.int64(-1), np.uint64(2**64 - 1), np.float64(2.5), np.float32(3), np.int8(5), np.bool_(True)]),
)
TEXT = st.text(st.sampled_from("ab1é\0"), max_size=4)
BYTES = st.binary(max_size=4) | st.sampled_from([b"a", b"ab", b"abc", b"abcd", b"ab\0", b"1", b"abcdefghijkl", b""])
SPANS = st.builds(np.timedelta64, st.integers(-(10**6), 10**10), st.sampled_from(["D", "s", "ms", "us", "ns"]))
MOMENTS = st.one_of(
    st.builds(np.datetime64, st.integers(-(10**6), 10**10), st.sampled_from(["D", "s", "ms", "us", "ns"])),
    st.sampled_from([np.datetime64("NaT", "s"), np.datetime64(2**62, "D"), datetime.date(2020, 1, 2)]),
    st.sampled_from([datetime.datetime(2020, 1, 1), datetime.datetime(1999, 1, 1, 1, 1, 1, 1000)]),
    st.just(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)),
)
JUNK = (
    st.sampled_from([None, "1", b"1", 1.5, 2j, "now", object(), math.nan, np.str_("a"), ()])
    | NUMBERS
    | TEXT
    | SPANS
    | MOMENTS
)


def items(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    if dtype.subdtype is not None:
        base, (extent,) = dtype.subdtype
        rows = st.lists(items(base), min_size=extent, max_size=extent)
        return rows.map(tuple) | rows
    if dtype.names is not None:
        return st.tuples(*(items(dtype[name]) for name in dtype.names))
    own: Any = {
        **dict.fromkeys("biuf", NUMBERS),
        "S": BYTES | TEXT,
        "U": TEXT,
        "V": st.binary(min_size=3, max_size=3) | BYTES,
        "M": MOMENTS,
        "m": SPANS | st.sampled_from([datetime.timedelta(seconds=1), datetime.timedelta(microseconds=1)]),
    }[dtype.kind]
    held = own.filter(lambda item: plain(item, dtype) is not NOT_HELD)
    return st.one_of(held, held, held, held, held, held, own, JUNK)


# ---- containers


def as_array(values: list[Any], dtype: np.dtype[Any]) -> Any:
    """An array of the type itself, of those values that it holds."""
    made = np.zeros(len(values), dtype)
    for number, value in enumerate(values):
        exact = plain(value, dtype)
        exact = 0 if exact is NOT_HELD and dtype.subdtype is not None else exact
        if dtype.kind in "Mm" and exact is not NOT_HELD:
            made[number] = np.array(exact, "i8").view(dtype)
        elif exact is not NOT_HELD:
            made[number] = exact
    return made


def as_other_array(values: list[Any], dtype: np.dtype[Any]) -> Any:
    """Whatever array NumPy makes of the values by itself."""
    try:
        return np.array(values)
    except (ValueError, OverflowError, TypeError):
        return np.array([object()])


def as_arrow(values: list[Any], dtype: np.dtype[Any]) -> Any:
    import pyarrow as pa

    if not {*map(type, values)} <= {bool, int, float, str, bytes, type(None), datetime.date, datetime.datetime}:
        return as_other_array(values, dtype)  # PyArrow 26 crashes where NumPy's times and integers meet
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return as_other_array(values, dtype)


def as_pandas(values: list[Any], dtype: np.dtype[Any]) -> Any:
    import pandas as pd

    try:
        return pd.Series(values)
    except (ValueError, OverflowError, TypeError):
        return as_other_array(values, dtype)


def as_polars(values: list[Any], dtype: np.dtype[Any]) -> Any:
    import polars as pl

    try:
        return pl.Series(values)
    except BaseException:  # its panics are no exceptions
        return as_other_array(values, dtype)


def as_torch(values: list[Any], dtype: np.dtype[Any]) -> Any:
    import torch

    try:
        return torch.tensor(values)
    except (ValueError, OverflowError, TypeError, RuntimeError):
        return as_other_array(values, dtype)


def as_cupy(values: list[Any], dtype: np.dtype[Any]) -> Any:
    import cupy

    other = as_other_array(values, dtype)
    return cupy.asarray(other) if other.dtype.kind in "biuf" else other


def as_torch_on_gpu(values: list[Any], dtype: np.dtype[Any]) -> Any:
    tensor = as_torch(values, dtype)
    return tensor if isinstance(tensor, np.ndarray) else tensor.cuda()


CONTAINERS: dict[str, Callable[[list[Any], np.dtype[Any]], Any]] = {
    "list": lambda values, dtype: values,
    "list again": lambda values, dtype: list(values),
    "tuple": lambda values, dtype: values if dtype.names is not None else tuple(values),
    "array": as_array,
    "other array": as_other_array,
    "object array": lambda values, dtype: np.array([*values, None], object)[:-1],
}
LIBRARIES = {"pyarrow": as_arrow, "pandas": as_pandas, "polars": as_polars, "torch": as_torch}
CONTAINERS.update({name: make for name, make in LIBRARIES.items() if find_spec(name)})
ON_GPU = {"cupy": as_cupy, "torch": as_torch_on_gpu}


def containers(device: str) -> dict[str, Callable[[list[Any], np.dtype[Any]], Any]]:
    """What a table on a device takes."""
    on_gpu = {f"{name} on the GPU": make for name, make in ON_GPU.items() if find_spec(name)}
    return {**CONTAINERS, **on_gpu} if device == "cuda" else CONTAINERS


def can_answer(container: Any, dtype: np.dtype[Any]) -> bool:
    """Whether the library of the keys has a type for the values, which come back as its arrays."""
    library = type(container).__module__.partition(".")[0]
    if library in ("pandas", "polars", "pyarrow"):
        return dtype.names is None
    return library not in ON_GPU or dtype.base.kind in "biuf"


def on_host(container: Any) -> Any:
    if hasattr(container, "get") and hasattr(container, "device"):  # CuPy
        return container.get()
    if getattr(getattr(container, "dtype", None), "tz", None) is not None:  # pandas, which makes objects
        return np.asarray(container.dt.tz_convert("UTC").dt.tz_localize(None))
    return container.cpu().numpy() if hasattr(container, "cpu") else np.asarray(container)


def of_type(answer: Any, dtype: np.dtype[Any]) -> Any:
    """An answer as an array of the type of its items, which a column of bytes or of lists is not."""
    array = on_host(answer)
    array = np.array(array.tolist(), dtype.base) if array.dtype.kind in "OU" else array
    return array.reshape(-1, *dtype.shape)


def is_empty_row(value: Any) -> bool:
    """Whether a value is a tuple, an array or a Series without items."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes) and len(value) == 0


def known(container: Any, dtype: np.dtype[Any], is_sought: bool) -> list[Any] | None:
    """The plain forms of what a container holds, if a table of ``dtype`` is to take it; None if it is to refuse.

    What is only looked up or erased may also be `NOT_HELD`.
    """
    forms = sought(container, dtype)
    return None if forms is None or (not is_sought and any(form is NOT_HELD for form in forms)) else forms


def sought(container: Any, dtype: np.dtype[Any]) -> list[Any] | None:
    """The plain forms of what a container holds, or `NOT_HELD`; None if no table of ``dtype`` looks it up."""
    if isinstance(container, list | tuple):
        container = [value.as_py() if hasattr(value, "as_py") else value for value in container]  # of pyarrow
        container = [value.to_list() if hasattr(value, "to_list") else value for value in container]  # rows of Polars
        if container and all(map(is_empty_row, container)) and dtype.subdtype is dtype.names is None:
            return []  # a batch of shape (n, 0)
        if dtype.names is not None:  # a record is a tuple; arrays in a list are more axes of the batch
            container = [item for value in container for item in (value if isinstance(value, np.ndarray) else [value])]
        elif {shape_of(value) for value in container} != {dtype.shape}:
            return None
        if any(value is None for value in container):
            return None
        has_nulls = dtype.shape and any(item is None for row in container for item in row)
        return None if has_nulls else [plain(value, dtype) for value in container]
    with np.errstate(all="ignore"):
        try:
            array = on_host(container)
        except Exception:
            return None
    if getattr(container, "null_count", 0) not in (0,) and not callable(getattr(container, "null_count", 0)):
        return None
    if callable(getattr(container, "null_count", 0)) and container.null_count():
        return None
    is_of_objects = str(getattr(container, "dtype", "")) == "object" and array.ndim == 1
    if is_of_objects:  # which are read as a list if they have one type
        return sought(array.tolist(), dtype) if have_one_type(array.tolist()) else None
    if array.dtype != dtype.base:
        return plain_of_other_array(array, dtype)
    return plain_of_array(array, dtype) if array.shape[1:] == dtype.shape else None


def have_one_type(values: list[Any]) -> bool:
    """Whether values, or the items of rows, have a type in common that holds each of them."""
    if all(isinstance(value, list | tuple) for value in values):
        values = [item for value in values for item in value]
    if any(all(isinstance(value, kind) for value in values) for kind in (datetime.date, datetime.timedelta)):
        return True
    try:
        found = np.array(values).dtype
    except Exception:
        return False
    are_whole = all(isinstance(value, numbers.Integral) and not isinstance(value, np.timedelta64) for value in values)
    if found.kind in "fO" and are_whole:
        least, most = (bound(int(value) for value in values) for bound in (min, max))
        return least >= -(2**63) and most < (2**63 if least < 0 else 2**64)
    return found.kind == "c" or (found.kind != "O" and all(plain(value, found) is not NOT_HELD for value in values))


def shape_of(value: Any) -> Any:
    """The shape of an item of a list; None of a ragged one."""
    if not isinstance(value, list | tuple | np.ndarray):
        return ()
    shapes = {shape_of(item) for item in value}
    if len(shapes) > 1 or None in shapes:
        return None
    return (len(value), *(shapes.pop() if shapes else ()))


# ---- following a mend to the letter

NAMED = r"(?:numpy\.asarray\((?:keys|values)\)|keys|values|array)"
CALLS = re.compile(rf"list\({NAMED}\)|{NAMED}(?:\.[a-z_]+\([^()]*\)|\[\(\)\])")


def mended(error: Exception, container: Any) -> Any:
    """The container after the conversion that an error advises; None if it advises none."""
    call = CALLS.search(str(error))
    if call is None:
        return None
    names = {"keys": container, "values": container, "array": container, "numpy": np, "torch": sys.modules.get("torch")}
    return eval(call[0], names)


def wanted(container: Any, dtype: np.dtype[Any], device: str, is_sought: bool) -> tuple[Any, list[Any] | None]:
    """A container that a table answers for, after at most one mend, and what it holds; no forms where it is refused."""
    forms = known(container, dtype, is_sought)
    if forms is not None or isinstance(container, list | tuple) or sought(container, dtype) is not None:
        return container, forms
    table = HashSet(dtype, device=device) if dtype.base.kind != "f" and not has_floats(dtype) else None
    if table is None:
        return container, None
    with pytest.raises(WarphashError) as refused:
        table.contains(container)
    again = mended(refused.value, container)
    if again is None:
        return container, None
    if not isinstance(again, list):
        again_forms = known(again, dtype, is_sought)
        source = [plain(value, dtype) for value in on_host(container).tolist()]
        assert again_forms == source, f"{refused.value}: following it changes values"
        return again, again_forms
    return again, known(again, dtype, is_sought)


def has_floats(dtype: np.dtype[Any]) -> bool:
    return dtype.names is not None and any(dtype[name].kind == "f" or has_floats(dtype[name]) for name in dtype.names)


# ---- the model


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b or (a != a and b != b))


class Door:
    """A table, and the dict that it is to be like."""

    def __init__(self, kind: type, key: Any, value: Any, device: str) -> None:
        self.kind, self.key, self.value = kind, typed(key), typed(value)
        types = (self.key,) if kind is HashSet else (self.key, self.value)
        self.device, self.containers = device, containers(device)
        self.table: Any = kind(*types, device=device, capacity=8)
        self.held: dict[Any, list[Any]] = {}

    def offers(self, verb: str, keys: list[Any], values: list[Any], key_container: str, value_container: str) -> None:
        is_sought = verb in ("find", "contains", "erase", "getitem", "delitem")
        key_batch, key_forms = wanted(self.containers[key_container](keys, self.key), self.key, self.device, is_sought)
        value_batch = self.containers[value_container](values, self.value)
        value_forms = known(value_batch, self.value, False)
        adds = verb in ("insert", "assign", "find_or_insert", "setitem") and self.kind is not HashSet
        answers_values = verb in ("find", "find_or_insert", "getitem") and self.kind is not HashSet
        has_no_type = answers_values and not can_answer(key_batch, self.value)
        if key_forms is None or has_no_type or (adds and (value_forms is None or len(value_forms) != len(key_forms))):
            with pytest.raises((DtypeError, ShapeError)) as refused:
                self.call(verb, key_batch, value_batch)
            assert ": " in str(refused.value), "an error names its mend"
        elif verb in ("getitem", "delitem") and not all(form in self.held for form in key_forms):
            with pytest.raises(KeyError):
                self.call(verb, key_batch, value_batch)
        else:
            answer = self.call(verb, key_batch, value_batch)
            self.follow(verb, key_forms, value_forms or [], answer)
        self.agrees()

    def call(self, verb: str, keys: Any, values: Any) -> Any:
        table, is_set = self.table, self.kind is HashSet
        if verb == "setitem":
            table[keys] = values
            return None
        if verb in ("getitem", "delitem"):
            return getattr(table, f"__{verb}__")(keys)
        adds = verb in ("insert", "assign", "find_or_insert")
        return getattr(table, verb)(keys, values) if adds and not is_set else getattr(table, verb)(keys)

    def follow(self, verb: str, keys: list[Any], values: list[Any], answer: Any) -> None:
        """Check an answer, and do the same to the dict. Of equal keys in a batch any may win: the table says which."""
        there = [key in self.held for key in keys]
        if verb in ("contains", "find"):
            found = answer if verb == "contains" else answer[1]
            assert on_host(found).reshape(-1).tolist() == there
        if verb in ("find", "getitem"):
            values_found = answer if verb == "getitem" else answer[0]
            for key, value in zip(keys, plain_of_array(of_type(values_found, self.value), self.value), strict=True):
                assert key not in self.held or any(same(value, its) for its in self.held[key])
        if verb in ("erase", "delitem"):
            for key in set(keys):
                if self.kind is MultiMap and key in self.held and verb == "erase":
                    self.held[key] = self.held[key][keys.count(key) :]
                    if not self.held[key]:
                        del self.held[key]
                else:
                    self.held.pop(key, None)
        if verb in ("insert", "assign", "find_or_insert", "setitem"):
            self.add(verb, keys, values)

    def add(self, verb: str, keys: list[Any], values: list[Any]) -> None:
        values = values or [None] * len(keys)
        for key in dict.fromkeys(keys):
            own = [value for other, value in zip(keys, values, strict=True) if other == key]
            if self.kind is MultiMap:
                self.held[key] = self.held.get(key, []) + own
            elif key not in self.held or verb in ("assign", "setitem"):
                self.held[key] = own if len(own) == 1 else [self.read(key, own)]

    def read(self, key: Any, among: list[Any]) -> Any:
        if self.kind is HashSet:
            return None
        keys, values = (self.table.keys(like="numpy"), self.table.values(like="numpy"))
        pairs = zip(plain_of_array(keys, self.key), plain_of_array(values, self.value), strict=True)
        (value,) = [value for its, value in pairs if its == key]
        assert any(same(value, other) for other in among)
        return value

    def agrees(self) -> None:
        keys = plain_of_array(self.table.keys(like="numpy"), self.key)
        assert len(self.table) == len(keys) == sum(map(len, self.held.values()))
        assert set(keys) == set(self.held)
        if self.kind is HashMap:
            for key, value in zip(keys, plain_of_array(self.table.values(like="numpy"), self.value), strict=True):
                assert same(value, self.held[key][0]), (key, value, self.held[key])

    def asks(self, key: Any) -> None:
        """One key with `in`: what the type does not hold is not there."""
        form = plain(key, self.key)
        assert (key in self.table) is (form is not NOT_HELD and form in self.held)


VERBS = {
    HashMap: ["insert", "assign", "find_or_insert", "setitem", "find", "contains", "erase", "getitem", "delitem"],
    HashSet: ["insert", "contains", "erase"],
    MultiMap: ["insert", "contains", "find"],
}


@settings(max_examples=EXAMPLES, print_blob=True)
@given(st.data())
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.slow
def test_a_value_is_kept_exactly_or_refused(device: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([HashMap, HashMap, HashSet, MultiMap]), "class")
    narrow = [key for key in KEY_TYPES if typed(key).itemsize <= 8]
    key_type = data.draw(st.sampled_from(narrow if kind is MultiMap else KEY_TYPES), "key type")
    narrow_values = [value for value in VALUE_TYPES if typed(value).itemsize <= 8]
    value_type = data.draw(st.sampled_from(narrow_values if kind is MultiMap else VALUE_TYPES), "value type")
    door = Door(kind, key_type, value_type, device)
    for _ in range(data.draw(st.integers(1, 4), "calls")):
        verb = data.draw(st.sampled_from(VERBS[kind]), "verb")
        keys = data.draw(st.lists(items(door.key), min_size=1, max_size=5), "keys")
        n = len(keys)
        values = data.draw(st.lists(items(door.value), min_size=n, max_size=n), "values")
        chosen = [data.draw(st.sampled_from(sorted(door.containers)), "container") for _ in range(2)]
        door.offers(verb, keys, values, *chosen)
        door.asks(data.draw(items(door.key), "asked"))
