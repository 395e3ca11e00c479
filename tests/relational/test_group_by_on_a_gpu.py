"""group_by of arrays on a GPU: emulated, beside lists of Python's and NumPy, and on a real one."""

from __future__ import annotations

import math
from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warphash
from support.aggregates import ORACLES, as_shown, place
from support.emulated_arrays import LIBRARIES, pass_for_arrays_of
from support.engines import missing
from support.refusals import refusing
from support.relational import Oracle, in_order, shown
from warphash.relational.aggregates import AGGREGATES
from warphash.runtime.devices import engine_for

emulated = pytest.mark.skipif(bool(missing("emulated")), reason="needs the emulated engine")
few = settings(max_examples=10, deadline=None)

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = (*INTEGERS, "float16", "float32", "float64", "bool")
MARK = 0x5EED << 40
"""Added to keys and values: no counter and no position is as large."""


def edges(dtype: str) -> list[Any]:
    """Values of a type that are equal often, and the ends of its range."""
    if dtype == "bool":
        return [True, False]
    if np.dtype(dtype).kind == "f":
        return [0.0, -0.0, 1.5, -2.25, 6e4, math.inf, math.nan]
    info = np.iinfo(dtype)
    return [0, 1, 3, info.max, info.max - 1, info.min]


@pytest.fixture(params=LIBRARIES)
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes an array on the emulated GPU."""
    if missing("emulated"):
        pytest.skip("needs the emulated engine")
    return pass_for_arrays_of(request.param, monkeypatch)


def listed(made: Any) -> list[Any]:
    return [item.item() for item in np.asarray(made)]


def roots(array: Any) -> Any:
    """The square roots of an array, by its library."""
    return array.sqrt() if hasattr(array, "sqrt") else np.sqrt(array)


@st.composite
def tables(draw: st.DrawFn, dtype: str) -> tuple[list[int], list[Any]]:
    """Keys, and a value for each, as the type rounds it."""
    n = draw(st.integers(0, 20))
    values = draw(st.lists(st.sampled_from(edges(dtype)), min_size=n, max_size=n))
    return draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), np.array(values, dtype).tolist()


def rows_of(keys: list[int]) -> list[list[int]]:
    """The rows of each key, in the order in which keys first appear."""
    codes = Oracle(keys).codes
    return [[row for row, code in enumerate(codes) if code == group] for group in range(max(codes, default=-1) + 1)]


@pytest.mark.parametrize("operation", ORACLES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operations(make: Any, dtype: str, operation: str) -> None:
    @few
    @given(tables(dtype))
    def check(table: tuple[list[int], list[Any]]) -> None:
        keys, values = table
        column = make(values, dtype)
        answer = warphash.group_by(make(keys, "i4")).agg(answer=(column, operation))["answer"]
        held = [[values[row] for row in rows] for rows in rows_of(keys)]
        # PyTorch's square root of an array on a CPU differs by the kind of the processor, so it is the library's own.
        oracle = ORACLES["var" if operation == "std" else operation]
        expected = [oracle(each, np.dtype(dtype).kind) for each in held]
        expected = [math.nan if item is None else item for item in expected]
        if operation == "std":
            expected = listed(roots(make(expected, "f8")))
        assert type(answer) is type(column)
        assert list(map(as_shown, listed(answer))) == list(map(as_shown, expected))

    check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_a_group(make: Any, dtype: str) -> None:
    """Values and positions that a group has, and not what is made of all of its values."""

    @few
    @given(tables(dtype))
    def check(table: tuple[list[int], list[Any]]) -> None:
        keys, values = table
        column = make(values, dtype)
        grouped = warphash.group_by(make(keys, "i4"))
        names = ("first", "last", "argmin", "argmax", "nunique", "count")
        answers = grouped.agg(**{name: (column, name) for name in names})
        made = {name: listed(answers[name]) for name in answers}
        rows = rows_of(keys)
        held = [[values[row] for row in each] for each in rows]
        assert shown(made["first"]) == shown([each[0] for each in held])
        assert shown(made["last"]) == shown([each[-1] for each in held])
        assert made["argmin"] == [each[place([values[row] for row in each], False)] for each in rows]  # type: ignore[index]
        assert made["argmax"] == [each[place([values[row] for row in each], True)] for each in rows]  # type: ignore[index]
        assert made["nunique"] == [len(Oracle(each).values) for each in held]
        assert made["count"] == listed(grouped.size()) == list(map(len, rows))
        assert listed(grouped.keys) == Oracle(keys).values
        assert listed(grouped.codes) == Oracle(keys).codes
        offsets, order = map(listed, grouped.rows())
        assert [order[begin:end] for begin, end in pairwise(offsets)] == rows

    check()


@pytest.mark.parametrize("nulls", ["key", "drop"])
@pytest.mark.parametrize("order", ["first", "sorted", "any"])
@pytest.mark.parametrize("columns", [1, 2])
def test_keys_with_nan(make: Any, nulls: Any, order: Any, columns: int) -> None:
    @few
    @given(st.lists(st.sampled_from([2.0, math.nan, -0.0, 0.0, -7.5]), max_size=12))
    def check(items: list[float]) -> None:
        one = Oracle(items, nan="dropped" if nulls == "drop" else "one")
        array = make(items, "f8")
        grouped = warphash.group_by(array if columns == 1 else (array,) * 2, nulls=nulls, order=order)
        keys = shown(in_order(one.values) if order == "sorted" else one.values)
        codes = [-1 if code < 0 else keys.index(shown(one.values)[code]) for code in one.codes]
        for made in (grouped.keys,) if columns == 1 else grouped.keys:
            assert type(made) is type(array) and shown(list(np.asarray(made))) == keys
        assert listed(grouped.codes) == codes
        rows = [[row for row, code in enumerate(codes) if code == group] for group in range(len(keys))]
        values = make([2.0**row for row in range(len(items))], "f8")
        assert listed(grouped.sum(values)) == [sum(2.0**row for row in each) for each in rows]
        offsets, order_of_rows = map(listed, grouped.rows())
        assert [order_of_rows[begin:end] for begin, end in pairwise(offsets)] == rows

    check()


class Many:
    """Many rows, and what NumPy makes of their groups. All floating-point sums are exact."""

    def __init__(self, n: int, distinct: int, dtype: str) -> None:
        generator = np.random.default_rng(n + distinct)
        self.keys = MARK + generator.integers(0, distinct, n) ** 2
        self.keys[: n // 3] = self.keys[0]  # one heavy key
        low = 0 if np.dtype(dtype).kind == "u" else -50
        self.values = generator.integers(low, 50, n).astype(dtype)
        _, firsts, codes = np.unique(self.keys, return_index=True, return_inverse=True)
        self.codes, self.size = np.argsort(np.argsort(firsts))[codes], len(firsts)

    def expected(self) -> dict[str, Any]:
        values = self.values.astype({"f": "f8", "u": "u8"}.get(self.values.dtype.kind, "i8"))
        sizes, true = np.bincount(self.codes), np.bincount(self.codes, values != 0)
        total = self.made(np.add, 0, values)
        made = {"sum": total, "count": sizes, "mean": total / sizes, "any": true > 0, "all": true == sizes}
        made |= {"min": self.made(np.minimum, values.max(), values), "max": self.made(np.maximum, values.min(), values)}
        return made if values.dtype.kind == "f" else made | {"prod": self.made(np.multiply, 1, values)}

    def made(self, operation: np.ufunc, first: Any, values: Any) -> Any:
        made = np.full(self.size, first, values.dtype)
        operation.at(made, self.codes, values)
        return made


MOST_OF_A_BLOCK = 6 << 10
"""Words that a block keeps in memory of its own (``group_records/gpu/accumulate.cuh``)."""


@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
@pytest.mark.parametrize(("n", "distinct"), [(9_000, 1), (9_000, 40), (9_000, 1_500), (20_000, 2 * MOST_OF_A_BLOCK)])
def test_many_rows(make: Any, n: int, distinct: int, dtype: str) -> None:
    """Groups with several words of a block each, with one, and with none."""
    many = Many(n, distinct, dtype)
    expected = many.expected()
    column = make(many.values, dtype)
    made = warphash.group_by(make(many.keys, "i8")).agg(**{name: (column, name) for name in expected})
    for name, right in expected.items():
        assert np.array_equal(np.asarray(made[name]), right), name


@pytest.mark.parametrize("operation", AGGREGATES)
def test_keys_and_values_stay_on_the_gpu(make: Any, operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host reads counters of the engine that are no keys and no values, and no array of the library."""
    engine, read = engine_for("emulated"), []
    to_host = engine.to_host

    def noted(*args: Any) -> Any:
        read.append(to_host(*args))
        return read[-1]

    keys = np.random.default_rng(5).integers(0, 300, 3000) + MARK
    array, column = make(keys, "i8"), make(keys[::-1].copy(), "i8")
    with monkeypatch.context() as patched:
        patched.setattr(engine, "to_host", noted)
        for name in ("cpu", "numpy", "tolist", "__array__") if LIBRARIES[0] == "torch" else ():
            patched.setattr(f"torch.Tensor.{name}", None)
        made = warphash.group_by(array).agg(answer=(column, operation))["answer"]
    right = warphash.group_by(keys).agg(answer=(keys[::-1], operation))["answer"]
    words = np.concatenate(
        [array.reshape(-1).view(np.uint8)[: array.nbytes // 8 * 8].view(np.uint64) for array in read]
    )
    assert len(words) and not (words >= MARK).any()
    assert type(made) is type(array)
    assert np.asarray(made) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("operation", ["mean", "var", "argmax", "last", "nunique", "median"])
@pytest.mark.parametrize("once", [True, False])
def test_refused_memory_gives_no_wrong_answer(make: Any, operation: str, once: bool) -> None:
    keys, values = make([0.5, math.nan, -0.0, 0.0, 7.0, 0.5], "f8"), make([1, 2, 3, 4, 5, 6], "u2")

    def call() -> list[str]:
        answer = warphash.group_by(keys).agg(answer=(values, operation))["answer"]  # to which its memory belongs
        return shown(list(np.asarray(answer)))

    expected, refused = call(), 0
    for first in count(1):
        with refusing(engine_for("emulated"), first, once=once) as refusals:
            try:
                assert call() == expected
            except MemoryError:
                refused += 1
        if not refusals.refused:
            break
    assert refused > 0 and call() == expected


def test_what_is_refused(make: Any) -> None:
    array, host = make([1, 2], "i8"), np.arange(2)
    with pytest.raises(warphash.DeviceError, match=r"one device.*copy one of them"):
        warphash.group_by(array).sum(host)
    with pytest.raises(warphash.DeviceError, match=r"in host memory, as the keys are.*copy one of them"):
        warphash.group_by(host).sum(array)
    with pytest.raises(warphash.ShapeError, match="for each of 2 keys, got 3"):
        warphash.group_by(array).sum(make([1, 2, 3], "i8"))
    with pytest.raises(warphash.ParameterError, match="expected one of size"):
        warphash.group_by(array).agg(x=(array, "total"))


@pytest.mark.cuda
@pytest.mark.skipif(bool(missing("cuda")), reason=missing("cuda"))
@pytest.mark.parametrize("library", ["torch", "cupy"])
@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
@pytest.mark.parametrize(("n", "distinct"), [(9_000, 1), (300_000, 40), (300_000, 1_500), (900_000, 200_000)])
def test_many_rows_on_a_real_gpu(library: str, n: int, distinct: int, dtype: str) -> None:
    module = pytest.importorskip(library)
    many = Many(n, distinct, dtype)
    expected = many.expected()
    keys, column = (
        module.as_tensor(part, device="cuda") if library == "torch" else module.asarray(part)
        for part in (many.keys, many.values)
    )
    made = warphash.group_by(keys).agg(**{name: (column, name) for name in expected})
    for name, right in expected.items():
        assert type(made[name]) is type(keys)
        answer = made[name].cpu().numpy() if library == "torch" else module.asnumpy(made[name])
        assert np.array_equal(answer, right), name
