"""The one path of updates: inserts, assigns and upserts.

Keys and values are seen in one call, and the flags allocated. Then the lock is taken, and the storage gets the
addresses. In host memory that the kernels read, other threads may write to a batch: so the storage gets a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..arrays.library import ArrayView
from ..arrays.row_type import view_pair
from ..arrays.view import view
from ..errors import TableFull
from ..runtime.abi import Op, kind_of
from ..storage.batch import Batch
from ..storage.word_rows import FEWEST_BUILT, WordRows
from . import captured
from .facts import Facts
from .front import BOOL, PRESENCE, Front
from .guarded import Guarded
from .known_batches import See, known_updates, share, shared

__all__ = ["Updates"]


class Updates:
    """The updates of a table.

    Attributes
    ----------
    known
        Of each type of arrays that were kept.
    """

    __slots__ = ("_device", "_facts", "_front", "_guarded", "_value_kind", "_verbs", "known")

    def __init__(self, facts: Facts, front: Front, guarded: Guarded) -> None:
        self._facts, self._front, self._guarded = facts, front, guarded
        self._device = front.device
        self._verbs = facts.verbs
        self._value_kind = kind_of(front.value.dtype) if front.value else 0
        self.known: dict[type, See | None] = {}

    def view_pairs(self, keys: Any, values: Any) -> Sequence[ArrayView]:
        """See the keys of a batch to keep, and the values, if the table has values."""
        front = self._front
        key, value, device = front.key, front.value, self._device
        if value is None:
            pairs: Sequence[ArrayView] = (front.seen(key.view(keys, "keys"), "keys"),)
        else:
            seen, beside = view_pair(key, value, keys, values)
            if seen.device != device or beside.device != device:
                front.seen(seen, "keys"), front.seen(beside, "values")
            if beside.library is not seen.library or beside.shape[0] != seen.shape[0]:
                beside = front.one_for_each(seen, beside, value, values, "values")
            pairs = seen, beside
        return front.learned(pairs) if front.has_rows else pairs

    def update(
        self,
        verb: str | None,
        keys: Any,
        values: Any,
        op: Op,
        *,
        scores: Any = None,
        unique: bool = False,
        answers: bool = True,
        added: Any = None,
    ) -> Any:
        """Insert, assign or combine: bool[n], True where this element added its key; None without ``answers``.

        Parameters
        ----------
        verb
            What the caller asks for; None for the first pairs of a new table, which every design takes.
        added
            Array bool[n] of the caller's, which is written to and returned. None for a new array. Keys, values and
            scores that share memory with ``added`` are copied first.

        Raises
        ------
        UnsupportedVerb
            If the design does not have ``verb``.
        DeviceError, DtypeError, ParameterError, ShapeError
            If ``added`` is of another type, shape, library or device. The table is as it was.
        """
        if verb not in self._verbs and verb is not None:
            self._facts.refuse(verb)
        front = self._front
        if added is not None:
            pairs = self.view_pairs(keys, values)
            given = None if front.score is scores is None else front.scores(pairs[0], scores)
            flags = front.written(added, pairs[0], PRESENCE, "added")
            self.update_into(pairs, op, flags, unique=unique, scores=given)
            return added
        kind, see = type(keys), None
        if answers and scores is None:
            see = self.known.get(kind)
            if see is None and kind not in self.known and front.like is not None:
                see = shared(self._facts, front, kind)
                if see is not None:
                    self.known[kind] = see
        if see is not None:
            known = see(keys) if front.value is None else see(keys, values)
            if known is not None:
                made, n, at_stream, *at, made_at = known
                values_at = at[1] if len(at) > 1 else 0
                update_at = self.update_at_locked
                self._guarded.lock.write(update_at, at[0], values_at, n, op, made_at, unique, at_stream, keys)
                return made
        pairs = self.view_pairs(keys, values)
        seen, last = pairs[0], pairs[-1]
        given = None if front.score is scores is None else front.scores(seen, scores)
        if front.like is None:
            front.note_kind(seen)
        added = seen.library.empty(seen, seen.shape[:1], BOOL, front.engine) if answers else None
        stream, device = seen.stream, self._device
        if given is None and seen.device == device == last.device and last.stream == stream:
            values_at, added_at = 0 if front.value is None else last.ptr, 0 if added is None else added.ptr
            update_at, n = self.update_at_locked, seen.shape[0]
            self._guarded.lock.write(update_at, seen.ptr, values_at, n, op, added_at, unique, stream, seen)
            if answers and kind not in self.known:  # a build may be all that a table is for
                see = shared(self._facts, front, kind)
                if see is None:
                    see = known_updates(front, kind, pairs, PRESENCE)
                    share(self._facts, front, see, kind)
                self.known[kind] = see
        else:
            self._guarded.lock.write(self.update_locked, pairs, op, added, unique=unique, scores=given)
        return None if added is None else added.library.export(added)

    def update_into(
        self,
        pairs: Sequence[ArrayView],
        op: Op,
        added: ArrayView,
        *,
        unique: bool = False,
        scores: ArrayView | None = None,
    ) -> None:
        """As `update`, of arrays that were seen. The flags may share memory with the other arrays."""
        front = self._front
        pairs = [front.apart_from(each, None, added) for each in pairs]
        scores = None if scores is None else front.apart_from(scores, None, added)
        if front.like is None:
            front.note_kind(pairs[0])
        made_at, _own = self.flags_at(added.ptr, added.shape[0])
        made = added._replace(ptr=made_at)
        self._guarded.lock.write(self.update_locked, pairs, op, made, unique=unique, scores=scores)
        if made_at != added.ptr:
            front.engine.copy(added.ptr, made_at, added.shape[0])

    def flags_at(self, given: int, n: int) -> tuple[int, Any]:
        """Where an update writes ``n`` flags for an array of the caller's, and what keeps that memory.

        Kernels read the flags that they have written. So nobody else writes to these: in host memory, they lie
        elsewhere until the end.
        """
        if not self._front.transfer.shares_memory:
            return given, None
        own = np.empty(n, np.bool_)
        return address_of(own), own

    def update_at_locked(
        self, keys: int, values: int, n: int, op: Op, added: int, unique: bool, stream: int | None, named: Any
    ) -> None:
        """As `update_locked`, of ``n`` pairs in the engine's memory, by address. ``named`` is the array of keys.

        Nobody else writes to ``added``.
        """
        front, storage = self._front, self._guarded.storage
        if stream not in captured.NEVER:
            captured.refuse(front.engine, stream)
        rows = None
        if not front.transfer.shares_memory:
            kind = self._value_kind
            if (
                added
                and type(storage) is WordRows
                and storage.leave_few(keys, values, n, op, kind, added, unique, stream)
            ):
                return
        else:
            if n >= FEWEST_BUILT and op == Op.KEEP and isinstance(storage, WordRows):
                batch = Batch(keys, values, n, flags=added, unique=unique)
                if storage.build(batch):
                    return
            keys, values, rows = self._private_pairs(keys, values, n)
        try:
            storage.update(Batch(keys, values, n, op, self._value_kind, added, 0, unique, stream))
        except TableFull as error:
            if rows is not None and not front.key.has_any_length:
                named = rows.view(front.key.dtype).reshape(n, *front.key.shape)
            raise front.naming_keys(error, view(named)) from None

    def _private_pairs(self, keys: int, values: int, n: int) -> tuple[int, int, npt.NDArray[np.uint8]]:
        """As `Transfer.private`, of keys and values at once: the addresses of both, and the copy of the keys.

        The latter keeps the memory of both. ``values`` is 0 without values.
        """
        key_bytes, engine = n * self._front.key.nbytes, self._front.engine
        value_bytes = n * self._front.value.nbytes if self._front.value else 0
        first = key_bytes + 15 & -16
        made = np.empty(first + value_bytes, np.uint8)
        address = address_of(made)
        engine.copy(address, keys, key_bytes)
        if values:
            engine.copy(address + first, values, value_bytes)
        return address, values and address + first, made[:key_bytes]

    def update_locked(
        self,
        pairs: Sequence[ArrayView],
        op: Op,
        added: ArrayView | None,
        held: ArrayView | None = None,
        *,
        unique: bool = False,
        scores: ArrayView | None = None,
        ranks: ArrayView | None = None,
    ) -> None:
        """Insert, assign or combine.

        Parameters
        ----------
        pairs
            Keys, and values if the table has values.
        added
            Receives which elements added their keys.
        held
            Receives the value that each key has after the update.
        scores, ranks
            Of the keys of a bounded table that keeps ranks: their scores, or the ranks themselves.
        """
        stream, has_values = pairs[0].stream, self._front.value is not None
        update: Callable[..., None] = self._guarded.storage.update
        ranking = ranks if scores is None else scores
        ins = pairs if ranking is None else [*pairs, ranking]

        def body(n: int, at: list[int], to: list[int]) -> None:
            more = {}
            if ranks is not None:
                more = {"ranks": at[-1]}
            elif scores is not None:
                more = {"scores": at[-1], "score_kind": kind_of(scores.dtype)}
            values = at[1] if has_values else 0
            answers = 0 if added is None else to[0], 0 if held is None else to[-1]
            update(Batch(at[0], values, n, op, self._value_kind, *answers, unique, stream), **more)

        self._front.run_naming_keys(body, ins, [made for made in (added, held) if made is not None], stream)
