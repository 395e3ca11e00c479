"""`join`: the rows of two streams side by side, where their keys are equal.

One side leads: its rows come in their order, each with its partners. That is the left side, and of ``how="right"`` the
right one. The other side is looked up:

1. If it fits into memory, the rows of the leading side go by in batches, once.
2. If not, both sides are divided by their keys (`partition`): the leading side's keys and numbers of rows, and the
   other side's keys and those columns that the answer has. Part by part, pairs are found, and written as a run in the
   order of leading rows (`runs`). The leading side is read again, and each of its rows meets its pairs. For ``"semi"``
   and ``"anti"``, parts tell which leading rows have a partner, a bit each.
3. A part with one key that does not fit is cut into blocks. The leading rows of the part go by once for each block.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError
from ..relational.composites import rows_at
from ..relational.drop_duplicates import drop_duplicates
from ..relational.elements import Elements, elements_of
from ..relational.frames import frame_of
from ..relational.items import Missing
from ..relational.matches import How, KeyRows
from ..relational.merge import merge
from .kept_rows import KeptRows
from .keyed import ROW, chosen, in_type, keyed, keys_of, value_names
from .likely_rows import LikelyRows
from .output import answered
from .partition import is_divisible, joined_tables, larger_tables, partitioned
from .progress import Progress
from .runs import Runs
from .sources import Source, opened, passes
from .workspace import Workspace

__all__ = ["join"]

Names = Hashable | Sequence[Hashable]
Path = str | os.PathLike[str]
Rows = npt.NDArray[np.signedinteger[Any]]

_PARTNER = "partner"
"""The column with the number of the other side's row."""

_INT64 = np.dtype(np.int64)
_ROWS_AT_ONCE = 1 << 16
_KEY_COPIES, _ROW_COPIES = 6, 14
"""Bytes that it takes to look keys up, beside each byte of keys: of one column, and of several columns (measured: 12
for short strings, 14 for two columns that are not integers)."""

_UNIQUE_ROW_BYTES, _ROW_BYTES = (58, 40), (95, 115)
"""Bytes that it takes to look up a row of integers of one column, and of several, beside a copy of the keys: if no key
repeats (measured: 50 to 58, and 27 to 39), and else (measured: up to 93, and 108 to 114, where few keys repeat)."""

_FEWER = 4
"""Where the leading side has so many times fewer rows, its keys tell which rows of the other side are needed at all."""


def join(
    left: Any,
    right: Any,
    on: Names | None = None,
    how: How = "inner",
    out: Path | None = None,
    *,
    left_on: Names | None = None,
    right_on: Names | None = None,
    suffixes: tuple[str, str] | None = None,
    nulls: Literal["unequal", "equal"] = "unequal",
    memory: int | str = "2GB",
    folder: Path | None = None,
    progress: Progress | bool | None = None,
) -> Any:
    """Join two streams by columns.

    Parameters
    ----------
    left, right
        As ``src`` of `unique`.
    on, how
        As of `warphash.merge`.
    out
        As of `unique`.
    left_on, right_on, suffixes, nulls
        As of `warphash.merge`.
    memory, folder, progress
        As of `unique`.

    Returns
    -------
    rows or reader
        As of `unique`, with the columns and the order of rows of `warphash.merge`.

    Raises
    ------
    ParameterError, DtypeError
        As `unique` and `warphash.merge`.
    PathError
        As `unique`.
    MemoryError
        If the disk is full.

    Notes
    -----
    O(n + m + p) for n and m rows and p pairs. If the right side, or for ``how="right"`` the left one, fits into half of
    ``memory`` with what it takes to look its keys up, the other one is read once. A key may have any number of rows on
    both sides.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from warphash import stream
    >>> sold = pa.table({"shop": [7, 3, 7], "price": [1.5, 4.0, 2.5]})
    >>> shops = pa.table({"shop": [3, 7], "town": ["Ulm", "Bonn"]})
    >>> stream.join(sold, shops, "shop").read_all()["town"].to_pylist()
    ['Bonn', 'Ulm', 'Bonn']
    """
    if left is right and isinstance(left, Iterator):
        raise ParameterError("both sides are one iterator or reader, which can be read once: give a table or a path")
    work = Workspace(memory, folder, progress)
    sources = opened(left, work, again=how != "right"), opened(right, work, again=how == "right")
    mine, theirs = (source.schema.empty_table() for source in sources)
    names: dict[str, Any] = {"on": on, "left_on": left_on, "right_on": right_on}
    schema = merge(mine, theirs, how, **names, suffixes=suffixes, nulls=nulls).schema  # raises as merge
    if on is None and left_on is None:
        on = [name for name in sources[0].schema.names if name in sources[1].schema.names]
    sides = [
        _Side(source, chosen(source, names, parameter))
        for source, names, parameter in zip(
            sources, (on, on) if on is not None else (left_on, right_on), ("left", "right"), strict=True
        )
    ]
    joining = _Joining(sides, how, "one" if nulls == "equal" else "dropped", schema, work)
    return answered(work, joining.schema, joining.tables, out)


class _Side(NamedTuple):
    source: Source
    on: list[str]

    def elements(self, table: Any, names: Sequence[str]) -> Elements:
        """Keys of a table, in columns of some names."""
        frame = frame_of(table)
        return rows_at(frame, [frame.names.index(name) for name in names])


class _InMemory(NamedTuple):
    """The other side of a join: its columns of the answer, its keys, and what tells which rows may have a partner.

    ``known`` is None if it has no rows.
    """

    payload: Any
    known: KeyRows | None
    likely: LikelyRows


class _Column(NamedTuple):
    """A column of the answer: a column of the leading side, or one of the other side."""

    leads: bool
    name: str
    alone: str | None
    """That of the other side for its rows without a partner; None: a null."""


def _is_of_integers(column: Any) -> bool:
    """Whether a column of keys has integers and no nulls, so that rows of such columns are one key."""
    import pyarrow as arrow

    return bool(arrow.types.is_integer(column.type)) and not column.null_count


class _Joining:
    def __init__(self, sides: list[_Side], how: How, missing: Missing, schema: Any, work: Workspace) -> None:
        self.schema, self._how, self._missing, self._work = schema, how, missing, work
        self._lead, self._other = reversed(sides) if how == "right" else sides
        self._keeps_all = how in ("left", "right", "outer")
        self._columns = _columns_of(sides, how)
        mine = [column.name for column in self._columns if column.leads]
        theirs = [column.name for column in self._columns if not column.leads]
        theirs += [column.alone for column in self._columns if column.leads and column.alone and how == "outer"]
        self._lead_columns = list(dict.fromkeys([*self._lead.on, *mine]))
        self._payload = list(dict.fromkeys(theirs))
        self._keys = keys_of(self._lead.source, self._lead.on, self._other.source, self._other.on)
        self._other_keys = keys_of(self._other.source, self._other.on, self._lead.source, self._lead.on)
        self._limit = work.memory // 2

    def tables(self) -> Iterator[Any]:
        """The answer."""
        other = keyed(self._other.source, self._other.on, self._payload, "other side", self._work)
        if self._how in ("semi", "anti"):
            yield from self._some_rows(other)
            return
        other = self._needed(other)
        held, is_all = self._held(other, may_repeat=False)
        found = self._in_memory(held) if is_all else None
        if found is None:
            yield from self._divided(held, other)
        else:
            yield from self._streamed(found)

    # ---- the other side
    def _held(self, tables: Iterator[Any], *, may_repeat: bool = True) -> tuple[list[Any], bool]:
        """Tables up to the limit of memory, and whether these are all."""
        held: list[Any] = []
        size = 0
        for table in tables:
            held.append(table)
            size += self._cost(table, may_repeat=may_repeat)
            if size < self._limit:
                continue
            if self._how in ("semi", "anti"):  # one row of each key says all
                state = drop_duplicates(joined_tables(held), self._other_keys.names)
                held, size = [state], self._cost(state)
                if 2 * size < self._limit:
                    continue
            return held, False
        return held, True

    def _cost(self, table: Any, *, may_repeat: bool = True) -> int:
        """Bytes of a table whose keys are looked up, which may repeat."""
        columns = [table[name] for name in self._keys.names]
        nbytes: int = sum(column.nbytes for column in columns)
        if all(map(_is_of_integers, columns)):
            row_bytes = (_ROW_BYTES if may_repeat else _UNIQUE_ROW_BYTES)[len(columns) > 1]
            return int(table.nbytes) + nbytes + len(table) * row_bytes
        return int(table.nbytes) + nbytes * (_KEY_COPIES if len(columns) == 1 else _ROW_COPIES)

    def _needed(self, tables: Iterator[Any]) -> Iterator[Any]:
        """Those rows of the other side that may have a partner, if a few keys tell."""
        rows, others = self._lead.source.rows, self._other.source.rows
        if self._how == "outer" or rows is None or (others is not None and _FEWER * rows > others):
            return tables
        held: list[Any] = []
        size = 0
        for table in keyed(self._lead.source, self._lead.on, (), "keys", self._work):
            held.append(table)
            size += self._cost(table)
            if 2 * size > self._limit:
                return tables
        if not held:
            return iter(())
        known = self._known(self._lead, joined_tables(held))

        def some() -> Iterator[Any]:
            for table in tables:
                if len(found := table.filter(known.contains(self._elements(self._other, table)))):
                    yield found

        return some()

    def _elements(self, side: _Side, table: Any) -> Elements:
        return side.elements(table, self._keys.names)

    def _known(self, side: _Side, table: Any) -> KeyRows:
        return KeyRows(self._elements(side, table), nan=self._missing, null=self._missing)

    def _in_memory(self, held: list[Any]) -> _InMemory | None:
        """The other side, taken from a list of its tables; None: these fit only if no key repeats, and some may."""
        import pyarrow as arrow

        likely = LikelyRows(self._work.share if len(self._keys.names) > 1 else 0)
        if not held:
            return _InMemory(self._empty_payload(), None, likely)
        other = joined_tables(held)
        keys = other.select(self._keys.names).combine_chunks()
        if sum(map(self._cost, held)) < self._limit:
            known = self._known(self._other, keys)
        else:
            elements, missing = self._elements(self._other, keys), self._missing
            unique = KeyRows.if_unique(elements, nan=missing, null=missing)
            if unique is None:
                return None
            known = unique
        if likely.is_used:
            likely.add(self._other_keys.words(keys))
        columns = [other[name] for name in value_names(len(self._payload))]
        del other
        held.clear()
        for place, column in enumerate(columns):  # one after the other, so that one of them is there twice
            columns[place] = column.combine_chunks()
        return _InMemory(arrow.table(columns, names=self._payload), known, likely)

    # ---- in memory
    def _streamed(self, other: _InMemory) -> Iterator[Any]:
        """Pairs, with the other side in memory."""
        payload, known, likely = other
        is_seen = np.zeros(len(payload), np.bool_)
        for table in passes(self._lead.source, self._lead_columns, "rows", self._work):
            if known is None:
                if self._keeps_all:
                    yield self._side_by_side(table, np.arange(len(table)), payload, np.full(len(table), -1))
                continue
            for rows, partners in self._found(known, table, payload, likely):
                if self._how == "outer":
                    is_seen[partners[partners >= 0]] = True
                yield self._side_by_side(table, rows, payload, partners)
        if self._how == "outer":
            yield from self._alone(payload.filter(~is_seen))

    def _found(self, known: KeyRows, table: Any, payload: Any, likely: LikelyRows) -> Iterator[tuple[Rows, Rows]]:
        """As `_pairs`. Rows that are not likely to have a partner are not looked up."""
        keys = table.select(self._lead.on).rename_columns(self._keys.names)
        places = likely.places(self._keys.words(keys)) if likely.is_used else None
        codes = known.codes_of(self._elements(self._lead, keys if places is None else keys.take(places)))
        if places is not None and self._keeps_all:
            every = np.full(len(table), -1, codes.dtype)
            every[places] = codes
            places, codes = None, every
        for rows, partners in self._pairs(known, codes, table, payload, keeps_all=self._keeps_all):
            yield rows if places is None else places[rows], partners

    def _pairs(
        self, known: KeyRows, codes: Rows, table: Any, payload: Any, *, keeps_all: bool
    ) -> Iterator[tuple[Rows, Rows]]:
        """Positions of codes, and rows of the other side that are their partners: as many at a time as memory takes."""
        row_bytes = sum(each.nbytes // max(1, len(each)) + 16 for each in (table, payload))
        most = min(_ROWS_AT_ONCE, max(1, self._work.share // row_bytes))
        if known.is_unique:
            rows = np.arange(len(codes)) if keeps_all else np.flatnonzero(codes >= 0)
            for at in range(0, len(rows), most):
                some = rows[at : at + most]
                yield some, codes[some]
            return
        elements = elements_of(codes)
        counts = known.counts_of(codes)
        ends = (counts.clip(1) if keeps_all else counts).cumsum()
        begin, done = 0, 0
        while begin < len(ends):
            end = max(begin + 1, int(np.searchsorted(ends, done + most, "right")))
            rows, partners = known.partners(elements, codes[begin:end], _INT64, keeps_all=keeps_all)
            for at in range(0, len(rows), most):  # of one row, there may be more
                yield rows[at : at + most] + begin, partners[at : at + most]
            begin, done = end, int(ends[end - 1])

    # ---- part by part
    def _divided(self, held: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
        runs, alone = Runs([ROW, _PARTNER], self._work), Runs([_PARTNER], self._work)
        names = value_names(len(self._payload))

        def pairs(other: Any, lead: Iterator[Any], is_seen: npt.NDArray[np.bool_]) -> Iterator[Any]:
            import pyarrow as arrow

            known, other_rows = self._known(self._other, other), other[ROW].to_numpy()
            payload = other.select(names).combine_chunks()
            for table in lead:
                lead_rows = table[ROW].to_numpy()
                codes = known.codes_of(self._elements(self._lead, table))
                found = self._pairs(known, codes, table, payload, keeps_all=False)
                for rows, partners in found:
                    is_seen[partners] = True
                    numbers = {ROW: lead_rows[rows], _PARTNER: other_rows[partners]}
                    taken = payload.take(arrow.array(partners))
                    yield arrow.table({**numbers, **dict(zip(names, taken.columns, strict=True))})

        def act(other: Any, lead: Iterator[Any]) -> None:
            is_seen = np.zeros(len(other), np.bool_)
            runs.add(pairs(other, lead, is_seen))
            if self._how == "outer":
                alone.add([other.filter(~is_seen).rename_columns([*self._keys.names, *names, _PARTNER])])

        self._part_by_part(self._lead_keys, held, rest, act)
        yield from self._with_pairs(runs.merged())
        for table in alone.merged():
            yield from self._alone(table.select(names).rename_columns(self._payload))

    def _lead_keys(self) -> Iterator[Any]:
        return keyed(self._lead.source, self._lead.on, (), "keys", self._work)

    def _part_by_part(
        self,
        lead: Callable[[], Iterator[Any]],
        held: list[Any],
        rest: Iterator[Any],
        act: Callable[[Any, Iterator[Any]], None],
        level: int = 0,
    ) -> None:
        """Act on each part: a table of the other side, and the rows of the leading side that may be partners.

        Parameters
        ----------
        lead
            Reads the leading side.
        held, rest
            The other side, of which the first tables do not fit into memory.
        """
        first = joined_tables(held)
        if not is_divisible(first, self._other_keys, level):
            act(first, lead())
            for block in larger_tables(rest, self._work.share):
                act(block, lead())
            return
        held.clear()
        rows = itertools.chain([first], rest)
        del first
        likely = LikelyRows(self._work.share)
        others = partitioned(rows, self._other_keys, self._work, level, likely.add)
        leads = partitioned(self._likely(lead(), likely), self._keys, self._work, level)
        for other, part in zip(others, leads, strict=True):
            tables = other.read()
            some, is_all = self._held(tables)
            if not is_all:
                self._part_by_part(part.read, some, tables, act, level + 1)
            elif some:
                act(joined_tables(some), part.read())
            other.remove()
            part.remove()

    def _likely(self, tables: Iterator[Any], likely: LikelyRows) -> Iterator[Any]:
        """Those rows of the leading side that may have a partner."""
        for table in tables:
            places = likely.places(self._keys.words(table)) if likely.is_used else None
            yield table if places is None else table.take(places)

    def _with_pairs(self, pairs: Iterator[Any]) -> Iterator[Any]:
        """Read the leading side again, and put its rows beside their partners."""
        names, begin, read = value_names(len(self._payload)), 0, _UpTo(pairs)
        for table in passes(self._lead.source, self._lead_columns, "rows", self._work):
            done = 0
            for piece in read.below(begin + len(table)):
                rows = piece[ROW].to_numpy() - begin
                partners = np.arange(len(rows))
                last = int(rows[-1])
                if self._keeps_all:
                    rows, partners = _with_lacking(rows, partners, done, last)
                done = max(done, last + 1)
                payload = piece.select(names).rename_columns(self._payload)
                yield self._side_by_side(table, rows, payload.combine_chunks(), partners)
            if self._keeps_all and done < len(table):
                rows = np.arange(done, len(table))
                yield self._side_by_side(table, rows, self._empty_payload(), np.full(len(rows), -1))
            begin += len(table)

    # ---- semi and anti
    def _some_rows(self, other: Iterator[Any]) -> Iterator[Any]:
        held, is_all = self._held(other)
        is_semi = self._how == "semi"
        if is_all:
            known = self._known(self._other, joined_tables(held)) if held else None
            for table in passes(self._lead.source, self._lead_columns, "rows", self._work):
                if known is not None:
                    found = known.contains(self._lead.elements(table, self._lead.on))
                    table = table.filter(found if is_semi else ~found)
                elif is_semi:
                    continue
                yield table
            return
        kept = KeptRows()

        def act(other: Any, lead: Iterator[Any]) -> None:
            known = self._known(self._other, other)
            for table in lead:
                kept.keep(table[ROW].to_numpy()[known.contains(self._elements(self._lead, table))])

        self._part_by_part(self._lead_keys, held, other, act)
        yield from kept.of(self._lead.source, self._work, kept=is_semi)

    # ---- answers
    def _empty_payload(self) -> Any:
        import pyarrow as arrow

        fields = [self._other.source.schema.field(name) for name in self._payload]
        return arrow.schema(fields).empty_table()

    def _side_by_side(self, table: Any, rows: Rows, payload: Any, partners: Rows) -> Any:
        """Rows of the leading side beside those of the other side; nulls at -1."""
        import pyarrow as arrow

        is_lacking = partners < 0
        mask = is_lacking if is_lacking.any() else None
        mine, theirs = arrow.array(rows), arrow.array(partners, mask=mask)
        columns = [
            in_type(table[column.name].take(mine) if column.leads else payload[column.name].take(theirs), field.type)
            for column, field in zip(self._columns, self.schema, strict=True)
        ]
        return arrow.table(columns, schema=self.schema)

    def _alone(self, payload: Any) -> Iterator[Any]:
        """Rows of the other side without a partner."""
        import pyarrow as arrow

        if not len(payload):
            return
        columns = []
        for column, field in zip(self._columns, self.schema, strict=True):
            name = column.alone if column.leads else column.name
            made = arrow.nulls(len(payload), field.type) if name is None else in_type(payload[name], field.type)
            columns.append(made)
        yield arrow.table(columns, schema=self.schema)


class _UpTo:
    """Tables in the order of a column of rows, given out up to some row at a time."""

    def __init__(self, tables: Iterator[Any]) -> None:
        self._tables = tables
        self._next: Any = None

    def below(self, end: int) -> Iterator[Any]:
        """The rows below ``end`` that were not given out yet."""
        while True:
            if self._next is None:
                self._next = next(self._tables, None)
                if self._next is None:
                    return
            table = self._next
            n = int(np.searchsorted(table[ROW].to_numpy(), end))
            self._next = table.slice(n) if n < len(table) else None
            if n:
                yield table.slice(0, n)
            if self._next is not None:
                return


def _with_lacking(rows: Rows, partners: Rows, begin: int, end: int) -> tuple[Rows, Rows]:
    """Pairs, and between them the rows from ``begin`` to ``end`` that have none, with -1."""
    if begin > end:
        return rows, partners
    lacks = np.ones(end - begin + 1, np.bool_)
    lacks[rows[rows >= begin] - begin] = False
    lacking = np.flatnonzero(lacks) + begin
    if not len(lacking):
        return rows, partners
    at = np.searchsorted(rows, lacking)
    return np.insert(rows, at, lacking), np.insert(partners, at, -1)


def _columns_of(sides: Sequence[_Side], how: How) -> list[_Column]:
    """The columns of the answer, in the order of `merge`."""
    left, right = sides
    shared = {mine: theirs for mine, theirs in zip(left.on, right.on, strict=True) if mine == theirs}
    is_right = how == "right"
    made = []
    for name in left.source.schema.names:
        if name in shared:
            made.append(_Column(True, name, shared[name]))
        else:
            made.append(_Column(not is_right, name, None))
    if how not in ("semi", "anti"):
        made += [_Column(is_right, name, None) for name in right.source.schema.names if name not in shared]
    return made
