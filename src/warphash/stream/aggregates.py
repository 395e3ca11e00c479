"""What groups keep of their rows, so that states of two stretches of rows become one, and the answers that follow.

A row becomes the state of a group of one row: its value for a minimum, 1 for a count. States of equal keys are combined
by an operation of `group_by`, any number of times. Answers that no such state has, such as medians, are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["FOLDED", "Asked", "States"]

Asked = Mapping[str, tuple[int | None, str]]
"""For each answer: the number of its column among the values, and the operation; no column for ``"size"``."""


class _Kept(NamedTuple):
    """A column of states.

    Attributes
    ----------
    start
        Makes it of the values of rows.
    combine
        The operation that combines states.
    """

    start: Callable[[Any, Any], Any]
    combine: str


def _size(values: Any, table: Any) -> Any:
    import pyarrow as arrow

    return arrow.repeat(arrow.scalar(1, arrow.int64()), len(table))


def _count(values: Any, table: Any) -> Any:
    import pyarrow as arrow

    return values.is_valid().cast(arrow.int64())


def _value(values: Any, table: Any) -> Any:
    return values


def _real(values: Any, table: Any) -> Any:
    import pyarrow as arrow

    return values.cast(arrow.float64(), safe=False)


def _summed(values: Any, table: Any) -> Any:
    """Values in a type that a sum of them has: float64, or the widest decimal numbers."""
    import pyarrow as arrow

    type_ = values.type
    if not arrow.types.is_decimal(type_):
        return _real(values, table)
    is_wide = arrow.types.is_decimal256(type_)
    return values.cast(arrow.decimal256(76, type_.scale) if is_wide else arrow.decimal128(38, type_.scale))


def _truth(values: Any, table: Any) -> Any:
    import pyarrow as arrow
    from pyarrow import compute

    return values if arrow.types.is_boolean(values.type) else compute.not_equal(_real(values, table), 0.0)


_KEPT: dict[str, tuple[_Kept, ...]] = {
    "size": (_Kept(_size, "sum"),),
    "count": (_Kept(_count, "sum"),),
    "sum": (_Kept(_value, "sum"),),
    "prod": (_Kept(_value, "prod"),),
    "min": (_Kept(_value, "min"),),
    "max": (_Kept(_value, "max"),),
    "first": (_Kept(_value, "first"),),
    "last": (_Kept(_value, "last"),),
    "mean": (_Kept(_summed, "sum"), _Kept(_count, "sum")),
    "any": (_Kept(_truth, "any"),),
    "all": (_Kept(_truth, "all"),),
}

_IN_TYPE = ("sum", "prod", "min", "max")
"""The operations whose states are in the type of the answer. An extreme is in another type than nulls of no type."""

FOLDED = frozenset(_KEPT)
"""The operations whose answers follow from states."""


class States:
    """The states for some answers, all of `FOLDED`.

    Parameters
    ----------
    asked
        The answers.
    types
        Their types. Sums, products and extremes are kept in the type of the answer.
    """

    def __init__(self, asked: Asked, types: Mapping[str, Any]) -> None:
        self._asked, self._types = asked, types
        self._columns = {
            name: [f"{name}:{place}" for place in range(len(_KEPT[operation]))]
            for name, (_, operation) in asked.items()
        }

    def of_rows(self, table: Any, values: Sequence[str]) -> dict[str, Any]:
        """The columns of states for the rows of a table, whose values have some names."""
        made = {}
        for name, (place, operation) in self._asked.items():
            column = None if place is None else table[values[place]]
            if operation in _IN_TYPE and column is not None:
                column = column.cast(self._types[name], safe=False)
            for label, kept in zip(self._columns[name], _KEPT[operation], strict=True):
                made[label] = kept.start(column, table)
        return made

    def combined(self) -> dict[str, tuple[str, str]]:
        """What `group_by` is asked for, to combine states."""
        return {
            label: (label, kept.combine)
            for name, (_, operation) in self._asked.items()
            for label, kept in zip(self._columns[name], _KEPT[operation], strict=True)
        }

    def answers(self, table: Any) -> dict[str, Any]:
        """The answers of a table of states."""
        return {
            name: self._answer(operation, table, self._columns[name]) for name, (_, operation) in self._asked.items()
        }

    def _answer(self, operation: str, table: Any, labels: Sequence[str]) -> Any:
        import pyarrow as arrow
        from pyarrow import compute

        if operation != "mean":
            return table[labels[0]]
        total, count = (table[label] for label in labels)
        counts = compute.if_else(compute.equal(count, 0), arrow.scalar(None, arrow.int64()), count)
        return compute.divide(total.cast(arrow.float64(), safe=False), counts.cast(arrow.float64(), safe=False))
