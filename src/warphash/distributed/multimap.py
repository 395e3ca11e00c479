"""`ShardedMultiMap`: several values for a key, all with the rank that owns the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from ..arrays.batch import library_of_rows
from ..arrays.cast import chosen, spread_offsets
from ..arrays.library import ArrayView
from ..arrays.row_type import Column as Type
from ..table.front import COUNT
from ..table.multimap import MultiMap
from .exchange import Exchanged
from .lists import Found, lists_of
from .route import Rows
from .tables import ShardedTable, Wanted

__all__ = ["ShardedMultiMap"]

_COUNTS, _OFFSETS = Type(COUNT, ()), Type(np.dtype(np.int64), ())


class ShardedMultiMap(ShardedTable[MultiMap[Any, Any]]):
    """A multimap over the ranks of a process group. See `MultiMap`.

    The values of a key come in any order, if several ranks have inserted them.

    Parameters
    ----------
    key, value
        As of `MultiMap`; of a fixed width.
    group, device, piece_bytes, **options
        As of `ShardedMap`.

    Attributes
    ----------
    local
        The `MultiMap` of this rank's own keys. Reading it is not collective.
    note
        What goes along with the table in its checkpoint; see `save`.

    Raises
    ------
    CollectiveError
        As `ShardedMap`.
    """

    _table = MultiMap
    _erases_once = False

    def __init__(
        self,
        key: Any,
        value: Any,
        *,
        group: Any = None,
        device: str | None = None,
        piece_bytes: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(key, value, group=group, device=device, piece_bytes=piece_bytes, **options)

    def insert(self, keys: Any, values: Any) -> None:
        """Add every pair, also of keys that are there. Collective. See `MultiMap.insert`.

        All ranks make room for what they receive before any begins. If a rank has no room, the error's ``has_begun`` is
        False, nothing has changed, and the call can be made again. If it is True, some of the pairs are there.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.
        values
            As of `MultiMap.insert`.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """

        def insert(n: int, at: list[int], to: list[int]) -> None:
            self.local.insert(*self._arrays(at, n))

        with self._keeping("insert") as call:
            pairs = self.local._parts.updates.view_pairs(keys, values)
            self._front.note_kind(pairs[0])
            self._answered(call, pairs, [], insert, self._make_room, may_repeat=False, inserts=True)

    def count(self, keys: Any, *, order: str = "given") -> Any:
        """How many values each key has. Collective. See `MultiMap.count`.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.
        order
            As of `ShardedMap.find`: with ``"owner"``, the ``columns`` are the counts.

        Returns
        -------
        uint32[n]
            0 for an absent key. With ``order="owner"``, an `Exchanged`.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        local: Any = self.local
        if order != "given":
            return self._left_with_owners("count", order, keys, lambda own: [(_COUNTS, local.count(own))])
        return self._counted("count", keys, self.local.count)

    def erase_all(self, keys: Any) -> Any:
        """Erase all pairs of keys. Collective. See `MultiMap.erase_all`.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.

        Returns
        -------
        uint32[n]
            How many pairs this element erased.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        return self._counted("erase_all", keys, self.local.erase_all)

    @overload
    def find_all(self, keys: Any, *, order: Literal["given"] = "given") -> tuple[Any, Any]: ...

    @overload
    def find_all(self, keys: Any, *, order: Literal["owner"]) -> Exchanged: ...

    def find_all(self, keys: Any, *, order: str = "given") -> Any:
        """All values of all keys. Collective. See `MultiMap.find_all`.

        Parameters
        ----------
        keys
            As of `MultiMap.find_all`.
        order
            As of `ShardedMap.find`: with ``"owner"``, the ``columns`` are the values and the offsets.

        Returns
        -------
        values[m], offsets[n + 1]
            The values of key i are ``values[offsets[i]:offsets[i + 1]]``; offsets are int64.

        Raises
        ------
        CollectiveError
            Also if a rank has no room for its values.
        PeerLost
            If a rank does not answer.
        """
        local: Any = self.local
        front, channel = self._front, self._channel

        def ask(own: ArrayView) -> Sequence[tuple[Type, ArrayView]]:
            return list(zip((front.value, _OFFSETS), local.find_all(own), strict=True))

        if order != "given":
            return self._left_with_owners("find_all", order, keys, ask)
        with channel.call("find_all") as call:
            local._need("find_all")
            given, fits = front.sought(keys)
            seen = given if fits is None else chosen(given, fits)
            made = []

            def find(n: int, at: list[int]) -> Found:
                values, offsets = local.find_all(self._array(at[0], n, front.key))
                return Found(values.ptr, values.rows, offsets.ptr, (values, offsets))

            def body(n: int, at: list[int], to: list[int]) -> None:
                rows = Rows(at[0], front.key.nbytes)
                made.append(lists_of(self._route, channel, front.engine, call, n, [rows], front.value.nbytes, find))

            stream = self._stream_of(seen)
            front.run(body, [seen], [], stream)
            lists, like = made[0], seen._replace(library=library_of_rows(seen.library))  # without labels, or a shape
            sizes = (front.value, len(lists.values)), (_OFFSETS, seen.rows + 1)
            values, offsets = call.together(lambda: [front.rows_for(like, *size) for size in sizes])

        def write(n: int, at: list[int], to: list[int]) -> None:
            for source, target in zip((lists.values, lists.offsets), to, strict=True):
                front.engine.copy(target, source.data_ptr(), source.nbytes, channel.stream())

        front.run(write, [], [values, offsets], stream)
        if fits is not None:
            whole = front.rows_for(like, _OFFSETS, given.rows + 1)
            spread_offsets(whole, fits, offsets)
            offsets = whole
        return front.value.exported(values), offsets.library.export(offsets)

    def to_arrays(self, *, like: Any = None) -> tuple[Any, Any]:
        """Keys and values of this rank's own part. Not collective. See `MultiMap.to_arrays`.

        Parameters
        ----------
        like
            As of `MultiMap.to_arrays`.

        Returns
        -------
        keys, values
            Arrays of one length.
        """
        return self.local.to_arrays(like=like)

    def _counted(self, text: str, keys: Any, verb: Any) -> Any:
        """A number for each key, by a verb of the local table."""
        front = self._front
        erases = text == "erase_all"
        with self._channel.call(text) as call:
            self.local._need(text)
            seen, fits = front.sought(keys)
            rows = seen if fits is None else chosen(seen, fits)
            wanted = Wanted(_COUNTS, of_every_element=not erases)
            counts = self._answered(call, [rows], [wanted], self._by_verb(verb))[0]
        if fits is not None:
            counts = front.spread(seen, fits, counts, bytes(COUNT.itemsize))
        return counts.library.export(counts)
