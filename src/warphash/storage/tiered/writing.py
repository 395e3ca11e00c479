"""What an update does to the two tiers: write-through, or write-back.

The home has every key, always. The cache has some of them.

- Write-through: the home is updated first. Then the pairs of the batch that are in the cache get the values that the
  home has now. Where that fails, or is interrupted, the cache is cleared: nothing is lost by that.
- Write-back: a pair in the cache is updated there alone. A log has their keys until `write_back` brings
  their values home. The other pairs are updated at home. The two parts of a batch have no key in common, and
  each is a transaction of its own. If there is no memory for the second one, the cache gets back what it had.

An erase goes to both tiers: of a table with write-back, behind `write_back`, so that the cache may be cleared if the
second step fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol

from ...errors import TableFull, UnsupportedVerb
from ...runtime.abi import Flag, Op
from ...runtime.engine import Buffer, Engine
from ..batch import Batch
from ..chosen_elements import Part, flagged
from ..new_memory import copied
from ..rows import Rows
from ..slots import Recovery
from .cache import Cache
from .home import Home

__all__ = ["Tiers", "WriteBack", "WriteThrough", "Writing"]


class Tiers:
    """Both tiers, and how they come to agree again.

    Attributes
    ----------
    recovery
        Of an update, or an admission, that stopped half way.
    """

    def __init__(self, engine: Engine, cache: Cache, home: Home, key_bytes: int, value_bytes: int) -> None:
        self.engine, self.cache, self.home = engine, cache, home
        self.key_bytes, self.value_bytes = key_bytes, value_bytes
        self.recovery = Recovery()

    def finish(self, stream: Any) -> None:
        """End what is under way in both tiers."""
        self.cache.storage.store.finish(stream)
        self.home.storage.store.finish(None)

    def finish_without_cache(self, stream: Any) -> None:
        """End what is under way, and clear the cache, in which nothing is newer than at home."""
        self.cache.clear(stream)
        self.home.storage.store.finish(None)

    @contextmanager
    def changing(self, step: Callable[[Any], None]) -> Iterator[None]:
        """Note how the tiers become whole if the block stops half way. A refusal leaves them as they were."""
        self.recovery.step = step
        try:
            yield
        except (TableFull, UnsupportedVerb, MemoryError):
            if self.recovery.step is step:  # and not another that the block has left
                self.recovery.step = None
            raise
        self.recovery.step = None


class Writing(Protocol):
    """One of the two ways."""

    @property
    def is_written_back(self) -> bool:
        """The home has all values."""

    def update(self, tiers: Tiers, batch: Batch) -> None:
        """As `Rows.update`. No candidate waits for the cache."""

    def write_back(self, tiers: Tiers, stream: Any) -> None:
        """Write the values that have changed in the cache to the home."""

    def forget(self) -> None:
        """Both tiers were cleared."""

    def copy(self, engine: Engine, stream: Any) -> Writing:
        """For a copy of both tiers."""


class WriteThrough:
    """Every value is at home when the update returns."""

    is_written_back = True

    def update(self, tiers: Tiers, batch: Batch) -> None:
        cache, n, stream = tiers.cache, batch.n, batch.stream
        changes = cache.size > 0 and batch.op != Op.KEEP and tiers.value_bytes > 0
        own = tiers.engine.allocate(max(1, n * tiers.value_bytes), stream) if changes and not batch.held else None
        now = own.ptr if own else batch.held
        with tiers.changing(tiers.finish_without_cache if changes else tiers.finish):
            tiers.home.update(batch._replace(held=now))
            if changes:
                try:
                    self._refresh(tiers, batch.keys, now, n, stream)
                except (TableFull, MemoryError):
                    cache.clear(stream)

    def _refresh(self, tiers: Tiers, keys: int, values: int, n: int, stream: Any) -> None:
        """Give the pairs of the cache that are in the batch the values that they have at home."""
        hits, _ = _split(tiers, keys, values, n, stream)
        if hits.part.n:
            tiers.cache.storage.update(hits.batch(Op.REPLACE, stream))

    def write_back(self, tiers: Tiers, stream: Any) -> None:
        """As `Writing.write_back`: the home has them."""

    def forget(self) -> None:
        """As `Writing.forget`."""

    def copy(self, engine: Engine, stream: Any) -> WriteThrough:
        return WriteThrough()


class WriteBack:
    """Values that change in the cache are written to the home later.

    Parameters
    ----------
    log_keys
        Keys in the log at which a batch writes back first.
    """

    def __init__(self, log_keys: int) -> None:
        self._log_keys = log_keys
        self._log: tuple[Buffer, int] | None = None  # the keys, and how many

    @property
    def is_written_back(self) -> bool:
        """As of `Writing`."""
        return self._log is None

    def update(self, tiers: Tiers, batch: Batch) -> None:
        cache, home, stream = tiers.cache, tiers.home, batch.stream
        if cache.size == 0:
            with tiers.changing(tiers.finish):
                home.update(batch)
            return
        hits, misses = _split(tiers, batch.keys, batch.values, batch.n, stream)
        writes = batch.op != Op.KEEP and tiers.value_bytes > 0 and hits.part.n > 0
        if writes:
            before = hits.with_values_of(cache.storage, stream)
            self._note(tiers, hits, stream)

        def restore(stream: Any) -> None:
            tiers.finish(stream)
            cache.storage.update(before.batch(Op.REPLACE, stream))

        with tiers.changing(tiers.finish):
            if hits.part.n:
                cache.storage.update(hits.of_batch(batch))
            try:
                if misses.part.n:
                    home.update(misses.of_batch(batch))
            except (TableFull, MemoryError) as error:
                if writes:
                    self._undo(tiers, restore, stream)
                raise misses.renumbered(error, stream) from None
            for rows in (hits, misses):
                rows.deliver(batch)

    def _undo(self, tiers: Tiers, restore: Callable[[Any], None], stream: Any) -> None:
        """Give the cache its values back. If there is no memory for that, the next verb does it."""
        tiers.recovery.step = restore
        with suppress(TableFull, MemoryError):
            tiers.recovery.run(tiers.engine, stream)

    def _note(self, tiers: Tiers, hits: _Rows, stream: Any) -> None:
        """Enter keys into the log, before their values change."""
        engine, width, n = tiers.engine, tiers.key_bytes, hits.part.n
        if self._log is not None and self._log[1] + n > self._log_keys:
            self.write_back(tiers, stream)
        log, logged = (None, 0) if self._log is None else self._log
        if log is None or log.nbytes < (logged + n) * width:
            larger = engine.allocate(max(logged + n, min(2 * logged, self._log_keys)) * width, stream)
            if log is not None:
                engine.copy(larger.ptr, log.ptr, logged * width, stream)
            log = larger
        engine.copy(log.ptr + logged * width, hits.keys.ptr, n * width, stream)
        self._log = log, logged + n

    def write_back(self, tiers: Tiers, stream: Any) -> None:
        """As `Writing.write_back`. If it stops half way, the log stays, and the next call does all of it."""
        if self._log is None:
            return
        log, n = self._log
        hits, _ = _split(tiers, log.ptr, 0, n, stream)  # the others have left the table
        if hits.part.n:
            with tiers.changing(tiers.finish):
                newer = hits.with_values_of(tiers.cache.storage, stream)
                tiers.home.update(newer.batch(Op.REPLACE, stream))
        self._log = None

    def forget(self) -> None:
        self._log = None

    def copy(self, engine: Engine, stream: Any) -> WriteBack:
        twin = WriteBack(self._log_keys)
        if self._log is not None:
            log, n = self._log
            twin._log = copied(engine, log, stream), n
        return twin


class _Rows(NamedTuple):
    """The elements of a batch that one tier updates, and room for its answers.

    Attributes
    ----------
    keys, values
        Packed; no values if there are none.
    flags, held
        What the tier answers.
    """

    tiers: Tiers
    part: Part
    keys: Buffer
    values: Buffer | None
    flags: Buffer
    held: Buffer

    @classmethod
    def of(cls, tiers: Tiers, part: Part, keys: int, values: int, stream: Any) -> _Rows:
        """Pack the rows of a part."""
        engine = tiers.engine
        return cls(
            tiers,
            part,
            part.packed(keys, tiers.key_bytes, stream),
            part.packed(values, tiers.value_bytes, stream) if values else None,
            engine.allocate(max(1, part.n), stream),
            engine.allocate(max(1, part.n * tiers.value_bytes), stream),
        )

    def with_values_of(self, storage: Rows, stream: Any) -> _Rows:
        """The same keys, with the values that they have in a storage."""
        width, n = self.tiers.value_bytes, self.part.n
        values = self.tiers.engine.allocate(max(1, n * width), stream)
        storage.find(self.keys.ptr, n, values.ptr, self.flags.ptr, bytes(width), stream)
        return self._replace(values=values)

    def batch(self, op: Op, stream: Any) -> Batch:
        """An update by these elements, which the caller holds until it is done."""
        values = self.values.ptr if self.values else 0
        return Batch(self.keys.ptr, values, self.part.n, op, flags=self.flags.ptr, stream=stream)

    def of_batch(self, whole: Batch) -> Batch:
        """The part of the whole batch that these elements are."""
        held = self.held.ptr if whole.held else 0
        return self.batch(whole.op, whole.stream)._replace(kind=whole.kind, held=held, unique=whole.unique)

    def deliver(self, whole: Batch) -> None:
        """Put the answers to their places in the whole batch."""
        if whole.flags:
            self.part.put(self.flags, whole.flags, 1, whole.stream)
        if whole.held:
            self.part.put(self.held, whole.held, self.tiers.value_bytes, whole.stream)

    def renumbered(self, error: TableFull | MemoryError, stream: Any) -> TableFull | MemoryError:
        """The error of a tier, with the numbers that its elements have in the batch."""
        if not isinstance(error, TableFull) or error.keys is None:
            return error
        return TableFull(str(error), self.part.elements(stream)[error.keys])


def _split(tiers: Tiers, keys: int, values: int, n: int, stream: Any) -> tuple[_Rows, _Rows]:
    """The elements of a batch whose keys are in the cache, and the others."""
    flags = tiers.engine.allocate(max(1, n), stream)
    tiers.cache.storage.find(keys, n, 0, flags.ptr, b"\0", stream)
    parts = (flagged(tiers.engine, flags.ptr, n, flag, stream) for flag in (Flag.CHANGED, Flag.PRESENT))
    hits, misses = (_Rows.of(tiers, part, keys, values, stream) for part in parts)
    return hits, misses
