"""The state of a sharded table for ``torch.distributed.checkpoint``, which saves a dict and loads it for other ranks.

Layout of a state
    "table"                      text, the same on all ranks: JSON that tells the types of the rows
    "shard0000" to "shard4095"   bytes, of each shard that the rank owns: SHA-256 of the rest; packed rows of keys; then
                                 of values, and of ranks if the table has them

Why an entry for each shard: a rank owns whole shards. So it knows the names of its entries before it reads anything,
and no other rank writes an entry of the same name. Why bytes, and not tensors: the library reads a tensor into one of
the same shape, which has to be there before. The length of bytes need not be known.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from ..arrays.row_type import Column
from ..errors import CorruptFile, DtypeError, ParameterError
from ..storage.owners.owner_order import SHARDS
from ..table import copies
from ..table.base import BaseTable
from ..table.column_file import describe, rows_at, shown
from ..table.copies import TableContents
from ..table.scans import RANKS
from .channel import Channel
from .shard_order import OWNER_HASH, ShardOrder, columns_of, owned, row_bytes

__all__ = ["rebuilt", "state_of"]

_DIGEST_BYTES = 32
_TABLE = "table"


def _name(shard: int) -> str:
    return f"shard{shard:04}"


def _described(local: BaseTable[Any]) -> dict[str, Any]:
    """What has to be the same in a state and in the table that takes it."""
    parts = local._parts
    columns = dict(zip(("keys", "values"), map(_type_of, parts.front.stored), strict=False))
    if parts.facts.keeps_ranks:
        columns["ranks"] = _type_of(RANKS)
    return {"kind": parts.facts.kind, "columns": columns, "owner_hash": OWNER_HASH, "shards": SHARDS}


def _type_of(column: Column) -> dict[str, Any]:
    return describe(np.empty((0, *column.shape), column.dtype))


def state_of(channel: Channel, local: BaseTable[Any]) -> dict[str, Any]:
    """The state of a rank."""
    local._parts.facts.need("save")
    columns = columns_of(local._parts.copies.contents())
    order = ShardOrder(columns["keys"], channel.rank, channel.world)
    state: dict[str, Any] = {_TABLE: json.dumps(_described(local), sort_keys=True)}
    for shard in range(order.first, order.end):
        rows = b"".join(order.rows(column, shard, shard + 1).tobytes() for column in columns.values())
        state[_name(shard)] = hashlib.sha256(rows).digest() + rows
    return state


def rebuilt(channel: Channel, local: BaseTable[Any], state: dict[str, Any]) -> BaseTable[Any]:
    """A table like the local one, with the rows of a state.

    Raises
    ------
    ParameterError
        If the state lacks shards that the rank owns.
    DtypeError
        If it is that of another class of table, or has other types.
    CorruptFile
        If it is altered.
    """
    first, end = owned(channel.rank, channel.world)
    missing = [name for name in (_TABLE, *map(_name, range(first, end))) if name not in state]
    if missing:
        raise ParameterError(
            f"the state lacks {missing[0]} and {len(missing) - 1} more entries of rank {channel.rank} of "
            f"{channel.world}: load it by torch.distributed.checkpoint.load, which brings a rank what it owns"
        )
    expected = _described(local)
    if state[_TABLE] != json.dumps(expected, sort_keys=True):
        raise DtypeError(
            f"the state must be that of a table of {expected}, got {shown(state[_TABLE])}: make a table of its types"
        )
    types = expected["columns"]
    parts = [_rows(_name(shard), state[_name(shard)], list(types.values())) for shard in range(first, end)]
    rows = dict(zip(types, map(np.concatenate, zip(*parts, strict=True)), strict=True))
    description = local._parts.guarded.settled(local._parts.copies.typed_description_locked)
    held = TableContents(description, rows["keys"], rows.get("values"), rows.get("ranks"))
    return copies.loaded("the state", held, lambda: type(local)._rebuilt(held, channel.device, unique=False))


def _rows(name: str, entry: Any, types: list[Any]) -> list[Any]:
    """The rows of each column of one shard."""
    if not isinstance(entry, bytes) or hashlib.sha256(entry[_DIGEST_BYTES:]).digest() != entry[:_DIGEST_BYTES]:
        raise CorruptFile(f"{name} of the state does not match its digest: load an older state")
    body, at, columns = memoryview(entry)[_DIGEST_BYTES:], 0, []
    n = len(body) // sum(map(row_bytes, types))
    for described in types:
        rows, at = rows_at(body, at, n, described)
        columns.append(rows)
    return columns
