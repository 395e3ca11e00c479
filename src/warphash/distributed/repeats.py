"""Batches that repeat their keys: each key is asked for once, and its answer given to all its elements.

A sample of the batch tells whether that pays. Each rank decides for itself, and no other rank needs to know. An owner
then gets a key at most once from each rank, however hot the key is.

The elements of a key are numbered alike (`storage.groups.numbering`), in the order of first appearance. So the first
elements of the keys are the batch that is sent. Of a lookup, each element takes the answer by its number. Of an update,
the first element of a key answers for the key, and the others have added or erased nothing.
"""

from __future__ import annotations

import numpy as np
import torch

from ..runtime.engine import Engine
from ..storage.batch_order.sample import sample_rows
from ..storage.groups.numbering import number
from .channel import Channel
from .route import Column, Rows

__all__ = ["Answers", "Combined", "combined"]

_FEWEST = 1 << 15
"""Elements from which on a batch is sampled."""

_SAMPLED = 1 << 10
_LEAST_DISTINCT = 1 / 2
"""Of a sample. If fewer keys of it differ, the batch is combined."""

_MOST_OF_ONE = 1 / 4
"""Of the even share of a rank: if one key has more of the sample, the batch is combined."""

_NUMBER_BYTES = 4
_MOST = 1 << 31
"""Elements that are numbered in 32 bits."""


class Combined:
    """The first elements of the keys of a batch.

    Attributes
    ----------
    n
        How many keys there are.
    """

    def __init__(self, channel: Channel, engine: Engine, keys: Rows, n: int) -> None:
        self._channel, self._engine, self._elements = channel, engine, n
        numbers = channel.memory(_NUMBER_BYTES * n)
        made = number(
            engine,
            keys.at,
            keys.width,
            n,
            numbers=numbers.data_ptr(),
            number_bytes=_NUMBER_BYTES,
            stream=channel.stream(),
        )
        self.n = made.size
        firsts = channel.memory(_NUMBER_BYTES * made.size)
        engine.copy(firsts.data_ptr(), made.firsts.ptr, _NUMBER_BYTES * made.size, channel.stream())
        self._numbers, self._firsts = numbers.view(torch.int32), firsts.view(torch.int32)
        self._places = self._firsts.to(torch.int64)  # as `index_copy_` takes them

    def first(self, rows: Rows) -> Column:
        """The rows of the first elements."""
        every = self._channel.memory(self._elements * rows.width)
        self._engine.copy(every.data_ptr(), rows.at, len(every), self._channel.stream())
        return Column(every.view(-1, rows.width).index_select(0, self._firsts).view(-1), rows.width)

    def room(self, width: int, n: int | None = None) -> Column:
        """Room for an answer of some bytes for each key, or for ``n`` elements."""
        return Column(self._channel.memory((self.n if n is None else n) * width), width)

    def answers(self, width: int, *, of_every_element: bool) -> Answers:
        """Room for answers of some bytes: of the keys, and of all elements."""
        return Answers(self, width, of_every_element)

    def write(self, answers: Column, every: Column, to: int, *, of_every_element: bool) -> None:
        """Write answers of the keys to all elements of each key, or to the first one. Allocates nothing.

        Parameters
        ----------
        answers, every
            The answers, and room for those of all elements.
        to
            Where they go.
        of_every_element
            If not, the other elements of a key get zeros.
        """
        n, width = self._elements, answers.width
        given, made = answers.rows(0, self.n).view(-1, width), every.rows(0, n).view(-1, width)
        if of_every_element:
            torch.index_select(given, 0, self._numbers, out=made)
        else:
            made.zero_().index_copy_(0, self._places, given)
        self._engine.copy(to, every.at, n * width, self._channel.stream())

    @property
    def elements(self) -> int:
        """How many elements the batch has."""
        return self._elements


class Answers:
    """Answers of the owners for a combined batch.

    Attributes
    ----------
    column
        Those of the keys.
    """

    def __init__(self, batch: Combined, width: int, of_every_element: bool) -> None:
        self._batch, self._of_every_element = batch, of_every_element
        self.column, self._every = batch.room(width), batch.room(width, batch.elements)

    def write(self, to: int) -> None:
        """Write those of all elements. Allocates nothing."""
        self._batch.write(self.column, self._every, to, of_every_element=self._of_every_element)


def combined(channel: Channel, engine: Engine, keys: Rows, n: int) -> Combined | None:
    """A batch with each key once; None if a sample says that this would not pay. On a GPU, a sampled batch waits."""
    if not _FEWEST <= n <= _MOST or not _repeats(channel, engine, keys, n):
        return None
    return Combined(channel, engine, keys, n)


def _repeats(channel: Channel, engine: Engine, keys: Rows, n: int) -> bool:
    sample = sample_rows(engine, keys.at, keys.width, n, _SAMPLED, channel.stream())
    counts = np.unique(sample, return_counts=True)[1]
    most_of_one = _SAMPLED / channel.world * _MOST_OF_ONE
    return len(counts) < _LEAST_DISTINCT * _SAMPLED or int(counts.max()) > most_of_one
