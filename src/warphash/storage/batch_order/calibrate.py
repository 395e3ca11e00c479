"""From which size of a table lookups by parts in the cache pay (`lookups`), measured on a device.

Procedure. Tables of one kind are filled with random keys, each table with twice as many as the table before. Each table
is asked for all of its keys in another order, once as the keys come and once by parts. The least time of a few rounds
counts. The answer is the fewest parts of a table from which the way by parts is faster, in this table and in all larger
ones. The number is kept beside the compiled kernels (`Engine.remember`), so another device, another compiler or other
kernels have no number until they are measured. Until then, `lookups.parts_for` takes a number of another
device.
"""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..batch import Batch
from ..different_keys import different_keys
from ..lookup import find_as_given, find_by_parts
from .lookups import has_parts
from .parts import cached_parts_of

__all__ = ["NEVER", "LookupTimes", "calibrate", "fewest_parts", "time_lookups"]

NEVER = math.inf
"""The number of a device on which lookups by parts are slower, however large the table is."""


class LookupTimes(NamedTuple):
    """Seconds of as many lookups as a table has keys, of a table with so many parts."""

    parts: int
    as_given: float
    by_parts: float


def time_lookups(store: Any, keys: int, rounds: int = 5, seed: int = 1) -> LookupTimes | None:
    """Time lookups of a table like ``store`` with so many keys; None if there are less than two parts, or no kernels.

    Raises
    ------
    MemoryError
        If there is no memory for the table, and for the lookups.
    """
    engine, spec = store.engine, store.spec
    sibling = store.sibling(keys)
    bucket_bytes = spec.slots_per_bucket * spec.slot_bytes
    parts = cached_parts_of(sibling.state.array.buckets, bucket_bytes, engine.window_bytes)
    if parts is None or not has_parts(spec):
        return None
    drawn = different_keys(keys, spec.word_bytes, seed)
    held, asked = engine.from_host(drawn), engine.from_host(np.random.default_rng(seed).permutation(drawn))
    width = spec.value_word_bytes
    values, flags = engine.allocate(max(1, keys * width)), engine.allocate(keys)
    sibling.update(Batch(held.ptr, held.ptr if width else 0, keys, unique=True))
    sibling.finish()
    array, out = sibling.state.array, values.ptr if width else 0
    parts = cached_parts_of(array.buckets, bucket_bytes, engine.window_bytes)
    assert parts is not None
    times = [math.inf, math.inf]
    for _ in range(rounds):
        for way in (0, 1):
            engine.synchronize()
            start = perf_counter()
            if way == 0:
                find_as_given(array, asked.ptr, keys, out, flags.ptr, 0, None)
            elif not find_by_parts(array, asked.ptr, keys, out, flags.ptr, 0, parts, None):
                raise MemoryError("there is no memory for copies of the keys")
            engine.synchronize()
            times[way] = min(times[way], perf_counter() - start)
    return LookupTimes(parts[0], *times)


def fewest_parts(times: list[LookupTimes]) -> float:
    """The fewest parts from which all measured tables are asked faster by parts; `NEVER` if the largest is not."""
    number = NEVER
    for each in sorted(times, reverse=True):
        if each.by_parts >= each.as_given:
            break
        number = each.parts
    return number


def calibrate(store: Any, keys: int = 1 << 27) -> float:
    """Measure tables like ``store`` of up to ``keys`` keys, and keep the number for the lookups from now on."""
    sizes = [keys >> halved for halved in range(5, -1, -1)]
    number = fewest_parts([timed for size in sizes if (timed := time_lookups(store, size)) is not None])
    store.engine.remember(store.state.array.spec, number)
    return number
