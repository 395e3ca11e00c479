"""The oracle of a `MultiMap`: a dict of lists of bit patterns.

Only one thing is free: the order of a key's values that come in the same batch. The model reads this order from the
table once and checks it. From then on, every answer is determined.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import numpy as np

from support.types import Array, as_bytes


def _once(keys: Array) -> Array:
    """The distinct keys."""
    bits = np.ascontiguousarray(keys).view(f"V{keys.dtype.itemsize}")
    return np.unique(bits).view(keys.dtype)


class MultiModel:
    """The pairs that a `MultiMap` must hold: the values of each key, oldest first."""

    def __init__(self) -> None:
        self.values: dict[bytes, list[bytes]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.values.values()))

    def read(self, table: Any) -> None:
        """Take over all pairs of a table."""
        self.values = self._held(table, _once(np.asarray(table.keys())))

    def inserted(self, keys: Array, values: Array, table: Any) -> None:
        """Follow an ``insert``: the new values of a key come after its old values."""
        new = defaultdict(list)
        for name, value in zip(as_bytes(keys), as_bytes(values), strict=True):
            new[name].append(value)
        for name, held in self._held(table, _once(keys)).items():
            old = self.values.get(name, [])
            assert held[: len(old)] == old, f"key {name!r}: the values of earlier batches are {held}, not {old}"
            assert Counter(held[len(old) :]) == Counter(new[name]), f"key {name!r}: other values than were inserted"
            self.values[name] = held

    def erased(self, keys: Array, flags: Array) -> None:
        """Follow an ``erase``: each element removes the first pair of its key, if the key has any pair left."""
        names = as_bytes(keys)
        assert flags.dtype == bool and flags.shape == (len(names),)
        said = Counter(name for name, flag in zip(names, flags.tolist(), strict=True) if flag)
        for name, elements in Counter(names).items():
            held = self.values.get(name, [])
            expected = min(elements, len(held))
            assert said[name] == expected, f"key {name!r}: {said[name]} pairs were erased, not {expected}"
            self._keep(name, held[expected:])

    def erased_all(self, keys: Array, counts: Array) -> None:
        """Follow an ``erase_all``: the elements of a key together remove all of its pairs."""
        names = as_bytes(keys)
        assert counts.dtype == np.uint32 and counts.shape == (len(names),)
        said: Counter[bytes] = Counter()
        for name, count in zip(names, counts.tolist(), strict=True):
            said[name] += count
        for name, count in said.items():
            assert count == len(self.values.get(name, [])), f"key {name!r}: {count} pairs were erased"
            self._keep(name, [])

    def agrees(self, table: Any, *asked: Array) -> None:
        """Compare the whole table with the model, by every verb that reads. Also look up the keys of ``asked``."""
        assert len(table) == len(self)
        keys, values = table.to_arrays()
        pairs = Counter(zip(as_bytes(keys), as_bytes(values), strict=True))
        assert pairs == Counter((name, value) for name, its in self.values.items() for value in its)
        assert Counter(as_bytes(table.keys())) == Counter(as_bytes(keys))
        assert Counter(as_bytes(table.values())) == Counter(as_bytes(values))
        for some in (_once(keys), *asked):
            self.answers(table, some)
        table.check()

    def answers(self, table: Any, keys: Array) -> None:
        """Compare ``find``, ``find_all``, ``count`` and ``contains`` of these keys with the model."""
        held = [self.values.get(name, []) for name in as_bytes(keys)]
        there = np.array([bool(its) for its in held], bool)
        counts = np.asarray(table.count(keys))
        assert counts.dtype == np.uint32
        np.testing.assert_array_equal(counts, [len(its) for its in held])
        np.testing.assert_array_equal(table.contains(keys), there)
        first, found = table.find(keys)
        np.testing.assert_array_equal(found, there)
        default = np.zeros(1, first.dtype).tobytes()
        assert as_bytes(first) == [its[0] if its else default for its in held]
        values, offsets = table.find_all(keys)
        assert offsets.dtype == np.int64 and offsets.shape == (len(held) + 1,) and offsets[0] == 0
        assert offsets[-1] == len(values)
        names = as_bytes(values)
        assert [names[a:b] for a, b in pairwise(offsets.tolist())] == held

    def _held(self, table: Any, keys: Array) -> dict[bytes, list[bytes]]:
        values, offsets = table.find_all(keys)
        values = as_bytes(values)
        each = [values[a:b] for a, b in pairwise(np.asarray(offsets).tolist())]
        return dict(zip(as_bytes(keys), each, strict=True))

    def _keep(self, name: bytes, values: list[bytes]) -> None:
        self.values.pop(name, None)
        if values:
            self.values[name] = values
