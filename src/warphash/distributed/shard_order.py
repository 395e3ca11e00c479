"""The rows of a rank's table, shard by shard: what its checkpoints and its state hold.

A rank owns whole shards (``kernels/owners/owner.cuh``). So rows that one number of ranks has written in this order are
read by any other number of ranks: each takes the shards that it owns.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import WarphashError
from ..runtime.devices import engine_for
from ..storage.owners.owner_order import SHARDS, shards_of
from ..table.column_file import row_type
from ..table.copies import TableContents

__all__ = ["OWNER_HASH", "ShardOrder", "columns_of", "owned", "row_bytes", "shard_counts"]

OWNER_HASH = "murmur3-64"
"""The name of the function from keys to shards, in files."""

Array = npt.NDArray[Any]


def owned(rank: int, world: int) -> tuple[int, int]:
    """The first shard of a rank, and the one behind its last."""
    return -(-rank * SHARDS // world), -(-(rank + 1) * SHARDS // world)


def columns_of(held: TableContents) -> dict[str, Array]:
    """The columns of a table's contents, by name."""
    columns = {"keys": held.keys, "values": held.values, "ranks": held.ranks}
    return {name: np.ascontiguousarray(column) for name, column in columns.items() if column is not None}


def row_bytes(described: Any) -> int:
    """The bytes of a row of a type, as a file tells it."""
    dtype, shape = row_type(described)
    return dtype.itemsize * math.prod(shape)


def shard_counts(keys: Array) -> Array:
    """How many of some keys are in each shard: int64[SHARDS]."""
    return np.bincount(_shards(keys), minlength=SHARDS)


class ShardOrder:
    """The order of keys by their shards. Keys of one shard keep their order.

    Parameters
    ----------
    keys
        Of a rank.
    rank, world
        Of all keys, this rank must be the owner.

    Attributes
    ----------
    first, end
        Of the shards that the rank owns.
    counts
        How many keys are in each of these shards.

    Raises
    ------
    WarphashError
        If the rank does not own a key.
    """

    def __init__(self, keys: Array, rank: int, world: int) -> None:
        self.first, self.end = owned(rank, world)
        shards = _shards(keys)
        if len(shards) and not self.first <= shards.min() <= shards.max() < self.end:
            raise WarphashError(
                f"rank {rank} of {world} has keys of shards {shards.min()} to {shards.max()}, and owns {self.first} to "
                f"{self.end - 1}: change a sharded table by its own verbs, and not by those of its local table"
            )
        self.counts: list[int] = np.bincount(shards, minlength=SHARDS)[self.first : self.end].tolist()
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])
        self._order = np.argsort(shards, kind="stable")

    def rows(self, column: Array, first: int, end: int) -> Array:
        """The rows of some shards: their bytes, uint8[...]."""
        begin, stop = (self._starts[shard - self.first] for shard in (first, end))
        return column[self._order[begin:stop]].reshape(-1).view(np.uint8)


def _shards(keys: Array) -> npt.NDArray[np.uint16]:
    """The shards of keys in host memory."""
    out = np.empty(len(keys), np.uint16)
    if len(keys):
        shards_of(engine_for("cpu"), keys.ctypes.data, keys.nbytes // len(keys), len(keys), out.ctypes.data, None)
    return out
