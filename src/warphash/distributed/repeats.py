"""Batches that repeat their keys: each key is asked for once, and its answer given to all its elements.

A sample of the batch tells whether that pays. Each rank decides for itself, and no other rank needs to know. An owner
then gets a key at most once from each rank, however hot the key is.

If few keys are hot, and the others seldom repeat, the hot ones are apart: they have one row each on the way to the
owners (``kernels/owners``). Otherwise, all keys are numbered. So they are if keys have more than 8 bytes, or if the
values of a key have to be combined.

The elements of a key are numbered alike (`storage.groups.numbering`), in the order of first appearance. So the first
elements of the keys are the batch that is sent. Of a lookup, each element takes the answer by its number. Of an update,
the first element of a key answers for the key, and the others have added or erased nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ..runtime.abi import MOST_APART, MOST_OWNERS
from ..runtime.engine import Engine
from ..storage.batch_order.sample import sample_rows
from ..storage.groups.numbering import number
from .channel import Channel
from .route import Column, Rows, copied

__all__ = ["Answers", "Combined", "Repeats", "repeats_of"]

_FEWEST = 1 << 15
"""Elements from which on a batch is sampled."""

_SAMPLED = 1 << 10
_LEAST_DISTINCT = 1 / 2
"""Of a sample without its hot keys. If fewer keys of it differ, the batch is combined."""

_MOST_OF_ONE = 1 / 4
"""Of the even share of a rank: a key that has more of the sample is hot."""

_WORD_BYTES = 8
"""Of keys that can be apart, at most."""

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

    def __init__(self, channel: Channel, engine: Engine, keys: Rows | Column, n: int) -> None:
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
        firsts = copied(channel, engine, Rows(made.firsts.ptr, _NUMBER_BYTES), made.size)
        self._numbers = numbers.view(torch.int32)
        self._firsts = firsts.rows(0, made.size).view(torch.int32).to(torch.int64)  # as `index_copy_` takes them

    def first(self, rows: Rows) -> Column:
        """The rows of the first elements."""
        every = copied(self._channel, self._engine, rows, self._elements).matrix(self._elements)
        return Column(every.index_select(0, self._firsts).view(-1), rows.width)

    def room(self, width: int) -> Column:
        """Room for an answer of some bytes for each key."""
        return Column(self._channel.memory(self.n * width), width)

    def answers(self, width: int, *, of_every_element: bool) -> Answers:
        """Room for answers of some bytes.

        Parameters
        ----------
        of_every_element
            Each element of a key gets the answer of the key. If not, the first one does, and the others get zeros.
        """
        every = Column(self._channel.memory(self._elements * width), width)
        return Answers(self, self.room(width), every, of_every_element)

    def spread(self, answers: Column, every: Column, to: int, *, of_every_element: bool) -> None:
        """Write answers of keys as those of all elements, by way of ``every``. Allocates nothing."""
        n, given = self._elements, answers.matrix(self.n)
        if of_every_element:
            torch.index_select(given, 0, self._numbers, out=every.matrix(n))
        else:
            every.matrix(n).zero_().index_copy_(0, self._firsts, given)
        self._engine.copy(to, every.at, n * answers.width, self._channel.stream())


class Answers(NamedTuple):
    """Room for answers of the owners.

    Attributes
    ----------
    column
        For those of the keys.
    """

    batch: Combined
    column: Column
    every: Column
    of_every_element: bool

    def write(self, to: int) -> None:
        """Write those of all elements. Allocates nothing."""
        self.batch.spread(self.column, self.every, to, of_every_element=self.of_every_element)


class Repeats(NamedTuple):
    """How a batch repeats its keys.

    Attributes
    ----------
    often
        Many of its keys repeat, or they are too wide to be apart, and some are hot.
    hot
        The hot keys, as `OwnerOrder` takes keys apart.
    """

    often: bool
    hot: npt.NDArray[np.uint64]


def repeats_of(channel: Channel, engine: Engine, keys: Rows, n: int) -> Repeats:
    """What a sample of a batch says. On a GPU, a sampled batch waits."""
    none = np.empty(0, np.uint64)
    if not _FEWEST <= n <= _MOST:
        return Repeats(often=False, hot=none)
    sample = sample_rows(engine, keys.at, keys.width, n, _SAMPLED, channel.stream())
    values, counts = np.unique(sample, return_counts=True)
    is_hot = counts > _SAMPLED / channel.world * _MOST_OF_ONE
    others = counts[~is_hot]
    may_be_apart = keys.width <= _WORD_BYTES and is_hot.sum() <= min(MOST_APART, MOST_OWNERS - channel.world)
    if len(others) < _LEAST_DISTINCT * others.sum() or (is_hot.any() and not may_be_apart):
        return Repeats(often=True, hot=none)
    if not is_hot.any():
        return Repeats(often=False, hot=none)
    rows = values[is_hot].view(np.uint8).reshape(-1, keys.width)
    return Repeats(often=False, hot=np.pad(rows, ((0, 0), (0, _WORD_BYTES - keys.width))).view(np.uint64).ravel())
