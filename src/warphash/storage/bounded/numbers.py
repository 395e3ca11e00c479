"""The bound that numbers of a column are compared with, exactly, as a rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.plain_array import plain_array
from ...errors import DtypeError, ParameterError
from ...runtime.abi import Comparison
from .ranks import rank_of

__all__ = ["COMPARISONS", "bounded_by"]

COMPARISONS = {
    "<": Comparison.LESS,
    "<=": Comparison.LESS_EQUAL,
    "==": Comparison.EQUAL,
    "!=": Comparison.UNEQUAL,
    ">=": Comparison.GREATER_EQUAL,
    ">": Comparison.GREATER,
}


def bounded_by(dtype: np.dtype[Any], comparison: str, bound: Any) -> tuple[Comparison, int] | bool:
    """How numbers of a type compare with ``bound``: by a comparison of ranks, or all of them alike (a bool).

    Integers are compared exactly, also with a bound that their type does not have: 2.5, -1 or 2**64. A bound of floats
    becomes a float of their type, as in NumPy.

    Raises
    ------
    ParameterError
        If there is no such comparison.
    DtypeError
        If the bound is no number, is masked, or has a unit.
    """
    if comparison not in COMPARISONS:
        raise ParameterError(f"comparison must be one of {[*COMPARISONS]}, got {comparison!r}")
    number = plain_array(bound)[()] if isinstance(bound, np.ndarray) and not bound.ndim else bound
    if isinstance(number, np.generic) and number.dtype.kind not in "Mm":  # of which some are integers to Python
        number = number.item()
    if not isinstance(number, bool | int | float):
        raise DtypeError(f"expected a bound that is a number, to compare {dtype} with, got {bound!r}")
    how = COMPARISONS[comparison]
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return how, rank_of(_float_of(dtype, number))
    if isinstance(number, float) and not math.isfinite(number):
        if math.isnan(number):
            return how is Comparison.UNEQUAL
        return _beyond(how, number > 0)
    whole = math.floor(number)
    if whole != number:  # no integer equals the bound, and those below it are at most `whole`
        if how in (Comparison.EQUAL, Comparison.UNEQUAL):
            return how is Comparison.UNEQUAL
        how = Comparison.LESS_EQUAL if how in (Comparison.LESS, Comparison.LESS_EQUAL) else Comparison.GREATER
    least, most = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if not least <= whole <= most:
        return _beyond(how, whole > most)
    return how, rank_of(dtype.type(whole))


def _float_of(dtype: np.dtype[Any], number: float) -> np.generic:
    """A number as a float of a type; infinite if the type has none so large."""
    try:
        rounded: np.generic = dtype.type(number)
    except OverflowError:  # an integer beyond all floats
        rounded = dtype.type(math.inf if number > 0 else -math.inf)
    return rounded


def _beyond(how: Comparison, above: bool) -> bool:
    """Whether the comparison is true of all numbers, with a bound above all of them, or below all of them."""
    if how in (Comparison.EQUAL, Comparison.UNEQUAL):
        return how is Comparison.UNEQUAL
    return (how in (Comparison.LESS, Comparison.LESS_EQUAL)) == above
