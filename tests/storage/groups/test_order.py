"""The stable order of a batch by its numbers, beside NumPy's, on every engine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from support.engines import one_of_each
from warphash.runtime.devices import engine_for
from warphash.storage.groups.order import DIGIT_BITS, ORDER_TILE, ordered, ordered_rows

SIZES = [1, 31, 32, 33, ORDER_TILE - 1, ORDER_TILE, ORDER_TILE + 1, 3 * ORDER_TILE + 17, 20_000]
ENDS = [1, 2, 100, 1 << DIGIT_BITS, (1 << DIGIT_BITS) + 1, 1 << 12, 1 << 16, (1 << 20) - 5, 1 << 26, 1 << 32]
"""All numbers are less: of 1 to 4 digits on a GPU."""

KINDS = ["any", "few", "equal", "descending", "skewed", "last"]
engines = pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))


def numbers_of(kind: str, n: int, end: int) -> npt.NDArray[np.uint32]:
    """``n`` numbers below ``end``."""
    rng = np.random.default_rng(n + end)
    match kind:
        case "any":
            numbers = rng.integers(0, end, n)
        case "few":
            numbers = rng.choice(rng.integers(0, end, 3), n)
        case "equal":
            numbers = np.full(n, end // 2)
        case "descending":
            numbers = np.arange(n)[::-1] * (end - 1) // max(1, n - 1)
        case "skewed":
            numbers = (rng.random(n) ** 8 * end).astype(np.int64)
        case _:  # all but one are 0
            numbers = np.zeros(n, np.int64)
            numbers[n // 2] = end - 1
    return numbers.astype(np.uint32)


def expect_order(device: str, numbers: npt.NDArray[np.uint32], end: int) -> None:
    engine = engine_for(device)
    held = engine.from_host(numbers)
    order = ordered(engine, held.ptr, len(numbers), end, None)
    expected = np.argsort(numbers, kind="stable")
    np.testing.assert_array_equal(engine.to_host(order.ptr, np.uint32, len(numbers)), expected)
    np.testing.assert_array_equal(engine.to_host(held.ptr, np.uint32, len(numbers)), numbers)


@engines
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_elements_of_one_number_keep_their_order(kind: str, n: int, device: str) -> None:
    for end in (300, (1 << 20) - 5):
        expect_order(device, numbers_of(kind, n, end), end)


@engines
@pytest.mark.parametrize("n", [33, ORDER_TILE + 1])
@pytest.mark.parametrize("end", ENDS)
def test_numbers_of_any_width(end: int, n: int, device: str) -> None:
    for kind in KINDS:
        expect_order(device, numbers_of(kind, n, end), end)


@engines
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("end", [2, 1 << DIGIT_BITS, 1 << 20])
@pytest.mark.parametrize("dtype", ["u4", "u8"])
def test_rows_go_where_their_elements_go(dtype: str, end: int, n: int, device: str) -> None:
    engine, numbers = engine_for(device), numbers_of("any", n, end)
    rows = np.random.default_rng(n).integers(0, np.iinfo(dtype).max, n, dtype)
    given, held, guard = engine.from_host(numbers), engine.from_host(rows), np.zeros(8, dtype)
    out = engine.from_host(np.concatenate([np.zeros(n, dtype), guard]))
    assert ordered_rows(engine, given.ptr, n, end, held.ptr, rows.itemsize, out.ptr, None)
    expected = np.concatenate([rows[np.argsort(numbers, kind="stable")], guard])
    np.testing.assert_array_equal(engine.to_host(out.ptr, dtype, n + len(guard)), expected)
    np.testing.assert_array_equal(engine.to_host(held.ptr, dtype, n), rows)


@engines
@pytest.mark.parametrize("row_bytes", [1, 2, 3, 12, 16])
def test_rows_of_other_widths_stay(row_bytes: int, device: str) -> None:
    assert not ordered_rows(engine_for(device), 0, 5, 2, 0, row_bytes, 0, None)
