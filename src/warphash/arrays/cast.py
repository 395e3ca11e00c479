"""Arrays of one type as arrays of another: each value exactly, or marked as one that the type does not have.

This is for arrays what `exact` is for Python values. Two types are compared if their values can be equal: numbers with
numbers, times with times, strings with strings or with the bytes of ASCII characters, decimal numbers of one scale, and
records with records that have the same fields. A mask is no array of numbers.

Arrays in host memory are converted by NumPy, whatever library they are of. Arrays on a GPU are converted there, by an
adapter with the methods ``cast`` and ``spread`` (PyTorch, CuPy). Whether all values of an array fit is known to the
host, which has to wait for the device to know it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import CaptureError
from .adapters.numpy import address_of
from .batch import library_of_rows
from .decimals import decimal_of, decimal_scale, in_width_of
from .library import ArrayView, Dtype
from .plain_types import parts
from .times import in_unit_of

__all__ = ["Fits", "Sought", "cast", "chosen", "first_unfit", "is_comparable", "per_row", "spread", "spread_offsets"]

Fits = Any
"""Which elements fit: an array of bool of NumPy's, or of the library whose arrays are on a GPU; None if all fit."""


class Sought(NamedTuple):
    """Keys of a batch to be looked up, in the type of a table, and which of them that type has."""

    keys: ArrayView
    fits: Fits


Items = npt.NDArray[Any]
Cast = Callable[[Any, Dtype], Any]


def is_comparable(given: Dtype, wanted: Dtype) -> bool:
    """Whether a value of one type can be equal to one of another."""
    if given == wanted:
        return True
    if (scale := decimal_scale(given)) is not None and scale == decimal_scale(wanted):
        return True
    if given.names is not None or wanted.names is not None:
        return _have_comparable_fields(given, wanted)
    kinds = given.kind + wanted.kind
    if kinds[0] in "iuf" and kinds[1] in "iuf":
        return True
    if kinds in ("MM", "mm"):
        is_generic = "generic" in (np.datetime_data(given)[0], np.datetime_data(wanted)[0])
        return not is_generic and np.can_cast(given, wanted, "same_kind")
    return kinds in ("cc", "SS", "UU", "US")


def _have_comparable_fields(given: Dtype, wanted: Dtype) -> bool:
    if set(given.names or ()) != set(wanted.names or ()):
        return False
    if sum(part.nbytes for part in parts(wanted)) > wanted.itemsize:  # fields that overlap
        return False
    fields = [(given[name], wanted[name]) for name in wanted.names or ()]
    return all(each.shape == other.shape and is_comparable(each.base, other.base) for each, other in fields)


def is_wider(given: Dtype, wanted: Dtype) -> bool:
    """Whether a type has every value of another one: whether a conversion needs no check."""
    if given.kind in "iu" and wanted.kind == "f":  # NumPy calls int64 to float64 safe
        return 8 * given.itemsize <= np.finfo(wanted).nmant + 1
    same = given.kind == wanted.kind or (given.kind in "iu" and wanted.kind in "iu")
    return same and given.kind in "iufcSU" and np.can_cast(given, wanted, "safe")


def cast(seen: ArrayView, dtype: Dtype) -> tuple[ArrayView, Fits] | None:
    """A copy of an array in a type that is comparable, and which of its items fit; None if its library makes no copy.

    Raises
    ------
    CaptureError
        If a CUDA graph captures the work on the array, and not every value of its type fits.
    """
    if seen.host is not None:
        with np.errstate(all="ignore"):
            made, fits = _cast_items(seen.host, dtype)
        copy = seen._replace(ptr=address_of(made), dtype=dtype, host=made, capsule=made)
    else:
        library: Any = seen.library
        if not hasattr(library, "cast"):
            return None
        if not is_wider(seen.dtype, dtype) and library.is_captured():
            raise CaptureError(
                f"an array of {seen.dtype} cannot be captured where {dtype} is expected, as the host has to know "
                "whether every value fits: convert the array before the capture"
            )
        owner, fits = _cast_numbers(seen.owner, seen.dtype, dtype, library.cast)
        copy = library.see(owner)
    return copy, None if fits is None or bool(fits.all()) else fits


def _cast_items(items: Items, dtype: Dtype) -> tuple[Items, npt.NDArray[np.bool_] | None]:
    """Items of NumPy's in another type, and which of them fit."""
    given = items.dtype
    if given == dtype:
        return items, None
    if decimal_scale(dtype) is not None:
        return in_width_of(items, dtype)
    if dtype.names is not None:
        return _cast_records(items, dtype)
    if is_wider(given, dtype):
        return items.astype(dtype), None
    if given.kind == "U" and dtype.kind == "S":
        return _cast_ascii(items, dtype)
    if given.kind in "SU":
        made = items.astype(dtype)
        return made, made == items
    if given.kind in "Mm":
        return in_unit_of(items, dtype)
    made, fits = _cast_numbers(items, given, dtype, _numpy_cast)
    return made, fits


def _numpy_cast(items: Items, dtype: Dtype) -> Items:
    return items.astype(dtype)


def _cast_records(items: Items, dtype: Dtype) -> tuple[Items, npt.NDArray[np.bool_]]:
    """Records, field by field: those of one name go together."""
    made, fits = np.zeros(items.shape, dtype), np.ones(items.shape, np.bool_)
    for name in dtype.names or ():
        field, fit = _cast_items(np.ascontiguousarray(items[name]), dtype[name].base)
        made[name] = field
        if fit is not None:
            fits &= fit.all(tuple(range(items.ndim, fit.ndim)))
    return made, fits


def _cast_ascii(items: Items, dtype: Dtype) -> tuple[Items, npt.NDArray[np.bool_]]:
    """Strings as the bytes of their characters."""
    width = items.dtype.itemsize // 4
    if not width:
        return np.zeros(items.shape, dtype), np.ones(items.shape, np.bool_)
    codes = np.ascontiguousarray(items).view(np.uint32).reshape((*items.shape, width))
    whole = codes.astype(np.uint8).view(f"S{width}").reshape(items.shape)
    made = whole.astype(dtype)
    return made, (codes < 128).all(-1) & (made == whole)


def _cast_numbers(items: Any, given: Dtype, dtype: Dtype, cast: Cast) -> tuple[Any, Fits]:
    """Numbers of any library in another type. Each comparison is one of two arrays of one type, or with a constant."""
    made = cast(items, dtype)
    if is_wider(given, dtype):
        return made, None
    if given.kind in "iu" and dtype.kind in "iu":
        fits = cast(made, given) == items
        if given.kind != dtype.kind:
            fits &= (items >= 0) if given.kind == "i" else (made >= 0)
        return made, fits
    if dtype.kind in "iu":  # a float outside the type becomes any integer
        wide = _at_least_double(given)
        numbers = cast(items, wide)
        return made, _in_range(numbers, dtype) & (cast(made, wide) == numbers)
    if given.kind in "iu":
        numbers = cast(made, _at_least_double(dtype))
        return made, _in_range(numbers, given) & (cast(numbers, given) == items)
    return made, (cast(made, given) == items) | ((items != items) & (made != made))


def _at_least_double(dtype: Dtype) -> Dtype:
    return dtype if dtype.itemsize >= 8 else np.dtype(np.float64)


def _in_range(numbers: Any, integers: Dtype) -> Any:
    """Which floats are between the least and the largest integer of a type. The bounds are powers of two, so exact."""
    bits = 8 * integers.itemsize
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if integers.kind == "i" else (0.0, 2.0**bits)
    return (numbers >= low) & (numbers < high)


# ---- rows of which some fit
def per_row(fits: Fits, rows: ArrayView) -> Fits:
    """Which rows fit: those all of whose items do."""
    return None if fits is None else fits.reshape((rows.shape[0], -1)).all(-1)


def chosen(rows: ArrayView, fits: Fits) -> ArrayView:
    """The rows that fit, as a batch of one axis. Waits for the device."""
    library = library_of_rows(rows.library)
    if rows.host is not None:
        host = rows.host[fits]
        return rows._replace(ptr=address_of(host), shape=host.shape, host=host, library=library)
    return library.see(rows.owner.reshape(rows.shape)[fits])._replace(library=library)


def spread(out: ArrayView, fits: Fits, answers: ArrayView, absent: bytes) -> None:
    """Write the answers for the rows that fit to their places, and a row of these bytes to the others."""
    row = np.frombuffer(absent, out.dtype).reshape(out.shape[1:])
    if out.host is not None:
        out.host[...] = row
        out.host[fits] = answers.host
    else:
        library: Any = library_of_rows(out.library)
        library.spread(out.owner.reshape(out.shape), fits, answers.owner, row)


def spread_offsets(out: ArrayView, fits: Fits, offsets: ArrayView) -> None:
    """Write the offsets for all rows, of which those that do not fit have no values."""
    to, given = (view.owner if view.host is None else view.host for view in (out, offsets))
    to[0] = 0
    to[1:] = given[fits.cumsum(0)]


def first_unfit(seen: ArrayView, fits: Fits) -> str:
    """The first item that does not fit, in a message. Waits for the device."""
    item = (seen.owner if seen.host is None else seen.host)[~fits][0]
    if decimal_scale(seen.dtype) is not None:
        return f"{decimal_of(item)}"
    return f"{item if seen.dtype.kind in 'MmV' else item.item()!r:.60}"
