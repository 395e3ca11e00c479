"""The verbs that pandas has for the distinct elements of a column: codes, counts, duplicates."""

from __future__ import annotations

import sys
from typing import Any, Literal

from ..arrays.adapters.columns import library_name
from ..errors import ParameterError
from .composites import row_elements_of
from .distinct import in_order
from .elements import Elements
from .frames import is_frame
from .items import Missing
from .numbered import Asked, index_type

__all__ = ["check_keep", "duplicated", "duplicated_rows", "factorize", "nunique", "value_counts"]


def factorize(
    x: Any, *, sort: bool = False, nulls: Literal["drop", "key"] = "drop", index_dtype: Any = None
) -> tuple[Any, Any]:
    """Number the distinct elements of an array or a column.

    Parameters
    ----------
    x
        As of `unique`.
    sort
        Number them in ascending order; by default, in the order of first appearance.
    nulls
        ``"drop"``: nulls, NaN and NaT, and rows with one of them, have the code -1 and are no element. ``"key"``: all
        nulls are one element, and so are all NaN, and all NaT.
    index_dtype
        Of codes: ``"int64"``, the default, or ``"int32"``, which takes half the memory.

    Returns
    -------
    codes, uniques
        Of type ``index_dtype`` and of the shape of ``x``; and the distinct elements: ``uniques[codes]`` is ``x`` where
        no code is -1. Of a tuple of columns, ``uniques`` is a tuple of columns, and of a frame, a frame.

    Raises
    ------
    ParameterError
        If there is no such rule for nulls; or more than 2^31 - 1 elements are numbered by int32.
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n) for n elements; O(n + d log d) with ``sort`` for d distinct ones.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> warphash.factorize([3.5, float("nan"), 3.5, 1.5])
    (array([ 0, -1,  0,  1]), array([3.5, 1.5]))
    """
    missing = _rule(nulls)
    elements = row_elements_of(x)
    dtype = index_type(index_dtype, len(elements))
    numbers = elements.number(Asked(codes=True, nan=missing, null=missing, dtype=dtype))
    values = elements.taken(numbers.firsts)
    if sort:
        values, numbers = in_order(elements, values, numbers, dtype)
    return elements.for_each(numbers.code_of_each), values


def _rule(nulls: str) -> Missing:
    if nulls not in ("drop", "key"):
        raise ParameterError(f"nulls must be 'drop' or 'key', got {nulls!r}")
    return "dropped" if nulls == "drop" else "one"


def value_counts(
    x: Any, *, sort: bool = True, ascending: bool = False, normalize: bool = False, dropna: bool = True
) -> Any:
    """Count how often each distinct element appears.

    Parameters
    ----------
    x
        As of `unique`.
    sort
        Answer in the order of counts, the largest first; those of one count, and all if it is False, in the order of
        first appearance.
    ascending
        The smallest count first.
    normalize
        Answer shares of all counted elements, float64, in place of counts.
    dropna
        Leave out nulls, NaN and NaT, and rows with one of them.

    Returns
    -------
    values, counts
        The distinct elements and their counts, int64. For a Series or a DataFrame of pandas, a Series of counts with
        the elements as its labels. For a tuple of columns, ``values`` is a tuple of columns, and for a frame, a frame.

    Raises
    ------
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n) for n elements; O(n + d log d) with ``sort`` for d distinct ones.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> warphash.value_counts(np.array([5, 8, 8]))
    (array([8, 5]), array([2, 1]))
    """
    elements = row_elements_of(x)
    missing = _rule("drop" if dropna else "key")
    numbers = elements.number(Asked(counts=True, nan=missing, null=missing))
    firsts, counts = numbers.firsts, numbers.count_of_each
    if sort:
        order = elements.argsort(counts if ascending else -counts)
        firsts, counts = firsts[order], counts[order]
    answers = elements.shares(counts) if normalize else counts
    values = elements.taken(firsts)
    if library_name(x) != "pandas":
        return values, elements.apart(answers)
    pandas = sys.modules["pandas"]
    if is_frame(x):
        labels = pandas.MultiIndex.from_frame(values.apply(_with_one_zero))
    else:
        labels = pandas.Index(values, name=x.name)
    return pandas.Series(answers, index=labels, name="proportion" if normalize else "count")


def _with_one_zero(column: Any) -> Any:
    """A column of pandas without -0.0 in types of PyArrow: pandas numbers it apart there, and then refuses it."""
    if not hasattr(column.dtype, "pyarrow_dtype") or column.dtype.kind != "f":
        return column
    return column.mask((column == 0).fillna(False), 0.0)


def duplicated(x: Any, keep: Literal["first", "last", False] = "first") -> Any:
    """Find the elements that appear more than once.

    Parameters
    ----------
    x
        As of `unique`.
    keep
        Which of equal elements is no duplicate: the ``"first"``, the ``"last"``, or (False) none.

    Returns
    -------
    flags
        Whether each element is a duplicate, bool, of the shape of ``x``. Nulls equal each other, and so do NaN and NaT.

    Raises
    ------
    ParameterError
        If there is no such rule.
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n).

    Examples
    --------
    >>> import numpy as np, warphash
    >>> warphash.duplicated(np.array([5, 8, 5]))
    array([False, False,  True])
    """
    elements = row_elements_of(x)
    return elements.for_each(duplicated_rows(elements, keep))


def check_keep(keep: object) -> None:
    """Raise `ParameterError` unless there is such a choice among rows with equal keys."""
    if keep not in ("first", "last", False):
        raise ParameterError(f"keep must be 'first', 'last' or False, got {keep!r}")


def duplicated_rows(elements: Elements, keep: Literal["first", "last", False]) -> Any:
    """The flags of `duplicated`, in the module of the elements. Raises as `duplicated`."""
    check_keep(keep)
    numbers = elements.number(Asked(codes=keep != "first", counts=keep != "first"))
    if not keep:
        return (numbers.count_of_each > 1)[numbers.code_of_each]
    flags = elements.flags()
    flags[elements.lasts(numbers) if keep == "last" else numbers.firsts] = False
    return flags


def nunique(x: Any, *, dropna: bool = True) -> int:
    """Count the distinct elements of an array or a column.

    Parameters
    ----------
    x
        As of `unique`.
    dropna
        Leave out nulls, NaN and NaT, and rows with one of them.

    Returns
    -------
    int
        How many distinct elements there are.

    Raises
    ------
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`.

    Notes
    -----
    O(n).

    Examples
    --------
    >>> import warphash
    >>> warphash.nunique([5, 8, 5, None])
    2
    """
    missing = _rule("drop" if dropna else "key")
    return len(row_elements_of(x).number(Asked(nan=missing, null=missing)).firsts)
