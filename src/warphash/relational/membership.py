"""`isin`: which elements of an array are among others."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.columns import library_name
from ..arrays.adapters.numpy import address_of
from ..arrays.arrow_values import both
from ..arrays.row_type import MAX_KEY_BYTES
from ..errors import ParameterError
from ..runtime.devices import engine_for
from ..runtime.engine import Engine
from ..storage.groups.members import mark_members
from ..table.maps import HashMap, HashSet
from .comparable import as_type_of
from .composites import RowElements, alike, row_elements_of
from .device_elements import DeviceElements
from .device_known import DeviceKnown
from .elements import Elements
from .index import Index
from .items import Fixed, Missing, Packed, Text, are_absent, packed
from .known import KnownItems, as_keys, known_of, set_of
from .numbered import Asked, number_rows

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
        An array, a list or a column to look them up in. Numbers are compared as numbers, whatever their types are. If
        ``element`` is on a GPU, these are on that GPU, too, or in host memory, and are copied there. If ``element`` is
        a tuple of columns, a tuple of as many (at most 16) on the same device; if it is a frame, one with columns of
        the same names, in any order. Or an `Index`, a `HashSet` or a
        `HashMap`, which has its own rules for NaN and nulls.
    assume_unique
        As of NumPy's function. The answer does not depend on it.
    invert
        Find the elements that are not among the others.
    equal_nan
        NaN is among the others if one of them is NaN; and so is NaT. Otherwise a row with NaN is not among others.
    nulls
        ``"equal"``: a null is among the others if one of them is null. ``"unequal"``: it never is, and no row with one.

    Returns
    -------
    flags
        bool, in the library and the shape of ``element``. Values of kinds that cannot be equal, such as numbers and
        strings, are not among each other.

    Raises
    ------
    ParameterError
        If there is no such rule for nulls.
    DeviceError
        If the others are on a GPU, and ``element`` is not.
    ShapeError
        As `unique`; and if only one is a tuple of columns, or they are not of as many columns.
    DtypeError, MemoryError
        As `unique`; and `DtypeError` for frames with columns of other names, and for decimal beside floating-point
        numbers.

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
    elements = row_elements_of(element)
    nan: Missing = "one" if equal_nan else "dropped"
    null: Missing = "one" if nulls == "equal" else "dropped"
    flags = found_in(elements, row_elements_of(test_elements), nan=nan, null=null)
    return elements.for_each(~flags if invert else flags)


def found_in(elements: Elements, given: Elements, *, nan: Missing, null: Missing) -> Any:
    """Which elements are among others, bool[n], where the elements are.

    Parameters
    ----------
    nan, null
        ``"one"``: NaN equals NaN, and a null a null; ``"dropped"``: they equal nothing.

    Raises
    ------
    DeviceError
        If the others are on a GPU, and the elements are not there. Others in host memory are sent to the elements,
        unless they are rows.
    ShapeError
        As `alike`, which also raises `DtypeError`.
    """
    elements = alike(elements, given)
    if isinstance(given, RowElements):
        return known_of(given, given.number().firsts, nan=nan, null=null).contains(elements)
    if isinstance(elements, DeviceElements):
        return DeviceKnown(_there(given, elements), nan=nan).contains(elements)
    items, others = elements.items, given.items
    compared = None if are_absent(items) else as_type_of(others, items)
    if isinstance(items, Text) or (compared is None and items.array.dtype.kind in "SU"):  # bytes may equal strings
        known = others if compared is None else compared.items._replace(valid=others.valid)  # strings of any length
        return KnownItems(known, nan=nan, null=null).contains(elements)
    has_null = null == "one" and others.valid is not None and not others.valid.all()
    if compared is None:
        return ~items.valid if has_null and items.valid is not None else np.zeros(len(items.array), np.bool_)
    valid = both(others.valid, compared.fits)
    engine = engine_for("cpu")
    rows = packed(engine, items, nan)
    found = _found_rows(engine, rows, packed(engine, Fixed(compared.items.array, valid), nan))
    if rows.kept is None:
        return found
    flags = np.zeros(len(items.array), np.bool_)
    flags[rows.kept] = found
    if has_null and items.valid is not None:
        flags[~items.valid] = True
    return flags


def _there(others: Elements, elements: DeviceElements) -> DeviceElements:
    """Others on the GPU of some elements: those that are there, or those in host memory that their type has."""
    if isinstance(others, DeviceElements):
        return others
    items, dtype = others.items, elements.dtype
    compared = as_type_of(items, Fixed(np.empty(0, dtype)))
    if compared is None:
        return elements.sent(np.empty(0, dtype))
    valid, array = both(items.valid, compared.fits), compared.items.array
    return elements.sent(array if valid is None else array[valid])


def _found_rows(engine: Engine, rows: Packed, others: Packed) -> npt.NDArray[np.bool_]:
    """Which rows are among others of the same width."""
    n, count, width = len(rows.rows), len(others.rows), rows.width
    if not (n and count):
        return np.zeros(n, np.bool_)
    if n + count <= _FEW or width > MAX_KEY_BYTES:  # the others and the rows behind them, numbered together
        numbers = number_rows(engine, np.concatenate((others.rows, rows.rows)), width, Asked(codes=True))
        return numbers.code_of_each[count:] < np.searchsorted(numbers.firsts, count)
    flags = np.empty(n, np.bool_)
    words = address_of(rows.rows), n, address_of(others.rows), count
    if mark_members(engine, *words, width, address_of(flags)):
        return flags
    return np.asarray(set_of(others).contains(as_keys(rows)), np.bool_)


def _inverted(flags: Any) -> Any:
    if library_name(flags) == "pyarrow":
        return import_module("pyarrow.compute").invert(flags)
    return ~flags
