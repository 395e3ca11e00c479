"""`exchange`: the rows of all ranks go to the owners of their keys, and stay there. Relational verbs are made of this.

A rank's rows are brought into the order of owners (`storage.owners`), and cut into a run for each rank. All ranks tell
how long these runs are. So each knows what it receives, takes memory for all of that, and hears whether all ranks have
theirs. Then the runs go. Memory: a copy of what a rank sends, and what it receives. With a heavy key, that may be much
more on one rank than on others: `Exchanged.counts` tells.

Answers of an owner, one for each row that it received, go the same way back.

Equal keys have one owner. Floating-point numbers are equal as in `unique`: 0.0 equals -0.0, and all NaN are one key.
The owner is a function of the bytes of a key. So int32 and int64 keys of one value may have different owners.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..runtime.devices import engine_for
from ..runtime.engine import Engine
from ..storage.owners.owner_order import OwnerOrder
from .channel import Call, Channel, channel_of
from .ragged import Ragged, ragged_of, received_offsets
from .route import Column, Span, exchanged, spans_of
from .wire import Array, check_rows, column_of, hashed, of_column, seen, with_common_types

__all__ = ["Exchanged", "Trip", "exchange", "gathered", "travelled"]


class Exchanged:
    """The rows that this rank owns. Made by `exchange`.

    Attributes
    ----------
    keys
        Their keys: an array, or a tuple of arrays if such a tuple was given.
    columns
        Their other columns. All arrays are in the library of those that this rank gave.
    counts
        How many of them came from each rank. The rows of rank 0 come first, then those of rank 1, and so on; rows of
        one rank are in its order.
    """

    def __init__(self, trip: Trip, keys: Any, columns: list[Any]) -> None:
        self._trip = trip
        self.keys, self.columns, self.counts = keys, columns, trip.counts_received

    def __len__(self) -> int:
        return self._trip.n_received

    @property
    def ranks(self) -> Any:
        """The rank that each row came from, int64, an array of NumPy."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def back(self, answers: Any) -> Any:
        """Bring answers to the ranks that the rows came from. Collective.

        Parameters
        ----------
        answers
            An array with a row for each of the rows here. Of one type on all ranks.

        Returns
        -------
        array
            The owners' answers for the rows that this rank gave to `exchange`, in their order.

        Raises
        ------
        CollectiveError
            If a rank gives another number of rows, or another type. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        trip = self._trip
        with trip.channel.call("Exchanged.back") as call:
            given = seen(answers)
            if given.ndim == 0 or len(given) != len(self):
                raise ShapeError(
                    f"expected an answer for each of the {len(self):,} rows here, got {tuple(given.shape)}"
                )
            call.agree()
            (given,), _ = with_common_types(call, "answers", [given])
            return trip.back(call, [given])[0]


def exchange(keys: Any, *columns: Any, group: Any = None) -> Exchanged:
    """Send rows to the owners of their keys. Collective.

    Parameters
    ----------
    keys
        A key for each row: an array of NumPy, or a tensor of PyTorch on any device. The rows of an array of several
        dimensions are keys, and so are those of a tuple of arrays. At least one byte wide; strings of NumPy become as
        wide as the widest of all ranks.
    *columns
        Arrays with as many rows, which go with the keys.
    group
        A process group of ``torch.distributed``, or a device mesh with one dimension. None: all ranks.

    Returns
    -------
    Exchanged
        The rows of all ranks whose keys this rank owns.

    Raises
    ------
    CollectiveError
        If a rank's arrays are wrong, or of other types than those of other ranks, or there is no room on a rank. All
        ranks raise it, and no row was sent.
    PeerLost
        If a rank does not answer.

    Notes
    -----
    Each rank may give any number of rows, also none. The owner of a key is that of sharded tables of the same key type.

    Examples
    --------
    The number of rows of each key, on the rank that owns the key::

        mine = wd.exchange(users, prices)
        totals = warphash.group_by(mine.keys).sum(mine.columns[0])
    """
    channel = channel_of(group)
    with channel.call(f"exchange of {len(columns)} columns") as call:
        is_tuple = isinstance(keys, tuple)
        given = [seen(key) for key in (keys if is_tuple else [keys])]
        others = [seen(column) for column in columns]
        check_rows([*given, *others], "keys and columns")
        call.agree()
        arrays, _ = with_common_types(call, "keys and columns", [*given, *others])
        trip = Trip(channel, call, arrays[: len(given)])
        arrived = trip.go(call, arrays)
        held = tuple(arrived[: len(given)]) if is_tuple else arrived[0]
        return Exchanged(trip, held, arrived[len(given) :])


class Trip:
    """Rows on their way to the owners of their keys: all ranks know how many go from each to each.

    Parameters
    ----------
    channel, call
        Of the ranks. Behind `Call.agree`.
    keys
        Arrays of types that all ranks have; a row of them is a key.

    Attributes
    ----------
    counts_sent, counts_received
        How many rows go to each rank, and come from each.
    n_received
        How many come.

    Raises
    ------
    CollectiveError, PeerLost
        As `Call.agree`.
    """

    def __init__(self, channel: Channel, call: Call, keys: Sequence[Array]) -> None:
        self.channel, self._n = channel, len(keys[0])
        header = call.together(lambda: self._order_by_owner(keys))
        counts = call.agree(header)
        self.counts_sent = counts[channel.rank]
        self._sent = spans_of(self.counts_sent)
        self.counts_received = [row[channel.rank] for row in counts]
        self._received = spans_of(self.counts_received)
        self.n_received = self._received[-1][1]

    def go(self, call: Call, arrays: Sequence[Array]) -> list[Array]:
        """The rows of arrays that this rank receives, for those that it sends. Collective."""

        columns = call.together(lambda: self._in_order(arrays))
        return travelled(self.channel, call, columns, self._sent, self._received, arrays)

    def go_ragged(self, call: Call, engine: Engine, rows: Array) -> Ragged:
        """The rows of any length that this rank receives, for those that it sends. Collective.

        Parameters
        ----------
        rows
            Say where strings are, as the rows of a table do: uint8[n, 16].
        """
        channel = self.channel

        def packed() -> Ragged:
            (ordered,) = self._in_order([rows])
            return ragged_of(channel, engine, ordered.at, self._n)

        sent = call.together(packed)
        (lengths,) = _travelled(channel, call, [sent.lengths], self._sent, self._received, self.n_received)
        offsets = call.together(lambda: received_offsets(lengths, self.n_received))
        received = [(int(offsets[begin]), int(offsets[end])) for begin, end in self._received]
        (data,) = _travelled(channel, call, [sent.data], sent.spans(self._sent), received, int(offsets[-1]))
        return Ragged(lengths, data, offsets)

    def positions(self) -> Array:
        """The positions of this rank's rows in the order of owners, int64 of NumPy. Not collective."""
        rows = np.arange(self._n)
        return of_column(self._in_order([rows])[0], self._n, rows)

    def back(self, call: Call, answers: Sequence[Array]) -> list[Array]:
        """The owners' answers for the rows that this rank sent, in their order. Collective."""
        columns = call.together(lambda: [column_of(answer, self.channel.place) for answer in answers])
        rooms = call.together(lambda: [self._room(column.width, self._n) for column in columns])
        held = _travelled(self.channel, call, columns, self._received, self._sent, self._n)
        pairs = [(a.at, b.at, a.width) for a, b in zip(held, rooms, strict=True)]
        self._order.restore(pairs, self.channel.stream())
        return [of_column(room, self._n, answer) for room, answer in zip(rooms, answers, strict=True)]

    def _in_order(self, arrays: Sequence[Array]) -> list[Column]:
        """The rows of arrays in the order of owners, in memory for messages."""
        given = [column_of(array, self.channel.place) for array in arrays]
        made = [self._room(column.width, self._n) for column in given]
        pairs = [(a.at, b.at, a.width) for a, b in zip(given, made, strict=True)]
        self._order.move(pairs, self.channel.stream())
        return made

    def _order_by_owner(self, keys: Sequence[Array]) -> Any:
        """Find the order, and return a header with the counts."""
        channel = self.channel
        header, rows = channel.header(), hashed(keys, channel.place)
        engine, numbers_at = engine_for(channel.device), channel.numbers_at(header)
        self._order = OwnerOrder(engine, rows.at, rows.width, self._n, channel.world, numbers_at, channel.stream())
        return header

    def _room(self, width: int, n: int) -> Column:
        return Column(self.channel.memory(n * width), width)


def travelled(
    channel: Channel,
    call: Call,
    columns: Sequence[Column],
    sent: Sequence[Span],
    received: Sequence[Span],
    kinds: Sequence[Array],
) -> list[Array]:
    """What this rank receives if all ranks send the rows of their spans. Collective.

    Parameters
    ----------
    columns
        Rows in memory for messages.
    sent, received
        For each rank, the span of the rows for it, and of the rows from it.
    kinds
        Arrays whose library, device and types those of the answer have.
    """
    n = received[-1][1]
    targets = _travelled(channel, call, columns, sent, received, n)
    return [of_column(target, n, kind) for target, kind in zip(targets, kinds, strict=True)]


def _travelled(
    channel: Channel, call: Call, columns: Sequence[Column], sent: Sequence[Span], received: Sequence[Span], n: int
) -> list[Column]:
    targets = call.together(lambda: [Column(channel.memory(n * column.width), column.width) for column in columns])
    exchanged(channel, call, sent, columns, received, targets)()
    return targets


def gathered(channel: Channel, call: Call, arrays: Sequence[Array], lengths: Sequence[int]) -> list[Array]:
    """The rows of all ranks on each rank, those of rank 0 first. Collective.

    Parameters
    ----------
    arrays
        This rank's rows, of types that all ranks have.
    lengths
        The number of rows of each rank.
    """
    columns = call.together(lambda: [column_of(array, channel.place) for array in arrays])
    sent = [(0, lengths[channel.rank])] * channel.world
    return travelled(channel, call, columns, sent, spans_of(lengths), arrays)
