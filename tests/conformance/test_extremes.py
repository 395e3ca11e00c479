"""Minima and maxima of floating-point values: NaN wins, and no bit depends on the order of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import design_names
from support.engines import one_of_each
from support.extremes import numbers, winners

HERE = one_of_each("cpu", "emulated", "cuda")
SOME = ("bucketed_cuckoo", "slab", "dynamic_cuckoo", "stadium", "two_level_cuckoo", "quotient_cuckoo", "tiered")
"""One design of each family: on any day, the emulated engine runs these."""

KEY_OF = {"f4": "u4", "f8": "u8"}
"""A key as wide as the value: the emulated engine has the kernels of these types already."""

N = {"cpu": 30_000, "emulated": 200, "cuda": 30_000}


def crossed() -> list[Any]:
    """Every design on every engine that can run here."""
    return [
        pytest.param(
            design,
            *device.values,
            id=f"{device.values[0]}-{design}",
            marks=[*device.marks, *[pytest.mark.slow] * (device.values[0] == "emulated" and design not in SOME)],
        )
        for device in HERE
        for design in design_names()
    ]


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("design", "device"), crossed())
def test_no_order_changes_a_bit(design: str, device: str, dtype: str, op: str, rng: np.random.Generator) -> None:
    pool, n = numbers(dtype), N[device]
    table: Any = warphash.HashMap(KEY_OF[dtype], dtype, design=design, device=device, seed=3, capacity=64)
    keys = np.concatenate([np.arange(40), rng.integers(0, 7, n - 40)]).astype(KEY_OF[dtype])
    values = rng.choice(pool, n)
    values[keys == 5] = rng.choice(np.array([0.0, -0.0], dtype), np.count_nonzero(keys == 5))
    values[keys == 6] = rng.choice(pool[np.isnan(pool)], np.count_nonzero(keys == 6))
    expected = winners(keys, values, op)
    reduced: Any = {"min": np.minimum, "max": np.maximum}[op]
    for begin, end in ((0, n // 3), (n // 3, n), (0, n)):  # once more: nothing changes
        order = rng.permutation(np.arange(begin, end))
        table.upsert(keys[order], values[order], op)
    asked = np.array([*expected], keys.dtype)
    held, found = table.find(asked)
    assert found.all() and len(table) == len(expected)
    assert [value.tobytes() for value in held] == [*expected.values()]
    np.testing.assert_array_equal(held, [reduced.reduce(values[keys == key]) for key in asked])
    table.check()


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("design", ["bucketed_cuckoo", "stadium", "tiered"])
def test_rows_of_floats_keep_the_rule_number_by_number(design: str, op: str, rng: np.random.Generator) -> None:
    pool = numbers("f4")
    table: Any = warphash.HashMap("u8", ("f4", (3,)), design=design, device="cpu", seed=3)
    keys, values = rng.integers(0, 5, 900).astype("u8"), rng.choice(pool, (900, 3))
    table.upsert(keys, values, op)
    for column in range(3):
        part = np.ascontiguousarray(values[:, column])
        for key, bits in winners(keys, part, op).items():
            assert table[key][column].tobytes() == bits


def test_sums_of_truths_are_truths() -> None:
    """As np.add has it, True and True are True: no other byte is a bool."""
    table: Any = warphash.HashMap("i8", "bool", device="cpu")
    table.upsert([0, 0, 1, 2], [True, True, False, True], "add")
    table.upsert([0, 1, 2], [True, False, False], "add")
    held, found = table.find([0, 1, 2])
    assert found.all() and held.view("u1").tolist() == [1, 0, 1]
