"""Arrays and columns of all kinds for the relational verbs, and what plain Python says about their items."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

__all__ = [
    "KINDS",
    "NAN",
    "NULL",
    "Kind",
    "Oracle",
    "canonical",
    "fitting",
    "in_order",
    "is_among",
    "items_of",
    "joined",
    "lists_of",
    "shown",
]

NAN, NULL = "(nan)", "(null)"


@dataclass(frozen=True)
class Kind:
    """A library, a type, and items that are equal, or nearly so, often."""

    library: str
    dtype: str
    items: tuple[Any, ...]
    make: Callable[[list[Any]], Any]

    def __str__(self) -> str:
        return f"{self.library}-{self.dtype}"

    @property
    def is_installed(self) -> bool:
        return self.library == "list" or importlib.util.find_spec(self.library) is not None


INTEGERS = (0, 1, -1, 7, 100, -128, 127)
FLOATS = (0.0, -0.0, 1.5, -1.5, math.nan, math.inf, 3.0)
TEXTS = ("", "a", "b", "ab", "ß", "a" * 20)
RECORD = [("a", "i2"), ("b", "f4")]


def numpy_kind(dtype: Any, items: tuple[Any, ...], name: str = "") -> Kind:
    return Kind("numpy", name or str(dtype), items, lambda given: np.array(given, dtype))


def column_kinds() -> list[Kind]:
    """Columns of libraries, with nulls among them."""
    kinds = []
    for name, items in {
        "int64": (*INTEGERS, None),
        "float64": (*FLOATS, None),
        "bool": (True, False, None),
        "string": (*TEXTS, None),
    }.items():

        def of_polars(given: list[Any], name: str = name) -> Any:
            polars = importlib.import_module("polars")
            types = {"int64": polars.Int64, "float64": polars.Float64, "bool": polars.Boolean, "string": polars.String}
            return polars.Series("x", given, types[name])

        def of_pyarrow(given: list[Any], name: str = name) -> Any:
            return importlib.import_module("pyarrow").array(given, name)

        def of_chunks(given: list[Any], name: str = name) -> Any:
            pyarrow = importlib.import_module("pyarrow")
            return pyarrow.chunked_array([pyarrow.array(given[:3], name), pyarrow.array(given[3:], name)])

        def of_pandas(given: list[Any], name: str = name) -> Any:
            types = {"int64": "Int64", "bool": "boolean", "string": "string"}
            pandas = importlib.import_module("pandas")
            return pandas.Series(given, range(5, 5 + len(given)), types[name], name="x")

        def of_categories(given: list[Any]) -> Any:
            return importlib.import_module("pandas").Series(given, dtype="category")

        kinds += [Kind("polars", name, items, of_polars), Kind("pyarrow", name, items, of_pyarrow)]
        kinds.append(Kind("pyarrow", f"{name}, chunks", items, of_chunks))
        if name != "float64":  # in which pandas makes NaN a null
            kinds.append(Kind("pandas", name, items, of_pandas))
        if name == "string":
            kinds.append(Kind("pandas", "category", items, of_categories))
    return kinds


def categories_of_objects(given: list[Any]) -> Any:
    """A column of pandas whose categories are Python objects. pandas sorts it by the order of the categories."""
    pandas = importlib.import_module("pandas")
    return pandas.Series(pandas.Categorical(given, pandas.Index(sorted(INTEGERS), dtype=object)))


def torch_kind(dtype: str, items: tuple[Any, ...]) -> Kind:
    def make(given: list[Any]) -> Any:
        torch = importlib.import_module("torch")
        return torch.tensor(given, dtype=getattr(torch, dtype))

    return Kind("torch", dtype, items, make)


TIMES = tuple(np.datetime64(text, "s") for text in ("2020-01-01", "1969-12-31", "NaT"))

SPANS = tuple(np.timedelta64(number, "us") for number in (1, -1, 2**40, "NaT"))

KINDS = [
    kind
    for kind in [
        *(numpy_kind(dtype, INTEGERS) for dtype in ("int8", "int64", ">i4")),
        numpy_kind("uint64", (0, 1, 2**63, 2**64 - 1)),
        *(numpy_kind(dtype, FLOATS) for dtype in ("float16", "float32", "float64", "longdouble")),
        numpy_kind("complex128", (0j, complex(-0.0, -0.0), 1j, complex(math.nan, 1), complex(1, math.nan), 2 + 0j)),
        numpy_kind("bool", (True, False)),
        numpy_kind("S3", (b"", b"a", b"ab", b"abc")),
        numpy_kind("U3", ("", "a", "ab", "ß")),
        numpy_kind("M8[s]", TIMES),
        numpy_kind("m8[us]", SPANS),
        numpy_kind(RECORD, ((0, 0.0), (0, -0.0), (1, 0.5), (1, math.nan), (-1, 0.0)), "record"),
        numpy_kind(object, (*TEXTS, None), "object"),
        Kind("list", "int", (*INTEGERS, None), list),
        Kind("list", "str", (*TEXTS, "a\0", None), list),
        Kind("list", "bytes", (b"", b"a", b"a\0", None), list),
        *(torch_kind(dtype, INTEGERS) for dtype in ("int32", "int64")),
        *(torch_kind(dtype, FLOATS) for dtype in ("float32", "float64")),
        torch_kind("bool", (True, False)),
        *column_kinds(),
        Kind("pandas", "category of objects", (*INTEGERS, None), categories_of_objects),
    ]
    if kind.is_installed
]


def lists_of(kind: Kind, most: int = 12, least: int = 1) -> Any:
    """Lists of items of a kind."""
    return st.lists(st.sampled_from(kind.items), min_size=least, max_size=most)


# ---- items
def items_of(values: Any) -> list[Any]:
    """The items of any array or column, nulls as None."""
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    if type(values).__module__.startswith("polars"):
        return list(values.to_list())
    if type(values).__module__.startswith("torch"):
        return list(values.reshape(-1).tolist())
    held = list(np.asarray(values, object) if type(values).__module__.startswith("pandas") else values.reshape(-1))
    return [
        None if type(item).__name__ in ("NAType", "NaTType") or (item != item and is_object(values)) else item
        for item in held
    ]


def is_object(values: Any) -> bool:
    return not isinstance(values, np.ndarray) or values.dtype == object


def canonical(item: Any) -> Any:
    """Of an item, what is equal and has one hash for equal items."""
    if item is None:
        return NULL
    if isinstance(item, np.datetime64 | np.timedelta64):
        return NAN if np.isnat(item) else int(item.astype(np.int64))
    if isinstance(item, np.void):
        item = item.item()
    if isinstance(item, tuple):
        return tuple(map(canonical, item))
    return NAN if item != item else item


def shown(items: Sequence[Any]) -> list[str]:
    """Items with the signs of their zeros."""
    return [f"{canonical(item)} {math.copysign(1, item) if is_real(item) else ''}" for item in items]


def is_real(item: Any) -> bool:
    return isinstance(item, float | np.floating) and item == item


def in_order(items: Sequence[Any]) -> list[Any]:
    """Items in ascending order: nulls last, and NaN before them."""

    def key(item: Any) -> Any:
        made = canonical(item)
        return (made in (NULL, NAN), made == NULL, 0 if made in (NULL, NAN) else as_number(made))

    return sorted(items, key=key)


def as_number(item: Any) -> Any:
    """Complex numbers as NumPy orders them, and NaN in records last."""
    if isinstance(item, complex):
        return (item.real, item.imag)
    return tuple((part == NAN, 0 if part == NAN else part) for part in item) if isinstance(item, tuple) else item


# ---- numbers of several types
NUMBERS = [0, 1, -1, 2, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 0.5, 2.0**53, 2.0**63, 2.0**64, True]


def fitting(dtype: str) -> list[Any]:
    """The numbers that a type has."""
    held = []
    for number in NUMBERS:
        try:
            made = np.array([number]).astype(dtype) if isinstance(number, float) else np.array([number], dtype)
        except OverflowError:
            continue
        if made[0].item() == number:
            held.append(made[0])
    return held


# ---- the oracle
def is_among(item: Any, others: list[Any], equal_nan: bool, equal_nulls: bool) -> bool:
    made = canonical(item)
    return (
        not (made == NAN and not equal_nan)
        and not (made == NULL and not equal_nulls)
        and made in map(canonical, others)
    )


def joined(left: list[Any], right: list[Any], how: str, nulls: str) -> tuple[list[int], list[int] | None]:
    """What a join of two lists answers: every left item is compared with every right one."""

    def keys_of(items: list[Any]) -> list[Any]:
        return [list(made) if isinstance(made, tuple) else made for made in map(canonical, items)]

    def is_missing(key: Any) -> bool:
        return key in (NAN, NULL)

    ours, others = keys_of(left), keys_of(right)
    pairs = [
        (i, j)
        for (i, key), (j, other) in itertools.product(enumerate(ours), enumerate(others))
        if key == other and (nulls == "equal" or not is_missing(key))
    ]
    lonely = [i for i in range(len(left)) if i not in {i for i, _ in pairs}]
    if how in ("semi", "anti"):
        return (lonely if how == "anti" else sorted({i for i, _ in pairs})), None
    if how in ("left", "outer"):
        pairs = sorted([*pairs, *((i, -1) for i in lonely)])
    if how in ("right", "outer"):
        pairs += [(-1, j) for j in range(len(right)) if j not in {j for _, j in pairs}]
    if how == "right":
        pairs.sort(key=lambda pair: pair[1])
    return [i for i, _ in pairs], [j for _, j in pairs]


class Oracle:
    """The distinct items of a list, by a dict of Python's.

    Parameters
    ----------
    nan, null
        ``"one"``, ``"apart"`` or ``"dropped"``.
    """

    def __init__(self, items: Sequence[Any], nan: str = "one", null: str = "one") -> None:
        numbers: dict[Any, int] = {}
        self.firsts: list[int] = []
        self.codes: list[int] = []
        for at, item in enumerate(items):
            key = canonical(item)
            rule = {NAN: nan, NULL: null}.get(key, "one")
            if rule == "dropped":
                self.codes.append(-1)
                continue
            code = numbers.setdefault((key, at) if rule == "apart" else key, len(numbers))
            if code == len(self.firsts):
                self.firsts.append(at)
            self.codes.append(code)
        self.counts = [self.codes.count(code) for code in range(len(numbers))]
        self.values = [items[at] for at in self.firsts]
