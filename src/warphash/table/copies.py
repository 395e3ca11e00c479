"""Tables made of other tables: of a description, and the pairs that go with it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import CorruptFile, DtypeError, ParameterError, ShapeError, TableFull
from ..runtime.abi import Op
from .options import integer

if TYPE_CHECKING:
    from .base import BaseTable

__all__ = ["give_state", "like", "loaded", "rebuilt", "replaced"]

AnyTable = TypeVar("AnyTable", bound="BaseTable")

_HOPELESS = 16
"""A table with this many times the room that its keys need is not too small, whatever is wrong."""


def rebuilt(
    kind: type[AnyTable],
    description: dict[str, Any],
    device: str | None,
    keys: Any,
    values: Any,
    *,
    unique: bool = True,
) -> AnyTable:
    """A table of a description, with pairs; of keys that repeat, one pair each.

    Larger than described if the pairs do not fit: a table that raises when it is full can hold more keys than its
    capacity, if its hash constants and the order of its batches happened to allow that. Smaller if there is no memory
    for the capacity, and the table may grow.

    Parameters
    ----------
    keys, values
        Arrays of any library, or views of the engine's memory; ``values`` is None for a set.
    unique
        The keys differ from each other.
    """
    n, capacity = keys.shape[0], max(1, description["capacity"])
    while True:
        try:
            table = kind._made(description, device, capacity)
            # Nobody else has the table: its lock is free.
            table._update_locked(table._view_pairs(keys, values), Op.KEEP, None, unique=unique)
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
    made = rebuilt(type(table), description, table.device, keys, values, unique=unique)
    give_state(made, table.__getstate__())
    made._like = table._like
    return made


def replaced(table: AnyTable, description: dict[str, Any], keys: Any, values: Any, changes: dict[str, Any]) -> AnyTable:
    """A table with the same pairs and other options."""
    if fixed := changes.keys() & {"key", "value"}:
        raise ParameterError(
            f"a table with other options has the same keys and values, and {' and '.join(sorted(fixed))} would be "
            "another type: convert the arrays, and make a table with from_arrays"
        )
    if "design" in changes:
        description |= {"parameters": {}, "load_factor": None}
    if "capacity" in changes:
        changes["capacity"] = integer("capacity", changes["capacity"], 0)
    device = changes.pop("device", table.device)
    options = {name: changes.pop(name) for name in description.keys() - {"kind", "parameters"} if name in changes}
    description |= {**options, "parameters": {**description["parameters"], **changes}}
    made = rebuilt(type(table), description, device, keys, values)
    give_state(made, table.__getstate__())
    if made.device == table.device:
        made._like = table._like
    return made


def loaded(
    kind: type[AnyTable],
    path: str | os.PathLike[str],
    description: dict[str, Any],
    keys: Any,
    values: Any,
    device: str | None,
) -> AnyTable:
    """The table that a file describes.

    Raises
    ------
    CorruptFile
        If no table could have been saved so.
    """
    try:
        table = rebuilt(kind, description, device, keys, values, unique=False)
    except (DtypeError, ParameterError, ShapeError, TableFull) as error:
        raise CorruptFile(f"{os.fspath(path)} describes no table that could be saved: {error}") from None
    if len(table) != len(keys):
        raise CorruptFile(f"{os.fspath(path)} repeats {len(keys) - len(table):,} of its {len(keys):,} keys")
    return table


def give_state(table: BaseTable, state: Any) -> None:
    """Set the attributes that a caller keeps in a table."""
    if state is not None:
        table.__setstate__(state)
