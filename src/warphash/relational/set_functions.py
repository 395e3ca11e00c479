"""The set functions of NumPy, for arrays and columns."""

from __future__ import annotations

from typing import Any, NamedTuple

from .composites import row_elements_of, rows_concatenated
from .distinct import unique
from .elements import Elements
from .membership import found_in
from .numbered import Asked, Indices

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d"]


class _Both(NamedTuple):
    """The distinct elements of two arrays, of which the second lies behind the first.

    Attributes
    ----------
    elements
        Those of both arrays.
    length
        Elements of the first array.
    first, second
        The first position of each distinct element in each array, int64; -1 if it is not there.
    is_nan
        Which distinct elements are NaN or NaT.
    """

    elements: Elements
    length: int
    first: Indices
    second: Indices
    is_nan: Any


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    sorted: bool = True,
) -> Any:
    """Find the distinct elements that are in both of two arrays or columns.

    Parameters
    ----------
    ar1, ar2
        As ``x`` of `unique`, of types for which the library of ``ar1`` finds a common one. Or two tuples of as many
        columns: elements are their rows.
    assume_unique
        As of NumPy's function. The answer does not depend on it.
    return_indices
        Also answer the first positions of the elements in ``ar1`` and in ``ar2``, int64.
    sorted
        Answer in ascending order; otherwise in the order of first appearance in ``ar1``.

    Returns
    -------
    values
        Or ``values, indices1, indices2``. NaN equals no NaN, and a null equals a null.

    Raises
    ------
    DeviceError
        For arrays on several devices, and for arrays of two libraries on a GPU.
    DtypeError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n + m); with ``sorted`` also O(d log d) for d elements of the answer.

    Examples
    --------
    >>> import warphash
    >>> warphash.intersect1d([3, 1, 4], [4, 5, 3])
    array([3, 4])
    """
    both = _numbered(ar1, ar2)
    kept = (both.first >= 0) & (both.second >= 0) & ~both.is_nan
    first, second = both.first[kept], both.second[kept]
    values = both.elements.taken(first)
    if sorted:
        order = both.elements.order(values)
        first, second = first[order], second[order]
        values = both.elements.taken(first)
    return (values, both.elements.apart(first), both.elements.apart(second)) if return_indices else values


def union1d(ar1: Any, ar2: Any, *, sorted: bool = True) -> Any:
    """Find the distinct elements of two arrays or columns together.

    Parameters
    ----------
    ar1, ar2, sorted
        As of `intersect1d`.

    Returns
    -------
    values
        All NaN are one element, and so are all nulls.

    Raises
    ------
    DeviceError
        For arrays on several devices, and for arrays of two libraries on a GPU.
    DtypeError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n + m); with ``sorted`` also O(d log d) for d elements of the answer.

    Examples
    --------
    >>> import warphash
    >>> warphash.union1d([3, 1], [2, 3], sorted=False)
    array([3, 1, 2])
    """
    elements, _ = rows_concatenated(ar1, ar2)
    return _in_order(elements, elements.number().firsts, sorted)


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, sorted: bool = True) -> Any:
    """Find the distinct elements of an array or a column that are not in another.

    Parameters
    ----------
    ar1, ar2
        As ``element`` and ``test_elements`` of `isin`.
    assume_unique
        No element of ``ar1`` repeats. As with NumPy, the answer then has the order of ``ar1``.
    sorted
        Answer in ascending order; otherwise in the order of first appearance.

    Returns
    -------
    values
        Of the type of ``ar1``. NaN is never in the other array, and a null is if that has one.

    Raises
    ------
    DtypeError, DeviceError, ShapeError, MemoryError
        As `isin`.

    Notes
    -----
    O(n + m); with ``sorted`` also O(d log d) for d elements of the answer.

    Examples
    --------
    >>> import warphash
    >>> warphash.setdiff1d([3, 1, 4, 1], [4, 5])
    array([1, 3])
    """
    values = row_elements_of(ar1 if assume_unique else unique(ar1))
    found = found_in(values, row_elements_of(ar2), nan="dropped", null="one")
    return _in_order(values, values.ranks(len(values))[~found], sorted and not assume_unique)


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, sorted: bool = True) -> Any:
    """Find the distinct elements that are in one of two arrays or columns, and not in both.

    Parameters
    ----------
    ar1, ar2, assume_unique
        As of `intersect1d`.
    sorted
        Answer in ascending order; otherwise those of ``ar1`` first, in the order of first appearance.

    Returns
    -------
    values
        NaN of one array equals none of the other, so NaN may be there twice. Nulls equal each other.

    Raises
    ------
    DeviceError
        For arrays on several devices, and for arrays of two libraries on a GPU.
    DtypeError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n + m); with ``sorted`` also O(d log d) for d elements of the answer.

    Examples
    --------
    >>> import warphash
    >>> warphash.setxor1d([3, 1, 4], [4, 5])
    array([1, 3, 5])
    """
    both = _numbered(ar1, ar2)
    of_first = both.first[(both.first >= 0) & ((both.second < 0) | both.is_nan)]
    of_second = both.second[(both.second >= 0) & ((both.first < 0) | both.is_nan)]
    of_second = of_second[both.elements.argsort(of_second)] + both.length
    return _in_order(both.elements, both.elements.xp.concatenate((of_first, of_second)), sorted)


def _numbered(ar1: Any, ar2: Any) -> _Both:
    """Number the distinct elements of two arrays."""
    elements, length = rows_concatenated(ar1, ar2)
    numbers = elements.number(Asked(codes=True))
    firsts = numbers.firsts
    first = elements.xp.where(firsts < length, firsts, -1)
    second = elements.firsts_of(numbers.code_of_each[length:], len(firsts))
    return _Both(elements, length, first, second, elements.is_nan(firsts))


def _in_order(elements: Elements, positions: Indices, ascending: bool) -> Any:
    """The elements at some positions, in their order or in ascending order."""
    values = elements.taken(positions)
    return elements.taken(positions[elements.order(values)]) if ascending else values
