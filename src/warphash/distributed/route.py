"""The way of a batch to the owners of its keys, and of their answers back.

Each rank owns the keys of an interval of shards (``kernels/owners/owner.cuh``). A batch goes this way:

1. All memory of the call is allocated, and rows are brought into the order of their owners (`storage.owners`). The
   headers tell all ranks how many rows go from each rank to each other one (`Call.agree`).
2. Rounds. From the counts of all ranks, each rank computes the same number of rounds. A round takes the same fraction
   of the rows that each rank has for each other one::

       rows of rank r for rank s   [ round 0 | round 1 | ... | last round     ]
                                   [ 16 k    | 16 k    | ... | 16 k    | tail ]      k of that round; tail of 0 to 15

   So no rank sends or receives more than a piece in a round, whatever the skew. The rows of the next round travel
   while an owner works on those of this one. Then the answers travel back.
3. All ranks hear whether a round failed (`Call.conclude`). The answers are brought into the caller's order.

Why 16 rows: NCCL takes messages at multiples of 16 bytes faster (docs/performance/distributed.md). So the runs of ranks
begin at multiples of 16 rows (`OwnerOrder`), rounds are cut there, and the piece of an owner has all whole parts first,
and then the tails. Of each, the rows of rank 0 come first, then those of rank 1, and so on.

Memory: the batch once more, its answers, 4 bytes a row for its order, and two pieces of rows and answers, which the
route keeps.

A rank whose part fails goes on to send and receive, and does no more to its table. So no other rank waits for it. The
rounds before the failed one are done on all ranks. The failed one and those behind it are done where no rank failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

import torch

from ..runtime.engine import Engine
from ..storage.owners.owner_order import OwnerOrder, run_starts
from .channel import Call, Channel, Message

__all__ = [
    "Begin",
    "Column",
    "Cut",
    "Local",
    "Piece",
    "Route",
    "Rows",
    "Span",
    "Trip",
    "copied",
    "exchanged",
    "spans_of",
]

_RUN_ROWS = 16
"""Rows of one byte or more whose end is at a multiple of 16 bytes, if their begin is."""

Local = Callable[[int, list[int], list[int]], None]
"""What an owner does: number of rows, addresses of their columns, addresses for the columns of their answers."""


class Rows(NamedTuple):
    """A column of a batch: its address in the memory of the engine, and the bytes of a row."""

    at: int
    width: int


class Column:
    """A column in memory for messages.

    Attributes
    ----------
    at, width
        Its address, and the bytes of a row.
    """

    def __init__(self, data: torch.Tensor, width: int) -> None:
        self._data, self.width, self.at = data, width, data.data_ptr()

    def rows(self, begin: int, end: int) -> torch.Tensor:
        """Some rows: their bytes."""
        return self._data[begin * self.width : end * self.width]

    def matrix(self, n: int) -> torch.Tensor:
        """The first rows: uint8[n, width]."""
        return self.rows(0, n).view(n, self.width)


class Piece(Protocol):
    """Memory for the rows that an owner receives in a round, and for their answers."""

    @property
    def answers(self) -> list[Column]:
        """Memory for the answers."""
        ...

    def receive(self, channel: Channel, call: Call, cut: Cut, moved: Sequence[Column]) -> Callable[[], None]:
        """Begin to exchange the rows of a round, of those in the order of owners; what waits."""
        ...

    def addresses(self, n: int) -> list[int]:
        """The addresses of the columns of the ``n`` rows that were received."""
        ...


class _Piece(NamedTuple):
    """As `Piece`, of rows of a fixed width."""

    rows: list[Column]
    answers: list[Column]

    def receive(self, channel: Channel, call: Call, cut: Cut, moved: Sequence[Column]) -> Callable[[], None]:
        return exchanged(channel, call, cut.sent, moved, cut.received, self.rows)

    def addresses(self, n: int) -> list[int]:
        return [column.at for column in self.rows]


Span = tuple[int, int]
"""Where rows begin and end."""


class Cut(NamedTuple):
    """The rows of a round: a span for each rank, and in the last round a second one, for tails.

    Attributes
    ----------
    sent
        Spans of the rows for the ranks, among all rows in the order of owners.
    received
        Spans of the rows from the ranks in the piece.
    texts
        For each column of any length, such spans of its bytes (`ragged_trips`).
    """

    sent: list[Span]
    received: list[Span]
    texts: tuple[tuple[list[Span], list[Span]], ...] = ()

    @property
    def n(self) -> int:
        """Rows that are received."""
        return self.received[-1][1]


class Route:
    """The way of batches whose columns have the same widths.

    Parameters
    ----------
    channel, engine
        Of the ranks; and of the local table, on the channel's device.
    piece_bytes
        Bytes of rows, or of answers, that a rank receives in a round, about.
    begin
        Begins the trips of batches whose rows have any length; None for rows of a fixed width.
    """

    def __init__(self, channel: Channel, engine: Engine, piece_bytes: int, begin: Begin | None = None) -> None:
        self._channel, self._engine, self._piece_bytes = channel, engine, piece_bytes
        self._begin = begin
        self._kept: dict[tuple[int, ...], list[_Piece]] = {}

    def go(
        self,
        call: Call,
        n: int,
        rows: Sequence[Rows],
        answers: Sequence[Rows],
        local: Local,
        prepare: Callable[[int], None] | None = None,
    ) -> None:
        """Take a batch to its owners, and bring their answers back.

        Parameters
        ----------
        n, rows
            The batch. The first column has the keys.
        answers
            Where the answers go.
        local
            What an owner does with the rows of a round.
        prepare
            What an owner does before the first round, with the number of rows that it will receive. If that raises on
            one rank, no rank does anything to its table.

        Raises
        ------
        CollectiveError, PeerLost, MemoryError, ParameterError
            As `Call.agree` and `Call.conclude`. Of what is raised before the header, the other ranks hear.
        """
        if self._channel.world == 1:
            call.agree()
            local(n, [column.at for column in rows], [column.at for column in answers])
            return
        trip = self.trip(call, n, rows, [column.width for column in answers])
        trip.work(local, prepare)
        trip.restore([Rows(made.at, made.width) for made in trip.back], [column.at for column in answers])

    def trip(self, call: Call, n: int, rows: Sequence[Rows], widths: Sequence[int]) -> Trip:
        """Begin to take a batch to its owners: to the end of the header. Answers have columns of some widths."""
        if self._begin is not None:
            return self._begin(call, n, rows, widths)
        channel, stream = self._channel, self._channel.stream()
        header = channel.header()
        keys, numbers_at = rows[0], channel.numbers_at(header)
        order = OwnerOrder(self._engine, keys.at, keys.width, n, channel.world, numbers_at, stream, run_rows=_RUN_ROWS)
        room = n + _RUN_ROWS * channel.world
        moved = [Column(channel.memory(room * width), width) for _, width in rows]
        back = [Column(channel.memory(room * width), width) for width in widths]
        pieces = self._pieces([column.width for column in rows], widths)
        order.move([(given.at, made.at, made.width) for given, made in zip(rows, moved, strict=True)], stream)
        counts = call.agree(header)
        world = range(channel.world)
        most = max(max(map(sum, counts)), max(sum(row[rank] for row in counts) for rank in world))
        rounds = max(1, -(-most // self._rows_of_a_piece([column.width for column in (*moved, *back)])))
        cuts = [_cut(counts, channel.rank, number, rounds) for number in range(rounds)]
        begins = run_starts(counts[channel.rank], _RUN_ROWS)
        runs = [(begin, begin + count) for begin, count in zip(begins, counts[channel.rank], strict=False)]
        return Trip(channel, call, order, moved, back, pieces, cuts, runs, begins[-1])

    def _rows_of_a_piece(self, widths: Sequence[int]) -> int:
        return max(1, self._piece_bytes // max(1, sum(widths)))

    def _pieces(self, of_rows: Sequence[int], of_answers: Sequence[int]) -> list[_Piece]:
        """Two pieces for batches of these widths, which the route keeps."""
        key = (len(of_rows), *of_rows, *of_answers)
        if key not in self._kept:
            n = self._rows_of_a_piece([*of_rows, *of_answers])
            n += 2 * _RUN_ROWS * self._channel.world  # each cut may round up, and have a tail
            self._kept[key] = [
                _Piece(*([Column(self._channel.memory(n * width), width) for width in widths] for widths in both))
                for both in [(of_rows, of_answers)] * 2
            ]
        return self._kept[key]


class Trip:
    """A batch on its way: all ranks know how many rows go from each to each.

    Attributes
    ----------
    back
        The answers of the owners, in the order of owners.
    cuts
        The rows of each round.
    runs
        The span of each rank in the order of owners.
    rows
        All rows there, those between runs, too.
    """

    def __init__(
        self,
        channel: Channel,
        call: Call,
        order: OwnerOrder,
        moved: list[Column],
        back: list[Column],
        pieces: Sequence[Piece],
        cuts: list[Cut],
        runs: list[Span],
        rows: int,
    ) -> None:
        self._channel, self._call, self._order = channel, call, order
        self._moved, self._pieces = moved, pieces
        self.back, self.cuts, self.runs, self.rows = back, cuts, runs, rows

    def work(self, local: Local, prepare: Callable[[int], None] | None = None) -> None:
        """Have the owners work, round by round, and hear whether all did. See `Route.go`."""
        error: BaseException | None = None
        if prepare is not None:
            try:
                prepare(sum(cut.n for cut in self.cuts))
            except BaseException as raised:
                error = raised
            self._call.conclude(error, 0)
        done = 0
        for piece, n in self._rounds():
            if error is None:
                try:
                    local(n, piece.addresses(n), [column.at for column in piece.answers])
                    done += 1
                except BaseException as raised:
                    error = raised
        self._call.conclude(error, done, has_begun=True)

    def restore(self, sources: Sequence[Rows], targets: Sequence[int]) -> None:
        """Bring columns from the order of owners to the order of the batch."""
        columns = [(source.at, target, source.width) for source, target in zip(sources, targets, strict=True)]
        self._order.restore(columns, self._channel.stream())

    def _rounds(self) -> Iterator[tuple[Piece, int]]:
        """Exchange rows and answers. Between the two, yields the piece of each round and the number of its rows."""
        cuts, pieces = self.cuts, self._pieces
        wait_for_rows = self._send(cuts[0], pieces[0])
        waits_for_answers: list[Callable[[], None]] = []
        for number, cut in enumerate(cuts):
            wait_for_rows()
            if number + 1 < len(cuts):
                wait_for_rows = self._send(cuts[number + 1], pieces[(number + 1) % 2])
            if number > 1:
                waits_for_answers[number - 2]()  # their memory is written next
            yield pieces[number % 2], cut.n
            waits_for_answers.append(self._send_back(cut, pieces[number % 2]))
        for wait in waits_for_answers[-2:]:
            wait()

    def _send(self, cut: Cut, piece: Piece) -> Callable[[], None]:
        return piece.receive(self._channel, self._call, cut, self._moved)

    def _send_back(self, cut: Cut, piece: Piece) -> Callable[[], None]:
        return exchanged(self._channel, self._call, cut.received, piece.answers, cut.sent, self.back)


Begin = Callable[[Call, int, Sequence[Rows], Sequence[int]], Trip]
"""As `Route.trip`."""


def copied(channel: Channel, engine: Engine, rows: Rows, n: int) -> Column:
    """A copy of rows in memory of the engine, in memory for messages."""
    made = Column(channel.memory(n * rows.width), rows.width)
    if n * rows.width:
        engine.copy(made.at, rows.at, n * rows.width, channel.stream())
    return made


def exchanged(
    channel: Channel,
    call: Call,
    spans: Sequence[Span],
    sources: Sequence[Column],
    other_spans: Sequence[Span],
    targets: Sequence[Column],
) -> Callable[[], None]:
    """Begin to exchange columns: the rows of each rank's spans go to that rank, into its other spans; what waits.

    Parameters
    ----------
    spans, other_spans
        Of the sources, and of the targets: one for each rank, or several lists of these one behind the other.
    """
    me, world = channel.rank, channel.world
    sent, received = [], []
    for number, (span, other_span) in enumerate(zip(spans, other_spans, strict=True)):
        peer = number % world
        for source, target in zip(sources, targets, strict=True):
            if peer == me:
                target.rows(*other_span).copy_(source.rows(*span))
            else:
                sent.append(Message(peer, source.rows(*span)))
                received.append(Message(peer, target.rows(*other_span)))
    return call.exchange(sent, received)


def spans_of(counts: Sequence[int]) -> list[Span]:
    """Where the runs of so many rows begin and end that lie one behind the other."""
    ends = list(accumulate(counts))
    return list(zip([0, *ends], ends, strict=False))


def _cut(counts: list[list[int]], me: int, number: int, rounds: int) -> Cut:
    """The rows of one of some rounds, for one rank."""
    begins, is_last = run_starts(counts[me], _RUN_ROWS), number == rounds - 1
    whole, tails, at = list[tuple[Span, Span]](), list[tuple[Span, Span]](), 0
    for peer, (begin, count) in enumerate(zip(begins, counts[me], strict=False)):
        first, end = (_whole_rows(count, each, rounds) for each in (number, number + 1))
        size = _whole_rows(counts[peer][me], number + 1, rounds) - _whole_rows(counts[peer][me], number, rounds)
        whole.append(((begin + first, begin + end), (at, at + size)))
        at += size
    if is_last:
        for peer, (begin, count) in enumerate(zip(begins, counts[me], strict=False)):
            tail = counts[peer][me] % _RUN_ROWS
            tails.append(((begin + count - count % _RUN_ROWS, begin + count), (at, at + tail)))
            at += tail
    sent, received = zip(*whole, *tails, strict=True)
    return Cut(list(sent), list(received))


def _whole_rows(count: int, number: int, rounds: int) -> int:
    """How many of some rows go before a round: a multiple of `_RUN_ROWS`."""
    return count // _RUN_ROWS * number // rounds * _RUN_ROWS
