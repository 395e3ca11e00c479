"""`isin`: which elements of an array are among others."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.columns import library_name
from ..arrays.adapters.numpy import address_of
from ..arrays.row_type import MAX_KEY_BYTES
from ..errors import DtypeError, ParameterError
from ..runtime.devices import engine_for
from ..runtime.engine import Engine
from ..storage.groups.members import mark_members
from ..table.maps import HashMap, HashSet
from .comparable import as_type_of
from .device_elements import DeviceElements
from .elements import ItemElements, elements_of
from .index import Index
from .items import Fixed, Items, Missing, Packed, Text, packed
from .known import KnownItems, as_keys, set_of
from .numbered import number_rows

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
    if isinstance(elements, DeviceElements):
        answers = elements.for_each(_found_on_device(elements, others, nan))
        return ~answers if invert else answers
    flags = found_in(elements.items, others.items, nan=nan, null="one" if nulls == "equal" else "dropped")
    return elements.for_each(~flags if invert else flags)


def found_in(items: Items, others: Items, *, nan: Missing, null: Missing) -> npt.NDArray[np.bool_]:
    """Which items are among others, bool[n].

    Parameters
    ----------
    nan, null
        ``"one"``: NaN equals NaN, and a null a null; ``"dropped"``: they equal nothing.
    """
    compared = as_type_of(others, items)
    if isinstance(items, Text) or compared is None or isinstance(compared.items, Text):
        return KnownItems(others, nan=nan, null=null).contains(items)
    has_null = null == "one" and others.valid is not None and not others.valid.all()
    valid = others.valid
    if compared.fits is not None:
        valid = compared.fits if valid is None else compared.fits & valid
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


def _found_on_device(elements: DeviceElements, others: ItemElements, nan: Missing) -> Any:
    """Which elements on a GPU are among others, which are there, too, or are sent there."""
    if isinstance(others, DeviceElements):
        if others.dtype != elements.dtype and "f" in (elements.dtype.kind, others.dtype.kind):
            raise DtypeError(
                f"expected two arrays of one type on {elements.device}, got {elements.dtype} and {others.dtype}: "
                "convert one of them"
            )
        words = others.words(nan)
    else:
        compared = as_type_of(others.items, Fixed(np.empty(0, elements.dtype)))
        if compared is None:
            return ~elements.flags()
        valid = others.items.valid
        if compared.fits is not None:
            valid = compared.fits if valid is None else compared.fits & valid
        rows = packed(engine_for("cpu"), compared.items._replace(valid=valid), nan)
        kind = "u" if elements.dtype.kind in "bu" else "i"
        words = np.ascontiguousarray(rows.rows).view(f"{kind}{rows.width}")
    return HashSet.from_arrays(words, device=elements.device).contains(elements.words("one"))


def _found_rows(engine: Engine, rows: Packed, others: Packed) -> npt.NDArray[np.bool_]:
    """Which rows are among others of the same width."""
    n, count, width = len(rows.rows), len(others.rows), rows.width
    if not (n and count):
        return np.zeros(n, np.bool_)
    if n + count <= _FEW or width > MAX_KEY_BYTES:  # the others and the rows behind them, numbered together
        numbers = number_rows(engine, np.concatenate((others.rows, rows.rows)), width, codes=True)
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
