"""What an array has beside its numbers: names, metadata, masks, codes, attributes of subclasses.

A table answers rightly by the names, or refuses with a `WarphashError`; what it cannot carry over, it never drops. No
error of another library comes out, and nothing that one table was given shows in another.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.containers import as_numpy, installed
from fuzz.example import Example, require
from warphash import HashMap, HashSet, WarphashError

Rows = list[dict[str, int]]


def run(example: Example) -> None:
    example.choose_design()
    example.choose([_names, _names, _metadata, _masks, _subclasses, _codes, _tensors, _texts, _zones, _unions])(example)


def _refusable(call: Callable[[], Any]) -> Any:
    """The answer of a call; None if it was refused."""
    try:
        return call()
    except WarphashError:
        return None


# ---- names


def _frames() -> dict[str, Callable[[Rows, list[str]], Any]]:
    """Makers of named columns, by library: of rows, with the columns in an order."""
    makers: dict[str, Callable[[Rows, list[str]], Any]] = {"records": _records}
    if installed("pandas"):
        import pandas

        makers["pandas"] = lambda rows, names: pandas.DataFrame({name: _column(rows, name) for name in names})
    if installed("polars"):
        import polars

        makers["polars"] = lambda rows, names: polars.DataFrame({name: _column(rows, name) for name in names})
        makers["polars struct"] = lambda rows, names: makers["polars"](rows, names).to_struct("s")
    if installed("pyarrow"):
        import pyarrow

        makers["pyarrow table"] = lambda rows, names: pyarrow.table({name: _column(rows, name) for name in names})
        makers["pyarrow batch"] = lambda rows, names: pyarrow.RecordBatch.from_pydict(
            {name: _column(rows, name) for name in names}
        )
        makers["pyarrow struct"] = lambda rows, names: pyarrow.StructArray.from_arrays(
            [pyarrow.array(_column(rows, name)) for name in names], names
        )
    if installed("duckdb", "pandas"):
        import duckdb

        makers["duckdb"] = lambda rows, names: duckdb.from_df(makers["pandas"](rows, names))
    return makers


def _records(rows: Rows, names: list[str]) -> Any:
    made = np.zeros(len(rows), [(name, "i8") for name in names])
    for name in names:
        made[name] = _column(rows, name)
    return made


def _column(rows: Rows, name: str) -> Any:
    return np.array([row[name] for row in rows], "i8")


def _names(example: Example) -> None:
    """Tables of rows with named columns, asked with other orders, other names, and other libraries."""
    makers = _frames()
    count = example.between(1, 3)
    names = ["a", "b", "c"][:count]
    held = [{name: example.between(0, 3) for name in names} for _ in range(example.between(1, 12))]
    asked = [{name: example.between(0, 3) for name in names} for _ in range(12)]
    made_by, asked_by = example.choose(sorted(makers)), example.choose(sorted(makers))
    if example.happens(0.5):
        asked_by = made_by
    order = [str(name) for name in example.rng.permutation(names)]
    example.note(f"made of {made_by} {names}, asked with {asked_by} {order}")
    given = makers[made_by](held, names)
    table = _refusable(lambda: HashSet.from_arrays(given, design=example.design, device="cpu"))
    if table is None:
        return
    right = [row in held for row in asked]
    answer = _refusable(lambda: table.contains(makers[asked_by](asked, order)))
    if answer is None:
        require(order != names or made_by != asked_by, f"{made_by} of the same columns are refused")
    else:
        require(as_numpy(answer).tolist() == right, f"rows of {asked_by} are matched wrongly with those of {made_by}")
    _other_names(example, table, makers[asked_by], asked_by, names, asked)
    _updates_by_name(example, table, makers[asked_by], asked_by, order, held)


def _other_names(example: Example, table: Any, make: Any, library: str, names: list[str], asked: Rows) -> None:
    """Columns of other names must not be taken for the table's."""
    others = [f"{name}x" for name in names]
    renamed = [{other: row[name] for other, name in zip(others, names, strict=True)} for row in asked]
    answer = _refusable(lambda: table.contains(make(renamed, others)))
    require(answer is None or len(names) == 1, f"{library} with other names of columns is taken")


def _updates_by_name(example: Example, table: Any, make: Any, library: str, order: list[str], held: Rows) -> None:
    """An update with the columns in another order adds the rows by their names, or is refused."""
    new = [{name: example.between(0, 5) for name in order} for _ in range(5)]
    if _refusable(lambda: table.insert(make(new, order))) is None:
        return
    right = {tuple(sorted(row.items())) for row in held + new}
    require(len(table) == len(right), f"an update with {library} in another order adds other rows")


# ---- metadata


def _metadata(example: Example) -> None:
    """What a dtype carries beside its layout does not show in tables of the plain dtype."""
    plain = example.choose(
        [
            *(np.dtype(name) for name in ("i1", "i2", "u4", "i8", "M8[ns]", "S3", "U2", "V5")),
            np.dtype([("x", "i4"), ("y", "S3")]),
            np.dtype([("p", [("q", "i2"), ("r", "i2")]), ("s", "i4")]),
            np.dtype(("i4", (2,))),
        ]
    )
    name = example.choose(sorted(DECORATIONS))
    decorated = DECORATIONS[name](plain)
    if decorated is None:
        return
    example.note(f"{name} of {plain}")
    for made in example.choose([[decorated, plain], [plain, decorated, plain]]):
        table = _refusable(lambda made=made: HashMap(made, made, design=example.design, device="cpu"))
        if made is decorated or table is None:
            _refusable(lambda made=made: HashSet.from_arrays(np.zeros(2, made), device="cpu").keys())
            continue
        base = plain.base
        table.assign(np.ones(3, plain), np.zeros(3, plain))
        for array in (table.keys(like="numpy"), table.to_arrays(like="numpy")[1]):
            require(_decorations(array.dtype) == _decorations(base), f"{name} shows in another table", array.dtype)
        with tempfile.TemporaryDirectory() as folder:
            table.save(Path(folder) / "t")
            HashMap.load(Path(folder) / "t", device="cpu")


def _with_metadata(plain: np.dtype[Any]) -> Any:
    if plain.subdtype is not None:
        return np.dtype((np.dtype(plain.base, metadata={"unit": "m"}), plain.shape))
    return np.dtype(plain, metadata={"unit": "m"})


def _with_metadata_in_a_field(plain: np.dtype[Any]) -> Any:
    if plain.names is None:
        return None
    return np.dtype([(name, np.dtype(plain[name], metadata={"unit": "m"})) for name in plain.names])


def _with_titles(plain: np.dtype[Any]) -> Any:
    if plain.names is None:
        return None
    return np.dtype([((f"title of {name}", name), plain[name]) for name in plain.names])


def _as_records(plain: np.dtype[Any]) -> Any:
    return np.dtype((np.record, plain)) if plain.names is not None else None


def _aligned(plain: np.dtype[Any]) -> Any:
    return np.dtype(plain.descr, align=True) if plain.names is not None else None


DECORATIONS: dict[str, Callable[[np.dtype[Any]], Any]] = {
    "metadata": _with_metadata,
    "metadata of a field": _with_metadata_in_a_field,
    "titles": _with_titles,
    "np.record": _as_records,
    "alignment": _aligned,
    "other byte order": lambda plain: plain.newbyteorder(),
}


def _decorations(dtype: np.dtype[Any]) -> Any:
    """All that a dtype carries beside its layout."""
    fields = [(name, dtype.fields[name][2:], _decorations(dtype[name])) for name in dtype.names or () if dtype.fields]
    return dtype.type, dict(dtype.metadata or {}), dtype.isalignedstruct, dtype.byteorder, fields


# ---- masks and nulls


def _masks(example: Example) -> None:
    """A masked element is refused, or a null; it is never the number behind its mask."""
    data = example.rng.integers(0, 4, 8)
    mask = example.rng.random(8) < 0.4
    masked = np.ma.MaskedArray(data, mask)
    rule = example.choose(["raise", "drop", "key"])
    example.note(f"masked array, nulls={rule}")
    table: Any = HashSet("i8", design=example.design, device="cpu", nulls=rule)
    table.insert(data)
    for what, given in _with_nulls(masked).items():
        answer = _refusable(lambda given=given: table.contains(given))
        if answer is not None and mask.any():
            wrong = np.asarray(as_numpy(answer), bool)[mask]
            require(not wrong.any(), f"an element that is masked is found: {what}, nulls={rule}")
        new: Any = HashSet("i8", design=example.design, device="cpu", nulls=rule)
        if _refusable(lambda given=given, new=new: new.insert(given)) is not None:
            right = len(set(data[~mask].tolist())) + (rule == "key" and bool(mask.any()))
            require(rule != "raise" or not mask.any(), f"nulls are taken: {what}")
            require(len(new) == right, f"masked elements are added: {what}, nulls={rule}", f"{len(new)}, not {right}")


def _with_nulls(masked: Any) -> dict[str, Any]:
    """Nulls as each library has them."""
    listed = masked.tolist()
    made: dict[str, Any] = {"numpy.ma": masked, "numpy.ma 2-D": masked.reshape(2, 4)}
    if installed("pandas"):
        import pandas

        made["pandas"] = pandas.array(listed, dtype="Int64")
        made["pandas.Series"] = pandas.Series(listed, dtype="Int64")
        made["pandas.DataFrame"] = pandas.DataFrame({"a": pandas.array(listed, dtype="Int64")})
        made["pandas.Index"] = pandas.Index(listed, dtype="Int64")
        made["pandas.Categorical"] = pandas.Series(pandas.array(listed, dtype="Int64")).astype("category")
    if installed("polars"):
        import polars

        made["polars"] = polars.Series(listed)
    if installed("pyarrow"):
        import pyarrow

        made["pyarrow"] = pyarrow.array(listed)
        made["pyarrow chunks"] = pyarrow.chunked_array([listed[:3], listed[3:]], pyarrow.int64())
        made["pyarrow dictionary"] = pyarrow.array(listed).dictionary_encode()
    if installed("pandas", "pyarrow"):
        made["pandas of Arrow"] = pandas.Series(listed, dtype="int64[pyarrow]")
    return made


# ---- texts without a length, zones, the kind of arrays


def _texts(example: Example) -> None:
    """Text without a length inside a record is kept whole, or refused."""
    text, other = example.choose(["str", "U", "S", str, bytes]), example.choose(["i8", "u2", "S3"])
    fields: Any = [("name", text), ("n", other)]
    shape = example.choose(["record", "nested", "row", "named row"])
    spec = {"record": fields, "nested": [("r", fields)], "row": (text, 2), "named row": (text, (2,))}[shape]
    second = b"x" if other == "S3" else 1
    rows: list[Any] = [
        ("ada", "ada") if "row" in shape else ("ada", second),
        ("bob", "ada") if "row" in shape else ("bob", second),
    ]
    if text in ("S", bytes):
        rows = [tuple(item.encode() if isinstance(item, str) else item for item in row) for row in rows]
    if shape == "nested":
        rows = [(row,) for row in rows]
    if "row" in shape:
        rows = [list(row) for row in rows]
    example.note(f"{shape} {spec}")
    made = _refusable(lambda: HashSet(spec, design=example.design, device="cpu"))
    if made is not None and _refusable(lambda: made.insert(rows)) is not None:
        require(len(made) == 2, "texts without a length are cut", made.keys())
    values: Any = _refusable(lambda: HashMap("i8", spec, design=example.design, device="cpu"))
    if values is not None and _refusable(lambda: values.assign([1, 2], rows)) is not None:
        held = values.find([1, 2])[0]
        require(held[0].tobytes() != held[1].tobytes(), "texts without a length are cut in values", held)


def _zones(example: Example) -> None:
    """A time with a zone is one key, as an item of a column and alone."""
    if not installed("pandas"):
        return
    import pandas

    zone = example.choose(["UTC", "Asia/Tokyo", "America/New_York"])
    unit = example.choose(["s", "ms", "us", "ns"])
    hours = example.rng.integers(0, 10**5, 4)
    column = pandas.Series(pandas.to_datetime(hours, unit="h").tz_localize("UTC").tz_convert(zone).as_unit(unit))
    example.note(f"{unit} in {zone}: {hours.tolist()}")
    table: Any = _refusable(lambda: HashMap.from_arrays(column, np.arange(4), design=example.design, device="cpu"))
    if table is None:
        return
    require(as_numpy(table.contains(column)).all(), "times with a zone: a column is not found")
    for moment in (column[0], column[0].to_pydatetime()):
        require(moment in table, "times with a zone: an item of the column is not found", repr(moment))
        require(table.get(moment) is not None, "times with a zone: get of an item is None", repr(moment))
    listed = _refusable(lambda: table.contains(list(column)))
    require(listed is not None and np.all(listed), "times with a zone: the list of a column is refused")


def _unions(example: Example) -> None:
    """A table whose first keys come from another one gives arrays of the other's kind, and plans for these."""
    keys = np.arange(5, dtype="u8")
    other: Any = HashMap.from_arrays(keys, keys, design=example.design, device="cpu")
    how = example.choose(["update", "|=", "|", "copy"])
    example.note(how)
    table: Any = other.copy() if how == "copy" else HashMap("u8", "u8", design=example.design, device="cpu")
    if how == "update":
        table.update(other)
    elif how == "|=":
        table |= other
    elif how == "|":
        table = table | other
    require(isinstance(table.keys(), np.ndarray), "keys from another table: keys() is no array", type(table.keys()))
    require(table.plan(5).contains(keys).all(), "keys from another table: a plan misses them")


# ---- subclasses, codes, tensors


class _Quantity(np.ndarray):
    """An array with a unit."""

    unit = ""

    def __array_finalize__(self, of: Any) -> None:
        self.unit = getattr(of, "unit", "")


def _subclasses(example: Example) -> None:
    """An attribute of a subclass is carried over, or refused; the answer of a lookup is right in any case."""
    given = np.arange(6).view(_Quantity)
    given.unit = "mm"
    table: Any = _refusable(lambda: HashSet.from_arrays(given, design=example.design, device="cpu"))
    if table is not None:
        require(getattr(table.keys(), "unit", "") == "mm", "an attribute of a subclass is dropped")
    plain: Any = HashSet.from_arrays(np.arange(3), design=example.design, device="cpu")
    texts = np.char.array(["a ", "b"])
    for what, array in {"matrix": np.matrix([[1, 2]]), "quantity": given}.items():
        answer = _refusable(lambda array=array: plain.contains(array))
        if answer is not None:
            right = [number < 3 for number in np.asarray(array).ravel().tolist()]
            require(as_numpy(answer).ravel().tolist() == right, f"{what}: wrong answers")
    made = _refusable(lambda: HashSet.from_arrays(texts, design=example.design, device="cpu"))
    if made is not None:
        require(sorted(made.keys().tolist()) == ["a ", "b"], "chararray: other strings", made.keys())


def _codes(example: Example) -> None:
    """A code that points nowhere is refused, or a null."""
    if not installed("pyarrow"):
        return
    import pyarrow

    codes = example.rng.integers(-2, 5, 6).astype("i4")
    words = example.choose([["x", "y", "z"], [b"x", b"y", b"z"], [7, 8, 9]])
    rule = example.choose(["raise", "drop", "key"])
    given = pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes), pyarrow.array(words), safe=False)
    example.note(f"codes {codes.tolist()} of {words}, nulls={rule}")
    made = _refusable(lambda: HashSet.from_arrays(given, design=example.design, device="cpu", nulls=rule))
    if made is not None:
        require(((codes >= 0) & (codes < 3)).all(), "codes that point nowhere are taken", list(made))
        require(len(made) == len(set(codes.tolist())), "codes: wrong number of keys")


def _tensors(example: Example) -> None:
    """Tensors that are more than their numbers."""
    if not installed("torch"):
        return
    import torch

    base = torch.tensor([3, 5, 3])
    cases: dict[str, Callable[[], Any]] = {
        "sparse": lambda: base.to_sparse(),
        "meta": lambda: base.to("meta"),
        "nested": lambda: torch.nested.nested_tensor([base, base[:1]]),
        "quantized": lambda: torch.quantize_per_tensor(base.float(), 0.5, 0, torch.qint8),
        "needs a gradient": lambda: base.float().requires_grad_(),
        "conjugate": lambda: torch.tensor([1 + 2j]).conj(),
        "negative view": lambda: torch.tensor([1 + 2j]).conj().imag,
        "bfloat16": lambda: base.to(torch.bfloat16),
        "expanded": lambda: base[:1].expand(4),
        "bool": lambda: base == 3,
        "parameter": lambda: torch.nn.Parameter(base, requires_grad=False),
        "zero-dimensional": lambda: base[0],
    }
    name = example.choose(sorted(cases))
    example.note(name)
    given = cases[name]()
    table: Any = HashSet("i8", design=example.design, device="cpu")
    for call in (lambda: HashSet.from_arrays(given, device="cpu"), lambda: table.contains(given)):
        _refusable(call)
    for rule in ("bits", "value"):
        made = _refusable(lambda rule=rule: HashSet.from_arrays(given, device="cpu", floats=rule))
        if made is not None and name == "negative view":
            require(as_numpy(made.keys()).tolist() == [-2.0], "a negative view loses its sign", made.keys())
