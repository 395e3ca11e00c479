"""The stable order of integers, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from warphash.relational.numbered import stable_order


@pytest.mark.parametrize("span", [1, 2, 300, 1 << 20, 1 << 31, 1 << 32, 1 << 40, 1 << 62])
@pytest.mark.parametrize("n", [0, 1, 4095, 4096, 50_000])
def test_integers_of_any_span(n: int, span: int) -> None:
    numbers = np.random.default_rng(n + span).integers(-span, span, n)
    np.testing.assert_array_equal(stable_order(numbers), np.argsort(numbers, kind="stable"))


def test_the_ends_of_the_range_that_is_counted() -> None:
    numbers = np.resize(np.array([(1 << 32) - 1, 0]), 10_000) - (1 << 31)
    np.testing.assert_array_equal(stable_order(numbers), np.argsort(numbers, kind="stable"))
