"""An insert, and the value that each key has after it: one walk over the table for most batches, on a CPU.

A batch of known keys is answered by one find. A batch of new keys is answered by one insert: where an element added its
key, its own value is the answer. A sample of the batch tells which of both comes first; the other one then gets the
elements that are left. Where neither would leave few, all keys are inserted and then found.

Times with one thread for pairs of 8 + 8 bytes, in place of an insert and a find of all keys (design
``bucketed_cuckoo``): of 1 M known keys 0.3 to 0.45, of new keys 0.75, of as many known as new keys 1. Of 4,096 known
keys 0.4, of new keys 0.9, of both 1.04.

On a GPU, all keys are inserted and then found, too: the host would wait for counts that it does not need otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from ..arrays.adapters.numpy import address_of
from ..errors import TableFull
from ..runtime.abi import Flag, Op
from ..runtime.memory import bytes_at
from .batch import Batch
from .chosen_elements import flagged
from .elements import with_flags
from .lookup import launch_find
from .slots import Slots

__all__ = ["FEWEST_SAMPLED", "find_or_insert", "insert_missing"]

FEWEST_SAMPLED = 1 << 12
"""Elements of a batch. A sample of fewer, which takes 6 us, is not worth its time."""

_FEWEST_PARTED = 1 << 14
"""Elements of a batch. Less time is saved by an insert of the missing ones of fewer, or by a find of the others, than
it takes to choose them."""

_FEWEST_PARTED_INSERT = 1 << 16
"""As `_FEWEST_PARTED`, where no values are asked for: an insert of all keys is all that is saved."""

_RUN, _SAMPLED = 1 << 5, 1 << 8
"""Keys of a sample: of a small batch neighbours, and of a larger one keys from all over the batch."""

_LEAST_KNOWN, _LEAST_ADDED = 3 / 4, 7 / 8
"""Shares of a larger batch that the first walk has to answer. Otherwise it takes less time to insert and find all."""

Update = Callable[[Batch], None]
"""Updates the store."""


def find_or_insert(store: Slots, update: Update, batch: Batch, absent: int) -> None:
    """Update a store, and write to ``batch.held`` the words that its keys have then.

    Parameters
    ----------
    batch
        Of words.
    absent
        What `launch_find` gives for an absent key. There is none.
    """
    if store.engine.lanes > 1 or batch.op != Op.KEEP or batch.n < FEWEST_SAMPLED:
        update(batch)
        return _find(store, batch, absent)
    store.finish(batch.stream)
    if not batch.flags:
        batch, _own_flags = with_flags(store.engine, batch)
    if store.size and _seems_known(store, batch, _FEWEST_PARTED):
        _find_first(store, update, batch, absent)
    else:
        _insert_first(store, update, batch, absent)


def insert_missing(store: Slots, update: Update, batch: Batch) -> None:
    """Update a store. Find the keys of a batch first if they seem to be known, and insert the missing ones alone.

    An insert of a known key takes twice as long as a find. A table that counts the probes of inserts has them all.

    Parameters
    ----------
    batch
        Of at least `FEWEST_SAMPLED` elements, in the memory of a CPU.
    """
    is_plain = batch.op == Op.KEEP and not batch.unique and not store.options.counts_probes
    if not is_plain or not store.size:  # a build needs no cleared memory
        return update(batch)
    store.finish(batch.stream)
    if not store.size or not _seems_known(store, batch, _FEWEST_PARTED_INSERT):
        return update(batch)
    if not batch.flags:
        batch, _own_flags = with_flags(store.engine, batch)
    _find_first(store, update, batch, 0)


def _find(store: Slots, batch: Batch, absent: int, found: int = 0) -> None:
    """Write the words of the keys that are there, and where ``found`` is, which ones are."""
    if store.recovery.step is not None:
        store.finish(batch.stream)
    launch_find(store.state.array, batch.keys, batch.n, batch.held, found, absent, batch.stream)


def _seems_known(store: Slots, batch: Batch, fewest_parted: int) -> bool:
    """Whether so many keys of a sample are there that a find should come first: all, if the batch is not parted."""
    n, width, keys = batch.n, store.spec.word_bytes, batch.keys
    if n < fewest_parted:
        sampled, least, at = _RUN, _RUN, keys + n // 2 * width
    else:
        sampled, least = _SAMPLED, int(_LEAST_KNOWN * _SAMPLED)
        rows = bytes_at(keys, n * width).reshape(n, width)[:: n // sampled][:sampled].copy()
        at = address_of(rows)
    found = np.empty(sampled, np.uint8)
    launch_find(store.state.array, at, sampled, 0, address_of(found), 0, batch.stream)
    return bool(np.count_nonzero(found) >= least)


def _find_first(store: Slots, update: Update, batch: Batch, absent: int) -> None:
    """Find all keys, and insert the missing ones."""
    engine, n, stream, width = store.engine, batch.n, batch.stream, store.spec.value_word_bytes
    _find(store, batch, absent, batch.flags)
    known = np.count_nonzero(bytes_at(batch.flags, n))
    if known < n / 2:  # the sample was not like the batch
        return _insert_first(store, update, batch, absent)
    if known == n:
        return engine.fill(batch.flags, Flag.PRESENT, n, stream)
    missing = flagged(engine, batch.flags, n, Flag.PRESENT, stream)
    keys = missing.packed(batch.keys, store.spec.word_bytes, stream)
    values = missing.packed(batch.values, width, stream)
    held = engine.allocate(missing.n * width, stream) if batch.held else None
    flags, held_at = engine.allocate(missing.n, stream), 0 if held is None else held.ptr
    some = batch._replace(keys=keys.ptr, values=values.ptr, n=missing.n, flags=flags.ptr, held=held_at)
    try:
        _insert_first(store, update, some, absent)
    except TableFull as error:
        if error.keys is None:
            raise
        raise TableFull(str(error), missing.elements(stream)[error.keys]) from error
    engine.fill(batch.flags, Flag.PRESENT, n, stream)
    if held is not None:
        missing.put(held, batch.held, width, stream)
    missing.put(flags, batch.flags, 1, stream)


def _insert_first(store: Slots, update: Update, batch: Batch, absent: int) -> None:
    """Insert all keys. Then find those whose elements have not added them if these are few, and otherwise all."""
    engine, n, stream, width = store.engine, batch.n, batch.stream, store.spec.value_word_bytes
    update(batch)
    if not batch.held:
        return None
    added = np.count_nonzero(bytes_at(batch.flags, n))
    if added == n:
        return engine.copy(batch.held, batch.values, n * width, stream)
    if n >= _FEWEST_PARTED and added >= _LEAST_ADDED * n:
        with suppress(MemoryError):  # the keys are in; a find of all needs no memory
            others = flagged(engine, batch.flags, n, Flag.PRESENT, stream)
            keys = others.packed(batch.keys, store.spec.word_bytes, stream)
            values = engine.allocate(others.n * width, stream)
            _find(store, batch._replace(keys=keys.ptr, n=others.n, held=values.ptr), absent)
            engine.copy(batch.held, batch.values, n * width, stream)
            return others.put(values, batch.held, width, stream)
    _find(store, batch, absent)
