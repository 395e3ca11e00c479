"""Arrays of callers as rows of bytes for messages, and back; and what the verbs do with arrays of either library.

An array here is one of NumPy, or a tensor of PyTorch on any device. Lists become arrays of NumPy, and so do arrays of
other libraries in host memory. Columns of strings of any length, or with nulls, have no rows of one width: data sets
take them.

Messages lie where the channel has its memory: on the CPU, or on the GPU of the process if the group uses NCCL. So rows
are copied there and back if they are elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..errors import CollectiveError, DtypeError, ShapeError
from ..relational.comparable import as_type_of
from ..relational.elements import ArrayElements, elements_of
from ..relational.items import Fixed, nan_among, packed
from ..runtime.devices import engine_for
from .channel import Call
from .route import Column

__all__ = [
    "Array",
    "check_rows",
    "column_of",
    "hashed",
    "in_type_of",
    "is_missing",
    "joined",
    "like",
    "new_flags",
    "numbers",
    "of_column",
    "places",
    "row_bytes",
    "seen",
    "some",
    "with_common_types",
]

Array = Any
"""Of NumPy or PyTorch."""

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
"""Types whose tensors PyTorch does not index or join, and those of the same width that it does."""

_MADE_WIDER = "SU"
"""Kinds of types of NumPy that are as wide as the longest item."""


def seen(given: Any) -> Array:
    """See an array that a caller gave.

    Raises
    ------
    DtypeError
        For columns of strings of any length or of Python objects, and for arrays on a GPU of another library.
    """
    if isinstance(given, torch.Tensor):
        return given.detach()
    elements = elements_of(given)
    if isinstance(elements, ArrayElements):
        return elements.array.reshape(np.shape(given))
    raise DtypeError(
        f"expected an array of NumPy or a tensor of PyTorch, with items of one width, got {type(given).__name__}: "
        "convert it, as by torch.from_dlpack(x) or numpy.array(x, 'S16'); data sets take columns of any type"
    )


# ---- rows of bytes
def row_bytes(array: Array) -> int:
    """Bytes of a row."""
    size: int = array.dtype.itemsize
    for length in array.shape[1:]:
        size *= int(length)
    return size


def column_of(array: Array, place: torch.device) -> Column:
    """The rows of an array in memory for messages. The array may be that memory."""
    if isinstance(array, torch.Tensor):
        flat = array.contiguous().reshape(-1)
        # Tensors of an array of NumPy with no item may have the stride 0, and no view in another type.
        data = flat.as_strided((len(flat),), (1,)).view(torch.uint8).to(place)
    else:
        held = np.ascontiguousarray(array)
        data = torch.from_numpy((held if held.flags.writeable else held.copy()).reshape(-1).view(np.uint8)).to(place)
    return Column(data, row_bytes(array))


def of_column(column: Column, n: int, kind: Array) -> Array:
    """Rows of bytes as an array of the library, the device and the type of another one."""
    data, shape = column.rows(0, n), (n, *kind.shape[1:])
    if isinstance(kind, torch.Tensor):
        return data.to(kind.device).view(kind.dtype).reshape(shape)
    return data.cpu().numpy().view(kind.dtype).reshape(shape)


def hashed(keys: Sequence[Array], place: torch.device) -> Column:
    """Rows of bytes in memory for messages that are equal where the rows of some arrays are equal keys.

    Raises
    ------
    DtypeError
        For a type of numbers that NumPy does not have itself.
    """
    rows = [_with_one_pattern(key) for key in keys]
    columns = [(column_of(row, place), len(row)) for row in rows]
    if len(columns) == 1 and columns[0][0].width:
        return columns[0][0]
    parts = [column.rows(0, n).reshape(n, column.width) for column, n in columns]
    if not sum(column.width for column, _ in columns):
        parts.append(torch.zeros((columns[0][1], 1), dtype=torch.uint8, device=place))
    whole = torch.cat(parts, 1).contiguous()
    return Column(whole.reshape(-1), whole.shape[1])


def _with_one_pattern(key: Array) -> Array:
    """Keys in which equal ones have equal bytes."""
    if isinstance(key, torch.Tensor):
        if not (key.is_floating_point() or key.is_complex()):
            return key
        made = key + 0  # -0.0 becomes 0.0
        return torch.where(torch.isnan(made), torch.full_like(made, float("nan")), made)
    return packed(engine_for("cpu"), Fixed(key)).rows


# ---- types
def with_common_types(call: Call, what: str, arrays: Sequence[Array], lengths: Sequence[int] = ()) -> list[Any]:
    """Hear the types of all ranks, and convert to those that all have. Collective, behind `Call.agree`.

    Parameters
    ----------
    what
        They are, in the message.
    arrays
        Strings of NumPy become as wide as the widest. All other types have to be equal.
    lengths
        Numbers to tell beside the types.

    Returns
    -------
    list
        The arrays, and the lengths of each rank.

    Raises
    ------
    CollectiveError
        If types differ. All ranks raise it.
    """
    kinds = [_kind_of(array) for array in arrays]
    every = call.told((kinds, list(lengths)))
    told = [each[0] for each in every]
    wanted: list[Any] = []
    for column in zip(*told, strict=True) if len({len(each) for each in told}) == 1 else ():
        alike = {(kind if kind[0] not in _MADE_WIDER else kind[0], shape) for kind, shape, _ in column}
        if len(alike) > 1:
            break
        wanted.append(max(width for _, _, width in column))
    if len(wanted) < len(kinds) or len(kinds) < max(map(len, told)):
        texts = {
            rank: ", ".join(f"{kind}{list(shape) or ''}" for kind, shape, _ in each) for rank, each in enumerate(told)
        }
        shown = "; ".join(f"rank {rank}: {text}" for rank, text in texts.items())
        raise CollectiveError(f"expected {what} of the same types on all ranks, got {shown}: convert them", texts)

    def widened() -> list[Array]:
        return [
            array if isinstance(array, torch.Tensor) or array.dtype.kind not in _MADE_WIDER else _wide(array, width)
            for array, width in zip(arrays, wanted, strict=True)
        ]

    return [call.together(widened), [each[1] for each in every]]


def _wide(array: Array, width: int) -> Array:
    kind = array.dtype.kind
    return array.astype(f"{kind}{width // (4 if kind == 'U' else 1)}", copy=False)


def _kind_of(array: Array) -> tuple[str, tuple[int, ...], int]:
    """The type of an array by a name that both libraries have, the shape of its rows, and the bytes of an item."""
    shape, width = tuple(map(int, array.shape[1:])), array.dtype.itemsize
    if isinstance(array, torch.Tensor):
        return str(array.dtype).removeprefix("torch."), shape, width
    if array.dtype.kind in _MADE_WIDER:
        return array.dtype.kind, shape, width
    return str(array.dtype.descr if array.dtype.names else array.dtype), shape, width


def in_type_of(given: Sequence[Array], wanted: Sequence[Array]) -> tuple[list[Array], Array]:
    """Key columns in the types and the library of others, by their values; and which rows these types have.

    Numbers are compared as numbers. A row that no row of the others can equal has any value.
    """
    fits: Array = None
    made = []
    for array, other in zip(given, wanted, strict=True):
        column, held = _in_type_of(array, other)
        made.append(column)
        if held is not None:
            fits = held if fits is None else fits & held
    return made, fits


def _in_type_of(array: Array, other: Array) -> tuple[Array, Array]:
    if _kind_of(array) == _kind_of(other):
        return like(array, other), None
    host = array.cpu().numpy() if isinstance(array, torch.Tensor) else array
    sample = np.empty((0, *other.shape[1:]), _numpy_type(other))  # its type is looked at alone
    compared = as_type_of(Fixed(np.ascontiguousarray(host)), Fixed(sample))
    if compared is None:
        return _zeros(len(host), other), new_flags(len(host), False, other)
    held = compared.fits
    return like(compared.items.array, other), None if held is None else like(held, other)


def _zeros(n: int, other: Array) -> Array:
    shape = (n, *other.shape[1:])
    if isinstance(other, torch.Tensor):
        return torch.zeros(shape, dtype=other.dtype, device=other.device)
    return np.zeros(shape, other.dtype)


def _numpy_type(array: Array) -> np.dtype[Any]:
    try:
        made: np.dtype[Any] = (
            torch.empty(0, dtype=array.dtype).numpy().dtype if isinstance(array, torch.Tensor) else array.dtype
        )
        return made
    except TypeError:
        raise DtypeError(f"NumPy has no type {array.dtype}: give keys of both sides in one type") from None


# ---- what both libraries have by other names
def like(array: Array, other: Array) -> Array:
    """An array in the library of another one, and on its device."""
    if isinstance(other, torch.Tensor):
        if not isinstance(array, torch.Tensor):
            array = torch.from_numpy(array if array.flags.writeable else array.copy())
        return array.to(other.device)
    return array.cpu().numpy() if isinstance(array, torch.Tensor) else array


def some(array: Array, rows: Array) -> Array:
    """The rows at some positions, or those of the flags that are set."""
    if isinstance(array, torch.Tensor) and array.dtype in _SIGNED:
        return array.view(_SIGNED[array.dtype])[rows].view(array.dtype)
    return array[rows]


def joined(arrays: Sequence[Array]) -> Array:
    """Arrays of one type, one behind the other."""
    if len(arrays) == 1:
        return arrays[0]
    first = arrays[0]
    if not isinstance(first, torch.Tensor):
        return np.concatenate(arrays)
    if first.dtype in _SIGNED:
        return torch.cat([array.view(_SIGNED[first.dtype]) for array in arrays]).view(first.dtype)
    return torch.cat(list(arrays))


def numbers(begin: int, end: int, other: Array) -> Array:
    """Whole numbers, int64, in the library of an array."""
    if isinstance(other, torch.Tensor):
        return torch.arange(begin, end, device=other.device)
    return np.arange(begin, end)


def new_flags(n: int, value: bool, other: Array) -> Array:
    """So many flags in the library of an array."""
    if isinstance(other, torch.Tensor):
        return torch.full((n,), value, dtype=torch.bool, device=other.device)
    return np.full(n, value)


def places(flags: Array) -> Array:
    """The positions of the flags that are set."""
    if isinstance(flags, torch.Tensor):
        return flags.nonzero().reshape(-1)
    return np.flatnonzero(flags)


def is_missing(key: Array) -> Array:
    """Which items of a key column are NaN or NaT; None for a type without these."""
    if isinstance(key, torch.Tensor):
        return torch.isnan(key) if key.is_floating_point() or key.is_complex() else None
    return nan_among(Fixed(key)) if key.dtype.kind in "fcmM" else None


def check_rows(arrays: Sequence[Array], names: str) -> int:
    """How many rows arrays have.

    Raises
    ------
    ShapeError
        If they do not have as many rows, or one is a single value.
    """
    lengths = [len(array) if array.ndim else -1 for array in arrays]
    if min(lengths) < 0 or len(set(lengths)) > 1:
        shown = ", ".join("a single value" if n < 0 else f"{n:,}" for n in lengths)
        raise ShapeError(f"expected {names} with as many rows each, got {shown}: give one row for each key")
    return lengths[0]
