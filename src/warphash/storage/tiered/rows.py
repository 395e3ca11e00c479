"""A table in two tiers: all pairs at home, and the pairs most asked for in a cache on the device as well.

Source: HH Hash, section Future Work: "a hybrid hash table", with the CPU as the spill-over of a GPU that keeps the
heavy hitters. Its authors built none.

Parts. `home.Home` is a storage of the CPU engine, in memory or in a file. `cache.Cache` is a storage of the device.
`writing` says what an update does to both. `chosen_elements` packs those of a batch that one tier is asked for.

A lookup asks the cache first. The keys that are not there go home, in pieces, and their answers come back to their
places. Those found at home become candidates for the cache. The next verb behind enough of them admits them, alone
under the table's lock.

Rules
1. Every key of the cache is at home.
2. A value in the cache is newer than that at home, or the same. With write-through, it is the same between two verbs.
3. So clearing the cache loses no key; and no value, behind a write-back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...designs import auto, registry
from ...designs.base import Design
from ...errors import TableFull, UnsupportedVerb
from ...runtime.abi import Flag
from ...runtime.devices import engine_for
from ...runtime.engine import Engine
from ..batch import Batch, MixedBatch
from ..bounded.bound import Bound
from ..chosen_elements import flagged
from ..elements import flags_at
from ..make import StorageKind
from ..make import make_storage as make_tier
from ..slots import MemoryUse, StoreOptions, resting
from .cache import Cache
from .home import Home
from .lookup import look_up
from .store import TieredSlots
from .writing import Tiers, WriteBack, WriteThrough, Writing

__all__ = ["TieredRows", "make_storage"]

_CACHE_SHARE = 10
"""A cache has room for a tenth of the keys, unless the caller says otherwise."""

_FEWEST_CACHED = 1024
_LOG_SHARE = 4
"""A cache with a quarter of its pairs in the log of changes is written back."""


def make_storage(kind: StorageKind, engine: Engine, capacity: int, seed: int) -> TieredRows:
    """Make both tiers; or open the home in a file. See `storage.make.make_storage`."""
    parameters, options = kind.parameters, kind.options
    in_memory = options.memory == "host"
    name, choices = auto.choose() if in_memory else ("stadium", {})

    def tier(name: str, choices: Mapping[str, Any], **changes: Any) -> StorageKind:
        made = registry.get(name)
        return replace(kind.plain, design=made, parameters=made.resolve(choices), **changes)

    at_home = options._replace(memory="device" if in_memory else options.memory)
    home = make_tier(tier(name, choices, options=at_home), engine_for("cpu"), capacity, seed)
    room = parameters["device_capacity"] or max(_FEWEST_CACHED, capacity // _CACHE_SHARE)
    cached = StoreOptions(True, options.attempts, options.load_factor, None, False)
    first_room = min(room, max(_FEWEST_CACHED, capacity))
    of_cache = tier(*auto.choose(), bound=Bound(room, "lfu"), options=cached)
    cached_rows: Any = make_tier(of_cache, engine, first_room, seed)
    cache = Cache(cached_rows)
    widths = kind.key_bytes, kind.value_bytes
    tiers = Tiers(engine, cache, Home(engine, home, *widths, in_file=not in_memory), *widths)
    back = parameters["write"] == "back"
    writing = WriteBack(max(_FEWEST_CACHED, room // _LOG_SHARE)) if back else WriteThrough()
    return TieredRows(kind.design, tiers, writing)


class TieredRows:
    """The `rows.Rows` of both tiers.

    Parameters
    ----------
    writing
        What an update does to the tiers.
    """

    rereads = True

    def __init__(self, design: Design, tiers: Tiers, writing: Writing) -> None:
        self._design, self._tiers, self._writing = design, tiers, writing
        self.store = TieredSlots(design, tiers, writing)

    @property
    def nbytes(self) -> int:
        return self._tiers.home.storage.nbytes + self._tiers.cache.nbytes

    def memory_use(self) -> MemoryUse:
        return self.store.memory_use()

    # ---- lookups
    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        flags, _own_flags = flags_at(self._tiers.engine, flags, n, stream)
        look_up(self._tiers, keys, n, values, flags, default, stream)
        if self._tiers.cache.due:
            self._tiers.recovery.step = resting(TieredRows._admit, self)

    def present(self, keys: int, n: int, flags: int, stream: Any) -> None:
        """As `Rows.present`: the home knows all keys."""
        self._tiers.home.present(keys, n, flags, stream)

    def _admit(self, stream: Any) -> None:
        """Admit the candidates. Wherever this stops, the cache has some of them, with the values that they have.

        Others leave the cache for them, so their values come home first. If there is no memory for that, nobody is
        admitted, and nobody leaves; nor in the child of a fork, which may not change the file of the home.
        """
        tiers = self._tiers
        tiers.finish(stream)
        if tiers.home.is_inherited:
            tiers.cache.forget_candidates()
            return
        try:
            self._writing.write_back(tiers, stream)
        except (MemoryError, TableFull):
            tiers.cache.forget_candidates()
        else:
            tiers.cache.admit(tiers.home, stream)

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None:
        """As `Rows.counts`: buckets of the cache, and of the home for keys that the cache does not have."""
        tiers, cache = self._tiers, self._tiers.cache
        cache.storage.counts(keys, n, out, stream, entry)
        flags, _flags = flags_at(tiers.engine, 0, n, stream)
        cache.storage.find(keys, n, 0, flags, b"\0", stream)
        missed = flagged(tiers.engine, flags, n, Flag.PRESENT, stream)
        asked = missed.packed(keys, tiers.key_bytes, stream)
        missed.add(tiers.home.counts(asked.ptr, missed.n, entry, stream), out, stream)

    def execute(self, batch: MixedBatch, default: bytes, stream: Any) -> None:
        """Raise: no operation happens at one moment in both tiers."""
        raise UnsupportedVerb(f"design {self._design.name!r} has no execute")

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int:
        tiers, cache, engine = self._tiers, self._tiers.cache, self._tiers.engine
        own = None if out_keys else engine.allocate(max(1, room * tiers.key_bytes), stream)
        keys = own.ptr if own else out_keys
        found = tiers.home.scan(room, keys, out_values, stream)
        n = min(found, room)
        if out_values and cache.size and n:  # the cache has newer values
            flags, _flags = flags_at(engine, 0, n, stream)
            newer = engine.allocate(max(1, n * tiers.value_bytes), stream)
            cache.storage.find(keys, n, newer.ptr, flags, bytes(tiers.value_bytes), stream)
            there = flagged(engine, flags, n, Flag.CHANGED, stream)
            there.put(there.packed(newer.ptr, tiers.value_bytes, stream), out_values, tiers.value_bytes, stream)
        return found

    # ---- updates
    def _begin(self, stream: Any) -> None:
        """Have the tiers whole, and this process one that may change them."""
        self._tiers.home.check_process()
        self._tiers.recovery.run(self._tiers.engine, stream)

    def update(self, batch: Batch) -> None:
        self._begin(batch.stream)
        if batch.n:
            self._tiers.cache.note_accesses(batch.keys, batch.n, batch.stream)
            self._writing.update(self._tiers, batch)

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        self._begin(stream)
        tiers, cache = self._tiers, self._tiers.cache
        self._writing.write_back(tiers, stream)
        with tiers.changing(tiers.finish_without_cache):
            tiers.home.erase(keys, n, flags, stream)
            if cache.size:
                try:
                    cache.storage.erase(keys, n, 0, stream)
                except (TableFull, MemoryError):
                    cache.clear(stream)

    def clear(self, stream: Any) -> None:
        """As `Rows.clear`. The home goes first: it may refuse, and the cache may have newer values until then."""
        self._begin(stream)
        with self._tiers.changing(self._end_clearing):
            self._tiers.home.storage.clear(None)
            self._clear_cache(stream)

    def _end_clearing(self, stream: Any) -> None:
        """Clear the cache if the home was cleared."""
        self._tiers.finish(stream)
        if self._tiers.home.storage.store.size == 0:
            self._clear_cache(stream)

    def _clear_cache(self, stream: Any) -> None:
        self._writing.forget()
        self._tiers.cache.clear(stream)

    def rebuild(self, keys: int, stream: Any) -> None:
        self._begin(stream)
        with self._tiers.changing(self._tiers.finish):
            self._tiers.home.storage.rebuild(keys, None)

    def copy(self, stream: Any) -> TieredRows:
        tiers, engine = self._tiers, self._tiers.engine
        widths = tiers.key_bytes, tiers.value_bytes
        home = Home(engine, tiers.home.storage.copy(None), *widths)
        copied = Tiers(engine, tiers.cache.copy(stream), home, *widths)
        return TieredRows(self._design, copied, self._writing.copy(engine, stream))
