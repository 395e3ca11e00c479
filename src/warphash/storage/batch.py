"""What an update or a mixed batch is given: one value, which storages, stores and arrays hand on."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..runtime.abi import Op

__all__ = ["COMBINING", "Batch", "MixedBatch"]

COMBINING = frozenset(Op) - {Op.KEEP, Op.REPLACE}
"""Operations that make one value of two. An element that is done twice counts twice."""


class Batch(NamedTuple):
    """An update of ``n`` elements, by the addresses of their arrays; 0 for an array that is not there.

    Attributes
    ----------
    keys, values
        Packed rows for `Rows`; words for `Slots` and their array.
    n
        Elements.
    op, kind
        What becomes of the value of a key that is there, and how the bits of a value are read (`abi.kind_of`).
    flags
        Receives what became of each element: a byte (`abi.Flag`).
    held
        Receives the value that each key has after the update. Only `Rows` write there.
    unique
        The caller vouches that the keys differ from each other and from those in the table.
    stream
        The stream of the engine that orders the work.
    shared
        Others may write to the keys and values meanwhile.
    """

    keys: int
    values: int
    n: int
    op: Op = Op.KEEP
    kind: int = 0
    flags: int = 0
    held: int = 0
    unique: bool = False
    stream: Any = None
    shared: bool = False

    def piece(self, at: int, n: int, key_bytes: int, value_bytes: int) -> Batch:
        """The ``n`` elements from number ``at`` on, of keys and values so wide."""
        values, held = (given and given + at * value_bytes for given in (self.values, self.held))
        flags = self.flags and self.flags + at
        return self._replace(keys=self.keys + at * key_bytes, values=values, n=n, flags=flags, held=held)


class MixedBatch(NamedTuple):
    """Operations that run all at once, by the addresses of their arrays; 0 for an array that is not there.

    Attributes
    ----------
    operations, keys, values
        Of each element: `abi.Operation` in a byte, its key, and the value that an insert or assign writes.
    n
        Elements.
    out_values, flags
        What each find found, and what each operation did (`abi.Flag`).
    default
        The value that all others answer, as kernels take it: a word, or the address of a row.
    """

    operations: int
    keys: int
    values: int
    n: int
    out_values: int
    flags: int
    default: int = 0
