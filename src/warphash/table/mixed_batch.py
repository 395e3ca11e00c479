"""Mixed batches: finds, inserts, assigns and erases that all run at once (`HashMap.execute`, `MultiMap.execute`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.row_type import Column
from ..errors import ParameterError
from ..runtime.abi import Operation
from ..storage.batch import MixedBatch
from .base import BOOL, BaseTable

__all__ = ["execute"]

_OPERATIONS = Column(np.dtype(np.uint8), ())


def execute(
    table: BaseTable, operations: Any, keys: Any, values: Any, found: Column | None, default: Any
) -> tuple[Any, Any]:
    """Run a mixed batch on a table.

    Parameters
    ----------
    operations, keys, values
        As for `HashMap.execute`.
    found
        The type of the values that finds answer with; None for a set.
    default
        What the other operations, and finds of absent keys, have as value.

    Returns
    -------
    bool[n], values[n]
        What each operation did, and what each find found; no values of a set.
    """
    table._need("execute")
    seen, absent = table._view_keys(keys), b"" if found is None else found.default(default)
    codes_at = table._view_beside(seen, _OPERATIONS, operations, "operations")
    pairs = [seen]
    if values is not None and table._value is not None:
        pairs.append(table._view_beside(seen, table._value, values, "values"))
    seen, *rest = table._learned(pairs)
    ins = [seen, codes_at, *rest]
    ins[1] = table._transfer.private_view(ins[1])  # what is checked is what runs
    if (codes := ins[1].host) is not None:
        _check_operations(table, codes, has_values=len(ins) > 2 or table._value is None)
    table._note_kind(seen)
    library, rows, stream = seen.library, seen.shape[:1], seen.stream
    outs = [library.empty(seen, rows, BOOL, table._engine)]
    if found is not None:
        outs.append(library.empty(seen, rows + found.shape, found.dtype, table._engine))

    def body(n: int, at: list[int], to: list[int]) -> None:
        given, out = at[2] if len(at) > 2 else 0, to[1] if len(to) > 1 else 0
        table._storage.execute(MixedBatch(at[1], at[0], given, n, out, to[0]), absent, stream)

    table._lock.write(table._run_naming_keys, body, ins, outs, stream)
    return library.export(outs[0]), None if found is None else found.exported(outs[1])


def _check_operations(table: BaseTable, codes: npt.NDArray[Any], *, has_values: bool) -> None:
    """Raise `ParameterError` for codes of no operation of the table, and for those that write and have no values."""
    if len(codes) and codes.max() > max(Operation):
        raise ParameterError(f"operations are those of warphash.Operation, got {codes.max()}: nothing was done")
    for operation in Operation:
        if operation not in table._operations and (codes == operation).any():
            raise ParameterError(f"a {table._kind} has no {operation.name}: nothing was done")
    if not has_values:
        writes = int(((codes == Operation.INSERT) | (codes == Operation.ASSIGN)).sum())
        if writes:
            raise ParameterError(f"inserts and assigns need values, got none for {writes:,}: nothing was done")
