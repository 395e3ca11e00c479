"""Key and value types, and arrays of them.

Keys are bit patterns, so arrays of any type are made from bytes. `special_keys` has the patterns next to all ones and
zero, which a design might reserve for itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ANY_LENGTH: Any = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else np.dtype(object)
"""NumPy's type of strings of any length."""

KEY_TYPES: dict[str, Any] = {
    "u4": np.dtype("u4"),
    "u8": np.dtype("u8"),
    "i4": np.dtype("i4"),
    "i8": np.dtype("i8"),
    "u1": np.dtype("u1"),
    "i2": np.dtype("i2"),
    "datetime": np.dtype("M8[ns]"),
    "S5": np.dtype("S5"),
    "V12": np.dtype("V12"),
    "S40": np.dtype("S40"),
    "V128": np.dtype("V128"),
    "structured": np.dtype([("order", "i8"), ("line", "i4")]),
    "rows": np.dtype(("i4", (3,))),
}

VALUE_TYPES: dict[str, Any] = {
    "u4": np.dtype("u4"),
    "u8": np.dtype("u8"),
    "i4": np.dtype("i4"),
    "i8": np.dtype("i8"),
    "f4": np.dtype("f4"),
    "f8": np.dtype("f8"),
    "u1": np.dtype("u1"),
    "i2": np.dtype("i2"),
    "S7": np.dtype("S7"),
    "V48": np.dtype("V48"),
    "V88": np.dtype("V88"),
    "rows": np.dtype(("f4", (5,))),
    "str": np.dtype("str"),
    "none": None,
}


def row_bytes(dtype: np.dtype[Any]) -> int:
    """Bytes of one key or value, which may be a row."""
    return dtype.itemsize


def as_type(raw: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> Array:
    """View an (n, row_bytes) array of bytes as n items of ``dtype``."""
    flat = np.ascontiguousarray(raw).reshape(-1)
    if dtype.subdtype is None:
        return flat.view(dtype)
    base, shape = dtype.subdtype
    return flat.view(base).reshape(len(raw), *shape)


def as_bytes(array: Array) -> list[bytes]:
    """The bit pattern of each item, as a bytes object. Tables compare these patterns."""
    if array.dtype.kind in "OTU":
        return [item.encode() if isinstance(item, str) else item for item in array.tolist()]
    contiguous = np.ascontiguousarray(array)
    n = len(contiguous)
    if n == 0:
        return []
    width = contiguous.nbytes // n
    rows: list[bytes] = contiguous.view(np.uint8).reshape(n, width).view(f"V{width}").ravel().tolist()
    return rows


def special_keys(dtype: np.dtype[Any]) -> Array:
    """The patterns next to all ones and to zero: -1, -2, -3, -4, 0, 1, 2, 3, little-endian."""
    width = row_bytes(dtype)
    raw = np.zeros((8, width), np.uint8)
    raw[:4] = 0xFF
    raw[:, 0] = [0xFF, 0xFE, 0xFD, 0xFC, 0, 1, 2, 3]
    return as_type(raw, dtype)


def special_values(dtype: np.dtype[Any]) -> Array:
    """The patterns of `special_keys`; or strings that are short, of zeros, or of the greatest character."""
    if dtype == np.dtype("str"):
        return np.array(["", chr(0), chr(0) * 2, chr(0x10FFFF), chr(0x10FFFF) * 4], ANY_LENGTH)
    return special_keys(dtype)


def distinct_keys(dtype: np.dtype[Any], n: int, rng: np.random.Generator) -> Array:
    """``n`` distinct keys, or fewer if the type has fewer. None is in `special_keys`."""
    width = row_bytes(dtype)
    if width <= 2:
        numbers = rng.permutation(np.arange(4, (1 << 8 * width) - 4, dtype=np.uint32))[:n]
        raw = numbers.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width]
        return as_type(raw, dtype)
    # The low bytes are random and distinct, the high bytes random, so keys of any width are distinct. No byte is zero,
    # because NumPy ignores zero bytes at the end of an S item when it compares.
    low_bytes = min(width, 8)
    pool = rng.integers(1, 256, size=(2 * n + 16, low_bytes), dtype=np.uint8)
    padded = np.zeros((len(pool), 8), np.uint8)
    padded[:, :low_bytes] = pool
    words = np.unique(padded.view("<u8").ravel())
    ones = (1 << 8 * low_bytes) - 1
    words = words[words < ones - 3]
    words = rng.permutation(words)[:n]
    raw = rng.integers(1, 256, size=(len(words), width), dtype=np.uint8)
    raw[:, :low_bytes] = words.view(np.uint8).reshape(-1, 8)[:, :low_bytes]
    return as_type(raw, dtype)


def some_values(dtype: np.dtype[Any], n: int, rng: np.random.Generator) -> Array:
    """``n`` values. Numbers are whole and below 100, so that sums of floats are exact and sums of bytes wrap."""
    base, shape = (dtype, ()) if dtype.subdtype is None else dtype.subdtype
    if base == np.dtype("str"):
        numbers = rng.integers(0, 100, size=n).tolist()
        return np.array([f"{'é' * (number % 5)}{chr(0) * (number % 3)}{number}" for number in numbers], ANY_LENGTH)
    if base.kind in "iuf":
        return rng.integers(0, 100, size=(n, *shape)).astype(base)
    return as_type(rng.integers(1, 256, size=(n, row_bytes(dtype)), dtype=np.uint8), dtype)
