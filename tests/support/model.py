"""The oracle: a dict of bit patterns, and the rules by which each verb may change the dict.

If a key occurs several times in a batch, several outcomes are right: exactly one element adds the key, and any of its
values may win. The model follows the table's choice, and fails if that choice is not allowed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np

from support.types import Array, as_bytes

OPS_OF_KIND = {
    "u": ("add", "min", "max", "or", "and", "xor", "first", "last"),
    "i": ("add", "min", "max", "or", "and", "xor", "first", "last"),
    "f": ("add", "min", "max", "first", "last"),
}
COMBINE: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "or": np.bitwise_or,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
}


class Model:
    """The pairs that a table must hold.

    Parameters
    ----------
    is_set
        Whether the table is a set, without values.
    """

    def __init__(self, is_set: bool = False) -> None:
        self.is_set = is_set
        self.pairs: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self.pairs)

    def copy(self) -> Model:
        twin = Model(self.is_set)
        twin.pairs = dict(self.pairs)
        return twin

    def _values(self, keys: Array, values: Array | None) -> list[bytes]:
        return [b""] * len(keys) if values is None or self.is_set else as_bytes(values)

    def _one_true_per_new_key(self, names: list[bytes], flags: Array) -> None:
        added = Counter(name for name, flag in zip(names, flags.tolist(), strict=True) if flag)
        for name in set(names):
            expected = 0 if name in self.pairs else 1
            assert added[name] == expected, (
                f"key {name!r}: {added[name]} of its elements say they added it, not {expected}"
            )

    def inserted(self, keys: Array, values: Array | None, flags: Array) -> None:
        """Follow an ``insert``: a new key has the value of the element whose flag is True."""
        names = as_bytes(keys)
        assert flags.dtype == bool and flags.shape == (len(keys),)
        self._one_true_per_new_key(names, flags)
        for name, value, flag in zip(names, self._values(keys, values), flags.tolist(), strict=True):
            if flag:
                self.pairs[name] = value

    def assigned(self, keys: Array, values: Array | None, flags: Array, table: Any) -> None:
        """Follow an ``assign``: each key has one of its values in the batch, whole."""
        names = as_bytes(keys)
        self._one_true_per_new_key(names, flags)
        choices = defaultdict(set)
        for name, value in zip(names, self._values(keys, values), strict=True):
            choices[name].add(value)
        held, found = table.find(keys)
        assert found.all(), f"{np.count_nonzero(~found)} assigned keys are absent"
        for name, value in zip(names, self._values(keys, held), strict=True):
            assert value in choices[name], f"key {name!r} holds {value!r}, which is none of {choices[name]}"
            self.pairs[name] = value

    def upserted(self, keys: Array, values: Array, op: str, flags: Array, table: Any) -> None:
        """Follow an ``upsert``: each key holds the combination of its old value and all its values in the batch."""
        names = as_bytes(keys)
        if op == "last":
            self.assigned(keys, values, flags, table)
            return
        self._one_true_per_new_key(names, flags)
        if op == "first":
            new = np.array([name not in self.pairs for name in names], bool)
            if new.any():
                self.assigned(keys[new], values[new], flags[new], table)
            return
        places: dict[bytes, int] = {}
        at = np.array([places.setdefault(name, len(places)) for name in names], np.intp)
        _, first = np.unique(at, return_index=True)
        begins = np.zeros(len(at), bool)  # the first element of each new key
        begins[first] = [name not in self.pairs for name in places]
        firsts = as_bytes(values[first])
        state = np.frombuffer(b"".join(map(self.pairs.get, places, firsts)), values.dtype).copy()
        COMBINE[op].at(state, at[~begins], values[~begins])
        self.pairs.update(zip(places, as_bytes(state), strict=True))

    def erased(self, keys: Array, flags: Array) -> None:
        """Follow an ``erase``: each distinct key that was present has exactly one True."""
        names = as_bytes(keys)
        said = Counter(name for name, flag in zip(names, flags.tolist(), strict=True) if flag)
        for name in set(names):
            expected = int(name in self.pairs)
            assert said[name] == expected, f"key {name!r}: {said[name]} elements say they erased it, not {expected}"
            self.pairs.pop(name, None)

    def agrees(self, table: Any, *asked: Array) -> None:
        """Compare the whole table with the model: size, pairs, and find and contains of each key of ``asked``."""
        assert len(table) == len(self.pairs)
        held_keys = np.asarray(table.keys())
        assert len(held_keys) == len(self.pairs)
        names = as_bytes(held_keys)
        if self.is_set:
            assert set(names) == set(self.pairs)
        else:
            item_keys, item_values = table.to_arrays()
            listed = dict(zip(as_bytes(item_keys), as_bytes(item_values), strict=True))
            assert listed == self.pairs
        for keys, named in ((held_keys, names), *((keys, as_bytes(keys)) for keys in asked)):
            present = np.array([name in self.pairs for name in named], bool)
            np.testing.assert_array_equal(table.contains(keys), present)
            if not self.is_set:
                self._finds(table, keys, named, present)
        table.check()

    def finds(self, table: Any, keys: Array) -> None:
        """Compare the answers of ``find`` with the model."""
        names = as_bytes(keys)
        self._finds(table, keys, names, np.array([name in self.pairs for name in names], bool))

    def _finds(self, table: Any, keys: Array, names: list[bytes], present: Array) -> None:
        values, found = table.find(keys)
        assert len(values) == len(found) == len(keys)
        np.testing.assert_array_equal(found, present)
        held = as_bytes(values)
        for i in np.flatnonzero(found).tolist():
            assert held[i] == self.pairs[names[i]], f"key {names[i]!r} holds {held[i]!r}, not {self.pairs[names[i]]!r}"
