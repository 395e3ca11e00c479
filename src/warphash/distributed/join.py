"""`join`: the pairs of rows of two sides whose keys are equal, over the rows of all ranks.

A small side is gathered on all ranks, and the other one stays where it is. If both are large, both are exchanged, but
for heavy keys (`exchange`). A key is heavy if more than one in four times as many rows of a sample as there are ranks
have it. Its rows stay where they are on that side, and those of the other side are copied to all ranks. So a rank joins

    rows that came to the owner of their key | rows with a key that is heavy on their side | copies of all ranks

with those of the other side. Rows are known by their numbers among the rows of all ranks. A row of the first two kinds
is on one rank, which tells whether the row has a partner. A copied row has one: its key is in the sample of the other
side. Of a small side that was gathered, each rank tells the others which of their rows have a partner with it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from ..relational.composites import check_alike, row_elements_of
from ..relational.distinct import unique as unique_here
from ..relational.join import check_rules
from ..relational.join import join as join_here
from ..relational.matches import How, JoinIndices
from ..relational.membership import isin as isin_here
from .channel import Call, Channel, channel_of
from .exchange import Trip, gathered, travelled
from .key_columns import KeyColumns, key_columns
from .route import Column, spans_of
from .wire import (
    Array,
    column_of,
    in_type_of,
    is_missing,
    joined,
    new_flags,
    numbers,
    places,
    row_bytes,
    some,
    with_common_types,
)

__all__ = ["HEAVY_SHARE", "SAMPLED", "SMALL_BYTES", "join"]

SMALL_BYTES = 1 << 24
"""Of a side of a join that is gathered, by default."""

SAMPLED = 1 << 13
"""Rows of a sample, of all ranks together."""

HEAVY_SHARE = 4
"""A key is heavy that has more than one in so many times the ranks of the rows."""


class _Side(NamedTuple):
    """Rows of one side of a join.

    Attributes
    ----------
    keys
        Key columns, of the rows that may have a partner.
    rows
        The numbers of these among the rows of all ranks.
    alone
        Those of the rows that have no partner, whatever the other side has.
    """

    keys: list[Array]
    rows: Array
    alone: Array

    def some(self, rows: Array) -> _Side:
        """Some of the rows that may have a partner."""
        return _Side([some(key, rows) for key in self.keys], self.rows[rows], self.alone[:0])


class _Matched(NamedTuple):
    """Rows of one side that this rank answers for, which of them have a partner, and the rows of `_Side.alone`."""

    rows: Array
    found: Array
    alone: Array


class _Pairs(NamedTuple):
    """What a rank has found: the rows of pairs, and both sides."""

    left_rows: Array
    right_rows: Array
    left: _Matched
    right: _Matched


def join(
    left: Any,
    right: Any,
    how: How = "inner",
    *,
    nulls: Literal["unequal", "equal"] = "unequal",
    small_bytes: int = SMALL_BYTES,
    group: Any = None,
) -> JoinIndices:
    """Find the pairs of rows of two sides whose keys are equal, over all ranks. Collective. See `warphash.join`.

    Parameters
    ----------
    left, right
        This rank's keys of each side, as ``x`` of `unique`: a key for each row. The types of the sides may differ.
    how, nulls
        As of `warphash.join`.
    small_bytes
        If the keys of a side, with 8 bytes for each row, have so many bytes on all ranks together, they are gathered
        on each rank. The rows of the other side stay where they are then.
    group
        As of `unique`.

    Returns
    -------
    left, right
        A `JoinIndices` of global row numbers, int64, in the library of ``left``: row i of rank r has the number i, plus
        the number of rows that the ranks before r have of that side. -1 for a row that has no partner. Each pair is on
        one rank, in no defined order. ``right`` is None for ``"semi"`` and ``"anti"``.

    Raises
    ------
    CollectiveError, PeerLost
        As `unique`.

    Examples
    --------
    Pairs of this rank, as ranks and rows there::

        pairs = wd.join(users, orders)
        rank = torch.searchsorted(ends, pairs.left, right=True)        # ends: running sums of all ranks' len(users)
    """
    channel = channel_of(group)
    with channel.call(f"join, how={how!r}, nulls={nulls!r}, small_bytes={small_bytes}") as call:
        check_rules(how, "any", nulls)
        given = [key_columns(side) for side in (left, right)]
        check_alike(*(row_elements_of(side.given) for side in given))
        call.agree()
        lengths = [len(side.columns[0]) for side in given]
        columns, every = with_common_types(call, "keys", [*given[0].columns, *given[1].columns], lengths)
        count, keeps_nan = len(given[0].columns), nulls == "equal"

        def prepared() -> list[_Side]:
            mine = columns[:count]
            others, fits = in_type_of(columns[count:], mine)
            before = [sum(each[place] for each in every[: channel.rank]) for place in (0, 1)]
            return [_side(mine, None, before[0], keeps_nan), _side(others, fits, before[1], keeps_nan)]

        sides = call.together(prepared)
        work = _Join(channel, call, how, given[0])
        return work.answer(work.pairs(sides, small_bytes))


def _side(keys: list[Array], fits: Array, begin: int, keeps_nan: bool) -> _Side:
    """A side whose rows are numbered from ``begin`` on."""
    rows = numbers(begin, begin + len(keys[0]), keys[0])
    kept = fits
    for missing in () if keeps_nan else map(is_missing, keys):
        if missing is not None:
            kept = ~missing if kept is None else kept & ~missing
    if kept is None:
        return _Side(keys, rows, rows[:0])
    return _Side([some(key, kept) for key in keys], rows[kept], rows[~kept])


class _Join:
    """The work of one call of `join`, behind its header."""

    def __init__(self, channel: Channel, call: Call, how: How, keys: KeyColumns) -> None:
        self._channel, self._call, self._how, self._keys = channel, call, how, keys

    def pairs(self, sides: list[_Side], small_bytes: int) -> _Pairs:
        """Find the pairs of rows that may have partners."""
        every = self._call.told([len(side.rows) for side in sides])
        lengths = [[each[place] for each in every] for place in (0, 1)]
        sizes = [
            sum(counts) * sum(map(row_bytes, (*side.keys, side.rows)))
            for counts, side in zip(lengths, sides, strict=True)
        ]
        small = 0 if sizes[0] < sizes[1] else 1
        if sizes[small] <= small_bytes:
            return self._with_gathered(sides, small, lengths[small])
        return self._exchanged(sides, lengths)

    def answer(self, pairs: _Pairs) -> JoinIndices:
        """What the caller gets of pairs."""

        def made() -> JoinIndices:
            how, left, right = self._how, pairs.left, pairs.right
            if how == "semi":
                return JoinIndices(left.rows[left.found], None)
            lefts, rights = [pairs.left_rows], [pairs.right_rows]
            if how in ("left", "outer", "anti"):
                unpaired = joined([left.rows[~left.found], left.alone])
                if how == "anti":
                    return JoinIndices(unpaired, None)
                lefts.append(unpaired)
                rights.append(unpaired * 0 - 1)
            if how in ("right", "outer"):
                unpaired = joined([right.rows[~right.found], right.alone])
                lefts.append(unpaired * 0 - 1)
                rights.append(unpaired)
            return JoinIndices(joined(lefts), joined(rights))

        return self._call.together(made)

    # ---- one side on all ranks
    def _with_gathered(self, sides: list[_Side], small: int, lengths: list[int]) -> _Pairs:
        mine = sides[small]
        *keys, rows = gathered(self._channel, self._call, [*mine.keys, mine.rows], lengths)
        held = [*sides]
        held[small] = _Side(keys, rows, mine.alone)
        found = self._call.together(lambda: self._found(held))
        matched = [_Matched(side.rows, flags, side.alone) for side, flags in zip(held, found.flags, strict=True)]
        is_asked = self._how in (("left", "outer", "semi", "anti") if small == 0 else ("right", "outer"))
        flags = self._met_anywhere(found.flags[small], lengths) if is_asked else new_flags(len(mine.rows), True, rows)
        matched[small] = _Matched(mine.rows, flags, mine.alone)
        return _Pairs(*found.rows, *matched)

    def _met_anywhere(self, flags: Array, lengths: list[int]) -> Array:
        """Which of this rank's rows have a partner on some rank, of flags for the rows of all ranks."""
        channel, n = self._channel, lengths[self._channel.rank]
        columns: list[Column] = self._call.together(lambda: [column_of(flags, channel.place)])
        received = spans_of([n] * channel.world)
        (told,) = travelled(channel, self._call, columns, spans_of(lengths), received, [flags])
        return told.reshape(channel.world, n).any(0)

    # ---- both sides exchanged
    def _exchanged(self, sides: list[_Side], lengths: list[list[int]]) -> _Pairs:
        heavy = self._heavy(sides, lengths)
        ways = self._call.together(
            lambda: [self._ways(side, *rules) for side, rules in zip(sides, (heavy, heavy[::-1]), strict=True)]
        )
        copies = self._call.told([len(way.copied) for way in ways])
        parts = [
            self._divided(side, way, [each[place] for each in copies])
            for place, (side, way) in enumerate(zip(sides, ways, strict=True))
        ]

        def matched() -> _Pairs:
            found = self._found([part.held for part in parts])
            both = []
            for (side, n, copied), flags in zip(parts, found.flags, strict=True):
                # A key whose rows are copied is heavy on the other side, so all of them have partners.
                rows, met = joined([side.rows[:n], copied]), joined([flags[:n], new_flags(len(copied), True, flags)])
                both.append(_Matched(rows, met, side.alone))
            return _Pairs(*found.rows, *both)

        return self._call.together(matched)

    def _divided(self, side: _Side, way: _Ways, counts: list[int]) -> _Part:
        """The rows of a side that this rank joins; ``counts`` tells how many each rank copies."""
        channel, call = self._channel, self._call
        sent, stays, copied = call.together(lambda: [side.some(rows) for rows in way])
        parts = [Trip(channel, call, sent.keys).go(call, [*sent.keys, sent.rows]), [*stays.keys, stays.rows]]
        n = len(parts[0][-1]) + len(stays.rows)
        if sum(counts):
            parts.append(gathered(channel, call, [*copied.keys, copied.rows], counts))
        *keys, rows = call.together(lambda: [joined(column) for column in zip(*parts, strict=True)])
        return _Part(_Side(keys, rows, side.alone), n, copied.rows)

    def _heavy(self, sides: list[_Side], lengths: list[list[int]]) -> list[list[Array]]:
        """The heavy keys of each side, the same on all ranks. No key is heavy on both."""
        samples = [self._sampled(side, counts) for side, counts in zip(sides, lengths, strict=True)]

        def heavy() -> list[list[Array]]:
            made = []
            for sample in samples:
                values, counts = unique_here(self._keys.whole(sample), return_counts=True)
                columns = list(values) if self._keys.is_tuple else [values]
                kept = places(counts * (HEAVY_SHARE * self._channel.world) > len(sample[0]))
                made.append([some(column, kept) for column in columns])
            fewer = 0 if sum(lengths[0]) < sum(lengths[1]) else 1
            kept = ~self._among(made[fewer], made[1 - fewer])
            made[fewer] = [some(column, kept) for column in made[fewer]]
            return made

        return self._call.together(heavy)

    def _sampled(self, side: _Side, lengths: list[int]) -> list[Array]:
        """The keys of some rows of all ranks, on each rank: of each rank in proportion to its rows."""
        n, total = len(side.rows), sum(lengths)
        counts = [length if total <= SAMPLED else -(-length * SAMPLED // total) for length in lengths]

        def chosen() -> list[Array]:
            if counts[self._channel.rank] == n:
                return side.keys
            rows = np.random.default_rng(n).integers(0, n, counts[self._channel.rank])
            positions = torch.from_numpy(rows).to(side.rows.device) if isinstance(side.rows, torch.Tensor) else rows
            return [some(key, positions) for key in side.keys]

        return gathered(self._channel, self._call, self._call.together(chosen), counts)

    def _ways(self, side: _Side, own: list[Array], of_other: list[Array]) -> _Ways:
        stays, copied = self._among(side.keys, own), self._among(side.keys, of_other)
        return _Ways(places(~(stays | copied)), places(stays), places(copied))

    # ---- local work
    def _found(self, sides: list[_Side]) -> _Found:
        """Join the rows that this rank has."""
        left, right = sides
        keys = [self._keys.whole(side.keys) for side in sides]
        pairs = join_here(*keys, nulls="equal", order="any")
        flags = []
        for side, rows in ((left, pairs.left), (right, pairs.right)):
            made = new_flags(len(side.rows), False, side.rows)
            made[rows] = True
            flags.append(made)
        return _Found((left.rows[pairs.left], right.rows[pairs.right]), flags)

    def _among(self, keys: list[Array], others: list[Array]) -> Array:
        if not len(others[0]):
            return new_flags(len(keys[0]), False, keys[0])
        return isin_here(self._keys.whole(keys), self._keys.whole(others), equal_nan=True)


class _Ways(NamedTuple):
    """The positions of rows that go to the owners of their keys, that stay, and that are copied to all ranks."""

    sent: Array
    stays: Array
    copied: Array


class _Part(NamedTuple):
    """What a rank joins of a side.

    Attributes
    ----------
    held
        The rows.
    n
        The first so many are those that no other rank has.
    copied
        The rows of this rank's own that all ranks have.
    """

    held: _Side
    n: int
    copied: Array


class _Found(NamedTuple):
    """The rows of both sides of pairs, and which rows of each side have a partner."""

    rows: tuple[Array, Array]
    flags: list[Array]
