"""The state of a sharded table for ``torch.distributed.checkpoint``, which saves a dict and loads it for other ranks.

Layout of a state
    "table"                      text, the same on all ranks: JSON that tells the types of the rows
    "shard0000" to "shard4095"   bytes, of each shard that the rank owns: SHA-256 of the rest; packed rows of keys; then
                                 of values, and of ranks if the table has them. If rows have any length, their number,
                                 uint64, comes first, and the lengths of the rows of a column ahead of these, int64

Why an entry for each shard: a rank owns whole shards. So it knows the names of its entries before it reads anything,
and no other rank writes an entry of the same name. Why bytes, and not tensors: the library reads a tensor into one of
the same shape, which has to be there before. The length of bytes need not be known.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from ..errors import CorruptFile, DtypeError, ParameterError
from ..storage.owners.owner_order import SHARDS
from ..table import copies
from ..table.archive import type_in_header
from ..table.base import BaseTable
from ..table.column_file import shown
from .channel import Channel
from .shard_order import OWNER_HASH, ShardOrder, columns_of, contents_of, owned, stored_types, widths_of

__all__ = ["rebuilt", "state_of"]

_DIGEST_BYTES, _COUNT_BYTES = 32, 8
_TABLE = "table"


def _name(shard: int) -> str:
    return f"shard{shard:04}"


def _described(local: BaseTable[Any]) -> dict[str, Any]:
    """What has to be the same in a state and in the table that takes it."""
    facts, columns = local._parts.facts, {name: type_in_header(each) for name, each in stored_types(local).items()}
    about = {"kind": facts.kind, "columns": columns, "owner_hash": OWNER_HASH, "shards": SHARDS}
    rules = {name: rule for name, rule in facts.rules.items() if rule not in (None, "raise")}
    return {**about, "rules": rules} if rules else about


def state_of(channel: Channel, local: BaseTable[Any]) -> dict[str, Any]:
    """The state of a rank."""
    local._parts.facts.need("save")
    held = local._parts.copies.contents()
    columns, has_count = columns_of(held), None in widths_of(stored_types(local)).values()
    order = ShardOrder(held.keys, channel.rank, channel.world)
    state: dict[str, Any] = {_TABLE: json.dumps(_described(local), sort_keys=True)}
    for shard in range(order.first, order.end):
        count = order.counts[shard - order.first].to_bytes(_COUNT_BYTES, "little") if has_count else b""
        rows = b"".join((count, *(order.rows(column, shard, shard + 1).tobytes() for column in columns.values())))
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
    types = stored_types(local)
    widths = widths_of(types)
    parts = [_rows(_name(shard), state[_name(shard)], widths) for shard in range(first, end)]
    columns = {name: memoryview(b"".join(part[name] for part in parts)) for name in widths}
    description = local._parts.guarded.settled(local._parts.copies.typed_description_locked)
    try:
        held = contents_of(description, types, columns)
    except ValueError as error:
        raise CorruptFile(f"the state has no rows as it says: {error}; load an older state") from None
    return copies.loaded("the state", held, lambda: type(local)._rebuilt(held, channel.device, unique=False))


def _rows(name: str, entry: Any, widths: dict[str, int | None]) -> dict[str, memoryview]:
    """The bytes of each column of one shard."""
    if not isinstance(entry, bytes) or hashlib.sha256(entry[_DIGEST_BYTES:]).digest() != entry[:_DIGEST_BYTES]:
        raise CorruptFile(f"{name} of the state does not match its digest: load an older state")
    body, at = memoryview(entry)[_DIGEST_BYTES:], 0
    columns: dict[str, memoryview] = {}
    if None in widths.values():
        n, at = int.from_bytes(body[:_COUNT_BYTES], "little"), _COUNT_BYTES
    else:
        n = len(body) // sum(width for width in widths.values() if width)
    for column, width in widths.items():
        if width is None:
            lengths = np.frombuffer(columns[f"{column}_lengths"], "<i8")
            size = int(np.maximum(lengths, 0).sum())
        else:
            size = n * width
        columns[column] = body[at : at + size]
        at += size
    return columns
