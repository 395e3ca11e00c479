"""Answers of any length, brought from the owners of keys: the values of keys that have several
(`ShardedMultiMap.find_all`), and values that are strings, which are lists of bytes.

The first trip brings the number of values of each key (`route.Trip`), while each owner keeps the values that it found.
From these numbers, each rank knows how many values it gets from each owner in each round. Room for all of them is
allocated, and all ranks hear whether there was room. Then the values travel, round by round, as they lie: those that an
owner found for one rank's keys are neighbours, and so are those that a rank gets for the keys of one owner and round.

In the order of owners, the values of a key lie behind those of the keys before it. So where they begin is a sum of
numbers, which goes to the caller's order as the numbers do, and each value is fetched from there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ..runtime.engine import Engine
from .channel import Call, Channel
from .route import Column, Kind, Route, Rows, Trip, copied, exchanged

__all__ = ["Found", "Lists", "lists_of"]

_COUNT_BYTES = 8


class Found(NamedTuple):
    """Lists that an owner found.

    Attributes
    ----------
    values, total
        Address and number of all values, one list behind the other.
    offsets
        Address of int64[n + 1]: where the list of each key begins, and where the last one ends.
    held
        What keeps that memory.
    others
        Addresses of answers of a fixed width, one for each key.
    """

    values: int
    total: int
    offsets: int
    held: Any
    others: Sequence[int] = ()


class Lists(NamedTuple):
    """The lists of a batch, in the caller's order: one list behind the other, and int64[n + 1]."""

    values: torch.Tensor
    offsets: torch.Tensor


def lists_of(
    route: Route,
    channel: Channel,
    engine: Engine,
    call: Call,
    n: int,
    rows: Sequence[Rows],
    width: int,
    find: Callable[[int, list[int]], Found],
    others: Sequence[Rows] = (),
) -> Lists:
    """The lists of a batch of keys.

    Parameters
    ----------
    n, rows
        The batch.
    width
        Bytes of a value.
    find
        What an owner does with the number of keys, and the addresses of their columns.
    others
        Where answers of a fixed width go.
    """
    kept: list[tuple[Column, torch.Tensor]] = []  # of each round

    def local(count: int, at: list[int], to: list[int]) -> None:
        found = find(count, at)
        offsets = copied(channel, engine, Rows(found.offsets, _COUNT_BYTES), count + 1).rows(0, count + 1)
        offsets = offsets.view(torch.int64)
        values = copied(channel, engine, Rows(found.values, width), found.total)
        sizes = offsets.diff()
        engine.copy(to[0], sizes.data_ptr(), _COUNT_BYTES * count, channel.stream())
        for target, source, answer in zip(to[1:], found.others, others, strict=True):
            engine.copy(target, source, count * answer.width, channel.stream())
        kept.append((values, offsets))

    trip = route.trip(call, n, rows, [Kind(_COUNT_BYTES), *(Kind(answer.width) for answer in others)])
    trip.work(local)
    sizes, begins = call.together(lambda: _sizes(channel, trip))
    got = call.together(lambda: Column(channel.memory(int(begins[-1]) * width), width))
    waits = []
    for cut, (values, offsets) in zip(trip.cuts, kept, strict=True):
        sent = offsets[torch.tensor(cut.received, device=channel.place)].tolist()
        received = begins[torch.tensor(cut.sent, device=channel.place)].tolist()
        waits.append(exchanged(channel, call, sent, [values], received, [got]))
    for wait in waits:
        wait()
    every = got.rows(0, int(begins[-1]))

    def in_order() -> Lists:
        trip.restore([Rows(made.at, made.width) for made in trip.back[1:]], [answer.at for answer in others])
        return _in_order(channel, trip, n, sizes, begins, every, width)

    return call.together(in_order)


def _sizes(channel: Channel, trip: Trip) -> tuple[torch.Tensor, torch.Tensor]:
    """How many values each key has, and where they begin, in the order of owners."""
    sizes = trip.back[0].rows(0, trip.rows).view(torch.int64)
    for (_, end), (begin, _) in itertools.pairwise([*trip.runs, (trip.rows, trip.rows)]):
        sizes[end:begin] = 0  # between runs there is no answer
    begins = torch.zeros(trip.rows + 1, dtype=torch.int64, device=channel.place)
    torch.cumsum(sizes, 0, out=begins[1:])
    return sizes, begins


def _in_order(
    channel: Channel, trip: Trip, n: int, sizes: torch.Tensor, begins: torch.Tensor, got: torch.Tensor, width: int
) -> Lists:
    """The lists in the order of the batch."""
    ordered = torch.empty((2, n), dtype=torch.int64, device=channel.place)
    sources = [Rows(column.data_ptr(), _COUNT_BYTES) for column in (sizes, begins)]
    trip.restore(sources, [row.data_ptr() for row in ordered])
    ordered_sizes, ordered_begins = ordered
    offsets = torch.zeros(n + 1, dtype=torch.int64, device=channel.place)
    torch.cumsum(ordered_sizes, 0, out=offsets[1:])
    total = int(offsets[-1])
    places = torch.repeat_interleave(ordered_begins - offsets[:-1], ordered_sizes)
    places += torch.arange(total, device=channel.place)
    return Lists(got.view(-1, width).index_select(0, places), offsets)
