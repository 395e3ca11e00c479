"""The way of a batch to the owners of its keys, and of their answers back.

Each rank owns the keys of an interval of shards (``kernels/owners/owner.cuh``). A batch goes this way:

1. All memory of the call is allocated, the rows of each owner are counted, and rows are brought into the order of their
   owners (`storage.owners`). The headers tell all ranks how many rows go from each rank to each other one, and wait for
   the counts alone (`Call.agree`).
2. Rounds. From the counts of all ranks, each rank computes the same number of rounds. A round takes the same fraction
   of the rows that each rank has for each other one::

       rows of rank r for rank s   [ round 0 | round 1 | ... | last round     ]
                                   [ 128 k   | 128 k   | ... | 128 k   | tail ]      k of that round; tail of 0 to 127

   So no rank sends or receives more than a piece in a round, whatever the skew. The rows of the next rounds travel
   while an owner works on those of this one. Then the answers travel back. A rank's rows for itself do not travel: an
   owner works on these first, where they lie, while the first rows of the others come. Few rows go in one round, with
   those that stay.
3. The answers are brought into the caller's order. Meanwhile, all ranks hear whether a round failed (`Call.conclude`).

The first rows of a table are faster inserted at once than in rounds (docs/performance/distributed.md). So a rank whose
table holds little offers memory for as many rows as it sends, and some more. If all ranks offer enough for what they
receive, there is one round.

Why 128 rows: NCCL takes messages at multiples of 16 bytes faster (docs/performance/distributed.md), and flags travel as
bits (``kernels/owners/flag_bits.cuh``). So the runs of ranks begin at multiples of 128 rows (`OwnerOrder`), rounds are
cut there, and the piece of an owner has all whole parts first, and then the tails. Of each, the rows of rank 0 come
first, then those of rank 1, and so on.

Memory: the batch once more, its answers, a bit for each flag, a byte a row for its order, and two pieces of rows and
answers, which the route keeps. A first batch is there a third time instead, and not kept; if there is no memory for
that, it goes in rounds.

A rank whose part fails goes on to send and receive, and does no more to its table. So no other rank waits for it. The
rounds before the failed one are done on all ranks. The failed one and those behind it are done where no rank failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from itertools import accumulate, pairwise
from operator import le
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from ..arrays.library import MAX_ROWS
from ..runtime.abi import MOST_OWNERS
from ..runtime.engine import Engine
from ..storage.owners.flag_bits import FLAG_RUN, expect_flag_bits, pack_flags, unpack_flags
from ..storage.owners.owner_order import OwnerOrder, run_starts
from ..storage.scratch import starts_of
from .channel import Call, Channel, Message

__all__ = [
    "Apart",
    "Back",
    "Begin",
    "Column",
    "Cut",
    "Kind",
    "Local",
    "Piece",
    "Route",
    "Rows",
    "Sendable",
    "Span",
    "Trip",
    "Wait",
    "copied",
    "exchanged",
    "spans_of",
]

_FEW_ROWS = 1 << 20
"""That a rank receives: if fewer, they are worked on together with those that stay."""

_MOST_ROWS = MAX_ROWS - 2 * FLAG_RUN * MOST_OWNERS
"""That a rank receives in a round, but for what cuts round up: a table takes no more in a call."""

_SPARE = 16
"""A rank that offers memory for all rows it may receive in one round has one in so many to spare: owners are random."""

Wait = Callable[[], None]
"""Waits for messages."""

Local = Callable[[int, list[int], list[int]], None]
"""What an owner does: number of rows, addresses of their columns, addresses for the columns of their answers."""


_Round = tuple[int, Callable[[], list[int]], list[int]]
"""What `Local` takes; the addresses of rows, once these are there."""


class Rows(NamedTuple):
    """A column of a batch: its address in the memory of the engine, and the bytes of a row."""

    at: int
    width: int


class Kind(NamedTuple):
    """What a column of answers has: rows of some bytes, or flags, a byte of 0 or 1 each, which travel as bits."""

    width: int
    are_flags: bool = False


class Answers(NamedTuple):
    """Where a column of answers goes, and what it has."""

    at: int
    kind: Kind


class Sendable(Protocol):
    """A column as messages have it."""

    def rows(self, begin: int, end: int) -> torch.Tensor:
        """The bytes of some rows."""
        ...


class Column:
    """A column in memory for messages.

    Attributes
    ----------
    at, width
        Its address, and the bytes of a row.
    """

    def __init__(self, data: torch.Tensor, width: int) -> None:
        self._data, self.width = data, width
        self.at: int = data.data_ptr()

    def rows(self, begin: int, end: int) -> torch.Tensor:
        """Some rows: their bytes."""
        return self._data[begin * self.width : end * self.width]

    def piece(self, begin: int, n: int) -> Column:
        """Some rows: a column of these."""
        return Column(self.rows(begin, begin + n), self.width)

    def row_at(self, row: int) -> int:
        """The address of a row."""
        return self.at + row * self.width

    def matrix(self, n: int) -> torch.Tensor:
        """The first rows: uint8[n, width]."""
        return self.rows(0, n).view(n, self.width)


def _bytes_of_flags(n: int) -> int:
    """The bytes that have the bits of ``n`` flags."""
    return -(-n // 8)


class _FlagBits:
    """A column of flags as bits, in memory for messages. Rows are taken from a multiple of 8 on."""

    def __init__(self, data: torch.Tensor) -> None:
        self._data = data
        self.at: int = data.data_ptr()

    def rows(self, begin: int, end: int) -> torch.Tensor:
        """Some rows: the bytes of their bits."""
        first = begin // 8
        return self._data[first : first + _bytes_of_flags(end - begin)]

    def piece(self, begin: int, n: int) -> _FlagBits:
        """Some rows: a column of these."""
        return _FlagBits(self.rows(begin, begin + n))


class _PackedFlags:
    """The flags of a round as bits: each tail is at a multiple of `FLAG_RUN`."""

    def __init__(self, bits: _FlagBits, cut: Cut) -> None:
        self._bits = bits
        self._places = {
            begin: cut.whole + number * FLAG_RUN for number, (begin, end) in enumerate(cut.tails) if begin < end
        }

    def rows(self, begin: int, end: int) -> torch.Tensor:
        """The bytes of the rows of a rank."""
        place = self._places.get(begin, begin)
        return self._bits.rows(place, place + end - begin)


class Piece(Protocol):
    """Memory for the rows that an owner receives in a round, and for their answers."""

    @property
    def answers(self) -> list[Column]:
        """Memory for the answers."""
        ...

    def receive(self, channel: Channel, call: Call, cut: Cut, moved: Sequence[Column], behind: Any) -> Wait:
        """Begin to exchange the rows of a round, of those in the order of owners; what waits."""
        ...

    def addresses(self, n: int) -> list[int]:
        """The addresses of the columns of the ``n`` rows that were received."""
        ...

    def packed(self, cut: Cut, stream: Any) -> Sequence[Sendable]:
        """The answers of a round as they travel."""
        ...


class _Room(NamedTuple):
    """As `Piece`, of rows of a fixed width.

    Attributes
    ----------
    n
        How many rows there is memory for.
    bits
        For answers that are flags, by their places.
    """

    engine: Engine
    rows: list[Column]
    answers: list[Column]
    n: int
    bits: dict[int, _FlagBits]

    def piece(self, begin: int, n: int) -> _Room:
        """The memory of some rows."""
        rows, answers = ([column.piece(begin, n) for column in columns] for columns in (self.rows, self.answers))
        return _Room(self.engine, rows, answers, n, {k: bits.piece(begin, n) for k, bits in self.bits.items()})

    def receive(self, channel: Channel, call: Call, cut: Cut, moved: Sequence[Column], behind: Any) -> Wait:
        return exchanged(channel, call, cut.sent, moved, cut.received, self.rows, behind)

    def addresses(self, n: int) -> list[int]:
        return [column.at for column in self.rows]

    def packed(self, cut: Cut, stream: Any) -> Sequence[Sendable]:
        made: list[Sendable] = list(self.answers)
        tails = [end - begin for begin, end in cut.tails]
        for place, bits in self.bits.items():
            pack_flags(self.engine, self.answers[place].at, bits.at, cut.whole, tails, stream)
            made[place] = _PackedFlags(bits, cut)
        return made


Span = tuple[int, int]
"""Where rows begin and end."""


class Apart(NamedTuple):
    """Hot keys of a batch, which have one row each on its way.

    Attributes
    ----------
    keys
        As `OwnerOrder` takes them.
    once
        For each column of answers, whether one element of a key gets the answer, and the others get zeros.
    """

    keys: npt.NDArray[np.uint64]
    once: list[bool]


class Cut(NamedTuple):
    """The rows of a round: a span for each rank, and in the last round a second one, for tails.

    Attributes
    ----------
    sent
        Spans of the rows for the ranks, among all rows in the order of owners.
    received
        Spans of the rows from the ranks in the piece.
    stays
        The rows are those of the rank for itself, and are worked on where they lie.
    texts
        For each column of any length, such spans of its bytes (`ragged_trips`).
    has_tails
        There are second spans.
    """

    sent: list[Span]
    received: list[Span]
    stays: bool = False
    texts: tuple[tuple[list[Span], list[Span]], ...] = ()
    has_tails: bool = False

    @property
    def n(self) -> int:
        """Rows that are received."""
        return self.received[-1][1]

    @property
    def whole(self) -> int:
        """Rows that are received, ahead of the tails."""
        return self.n - sum(end - begin for begin, end in self.tails)

    @property
    def tails(self) -> list[Span]:
        """Spans of the tails that are received, if there are any."""
        world = len(self.received) // 2
        return self.received[world:] if self.has_tails else []


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
        self._kept = channel.memory(0)  # the pieces

    def go(
        self,
        call: Call,
        n: int,
        rows: Sequence[Rows],
        answers: Sequence[Answers],
        local: Local,
        prepare: Callable[[int], None] | None = None,
        *,
        at_once: bool = False,
        apart: Apart | None = None,
        launches: bool = False,
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
        at_once
            This owner would work on all rows faster than on those of several rounds.
        apart
            Hot keys, of rows of a fixed width.
        launches
            On a GPU, what an owner does is launched, and nobody waits for it.

        Raises
        ------
        CollectiveError, PeerLost, MemoryError, ParameterError
            As `Call.agree` and `Call.conclude`. Of what is raised before the header, the other ranks hear.
        """
        if self._channel.world == 1:
            call.agree()
            try:
                local(n, [column.at for column in rows], [column.at for column in answers])
            except BaseException as error:  # as of several ranks, so that the next call works
                call.conclude(error, 0, has_begun=True)
            return
        hot, once = (None, None) if apart is None else apart
        trip = self.trip(call, n, rows, [column.kind for column in answers], at_once=at_once, apart=hot)
        sources, targets = [Rows(made.at, made.width) for made in trip.back], [column.at for column in answers]
        trip.work(local, prepare, lambda: trip.restore(sources, targets, once), launches=launches)

    def trip(
        self,
        call: Call,
        n: int,
        rows: Sequence[Rows],
        answers: Sequence[Kind],
        *,
        at_once: bool = False,
        apart: npt.NDArray[np.uint64] | None = None,
    ) -> Trip:
        """Begin to take a batch to its owners: to the end of the header."""
        if self._begin is not None:
            return self._begin(call, n, rows, answers)
        channel, stream = self._channel, self._channel.stream()
        world = channel.world
        if any(kind.are_flags for kind in answers):
            expect_flag_bits(self._engine)
        header = channel.header()
        keys, numbers_at = rows[0], channel.numbers_at(header)
        order = OwnerOrder(
            self._engine, keys.at, keys.width, n, world, numbers_at, stream, run_rows=FLAG_RUN, apart=apart
        )
        lines = n + FLAG_RUN * world
        moved = [Column(channel.memory(lines * width), width) for _, width in rows]
        back = Back(
            self._engine,
            [Column(channel.memory(lines * kind.width), kind.width) for kind in answers],
            {
                place: _FlagBits(channel.memory(_bytes_of_flags(lines)))
                for place, kind in enumerate(answers)
                if kind.are_flags
            },
        )
        of_rows = [column.width for column in rows]
        spare = 2 * FLAG_RUN * world
        room = self._room(of_rows, answers, min(n + n // _SPARE, _MOST_ROWS) + spare if at_once else 0)

        counted = channel.mark()
        order.move([(given.at, made.at, made.width) for given, made in zip(rows, moved, strict=True)], stream)
        moved_by = channel.mark()
        counts = call.agree(header, counted, for_all=min(room.n - spare, _MOST_ROWS) if at_once else 0)
        received = [sum(row[rank] for row in counts) for rank in range(world)]
        piece_rows = self._rows_of_a_piece(of_rows, answers)
        is_one_round = max(received) <= min(piece_rows, _FEW_ROWS) or all(map(le, received, call.for_all))
        pieces: list[Piece]
        if is_one_round:
            pieces, cuts = [room], _cuts(counts, channel.rank, 1)
        else:
            others = [[0 if peer == rank else row[peer] for peer in range(world)] for rank, row in enumerate(counts)]
            most = max(*map(sum, others), *map(sum, zip(*others, strict=True)))
            rounds = max(1, -(-most // piece_rows))
            size = room.n // 2 // FLAG_RUN * FLAG_RUN
            pieces = [room.piece(begin, size) for begin in (0, size)]
            cuts = [_cut_of_own(counts, channel.rank), *_cuts(counts, channel.rank, rounds, others)]
        begins = run_starts(counts[channel.rank], FLAG_RUN)
        runs = [(begin, begin + count) for begin, count in zip(begins, counts[channel.rank], strict=False)]
        return Trip(channel, call, order, moved, back, pieces, cuts, runs, begins[-1], moved_by)

    def _rows_of_a_piece(self, of_rows: Sequence[int], answers: Sequence[Kind]) -> int:
        row_bytes = sum(of_rows) + sum(kind.width for kind in answers)
        return max(1, min(_MOST_ROWS, self._piece_bytes // max(1, row_bytes)))

    def _room(self, of_rows: Sequence[int], answers: Sequence[Kind], wanted: int) -> _Room:
        """Memory for as many rows as a caller wants, if there is so much; or for two pieces, which the route keeps."""
        n = self._rows_of_a_piece(of_rows, answers)
        n += 2 * FLAG_RUN * self._channel.world  # each cut may round up, and have a tail
        n = 2 * (n + -n % FLAG_RUN)
        if wanted > n:
            with suppress(MemoryError):
                starts = _starts(of_rows, answers, wanted)
                return _room_in(self._engine, self._channel.memory(starts[-1]), starts, of_rows, answers, wanted)
        starts = _starts(of_rows, answers, n)
        if len(self._kept) < starts[-1]:
            self._kept = self._kept[:0]  # before there is more
            self._kept = self._channel.memory(starts[-1])
        return _room_in(self._engine, self._kept, starts, of_rows, answers, n)


def _starts(of_rows: Sequence[int], answers: Sequence[Kind], n: int) -> list[int]:
    """Where the columns of so many rows begin in one memory: of rows, of answers, and of flags as bits."""
    widths = [*of_rows, *(kind.width for kind in answers)]
    return starts_of([n * width for width in widths] + [_bytes_of_flags(n) for kind in answers if kind.are_flags])


def _room_in(
    engine: Engine, memory: torch.Tensor, starts: Sequence[int], of_rows: Sequence[int], answers: Sequence[Kind], n: int
) -> _Room:
    parts = (memory[begin:end] for begin, end in pairwise(starts))
    rows = [Column(next(parts), width) for width in of_rows]
    columns = [Column(next(parts), kind.width) for kind in answers]
    bits = {place: _FlagBits(next(parts)) for place, kind in enumerate(answers) if kind.are_flags}
    return _Room(engine, rows, columns, n, bits)


class Back(NamedTuple):
    """Memory for the answers of a batch in the order of owners: its columns, and the bits of those that are flags."""

    engine: Engine
    columns: list[Column]
    bits: dict[int, _FlagBits]

    def targets(self) -> list[Sendable]:
        """What answers of other ranks are received into."""
        return [self.bits.get(place, column) for place, column in enumerate(self.columns)]

    def unpack(self, spans: Sequence[Span], stream: Any) -> None:
        """Write the flags of some rows, of which bits have come."""
        for place, bits in self.bits.items():
            for begin, end in spans:
                to = self.columns[place].row_at(begin)
                unpack_flags(self.engine, bits.at + begin // 8, to, end - begin, stream)


class Trip:
    """A batch on its way: all ranks know how many rows go from each to each.

    Attributes
    ----------
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
        back: Back,
        pieces: Sequence[Piece],
        cuts: list[Cut],
        runs: list[Span],
        rows: int,
        moved_by: Any,
    ) -> None:
        self._channel, self._call, self._order = channel, call, order
        self._moved, self._pieces, self._moved_by = moved, pieces, moved_by
        self._back, self.cuts, self.runs, self.rows = back, cuts, runs, rows

    @property
    def back(self) -> list[Column]:
        """The answers of the owners, in the order of owners."""
        return self._back.columns

    def work(
        self,
        local: Local,
        prepare: Callable[[int], None] | None = None,
        finish: Callable[[], None] | None = None,
        *,
        launches: bool = False,
    ) -> None:
        """Have the owners work, round by round, and hear whether all did.

        Parameters
        ----------
        local, prepare, launches
            As of `Route.go`.
        finish
            What this rank does with the answers, if all went well here.
        """
        error: BaseException | None = None
        if prepare is not None:
            try:
                prepare(sum(cut.n for cut in self.cuts))
            except BaseException as raised:
                error = raised
            self._call.conclude(error, 0)
        done = 0
        is_gpu = self._channel.place.type != "cpu"
        for n, rows_at, answers_at in self._rounds(launches=launches and is_gpu):
            if error is None:
                try:
                    local(n, rows_at(), answers_at)
                    done += 1
                except BaseException as raised:
                    error = raised
        if error is None:
            try:
                self._back.unpack(self._arrived(), self._channel.stream())
                if finish is not None:
                    finish()
            except BaseException as raised:
                error = raised
        self._call.conclude(error, done, has_begun=True)

    def restore(self, sources: Sequence[Rows], targets: Sequence[int], once: Sequence[bool] | None = None) -> None:
        """Bring columns from the order of owners to the order of the batch. ``once``: see `OwnerOrder.restore`."""
        columns = [(source.at, target, source.width) for source, target in zip(sources, targets, strict=True)]
        self._order.restore(columns, self._channel.stream(), once)

    def _rounds(self, *, launches: bool) -> Iterator[_Round]:
        """Exchange rows and answers. Between the two, yields each round.

        On a GPU, messages wait for all that was launched before them, but for those of the first rows. So rows are
        asked for two rounds ahead.
        """
        cuts, pieces = [cut for cut in self.cuts if not cut.stays], self._pieces
        if launches:
            yield from self._own()
        rows = [self._send(cut, piece, self._moved_by) for cut, piece in zip(cuts, pieces, strict=False)]
        if not launches:
            yield from self._own()
        answers: list[Wait] = []
        for number, cut in enumerate(cuts):
            piece = pieces[number % 2]
            rows[number]()
            if number > 1:
                answers[number - 2]()  # their memory is written next
            yield cut.n, partial(piece.addresses, cut.n), [column.at for column in piece.answers]
            answers.append(self._send_back(cut, piece))
            if number + 2 < len(cuts):
                rows.append(self._send(cuts[number + 2], piece))
        for wait in answers[-2:]:
            wait()

    def _own(self) -> Iterator[_Round]:
        """The rows of this rank for itself, if they stay where they lie."""
        for cut in self.cuts:
            if cut.stays:
                begin = cut.sent[self._channel.rank][0]
                rows_at, answers_at = ([column.row_at(begin) for column in each] for each in (self._moved, self.back))
                yield cut.n, partial(list, rows_at), answers_at

    def _send(self, cut: Cut, piece: Piece, behind: Any = None) -> Wait:
        return piece.receive(self._channel, self._call, cut, self._moved, behind)

    def _send_back(self, cut: Cut, piece: Piece) -> Wait:
        sources = piece.packed(cut, self._channel.stream())
        return exchanged(self._channel, self._call, cut.received, sources, cut.sent, self._back.targets())

    def _arrived(self) -> list[Span]:
        """The rows in the order of owners whose answers have travelled, and some between runs."""
        stay = [cut.sent[self._channel.rank] for cut in self.cuts if cut.stays]
        if not stay:
            return [(0, self.rows)]
        ((begin, end),) = stay
        return [(0, begin), (end + -end % FLAG_RUN, self.rows)]


Begin = Callable[[Call, int, Sequence[Rows], Sequence[Kind]], Trip]
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
    sources: Sequence[Sendable],
    other_spans: Sequence[Span],
    targets: Sequence[Sendable],
    behind: Any = None,
) -> Wait:
    """Begin to exchange columns: the rows of each rank's spans go to that rank, into its other spans; what waits.

    Parameters
    ----------
    spans, other_spans
        Of the sources, and of the targets: one for each rank, or several lists of these one behind the other.
    behind
        A `Channel.mark` behind which the sources are there, and the targets may be written; None: now.
    """
    me, world = channel.rank, channel.world
    sent, received, own = list[Message](), list[Message](), list[tuple[torch.Tensor, torch.Tensor]]()
    for number, (span, other_span) in enumerate(zip(spans, other_spans, strict=True)):
        peer = number % world
        for source, target in zip(sources, targets, strict=True):
            if peer == me:
                own.append((target.rows(*other_span), source.rows(*span)))
            else:
                sent.append(Message(peer, source.rows(*span)))
                received.append(Message(peer, target.rows(*other_span)))
    with channel.aside(behind) if behind is not None else nullcontext():
        wait = call.exchange(sent, received)
    for target_rows, source_rows in own:  # while the messages are on their way
        target_rows.copy_(source_rows)
    return wait


def spans_of(counts: Sequence[int]) -> list[Span]:
    """Where the runs of so many rows begin and end that lie one behind the other."""
    ends = list(accumulate(counts))
    return list(zip([0, *ends], ends, strict=False))


def _cut_of_own(counts: list[list[int]], me: int) -> Cut:
    """The rows of one rank for itself, as a round."""
    begin, n = run_starts(counts[me], FLAG_RUN)[me], counts[me][me]
    sent = [(begin, begin + n if peer == me else begin) for peer in range(len(counts))]
    received = [(0 if peer <= me else n, 0 if peer < me else n) for peer in range(len(counts))]
    return Cut(sent, received, stays=True)


def _cuts(counts: list[list[int]], me: int, rounds: int, going: list[list[int]] | None = None) -> list[Cut]:
    """The rows of some rounds, for one rank.

    Parameters
    ----------
    counts, going
        Rows of each rank for each other one, and how many of them go in these rounds. None: all.
    """
    begins, going = run_starts(counts[me], FLAG_RUN), going or counts
    return [_cut(begins, going, me, number, rounds) for number in range(rounds)]


def _cut(begins: Sequence[int], going: list[list[int]], me: int, number: int, rounds: int) -> Cut:
    """The rows of one of some rounds, for one rank, whose runs begin somewhere."""
    is_last = number == rounds - 1
    whole, tails, at = list[tuple[Span, Span]](), list[tuple[Span, Span]](), 0
    for peer, (begin, count) in enumerate(zip(begins, going[me], strict=False)):
        first, end = (_whole_rows(count, each, rounds) for each in (number, number + 1))
        size = _whole_rows(going[peer][me], number + 1, rounds) - _whole_rows(going[peer][me], number, rounds)
        whole.append(((begin + first, begin + end), (at, at + size)))
        at += size
    if is_last:
        for peer, (begin, count) in enumerate(zip(begins, going[me], strict=False)):
            tail = going[peer][me] % FLAG_RUN
            tails.append(((begin + count - count % FLAG_RUN, begin + count), (at, at + tail)))
            at += tail
    sent, received = zip(*whole, *tails, strict=True)
    return Cut(list(sent), list(received), has_tails=is_last)


def _whole_rows(count: int, number: int, rounds: int) -> int:
    """How many of some rows go before a round: a multiple of `FLAG_RUN`."""
    return count // FLAG_RUN * number // rounds * FLAG_RUN
