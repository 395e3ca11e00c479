"""Which types a key can have: types whose items are equal if and only if their bytes are equal.

Floating-point numbers are no such type: 0.0 equals -0.0 and NaN differs from itself. Nor are records with bytes that
belong to no field. NaT is a key like any other: there is one pattern of bits for it, and the table finds it by that, as
pandas does, although NumPy says that NaT differs from itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError
from .plain_types import parts

__all__ = ["check_key_type", "packed_type"]

Dtype = np.dtype[Any]


def check_key_type(dtype: Dtype) -> None:
    """Raise `DtypeError` unless items of ``dtype`` are equal exactly if their bytes are; the mend loses no value."""
    if not _used_bytes(dtype).all():
        raise DtypeError(
            f"keys are compared by their bytes, and {dtype} has some that belong to no field: "
            f"pack the records, which loses nothing: keys.astype({packed_type(dtype)})"
        )
    if not any(_is_float(part.dtype) for part in parts(dtype)):
        return
    expected = f"keys must have exact equality, so not {dtype}: 0.0 == -0.0 and NaN != NaN"
    if any(part.dtype.char in "gG" for part in parts(dtype)):
        raise DtypeError(
            f"{expected}. Its numbers have undefined bytes, too: convert them to float64 or complex128, which rounds"
        )
    bits = _as_bits(dtype)
    as_source = str(bits) if bits.names is not None else f'"{bits.name if bits.kind == "u" else bits.str[1:]}"'
    raise DtypeError(f"{expected}. View their bits, which loses nothing, of a NumPy array: keys.view({as_source})")


def _is_float(dtype: Dtype) -> bool:
    """Whether a plain type is one of floats. So is every type that a library adds to NumPy, such as bfloat16."""
    return dtype.kind in "fc" or (dtype.kind == "V" and not issubclass(dtype.type, np.void))


def packed_type(dtype: Dtype) -> Dtype:
    """The same fields, one behind the other."""
    if dtype.subdtype:
        return np.dtype((packed_type(dtype.subdtype[0]), dtype.subdtype[1]))
    if dtype.names is None:
        return dtype
    return np.dtype([(name, packed_type(dtype[name])) for name in dtype.names])


def _as_bits(dtype: Dtype) -> Dtype:
    """The same type with unsigned integers, or bytes, in place of floats."""
    if dtype.subdtype:
        return np.dtype((_as_bits(dtype.subdtype[0]), dtype.subdtype[1]))
    if dtype.names is not None:
        formats = [_as_bits(dtype[name]) for name in dtype.names]
        offsets = [_offset(dtype, name) for name in dtype.names]
        layout = {"names": dtype.names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}
        made: Dtype = np.dtype(layout)  # type: ignore[call-overload]
        return made
    if not _is_float(dtype):
        return dtype
    name = f"u{dtype.itemsize}" if dtype.itemsize <= 8 else f"V{dtype.itemsize}"
    return np.dtype(name)


def _offset(dtype: Dtype, name: str) -> int:
    assert dtype.fields is not None
    return int(dtype.fields[name][1])


def _used_bytes(dtype: Dtype) -> npt.NDArray[np.bool_]:
    """Which bytes of an item belong to a field; fields may overlap."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.tile(_used_bytes(base), math.prod(shape))
    if dtype.names is None:
        return np.ones(dtype.itemsize, np.bool_)
    used = np.zeros(dtype.itemsize, np.bool_)
    for name in dtype.names:  # `fields` would have titles, too
        first = _offset(dtype, name)
        used[first : first + dtype[name].itemsize] |= _used_bytes(dtype[name])
    return used
