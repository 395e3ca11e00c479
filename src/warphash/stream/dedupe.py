"""`dedupe`: the rows of a stream, one of each key, in their order."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Literal

from ..errors import ParameterError
from ..relational.drop_duplicates import drop_duplicates
from ..relational.group_by import group_by
from .kept_rows import KeptRows
from .keyed import ROW, chosen, keyed, keys_of
from .output import answered
from .partition import folded
from .progress import Progress
from .sources import Source, opened
from .workspace import Workspace

__all__ = ["dedupe"]

_TIMES = "times"
"""The column with the number of a key's rows."""


def dedupe(
    src: Any,
    on: Hashable | Sequence[Hashable] | None = None,
    keep: Literal["first", "last", False] = "first",
    out: str | os.PathLike[str] | None = None,
    *,
    memory: int | str = "2GB",
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Any:
    """Keep one of the rows that have equal keys. Rows stay whole and in their order.

    Parameters
    ----------
    keep
        The ``"first"`` row of each key, the ``"last"``, or (False) only rows whose key no other row has.
    src, on, out, memory, folder, progress
        As of `unique`.

    Returns
    -------
    rows or reader
        As of `unique`.

    Raises
    ------
    ParameterError
        As `unique`, and if there is no such rule.
    DtypeError, PathError, MemoryError
        As `unique`.

    Notes
    -----
    O(n). The source is read twice: first the columns of the key, which give a bit for each row, and then all columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from warphash import stream
    >>> seen = pa.table({"user": [7, 3, 7], "page": [1, 1, 2]})
    >>> stream.dedupe(seen, "user", "last").read_all().to_pylist()
    [{'user': 3, 'page': 1}, {'user': 7, 'page': 2}]
    """
    if keep not in ("first", "last", False):
        raise ParameterError(f"keep must be 'first', 'last' or False, got {keep!r}")
    work = Workspace(memory, folder, progress)
    source = opened(src, work, again=True)
    names = chosen(source, on)
    drop_duplicates(source.schema.empty_table(), names)  # raises for keys that cannot be compared

    def tables() -> Iterator[Any]:
        return _kept(source, names, keep, work).of(source, work)

    return answered(work, source.schema, tables, out)


def _kept(source: Source, names: list[str], keep: Literal["first", "last", False], work: Workspace) -> KeptRows:
    """The rows that stay."""
    keys = keys_of(source, names)
    rows = keyed(source, names, (), "keys", work)
    if not keep:
        rows = map(_counted, rows)

    def fold(table: Any) -> Any:
        if keep:
            return drop_duplicates(table, keys.names, keep=keep)
        asked = {ROW: (ROW, "min"), _TIMES: (_TIMES, "sum")}
        return group_by(table, keys.names).agg(**asked).select(table.column_names).cast(table.schema)

    kept = KeptRows()
    for table in folded(rows, fold, keys, work):
        numbers = table[ROW].to_numpy()
        kept.keep(numbers if keep else numbers[table[_TIMES].to_numpy() == 1])
    return kept


def _counted(table: Any) -> Any:
    """Rows that were seen once each."""
    import pyarrow as arrow

    return table.append_column(_TIMES, arrow.repeat(arrow.scalar(1, arrow.int64()), len(table)))
