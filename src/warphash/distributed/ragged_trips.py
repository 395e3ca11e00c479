"""Trips of batches whose rows have any length (`ragged`), for a `route.Route`: how rounds are cut, and what they carry.

Rows weigh as many bytes as they and their answers have in messages. All ranks tell what each sends to each other one,
in bytes, and so compute one number of rounds. A round takes the same fraction of the *bytes* that each rank has for
each other one, cut where a row ends::

    bytes of rank r for rank s   [ round 0 | round 1 | ... | last round ]        each: 1 / rounds, less than a row more

So no rank receives more than a piece in a round, and a row from each rank, whatever the lengths and the skew. Only the
sender knows where rows end. So each rank tells each other one how many rows and bytes each round has, ahead of the
first one. Then memory for the largest round is allocated, and all ranks hear whether there was room.

Memory: the bytes of the batch once more, 8 bytes a row for each column of any length, its answers, a byte a row for its
order, and two pieces; and up to the first round 56 bytes a row more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ..runtime.engine import Engine
from ..storage.owners.owner_order import OwnerOrder
from ..storage.strings.string_table import ROW_BYTES
from .channel import Call, Channel
from .ragged import Ragged, hashed_rows, ragged_of, write_rows
from .route import Back, Column, Cut, Kind, Rows, Sendable, Span, Trip, Wait, exchanged, spans_of

__all__ = ["RaggedTrips"]

Sizes = npt.NDArray[np.int64]


class RaggedTrips:
    """Begins the trips of batches (`route.Begin`).

    Parameters
    ----------
    channel, engine, piece_bytes
        As of `Route`.
    have_any_length
        Which columns of a batch have rows of any length, those of keys first. Such a column is given as rows that say
        where strings are, and owners get it so.
    """

    def __init__(self, channel: Channel, engine: Engine, piece_bytes: int, have_any_length: Sequence[bool]) -> None:
        self._channel, self._engine, self._piece_bytes = channel, engine, piece_bytes
        self._have_any_length = have_any_length

    def __call__(self, call: Call, n: int, rows: Sequence[Rows], answers: Sequence[Kind]) -> Trip:
        """As `Route.trip`. Flags travel as bytes: rows of any length weigh much more."""
        channel, engine, stream = self._channel, self._engine, self._channel.stream()
        places = [place for place, is_ragged in enumerate(self._have_any_length[: len(rows)]) if is_ragged]
        keys = hashed_rows(channel, engine, rows[0].at, n) if 0 in places else rows[0]
        counts = torch.zeros(channel.world, dtype=torch.int64)
        order = OwnerOrder(engine, keys.at, keys.width, n, channel.world, counts.data_ptr(), stream)
        moved = [Column(channel.memory(n * width), width) for _, width in rows]
        widths = [kind.width for kind in answers]
        back = [Column(channel.memory(n * width), width) for width in widths]
        order.move([(given.at, made.at, made.width) for given, made in zip(rows, moved, strict=True)], stream)
        texts = {place: ragged_of(channel, engine, moved[place].at, n) for place in places}
        columns = [texts[place].lengths if place in texts else column for place, column in enumerate(moved)]
        weights = np.arange(n + 1) * sum(column.width for column in (*columns, *back))
        for text in texts.values():
            weights += text.offsets
        runs = spans_of(counts.tolist())
        header = channel.header()
        header[-channel.world :] = torch.tensor([int(weights[end] - weights[begin]) for begin, end in runs])
        told = call.agree(header)
        most = max(*map(sum, told), *map(sum, zip(*told, strict=True)))
        rounds = max(1, -(-most // self._piece_bytes))
        cuts = self._cuts(call, weights, runs, rounds, list(texts.values()))
        pieces = call.together(lambda: [self._piece(cuts, columns, places, widths) for _ in range(2)])
        sent = [*columns, *(text.data for text in texts.values())]
        return Trip(channel, call, order, sent, Back(engine, back, {}), pieces, cuts, runs, n, None)

    def _cuts(
        self, call: Call, weights: Sizes, runs: Sequence[Span], rounds: int, texts: Sequence[Ragged]
    ) -> list[Cut]:
        """The rows of each round, and their bytes: each rank tells each other one what it sends."""
        channel = self._channel

        def told() -> tuple[list[Sizes], Sizes, Sizes]:
            ends = [_ends_of(weights, run, rounds) for run in runs]
            mine = np.stack([np.stack([np.diff(at), *(np.diff(text.offsets[at]) for text in texts)], 1) for at in ends])
            return ends, mine, np.empty_like(mine)

        ends, mine, theirs = call.together(told)
        each = [(rank, rank + 1) for rank in range(channel.world)]
        exchanged(channel, call, each, [_column_of(mine)], each, [_column_of(theirs)])()
        return call.together(lambda: _cuts_of(ends, theirs, texts))

    def _piece(
        self, cuts: Sequence[Cut], columns: Sequence[Column], places: Sequence[int], widths: Sequence[int]
    ) -> _RaggedPiece:
        """Memory for the largest round."""
        channel, n = self._channel, max(cut.n for cut in cuts)
        most = [max(cut.texts[number][1][-1][1] for cut in cuts) for number in range(len(places))]
        return _RaggedPiece(
            [Column(channel.memory(n * column.width), column.width) for column in columns],
            [Column(channel.memory(n * width), width) for width in widths],
            [
                _Text(place, Column(channel.memory(nbytes), 1), Column(channel.memory(n * ROW_BYTES), ROW_BYTES))
                for place, nbytes in zip(places, most, strict=True)
            ],
        )


class _Text(NamedTuple):
    """Memory for a column of any length: its place among the columns, the bytes of its rows, and where these are."""

    place: int
    data: Column
    rows: Column


class _RaggedPiece(NamedTuple):
    """As `route.Piece`. Of a column of any length, ``rows`` has the lengths."""

    rows: list[Column]
    answers: list[Column]
    texts: list[_Text]

    def receive(self, channel: Channel, call: Call, cut: Cut, moved: Sequence[Column], behind: Any) -> Wait:
        columns, data = moved[: len(self.rows)], moved[len(self.rows) :]
        waits = [exchanged(channel, call, cut.sent, columns, cut.received, self.rows)]
        for (sent, received), source, text in zip(cut.texts, data, self.texts, strict=True):
            waits.append(exchanged(channel, call, sent, [source], received, [text.data]))

        def wait() -> None:
            for each in waits:
                each()

        return wait

    def packed(self, cut: Cut, stream: Any) -> Sequence[Sendable]:
        return self.answers

    def addresses(self, n: int) -> list[int]:
        made = [column.at for column in self.rows]
        for text in self.texts:
            write_rows(self.rows[text.place], text.data, n, text.rows.at)
            made[text.place] = text.rows.at
        return made


def _ends_of(weights: Sizes, run: Span, rounds: int) -> Sizes:
    """Where the rounds of a run of rows begin, and where the last one ends, int64[rounds + 1]."""
    begin, end = run
    first, last = int(weights[begin]), int(weights[end])
    whole = np.array([first + (last - first) * number // rounds for number in range(rounds + 1)])
    ends: Sizes = begin + np.searchsorted(weights[begin : end + 1], whole, side="right") - 1
    return ends


def _column_of(sizes: Sizes) -> Column:
    """A row for each rank, in the memory of sizes."""
    return Column(torch.from_numpy(sizes.reshape(-1)).view(torch.uint8), sizes[0].nbytes)


def _cuts_of(ends: Sequence[Sizes], received: Sizes, texts: Sequence[Ragged]) -> list[Cut]:
    """The spans of each round, of where rounds end and of what each rank has told."""
    made = []
    for number in range(received.shape[1]):
        sent = [(int(at[number]), int(at[number + 1])) for at in ends]
        spans = [spans_of(column) for column in received[:, number].T.tolist()]
        of_texts = tuple((text.spans(sent), span) for text, span in zip(texts, spans[1:], strict=True))
        made.append(Cut(sent, spans[0], texts=of_texts))
    return made
