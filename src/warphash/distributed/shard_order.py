"""The rows of a rank's table, shard by shard: what its checkpoints and its state hold.

A rank owns whole shards (``kernels/owners/owner.cuh``). So rows that one number of ranks has written in this order are
read by any other number of ranks: each takes the shards that it owns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..arrays.row_type import Column
from ..arrays.strings import NULL_LENGTH, StringArray, StringRows
from ..errors import WarphashError
from ..runtime.devices import engine_for
from ..storage.owners.owner_order import SHARDS, shards_of
from ..storage.strings.string_table import packed
from ..table.archive import type_in_header
from ..table.base import BaseTable
from ..table.column_file import rows_at, strings_of
from ..table.copies import TableContents
from ..table.scans import RANKS
from .ragged import HASH_BYTES, LENGTH_BYTES, write_hashes

__all__ = [
    "OWNER_HASH",
    "Array",
    "ShardOrder",
    "Stored",
    "columns_of",
    "contents_of",
    "named_types",
    "owned",
    "shard_counts",
    "shards_of_keys",
    "stored_types",
    "widths_of",
]

OWNER_HASH = "murmur3-64"
"""The name of the function from keys to shards, in files. Keys of any length have a hash ahead of it (`ragged`)."""

Array = npt.NDArray[Any]
Keys = Array | StringArray
Stored = Array | StringRows
"""A column as a file has it: rows of a fixed width, or of any length."""


def owned(rank: int, world: int) -> tuple[int, int]:
    """The first shard of a rank, and the one behind its last."""
    return -(-rank * SHARDS // world), -(-(rank + 1) * SHARDS // world)


def columns_of(held: TableContents) -> dict[str, Stored]:
    """The columns of a table's contents, by the names of their files.

    Of rows of any length, these are two: their lengths, int64, -1 of a null; and their bytes.
    """
    made: dict[str, Stored] = {}
    for name, column in (("keys", held.keys), ("values", held.values), ("ranks", held.ranks)):
        if isinstance(column, StringArray):
            made |= {f"{name}_lengths": column.lengths, name: column.rows}
        elif column is not None:
            made[name] = np.ascontiguousarray(column)
    return made


def stored_types(local: BaseTable[Any]) -> dict[str, Column]:
    """The columns of a table, by their names."""
    parts = local._parts
    return named_types(
        [*parts.front.stored, *[RANKS] * parts.facts.keeps_ranks], has_values=len(parts.front.stored) > 1
    )


def named_types(columns: Sequence[Column], *, has_values: bool) -> dict[str, Column]:
    """Columns of keys, of values if there are any, and of ranks if there are any, by their names."""
    return dict(zip(["keys", *["values"] * has_values, "ranks"], columns, strict=False))


def widths_of(types: Mapping[str, Column]) -> dict[str, int | None]:
    """The bytes of a row of each file of `columns_of`; None for rows of any length."""
    made: dict[str, int | None] = {}
    for name, column in types.items():
        if column.has_any_length:
            made |= {f"{name}_lengths": LENGTH_BYTES, name: None}
        else:
            made[name] = column.nbytes
    return made


def contents_of(
    description: dict[str, Any], types: Mapping[str, Column], files: Mapping[str, memoryview]
) -> TableContents:
    """The contents of a table, of the bytes of all columns of `columns_of`.

    Raises
    ------
    ValueError
        If there are no such rows.
    """
    made: dict[str, Any] = {}
    for name, column in types.items():
        body, typed = files[name], cast("Any", column)
        if column.has_any_length:
            made[name] = strings_of(np.frombuffer(files[f"{name}_lengths"], "<i8"), body, typed.text)
        elif column.is_of_columns:
            made[name] = np.frombuffer(body, column.dtype)
        else:
            made[name] = rows_at(body, 0, len(body) // column.nbytes, type_in_header(column))[0]
        data = made[name].data if column.has_any_length else made[name]
        if data.nbytes != len(body) or len(made[name]) != len(made["keys"]):
            raise ValueError(
                f"{name} have {len(made[name]):,} rows of {data.nbytes:,} bytes, and {len(body):,} are there"
            )
    return TableContents(description, made["keys"], made.get("values"), made.get("ranks"))


def shard_counts(keys: Keys) -> Array:
    """How many of some keys are in each shard: int64[SHARDS]."""
    return np.bincount(shards_of_keys(keys), minlength=SHARDS)


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

    def __init__(self, keys: Keys, rank: int, world: int) -> None:
        self.first, self.end = owned(rank, world)
        shards = shards_of_keys(keys)
        if len(shards) and not self.first <= shards.min() <= shards.max() < self.end:
            raise WarphashError(
                f"rank {rank} of {world} has keys of shards {shards.min()} to {shards.max()}, and owns {self.first} to "
                f"{self.end - 1}: change a sharded table by its own verbs, and not by those of its local table"
            )
        self.counts: list[int] = np.bincount(shards, minlength=SHARDS)[self.first : self.end].tolist()
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])
        self._order = np.argsort(shards, kind="stable")

    def rows(self, column: Stored, first: int, end: int) -> npt.NDArray[np.uint8]:
        """The rows of some shards: their bytes, uint8[...]."""
        begin, stop = (self._starts[shard - self.first] for shard in (first, end))
        order = self._order[begin:stop]
        if isinstance(column, StringRows):
            some = column.rows[order]
            return packed(engine_for("cpu"), some.ctypes.data, len(some))[1]
        return column[order].reshape(-1).view(np.uint8)

    def nbytes(self, column: StringRows) -> list[int]:
        """The bytes of rows of any length in each shard."""
        lengths = column.rows["length"][self._order]
        ends = np.concatenate([[0], np.cumsum(np.where(lengths == np.uint64(NULL_LENGTH), 0, lengths.view(np.int64)))])
        counts: list[int] = np.diff(ends[self._starts]).tolist()
        return counts


def shards_of_keys(keys: Keys) -> npt.NDArray[np.uint16]:
    """The shards of keys in host memory."""
    n, engine = len(keys), engine_for("cpu")
    out = np.empty(n, np.uint16)
    if not isinstance(keys, StringArray):
        at, width = keys.ctypes.data, keys.nbytes // max(1, n)
    else:
        strings, hashes = keys.rows, np.empty(n, np.uint64)
        write_hashes(engine, strings.rows.ctypes.data, n, hashes.ctypes.data)
        at, width = hashes.ctypes.data, HASH_BYTES
    if n:
        shards_of(engine, at, width, n, out.ctypes.data, None)
    return out
