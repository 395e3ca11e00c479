"""Distinct keys, counts and aggregates of streams: an answer with one row for each key."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import ParameterError
from ..relational.drop_duplicates import drop_duplicates
from ..relational.frames import named
from ..relational.group_by import group_by as grouped
from .aggregates import FOLDED, Asked, States
from .keyed import ROW, chosen, in_type, keyed, keyed_rows, keys_of, value_names
from .output import answered
from .partition import folded, whole
from .progress import Progress
from .runs import Runs
from .sources import Source, opened
from .workspace import Workspace

__all__ = ["Grouping", "count", "group_by", "unique"]

Names = Hashable | Sequence[Hashable]
Path = str | os.PathLike[str]

_LEAST_FIRST = "order"
"""The column of the negative counts: the largest count comes first."""

_EXAMPLE = '{"total": ("price", "sum")}'
_POSITIONS = ("argmin", "argmax")


def unique(
    src: Any,
    on: Names | None = None,
    out: Path | None = None,
    *,
    memory: int | str = "2GB",
    folder: Path | None = None,
    progress: Progress | bool | None = None,
) -> Any:
    """Find the distinct rows of some columns, in the order of first appearance.

    Parameters
    ----------
    src
        Rows that may take more memory than there is: the path of a Parquet file, a pattern such as
        ``"data/*.parquet"``, whose files come in the order of their paths, or a list of these, whose rows are one
        behind the other; a data set, a RecordBatchReader or a Table of PyArrow; a frame of pandas, or a mapping of
        names to arrays; an object with ``__arrow_c_stream__``, such as a frame of Polars or a relation of DuckDB; or an
        iterator of RecordBatches, Tables or frames. What can be read once only is used up.
    on
        Names of columns; None: all.
    out
        A path .parquet, which is written whole or not at all. None: return a reader.
    memory
        Bytes to use, as an integer or a text such as ``"2GB"`` or ``"512MiB"``. What does not fit goes to files.
    folder
        Where these files are; None: the temporary folder of the system.
    progress
        None: a bar if standard error is a terminal; True: there, or else a line every few seconds; False: nothing; or
        an object with the methods of `progress.Progress`.

    Returns
    -------
    rows or reader
        The number of rows that were written to ``out``; or a ``RecordBatchReader`` of the answer, whose work begins
        when it is read.

    Raises
    ------
    ParameterError
        If there is no such column, or more than one; for another text in ``memory``, path in ``out`` or object in
        ``progress``; for files that cannot be read; and for files or batches with different columns.
    DtypeError
        For another source, and as `warphash.unique`.
    PathError
        If a path is no file, or takes none, if no file matches a pattern, and if ``folder`` is not there.
    MemoryError
        If the disk is full, or the rows of one key are too many.

    Notes
    -----
    O(n) for n rows. Nulls equal each other, and so do NaN and NaT.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from warphash import stream
    >>> batches = iter([pa.table({"user": [7, 3]}), pa.table({"user": [3, 9]})])
    >>> stream.unique(batches, memory="1GB").read_all()["user"].to_pylist()
    [7, 3, 9]
    """
    work = Workspace(memory, folder, progress)
    source = opened(src, work)
    names = chosen(source, on)
    return Grouping(source, names, {}, work).answered(out)


def count(
    src: Any,
    on: Names | None = None,
    out: Path | None = None,
    *,
    name: str = "count",
    memory: int | str = "2GB",
    folder: Path | None = None,
    progress: Progress | bool | None = None,
) -> Any:
    """Count how often each key appears, the most frequent first; those of one count in the order of first appearance.

    Parameters
    ----------
    src, on, out
        As of `unique`.
    name
        Of the column with the counts, int64, behind the columns of the key.
    memory, folder, progress
        As of `unique`.

    Returns
    -------
    rows or reader
        As of `unique`.

    Raises
    ------
    ParameterError
        As `unique`; and if a key has the name of the counts, or that is no text.
    DtypeError, PathError, MemoryError
        As `unique`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from warphash import stream
    >>> stream.count(pa.table({"user": [7, 3, 3]})).read_all().to_pylist()
    [{'user': 3, 'count': 2}, {'user': 7, 'count': 1}]
    """
    if not isinstance(name, str):
        raise ParameterError(f"expected name= to be a text, the name of the counts, got {name!r}")
    work = Workspace(memory, folder, progress)
    source = opened(src, work)
    names = chosen(source, on)
    if name in names:
        raise ParameterError(f"a key and the counts would both be named {name!r}: give name= for the counts")
    return Grouping(source, names, {name: "size"}, work, by=name).answered(out)


def group_by(
    src: Any,
    on: Names,
    agg: Mapping[str, Any],
    out: Path | None = None,
    *,
    memory: int | str = "2GB",
    folder: Path | None = None,
    progress: Progress | bool | None = None,
) -> Any:
    """Summarise columns for each key, in the order in which keys first appear.

    Parameters
    ----------
    src, on
        As of `unique`.
    agg
        For each column of the answer: ``(name, operation)`` or ``"size"``, as `FrameGroupBy.agg` takes it. For
        ``size``, ``count``, ``sum``, ``prod``, ``mean``, ``min``, ``max``, ``first``, ``last``, ``any`` and ``all``, a
        key may have any number of rows. With another operation among them, the rows of each key have to fit into a
        twelfth of ``memory``.
    out, memory, folder, progress
        As of `unique`.

    Returns
    -------
    rows or reader
        As of `unique`.

    Raises
    ------
    ParameterError, DtypeError
        As `unique`, and as `FrameGroupBy.agg`.
    PathError, MemoryError
        As `unique`.

    Notes
    -----
    Floating-point sums are made of sums of stretches of the rows. Their last bits depend on ``memory``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from warphash import stream
    >>> sold = pa.table({"shop": [7, 3, 7], "price": [1.5, 4.0, 2.5]})
    >>> stream.group_by(sold, "shop", {"total": ("price", "sum")}).read_all().to_pylist()
    [{'shop': 7, 'total': 4.0}, {'shop': 3, 'total': 4.0}]
    """
    _check_answers(agg)
    work = Workspace(memory, folder, progress)
    source = opened(src, work)
    return Grouping(source, chosen(source, on), agg, work).answered(out)


def _check_answers(agg: Mapping[str, Any]) -> None:
    """Raise `ParameterError` unless answers have names, and columns are given by names: a source has no others."""
    if not isinstance(agg, Mapping):
        raise ParameterError(f"expected agg to be as {_EXAMPLE}, got {agg!r}: name each answer")
    for name, given in agg.items():
        if not isinstance(name, str):
            raise ParameterError(f"expected names of answers as texts, such as {_EXAMPLE}, got {name!r}")
        if given != "size" and not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str)):
            raise ParameterError(f"expected (name of a column, operation) or 'size' for {name}, got {given!r}")


class Grouping:
    """The work of one call.

    Parameters
    ----------
    agg
        As of `group_by`.
    by
        The answer whose greatest values come first; None: rows come in the order of first appearance.
    """

    def __init__(
        self, source: Source, names: list[str], agg: Mapping[str, Any], work: Workspace, by: str | None = None
    ) -> None:
        names = list(dict.fromkeys(names))
        self._source, self._names, self._work, self._by = source, names, work, by
        self._keys = keys_of(source, names)
        empty = source.schema.empty_table()
        made = grouped(empty, names).agg(**agg) if agg else empty.select(names)  # raises for what cannot be answered
        fields = [source.schema.field(name) for name in names] + [made.schema.field(name) for name in agg]
        self._schema = _schema(fields)
        values = [given[0] for given in agg.values() if given != "size"]
        columns = [source.schema.names[place] for place in named(source.schema.names, values, "agg")] if values else []
        self._values = list(dict.fromkeys(columns))
        each = iter(columns)
        self._asked: Asked = {
            f"answer{place}": (None, "size") if given == "size" else (self._values.index(next(each)), given[1])
            for place, given in enumerate(agg.values())
        }
        types = {label: made.schema.field(name).type for label, name in zip(self._asked, agg, strict=True)}
        self._states = States({label: each for label, each in self._asked.items() if each[1] in FOLDED}, types)

    def answered(self, out: Path | None) -> Any:
        """As of `unique`."""
        return answered(self._work, self._schema, self._tables, out)

    def _tables(self) -> Iterator[Any]:
        order = [ROW] if self._by is None else [_LEAST_FIRST, ROW]
        runs = Runs(order, self._work)
        for table in self._parts():
            runs.add([table], is_sorted=False)
        for table in runs.merged():
            yield self._in_schema(table)

    def _in_schema(self, table: Any) -> Any:
        import pyarrow as arrow

        names = [*self._keys.names, *self._asked]
        columns = [in_type(table[name], type_) for name, type_ in zip(names, self._schema.types, strict=True)]
        return arrow.table(columns, schema=self._schema)

    def _parts(self) -> Iterator[Any]:
        """Tables of keys, answers and first rows."""
        if all(operation in FOLDED for _, operation in self._asked.values()):
            for table in self.states():
                yield self._ordered(self._with_answers(table))
        else:
            for table in whole(self._rows(), self._keys, self._work):
                yield self._summarised(table)

    def _rows(self) -> Iterator[Any]:
        return keyed(self._source, self._names, self._values, "keys", self._work)

    # ---- states of answers, all of `FOLDED`
    def states(self) -> Iterator[Any]:
        """Tables of keys, first rows and states, with one row for each key; none of a source without rows."""
        return folded(map(self._started, self._rows()), self.fold, self._keys, self._work)

    def without_rows(self) -> Any:
        """A table as of `states`, without rows."""
        return self._started(keyed_rows(self._source.schema.empty_table(), self._names, self._values, 0))

    def fold(self, table: Any) -> Any:
        """One row for each key of states."""
        names, states = self._keys.names, self._states.combined()
        if not states:
            return drop_duplicates(table, names)
        made = grouped(table, names).agg(**{ROW: (ROW, "min")}, **states)
        return made.select([*names, ROW, *states]).cast(table.schema)

    def finished(self, table: Any) -> Any:
        """The answers of states, with one row for each key."""
        import pyarrow as arrow

        return self._in_schema(arrow.table(self._with_answers(table)))

    def _started(self, table: Any) -> Any:
        import pyarrow as arrow

        made = self._states.of_rows(table, value_names(len(self._values)))
        return arrow.table({**{name: table[name] for name in (*self._keys.names, ROW)}, **made})

    def _with_answers(self, table: Any) -> dict[str, Any]:
        return {name: table[name] for name in (*self._keys.names, ROW)} | self._states.answers(table)

    # ---- rows of each key at once
    def _summarised(self, table: Any) -> Any:
        names, values = self._keys.names, value_names(len(self._values))
        asked = {
            label: "size" if place is None else (values[place], operation)
            for label, (place, operation) in self._asked.items()
        }
        made = grouped(table, names).agg(**{ROW: (ROW, "min")}, **asked)
        columns = {name: made[name] for name in made.column_names}
        for label, (_, operation) in self._asked.items():
            if operation in _POSITIONS:  # those in the part become those in the source
                columns[label] = table[ROW].take(columns[label])
        return self._ordered(columns)

    def _ordered(self, columns: dict[str, Any]) -> Any:
        import pyarrow as arrow
        from pyarrow import compute

        if self._by is not None:
            columns[_LEAST_FIRST] = compute.negate(columns[next(iter(self._asked))])
        return arrow.table(columns)


def _schema(fields: Sequence[Any]) -> Any:
    import pyarrow as arrow

    return arrow.schema(fields)
