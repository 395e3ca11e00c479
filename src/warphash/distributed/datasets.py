"""Verbs over Parquet files whose row groups are dealt to the ranks of a group; and `batches`, for verbs of one's own.

All ranks read the ends of all files, and deal the row groups alike: the largest ones first, each to the rank that has
the fewest bytes. So nobody has to tell. Each rank reads its share in the order of rows, and does what it can alone by
the verbs of `warphash.stream`, within ``memory``. What is left goes to the owners of the keys: distinct keys, counts,
one candidate of each key, or the rows of a join. That has to fit into memory, on each rank its part.

Answers stay with the ranks: a Table of PyArrow each, or a folder with a file of each (`parts`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError
from ..relational.drop_duplicates import drop_duplicates
from ..relational.factors import check_keep
from ..relational.frames import named
from ..relational.matches import How
from ..relational.merge import merge
from ..stream.aggregates import FOLDED
from ..stream.dedupe import Keep, candidates, merged, no_candidates, staying
from ..stream.group_by import Grouping
from ..stream.kept_rows import KeptRows
from ..stream.key_hash import Words, forms_of, words_of
from ..stream.keyed import ROW
from ..stream.memory import bytes_of
from ..stream.output import row_groups
from ..stream.sources import ParquetSource, RowGroup
from ..stream.workspace import Workspace, need_pyarrow
from .arrow_tables import exchanged_table, gathered_table, joined_tables
from .channel import Call, Channel, channel_of
from .exchange import gathered
from .join import HEAVY_SHARE, SAMPLED, SMALL_BYTES
from .parts import check_folder, write_parts

__all__ = ["batches", "count", "dealt", "dedupe", "group_by", "join", "unique"]

T = TypeVar("T")
Names = Hashable | Sequence[Hashable]
Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]

_AT_ONCE = 1 << 62
"""Bytes of a piece of a share that is read as a whole."""


def dealt(groups: Sequence[RowGroup], world: int) -> list[list[RowGroup]]:
    """Deal row groups to ranks, the largest first, each to the rank that has the fewest bytes.

    Parameters
    ----------
    groups
        Of all files.
    world
        Number of ranks.

    Returns
    -------
    list of lists
        The row groups of each rank, in the order of rows: all ranks compute the same.
    """
    shares: list[list[RowGroup]] = [[] for _ in range(world)]
    sizes = [0] * world
    for group in sorted(groups, key=lambda group: (-group.nbytes, group.begin)):
        rank = sizes.index(min(sizes))
        sizes[rank] += group.nbytes
        shares[rank].append(group)
    return [sorted(share) for share in shares]


def batches(paths: Paths, columns: Sequence[str] | None = None, *, group: Any = None) -> Iterator[Any]:
    """Read this rank's row groups, one after the other. Collective: all ranks make the same number of turns.

    Parameters
    ----------
    paths
        As of `unique`. The rows of the files are one behind the other.
    columns
        Names of columns; None: all.
    group
        A process group of ``torch.distributed``, or a device mesh with one dimension. None: all ranks.

    Yields
    ------
    table
        A Table of PyArrow with the rows of a row group. A rank with fewer row groups than others goes on with tables
        without rows. So collective verbs in the loop are called by all ranks.

    Raises
    ------
    CollectiveError
        If a rank cannot read its row group, or the files are not the same for all ranks. All ranks raise it.
    PeerLost
        If a rank does not answer.

    Examples
    --------
    ::

        for table in wd.batches(["2024.parquet", "2025.parquet"], ["user"]):
            users = table["user"].to_numpy()
            m.upsert(users, np.ones(len(users), np.int64), "add")      # a ShardedMap
    """
    channel = channel_of(group)
    shares = channel.done("open a data set", lambda: _Shares(paths, channel.world))
    wanted = channel.done("choose columns", lambda: shares.chosen(columns))
    shares.check(channel, repr(columns))
    mine = shares.of_rank[channel.rank]
    for turn in range(max(map(len, shares.of_rank))):

        def read(turn: int = turn) -> Any:
            return _read(shares.source.some(mine[turn : turn + 1]), wanted)

        yield channel.done("read a row group", read)


def unique(
    paths: Paths,
    on: Names | None = None,
    out: Path | None = None,
    *,
    memory: int | str = "2GB",
    group: Any = None,
) -> Any:
    """Find the distinct rows of some columns of Parquet files. Collective. See `warphash.stream.unique`.

    Parameters
    ----------
    paths
        A Parquet file, a pattern such as ``"data/*.parquet"``, or a list of these: files with the same columns, which
        all ranks can read.
    on
        Names of columns; None: all.
    out
        A new or empty folder, which gets a file of each rank, ``part-00000.parquet`` and so on, when all ranks have
        written theirs. None: give tables.
    memory
        Bytes to use while a rank reads its share, as of `warphash.stream.unique`.
    group
        As of `batches`.

    Returns
    -------
    rows or table
        The number of rows that all ranks wrote; or a Table of PyArrow with the distinct rows that this rank owns, each
        on one rank.

    Raises
    ------
    CollectiveError
        If arguments are wrong on a rank, or not those of others, or a file cannot be read or written. All ranks raise
        it, and ``out`` is as it was.
    PeerLost
        If a rank does not answer.

    Notes
    -----
    The distinct rows of a rank's share, and those that it owns, have to fit into memory.
    """
    work = _Work(paths, on, out, memory, group, "unique")
    return work.given(_summarised(work, {}))


def count(
    paths: Paths,
    on: Names | None = None,
    out: Path | None = None,
    *,
    name: str = "count",
    memory: int | str = "2GB",
    group: Any = None,
) -> Any:
    """Count how often each key of Parquet files appears. Collective. See `warphash.stream.count`.

    Parameters
    ----------
    paths, on, out
        As of `unique`.
    name
        Of the column with the counts, int64, behind the columns of the key.
    memory, group
        As of `unique`.

    Returns
    -------
    rows or table
        As of `unique`. The rows of each rank have the largest counts first.

    Raises
    ------
    CollectiveError, PeerLost
        As `unique`.
    """
    work = _Work(paths, on, out, memory, group, f"count, name={name!r}")

    def check() -> None:
        if name in work.names:
            raise ParameterError(f"a key and the counts would both be named {name!r}: give name= for the counts")

    work.done(check)
    counted = _summarised(work, {name: "size"})

    def ordered() -> Any:
        table = counted()
        return table.take(np.argsort(-table[name].to_numpy(), kind="stable"))

    return work.given(ordered)


_COMBINED = FOLDED - {"first", "last"}
"""Operations whose parts say nothing about the order of rows."""


def group_by(
    paths: Paths,
    on: Names,
    agg: Mapping[str, Any],
    out: Path | None = None,
    *,
    memory: int | str = "2GB",
    group: Any = None,
) -> Any:
    """Summarise columns of Parquet files for each key. Collective. See `warphash.stream.group_by`.

    Parameters
    ----------
    paths, on
        As of `unique`.
    agg
        For each column of the answer: ``(name, operation)`` or ``"size"``. Operations are ``size``, ``count``, ``sum``,
        ``prod``, ``mean``, ``min``, ``max``, ``any`` and ``all``.
    out, memory, group
        As of `unique`.

    Returns
    -------
    rows or table
        As of `unique`.

    Raises
    ------
    CollectiveError, PeerLost
        As `unique`.

    Notes
    -----
    A rank sends a row for each of its groups. Floating-point sums are sums of the ranks' sums.
    """
    work = _Work(paths, on, out, memory, group, f"group_by, agg={agg}")

    def check() -> None:
        for name, given in agg.items():
            operation = given[1] if isinstance(given, tuple) and len(given) == 2 else given
            if operation not in _COMBINED:
                raise ParameterError(
                    f"expected (name, operation) or 'size' for {name!r}, with one of {', '.join(sorted(_COMBINED))} "
                    f"over the rows of several ranks, got {given!r}"
                )

    work.done(check)
    return work.given(_summarised(work, agg))


def _summarised(work: _Work, agg: Mapping[str, Any]) -> Callable[[], Any]:
    """Bring partial answers to the owners of their keys. What is returned makes the answers of this rank's keys."""

    def states_here() -> tuple[Grouping, Any]:
        with work.space() as space:
            grouping = Grouping(work.share, work.names, agg, space)
            return grouping, joined_tables([grouping.without_rows(), *grouping.states()])

    grouping, states = work.done(states_here)
    arrived = work.at_owner(states, states.column_names[: len(work.names)])
    return lambda: grouping.finished(grouping.fold(arrived))


def dedupe(
    paths: Paths,
    on: Names | None = None,
    keep: Keep = "first",
    out: Path | None = None,
    *,
    memory: int | str = "2GB",
    group: Any = None,
) -> Any:
    """Keep one of the rows of Parquet files that have equal keys. Collective. See `warphash.stream.dedupe`.

    Parameters
    ----------
    paths, on
        As of `unique`.
    keep
        The ``"first"`` row of each key, the ``"last"``, or (False) only rows whose key no other row has. The rows of
        the files lie one behind the other, as for one process, and the same rows stay.
    out, memory, group
        As of `unique`.

    Returns
    -------
    rows or table
        As of `unique`: the rows of a rank's share that stay, in their order.

    Raises
    ------
    CollectiveError, PeerLost
        As `unique`.

    Notes
    -----
    Files are read twice. Rows stay with the rank that read them: their keys alone go to owners.
    """
    work = _Work(paths, on, out, memory, group, f"dedupe, keep={keep!r}")

    def found() -> Any:
        check_keep(keep)
        drop_duplicates(work.share.schema.empty_table(), work.names)  # raises for keys that cannot be compared
        with work.space() as space:
            tables = candidates(work.share, work.names, keep, space)
            return joined_tables([no_candidates(work.share, work.names, keep), *tables])

    mine = work.done(found)
    keys = mine.column_names[: len(work.names)]
    rows = work.done(lambda: work.rows_of_all(mine[ROW].to_numpy()))
    with work.channel.call("ask the owners") as call:
        call.agree()
        sent = call.together(lambda: mine.set_column(mine.column_names.index(ROW), ROW, [rows]))
        arrived, trip = exchanged_table(work.channel, call, sent, call.together(lambda: work.words(mine, keys)))

        def stay() -> npt.NDArray[np.bool_]:
            numbers = arrived[ROW].to_numpy()
            ordered = arrived.take(np.argsort(numbers))
            return np.isin(numbers, staying(merged(ordered, keys, keep), keep))

        (flags,) = trip.back(call, [call.together(stay)])

    def kept(space: Workspace) -> Iterator[Any]:
        bits = KeptRows()
        bits.keep(mine[ROW].to_numpy()[flags])
        return bits.of(work.share, space)

    return work.streamed(kept)


class _Work:
    """A verb over one data set: what all of them begin and end with."""

    def __init__(self, paths: Paths, on: Names | None, out: Path | None, memory: int | str, group: Any, text: str):
        self.channel = channel_of(group)
        self._out, self._memory = out, memory

        def opened() -> _Shares:
            if out is not None:
                check_folder(out)
            bytes_of(memory)  # raises for another text
            return _Shares(paths, self.channel.world)

        self._shares = self.channel.done("open a data set", opened)
        self.names: list[str] = self.channel.done("choose columns", lambda: self._shares.chosen(on))
        self._shares.check(self.channel, f"{text} on {self.names}, out={out!r}")
        self.share = self._shares.source.some(self._shares.of_rank[self.channel.rank])
        schema = self.share.schema
        self._forms = forms_of([schema.field(name).type for name in self.names])

    def done(self, work: Callable[[], T]) -> T:
        """Local work."""
        return self.channel.done("work on a share", work)

    def words(self, table: Any, names: Sequence[str]) -> Words:
        """The words of keys, in columns of some names."""
        return words_of([table[name] for name in names], self._forms)

    def space(self) -> Workspace:
        """Means to read the share."""
        return Workspace(self._memory, progress=False)

    def at_owner(self, table: Any, names: Sequence[str]) -> Any:
        """The rows of all ranks' tables whose keys, in columns of some names, this rank owns."""
        with self.channel.call("bring rows to owners") as call:
            call.agree()
            words = call.together(lambda: self.words(table, names))
            return exchanged_table(self.channel, call, table, words)[0]

    def rows_of_all(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers among all rows of rows of this rank's share."""
        groups = self._shares.of_rank[self.channel.rank]
        if not groups:
            return rows
        begins = np.cumsum([0, *(group.rows for group in groups)])
        shift = np.array([group.begin for group in groups]) - begins[:-1]
        made: npt.NDArray[np.int64] = rows + shift[np.searchsorted(begins, rows, "right") - 1]
        return made

    def given(self, made: Callable[[], Any]) -> Any:
        """Write a table that is made, or give it."""
        table = self.done(made)
        return table if self._out is None else self.streamed(lambda space: iter([table] if len(table) else []), table)

    def streamed(self, tables: Callable[[Workspace], Iterator[Any]], of: Any = None) -> Any:
        """As `given`, for tables that are made within the memory, with the columns of ``of``, or all."""
        schema = (self.share if of is None else of).schema
        with self.space() as space:
            if self._out is None:
                return self.done(lambda: joined_tables([schema.empty_table(), *tables(space)]))
            return write_parts(self.channel, self._out, schema, _lazily(lambda: row_groups(tables(space), space)))


def _lazily(tables: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    yield from tables()


class _Shares:
    """A data set, and the row groups of each rank.

    Attributes
    ----------
    source
        All rows.
    of_rank
        The row groups of each rank.
    """

    def __init__(self, paths: Paths, world: int) -> None:
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not given or not all(isinstance(path, str | os.PathLike) for path in given):
            raise ParameterError("expected a path of a Parquet file, or a list of such paths")
        need_pyarrow()
        self.source = ParquetSource(given)
        names = self.source.schema.names
        named(names, names, "the data set")  # none repeats
        self.of_rank = dealt(self.source.groups, world)

    def chosen(self, on: Any) -> list[str]:
        """The names of the columns that a caller chose; None: all."""
        names: list[str] = self.source.schema.names
        return names if on is None else list(dict.fromkeys(names[place] for place in named(names, on, "on")))

    def check(self, channel: Channel, text: str) -> None:
        """Raise `CollectiveError` on all ranks unless they see the same files. ``text`` has to be equal, too."""
        seen = hashlib.sha256(repr((self.source.schema.to_string(), self.source.groups)).encode()).hexdigest()
        with channel.call(f"{text}; row groups {seen[:16]}") as call:
            call.agree()


def _read(source: ParquetSource, columns: list[str]) -> Any:
    """All rows."""
    import pyarrow as arrow

    schema = arrow.schema([source.schema.field(name) for name in columns])
    return joined_tables([schema.empty_table(), *source.tables(columns, _AT_ONCE)])


# ---- join
def join(
    left: Paths,
    right: Paths,
    on: Names | None = None,
    how: How = "inner",
    out: Path | None = None,
    *,
    left_on: Names | None = None,
    right_on: Names | None = None,
    suffixes: tuple[str, str] | None = None,
    nulls: Literal["unequal", "equal"] = "unequal",
    small_bytes: int = SMALL_BYTES,
    group: Any = None,
) -> Any:
    """Join the rows of two sets of Parquet files by columns. Collective. See `warphash.stream.join`.

    Parameters
    ----------
    left, right
        As ``paths`` of `unique`.
    on, how
        As of `warphash.merge`.
    out
        As of `unique`.
    left_on, right_on, suffixes, nulls
        As of `warphash.merge`.
    small_bytes
        If the rows of the right side have so many bytes on all ranks together, each rank has all of them, and the left
        rows stay where they are, unless ``how`` is ``"right"`` or ``"outer"``; and so for the left side, if ``how`` is
        ``"inner"`` or ``"right"``.
    group
        As of `unique`.

    Returns
    -------
    rows or table
        As of `unique`, with the columns of `warphash.merge`, in no defined order.

    Raises
    ------
    CollectiveError, PeerLost
        As `unique`.

    Notes
    -----
    A rank's shares of both sides, what it receives of them, and its rows of the answer have to fit into memory. The
    rows of a heavy key stay on a side, and those of the other side are copied to all ranks, under the conditions on
    ``how`` that a small side has.
    """
    channel = channel_of(group)
    rules: dict[str, Any] = {"on": on, "left_on": left_on, "right_on": right_on}
    rules |= {"how": how, "suffixes": suffixes, "nulls": nulls}

    def opened() -> tuple[list[_Shares], Any]:
        if out is not None:
            check_folder(out)
        shares = [_Shares(paths, channel.world) for paths in (left, right)]
        empty = [side.source.schema.empty_table() for side in shares]
        return shares, merge(*empty, **rules).schema  # raises for other keys and rules

    shares, schema = channel.done("open two data sets", opened)
    for side in shares:
        side.check(channel, f"join, {rules}, out={out!r}, small_bytes={small_bytes}")
    tables = channel.done("read shares", lambda: [_whole(side, channel.rank) for side in shares])
    keys = _keys(shares, rules)
    work = _Join(channel, shares, keys, how)
    held = work.together(tables, small_bytes)

    def joined() -> Any:
        made = merge(*held, **rules)
        return made.cast(schema)

    answer = channel.done("join rows", joined)
    if out is None:
        return answer
    with Workspace("1GB", progress=False) as space:
        return write_parts(channel, out, schema, row_groups(iter([answer] if len(answer) else []), space))


def _whole(side: _Shares, rank: int) -> Any:
    return _read(side.source.some(side.of_rank[rank]), side.source.schema.names)


def _keys(shares: Sequence[_Shares], rules: dict[str, Any]) -> list[list[str]]:
    """The key columns of both sides."""
    both = [side.source.schema.names for side in shares]
    if rules["left_on"] is not None:
        chosen = [rules["left_on"], rules["right_on"]]
    else:
        chosen = [[name for name in both[0] if name in both[1]] if rules["on"] is None else rules["on"]] * 2
    return [[names[at] for at in named(names, on, "on")] for names, on in zip(both, chosen, strict=True)]


_KEEPS_LEFT, _KEEPS_RIGHT = ("inner", "left", "semi", "anti"), ("inner", "right")
"""Joins in which a row of the other side without a partner is in no answer. So each rank can have a copy of it."""


class _Ways(NamedTuple):
    """The positions of rows that go to the owners of their keys, that stay, and that are copied to all ranks."""

    sent: npt.NDArray[np.int64]
    stays: npt.NDArray[np.int64]
    copied: npt.NDArray[np.int64]


class _Join:
    """Brings the rows of both sides together whose keys are equal."""

    def __init__(self, channel: Channel, shares: Sequence[_Shares], keys: list[list[str]], how: How) -> None:
        self._channel, self._keys, self._how = channel, keys, how
        types = [
            [side.source.schema.field(name).type for name in names] for side, names in zip(shares, keys, strict=True)
        ]
        self._forms = [forms_of(types[0], types[1]), forms_of(types[1], types[0])]

    def together(self, tables: list[Any], small_bytes: int) -> list[Any]:
        """The rows of both sides that this rank joins."""
        with self._channel.call("bring rows together") as call:
            call.agree()
            sizes = [sum(of_ranks) for of_ranks in zip(*call.told([table.nbytes for table in tables]), strict=True)]
            copied = self._side_to_copy(sizes, small_bytes)
            if copied is not None:
                held = [*tables]
                held[copied] = gathered_table(self._channel, call, tables[copied])
                return held
            words = call.together(
                lambda: [
                    words_of([table[name] for name in names], forms)
                    for table, names, forms in zip(tables, self._keys, self._forms, strict=True)
                ]
            )
            heavy = self._heavy(call, words)
            return [
                self._divided(call, table, of_rows, *each)
                for table, of_rows, each in zip(tables, words, (heavy, heavy[::-1]), strict=True)
            ]

    def _side_to_copy(self, sizes: Sequence[int], small_bytes: int) -> int | None:
        if self._how in _KEEPS_LEFT and sizes[1] <= small_bytes and not (self._how == "inner" and sizes[0] < sizes[1]):
            return 1
        return 0 if self._how in _KEEPS_RIGHT and sizes[0] <= small_bytes else None

    def _divided(self, call: Call, table: Any, words: Words, own: Words, of_other: Words) -> Any:
        """The rows of a side that this rank joins: those that it owns, those that stay, and copies."""

        def ways() -> _Ways:
            stays, copied = np.isin(words, own), np.isin(words, of_other)
            return _Ways(*(np.flatnonzero(flags) for flags in (~(stays | copied), stays, copied)))

        way = call.together(ways)
        sent = call.together(lambda: (table.take(way.sent), words[way.sent]))
        parts = [exchanged_table(self._channel, call, *sent)[0], call.together(lambda: table.take(way.stays))]
        if len(of_other):
            parts.append(gathered_table(self._channel, call, call.together(lambda: table.take(way.copied))))
        return call.together(lambda: joined_tables(parts))

    def _heavy(self, call: Call, words: Sequence[Words]) -> list[Words]:
        """The words whose rows stay, of each side: the same on all ranks."""
        lengths = call.told([len(side) for side in words])
        found = []
        for place, how in enumerate((_KEEPS_LEFT, _KEEPS_RIGHT)):
            counts = [each[place] for each in lengths]
            total, mine = sum(counts), words[place]
            shares = [n if total <= SAMPLED else -(-n * SAMPLED // total) for n in counts]
            n = shares[self._channel.rank]
            rows = slice(None) if n == len(mine) else np.random.default_rng(n).integers(0, len(mine), n)
            (sample,) = gathered(self._channel, call, [mine[rows]], shares)
            values, times = np.unique(sample, return_counts=True)
            heavy = values[times * (HEAVY_SHARE * self._channel.world) > len(sample)]
            found.append(heavy if self._how in how else heavy[:0])
        more = 0 if sum(each[0] for each in lengths) >= sum(each[1] for each in lengths) else 1
        found[1 - more] = np.setdiff1d(found[1 - more], found[more])
        return found
