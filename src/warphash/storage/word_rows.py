"""Keys and values that lie in the table itself, zero-extended to words: of 4 or 8 bytes, in subtables also longer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import TableFull, UnsupportedVerb
from ..runtime.abi import Op, StoredRows, WordBatch, bytes_of
from ..runtime.engine import Buffer, Engine
from ..runtime.source import ROWS
from .batch import COMBINING, Batch, MixedBatch
from .batch_order import hot_keys
from .find_or_insert import FEWEST_SAMPLED, find_or_insert, insert_missing
from .lookup import NO_FIELDS, find_in_any_order, launch_find
from .slots import MemoryUse, Slots

__all__ = ["FEWEST_BUILT", "WordRows"]

_ELEMENTS_FOR_FEW = 4
"""Elements of a batch for each slot, from which on its keys are sampled, whatever the verb does. Then all threads of a
GPU want a few lines of memory, and each design has a verb that this makes slow (docs/performance/insert.md)."""

FEWEST_BUILT = 1 << 14
"""Elements of a batch in the memory of a caller that a build takes from there. To copy fewer costs nothing."""

_KEY_ALIGNMENT_BYTES = 16
"""At most: so much of a wide key is read at once (``kernels/core/wide.cuh``)."""
_VALUE_ALIGNMENT_BYTES = 8
"""At most: rows of values lie anywhere, and move by the widest word that suits them (``kernels/core/bytes.cuh``)."""


class WordRows:
    """Packed rows in, packed rows out, on `Slots` of words.

    Parameters
    ----------
    key_bytes, value_bytes
        Width of a row; ``value_bytes`` may be 0.
    multi
        Keys repeat, as in the `Slots` of a `MultiMap`: each element of a batch counts.

    Attributes
    ----------
    rereads
        As of `Rows`.
    key_slack
        The bits that are not all 0 in an address of keys which kernels cannot take as words.
    """

    rereads = False

    def __init__(self, store: Slots, key_bytes: int, value_bytes: int, multi: bool = False) -> None:
        self.store = store
        self.key_bytes, self.value_bytes, self._multi = key_bytes, value_bytes, multi
        spec = store.spec
        self._key_word, self._value_word, self._value_is_row = spec.word_bytes, spec.value_word_bytes, spec.value_is_row
        self._engine: Engine = store.engine
        self._leave_few: Callable[..., bool] | None = None if multi else getattr(store, "leave_few", None)
        self._rows = self._engine.program(ROWS)
        self.key_slack = _slack(key_bytes, self._key_word, _KEY_ALIGNMENT_BYTES)
        self._value_slack = _slack(value_bytes, self._value_word, _VALUE_ALIGNMENT_BYTES)

    @cached_property
    def _aggregator(self) -> hot_keys.Aggregator:
        """Of the batches of the table; few tables need it."""
        return hot_keys.Aggregator()

    @property
    def nbytes(self) -> int:
        return self.store.nbytes

    def answers_words(self, *, is_value: bool) -> bool:
        """Whether kernels write the answers of a find where they are to go: words, if values are asked for."""
        return not is_value or (self.value_bytes == self._value_word and not self._value_is_row)

    def memory_use(self) -> MemoryUse:
        return self.store.memory_use()

    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        words = self._keys(keys, n, stream)
        out, held = self._landing(values, n, self.value_bytes, self._value_word, stream)
        absent, _absent = self._default(default, stream)
        launch_find(self.store.state.array, words[0], n, out, flags, absent, stream)
        if held is not None:
            self._narrow(out, n, values, self.value_bytes, self._value_word, stream)

    def loaded_find(self) -> tuple[Any, Any] | None:
        """The loaded kernel of a small find on a GPU, and the table that it is given (``src/extension/find.hpp``).

        None while a find has more to do: to load the kernel, to finish an update, or to tell where displaced pairs are.
        None also if a find is more than one kernel (`tickets.sweep`): its program has no kernels of its own.
        """
        store = self.store
        array: Any = store.state.array
        if store.recovery.step is not None or array.find_fields is not NO_FIELDS:
            return None
        kernel = getattr(array.program, "kernels", {}).get("find")
        return None if kernel is None else (kernel, array.table)

    def find_in_any_order(
        self, keys: int, n: int, out_keys: int, values: int, flags: int, default: bytes, stream: Any
    ) -> bool:
        """As `find`, with the keys copied to ``out_keys`` and answered in the order of the parts of the table.

        Returns
        -------
        bool
            False if that order would not help, or if keys or values are narrower than the words of the table: then
            nothing is answered.
        """
        if (keys | out_keys) & self.key_slack or (values and self.value_bytes != self._value_word):
            return False
        absent, _absent = self._default(default, stream)
        return find_in_any_order(self.store.state.array, keys, n, out_keys, values, flags, absent, stream)

    def present(self, keys: int, n: int, flags: int, stream: Any) -> None:
        self.find(keys, n, 0, flags, b"\0", stream)

    def counts(self, keys: int, n: int, out: int, stream: Any, entry: str = "probe_counts") -> None:
        words = self._keys(keys, n, stream)
        launch_find(self.store.state.array, words[0], n, 0, 0, 0, stream, out, entry)

    def build(self, batch: Batch) -> bool:
        """Insert a batch in host memory that others may write to, in one pass over it: whether it is done.

        Otherwise the table holds what it held. No key is read twice, so the table has keys that the batch has had.
        """
        build = getattr(self.store, "build", None)
        if build is None or batch.keys & self.key_slack or batch.values & self._value_slack:
            return False
        done: bool = build(batch)
        return done

    def leave_few(
        self, keys: int, values: int, n: int, op: int, kind: int, flags: int, unique: bool, stream: Any
    ) -> bool:
        """As `ArraySlots.leave_few`; False also for rows that are narrower than words, and without flags."""
        if keys & self.key_slack or values & self._value_slack or not flags or self._leave_few is None:
            return False
        return self._leave_few(keys, values, n, op, kind, flags, unique, stream)

    def update(self, batch: Batch) -> None:
        n = batch.n
        if batch.op in COMBINING:
            batch, _rows = self._combining(batch)
        if batch.keys & self.key_slack or batch.values & self._value_slack:
            keys, _keys = self._keys(batch.keys, n, batch.stream)
            values, _values = self._values(batch.values, n, batch.stream)
            batch = batch._replace(keys=keys, values=values)
        if batch.held:
            self._update_and_find(batch)
        elif n < FEWEST_SAMPLED or self._multi or self._engine.lanes > 1:
            self._update(batch)
        else:
            insert_missing(self.store, self._update, batch)

    def _combining(self, batch: Batch) -> tuple[Batch, Buffer | None]:
        """A batch that combines values, in words: another one, if values are narrower; and what keeps its memory."""
        kind = batch.kind
        if kind & 0xFF == 2 and kind >> 8 not in (32, 64):
            raise UnsupportedVerb(f"upsert combines floats of 32 and 64 bits, not of {kind >> 8}: keep wider values")
        if bytes_of(kind) != self.value_bytes:
            from .combine_rows import combine_rows  # few tables need it

            rows = combine_rows(self, self.key_bytes, self.value_bytes, batch)
            return batch._replace(values=rows.ptr, op=Op.REPLACE), rows
        if self._value_is_row and self.value_bytes not in (4, 8):
            raise UnsupportedVerb(
                f"upsert combines values of 4 or 8 bytes beside keys of more than 8 bytes, and these have "
                f"{self.value_bytes} bytes: widen them"
            )
        return batch, None

    def _update_and_find(self, batch: Batch) -> None:
        """Update with a batch of words whose caller asks for the values that keys have then."""
        n, held, stream = batch.n, batch.held, batch.stream
        # All memory first: when the keys are in, nothing may be missing for the answer.
        out, narrow = self._landing(held, n, self.value_bytes, self._value_word, stream)
        absent, _absent = self._default(bytes(self.value_bytes), stream)
        find_or_insert(self.store, self._update, batch._replace(held=out), absent)
        if narrow is not None:
            self._narrow(out, n, held, self.value_bytes, self._value_word, stream)

    def _update(self, batch: Batch) -> None:
        """Update the store with the words of a batch; of its hot keys, if they would be a queue, with few elements."""
        left = None
        if batch.n >= hot_keys.FEWEST_AGGREGATED and not batch.unique:
            waits = batch.op != Op.KEEP or self.store.design.claims_first or self._is_for_few(batch.n)
            left = self._combined(batch) if waits else None
        if left is None:
            return self.store.update(batch)
        try:
            self.store.update(left.batch)
        except TableFull as error:
            if error.keys is None:  # of the table itself
                raise
            raise TableFull(str(error), left.originals(error.keys)) from error
        if batch.flags:
            left.spread(batch)

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        words = self._keys(keys, n, stream)
        left = None
        if n >= hot_keys.FEWEST_AGGREGATED and self._is_for_few(n):
            erased = Batch(words[0], 0, n, flags=flags, stream=stream)
            left = self._combined(erased)
        if left is None:
            return self.store.erase(words[0], n, flags, stream=stream)
        self.store.erase(left.batch.keys, left.batch.n, left.batch.flags, stream=stream)
        if flags:
            left.spread(erased)

    def _is_for_few(self, n: int) -> bool:
        """Whether a batch has many more elements than the table has slots: keys repeat, or are absent."""
        return n >= _ELEMENTS_FOR_FEW * self.store.slots

    def _combined(self, batch: Batch) -> hot_keys.Aggregated | None:
        """What is left of a batch whose hot keys were combined; None if they were not."""
        if self._multi:
            return None
        return self._aggregator.left_of(self.store, batch)

    def execute(self, batch: MixedBatch, default: bytes, stream: Any) -> None:
        """As `Rows.execute`; see `ChainSlots.execute` and `TicketSlots.execute`."""
        store: Any = self.store
        out, n = batch.out_values, batch.n
        key_words, value_words = self._keys(batch.keys, n, stream), self._values(batch.values, n, stream)
        landing, held = self._landing(out, n, self.value_bytes, self._value_word, stream)
        absent, _absent = self._default(default, stream)
        words = {"keys": key_words[0], "values": value_words[0], "out_values": landing, "default": absent}
        store.execute(batch._replace(**words), stream)
        if held is not None:
            self._narrow(landing, n, out, self.value_bytes, self._value_word, stream)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int:
        widths = ((out_keys, self.key_bytes, self._key_word), (out_values, self.value_bytes, self._value_word))
        landings = [self._landing(out, room, width, word, stream) for out, width, word in widths]
        found = self.store.scan(room, landings[0][0], landings[1][0], stream)
        for (at, held), (out, width, word) in zip(landings, widths, strict=True):
            if held is not None:
                self._narrow(at, min(found, room), out, width, word, stream)
        return found

    def copy(self, stream: Any) -> WordRows:
        return WordRows(self.store.copy(stream), self.key_bytes, self.value_bytes, self._multi)

    def clear(self, stream: Any) -> None:
        self.store.clear(stream)

    def rebuild(self, keys: int, stream: Any) -> None:
        self.store.rebuild(keys, stream)

    def _landing(self, out: int, n: int, width: int, word: int, stream: Any) -> tuple[int, Buffer | None]:
        """Where kernels write words for rows that go to ``out``, and what keeps that memory if it is another."""
        if not out or width == word:
            return out, None
        held = self._engine.allocate(max(1, n * word), stream)
        return held.ptr, held

    def _keys(self, rows: int, n: int, stream: Any) -> tuple[int, Buffer | None]:
        """Address of keys as words, and what keeps that memory."""
        if rows & self.key_slack == 0:
            return rows, None
        return self._widened(rows, n, self.key_bytes, self._key_word, stream)

    def _values(self, rows: int, n: int, stream: Any) -> tuple[int, Buffer | None]:
        """Address of values as words, and what keeps that memory; 0 if there are none."""
        if rows & self._value_slack == 0:
            return rows, None
        return self._widened(rows, n, self.value_bytes, self._value_word, stream)

    def _default(self, default: bytes, stream: Any) -> tuple[int, Buffer | None]:
        """What find gives for an absent key, as kernels take it: a word, or the address of a row."""
        if not self._value_is_row:
            return int.from_bytes(default, "little"), None
        held = self._engine.from_host(np.frombuffer(default.ljust(max(1, self._value_word), b"\0"), np.uint8), stream)
        return held.ptr, held

    def _widened(self, rows: int, n: int, width: int, word: int, stream: Any) -> tuple[int, Buffer]:
        """Address of the rows as words, and what keeps that memory."""
        held = self._engine.allocate(max(1, n * word), stream)
        batch = WordBatch(n=n, rows=rows, row_bytes=width, words=held.ptr, word_bytes=word)
        self._rows.run("widen", StoredRows(), batch, n, stream)
        return held.ptr, held

    def _narrow(self, words: int, n: int, rows: int, width: int, word: int, stream: Any) -> None:
        batch = WordBatch(n=n, rows=rows, row_bytes=width, words=words, word_bytes=word)
        self._rows.run("narrow", StoredRows(), batch, n, stream)


def _slack(width: int, word: int, alignment: int) -> int:
    """The bits that are not all 0 in an address of rows, other than 0, that kernels cannot take as words.

    Words are aligned to their width, up to ``alignment``. If a row is narrower than its word, all bits.
    """
    return min(word & -word, alignment) - 1 if width == word else -1
