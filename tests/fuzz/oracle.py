"""The oracle: a dict of plain Python keys, and the rules by which a verb may change the dict.

Keys are Python values that are equal exactly if the table's keys are: ints, strings, bytes, tuples, None. Values are
the bytes of their rows. If a key occurs several times in a batch, several outcomes are right; the model then follows
the table's flags, and fails if these are not allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from fuzz.example import require
from support.model import COMBINE

__all__ = ["PairModel", "Plain"]

Plain = Hashable


class PairModel:
    """The pairs that a table must hold. In a set, each value is empty."""

    def __init__(self) -> None:
        self.pairs: dict[Plain, bytes] = {}

    # ---- lookups
    def presence(self, keys: Iterable[Plain]) -> list[bool]:
        return [key in self.pairs for key in keys]

    def found(self, keys: Sequence[Plain], values: Sequence[bytes], flags: Sequence[bool], default: bytes) -> None:
        """Compare the answer of a find."""
        require(list(flags) == self.presence(keys), "find: wrong flags", self._differences(keys, flags))
        for key, value in zip(keys, values, strict=True):
            expected = self.pairs.get(key, default)
            require(value == expected, "find: wrong value", f"{key!r}: {value!r}, not {expected!r}")

    def contained(self, keys: Sequence[Plain], flags: Sequence[bool], verb: str = "contains") -> None:
        require(list(flags) == self.presence(keys), f"{verb}: wrong answer", self._differences(keys, flags))

    def _differences(self, keys: Sequence[Plain], flags: Sequence[bool]) -> str:
        pairs = zip(keys, flags, self.presence(keys), strict=False)
        wrong = [f"{key!r}: {flag}" for key, flag, right in pairs if flag != right]
        return f"{len(wrong)} of {len(keys)}: {wrong[:4]}, {len(flags)} answers"

    # ---- updates
    def inserted(self, keys: Sequence[Plain], values: Sequence[bytes], flags: Sequence[bool]) -> None:
        """Follow an insert: a new key has the value of the element that says it added the key."""
        self._one_adds_each_new(keys, flags)
        self.pairs.update((key, value) for key, value, flag in zip(keys, values, flags, strict=True) if flag)

    def assigned(self, keys: Sequence[Plain], values: Sequence[bytes], flags: Sequence[bool] | None, held: Any) -> None:
        """Follow an assign: a key has one of its values. ``held`` are the values that the table says it holds now."""
        if flags is not None:
            self._one_adds_each_new(keys, flags)
        allowed: dict[Plain, set[bytes]] = {}
        for key, value in zip(keys, values, strict=True):
            allowed.setdefault(key, set()).add(value)
        for key, value in zip(keys, held, strict=True):
            require(value in allowed[key], "assign: a value that nobody gave", f"{key!r} holds {value!r}")
            self.pairs[key] = value

    def upserted(self, keys: Sequence[Plain], values: Sequence[bytes], op: str, dtype: Any, flags: Any) -> None:
        """Follow an upsert of numbers: each key has its old value and all its values in the batch, combined."""
        self._one_adds_each_new(keys, flags)
        for key, value in zip(keys, values, strict=True):
            if key not in self.pairs or op == "last":
                self.pairs[key] = value
            elif op != "first":
                with np.errstate(all="ignore"):
                    left, right = (np.frombuffer(each, dtype.base) for each in (self.pairs[key], value))
                    self.pairs[key] = COMBINE[op](left, right).astype(dtype.base).tobytes()

    def erased(self, keys: Sequence[Plain], flags: Sequence[bool]) -> None:
        require(len(flags) == len(keys), "erase: wrong number of flags", f"{len(flags)} for {len(keys)}")
        said = Counter(key for key, flag in zip(keys, flags, strict=True) if flag)
        for key in set(keys):
            require(said[key] == (key in self.pairs), "erase: wrong flags", f"{key!r}: {said[key]} say they erased it")
            self.pairs.pop(key, None)

    def _one_adds_each_new(self, keys: Sequence[Plain], flags: Sequence[bool]) -> None:
        require(len(flags) == len(keys), "update: wrong number of flags", f"{len(flags)} for {len(keys)}")
        added = Counter(key for key, flag in zip(keys, flags, strict=True) if flag)
        for key in set(keys):
            expected = int(key not in self.pairs)
            require(added[key] == expected, "update: wrong flags", f"{key!r}: {added[key]} say they added it")

    # ---- the whole table
    def same(self, pairs: Iterable[tuple[Plain, bytes]], size: int, where: str) -> None:
        """Compare all pairs of a table."""
        listed = list(pairs)
        held = dict(listed)
        require(len(held) == len(listed) == size, f"{where}: a key twice, or a wrong length", f"{len(listed)}, {size}")
        missing = [key for key in self.pairs if key not in held]
        extra = [key for key in held if key not in self.pairs]
        require(not missing and not extra, f"{where}: wrong keys", f"missing {missing[:4]}, not asked for {extra[:4]}")
        wrong = [(key, value, self.pairs[key]) for key, value in listed if self.pairs[key] != value]
        require(not wrong, f"{where}: wrong values", f"{len(wrong)} of {len(listed)}: {wrong[:3]}")
