"""Plans whose arrays for answers overlap the keys, the values, or each other, in whole or in part.

The answer is that of a call with arrays of its own, as NumPy gives it; or the call is refused, and changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.example import Example, require
from warphash import HashMap, WarphashError

WIDTHS = ["u1", "u2", "u4", "i8", "V12", "V16"]


def run(example: Example) -> None:
    example.choose_design()
    key, value = np.dtype(example.choose(WIDTHS)), np.dtype(example.choose(WIDTHS))
    n = example.choose([1, 5, 33, 200, 1000, 5000])
    room = _Room(example, n * (key.itemsize + value.itemsize + 2) + 64)
    keys, values = room.carve(n, key), room.carve(n, value)
    keys[...] = _random(example, n, key, 4 * n)
    table: Any = HashMap(key, value, design=example.design, device="cpu", seed=example.between(0, 99))
    held_keys, held_values = _random(example, n, key, 4 * n), _random(example, n, value, 4 * n)
    table.assign(held_keys, held_values)
    verb = example.choose(["find", "contains", "insert", "assign"])
    flags, out = room.carve(n, np.dtype(bool)), room.carve(n, value)
    example.note(f"{verb} of {n} keys {key.str}:{value.str}, {room}")
    calls = table if example.happens(0.5) else table.plan(n, like="numpy")
    if verb in ("find", "contains"):
        _look_up(table, calls, verb, keys, out, flags)
    else:
        _update(table, calls, verb, keys, values, flags, example)
    table.check()


class _Room:
    """Memory, out of which arrays are carved at random places."""

    def __init__(self, example: Example, nbytes: int) -> None:
        self._example, self._bytes, self._places = example, np.zeros(nbytes, np.uint8), list[str]()

    def carve(self, n: int, dtype: np.dtype[Any]) -> Any:
        """An array somewhere in the room: at the beginning as often as anywhere."""
        step = min(dtype.itemsize & -dtype.itemsize, 8)
        last = (len(self._bytes) - n * dtype.itemsize) // step
        at = step * (0 if self._example.happens(0.4) else self._example.between(0, last))
        self._places.append(f"{dtype.str}[{n}] at {at}")
        return self._bytes[at : at + n * dtype.itemsize].view(dtype)

    def __str__(self) -> str:
        return ", ".join(self._places)


def _random(example: Example, n: int, dtype: np.dtype[Any], most: int) -> Any:
    if dtype.kind == "V":
        raw = np.zeros((n, dtype.itemsize), np.uint8)
        raw[:, :2] = example.rng.integers(0, most, n).astype("u2").view("u1").reshape(n, 2)
        return raw.reshape(-1).view(dtype)
    return (example.rng.integers(0, most, n) % min(most, 1 << 8 * dtype.itemsize - 1)).astype(dtype)


def _look_up(table: Any, calls: Any, verb: str, keys: Any, out: Any, flags: Any) -> None:
    given = keys.copy()
    right_values, right_flags = table.find(given)
    shares = np.shares_memory(out, flags)
    try:
        if verb == "contains":
            calls.contains(keys, found=flags)
        else:
            calls.find(keys, out=out, found=flags)
    except WarphashError:
        require(keys.tobytes() == given.tobytes(), f"{verb}: refused, and changed the keys")
        return
    if verb == "contains":
        require(flags.tolist() == right_flags.tolist(), "contains: wrong flags in found= that overlaps the keys")
        return
    require(not shares, "find: takes out= and found= that overlap each other, which cannot both be right")
    require(flags.tolist() == right_flags.tolist(), "find: wrong flags where arrays overlap")
    require(out.tobytes() == right_values.tobytes(), "find: wrong values where arrays overlap")


def _update(table: Any, calls: Any, verb: str, keys: Any, values: Any, flags: Any, example: Example) -> None:
    given_keys, given_values, before = keys.copy(), values.copy(), dict(_pairs(table))
    allowed: dict[bytes, set[bytes]] = {}
    for key, value in zip(_rows(given_keys), _rows(given_values), strict=True):
        allowed.setdefault(key, set()).add(value)
    try:
        getattr(calls, verb)(keys, values, added=flags)
    except WarphashError:
        require(dict(_pairs(table)) == before, f"{verb}: refused, and changed the table")
        return
    after = dict(_pairs(table))
    require(after.keys() == before.keys() | allowed.keys(), f"{verb}: wrong keys where arrays overlap")
    for key, value in after.items():
        keeps = key not in allowed or (verb == "insert" and key in before)
        right = {before[key]} if keeps else allowed[key]
        require(value in right, f"{verb}: wrong values where arrays overlap", f"{key!r} holds {value!r}")
    added = [key for key, flag in zip(_rows(given_keys), flags.tolist(), strict=True) if flag]
    new = sorted(allowed.keys() - before.keys())
    require(sorted(added) == new, f"{verb}: wrong flags where arrays overlap", f"{len(added)} added, {len(new)} new")


def _rows(array: Any) -> list[bytes]:
    width = array.dtype.itemsize
    content = array.tobytes()
    return [content[at : at + width] for at in range(0, len(content), width)]


def _pairs(table: Any) -> Any:
    keys, values = table.to_arrays(like="numpy")
    return zip(_rows(keys), _rows(values), strict=True)
