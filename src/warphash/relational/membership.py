"""`isin`: which elements of an array are among others."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.columns import library_name
from ..errors import ParameterError
from ..table.maps import HashMap, HashSet
from .comparable import as_type_of
from .elements import elements_of
from .index import Index
from .items import Fixed, Items, Missing
from .known import KnownItems
from .numbered import number_items

__all__ = ["found_in", "isin"]

_FEW = 1 << 12
"""Elements of both arrays that are numbered together: a table would take longer to make."""


def isin(
    element: Any,
    test_elements: Any,
    /,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    equal_nan: bool = False,
    nulls: Literal["equal", "unequal"] = "equal",
) -> Any:
    """Find the elements of an array or a column that are among others.

    Parameters
    ----------
    element
        As ``x`` of `unique`.
    test_elements
        An array, a list or a column to look them up in. Numbers are compared as numbers, whatever their types are. Or
        an `Index`, a `HashSet` or a `HashMap`, which has its own rules for NaN and nulls; then arrays on the GPU of the
        table are taken, too.
    assume_unique
        As of NumPy's function. The answer does not depend on it.
    invert
        Find the elements that are not among the others.
    equal_nan
        NaN is among the others if one of them is NaN; and so is NaT.
    nulls
        ``"equal"``: a null is among the others if one of them is null. ``"unequal"``: it never is.

    Returns
    -------
    flags
        bool, in the library and the shape of ``element``. Values of kinds that cannot be equal, such as numbers and
        strings, are not among each other.

    Raises
    ------
    ParameterError
        If there is no such rule for nulls.
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n + m) for n elements and m others, by a hash table of these.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> warphash.isin(np.array([1, 2, 3]), [3.0, 1.5, 1.0])
    array([ True, False,  True])
    """
    if nulls not in ("equal", "unequal"):
        raise ParameterError(f"nulls must be 'equal' or 'unequal', got {nulls!r}")
    if isinstance(test_elements, Index | HashMap | HashSet):
        answers = test_elements.contains(element)
        return _inverted(answers) if invert else answers
    elements, others = elements_of(element), elements_of(test_elements)
    nan: Missing = "one" if equal_nan else "dropped"
    flags = found_in(elements.items, others.items, nan=nan, null="one" if nulls == "equal" else "dropped")
    return elements.for_each(~flags if invert else flags)


def found_in(items: Items, others: Items, *, nan: Missing, null: Missing) -> npt.NDArray[np.bool_]:
    """Which items are among others, bool[n].

    Parameters
    ----------
    nan, null
        ``"one"``: NaN equals NaN, and a null a null; ``"dropped"``: they equal nothing.
    """
    if isinstance(items, Fixed) and isinstance(others, Fixed) and len(items.array) + len(others.array) <= _FEW:
        return _found_in_few(items, others, nan, null)
    if (compared := as_type_of(others, items)) is not None and compared.fits is not None:
        others = _chosen(compared.items, compared.fits)
    elif compared is not None:
        others = compared.items
    return KnownItems(others, nan=nan, null=null).contains(items)


def _found_in_few(items: Fixed, others: Fixed, nan: Missing, null: Missing) -> npt.NDArray[np.bool_]:
    """Number the others and the items behind them: those that are there have the numbers of the others."""
    first = others
    if items.array.dtype != others.array.dtype:
        compared = as_type_of(others, items)
        if compared is None:
            return KnownItems(others, nan=nan, null=null).contains(items)
        made = compared.items if compared.fits is None else _chosen(compared.items, compared.fits)
        assert isinstance(made, Fixed)
        first = made
    array, valid = np.concatenate((first.array, items.array)), None
    if first.valid is not None or items.valid is not None:
        both = (np.ones(len(each.array), np.bool_) if each.valid is None else each.valid for each in (first, items))
        valid = np.concatenate(tuple(both))
    numbers = number_items(Fixed(array, valid), codes=True, nan=nan, null=null)
    known = np.searchsorted(numbers.firsts, len(first.array))
    codes = numbers.code_of_each[len(first.array) :]
    return (codes >= 0) & (codes < known)


def _chosen(items: Items, fits: npt.NDArray[np.bool_]) -> Items:
    """The items that fit, and the nulls."""
    if items.valid is not None:
        fits = fits | ~items.valid
    return items._replace(array=items.array[fits], valid=None if items.valid is None else items.valid[fits])


def _inverted(flags: Any) -> Any:
    if library_name(flags) == "pyarrow":
        return import_module("pyarrow.compute").invert(flags)
    return ~flags
