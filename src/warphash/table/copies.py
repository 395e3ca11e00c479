"""Tables made of other tables: of a description, and the pairs that go with it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..arrays.view import view
from ..errors import CorruptFile, DtypeError, ParameterError, ShapeError, TableFull
from .options import integer

if TYPE_CHECKING:
    from .base import BaseTable

__all__ = [
    "TableContents",
    "give_state",
    "have_same_names",
    "in_order_of",
    "like",
    "loaded",
    "rebuilt",
    "replaced",
    "same_order",
]

AnyTable = TypeVar("AnyTable", bound="BaseTable")


class TableContents(NamedTuple):
    """What a table holds at one moment.

    Attributes
    ----------
    description
        The options of the table; the types of its keys and values, except in a file.
    keys, values, ranks
        All keys; all values, None for a set; and all ranks, uint64, None for a table that keeps no ranks. Of any
        library, or views of the engine's memory.
    """

    description: dict[str, Any]
    keys: Any
    values: Any
    ranks: npt.NDArray[np.uint64] | None = None


_HOPELESS = 16
"""A table with this many times the room that its keys need is not too small, whatever is wrong."""


def rebuilt(kind: type[AnyTable], held: TableContents, device: str | None, *, unique: bool = True) -> AnyTable:
    """A table of a description, with pairs; of keys that repeat, one pair each, or in a `MultiMap` all in their order.

    Larger than described if the pairs do not fit: a table that raises when it is full can hold more keys than its
    capacity, if its hash constants and the order of its batches happened to allow that. Smaller if there is no memory
    for the capacity, and the table may grow.

    Parameters
    ----------
    unique
        The keys differ from each other.
    """
    description, keys, values, ranks = held
    n, capacity = keys.shape[0], max(1, description["capacity"])
    while True:
        try:
            table = kind._made(description, device, capacity)
            table._fill(keys, values, None if ranks is None else view(ranks), unique=unique)
            if ranks is not None:
                table._bounded.policy.resume(int(ranks.max(initial=0)))
        except MemoryError:
            if capacity <= max(1, n) or description["on_full"] != "grow":
                raise
            capacity = max(1, n)
        except TableFull:
            if capacity > _HOPELESS * n:
                raise
            capacity = max(n, capacity + capacity // 8 + 1)
        else:
            return table


def like(table: AnyTable, description: dict[str, Any], keys: Any, values: Any, *, unique: bool = True) -> AnyTable:
    """A table with other pairs, on the same device, with the attributes of a subclass."""
    made = rebuilt(type(table), TableContents(description, keys, values), table.device, unique=unique)
    give_state(made, table.__getstate__())
    made._like = table._like
    return made


def replaced(table: AnyTable, held: TableContents, changes: dict[str, Any]) -> AnyTable:
    """A table with the same pairs and other options.

    Keys keep their ranks if the same policy says which keys leave, and the scores are of the same type.
    """
    description, keys, values, ranks = held
    if fixed := changes.keys() & {"key", "value"}:
        raise ParameterError(
            f"a table with other options has the same keys and values, and {' and '.join(sorted(fixed))} would be "
            "another type: convert the arrays, and make a table with from_arrays"
        )
    if isinstance(changes.get("memory"), os.PathLike):
        raise ParameterError(
            f"a table with other options lies in memory, got memory={changes['memory']!r}: make a table in a file with "
            "from_arrays(*table.to_arrays(), design=..., memory=path)"
        )
    ranked_by = description["evict"], description["score"]
    if changes.get("max_size", description["max_size"]) is None:
        description |= {"evict": None, "score": None}
    if changes.get("evict", description["evict"]) != "score":
        description["score"] = None
    if "design" in changes:
        description |= {"parameters": {}, "load_factor": None, "memory": None}
    if "capacity" in changes:
        changes["capacity"] = integer("capacity", changes["capacity"], 0)
    device = changes.pop("device", table.device)
    options = {
        name: changes.pop(name) for name in description.keys() - {"kind", "parameters", "names"} if name in changes
    }
    description |= {**options, "parameters": {**description["parameters"], **changes}}
    if ranked_by != (description["evict"], description["score"]):
        if description["evict"] == "score":
            raise ParameterError(
                "the keys have no scores of this type: make a table with from_arrays, and give scores="
            )
        ranks = None
    made = rebuilt(type(table), TableContents(description, keys, values, ranks), device)
    give_state(made, table.__getstate__())
    if made.device == table.device:
        made._like = table._like
    return made


def loaded(
    kind: type[AnyTable],
    path: str | os.PathLike[str],
    held: TableContents,
    device: str | None,
) -> AnyTable:
    """The table that a file describes.

    Raises
    ------
    CorruptFile
        If no table could have been saved so.
    """
    try:
        table = rebuilt(kind, held, device, unique=False)
    except (DtypeError, ParameterError, ShapeError, TableFull) as error:
        raise CorruptFile(f"{os.fspath(path)} describes no table that could be saved: {error}") from None
    most = len(held.keys) if table._bound is None else table._bound.max_size
    if len(table) != min(most, n := len(held.keys)):
        raise CorruptFile(f"{os.fspath(path)} repeats {n - len(table):,} of its {n:,} keys")
    return table


def same_order(left: BaseTable, right: BaseTable) -> bool:
    """Whether the items of rows come in one order in both tables, as far as they have names.

    Raises
    ------
    DtypeError
        If the names are others.
    """
    return all(order is None for order in _orders(left, right))


def have_same_names(left: BaseTable, right: BaseTable) -> bool:
    """Whether the items of rows have the same names in both tables, in any order, or have none in one of them."""
    try:
        _orders(left, right)
    except DtypeError:
        return False
    return True


def in_order_of(left: BaseTable, right: BaseTable, keys: Any, values: Any) -> tuple[Any, Any]:
    """Keys and values of the right table, in host memory, with the items of rows in the order of the left one.

    Raises
    ------
    DtypeError
        If the names are others, or the rows of keys may be null.
    """
    made = []
    for rows, order in zip((keys, values), _orders(left, right), strict=True):
        if order is not None and not isinstance(rows, np.ndarray):
            raise DtypeError(
                "rows with nulls among them go together only if their columns come in one order: make one of the "
                "tables anew, from a frame with the columns of the other"
            )
        made.append(rows if order is None else np.ascontiguousarray(rows[:, order]))
    return made[0], made[1]


def _orders(left: BaseTable, right: BaseTable) -> list[list[int] | None]:
    """For keys and for values: which items of the right table's rows the items of the left table's rows are."""
    orders: list[list[int] | None] = []
    for what in ("keys", "values"):
        ours, theirs = (table._key if what == "keys" else table._value for table in (left, right))
        given = None if ours is None or theirs is None else theirs.names.known
        orders.append(None if ours is None or given is None else ours.names.order(given, f"{what} of the other table"))
    return orders


def give_state(table: BaseTable, state: Any) -> None:
    """Set the attributes that a caller keeps in a table."""
    if state is not None:
        table.__setstate__(state)
