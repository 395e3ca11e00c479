"""Strings in a table of at most so many keys: a `StringRows` whose numbers are bounded.

A key that leaves is a number that leaves, and its string is one that is no key. So strings of keys that left are
forgotten as those of erased keys are (`HeldStrings.collect`), and their numbers are given to others. Ranks lie beside
numbers, and a new key has a new rank. The frequencies of "lfu" outlive their keys: they are those of the strings'
hashes (`ByHash`), which no other number inherits.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ...errors import TableFull
from ...runtime.engine import Buffer, Engine
from ..batch import Batch
from ..bounded.bounded_rows import BoundedRows, Least
from ..bounded.policies import Policy
from ..wide_rows import Touch
from .string_rows import StringRows
from .string_table import ROW_BYTES, StringTable

__all__ = ["HASH_BYTES", "BoundedStrings", "ByHash"]

HASH_BYTES = 8
"""What a policy is given for a key, in place of its string."""


class BoundedStrings(StringRows):
    """Of at most ``max_size`` strings: to a table, what a `BoundedRows` is.

    See `StringRows` for the parameters; ``inner`` is a `BoundedRows`.
    """

    inner: BoundedRows

    @property
    def piece(self) -> int:
        return self.inner.piece

    @property
    def policy(self) -> Policy:
        return self.inner.policy

    @property
    def evicted(self) -> int:
        return self.inner.evicted

    @property
    def unused(self) -> StringRows:
        return StringRows(self.strings, self.inner.unused, self.value_bytes, **self._rules)

    def update(self, batch: Batch, **ranking: int) -> None:
        """As `BoundedRows.update`. The strings of a piece get numbers once those before it have left."""
        widths = {"scores": (ranking.get("score_kind", 0) >> 8) // 8, "ranks": 8}
        for at, count in self.inner.pieces(batch.n):
            here = {name: given and given + at * widths.get(name, 0) for name, given in ranking.items()}
            try:
                super().update(batch.piece(at, count, ROW_BYTES, self.value_bytes), **here)
            except TableFull as error:
                if at and error.keys is not None:
                    raise TableFull(str(error), error.keys + at) from error
                raise

    def _holds_all_strings(self, stream: Any) -> bool:
        """False: an update is a use of the keys that are there, too."""
        return False

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any, out_ranks: int = 0) -> int:
        if not out_ranks:
            return super().scan(room, out_keys, out_values, stream)
        numbers = self._held.numbers(room)
        found = self.inner.scan(room, numbers.ptr if out_keys else 0, out_values, stream, out_ranks)
        if out_keys:
            self.strings.rows_of(numbers.ptr, min(found, room), out_keys)
        return found

    def copy(self, stream: Any) -> BoundedStrings:
        strings, inner = self._held.copied(stream), self.inner.copy(stream)
        if isinstance(inner.policy, ByHash):
            inner.policy.strings = strings
        return BoundedStrings(strings, inner, self.value_bytes, **self._rules)

    # ---- keys that leave
    def least(self, n: int, stream: Any) -> Least:
        """As `BoundedRows.least`: the rows of strings, which are valid until an update."""
        least = self.inner.least(n, stream)
        rows = self._engine.allocate(max(1, ROW_BYTES * least.n))
        self.strings.rows_of(least.keys.ptr, least.n, rows.ptr)
        return Least(rows, least.n, least.rank)

    def drop(self, keys: Buffer, n: int, stream: Any) -> None:
        self.inner.drop(self.look_up(keys.ptr, n), n, stream)


class ByHash:
    """A policy that computes ranks from keys, given the hashes of strings in place of their numbers.

    Parameters
    ----------
    policy
        For keys of `HASH_BYTES`.
    strings
        Has the numbers.
    """

    keeps_ranks = ranks_rise = False

    def __init__(self, engine: Engine, policy: Policy, strings: StringTable) -> None:
        self._engine, self._policy, self.strings = engine, policy, strings

    @property
    def nbytes(self) -> int:
        return self._policy.nbytes

    def touch(self, given: int, stream: Any) -> Touch | None:
        return None

    def record(self, keys: int, n: int, stream: Any, flags: int = 0) -> None:
        """As `Policy.record`. An access for which there is no memory is not noted."""
        with suppress(MemoryError):
            hashes = self._hashes(keys, n)
            self._policy.record(hashes.ptr, n, stream, flags)

    def rank(self, keys: int, n: int, out: int, stream: Any) -> None:
        hashes = self._hashes(keys, n)
        self._policy.rank(hashes.ptr, n, out, stream)

    def clear(self, stream: Any) -> None:
        self._policy.clear(stream)

    def resume(self, greatest: int) -> None:
        self._policy.resume(greatest)

    def copy(self, stream: Any) -> ByHash:
        """As `Policy.copy`; the caller gives the copy its own strings."""
        return ByHash(self._engine, self._policy.copy(stream), self.strings)

    def _hashes(self, numbers: int, n: int) -> Buffer:
        hashes = self._engine.allocate(max(1, HASH_BYTES * n))
        self.strings.hashes(numbers, n, hashes.ptr)
        return hashes
