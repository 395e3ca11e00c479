"""`unique`, in NumPy's form and in those of the array API standard."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .composites import row_elements_of
from .elements import Elements
from .items import Missing
from .numbered import Asked, Numbers, index_type

__all__ = [
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "in_order",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAll(NamedTuple):
    """What `unique_all` answers.

    Attributes
    ----------
    values
        The distinct elements, in the order of first appearance.
    indices
        Where each first appears; int64.
    inverse_indices
        The number of each element among the distinct ones, of the shape of the array; int64.
    counts
        How often each appears; int64.
    """

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` answers.

    Attributes
    ----------
    values
        The distinct elements, in the order of first appearance.
    counts
        How often each appears; int64.
    """

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` answers.

    Attributes
    ----------
    values
        The distinct elements, in the order of first appearance.
    inverse_indices
        The number of each element among the distinct ones, of the shape of the array; int64.
    """

    values: Any
    inverse_indices: Any


def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    sorted: bool = False,
    equal_nan: bool = True,
    index_dtype: Any = None,
) -> Any:
    """Find the distinct elements of an array or a column.

    Parameters
    ----------
    x
        An array of any shape, a list, or a column of pandas, Polars or PyArrow. An array on a GPU has numbers alone. Or
        a tuple of columns, and of arrays of one dimension, all of one length: elements are its rows. The columns may be
        of several libraries and types.
    return_index, return_inverse, return_counts
        Also answer the position at which each distinct element first appears; the number of each element among the
        distinct ones; how often each distinct element appears.
    axis
        Elements are the subarrays along this axis, such as the rows of a matrix by ``axis=0``. None: they are the
        items, in one dimension.
    sorted
        Answer in ascending order. By default, in the order of first appearance, which takes less time.
    equal_nan
        All NaN are one element, and so are all NaT. Otherwise each of them, and each row with one, is an element of its
        own.
    index_dtype
        Of indices, inverse and counts: ``"int64"``, the default, or ``"int32"``, which takes half the memory.

    Returns
    -------
    values, indices, inverse, counts
        ``values`` alone, or a tuple of it and of what was asked for, in this order. In the library of ``x``; numbers
        are of type ``index_dtype``. ``values`` has the element that appears first of equal ones such as 0.0 and -0.0.
        Nulls are one element. ``inverse`` has the shape of ``x``, or one dimension if an axis is given. Of a tuple,
        ``values`` is a tuple of columns, each in its own library; the numbers are in the library of the first column.

    Raises
    ------
    DtypeError
        For Python objects that are not all of one type.
    DeviceError
        For an array on a GPU that is neither one of PyTorch nor one of CuPy; for columns on several devices.
    ShapeError
        For a frame, and for columns of several lengths.
    ParameterError
        If the array has no such axis; or more than 2^31 - 1 elements are numbered by int32.
    MemoryError
        If there is no room.

    Notes
    -----
    O(n) for n elements, by a hash table; O(n + d log d) with ``sorted`` for d distinct ones. Rows of integers become
    words of 8 bytes where the spans of the columns allow that; of other columns, the items are numbered first.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> warphash.unique(np.array([7, 3, 7, 5]))
    array([7, 3, 5])
    >>> warphash.unique([2.5, 1.5, 2.5], return_counts=True, sorted=True)
    (array([1.5, 2.5]), array([1, 2]))
    >>> warphash.unique((np.array([7, 3, 7]), np.array(["a", "a", "a"])))
    (array([7, 3]), array(['a', 'a'], dtype='<U1'))
    """
    elements = row_elements_of(x, axis)
    nan: Missing = "one" if equal_nan else "apart"
    dtype = index_type(index_dtype, len(elements))
    numbers = elements.number(Asked(return_inverse, return_counts, nan, dtype=dtype))
    values = elements.taken(numbers.firsts)
    if sorted:
        values, numbers = in_order(elements, values, numbers, dtype)
    made = [values]
    if return_index:
        made.append(elements.apart(numbers.firsts))
    if return_inverse:
        made.append(elements.for_each(numbers.code_of_each))
    if return_counts:
        made.append(elements.apart(numbers.count_of_each))
    return values if len(made) == 1 else tuple(made)


def in_order(elements: Elements, values: Any, numbers: Numbers, dtype: np.dtype[Any]) -> tuple[Any, Numbers]:
    """Distinct values in ascending order, and their numbers of type ``dtype`` in that order."""
    order = elements.order(values)
    firsts, codes, counts = numbers
    if codes is not None and len(order):
        dropped = codes < 0
        codes = elements.in_type(elements.argsort(order), dtype)[codes]
        codes[dropped] = -1
    firsts = firsts[order]
    return elements.taken(firsts), Numbers(firsts, codes, None if counts is None else counts[order])


def unique_all(x: Any, /) -> UniqueAll:
    """Find the distinct elements of an array, as the array API standard (2025.12) says.

    Parameters
    ----------
    x
        As of `unique`.

    Returns
    -------
    UniqueAll
        ``values``, in the order of first appearance; ``indices``, the first position of each; ``inverse_indices``, of
        the shape of ``x``; ``counts``. Each NaN is an element of its own.

    Raises
    ------
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n).

    Examples
    --------
    >>> import numpy as np, warphash
    >>> warphash.unique_all(np.array([4, 2, 4])).inverse_indices
    array([0, 1, 0])
    """
    elements, numbers = _numbered(x, codes=True, counts=True)
    return UniqueAll(
        elements.taken(numbers.firsts),
        elements.apart(numbers.firsts),
        elements.for_each(numbers.code_of_each),
        elements.apart(numbers.count_of_each),
    )


def unique_counts(x: Any, /) -> UniqueCounts:
    """Find the distinct elements of an array, and how often each appears.

    Parameters
    ----------
    x
        As of `unique`.

    Returns
    -------
    UniqueCounts
        ``values`` and ``counts``.

    Raises
    ------
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n).

    Examples
    --------
    >>> import numpy as np, warphash
    >>> warphash.unique_counts(np.array([4, 2, 4]))
    UniqueCounts(values=array([4, 2]), counts=array([2, 1]))
    """
    elements, numbers = _numbered(x, counts=True)
    return UniqueCounts(elements.taken(numbers.firsts), elements.apart(numbers.count_of_each))


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Find the distinct elements of an array, and the number of each element among them.

    Parameters
    ----------
    x
        As of `unique`.

    Returns
    -------
    UniqueInverse
        ``values`` and ``inverse_indices``.

    Raises
    ------
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n).

    Examples
    --------
    >>> import numpy as np, warphash
    >>> warphash.unique_inverse(np.array([4, 2, 4]))
    UniqueInverse(values=array([4, 2]), inverse_indices=array([0, 1, 0]))
    """
    elements, numbers = _numbered(x, codes=True)
    return UniqueInverse(elements.taken(numbers.firsts), elements.for_each(numbers.code_of_each))


def unique_values(x: Any, /) -> Any:
    """Find the distinct elements of an array.

    Parameters
    ----------
    x
        As of `unique`.

    Returns
    -------
    values
        In the order of first appearance. Each NaN is an element of its own.

    Raises
    ------
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n).

    Examples
    --------
    >>> import numpy as np, warphash
    >>> warphash.unique_values(np.array([4, 2, 4]))
    array([4, 2])
    """
    elements, numbers = _numbered(x)
    return elements.taken(numbers.firsts)


def _numbered(x: Any, *, codes: bool = False, counts: bool = False) -> tuple[Elements, Numbers]:
    elements = row_elements_of(x)
    return elements, elements.number(Asked(codes, counts, nan="apart"))
