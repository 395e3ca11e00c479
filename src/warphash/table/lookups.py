"""The one path of lookups, and of the verbs with one answer for each key.

Keys are seen as an address, and the results allocated (``arrays/row_type.py``, ``arrays/adapters/``). Then the lock is
taken, and the storage gets the addresses. A small batch on a GPU takes a shorter way (``known_batches.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ..arrays.adapters.numpy import address_of
from ..arrays.cast import Sought, chosen
from ..arrays.library import ArrayView
from ..arrays.row_type import Column
from ..arrays.strings import StringArray
from ..errors import ParameterError
from ..storage.batch_order import lookups
from ..storage.word_rows import WordRows
from . import captured
from .captured import Captures
from .facts import Facts
from .front import BOOL, PRESENCE, Front
from .guarded import Guarded
from .known_batches import KnownLookups, known_lookups, share, shared
from .scans import owned

__all__ = ["Lookups"]

_COPIED_ELEMENTS = 1 << 17
"""Of a lookup that reads its keys more than once: a piece, whose copies stay in a cache."""

Answer = Callable[[int, int, int, Any], Any]
"""A verb of a storage with one answer for each key: address of keys, number of keys, address of answers, stream."""


class Lookups:
    """The lookups of a table.

    Attributes
    ----------
    captures
        Those in CUDA graphs.
    known
        Of each type of arrays that were looked up in the table's memory, for find (True) and for contains.
    """

    __slots__ = ("_device", "_engine", "_facts", "_front", "_guarded", "_key", "_verbs", "captures", "known")

    def __init__(self, facts: Facts, front: Front, guarded: Guarded) -> None:
        self._facts, self._front, self._guarded = facts, front, guarded
        self._engine, self._device, self._key = front.engine, front.device, front.key
        self._verbs = facts.verbs
        self.captures = Captures(facts)
        self.known: dict[tuple[type, bool], KnownLookups | None] = {}

    def look_up(
        self, verb: str, keys: Any, column: Column | None, default: Any, out: Any = None, found: Any = None
    ) -> tuple[Any, Any]:
        """Values and presence of keys, given or `Sought`; None for the values without a ``column``.

        Parameters
        ----------
        out, found
            Arrays of the caller's, which are written to and returned. None for new arrays. Keys that
            share memory with such an array are copied first.

        Raises
        ------
        UnsupportedVerb
            If the design does not have ``verb``.
        DeviceError, DtypeError, ParameterError, ShapeError
            If an array is not of the results' type and shape, or not of the keys' library and device; if it cannot be
            written to; or if both share memory.
        """
        if verb not in self._verbs:
            self._facts.refuse(verb)
        if column is not None and column.has_any_length:
            return self._look_up_strings(keys, column, default, out, found)
        absent = b"\0" if column is None else column.default(default)
        which = type(keys), column is not None
        is_given = out is not None or found is not None
        known = None if is_given else self.known.get(which)
        if known is None and not is_given and which not in self.known:
            known = shared(self._facts, self._front, *which)
            if known is not None:
                self.known[which] = known
        if known is not None and (made := known.see(keys)) is not None:
            guarded, word = self._guarded, int.from_bytes(absent, "little")
            storage = guarded.storage
            status = guarded.lock.read(known.launch, storage, word, made)
            if status < 0 and type(storage) is WordRows and storage.store.pending:  # behind an update that was left
                status = guarded.alone(known.launch, storage, word, made)
            if status == 0:
                return made[0], made[1]
            if status > 0:
                self._engine.refuse_launch(status)
        front = self._front
        seen, fits = keys if type(keys) is Sought else self._key.fitting(keys)
        if seen.device != self._device:
            front.transfer.need_way(seen, "keys")
        sought, values, flags, into_values, into_flags = seen, None, None, None, None
        if is_given:
            into_values = None if column is None or out is None else front.written(out, seen, column, "out")
            into_flags = None if found is None else front.written(found, seen, PRESENCE, "found")
            sought = front.apart_from(seen, into_values, into_flags)
        if fits is None:
            values, flags = into_values, into_flags
        else:
            sought = chosen(sought, fits)
        library, rows, engine = sought.library, sought.shape[:1], self._engine
        if values is None and column is not None:
            values = library.empty(sought, rows + column.shape, column.dtype, engine)
        if flags is None:
            flags = library.empty(sought, rows, BOOL, engine)
        self.find(sought, values, flags, absent)
        if fits is not None:
            values = None if values is None else front.spread(seen, fits, values, absent, into_values)
            flags = front.spread(seen, fits, flags, b"\0", into_flags)
        elif not is_given and which not in self.known and seen.device == self._device:
            storage = self._guarded.storage
            self.known[which] = learned = known_lookups(front, storage, type(keys), seen, column, PRESENCE)
            share(self._facts, front, learned, *which)
        if out is None and column is not None and values is not None:
            out = column.exported(values) if column.shape else values.library.export(values)
        return out, flags.library.export(flags) if found is None else found

    def _look_up_strings(self, keys: Any, column: Column, default: Any, out: Any, found: Any) -> tuple[Any, Any]:
        """As `look_up`, of values that are strings: they are copied while the lock is held."""
        front, absent = self._front, column.default(default)
        seen, fits = keys if type(keys) is Sought else self._key.fitting(keys)
        seen = front.seen(seen, "keys")
        if out is not None:
            front.written(out, seen, column, "out")  # which refuses it
        into = None if found is None else front.written(found, seen, PRESENCE, "found")
        sought = front.apart_from(seen, None, into)
        sought = sought if fits is None else chosen(sought, fits)
        rows = front.rows_for(sought, column)
        all_rows = rows if fits is None else front.rows_for(seen, column)
        if fits is None and into is not None:
            flags = into
        else:
            flags = sought.library.empty(sought, sought.shape[:1], BOOL, self._engine)

        def find_locked() -> ArrayView | StringArray | None:
            if not self._find_seen_locked(sought, rows, flags, absent):
                return None
            if fits is not None:
                front.spread(seen, fits, rows, absent, all_rows)
            return owned(self._engine, column, all_rows)

        made = self._guarded.lock.read(find_locked)
        if made is None:
            made = self._guarded.alone(find_locked)
        if fits is not None:
            flags = front.spread(seen, fits, flags, b"\0", into)
        values = column.exported(made, seen.library)
        return values, flags.library.export(flags) if found is None else found

    def in_any_order(
        self, verb: str, keys: Any, column: Column | None, default: Any, order: str
    ) -> tuple[Any, Any, Any]:
        """As `look_up`, and the keys, in an order that the table chooses."""
        if order != "any":
            raise ParameterError(f'order must be "given" or "any", got {order!r}')
        self._facts.need(verb)
        absent = b"\0" if column is None else column.default(default)
        seen, fits = self._front.sought(keys)
        if fits is None and self._may_choose_order(seen):
            library, rows, engine = seen.library, seen.shape[:1], self._engine
            moved = library.empty(seen, rows + self._key.shape, self._key.dtype, engine)
            values = None if column is None else library.empty(seen, rows + column.shape, column.dtype, engine)
            found = library.empty(seen, rows, BOOL, engine)
            if self._guarded.lock.read(self._find_in_any_order_locked, seen, moved, values, found, absent):
                given = None if column is None else column.exported(values)
                return self._key.exported(moved), given, library.export(found)
        return keys, *self.look_up(verb, Sought(seen, fits), column, default)

    def _may_choose_order(self, keys: ArrayView) -> bool:
        """Whether an order of the table's choice could save time: keys are many, in memory of a GPU."""
        large = keys.rows >= lookups.FEWEST_PARTITIONED and keys.device == self._device
        return large and self._engine.reach_bytes > 0 and isinstance(self._guarded.storage, WordRows)

    def _find_in_any_order_locked(
        self, keys: ArrayView, moved: ArrayView, values: ArrayView | None, found: ArrayView, absent: bytes
    ) -> bool:
        """As `WordRows.find_in_any_order`; False also if an update has to be finished first."""
        storage = self._guarded.storage
        if storage.store.recovery.step is not None or not isinstance(storage, WordRows):
            return False
        out = 0 if values is None else values.ptr
        return storage.find_in_any_order(keys.ptr, keys.rows, moved.ptr, out, found.ptr, absent, keys.stream)

    def find(self, keys: ArrayView, values: ArrayView | None, found: ArrayView, absent: bytes) -> None:
        """Look up keys: values, unless they are None, and presence."""
        if keys.device != self._device:
            if not self._guarded.lock.read(self._find_through_host_locked, keys, values, found, absent):
                self._guarded.alone(self._find_through_host_locked, keys, values, found, absent)
            return
        self.find_at(keys.ptr, keys.shape[0], 0 if values is None else values.ptr, found.ptr, absent, keys.stream)

    def _find_seen_locked(self, keys: ArrayView, values: ArrayView, found: ArrayView, absent: bytes) -> bool:
        """As `find`, unless an update has to be finished first: whether that was not so."""
        if keys.device != self._device:
            return self._find_through_host_locked(keys, values, found, absent)
        return self._find_locked(keys.ptr, keys.shape[0], values.ptr, found.ptr, absent, keys.stream)

    def find_at(self, keys: int, n: int, values: int, found: int, absent: bytes, stream: int | None) -> None:
        """As `find`, by addresses in the engine's memory; ``values`` is 0 where only presence is asked for."""
        if not self._guarded.lock.read(self._find_locked, keys, n, values, found, absent, stream):
            self._guarded.alone(self._find_locked, keys, n, values, found, absent, stream)

    def _find_locked(self, keys: int, n: int, values: int, found: int, absent: bytes, stream: int | None) -> bool:
        """As `find_at`, unless an update has to be finished first: whether that was not so."""
        storage = self._guarded.storage
        if stream not in captured.NEVER and self._engine.is_captured(stream):
            self.captures.look_up(storage, keys, n, values, found, absent, stream)
            return True
        if storage.store.recovery.step is not None:
            return False
        if storage.rereads and self._front.transfer.shares_memory:
            self._find_by_copies_locked(keys, n, values, found, absent)
        else:
            storage.find(keys, n, values, found, absent, stream)
        return True

    def _find_by_copies_locked(self, keys: int, n: int, values: int, found: int, absent: bytes) -> None:
        """As `_find_locked`, by copies of pieces of the keys, and of the flags, that nobody else writes to."""
        private, copy, value = self._front.transfer.private, self._engine.copy, self._front.value
        width, value_bytes = self._key.nbytes, value.nbytes if value else 0
        flags = np.empty(min(n, _COPIED_ELEMENTS), np.uint8)
        for at in range(0, n, _COPIED_ELEMENTS):
            count = min(_COPIED_ELEMENTS, n - at)
            rows, _rows = private(keys + at * width, count * width)
            out = values and values + at * value_bytes
            self._guarded.storage.find(rows, count, out, address_of(flags), absent, None)
            copy(found + at, address_of(flags), count)

    def _find_through_host_locked(
        self, keys: ArrayView, values: ArrayView | None, found: ArrayView, absent: bytes
    ) -> bool:
        """As `_find_locked`, of arrays in host memory that the engine does not reach."""
        storage = self._guarded.storage
        if storage.store.recovery.step is not None:
            return False

        def body(n: int, at: list[int], to: list[int]) -> None:
            storage.find(at[0], n, to[1] if len(to) > 1 else 0, to[0], absent, keys.stream)

        outs = [found] if values is None else [found, values]
        self._front.transfer.run(body, [keys], outs, keys.stream, in_pieces=True)
        return True

    # ---- verbs with one answer for each key
    def answered(self, keys: Any, dtype: np.dtype[Any], run: Callable[..., Any], verb: Answer) -> Any:
        """What ``verb`` writes for each key; ``run`` calls it under the lock."""
        seen, fits = self._front.sought(keys)
        rows = seen if fits is None else chosen(seen, fits)
        answers = rows.library.empty(rows, rows.shape[:1], dtype, self._engine)
        run(self.answer_locked, rows, answers, verb)
        if fits is not None:
            answers = self._front.spread(seen, fits, answers, bytes(dtype.itemsize))
        return answers.library.export(answers)

    def answer_locked(self, keys: ArrayView, answers: ArrayView, verb: Answer) -> None:
        """Have ``verb`` write the answers for the keys of a batch."""
        stream = keys.stream
        if keys.device != self._device:
            self._front.run(lambda n, at, to: verb(at[0], n, to[0], stream), [keys], [answers], stream)
            return
        if stream not in captured.NEVER:
            captured.refuse(self._engine, stream)
        at, _held = self._front.transfer.addresses([keys])
        verb(at[0], keys.shape[0], answers.ptr, stream)

    def present_locked(self, keys: ArrayView) -> ArrayView:
        """Which keys are there, in the same kind of memory as the keys. This is no use of the keys."""
        found = keys.library.empty(keys, keys.shape[:1], BOOL, self._engine)
        self.answer_locked(keys, found, self._guarded.storage.present)
        return found

    def present_in_any_order_locked(self, keys: ArrayView) -> tuple[ArrayView, ArrayView]:
        """Keys in an order that the table chooses, and which of them are there; in the same kind of memory."""
        if self._may_choose_order(keys):
            found = keys.library.empty(keys, keys.shape[:1], BOOL, self._engine)
            with suppress(MemoryError):  # an order that costs memory is not worth an error
                moved = keys.library.empty(keys, keys.shape, self._key.dtype, self._engine)
                if self._find_in_any_order_locked(keys, moved, None, found, b"\0"):
                    return moved, found
        return keys, self.present_locked(keys)
