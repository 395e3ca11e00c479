"""`dedupe`: the rows of a stream, one of each key, in their order."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..relational.drop_duplicates import drop_duplicates
from ..relational.factors import check_keep
from ..relational.group_by import group_by
from .kept_rows import KeptRows
from .keyed import ROW, chosen, keyed, keyed_rows, keys_of
from .output import answered
from .partition import folded
from .progress import Progress
from .sources import Source, opened
from .workspace import Workspace

__all__ = ["Keep", "candidates", "dedupe", "merged", "no_candidates", "staying"]

Keep = Literal["first", "last", False]

_TIMES = "times"
"""The column with the number of a key's rows."""


def dedupe(
    src: Any,
    on: Hashable | Sequence[Hashable] | None = None,
    keep: Keep = "first",
    out: str | os.PathLike[str] | None = None,
    *,
    memory: int | str = "2GB",
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Any:
    """Keep one of the rows that have equal keys. Rows stay whole and in their order.

    Parameters
    ----------
    src, on
        As of `unique`.
    keep
        The ``"first"`` row of each key, the ``"last"``, or (False) only rows whose key no other row has.
    out, memory, folder, progress
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
    check_keep(keep)
    work = Workspace(memory, folder, progress)
    source = opened(src, work, again=True)
    names = chosen(source, on)
    drop_duplicates(source.schema.empty_table(), names)  # raises for keys that cannot be compared

    def tables() -> Iterator[Any]:
        return _kept(source, names, keep, work).of(source, work)

    return answered(work, source.schema, tables, out)


def _kept(source: Source, names: list[str], keep: Keep, work: Workspace) -> KeptRows:
    """The rows that stay."""
    kept = KeptRows()
    for table in candidates(source, names, keep, work):
        kept.keep(staying(table, keep))
    return kept


def candidates(source: Source, names: list[str], keep: Keep, work: Workspace) -> Iterator[Any]:
    """One row for each key of a source: its key, the number of the row that may stay, and what `merged` needs.

    Of a source without rows, there are no tables.
    """
    keys = keys_of(source, names)
    rows = keyed(source, names, (), "keys", work)
    if not keep:
        rows = map(_counted, rows)
    return folded(rows, lambda table: merged(table, keys.names, keep), keys, work)


def no_candidates(source: Source, names: list[str], keep: Keep) -> Any:
    """A table as of `candidates`, without rows."""
    table = keyed_rows(source.schema.empty_table(), names, (), 0)
    return table if keep else _counted(table)


def merged(table: Any, names: list[str], keep: Keep) -> Any:
    """One row for each key of candidates, which come in the order of rows, by the columns of the key."""
    if keep:
        return drop_duplicates(table, names, keep=keep)
    asked = {ROW: (ROW, "min"), _TIMES: (_TIMES, "sum")}
    return group_by(table, names).agg(**asked).select(table.column_names).cast(table.schema)


def staying(table: Any, keep: Keep) -> npt.NDArray[np.int64]:
    """The numbers of the rows that stay, of candidates of which each key has one."""
    numbers: npt.NDArray[np.int64] = table[ROW].to_numpy()
    return numbers if keep else numbers[table[_TIMES].to_numpy() == 1]


def _counted(table: Any) -> Any:
    """Rows that were seen once each."""
    import pyarrow as arrow

    return table.append_column(_TIMES, arrow.repeat(arrow.scalar(1, arrow.int64()), len(table)))
