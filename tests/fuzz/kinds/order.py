"""Upserts depend neither on the order of a batch nor on how the batch is cut: the bits are the same.

Sums of floats are left out, since their order is not defined. "first" and "last" depend on the order, as in a dict, so
the batches are cut, and not shuffled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.example import Example, require
from warphash import HashMap, UnsupportedVerb

VALUES = ["f4", "f8", "f2", "i4", "u8", "i1", "m8[s]", "M8[s]", ("f4", (3,)), ("f8", (2,)), ("i4", (2,)), "?"]
OPS = ["min", "max", "add", "or", "and", "xor", "first", "last"]


def run(example: Example) -> None:
    example.choose_design()
    dtype, op = np.dtype(example.choose(VALUES)), example.choose(OPS)
    if dtype.base.kind == "f" and op == "add":
        op = "min"
    n, distinct = example.choose([2, 3, 8, 50, 400, 5000]), example.choose([1, 3, 100])
    key = np.dtype(example.choose(["i8", "u4", "V12"]))
    keys = _keys(example.rng.integers(0, distinct, n), key)
    values = _values(example, n, dtype)
    example.note(f"upsert {op} of {n} {dtype} values under {distinct} keys of {key}")
    answers = {}
    for attempt in range(4):
        order = np.arange(n)
        if attempt and op not in ("first", "last"):
            order = example.rng.permutation(n)
        cuts = np.sort(example.rng.integers(0, n + 1, 0 if attempt == 0 else example.between(0, 3)))
        table: Any = HashMap(key, dtype, design=example.design, device="cpu", seed=attempt)
        try:
            for part in np.split(order, cuts):
                table.upsert(keys[part], values[part], op)
        except UnsupportedVerb:
            return
        held, found = table.find(_keys(np.arange(distinct), key))
        answers[attempt] = np.ascontiguousarray(held).tobytes(), found.tobytes()
        if op in ("first", "last"):
            _follows_a_dict(keys, values, op, table)
    shown = {np.frombuffer(held, dtype.base)[:6].tobytes() for held, _ in answers.values()}
    require(
        len(set(answers.values())) == 1,
        f"upsert {op} of {dtype.base} depends on the order",
        [np.frombuffer(each, dtype.base) for each in shown],
    )


def _keys(numbers: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind != "V":
        return numbers.astype(dtype)
    raw = np.zeros((len(numbers), dtype.itemsize), np.uint8)
    raw[:, 3] = numbers
    return raw.reshape(-1).view(dtype)


def _values(example: Example, n: int, dtype: np.dtype[Any]) -> Any:
    base, shape = dtype.subdtype or (dtype, ())
    shape = (n, *shape)
    numbers = example.rng.integers(-3, 4, shape)
    if base.kind == "f":
        special = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0], base)
        return np.where(example.rng.random(shape) < 0.6, example.rng.choice(special, shape), numbers.astype(base))
    if base.kind in "mM":
        counts = np.where(example.rng.random(shape) < 0.3, -(2**63), numbers)
        return counts.astype("i8").view(base)
    return numbers.astype(base)


def _follows_a_dict(keys: Any, values: Any, op: str, table: Any) -> None:
    model: dict[bytes, bytes] = {}
    for key, value in zip(keys, values, strict=True):
        if op == "last" or key.tobytes() not in model:
            model[key.tobytes()] = value.tobytes()
    held, _ = table.find(keys)
    right = b"".join(model[key.tobytes()] for key in keys)
    require(np.ascontiguousarray(held).tobytes() == right, f"upsert {op}: not the {op} value")
