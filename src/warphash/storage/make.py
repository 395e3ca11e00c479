"""Makes the storage of a table: a store of its design's family, behind a codec or a row store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..designs.base import Design
from ..runtime.engine import FAMILIES_IN_PLACE, Engine, KernelSpec
from .policies import slots_for
from .storage import Storage, Store, StoreOptions

__all__ = ["make_storage"]


_spec = cache(KernelSpec)
"""One object for all tables of a kind, which knows its widths and its hash already."""


def _word(nbytes: int) -> int:
    return 4 if nbytes <= 4 else 8


def _widths(key_bytes: int, value_bytes: int) -> tuple[int, int]:
    """Widths of keys and values as kernels take them: words, else a power of two for keys and words of 4 for values."""
    key = _word(key_bytes) if key_bytes <= 8 else 1 << (key_bytes - 1).bit_length()
    row = key_bytes > 8 or value_bytes > 8
    return key, -(-value_bytes // 4) * 4 if row else _word(value_bytes) if value_bytes else 0


def make_storage(
    engine: Engine,
    design: Design,
    parameters: Mapping[str, Any],
    *,
    key_bytes: int,
    value_bytes: int,
    capacity: int,
    seed: int,
    family: str,
    options: StoreOptions,
    multi: bool = False,
) -> Storage:
    """Make an empty storage for ``capacity`` keys.

    Keys and values of up to 8 bytes go into slots; in subtables and beside tickets, wider ones, too. In other families,
    wider keys or values go into rows.

    Parameters
    ----------
    family
        Of hash functions: one of `hash_constants.HASHES`.
    multi
        Keys repeat.
    """
    in_place = design.family in FAMILIES_IN_PLACE
    wide = not in_place and (key_bytes > 8 or value_bytes > 8)
    widths = (8, 8) if wide else _widths(key_bytes, value_bytes)
    slot_bytes = widths[0] if in_place else _spec(design.name, *widths, 1).slot_bytes
    per_bucket = design.slots_per_bucket(parameters, slot_bytes)
    spec = _spec(
        design.name,
        *widths,
        per_bucket,
        family=design.family,
        splits=design.splits(parameters, slot_bytes),
    )
    lists = parameters.get("buckets")
    pairs = design.pairs_per_bucket(per_bucket, slot_bytes)
    slots = lists * pairs if lists else slots_for(capacity, options.load_factor)
    like = (engine, design, parameters, spec)
    store: Store
    # A process imports only the family that its tables need.
    if design.family == "chains":
        from .chains.chain_array import ChainArray
        from .chains.store import ChainStore

        chains = ChainArray(*like, slots, seed, family, keys=capacity, fixed=not options.grows, repeats=multi)
        store = ChainStore(chains, options)
    elif design.family == "subtables":
        from .subtables.array import SubtableArray, sizes_for
        from .subtables.store import SubtableStore

        subtables = SubtableArray(*like, sizes_for(slots, per_bucket, parameters["subtables"]), seed, family)
        own = design.own_bounds(parameters) if options.grows else None
        store = SubtableStore(subtables, options._replace(bounds=own))
    elif design.family == "tickets":
        from .tickets.array import TicketArray
        from .tickets.store import TicketStore

        store = TicketStore(TicketArray(*like, slots, seed, family), options)
    else:
        from .buckets.array import BucketArray
        from .buckets.store import BucketStore

        store = BucketStore(BucketArray(*like, slots, seed, family), options)
    if wide:
        from .row_store import RowStorage

        return RowStorage(store, key_bytes, value_bytes)
    from .codec import WordStorage

    return WordStorage(store, key_bytes, value_bytes)
