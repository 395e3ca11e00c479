"""Mixed batches: finds, inserts, assigns and erases that all run at once (`HashMap.execute`, `MultiMap.execute`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.library import ArrayView
from ..arrays.row_type import Column
from ..arrays.strings import StringArray
from ..errors import ParameterError
from ..runtime.abi import Operation
from ..storage.batch import MixedBatch
from .front import BOOL
from .parts import Parts
from .scans import owned

__all__ = ["execute"]

_OPERATIONS = Column(np.dtype(np.uint8), ())


def execute(
    parts: Parts, known: Sequence[Operation], operations: Any, keys: Any, values: Any, default: Any
) -> tuple[Any, Any]:
    """Run a mixed batch on a table.

    Parameters
    ----------
    known
        The operations of tables of this class.
    operations, keys, values
        As for `HashMap.execute`.
    default
        What the other operations, and finds of absent keys, have as value.

    Returns
    -------
    bool[n], values[n]
        What each operation did, and what each find found; no values of a set.
    """
    facts, front, guarded = parts.facts, parts.front, parts.guarded
    facts.need("execute")
    column, engine = front.value, front.engine
    seen, absent = front.seen(front.key.view(keys, "keys"), "keys"), b"" if column is None else column.default(default)
    codes_at = front.beside(seen, _OPERATIONS, operations, "operations")
    pairs = [seen]
    if values is not None and column is not None:
        pairs.append(front.beside(seen, column, values, "values"))
    seen, *rest = front.learned(pairs)
    ins = [seen, codes_at, *rest]
    ins[1] = front.transfer.private_view(ins[1])  # what is checked is what runs
    if (codes := ins[1].host) is not None:
        _check_operations(facts.kind, known, codes, has_values=len(ins) > 2 or column is None)
    front.note_kind(seen)
    library, rows, stream = seen.library, seen.shape[:1], seen.stream
    outs = [library.empty(seen, rows, BOOL, engine)]
    if column is not None:
        outs.append(front.rows_for(seen, column))

    def body(n: int, at: list[int], to: list[int]) -> None:
        given, out = at[2] if len(at) > 2 else 0, to[1] if len(to) > 1 else 0
        guarded.storage.execute(MixedBatch(at[1], at[0], given, n, out, to[0]), absent, stream)

    def execute_locked() -> ArrayView | StringArray | None:
        front.run_naming_keys(body, ins, outs, stream)
        return None if column is None else owned(engine, column, outs[1])

    found = guarded.lock.write(execute_locked)
    return library.export(outs[0]), None if column is None else column.exported(found, library)


def _check_operations(kind: str, known: Sequence[Operation], codes: npt.NDArray[Any], *, has_values: bool) -> None:
    """Raise `ParameterError` for codes of no operation of the table, and for those that write and have no values."""
    if len(codes) and codes.max() > max(Operation):
        raise ParameterError(f"operations are those of warphash.Operation, got {codes.max()}: nothing was done")
    for operation in Operation:
        if operation not in known and (codes == operation).any():
            raise ParameterError(f"a {kind} has no {operation.name}: nothing was done")
    if not has_values:
        writes = int(((codes == Operation.INSERT) | (codes == Operation.ASSIGN)).sum())
        if writes:
            raise ParameterError(f"inserts and assigns need values, got none for {writes:,}: nothing was done")
