"""A thread writes to the batch while calls read it: any mixture of old and new elements is right.

Afterwards the table is whole, and holds nothing that was never written. Two columns of values are written that differ,
so a value is right if it was ever written, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.containers import installed
from fuzz.example import Example, require
from warphash import HashMap, HashSet, MultiMap, WarphashError
from warphash.designs import registry

KEYS = ["u4", "i8", "i2", "V12", "V16", "S40", "bytes"]
DISTINCT = 3000
SECONDS = 0.4


def run(example: Example) -> None:
    example.choose_design()
    key = example.choose(KEYS if installed("pyarrow") else KEYS[:-1])
    n = example.choose([300, 5000, 60_000])
    batch = _Strings(n) if key == "bytes" else _Words(n, np.dtype(key))
    values = np.zeros(n, example.choose(["u4", "f8", "V24"]))
    is_set = example.happens(0.2)
    is_multi = (
        not is_set and example.design in ("slab", "lock_free_chaining") and key in KEYS[:3] and values.itemsize <= 8
    )
    kind: Any = HashSet if is_set else MultiMap if is_multi else HashMap
    types = (key,) if is_set else (key, values.dtype)
    options = _bound(example) if kind is HashMap and key != "bytes" else {}
    table = kind(*types, design=example.design, device="cpu", seed=example.between(0, 99), **options)
    calls = _calls(table, batch.keys, [] if is_set else [values], kind, bool(options))
    names = [example.choose(sorted(calls)) for _ in range(6)]
    example.note(f"{kind.__name__}{types}, {options}, {n} elements, calls {names}")
    with _Writer(batch, values, example.between(0, 2**32)):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for name in names:
                try:
                    calls[name]()
                except WarphashError as error:
                    require("broken" not in str(error), "the table is broken during a call", error)
    table.check()
    held = batch.numbers(table.keys(like="numpy"))
    require(is_multi or len(set(held)) == len(held), "a key is held twice")
    require(all(0 <= number < DISTINCT for number in held), "a key that was never written")
    if len(held) and not is_multi:
        found = table.contains(batch.make(sorted(held)))
        require(np.asarray(found).all(), "a held key is not found", f"{np.sum(~np.asarray(found))} of {len(held)}")


def _bound(example: Example) -> dict[str, Any]:
    """Options of a bounded table, now and then, if the design has bounded tables."""
    if not example.happens(0.2) or "erase" not in registry.get(example.design).capabilities:
        return {}
    ranked = ["lfu", "random"] if example.design == "tiered" else ["lru", "lfu", "fifo", "random"]
    return {"max_size": 1000, "evict": example.choose(ranked)}


def _calls(table: Any, keys: Any, values: list[Any], kind: Any, is_bounded: bool) -> dict[str, Callable[[], Any]]:
    calls = {
        "insert": lambda: table.insert(keys, *values),
        "erase": lambda: table.erase(keys),
        "contains": lambda: table.contains(keys),
        "check": table.check,
    }
    if kind is HashMap:
        calls |= {"assign": lambda: table.assign(keys, *values), "find": lambda: table.find(keys)}
        calls |= {"find_or_insert": lambda: table.find_or_insert(keys, *values)}
        calls |= {"upsert last": lambda: table.upsert(keys, *values, "last")}
        if values[0].dtype.kind == "u" and not is_bounded:
            calls |= {"number": lambda: table.number(keys)}
        if values[0].dtype.kind in "uf":
            calls |= {"upsert min": lambda: table.upsert(keys, *values, "min")}
    return calls


class _Words:
    """Keys of a fixed width: a number in the first two bytes, and again in the last two."""

    def __init__(self, n: int, dtype: np.dtype[Any]) -> None:
        self.keys = np.zeros(n, dtype)
        self._dtype = dtype
        self.write(slice(None), np.zeros(n, np.int64))

    def make(self, numbers: Any) -> Any:
        numbers = np.asarray(numbers)
        if self._dtype.kind in "iu":
            return numbers.astype(self._dtype)
        raw = np.zeros((len(numbers), self._dtype.itemsize), np.uint8)
        raw[:, :2] = (numbers + 1).astype("u2").view("u1").reshape(-1, 2)
        return raw.reshape(-1).view(self._dtype)

    def write(self, at: Any, numbers: Any) -> None:
        self.keys[at] = self.make(numbers)

    def numbers(self, held: Any) -> list[int]:
        if self._dtype.kind in "iu":
            return [int(number) for number in held]
        raw = np.ascontiguousarray(held).view(np.uint8).reshape(len(held), self._dtype.itemsize)
        require(not raw[:, 2:].any(), "a key that was never written")
        return [int(number) - 1 for number in np.ascontiguousarray(raw[:, :2]).view("u2").ravel()]


class _Strings:
    """Strings of four bytes in Arrow's layout, whose bytes are written."""

    def __init__(self, n: int) -> None:
        import pyarrow

        self._bytes = np.zeros(4 * n, np.uint8)
        offsets = np.arange(0, 4 * n + 1, 4, dtype=np.int32)
        buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(self._bytes)]
        self.keys = pyarrow.Array.from_buffers(pyarrow.binary(), n, buffers)
        self._words = self._bytes.view("u4")

    def make(self, numbers: Any) -> Any:
        return [int(number).to_bytes(4, "little") for number in numbers]

    def write(self, at: Any, numbers: Any) -> None:
        self._words[at] = numbers

    def numbers(self, held: Any) -> list[int]:
        return [int.from_bytes(string, "little") for string in held]


class _Writer:
    """A thread that writes to a batch until the block ends."""

    def __init__(self, batch: Any, values: Any, seed: int) -> None:
        self._batch, self._values, self._rng = batch, values.view(np.uint8), np.random.default_rng(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def _write(self) -> None:
        n = len(self._batch.keys)
        while not self._stop.is_set():
            at = self._rng.integers(0, n, max(1, n // 40))
            self._batch.write(at, self._rng.integers(0, DISTINCT, len(at)))
            self._values[self._rng.integers(0, len(self._values), len(at))] ^= 1

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
