"""What an array cannot carry over, such as a unit or a scale, is refused and never dropped; each mend is followed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warphash import DtypeError, HashMap, HashSet, ShapeError, WarphashError


class Quantity(np.ndarray):
    """Numbers with a unit."""

    unit: str | None

    def __array_finalize__(self, other: Any) -> None:
        self.unit = getattr(other, "unit", None)


class Sub(np.ndarray):
    """Nothing but its elements."""


class Measured:
    """What makes a NumPy array of itself, and has a unit."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.arange(3)


def quantity(unit: str | None = "km") -> Quantity:
    made = np.arange(3).view(Quantity)
    made.unit = unit
    return made


class Slotted(np.ndarray):
    """Numbers with a unit that is no item of a ``__dict__``."""

    __slots__ = ("scale",)
    scale: Any


class Described(np.ndarray):
    """Numbers whose class names the unit."""

    __slots__ = ()

    @property
    def unit(self) -> str:
        return "km"


class OwnRecords(np.recarray):
    """Records with a unit."""


class OwnMatrix(np.matrix):
    """A matrix with a unit."""


def given_unit(array: Any, name: str = "unit") -> Any:
    setattr(array, name, "km")
    return array


def of_torch(kind: str) -> Any:
    torch = pytest.importorskip("torch")
    made = torch.arange(3)
    return given_unit(made if kind == "tensor" else torch.nn.Parameter(made, requires_grad=False))


ARRAYS: dict[str, Callable[[], Any]] = {
    "unit": quantity,
    "slots": lambda: given_unit(np.arange(3).view(Slotted), "scale"),
    "property": lambda: np.arange(3).view(Described),
    "records": lambda: given_unit(np.arange(3).view(OwnRecords)),
    "tensor": lambda: of_torch("tensor"),
    "parameter": lambda: of_torch("parameter"),
    "units": lambda: Measured(units="km"),
    "attrs": lambda: Measured(attrs={"units": "km"}),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_numbers_with_a_unit(name: str) -> None:
    given = ARRAYS[name]()
    table, values = HashSet("i8", device="cpu"), HashMap("i8", "i8", device="cpu")
    for verb in (
        *(HashSet.from_arrays, table.insert, table.contains, lambda array: table.contains([array, array])),
        *(lambda array: values.insert([1, 2, 3], array), lambda array: values.find([1, 2, 3], array)),
    ):
        with pytest.raises(DtypeError, match=r"(unit|scale).*does not keep: give |the default is no"):
            verb(given)
    assert len(HashSet.from_arrays(np.asarray(given), device="cpu")) == 3 and len(table) == len(values) == 0


def test_arrays_that_are_taken() -> None:
    for array in (quantity(None), np.arange(3).view(Sub), np.matrix([0, 1, 2]), Measured(), Measured(attrs={"a": 1})):
        assert HashSet(np.int64, device="cpu").insert(array).sum() == 3
    record = np.rec.array([(1, 2)], dtype=[("a", "i4"), ("unit", "i4")])
    assert HashSet.from_arrays(record, device="cpu").contains(np.asarray(record)).all()


def test_a_mapped_file_and_a_matrix_with_a_unit(tmp_path: Path) -> None:
    """NumPy itself gives attributes to both."""
    for array in (np.memmap(tmp_path / "keys", "i8", "w+", shape=1), np.matrix([0]).view(OwnMatrix)):
        assert len(HashSet.from_arrays(array, device="cpu")) == 1
        with pytest.raises(DtypeError, match="the attribute unit"):
            HashSet.from_arrays(given_unit(array), device="cpu")


@pytest.mark.parametrize("where", ["attrs", "attribute"])
@pytest.mark.parametrize("make", ["Series", "DataFrame", "strings", "records"])
def test_columns_of_pandas_with_a_unit(make: str, where: str) -> None:
    pd = pytest.importorskip("pandas")
    given = {
        "Series": lambda: pd.Series([1, 2]),
        "DataFrame": lambda: pd.DataFrame({"unit": [1, 2], "b": [3, 4]}),
        "strings": lambda: pd.Series(["a", "b"]),
        "records": lambda: pd.DataFrame({"units": [1, 2]}),
    }[make]()
    if where == "attrs":
        given.attrs["units"] = "km"
    else:
        object.__setattr__(given, "unit", "km")
    key = {"strings": "str", "records": [("units", "i8")], "DataFrame": ("i8", 2), "Series": "i8"}[make]
    tables = [
        HashSet(key, device="cpu", nulls=nulls) for nulls in (["raise"] if make == "records" else ["raise", "key"])
    ]
    verbs = [verb for table in tables for verb in (table.insert, table.contains)]
    for verb in [lambda keys: HashSet.from_arrays(keys, device="cpu"), *verbs]:
        with pytest.raises(DtypeError, match=r"with the unit km.*: give a copy without this attribute"):
            verb(given)
    given = given.copy()
    given.attrs.clear()
    assert all(verb(given).all() for verb in verbs)


def test_the_unit_of_a_time_is_no_unit_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    for times in (pd.DatetimeIndex(["2024-01-01"]), pd.array(pd.to_timedelta([1], unit="s"))):
        assert len(HashSet.from_arrays(times, device="cpu")) == 1


@pytest.mark.parametrize(("key", "item"), [("str", "a"), ("bytes", b"a")])
def test_text_with_a_unit(key: str, item: Any) -> None:
    table, items = HashSet(key), np.array([item, item * 2])
    units = [given_unit(items.view(Quantity)), given_unit(items.view(Slotted), "scale"), items.view(Described)]
    for given in (*units, np.char.array(items), np.ma.array(items, mask=[True, False])):
        for verb in (table.insert, table.contains):
            with pytest.raises(WarphashError, match=r"unit|scale|chararray|mask"):
                verb(given)
    assert table.insert(items.view(Sub)).all() and table.contains(np.asarray(units[0])).all()


def test_attributes_of_a_tensor_that_are_no_unit() -> None:
    torch = pytest.importorskip("torch")
    tensor = given_unit(torch.arange(3), "note")
    table = HashSet.from_arrays(tensor, device="cpu")
    assert table.contains(tensor).all() and table.contains(torch.nn.Buffer(tensor)).all()
    given_unit(tensor)
    with pytest.raises(DtypeError, match=r"unit km.*give tensor\.detach\(\)"):
        table.contains(tensor)
    assert table.contains(tensor.detach()).all()


def test_an_array_that_ignores_white_space() -> None:
    given = np.char.array(["a ", "b"])
    with pytest.raises(DtypeError, match=r"white space.*give numpy\.asarray\(array\)"):
        HashSet.from_arrays(given, device="cpu")
    assert "a " in HashSet.from_arrays(np.asarray(given), device="cpu")


def test_masks_in_lists() -> None:
    masked = np.ma.array([1, 2], mask=[True, False])
    for given in (
        [masked, masked],
        [np.ma.masked, 1],
        list(np.ma.array([(1, 2)], [("a", "i4"), ("b", "i4")], mask=[(0, 1)])),
    ):
        with pytest.raises(WarphashError):
            HashSet.from_arrays(given, device="cpu")


@pytest.mark.parametrize("options", [{}, {"nulls": "key"}])
def test_a_masked_item_is_no_key(options: dict[str, str]) -> None:
    table = HashMap("u8", "u8", device="cpu", **options)
    table.insert([0, 1], [2, 3])
    assert np.ma.masked not in table
    with pytest.raises(DtypeError, match="a masked one: leave it out"):
        table.insert(np.ma.masked, 5)


def test_extension_types_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    months = pd.Series(pd.period_range("2024", periods=2, freq="M"))
    with pytest.raises(DtypeError, match=r"series\.dt\.to_timestamp\(\)"):
        HashSet.from_arrays(months, device="cpu")
    assert len(HashSet.from_arrays(months.dt.to_timestamp(), device="cpu")) == 2
    intervals = pd.interval_range(0, 3)
    with pytest.raises(DtypeError, match="both ends as the columns of a frame"):
        HashSet.from_arrays(intervals, device="cpu")
    ends = pd.DataFrame({"left": intervals.left, "right": intervals.right})
    assert len(HashSet.from_arrays(ends, device="cpu")) == 3
    sparse = pd.Series(pd.arrays.SparseArray([1, 0, 0]), index=list("abc"))
    assert HashSet.from_arrays(sparse, device="cpu").contains(sparse).loc["c"]
    numbers = pd.Series(pd.Categorical([5, 7, 5]))
    assert len(HashSet.from_arrays(numbers, device="cpu")) == 2


# ---- tensors


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", ["strided", pytest.param("jagged", marks=pytest.mark.slow)])  # a long import
def test_nested_tensors(layout: str) -> None:
    torch = pytest.importorskip("torch")
    parts = [torch.tensor([1, 2]), torch.tensor([3])]
    nested = torch.nested.nested_tensor(parts, layout=getattr(torch, layout))
    for verb in (HashSet.from_arrays, HashSet("i8", device="cpu").contains, HashSet("str").contains):
        with pytest.raises(WarphashError):
            verb(nested)
    with pytest.raises(ShapeError, match="unbind"):
        HashSet.from_arrays(nested)
    assert len(HashSet.from_arrays(torch.cat(nested.unbind()), device="cpu")) == 3


@pytest.mark.filterwarnings("ignore")
def test_quantized_tensors() -> None:
    torch = pytest.importorskip("torch")
    given = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 3, torch.qint32)
    with pytest.raises(DtypeError, match="with a scale"):
        HashSet.from_arrays(given, device="cpu")
    assert len(HashSet.from_arrays(given.int_repr(), device="cpu")) == 2
    assert len(HashSet.from_arrays(given.dequantize(), device="cpu", floats="bits")) == 2


def test_subclasses_of_tensors() -> None:
    torch = pytest.importorskip("torch")

    class Unit(torch.Tensor):
        pass

    given = torch.tensor([1, 2]).as_subclass(Unit)
    assert len(HashSet.from_arrays(given, device="cpu")) == 2
    given.unit = "km"
    with pytest.raises(DtypeError, match=r"attribute unit.*give tensor\.as_subclass\(torch\.Tensor\)"):
        HashSet.from_arrays(given, device="cpu")
    assert len(HashSet.from_arrays(given.as_subclass(torch.Tensor), device="cpu")) == 2
    assert len(HashSet.from_arrays(torch.nn.Parameter(torch.tensor([1, 2]), requires_grad=False), device="cpu")) == 2


@pytest.mark.filterwarnings("ignore")
def test_tensors_that_have_no_memory_of_their_own() -> None:
    torch = pytest.importorskip("torch")
    fakes, masks = pytest.importorskip("torch._subclasses.fake_tensor"), pytest.importorskip("torch.masked")
    plain = torch.tensor([1, 2])
    for given in (fakes.FakeTensorMode().from_tensor(plain), masks.masked_tensor(plain, plain > 1)):
        with pytest.raises(DtypeError, match="whose values lie in its memory"):
            HashSet.from_arrays(given, device="cpu")
    table = HashSet("i8", device="cpu")
    with pytest.raises(DtypeError, match="as by vmap"):
        torch.vmap(table.contains)(torch.tensor([[1, 2]]))
    freed = torch.tensor([1, 2])
    freed.untyped_storage().resize_(0)
    for call in (lambda: table.contains(freed), lambda: torch.func.functionalize(table.contains)(plain)):
        with pytest.raises(DtypeError, match="got one that has none"):
            call()
    assert table.contains(torch.zeros(0, dtype=torch.int64)).shape == (0,)
    with pytest.raises(WarphashError, match="on meta"):
        table.contains(torch.zeros(2, dtype=torch.int64, device="meta"))


def test_arrays_of_jax_without_values() -> None:
    jax = pytest.importorskip("jax")
    table = HashSet("i4", device="cpu")
    with pytest.raises(DtypeError, match="traces or has deleted"):
        jax.jit(table.contains)(jax.numpy.arange(3, dtype="i4"))
    deleted = jax.numpy.arange(3, dtype="i4")
    deleted.delete()
    keys = jax.random.key(0)
    for given in (deleted, keys):
        with pytest.raises(DtypeError):
            table.contains(given)
    assert not table.contains(jax.random.key_data(keys).astype("i4")).any()


def test_what_fails_to_tell_what_it_is() -> None:
    class Closed:
        @property
        def dtype(self) -> Any:
            raise RuntimeError("closed")

        shape = ndim = dtype

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            raise RuntimeError("closed")

        def __repr__(self) -> str:
            raise RuntimeError("closed")

    given = Closed()
    tables = HashMap("i8", "i8", device="cpu"), HashMap("str", "i8"), HashMap("i8", "i8", nulls="key")
    for table in tables:
        for verb in (
            table.find,
            table.__getitem__,
            lambda keys, t=table: t.get(keys, 0),
            lambda keys, t=table: t.find([keys]),
        ):
            with pytest.raises(WarphashError):
                verb(given)
        assert given not in table
    for make in (HashSet.from_arrays, lambda keys: HashMap.from_arrays([1], keys)):
        with pytest.raises(DtypeError):
            make(given)
