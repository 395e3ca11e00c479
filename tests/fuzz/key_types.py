"""Types of keys: what a table of them is asked for, random keys as plain Python values, and arrays of these.

Two plain values are equal exactly if the table's keys are: numbers are ints or floats, times are nanoseconds, NaT is
the string "NaT", records and rows are tuples, a null is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from fuzz.example import Example
from fuzz.oracle import Plain

__all__ = ["KEY_TYPES", "NS_OF_UNIT", "Batch", "KeyType", "plain_of"]

NS_OF_UNIT = {"W": 7 * 86400 * 10**9, "D": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9}
NS_OF_UNIT |= {"ms": 10**6, "us": 10**3, "ns": 1}
NAT = -(2**63)
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
LETTERS = "ab\0é漢 Z"


class Batch(NamedTuple):
    """An array of keys, and its plain values."""

    array: Any
    plains: list[Plain]


class KeyType(NamedTuple):
    """A type of keys.

    Attributes
    ----------
    name
        In reports.
    spec
        What a table is made with.
    options
        Options that a table of such keys needs.
    draw
        Makes a random key, as a plain value.
    array
        Makes an array of plain values in the table's own type.
    others
        Makes random keys in another type of the family, and their plain values, from keys that the table may hold. None
        if the family has no other type.
    """

    name: str
    spec: Any
    draw: Callable[[Example], Plain]
    array: Callable[[Sequence[Plain]], Any]
    options: Mapping[str, Any] = MappingProxyType({})
    others: Callable[[Example, Sequence[Plain]], Batch] | None = None

    def pool(self, example: Example, n: int) -> list[Plain]:
        """Up to ``n`` distinct keys."""
        return list(dict.fromkeys(self.draw(example) for _ in range(n)))


def plain_of(keys: Any, rule: str = "") -> list[Plain]:
    """The plain values of an array of keys, under a rule for floating-point keys."""
    if not isinstance(keys, np.ndarray):
        return list(keys)
    base = keys.dtype
    if base.kind in "Mm":
        factor = NS_OF_UNIT[np.datetime_data(base)[0]] * np.datetime_data(base)[1]
        return ["NaT" if count == NAT else count * factor for count in keys.astype(base).view("i8").tolist()]
    if base.kind == "f" and rule:
        return [_float_plain(number, rule, base) for number in keys]
    if base.kind == "V" and base.names is None:
        return [item.tobytes() for item in keys]
    if base.names is not None or keys.ndim > 1:
        return [_tuples(row) for row in keys.tolist()]
    return keys.tolist()


def _tuples(row: Any) -> Any:
    return (
        tuple(map(_tuples, row)) if isinstance(row, list | tuple | np.ndarray) else getattr(row, "item", lambda: row)()
    )


def _float_plain(number: Any, rule: str, base: np.dtype[Any]) -> Plain:
    if rule == "bits":
        return np.asarray(number, base).tobytes()
    return "NaN" if np.isnan(number) else float(number) + 0.0


# ---- integers


def _draw_integer(dtype: str) -> Callable[[Example], Plain]:
    info = np.iinfo(dtype)

    def draw(example: Example) -> Plain:
        if example.happens(0.3):
            return int(example.choose([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max]))
        if example.happens(0.5):
            return int(example.rng.integers(max(info.min, -20), min(info.max, 100)))
        return int(example.rng.integers(info.min, info.max, dtype=dtype, endpoint=True))

    return draw


def _other_integers(example: Example, pool: Sequence[Plain]) -> Batch:
    """Numbers of another type: those of the pool that the type has, and others."""
    dtype = np.dtype(example.choose([*INTEGERS, "f8", "f4"]))
    numbers: list[Any] = []
    for key in pool:
        kept: Any = _in_type(key, dtype)
        if kept is not None:
            numbers.append(kept)
    draw = _draw_integer(dtype.str[1:]) if dtype.kind != "f" else _draw_fraction
    strangers = [draw(example) for _ in range(example.between(0, 4))]
    array = np.array([*numbers, *strangers], dtype)
    return Batch(array, array.tolist())


def _in_type(number: Any, dtype: np.dtype[Any]) -> Any:
    """The number in a type, or None."""
    if dtype.kind == "f":
        made = float(dtype.type(number))
        return made if made == number else None
    info = np.iinfo(dtype)
    return number if info.min <= number <= info.max else None


def _draw_fraction(example: Example) -> Plain:
    return float(
        example.choose([0.5, -1.5, 2.0**31, 2.0**63, 2.0**64, -(2.0**63), 1e30, np.inf, -np.inf, np.nan, -0.0])
    )


def _integers(dtype: str) -> KeyType:
    return KeyType(
        dtype,
        dtype,
        _draw_integer(dtype),
        lambda plains: np.array(plains, dtype),
        others=_other_integers,
    )


# ---- times


def _times(kind: str, unit: str, count: int = 1) -> KeyType:
    dtype = np.dtype(f"{kind}8[{count}{unit}]")
    factor = NS_OF_UNIT[unit] * count

    def draw(example: Example) -> Plain:
        if example.happens(0.1):
            return "NaT"
        most = 2**62 // factor if example.happens(0.8) else 2**61
        return int(example.rng.integers(-most, most)) * factor

    def array(plains: Sequence[Any]) -> Any:
        counts = [NAT if key == "NaT" else key // factor for key in plains]
        return np.array(counts, "i8").view(dtype)

    def others(example: Example, pool: Sequence[Any]) -> Batch:
        other = example.choose(list(NS_OF_UNIT))
        step = NS_OF_UNIT[other]
        counts = [NAT if key == "NaT" else key // step for key in pool if key == "NaT" or _fits(key, step)]
        counts += [int(example.rng.integers(-(2**61), 2**61)) for _ in range(example.between(0, 3))]
        made = np.array(counts, "i8").view(f"{kind}8[{other}]")
        return Batch(made, plain_of(made))

    return KeyType(str(dtype), dtype, draw, array, others=others)


def _fits(ns: int, step: int) -> bool:
    return ns % step == 0 and -(2**63) < ns // step < 2**63


# ---- text of a width


def _text_of_width(kind: str, width: int) -> KeyType:
    dtype = np.dtype(f"{kind}{width}")

    def draw(example: Example) -> Plain:
        return _text(example, kind, width)

    def others(example: Example, pool: Sequence[Any]) -> Batch:
        other = example.between(1, 2 * width)
        plains = [key for key in pool if len(key) <= other]
        plains += [_text(example, kind, other) for _ in range(example.between(0, 3))]
        return Batch(np.array(plains, f"{kind}{other}"), plains)

    return KeyType(f"{kind}{width}", dtype, draw, lambda plains: np.array(plains, dtype), others=others)


def _text(example: Example, kind: str, width: int) -> Any:
    letters = "".join(example.choose(LETTERS) for _ in range(example.between(0, width))).rstrip("\0")
    return letters if kind == "U" else letters.encode()[:width].rstrip(b"\0")


def _void(width: int) -> KeyType:
    def draw(example: Example) -> Plain:
        return bytes(example.rng.integers(0, 3, width, dtype=np.uint8))

    def array(plains: Sequence[Any]) -> Any:
        return np.frombuffer(b"".join(plains), f"V{width}").copy()

    return KeyType(f"V{width}", f"V{width}", draw, array)


# ---- rows and records


def _rows(base: str, extent: int) -> KeyType:
    one = _draw_integer(base)

    def draw(example: Example) -> Plain:
        return tuple(one(example) for _ in range(extent))

    def array(plains: Sequence[Any]) -> Any:
        return np.array(plains, base).reshape(len(plains), extent)

    def others(example: Example, pool: Sequence[Any]) -> Batch:
        dtype = np.dtype(example.choose(INTEGERS))
        fit = [row for row in pool if all(_in_type(number, dtype) is not None for number in row)]
        other = _draw_integer(dtype.str[1:])
        fit += [tuple(other(example) for _ in range(extent)) for _ in range(example.between(0, 3))]
        return Batch(np.array(fit, dtype).reshape(len(fit), extent), fit)

    return KeyType(f"({base}, {extent})", (base, (extent,)), draw, array, others=others)


def _records(*fields: tuple[str, Any]) -> KeyType:
    dtype = np.dtype(list(fields))

    def item(example: Example, part: np.dtype[Any]) -> Any:
        if part.subdtype is not None:
            return tuple(item(example, part.base) for _ in range(part.shape[0]))
        if part.names is not None:
            return tuple(item(example, part[name]) for name in part.names)
        return _text(example, part.kind, part.itemsize) if part.kind == "S" else _draw_integer(part.str[1:])(example)

    def draw(example: Example) -> Plain:
        return item(example, dtype)  # type: ignore[no-any-return]

    return KeyType(str(list(fields)), dtype, draw, lambda plains: np.array(plains, dtype))


# ---- any length, floats, nulls


def _any_length(kind: str) -> KeyType:
    def draw(example: Example) -> Plain:
        width = example.choose([0, 1, 3, 12, 16, 17, 200])
        letters = "".join(example.choose(LETTERS) for _ in range(min(width, 20))) * (1 + width // 20)
        return letters if kind == "str" else letters.encode()

    return KeyType(kind, kind, draw, list)


def _floats(dtype: str, rule: str) -> KeyType:
    def draw(example: Example) -> Plain:
        special = [0.0, -0.0, np.nan, -np.nan, np.inf, 1.0, 0.5, 2.0**24]
        number = example.choose(special) if example.happens(0.5) else float(np.float32(example.rng.normal()))
        return _float_plain(np.array(number, dtype)[()], rule, np.dtype(dtype))

    def array(plains: Sequence[Any]) -> Any:
        if rule == "bits":
            return np.frombuffer(b"".join(plains), dtype).copy()
        return np.array([np.nan if key == "NaN" else key for key in plains], dtype)

    return KeyType(f"{dtype}, floats={rule}", dtype, draw, array, {"floats": rule})


def _with_nulls(of: KeyType) -> KeyType:
    """Keys of a type, and None, which is one key. Batches are lists."""

    def draw(example: Example) -> Plain:
        return None if example.happens(0.2) else of.draw(example)

    return KeyType(f"{of.name}, nulls=key", of.spec, draw, list, {**of.options, "nulls": "key"})


def _of_columns(*columns: KeyType) -> KeyType:
    """Keys of several columns, whose plain values are Python's own. Batches are lists of tuples."""

    def draw(example: Example) -> Plain:
        return tuple(column.draw(example) for column in columns)

    options = {name: value for column in columns for name, value in column.options.items()}
    return KeyType(str([column.name for column in columns]), [column.spec for column in columns], draw, list, options)


KEY_TYPES = [
    *map(_integers, INTEGERS),
    *(_times("M", unit) for unit in ("D", "s", "ms", "us", "ns")),
    *(_times("m", unit) for unit in ("h", "us", "ns")),
    _times("M", "s", 10),
    *(_text_of_width("S", width) for width in (1, 5, 8, 40, 128)),
    *(_text_of_width("U", width) for width in (1, 4, 32)),
    *map(_void, (3, 12, 16, 128)),
    *(_rows(base, extent) for base, extent in (("i4", 2), ("u1", 5), ("i8", 3), ("i2", 64))),
    _records(("a", "i8"), ("b", "i4")),
    _records(("name", "S3"), ("x", "u2")),
    _records(("p", [("q", "i2"), ("r", "u1")]), ("s", "i4", (2,))),
    *map(_any_length, ("str", "bytes")),
    *(_floats(dtype, rule) for dtype in ("f4", "f8") for rule in ("bits", "value")),
    *map(_with_nulls, (_integers("i4"), _integers("u8"), _any_length("str"), _any_length("bytes"))),
    _of_columns(_any_length("str"), _integers("i8")),
    _of_columns(_integers("u2"), _text_of_width("U", 4), _integers("i4")),
    _of_columns(*map(_with_nulls, (_any_length("str"), _integers("i4"), _any_length("bytes")))),
]
