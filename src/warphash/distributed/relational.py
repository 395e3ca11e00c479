"""Relational verbs over the rows of all ranks: `unique`, `isin`, `group_by`. Answers stay spread over the ranks.

Contract, of `join.join` too. All verbs are collective. Each rank gives rows of its own, any number, also none. What is
equal is what is equal in the local verb of the same name. An answer about keys lies with the owners of the keys: put
together, the answers of all ranks are that of the local verb for all rows. An error on one rank is a `CollectiveError`
on all.

1. A rank does what it can alone: distinct keys, or a partial aggregate of each key. So a heavy key is sent once.
2. The rows go to the owners of their keys (`exchange`).
3. An owner does the same with what it received. All ranks hear whether each could.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from ..errors import DtypeError, ParameterError
from ..relational.axes import checked_axis
from ..relational.composites import check_alike, row_elements_of
from ..relational.distinct import unique as unique_here
from ..relational.group_by import Aggregates, GroupBy, Summaries
from ..relational.group_by import group_by as group_by_here
from ..relational.items import Missing
from ..relational.membership import isin as isin_here
from .channel import channel_of
from .exchange import Trip
from .key_columns import KeyColumns, key_columns
from .wire import Array, check_rows, in_type_of, seen, some, with_common_types

__all__ = ["ShardedGroupBy", "group_by", "isin", "unique"]


# ---- unique
def unique(
    x: Any,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    sorted: bool = False,
    equal_nan: bool = True,
    group: Any = None,
) -> Any:
    """Find the distinct elements of all ranks' arrays. Collective. See `warphash.unique`.

    Parameters
    ----------
    x
        This rank's elements: an array of NumPy, or a tensor of PyTorch on any device; or a tuple of such arrays of one
        dimension, whose rows are elements. Of one type on all ranks, but strings of NumPy may be of any width.
    return_counts
        Also answer how often each appears on all ranks together.
    axis
        As of `warphash.unique`.
    sorted
        Each rank's answer is in ascending order. By default, it is in that of first appearance: elements of rank 0 come
        first.
    equal_nan
        As of `warphash.unique`.
    group
        A process group of ``torch.distributed``, or a device mesh with one dimension. None: all ranks.

    Returns
    -------
    values, counts
        The distinct elements that this rank owns, in the library of ``x``: each is on one rank. And their counts,
        int64, if asked for.

    Raises
    ------
    CollectiveError
        If a rank's arguments are wrong, or not those of other ranks, or there is no room on a rank. All ranks raise it.
    PeerLost
        If a rank does not answer.

    Examples
    --------
    On each of two ranks with ``x = torch.tensor([1, 2, 2]) + rank``, the answers together have 1, 2 and 3::

        values, counts = wd.unique(x, return_counts=True)
    """
    options = f"return_counts={return_counts}, axis={axis}, sorted={sorted}, equal_nan={equal_nan}"
    channel = channel_of(group)
    nan: Missing = "one" if equal_nan else "apart"
    with channel.call(f"unique, {options}") as call:
        keys, along = _keys_along(x, axis)
        call.agree()
        columns, _ = with_common_types(call, "elements", keys.columns)

        def found_here() -> list[Array]:
            values, counts = unique_here(keys.whole(columns), return_counts=True, axis=along, equal_nan=equal_nan)
            found = list(values) if keys.is_tuple else [values]
            return [*found, counts] if return_counts else found

        found = call.together(found_here)
        arrived = Trip(channel, call, found[: len(columns)]).go(call, found)

        def found_in_all() -> Any:
            given = keys.whole(arrived[: len(columns)])
            if not return_counts:
                return unique_here(given, axis=along, sorted=sorted, equal_nan=equal_nan), None
            made = GroupBy(row_elements_of(given, along), nan, sorted).agg(counts=(arrived[-1], "sum"))
            return made.keys, made["counts"]

        values, counts = call.together(found_in_all)
    if along is not None and axis is not None:
        values = torch.movedim(values, 0, axis) if isinstance(values, torch.Tensor) else np.moveaxis(values, 0, axis)
    return (values, counts) if return_counts else values


def _keys_along(x: Any, axis: int | None) -> tuple[KeyColumns, int | None]:
    """Elements as keys, and the axis of these that has them; None for items."""
    keys = key_columns(x)
    if keys.is_tuple:
        row_elements_of(x, axis)  # raises for another axis than the one that rows have
        return keys, None
    array = seen(x)
    along = checked_axis(axis, array.ndim)
    if along is None:
        return keys, None
    moved = torch.movedim(array, along, 0) if isinstance(array, torch.Tensor) else np.moveaxis(array, along, 0)
    return KeyColumns([moved], False), 0


# ---- isin
def isin(
    element: Any,
    test_elements: Any,
    /,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    equal_nan: bool = False,
    group: Any = None,
) -> Any:
    """Find this rank's elements that are among the others of all ranks. Collective. See `warphash.isin`.

    Parameters
    ----------
    element
        This rank's elements, as ``x`` of `unique`.
    test_elements
        This rank's part of the elements to look them up in, as `unique` takes them. Their type may be another one:
        numbers are compared as numbers.
    assume_unique
        As of NumPy's function. The answer does not depend on it.
    invert, equal_nan
        As of `warphash.isin`.
    group
        As of `unique`.

    Returns
    -------
    flags
        bool, in the library and the shape of ``element``.

    Raises
    ------
    CollectiveError, PeerLost
        As `unique`.

    Examples
    --------
    Which of this rank's users another rank, or this one, has blocked::

        flags = wd.isin(users, blocked)
    """
    channel = channel_of(group)
    with channel.call(f"isin, invert={invert}, equal_nan={equal_nan}") as call:
        keys, others = key_columns(element), key_columns(test_elements)
        check_alike(row_elements_of(keys.given), row_elements_of(others.given))
        call.agree()
        given, _ = with_common_types(call, "elements", [*keys.columns, *others.columns])
        count = len(keys.columns)

        def distinct_here() -> tuple[list[Array], Array, list[Array]]:
            values, codes = unique_here(keys.whole(given[:count]), return_inverse=True)
            like, fits = in_type_of(given[count:], given[:count])
            tests = unique_here(keys.whole(like if fits is None else [some(column, fits) for column in like]))
            return (list(values), codes, list(tests)) if keys.is_tuple else ([values], codes, [tests])

        values, codes, tests = call.together(distinct_here)
        trip = Trip(channel, call, values)
        asked, known = trip.go(call, values), Trip(channel, call, tests).go(call, tests)
        flags = call.together(
            lambda: isin_here(keys.whole(asked), keys.whole(known), invert=invert, equal_nan=equal_nan)
        )
        answers = trip.back(call, [flags])[0][codes]
    return answers if keys.is_tuple else answers.reshape(tuple(seen(element).shape))


# ---- group_by
_COMBINED = {
    "size": "sum",
    "count": "sum",
    "sum": "sum",
    "prod": "prod",
    "min": "min",
    "max": "max",
    "first": "first",
    "last": "last",
    "any": "any",
    "all": "all",
}
"""Operations that combine the answers of several ranks into that of all. A mean is a sum and a count."""

_Nulls = Literal["key", "drop"]
_Order = Literal["first", "sorted", "any"]


class ShardedGroupBy(Summaries):
    """The keys of all ranks in groups. Made by `group_by`."""

    def __init__(self, keys: Any, nulls: _Nulls, order: _Order, group: Any) -> None:
        self._given, self._nulls, self._order, self._group = keys, nulls, order, group

    def agg(self, **asked: Any) -> Aggregates:
        """Summarise columns group by group. Collective. See `warphash.GroupBy.agg`.

        Parameters
        ----------
        **asked
            For each name of an answer: ``(column, operation)``, or ``"size"``. A column is an array of numbers or truth
            values, in the library of the keys, with one value for each key of this rank. Operations are ``"size"``,
            ``"count"``, ``"sum"``, ``"prod"``, ``"mean"``, ``"min"``, ``"max"``, ``"first"``, ``"last"``, ``"any"`` and
            ``"all"``. The rows of rank 0 come first for ``"first"`` and ``"last"``, then those of rank 1, and so on.

        Returns
        -------
        Aggregates
            The groups whose keys this rank owns, and their answers, of the types that the local verb has. Each group is
            on one rank.

        Raises
        ------
        CollectiveError
            As `unique`; and for an operation of which no parts can be combined, such as a median: for that, bring the
            rows together by `exchange`, and call `warphash.group_by` there.
        PeerLost
            If a rank does not answer.

        Notes
        -----
        A rank sends a row for each of its groups. Floating-point sums are sums of the ranks' sums.
        """
        channel = channel_of(self._group)
        with channel.call(f"group_by, nulls={self._nulls!r}, order={self._order!r}, agg of {_listed(asked)}") as call:
            keys, parts = key_columns(self._given), _parts_of(asked)
            group_by_here(self._given, nulls=self._nulls, order=self._order)  # raises for other rules
            columns = [part.column for part in parts if part.column is not None]
            check_rows([*keys.columns, *columns], "keys and columns")
            call.agree()
            given, _ = with_common_types(call, "keys and columns", [*keys.columns, *columns])
            count = len(keys.columns)
            values = iter(given[count:])
            parts = [part if part.column is None else part._replace(column=next(values)) for part in parts]

            def summarised() -> list[Array]:
                made = group_by_here(keys.whole(given[:count]), nulls=self._nulls).agg(
                    **{part.name: "size" if part.column is None else (part.column, part.operation) for part in parts}
                )
                return [*(made.keys if keys.is_tuple else [made.keys]), *made.columns.values()]

            partial = call.together(summarised)
            arrived = Trip(channel, call, partial[:count]).go(call, partial)

            def combined() -> Aggregates:
                states = {
                    part.name: (column, _COMBINED[part.operation])
                    for part, column in zip(parts, arrived[count:], strict=True)
                }
                made = group_by_here(keys.whole(arrived[:count]), order=self._order).agg(**states)
                return Aggregates(made.keys, {name: _answer(name, made) for name in asked})

            return call.together(combined)


def group_by(keys: Any, *, nulls: _Nulls = "key", order: _Order = "first", group: Any = None) -> ShardedGroupBy:
    """Group the rows of all ranks by their keys. See `warphash.group_by`.

    Parameters
    ----------
    keys
        This rank's keys, as ``x`` of `unique`.
    nulls
        As of `warphash.group_by`.
    order
        Of the groups of each rank: as of `warphash.group_by`.
    group
        As of `unique`.

    Returns
    -------
    ShardedGroupBy
        Its methods are collective, and this function is not.

    Examples
    --------
    The sales of each shop, on the rank that owns the shop::

        sales = wd.group_by(shops).agg(total=(prices, "sum"), sold="size")
        sales.keys, sales["total"], sales["sold"]
    """
    return ShardedGroupBy(keys, nulls, order, group)


class _Partial(NamedTuple):
    """A partial aggregate: its name, its column (None for sizes), and the operation."""

    name: str
    column: Array
    operation: str


_SUM, _COUNT = ":sum", ":count"
"""Behind the name of a mean: what it is made of."""


def _parts_of(asked: dict[str, Any]) -> list[_Partial]:
    """The partial aggregates that some answers are made of.

    Raises
    ------
    ParameterError
        For an operation whose parts cannot be combined.
    DtypeError
        For a column of other items than numbers.
    """
    parts = []
    for name, given in asked.items():
        if given == "size":
            parts.append(_Partial(name, None, "size"))
            continue
        if not (isinstance(given, tuple) and len(given) == 2):
            raise ParameterError(f"expected (column, operation) or 'size' for {name}, got {type(given).__name__}")
        operation = given[1]
        if operation not in ("mean", *_COMBINED):
            raise ParameterError(
                f"expected one of {', '.join(_COMBINED)}, mean over the rows of several ranks, got {operation!r}: for "
                "others, exchange whole rows by warphash.distributed.exchange, and group them where they arrive"
            )
        if operation == "size":
            parts.append(_Partial(name, None, "size"))
            continue
        column = seen(given[0])
        if column.is_complex() if isinstance(column, torch.Tensor) else column.dtype.kind not in "biuf":
            raise DtypeError(f"expected a column of numbers or truth values for {name!r}, got {column.dtype}")
        if operation == "mean":
            real = column.to(torch.float64) if isinstance(column, torch.Tensor) else column.astype(np.float64)
            parts += [_Partial(f"{name}{_SUM}", real, "sum"), _Partial(f"{name}{_COUNT}", real, "count")]
        else:
            parts.append(_Partial(name, column, operation))
    return parts


def _answer(name: str, made: Aggregates) -> Array:
    if name in made.columns:
        return made[name]
    return made[f"{name}{_SUM}"] / made[f"{name}{_COUNT}"]


def _listed(asked: dict[str, Any]) -> str:
    """What was asked for, without the columns."""
    return ", ".join(f"{name}: {given[1] if isinstance(given, tuple) else given}" for name, given in asked.items())
