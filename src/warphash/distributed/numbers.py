"""Dense numbers for the keys of all ranks: `ShardedMap.number`.

1. All keys are looked up. Those that are there have their numbers.
2. The absent ones go to their owners, each once. An owner numbers the keys that it received, from 0, in a table of its
   own (`HashMap.number`), and inserts nothing yet.
3. All ranks hear how many keys each owner has numbered. So each owner knows where its numbers begin: behind those of
   all keys that were there, and behind those of the ranks before it. An owner makes room, all ranks hear whether all
   could, and then it inserts its new keys. Those who asked add the same beginnings to the answers.

So a call that fails for lack of memory inserts no key anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch

from ..arrays.adapters.engine import ENGINE_MEMORY
from ..arrays.library import ArrayView
from ..arrays.row_type import Column as Type
from ..arrays.strings import StringArray
from ..errors import DtypeError
from ..table.maps import HashMap
from .channel import Call, Channel
from .repeats import Answers, Combined
from .route import Column, Kind, Route, Rows, Trip, copied

__all__ = ["Asked", "NewNumbers"]

_FLAG_BYTES, _NUMBER_BYTES = 1, 8

ArrayAt = Callable[[int, int, Type], ArrayView]
"""Rows at an address, so many of a type, as an array that tables take."""


class Asked(NamedTuple):
    """Keys that were looked up, each once.

    Attributes
    ----------
    batch
        Of which they are the keys.
    keys, found
        The keys, and which ones are there.
    numbers
        The numbers of all, in the values' type; of absent ones, once they are given.
    added
        Which elements added their keys.
    """

    batch: Combined
    keys: Column
    found: Column
    numbers: Answers
    added: Answers


class NewNumbers:
    """The numbers of keys that are in no table yet.

    Parameters
    ----------
    channel, route, local, array_at
        Of the sharded table.
    call
        Under way.
    first
        The least number of all.
    """

    def __init__(
        self, channel: Channel, route: Route, local: HashMap[Any, Any], array_at: ArrayAt, call: Call, first: int
    ) -> None:
        self._channel, self._route, self._call, self._first = channel, route, call, first
        self._local: Any = local
        self._array_at = array_at
        self._front: Any = local._parts.front
        self._values: Column | None = None
        rules = self._local._parts.facts.rules
        self._once: Any = HashMap(self._front.key.spec, "int64", device=local.device, **rules)

    def give(self, asked: Asked) -> None:
        """Number and insert the keys that were not found."""
        batch, flags = asked.batch, asked.found.rows(0, asked.batch.n)
        absent = torch.nonzero(flags == 0)[:, 0]
        n, keys = len(absent), Column(asked.keys.matrix(batch.n).index_select(0, absent).view(-1), asked.keys.width)
        trip = self._route.trip(
            self._call, n, [Rows(keys.at, keys.width)], [Kind(_NUMBER_BYTES), Kind(_FLAG_BYTES, True)]
        )
        trip.work(self._number)
        begins = self._begins()
        self._insert(begins[self._channel.rank])
        self._call.together(lambda: self._answer(asked, absent, trip, begins), has_begun=True)

    def _answer(self, asked: Asked, absent: torch.Tensor, trip: Trip, begins: Sequence[int]) -> None:
        """Write the numbers of keys that were absent, and which elements added their keys."""
        for run, begin in zip(trip.runs, begins, strict=True):
            trip.back[0].rows(*run).view(torch.int64).add_(begin)
        n, numbers, flags = len(absent), asked.numbers.column, asked.added.column.rows(0, asked.batch.n)
        given, added = (Column(self._channel.memory(n * back.width), back.width) for back in trip.back)
        trip.restore([Rows(back.at, back.width) for back in trip.back], [given.at, added.at])
        numbers.matrix(asked.batch.n).index_copy_(0, absent, _narrowed(given, n, numbers.width).matrix(n))
        flags.zero_().index_copy_(0, absent, added.rows(0, n))

    def _number(self, n: int, at: list[int], to: list[int]) -> None:
        numbers, added = self._once.number(self._array_at(at[0], n, self._front.key))
        for place, made in zip(to, (numbers, added), strict=True):
            self._front.engine.copy(place, made.ptr, made.nbytes, self._channel.stream())

    def _begins(self) -> Sequence[int]:
        """Where the numbers of each owner's new keys begin."""
        told = self._call.told((len(self._local), len(self._once)))
        there, new = (sum(column) for column in zip(*told, strict=True))
        begin = self._first + there
        most = int(np.iinfo(self._front.value.dtype).max)
        if begin + new - 1 > most:
            error = DtypeError(
                f"the numbers of {new:,} new keys end at {begin + new - 1:,}, and {self._front.value.name} ends at "
                f"{most:,}: make the table with wider values"
            )
            self._call.conclude(error, 0)
        return list(accumulate((count for _, count in told[:-1]), initial=begin))

    def _insert(self, begin: int) -> None:
        """Insert the keys that this owner has numbered, with numbers from some number on."""
        error: BaseException | None = None
        try:
            pairs = self._pairs(begin)
            self._local.reserve(len(self._local) + len(self._once))
        except BaseException as raised:
            error = raised
        self._call.conclude(error, 0)
        try:
            self._local.insert(*pairs, assume_unique=True)
        except BaseException as raised:
            error = raised
        self._call.conclude(error, 0, has_begun=True)

    def _pairs(self, begin: int) -> tuple[ArrayView | StringArray, ArrayView]:
        front, channel, n = self._front, self._channel, len(self._once)
        once = self._once._parts
        columns = ENGINE_MEMORY, self._local.device, once.front.stored
        keys, numbers = once.guarded.settled(once.scans.owned_columns_locked, *columns)
        made = copied(channel, front.engine, Rows(numbers.ptr, _NUMBER_BYTES), n)
        made.rows(0, n).view(torch.int64).add_(begin)
        self._values = _narrowed(made, n, front.value.nbytes)  # kept, since the array keeps no memory
        return keys, self._array_at(self._values.at, n, front.value)


def _narrowed(numbers: Column, n: int, width: int) -> Column:
    """Integers of fewer bytes, of int64 that fit into them."""
    low = numbers.matrix(n)[:, :width]  # little-endian
    return Column(low.contiguous().view(-1), width)
