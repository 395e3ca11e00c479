"""Decimal numbers in another scale, as Python's integers have it: those that are words, and those that are longer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warphash.arrays.decimals import decimal_type, in_scale_of, integers_of_decimals

scales, widths = st.integers(-4, 22), st.sampled_from([16, 32])
wholes = st.sampled_from([10, 10**4, 2**62, 2**63, 10**20]).flatmap(lambda most: st.integers(-most, most))


@given(wholes=st.lists(wholes, max_size=5), scale=scales, other=scales, nbytes=widths, width=widths)
def test_another_scale(wholes: list[int], scale: int, other: int, nbytes: int, width: int) -> None:
    raw = b"".join(whole.to_bytes(nbytes, "little", signed=True) for whole in wholes)
    made, fits = in_scale_of(np.frombuffer(raw, decimal_type(scale, nbytes)).copy(), decimal_type(other, width))
    up, down = 10 ** max(0, other - scale), 10 ** max(0, scale - other)
    expected = [None if whole * up % down else whole * up // down for whole in wholes]
    most = 1 << (8 * width - 1)
    expected = [None if whole is None or not -most <= whole < most else whole for whole in expected]
    assert fits.tolist() == [whole is not None for whole in expected]
    held = [int.from_bytes(item.tobytes(), "little", signed=True) for item in made]
    assert made.dtype == decimal_type(other, width) and held == [whole or 0 for whole in expected]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@given(wholes=st.lists(wholes, max_size=5), scale=scales, nbytes=widths)
def test_integers(dtype: str, wholes: list[int], scale: int, nbytes: int) -> None:
    raw = b"".join(whole.to_bytes(nbytes, "little", signed=True) for whole in wholes)
    made, fits = integers_of_decimals(np.frombuffer(raw, decimal_type(scale, nbytes)).copy(), np.dtype(dtype))
    up, down, bounds = 10 ** max(0, -scale), 10 ** max(0, scale), np.iinfo(dtype)
    values = [None if whole * up % down else whole * up // down for whole in wholes]
    expected = [value is not None and bounds.min <= value <= bounds.max for value in values]
    assert fits.tolist() == expected
    assert [item for item, fit in zip(made.tolist(), expected, strict=True) if fit] == [
        value for value, fit in zip(values, expected, strict=True) if fit
    ]
