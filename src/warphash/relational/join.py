"""`join`: the pairs of rows of two sides whose keys are equal."""

from __future__ import annotations

from typing import Any, Literal

from ..errors import ParameterError
from ..table.base import BaseTable
from ..table.multimap import MultiMap
from .composites import RowElements, alike, check_axes, key_elements_of, row_elements_of
from .device_elements import DeviceElements
from .elements import Elements
from .items import Missing
from .matches import How, JoinIndices, KeyRows, Order, checked_how, exported, some_rows
from .membership import found_in
from .numbered import Asked, index_type
from .table_join import join_table

__all__ = ["Validate", "check_rules", "join", "joined_rows"]

Validate = Literal["1:1", "1:m", "m:1", "m:m"]


def join(
    left: Any,
    right: Any,
    how: How = "inner",
    *,
    nulls: Literal["unequal", "equal"] = "unequal",
    validate: Validate | None = None,
    order: Order = "left",
    index_dtype: Any = None,
) -> JoinIndices:
    """Find the pairs of rows of two sides whose keys are equal.

    Parameters
    ----------
    left, right
        The keys of each side, as ``x`` of `unique`, with one axis: a key for each row. Numbers are compared as numbers,
        whatever their types are. Two frames are compared by the names of their columns. If one is a tuple of columns,
        the other is one of as many (at most 16). Both are in host memory, or on one GPU in arrays of one library.
        ``right`` may be a `HashMap` or a `MultiMap` whose values are rows: then ``left`` is what its `find` takes, and
        ``how`` is ``"inner"``, ``"left"``, ``"semi"`` or ``"anti"``; for the last two, any table will do.
    how
        ``"inner"``: pairs alone. ``"left"``: left rows without a partner, too; ``"right"``: right rows without one;
        ``"outer"``: both. ``"semi"``: left rows with a partner, once each; ``"anti"``: those without one.
    nulls
        ``"unequal"``: a null, NaN or NaT, or a row with one, has no partner. ``"equal"``: nulls equal each other, and
        so do NaN, and NaT.
    validate
        ``"1:1"``: no key repeats on either side; ``"1:m"``: none on the left; ``"m:1"``: none on the right. Keys that
        ``nulls`` makes unequal do not repeat. ``"m:m"`` and None check nothing.
    order
        ``"left"``: pairs by left rows, and then by right rows. ``"outer"`` has the right rows without a partner behind
        these, ascending. Of ``"right"``, pairs come by right rows, and then by left rows. ``"any"``: pairs may come in
        another order, which saves ``"right"`` to sort them.
    index_dtype
        Of rows: ``"int64"``, the default, or ``"int32"``, which takes half the memory.

    Returns
    -------
    left, right
        A `JoinIndices`: rows of type ``index_dtype`` in the library of ``left``, -1 for a row that has no partner.
        ``right`` is None for ``"semi"`` and ``"anti"``. Keys of kinds that cannot be equal, such as numbers and
        strings, have no partners.

    Raises
    ------
    ParameterError
        If there is no such ``how``, ``nulls``, ``validate``, ``order`` or ``index_dtype``; if keys repeat that
        ``validate`` says do not; or for int32, if a side has more than 2^31 - 1 rows.
    DeviceError
        If one side is on a GPU, and the other one is not, or is of another library. A table takes arrays of any device.
    ShapeError
        As `unique`; for an array of several axes; and if only one is a tuple of columns, or they are not of as many
        columns.
    DtypeError
        As `unique`; for frames with columns of other names; for decimal beside floating-point numbers; and for keys of
        more than 128 bytes, for rows of more than 16 columns, and for a table whose values are no integers that
        ``index_dtype`` has.
    MemoryError
        If there is no room. Pairs are counted before their memory is taken.

    Notes
    -----
    O(n + m + p) for n and m rows and p pairs, by a table of the distinct keys of ``right``. Let ``right`` be the
    shorter side, or make an `Index` of it once, whose `Index.join` joins many left sides. With a table, O(n + p): its
    rules say which keys are equal, and the pairs of a left row come in the order of `MultiMap.find_all`.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> users, orders = np.array([10, 20, 30]), np.array([30, 10, 30])
    >>> warphash.join(users, orders)
    JoinIndices(left=array([0, 2, 2]), right=array([1, 0, 2]))
    >>> warphash.join(users, orders, "anti").left
    array([1])
    >>> warphash.join(users, warphash.HashMap.from_arrays(np.array([20, 30]), np.array([7, 8])), "left")
    JoinIndices(left=array([0, 1, 2]), right=array([-1,  7,  8]))
    """
    if isinstance(right, BaseTable):
        check_rules(how, order, nulls, validate)
        elements = _keys_of_table(left, right)
        made = _joined_with_table(left, elements, right, how, nulls, validate, index_dtype)
    else:
        elements = key_elements_of(left)
        made = joined_rows(elements, key_elements_of(right), how, nulls, validate, order, index_dtype)
    return exported(elements, made)


def joined_rows(
    elements: Elements,
    others: Elements,
    how: How,
    nulls: str,
    validate: Validate | None,
    order: Order = "left",
    index_dtype: Any = None,
) -> JoinIndices:
    """The rows of `join`, as of `KeyRows.joined`. Raises as `join`."""
    check_rules(how, order, nulls, validate)
    elements = alike(elements, others)
    if isinstance(elements, DeviceElements):
        elements.beside(others)
    dtype = index_type(index_dtype, max(len(elements), len(others)))
    for side, keys, share in zip(("left", "right"), (elements, others), (validate or "m:m").split(":"), strict=True):
        if share == "1":
            _check_unique(keys, side, nulls)
    rule: Missing = "one" if nulls == "equal" else "dropped"
    if how in ("semi", "anti"):
        return some_rows(elements, found_in(elements, others, nan=rule, null=rule), how, dtype)
    return KeyRows(others, nan=rule, null=rule).joined(elements, how, order, dtype)


def check_rules(how: How, order: Order, nulls: str, validate: str | None = None) -> None:
    """Raise `ParameterError` unless there are such rules."""
    checked_how(how, order)
    if nulls not in ("unequal", "equal"):
        raise ParameterError(f"nulls must be 'unequal' or 'equal', got {nulls!r}")
    if validate not in (None, "1:1", "1:m", "m:1", "m:m"):
        raise ParameterError(f"validate must be '1:1', '1:m', 'm:1', 'm:m' or None, got {validate!r}")


def _keys_of_table(left: Any, table: BaseTable[Any]) -> Elements:
    """Keys that a table is asked for: an array with two axes has rows, if the keys of the table are rows."""
    elements = row_elements_of(left)
    if len(elements.shape) == 2 and (table.key_dtype.shape or table.key_dtype.names):
        return row_elements_of(left, 0)
    check_axes(elements)
    return elements


def _joined_with_table(
    left: Any,
    elements: Elements,
    table: BaseTable[Any],
    how: How,
    nulls: str,
    validate: Validate | None,
    index_dtype: Any,
) -> JoinIndices:
    share, right_share = (validate or "m:m").split(":")
    if nulls == "equal" or (right_share == "1" and isinstance(table, MultiMap)):
        raise ParameterError(
            "a table has no nulls, and a MultiMap may have several rows of a key: leave nulls='equal' and validate= out"
        )
    if share == "1":
        _check_unique(elements, "left", nulls)
    return join_table(left, elements, table, how, index_type(index_dtype, len(elements)))


def _check_unique(keys: Elements, side: str, nulls: str) -> None:
    """Raise `ParameterError` if a key repeats."""
    rule: Missing = "one" if nulls == "equal" else "apart"
    numbers = keys.number(Asked(codes=True, nan=rule, null=rule))
    n, distinct = len(keys), len(numbers.firsts)
    if distinct == n:
        return
    moved = keys.places_of(numbers.firsts != keys.ranks(distinct))  # each first position behind a repeated key
    row = int(moved[0]) if len(moved) else distinct
    first = int(numbers.firsts[int(numbers.code_of_each[row])])
    at = keys.ranks(n)[row : row + 1]
    items = [column.taken(at)[0] for column in (keys.columns if isinstance(keys, RowElements) else (keys,))]
    key = tuple(items) if len(items) > 1 else items[0]
    raise ParameterError(
        f"expected {side} keys that differ, and row {row:,} repeats the key of row {first:,}, which is {key}: drop one "
        "of them, or leave validate= out"
    )
