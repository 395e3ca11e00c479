"""Tables whose keys are spread over the ranks of a group: each key is in the table of the rank that owns it.

Contract. A verb is collective, unless its docstring says otherwise: all ranks of the group call the same verbs with the
same options in the same order, each with a batch of its own, of any size, zero too. A rank gets the answers for its own
elements, in its order. A call that is wrong or fails on one rank raises `CollectiveError` on all ranks, and the next
call works. Properties, ``repr`` and what ``local`` has are never collective, so ``if rank == 0: print(m)`` is right.

A table has a `channel.Channel` to the other ranks, a `route.Route` for batches, and ``local``, a table of the rank's
own keys. Keys with one value that several ranks insert in one call count as one key: one element adds it.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar, cast, overload

import numpy as np

from ..arrays.adapters.engine import ENGINE_MEMORY
from ..arrays.adapters.numpy import address_of
from ..arrays.cast import Fits, chosen
from ..arrays.library import ArrayView
from ..arrays.row_type import Column as Type
from ..arrays.strings import StringArray
from ..arrays.view import view
from ..errors import DtypeError, ParameterError, ShapeError
from ..runtime.devices import engine_for
from ..storage.strings.string_table import elements_without_nulls, packed
from ..table.base import BaseTable
from ..table.front import PRESENCE
from ..table.key_numbers import check_numbers
from ..table.maps import HashMap, HashSet
from ..table.options import integer
from ..table.scans import owned
from . import checkpoint
from .channel import Call, Channel, channel_of
from .exchange import Exchanged
from .item_names import ItemNames
from .lists import Found, Lists, lists_of
from .numbers import Asked, NewNumbers
from .owner_answers import Ask, check_order, left_with_owners
from .ragged import hashed_rows, numbered_rows
from .ragged_trips import RaggedTrips
from .repeats import Combined, Repeats, repeats_of
from .route import Answers, Apart, Column, Kind, Local, Route, Rows
from .state import rebuilt, state_of

__all__ = ["ShardedMap", "ShardedSet", "ShardedTable", "Wanted", "piece_of", "share_of"]

T = TypeVar("T", bound=BaseTable[Any])

_PIECE_BYTES, _PIECE_BYTES_OF_GPU = 1 << 26, 1 << 28
"""What a rank receives in a round, by default."""

_DEVIATIONS = 6
"""Of a binomial distribution, above the mean: keys that a rank makes room for."""

_LARGER = 4
"""How much larger than a table a batch is, that the table inserts at once faster than in rounds."""

_REPEATABLE = ("min", "max", "or", "and", "first", "last")
"""Upserts that may be done twice with the same batch."""

Combine = Callable[[Combined, Sequence[Rows], int, Column], Column]
"""Values for the keys of a combined batch: of keys and values of all elements, their number, and the keys."""

Verb = Callable[..., Any]
"""Of a local table, which is given arrays of the engine, and answers with one."""


class Wanted(NamedTuple):
    """A column of answers.

    Attributes
    ----------
    column
        Its type.
    of_every_element
        Each element of a key has the answer of the key. If not, one element has it, and the others have zeros.
    """

    column: Type
    of_every_element: bool

    @property
    def kind(self) -> Kind:
        """What the column has."""
        return Kind(self.column.nbytes, self.column is PRESENCE)


_ADDED = Wanted(PRESENCE, of_every_element=False)
"""Whether an element added its key, or erased it."""


class ShardedTable(Generic[T]):
    """What all sharded tables are and have. See `ShardedMap` for the parameters."""

    _table: ClassVar[type[BaseTable[Any]]]
    _erases_once: ClassVar[bool] = True
    """Of several elements with one key, one erases. If not, each erases a pair."""
    note: Any = None
    """What goes along with the table in its checkpoint; see `save`."""

    def __init__(
        self, *types: Any, group: Any = None, device: str | None = None, piece_bytes: int | None = None, **options: Any
    ) -> None:
        self._channel = channel_of(group)
        with self._channel.call(f"make a {type(self).__name__}") as call:
            piece = piece_of(self._channel, piece_bytes)
            _check_device(self._channel, device)
            capacity = options.pop("capacity", None)
            if capacity is not None:
                options["capacity"] = self._share(integer("capacity", capacity, 0))
            local: Any = self._table(*types, device=self._channel.device, **options)
            call.agree()
        names = ", ".join(column.name for column in local._parts.front.stored)
        described = f"{names}, {local.design}, piece_bytes={piece}"
        with self._channel.call(f"a {type(self).__name__} of {described}") as call:
            call.agree()
        self._hold(local, piece)

    def _hold(self, local: T, piece: int) -> None:
        """Begin with a table of this rank's keys, whose types and design are those of all ranks."""
        self.local: T = local
        have_any_length = [column.has_any_length for column in self._front.stored]
        ragged = RaggedTrips(self._channel, self._front.engine, piece, have_any_length)
        self._route = Route(self._channel, self._front.engine, piece, ragged if any(have_any_length) else None)

    @property
    def rank(self) -> int:
        """This process among those of the group."""
        return self._channel.rank

    @property
    def world(self) -> int:
        """Ranks of the group."""
        return self._channel.world

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, rank {self.rank} of {self.world}: {self.local!r}>"

    def contains(self, keys: Any, *, order: str = "given") -> Any:
        """Which keys are there. Collective. See `HashMap.contains`.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.
        order
            As of `ShardedMap.find`: with ``"owner"``, the ``columns`` are the flags.

        Returns
        -------
        bool[n]
            True where the key is there. With ``order="owner"``, an `Exchanged`.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        local: Any = self.local
        if order != "given":
            return self._left_with_owners("contains", order, keys, lambda own: [(PRESENCE, local.contains(own))])
        return self._look_up(keys, None, None)[1]

    def erase(self, keys: Any) -> Any:
        """Erase keys. Collective. See `HashMap.erase`.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.

        Returns
        -------
        bool[n]
            True where this element erased its key.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        local: Any = self.local
        with self._channel.call("erase") as call:
            seen, fits = self._front.sought(keys)
            rows = seen if fits is None else chosen(seen, fits)
            work = self._by_verb(local.erase)
            added = self._answered(call, [rows], [_ADDED], work, may_repeat=self._erases_once)[0]
        if fits is not None:
            added = self._front.spread(seen, fits, added, b"\0")
        return added.library.export(added)

    def reserve(self, n: int) -> None:
        """Make room for ``n`` keys of all ranks together, so that their shares surely fit. Collective.

        Parameters
        ----------
        n
            The same on all ranks.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        with self._channel.call(f"reserve({n})") as call:
            self.local.reserve(self._share(integer("n", n, 0)))
            call.agree()

    def clear(self) -> None:
        """Forget all keys of all ranks. Collective."""
        with self._channel.call("clear") as call:
            self.local._need("clear")
            call.agree()
            self.local.clear()

    def total(self) -> int:
        """Keys of all ranks together. Collective, and so no ``len``; the rank's own are ``len(m.local)``.

        Returns
        -------
        int
            The same on all ranks.
        """
        with self._channel.call("total") as call:
            return call.total(len(self.local))

    # ---- checkpoints
    def save(self, path: str | os.PathLike[str], *, note: Any = None) -> None:
        """Replace the checkpoint in a folder by one of this table. Whatever happens, the folder holds a whole one.

        A process that is killed, a full disk or an error of any rank leaves the old checkpoint. The layout of the
        folder is told at the head of ``distributed/checkpoint.py``.

        Parameters
        ----------
        path
            A folder that all ranks see. It is made if it is not there. One program saves to it at a time.
        note
            What JSON can hold, the same on all ranks: what the program needs to go on from here, such as the number of
            the next batch. It is saved together with the keys, so it cannot be the note of another checkpoint.

        Raises
        ------
        CollectiveError
            If a rank cannot write its part. The folder holds the old checkpoint.
        """
        with self._channel.call(f"save({str(path)!r})") as call:
            checkpoint.save(self._channel, call, path, self.local, note)
        self.note = note

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        group: Any = None,
        device: str | None = None,
        piece_bytes: int | None = None,
    ) -> Self:
        """The table of a checkpoint, which any number of ranks has saved. Each rank reads the keys that it owns.

        The options of the table are those that it was saved with; ``note`` is that of the checkpoint.

        Parameters
        ----------
        path
            The folder.
        group, device, piece_bytes
            As of `ShardedMap`.

        Returns
        -------
        ShardedMap, ShardedSet or ShardedMultiMap
            A table of this class.

        Raises
        ------
        CollectiveError
            If a rank finds no checkpoint, or one that is damaged, or of another class of table.
        """
        made = cls.__new__(cls)
        made._channel = channel_of(group)
        with made._channel.call(f"load({str(path)!r}) of a {cls.__name__}, piece_bytes={piece_bytes}") as call:
            piece = piece_of(made._channel, piece_bytes)
            _check_device(made._channel, device)
            local, note = checkpoint.load(made._channel, call, path, cls._table)
        made._hold(local, piece)
        made.note = note
        return made

    def state_dict(self) -> dict[str, Any]:
        """What this rank's part holds, for ``torch.distributed.checkpoint``. Not collective.

        The library takes a table as it takes a module: ``save({"table": table}, checkpoint_id=path)``, and in a program
        of any other number of ranks ``load({"table": table}, checkpoint_id=path)``, with a table of the same class and
        types. If the table has a group of its own, give that to both. The layout of the state is told at the head of
        ``distributed/state.py``.

        Returns
        -------
        dict of str to tensor
            What `load_state_dict` takes.
        """
        return state_of(self._channel, self.local)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Hold what `state_dict` gave, in place of all keys. Collective.

        The options stay, and ``local`` is a new table.

        Parameters
        ----------
        state
            What `state_dict` returned, as the library has resharded it.

        Raises
        ------
        CollectiveError
            If the state of a rank is altered, or of other types, or has not the keys that the rank owns. The table is
            as it was.
        """
        with self._channel.call("load_state_dict") as call:
            local: Any = rebuilt(self._channel, self.local, state)
            call.agree()
        self.local = local

    # ---- the way of a batch
    @property
    def _front(self) -> Any:
        return self.local._parts.front

    def _share(self, n: int) -> int:
        return share_of(n, self._channel.world)

    @contextmanager
    def _keeping(self, text: str) -> Iterator[Call]:
        """A call that keeps rows, whose items have the same names on all ranks."""
        with self._channel.call(text) as call:
            if not self._front.has_rows:
                yield call
                return
            with ItemNames(self._front.stored).learned_in(call):
                yield call

    def _look_up(self, keys: Any, column: Type | None, default: Any) -> tuple[Any, Any]:
        """Values and presence of keys; None for the values without a ``column``."""
        if column is not None and column.has_any_length:
            return self._look_up_texts(keys, column, default)
        front, columns = self._front, [PRESENCE] if column is None else [PRESENCE, column]
        verb = "contains" if column is None else "find"
        with self._channel.call(f"{verb}{_described(column, default)}") as call:
            self.local._need(verb)
            absent = b"\0" if column is None else column.default(default)
            seen, fits = front.sought(keys)
            sought = seen if fits is None else chosen(seen, fits)
            answers = self._answered(
                call,
                [sought],
                [Wanted(each, of_every_element=True) for each in columns],
                self._finding(column, absent),
                launches=True,
            )
        if fits is not None:
            absents = [b"\0", absent]
            answers = [front.spread(seen, fits, *each) for each in zip(answers, absents, strict=False)]
        found = answers[0].library.export(answers[0])
        if column is None:
            return None, found
        return column.exported(answers[1]), found

    def _look_up_texts(self, keys: Any, column: Type, default: Any) -> tuple[Any, Any]:
        """As `_look_up`, of values that are strings of any length."""
        front, local = self._front, cast("Any", self.local)
        with self._channel.call(f"find{_described(column, default)}") as call:
            local._need("find")
            absent = column.default(default)
            seen, fits = front.sought(keys)
            sought = seen if fits is None else chosen(seen, fits)
            values, found = self._answered_texts(call, [sought], partial(local.find, default=default))
        if fits is not None:
            found = front.spread(seen, fits, found, b"\0")
            rows = front.spread(seen, fits, view(values.rows.rows), absent, front.rows_for(seen, column))
            values = cast("StringArray", owned(front.engine, column, rows))
        return column.exported(values, seen.library), found.library.export(found)

    def _left_with_owners(
        self, verb: str, order: str, keys: Any, ask: Ask, column: Type | None = None, default: Any = None
    ) -> Exchanged:
        """The answers of a lookup in an order that is not that of the keys. With a ``column``, it has a default."""
        with self._channel.call(f"{verb}, order={order!r}{_described(column, default)}") as call:
            self.local._need(verb)
            check_order(order)
            if column is not None:
                column.default(default)
            return left_with_owners(self._channel, call, self._front, self._array, keys, self._stream_of, ask)

    def _finding(self, column: Type | None, absent: bytes) -> Local:
        """An owner's part of a lookup: presence, and values if they have a ``column``."""
        key, lookups = self._front.key, self.local._parts.lookups
        columns = [PRESENCE] if column is None else [PRESENCE, column]

        def find(n: int, at: list[int], to: list[int]) -> None:
            found, *values = (self._array(place, n, of) for place, of in zip(to, columns, strict=True))
            lookups.find(self._array(at[0], n, key), values[0] if values else None, found, absent)

        return find

    def _updated(
        self,
        text: str,
        keys: Any,
        values: Any,
        verb: Verb,
        *,
        may_refuse: bool = False,
        repeats: bool = True,
        combine: Combine | None = None,
        may_repeat: bool = True,
    ) -> Any:
        """Flags of an update by a verb of the local table.

        Parameters
        ----------
        may_refuse
            The verb has options that it may refuse. So it gets no rows first, and all ranks hear what it says of that
            before any begins.
        repeats
            The same call may be made again after an error. If not, room is made on all ranks before any rank begins.
        combine, may_repeat
            As of `_answered`.
        """
        with self._keeping(text) as call:
            pairs = self.local._parts.updates.view_pairs(keys, values)
            self._front.note_kind(pairs[0])
            if may_refuse:
                verb(*self._arrays([0, 0], 0))
            prepare = None if repeats else self._make_room
            work = self._by_verb(verb)
            (added,) = self._answered(
                call, pairs, [_ADDED], work, prepare, combine, may_repeat=may_repeat, inserts=True
            )
        return added.library.export(added)

    def _make_room(self, n: int) -> None:
        self.local.reserve(len(self.local) + n)

    def _by_verb(self, verb: Verb) -> Local:
        """An owner's part by a verb of the local table, which answers with one array."""
        front = self._front

        def work(n: int, at: list[int], to: list[int]) -> None:
            made = verb(*self._arrays(at, n))
            front.engine.copy(to[0], made.ptr, made.nbytes, self._channel.stream())

        return work

    def _answered(
        self,
        call: Call,
        given: Sequence[ArrayView],
        wanted: Sequence[Wanted],
        local: Local,
        prepare: Callable[[int], None] | None = None,
        combine: Combine | None = None,
        *,
        may_repeat: bool = True,
        inserts: bool = False,
        launches: bool = False,
    ) -> list[ArrayView]:
        """New arrays of the caller's library with the owners' answers for a batch.

        Parameters
        ----------
        combine
            Makes the value of a key of those of its elements; None: that of the first one.
        may_repeat
            Keys may be several times in the batch, and one element of a key does what all would do.
        inserts
            The owners insert the rows.
        launches
            As of `Route.go`.
        """
        front, seen = self._front, given[0]
        at_once = inserts and len(self.local) <= seen.rows // _LARGER
        made = [front.rows_for(seen, each.column) for each in wanted]
        go: Callable[..., None] = partial(
            self._route.go, call, local=local, prepare=prepare, at_once=at_once, launches=launches
        )

        def body(n: int, at: list[int], to: list[int]) -> None:
            rows = [Rows(place, column.nbytes) for place, column in zip(at, front.stored, strict=False)]
            repeats = self._repeats(rows[0], n if may_repeat and self.world > 1 else 0)
            if not (repeats.often or (len(repeats.hot) and combine is not None)):
                answers = [Answers(place, each.kind) for place, each in zip(to, wanted, strict=True)]
                apart = Apart(repeats.hot, [not each.of_every_element for each in wanted])
                go(n=n, rows=rows, answers=answers, apart=apart)
                return
            batch = Combined(self._channel, front.engine, self._exact(rows[0], n), n)
            firsts = [batch.first(column) for column in rows]
            if combine is not None:
                firsts[1] = combine(batch, rows, n, firsts[0])
            room = [batch.answers(each.column.nbytes, of_every_element=each.of_every_element) for each in wanted]
            sent = [Rows(column.at, column.width) for column in firsts]
            answers = [Answers(made.column.at, each.kind) for made, each in zip(room, wanted, strict=True)]
            go(n=batch.n, rows=sent, answers=answers)
            for each, place in zip(room, to, strict=True):
                each.write(place)

        front.run(body, given, made, self._stream_of(seen))
        return made

    def _repeats(self, keys: Rows, n: int) -> Repeats:
        """As `repeats_of`, of keys of the table. Rows of any length are never apart."""
        channel, engine = self._channel, self._front.engine
        if not any(column.has_any_length for column in self._front.stored):
            return repeats_of(channel, engine, keys, n)
        if self._front.key.has_any_length:
            hashes = hashed_rows(channel, engine, keys.at, n)  # which a sample may take for keys
            keys = Rows(hashes.at, hashes.width)
        made = repeats_of(channel, engine, keys, n)
        return Repeats(often=made.often or len(made.hot) > 0, hot=made.hot[:0])

    def _exact(self, keys: Rows, n: int) -> Rows | Column:
        """Keys of a fixed width that are equal exactly where those of a batch are."""
        if not self._front.key.has_any_length:
            return keys
        return numbered_rows(self._channel, self._front.engine, keys.at, n)

    def _no_dropped(self, seen: ArrayView) -> Fits:
        """Which keys are no nulls that the table leaves out; None if all are."""
        if not self._front.key.has_any_length or self.local._parts.facts.rules["nulls"] != "drop":
            return None
        fits = np.zeros(seen.rows, np.bool_)
        fits[elements_without_nulls(seen.ptr, seen.rows)] = True
        return None if fits.all() else fits

    def _answered_texts(
        self, call: Call, given: Sequence[ArrayView], verb: Callable[..., tuple[Any, ArrayView]]
    ) -> tuple[StringArray, ArrayView]:
        """Values of any length and flags: the owners' answers for a batch, by a verb of the local table."""
        front, channel = self._front, self._channel
        flags = front.rows_for(given[0], PRESENCE)
        made: list[Lists] = []

        def find(n: int, at: list[int]) -> Found:
            values, found = verb(*self._arrays(at, n))
            addresses = [array.ctypes.data for array in (values.data, values.offsets)]
            return Found(addresses[0], len(values.data), addresses[1], (values, found), [found.ptr])

        def body(n: int, at: list[int], to: list[int]) -> None:
            rows = [Rows(place, column.nbytes) for place, column in zip(at, front.stored, strict=False)]
            others = [Rows(to[0], PRESENCE.nbytes)]
            made.append(lists_of(self._route, channel, front.engine, call, n, rows, 1, find, others))

        front.run(body, given, [flags], self._stream_of(given[0]))
        offsets, data = (array.reshape(-1).numpy() for array in (made[0].offsets, made[0].values))
        return StringArray(offsets, data, front.value.text), flags

    def _stream_of(self, seen: ArrayView) -> int | None:
        """The stream for work on a caller's array: the array's, or that of messages for an array in host memory."""
        return self._channel.stream() if seen.stream is None else seen.stream

    def _arrays(self, at: Sequence[int], n: int) -> list[ArrayView]:
        """Keys, and values if there is a second address, as `_array`."""
        return [self._array(place, n, column) for place, column in zip(at, self._front.stored, strict=False)]

    def _array(self, at: int, n: int, column: Type) -> ArrayView:
        """Rows in memory for messages, as an array that tables take."""
        shape, device = (n, *column.shape), self._channel.device
        return ArrayView(at, shape, column.dtype, device, self._channel.stream(), None, None, ENGINE_MEMORY)


def _check_device(channel: Channel, device: str | None) -> None:
    if device not in (None, channel.device, channel.place.type):
        raise ParameterError(
            f"the messages of this group lie on {channel.device}, got device={device!r}: leave device= out, or make a "
            "group with backend='nccl' for GPUs and 'gloo' for the CPU"
        )


class ShardedMap(ShardedTable[HashMap[Any, Any]]):
    """A hash map over the ranks of a process group.

    Parameters
    ----------
    key, value
        As of `HashMap`. Strings of any length are for ranks on a CPU, as there.
    group
        A process group of ``torch.distributed``, or a device mesh with one dimension. None: all ranks.
    device
        Where the table of this rank lies. By default, the current GPU if the group uses NCCL, and else the CPU.
    piece_bytes
        Rows and answers that a rank sends or receives at once; a larger batch goes in rounds. By default, 64 MB on a
        CPU, and 256 MB on a GPU.
    **options
        Those of `HashMap`. ``capacity`` counts the keys of all ranks together.

    Attributes
    ----------
    local
        The `HashMap` of this rank's own keys. Reading it is not collective.
    note
        What goes along with the table in its checkpoint; see `save`.

    Raises
    ------
    CollectiveError
        If a rank's arguments are wrong, or are not those of the other ranks.

    Notes
    -----
    The owner of a key is named by a hash of the key that has no part in the hash functions of the tables. Of n random
    keys, a rank owns n / world, give or take a few times the square root of that.

    Examples
    --------
    In a program that ``torchrun --nproc-per-node 2`` starts::

        import torch, warphash.distributed as wd
        wd.init("gloo")
        m = wd.ShardedMap("int64", "int64")
        mine = torch.arange(10) + 10 * m.rank
        m.insert(mine, mine * mine)
        values, found = m.find(torch.tensor([3, 13, 99]))      # 9, 169, 0 and True, True, False on both ranks
    """

    _table = HashMap

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

    def insert(self, keys: Any, values: Any, *, assume_unique: bool = False) -> Any:
        """Add the keys that are absent. Collective. See `HashMap.insert`.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.
        values
            As of `HashMap.insert`.
        assume_unique
            No key is twice in the batches of all ranks together.

        Returns
        -------
        bool[n]
            True where this element added its key.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        verb = partial(self.local.insert, assume_unique=assume_unique)
        text = f"insert, assume_unique={assume_unique}"
        return self._updated(text, keys, values, verb, may_repeat=not assume_unique)

    def assign(self, keys: Any, values: Any) -> Any:
        """Insert or overwrite. Collective. See `HashMap.assign`.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.
        values
            As of `HashMap.assign`.

        Returns
        -------
        bool[n]
            True where the key is new.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        return self._updated("assign", keys, values, self.local.assign)

    def upsert(self, keys: Any, values: Any, op: Any) -> Any:
        """Insert, or combine with the value that is there. Collective. See `HashMap.upsert`.

        ``"first"`` and ``"last"`` are those of a rank's own elements; of elements of several ranks, it is undefined
        which comes first. For ``"add"`` and ``"xor"``, all ranks make room for what they receive before any begins. If
        a rank has no room, the error's ``has_begun`` is False, nothing has changed, and the call can be made again. If
        it is True, a rank had no memory to work with: some values are combined, and a checkpoint has those of before.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.
        values, op
            As of `HashMap.upsert`; ``op`` is the same on all ranks.

        Returns
        -------
        bool[n]
            True where the key is new.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        local, front = self.local, self._front

        def combine(batch: Combined, rows: Sequence[Rows], n: int, keys: Column) -> Column:
            rules = local._parts.facts.rules
            once = HashMap(front.key.spec, front.value.spec, capacity=batch.n, device=local.device, **rules)
            given: list[Any] = self._arrays([each.at for each in rows], n)
            once.upsert(given[0], given[1], op)
            made, found = batch.room(front.value.nbytes), batch.room(PRESENCE.nbytes)
            places = self._array(made.at, batch.n, front.value), self._array(found.at, batch.n, PRESENCE)
            once._parts.lookups.find(self._array(keys.at, batch.n, front.key), *places, front.value.default(0))
            return made

        updated = partial(self._updated, f"upsert {op!r}", keys, values, partial(local.upsert, op=op), may_refuse=True)
        if front.value.has_any_length:
            return updated(may_repeat=op == "first")
        return updated(repeats=op in _REPEATABLE, combine=combine)

    @overload
    def find(self, keys: Any, default: Any = 0, *, order: Literal["given"] = "given") -> tuple[Any, Any]: ...

    @overload
    def find(self, keys: Any, default: Any = 0, *, order: Literal["owner"]) -> Exchanged: ...

    def find(self, keys: Any, default: Any = 0, *, order: str = "given") -> Any:
        """Values of keys, and which keys are there. Collective. See `HashMap.find`.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.
        default
            As of `HashMap.find`; the same on all ranks.
        order
            ``"owner"`` leaves the answers with the owners of the keys, and nothing travels back. Each rank gets an
            `Exchanged`: ``keys`` are those of all ranks that this rank owns, also those that are not there, and
            ``columns`` are their values and whether they were found. The keys of rank 0 come first, then those of rank
            1, and so on; those of one rank are in its order. Keys that the key type does not have are left out.

        Returns
        -------
        values[n], found[n]
            As of `HashMap.find`. With ``order="owner"``, an `Exchanged`.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.

        Examples
        --------
        The sum of the values that all ranks have asked for, without a value that travels::

            mine = m.find(keys, order="owner")
            values, found = mine.columns
            total = values.sum()
        """
        local: Any = self.local
        column = self._front.value
        if order == "given":
            return self._look_up(keys, column, default)

        def ask(own: ArrayView) -> Sequence[tuple[Type, ArrayView]]:
            values, found = local.find(own, default)
            return [(column, values), (PRESENCE, found)]

        return self._left_with_owners("find", order, keys, ask, column, default)

    def find_or_insert(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Insert and find in one operation. Collective. See `HashMap.find_or_insert`.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.
        values
            For the keys that are absent.

        Returns
        -------
        values[n], bool[n]
            The value that each key has now; and True where this element added its key.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        local: Any = self.local
        front = self._front
        columns = [_ADDED, Wanted(front.value, of_every_element=True)]

        def work(n: int, at: list[int], to: list[int]) -> None:
            held, added = local.find_or_insert(*self._arrays(at, n))
            for place, made in zip(to, (added, held), strict=True):
                front.engine.copy(place, made.ptr, made.nbytes, self._channel.stream())

        with self._keeping("find_or_insert") as call:
            local._need("find_or_insert")
            pairs = local._parts.updates.view_pairs(keys, values)
            front.note_kind(pairs[0])
            held: ArrayView | StringArray
            if front.value.has_any_length:
                held, added = self._answered_texts(call, pairs, local.find_or_insert)
            else:
                added, held = self._answered(call, pairs, columns, work, inserts=True)
        return front.value.exported(held, pairs[0].library), added.library.export(added)

    def number(self, keys: Any, *, first: int = 0) -> tuple[Any, Any]:
        """The number of each key, as the value of the key; absent keys get the next numbers.

        The numbers of all keys of all ranks are ``first``, ``first + 1`` and so on. The new keys of a call get theirs
        in an order that depends on their owners.

        Parameters
        ----------
        keys
            As of `HashMap.number`. The values of the table are integers.
        first
            The number of the first key of all, the same in all calls.

        Returns
        -------
        numbers[n], bool[n]
            In the values' type; and True where this element added its key.

        Raises
        ------
        CollectiveError
            If the values are no integers, or too narrow, or if there is no memory. No key was added.
        """
        local, front = self.local, self._front
        value, key = front.value, front.key
        kept: list[Asked] = []

        def look_up(n: int, at: list[int], to: list[int]) -> None:
            batch = Combined(self._channel, front.engine, self._exact(Rows(at[0], key.nbytes), n), n)
            asked = Asked(
                batch,
                batch.first(Rows(at[0], key.nbytes)),
                batch.room(PRESENCE.nbytes),
                batch.answers(value.nbytes, of_every_element=True),
                batch.answers(PRESENCE.nbytes, of_every_element=False),
            )
            rows = [Rows(asked.keys.at, asked.keys.width)]
            answers = [
                Answers(asked.found.at, Kind(asked.found.width, are_flags=True)),
                Answers(asked.numbers.column.at, Kind(asked.numbers.column.width)),
            ]
            self._route.go(call, batch.n, rows, answers, self._finding(value, bytes(value.nbytes)))
            kept.append(asked)

        with self._keeping(f"number, first={first}") as call:
            local._need("number")
            check_numbers(local._parts, first)
            given = front.seen(key.view(keys, "keys"), "keys")
            given = front.learned([given])[0] if front.has_rows else given
            front.note_kind(given)
            fits = self._no_dropped(given)
            seen = given if fits is None else chosen(given, fits)
            made = [front.rows_for(seen, column) for column in (value, PRESENCE)]
            stream = self._stream_of(seen)
            front.run(look_up, [seen], [], stream)
        with self._channel.call(f"number new keys, first={first}") as call:
            NewNumbers(self._channel, self._route, local, self._array, call, first).give(kept[0])

        def write(n: int, at: list[int], to: list[int]) -> None:
            for answers, place in zip((kept[0].numbers, kept[0].added), to, strict=True):
                answers.write(place)

        front.run(write, [], made, stream)
        if fits is not None:
            made = [front.spread(given, fits, each, bytes(each.dtype.itemsize)) for each in made]
        return value.exported(made[0]), made[1].library.export(made[1])

    def to_arrays(self, *, like: Any = None) -> tuple[Any, Any]:
        """Keys and values of this rank's own part. Not collective. See `HashMap.to_arrays`.

        Parameters
        ----------
        like
            As of `HashMap.to_arrays`.

        Returns
        -------
        keys, values
            Arrays of one length.
        """
        return self.local.to_arrays(like=like)


class ShardedSet(ShardedTable[HashSet[Any]]):
    """A hash set over the ranks of a process group.

    Parameters
    ----------
    key, group, device, piece_bytes, **options
        As of `ShardedMap`.

    Attributes
    ----------
    local
        The `HashSet` of this rank's own keys. Reading it is not collective.
    note
        What goes along with the set in its checkpoint; see `save`.

    Raises
    ------
    CollectiveError
        As `ShardedMap`.
    """

    _table = HashSet

    def __init__(
        self,
        key: Any,
        *,
        group: Any = None,
        device: str | None = None,
        piece_bytes: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(key, group=group, device=device, piece_bytes=piece_bytes, **options)

    def insert(self, keys: Any, *, assume_unique: bool = False) -> Any:
        """Add keys. Collective. See `ShardedMap.insert`.

        Parameters
        ----------
        keys
            This rank's, as of `HashMap`; n is 0 on some ranks, if they have none.
        assume_unique
            As of `ShardedMap.insert`.

        Returns
        -------
        bool[n]
            True where this element added its key.

        Raises
        ------
        CollectiveError
            If a rank's arguments are wrong, or there is no room on a rank. All ranks raise it.
        PeerLost
            If a rank does not answer.
        """
        verb = partial(self.local.insert, assume_unique=assume_unique)
        text = f"insert, assume_unique={assume_unique}"
        return self._updated(text, keys, None, verb, may_repeat=not assume_unique)

    def to_arrays(self, *, like: Any = None) -> Any:
        """Keys of this rank's own part. Not collective.

        Parameters
        ----------
        like
            As of `HashSet.keys`.

        Returns
        -------
        keys
            An array.
        """
        return self.local.keys(like=like)


def _described(column: Type | None, default: Any) -> str:
    """The default of a lookup in the text of its call; nothing for one that the call refuses."""
    if column is None:
        return ""
    with suppress(DtypeError, ShapeError):
        if not column.has_any_length:
            return f", default {column.default(default).hex()}"
        row = column.default(default)
        _, content, _ = packed(engine_for("cpu"), address_of(np.frombuffer(row, np.uint8)), 1)
        return f", default {hashlib.sha256(content.data).hexdigest()}"
    return ""


def piece_of(channel: Channel, piece_bytes: int | None) -> int:
    """The bytes of a piece that a caller has asked for; None for the default."""
    if piece_bytes is None:
        return _PIECE_BYTES if channel.place.type == "cpu" else _PIECE_BYTES_OF_GPU
    return integer("piece_bytes", piece_bytes, 1)


def share_of(n: int, world: int) -> int:
    """Keys that each of some ranks surely has room for, of ``n`` keys of all."""
    mean = n / world
    return math.ceil(mean + _DEVIATIONS * math.sqrt(mean)) if world > 1 else n
