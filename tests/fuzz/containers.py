"""Containers: one array of keys in the forms that callers have, of whichever libraries are installed.

A container holds the values of the array that it was made of, or is not made: `contained` converts it back.
"""

from __future__ import annotations

import array as array_module
import importlib.util
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from fuzz.example import Example
from fuzz.key_types import plain_of

__all__ = ["NUMPY", "VIEWS", "as_numpy", "contained", "installed", "must_be_taken", "odd_scalars"]

Make = Callable[[Example, Any], Any]


def installed(*names: str) -> bool:
    """Whether all these libraries can be imported."""
    return all(importlib.util.find_spec(name) for name in names)


class Protocol:
    """An object that has some of an array's protocols, and nothing else."""

    def __init__(self, held: Any) -> None:
        self._held = held


class OnlyArray(Protocol):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._held if dtype is None else self._held.astype(dtype)


class OnlyInterface(Protocol):
    @property
    def __array_interface__(self) -> Any:
        return self._held.__array_interface__


class OnlyDlpack(Protocol):
    def __dlpack__(self, **options: Any) -> Any:
        return self._held.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._held.__dlpack_device__()


class OnlyArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._held.__arrow_c_array__(requested_schema)


class OnlyArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._held.__arrow_c_stream__(requested_schema)


class Subclass(np.ndarray):
    """A subclass that changes nothing."""


# ---- NumPy


def _strided(example: Example, array: Any) -> Any:
    step = example.choose([2, 3, -1, -2])
    room = np.zeros((abs(step) * len(array), *array.shape[1:]), array.dtype)
    view = room[::step][: len(array)]
    view[...] = array
    return view


def _unaligned(example: Example, array: Any) -> Any:
    room = np.zeros(array.nbytes + 1, np.uint8)
    view = room[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def _read_only(example: Example, array: Any) -> Any:
    view = array.copy()
    view.flags.writeable = False
    return view


def _field(example: Example, array: Any) -> Any:
    """A column of an array of records."""
    room = np.zeros(len(array), [("before", "u1"), ("it", array.dtype, array.shape[1:])])
    room["it"] = array
    return room["it"]


NUMPY: dict[str, Make] = {
    "numpy": lambda example, array: array,
    "numpy, strided": _strided,
    "numpy, other byte order": lambda example, array: array.astype(array.dtype.newbyteorder()),
    "numpy, unaligned": _unaligned,
    "numpy, read-only": _read_only,
    "numpy, subclass": lambda example, array: array.view(Subclass),
    "numpy, column of records": _field,
    "numpy, Fortran order": lambda example, array: np.asfortranarray(array),
    "list": lambda example, array: array.tolist() if array.dtype.kind not in "MmV" else list(array),
    "tuple": lambda example, array: tuple(array.tolist()) if array.dtype.kind in "iuSU" else _no(),
    "list of NumPy scalars": lambda example, array: list(array),
    "only __array__": lambda example, array: OnlyArray(array),
    "only __array_interface__": lambda example, array: OnlyInterface(array),
    "only DLPack": lambda example, array: OnlyDlpack(_numbers(array)),
    "memoryview": lambda example, array: memoryview(_numbers(array)),
    "array.array": lambda example, array: array_module.array(_numbers(array).dtype.char, array.tolist()),
}


def _numbers(array: Any) -> Any:
    if array.dtype.kind not in "iuf":
        raise ValueError("no numbers")
    return array


# ---- pandas, Polars, PyArrow and PyTorch


def _pandas() -> dict[str, Make]:
    import pandas

    def labels(example: Example, array: Any) -> Any:
        return example.rng.permutation(len(array))

    return {
        "pandas.Series": lambda example, array: pandas.Series(array, index=labels(example, array), name="n"),
        "pandas.Index": lambda example, array: pandas.Index(array),
        "pandas.array": lambda example, array: pandas.array(_plain_column(array)),
        "pandas.Series of an extension": lambda example, array: pandas.Series(pandas.array(_plain_column(array))),
        "pandas.Categorical": lambda example, array: _categories(array),
        "pandas.DataFrame": lambda example, array: pandas.DataFrame(array) if array.ndim == 2 else _no(),
    }


def _categories(array: Any) -> Any:
    """A column of categories, if that has the same bits: pandas takes the two zeros for one category."""
    import pandas

    made = pandas.Series(_plain_column(array)).astype("category")
    return made if np.asarray(made, array.dtype).tobytes() == array.tobytes() else _no()


def _pandas_of_arrow() -> dict[str, Make]:
    import pandas
    import pyarrow

    def make(example: Example, array: Any) -> Any:
        return pandas.Series(array, dtype=pandas.ArrowDtype(pyarrow.array(array).type))

    return {"pandas.Series of Arrow": make}


def _polars() -> dict[str, Make]:
    import polars

    return {
        "polars.Series": lambda example, array: polars.Series("n", _plain_column(array)),
        "polars.Series, sliced": lambda example, array: polars.Series("n", np.concatenate([array[:1], array]))[1:],
        "polars.Series, chunks": lambda example, array: polars.concat(
            [polars.Series("n", part) for part in np.array_split(_plain_column(array), 2)], rechunk=False
        ),
    }


def _pyarrow() -> dict[str, Make]:
    import pyarrow

    def chunks(example: Example, array: Any) -> Any:
        parts = np.array_split(_plain_column(array), example.between(1, 4))
        return pyarrow.chunked_array([pyarrow.array(part) for part in parts])

    def fixed_lists(example: Example, array: Any) -> Any:
        if array.ndim != 2:
            _no()
        return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(array.reshape(-1)), array.shape[1])

    def fixed_bytes(example: Example, array: Any) -> Any:
        if array.dtype.kind != "V" or array.dtype.names is not None:
            _no()
        return pyarrow.array([item.tobytes() for item in array], pyarrow.binary(array.dtype.itemsize))

    def plain(example: Example, array: Any) -> Any:
        return pyarrow.array(_plain_column(array))

    return {
        "pyarrow.Array": plain,
        "pyarrow.Array, sliced": lambda example, array: pyarrow.array(np.concatenate([array[:1], array]))[1:],
        "pyarrow.ChunkedArray": chunks,
        "pyarrow.DictionaryArray": lambda example, array: plain(example, array).dictionary_encode(),
        "pyarrow fixed-size lists": fixed_lists,
        "pyarrow fixed-size binary": fixed_bytes,
        "only __arrow_c_array__": lambda example, array: OnlyArrowArray(plain(example, array)),
        "only __arrow_c_stream__": lambda example, array: OnlyArrowStream(chunks(example, array)),
    }


def _torch() -> dict[str, Make]:
    import torch

    return {
        "torch": lambda example, array: torch.from_numpy(_numbers(array).copy()),
        "torch, strided": lambda example, array: torch.from_numpy(np.repeat(_numbers(array), 2, axis=0))[::2],
    }


def must_be_taken(container: str, dtype: Any) -> bool:
    """Whether tables have to take a container of keys of this type; others they may refuse."""
    if container in ("only __array_interface__", "memoryview", "array.array"):
        return False
    if dtype is None or dtype.base.kind in "iufMm" or container in ("pyarrow fixed-size binary", "numpy"):
        return True
    return container in NUMPY


def _no() -> Any:
    raise ValueError("not of this kind")


def _plain_column(array: Any) -> Any:
    return array if array.ndim == 1 and array.dtype.names is None else _no()


OF_LIBRARIES: dict[tuple[str, ...], Callable[[], dict[str, Make]]] = {
    ("pandas",): _pandas,
    ("pandas", "pyarrow"): _pandas_of_arrow,
    ("polars",): _polars,
    ("pyarrow",): _pyarrow,
    ("torch",): _torch,
}

_makers: dict[str, Make] = {}


def makers() -> dict[str, Make]:
    """All containers that can be made here, by their names. Libraries are imported with the first call."""
    if not _makers:
        _makers.update(NUMPY)
        for names, make in OF_LIBRARIES.items():
            if installed(*names):
                _makers.update(make())
    return _makers


@cache
def odd_scalars() -> list[Any]:
    """Single objects that most tables do not hold."""
    odd: list[Any] = [None, "x", b"x", 2**70, -1, 0.5, np.float64("nan"), (1, 2), np.datetime64("NaT"), 1 + 2j]
    odd += [
        Decimal("NaN"),
        Fraction(5, 1),
        np.longdouble(5),
        np.void(b"abc"),
        range(3),
        frozenset([1]),
        ...,
        np.ma.masked,
    ]
    if installed("pandas"):
        import pandas

        odd += [pandas.NA, pandas.NaT, pandas.Timestamp("2024-01-01"), pandas.Timestamp("2024-01-01", tz="UTC")]
        odd += [pandas.Timedelta(5), pandas.Period("2024"), pandas.Interval(0, 1)]
    if installed("pyarrow"):
        import pyarrow

        odd += [pyarrow.scalar(5), pyarrow.scalar("x"), pyarrow.scalar(None, pyarrow.int64())]
    return odd


VIEWS = [name for name in NUMPY if name.startswith(("numpy", "list", "tuple"))]


def contained(example: Example, array: Any, names: list[str] | None = None) -> tuple[Any, str]:
    """The values of an array in a random container, and the container's name. ``names`` are those to choose from."""
    if not isinstance(array, np.ndarray):
        return _column_of_objects(example, array) if names is None else (array, "list")
    name = example.choose(names or list(makers())) if example.happens(0.7) else "numpy"
    try:
        made = makers()[name](example, array)
        held = getattr(made, "_held", made)
        if name.startswith(("pandas", "polars", "pyarrow", "only __arrow")) and not _holds(held, array):
            return array, "numpy"
    except Exception:  # of the library's own: it has no such column
        return array, "numpy"
    return made, name


def _holds(made: Any, array: Any) -> bool:
    """Whether a column has exactly the values of an array, and no nulls for them."""
    back = as_numpy(made)
    if array.dtype.kind in "Mm" and np.isnat(array).any():
        return False
    if array.dtype.kind in "V":
        return True
    if array.dtype.kind in "SU":
        return [str(item) for item in array.tolist()] == [str(item) for item in back.tolist()]
    return plain_of(back) == plain_of(array)


def _column_of_objects(example: Example, keys: list[Any]) -> tuple[Any, str]:
    """Strings, bytes and nulls in a column of a library that has them."""
    columns: dict[str, Callable[[], Any]] = {"list": lambda: keys}
    if installed("pyarrow"):
        import pyarrow

        wanted = {str: ["string", "large_string", "string_view"], bytes: ["binary", "large_binary", "binary_view"]}
        kinds = {type(key) for key in keys if key is not None}
        for text in wanted.get(*kinds, []) if len(kinds) == 1 else []:
            columns[f"pyarrow {text}"] = lambda text=text: pyarrow.array(keys, getattr(pyarrow, text)())
            columns[f"pyarrow {text}, sliced"] = lambda text=text: pyarrow.array(
                [*keys[:1], *keys], getattr(pyarrow, text)()
            )[1:]
        if kinds <= {str, bytes} and len(kinds) == 1:
            columns["pyarrow dictionary"] = lambda: pyarrow.array(keys).dictionary_encode()
            columns["only __arrow_c_array__"] = lambda: OnlyArrowArray(pyarrow.array(keys))
        if kinds == {int}:
            columns["pyarrow"] = lambda: pyarrow.array(keys)
    if installed("polars"):
        import polars

        columns["polars"] = lambda: polars.Series("n", keys, strict=True)
        if all(isinstance(key, str) for key in keys):
            columns["polars categories"] = lambda: polars.Series("n", keys).cast(polars.Categorical)
    if installed("pandas"):
        import pandas

        if all(isinstance(key, str) for key in keys):
            columns["pandas"] = lambda: pandas.Series(keys, dtype="string")
            columns["pandas categories"] = lambda: pandas.Series(keys, dtype="category")
        if all(key is None or isinstance(key, int) for key in keys):
            columns["pandas"] = lambda: pandas.array(keys, dtype=_integer_type(keys))
    name = example.choose(list(columns)) if keys else "list"
    try:
        return columns[name](), name
    except Exception:  # of the library's own
        return keys, "list"


def _integer_type(keys: list[Any]) -> str:
    return "UInt64" if max((key for key in keys if key is not None), default=0) >= 2**63 else "Int64"


def as_numpy(answer: Any) -> Any:
    """An answer of a table, of any library, as a NumPy array; of several columns, as a list of rows."""
    if isinstance(answer, tuple):
        return list(zip(*(as_numpy(column).tolist() for column in answer), strict=True))
    if isinstance(answer, np.ndarray):
        return np.asarray(answer)
    module = type(answer).__module__.partition(".")[0]
    if module == "pyarrow":
        answer = answer.combine_chunks() if hasattr(answer, "combine_chunks") else answer
        if hasattr(answer.type, "list_size"):
            return as_numpy(answer.flatten()).reshape(len(answer), answer.type.list_size)
        return answer.to_numpy(zero_copy_only=False)
    if module == "torch":
        return answer.numpy()
    if hasattr(answer, "to_numpy"):
        return answer.to_numpy()
    return np.asarray(answer)
