"""The base class of all tables: what a table consists of, what its verbs promise, and the one path of each.

Contract. A table maps each of its keys to one value (a `HashMap`), to none (a `HashSet`) or to several (a `MultiMap`).
Every verb takes a batch and is one bulk operation: it happens as a whole, after those before it and before those after
it, whatever thread or stream they came from; lookups may run beside each other. Inside a batch, elements with one key
count as one insert, and the flags say which element that is. A batch that does not fit leaves the table as it was. Keys
are compared by their bits. A verb that the design lacks raises `UnsupportedVerb`, which names the designs that have it.
A batch has any shape, and the answers for its elements have the same shape, followed by the shape of a row of values
where values are rows. What a docstring says of ``n`` keys holds of keys of any shape.

Reading changes nothing. A batch may be under way when a call returns. Verbs that need its end wait for it in
`BaseTable._settled`, while they hold the table's lock alone.

The walk of ``m.find(keys)``: ``maps.py`` names the verb. This module has the keys seen as an address and the results
allocated (``arrays/row_type.py``, ``arrays/adapters/``), takes the lock (``locks.py``), and hands the addresses to the
storage, which launches ``kernels/core/bulk.cuh``. A small batch on a GPU takes a shorter way (``known_batches.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Never, Self, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.engine import ENGINE_MEMORY
from ..arrays.adapters.numpy import NUMPY, address_of
from ..arrays.batch import library_of_rows
from ..arrays.cast import Fits, Sought, chosen, spread
from ..arrays.key_column import key_column
from ..arrays.library import ArrayView, Library
from ..arrays.nullable_column import NullableColumn
from ..arrays.row_names import Names, check_text
from ..arrays.row_type import Column, known_names, read_only
from ..arrays.string_column import StringColumn
from ..arrays.strings import StringArray
from ..arrays.transfer import Body, Transfer
from ..arrays.view import library_like, view
from ..designs import registry
from ..errors import (
    CorruptFile,
    DeviceError,
    ParameterError,
    ShapeError,
    TableFull,
    UnsupportedVerb,
    WarphashError,
)
from ..runtime.abi import Op, Operation, kind_of
from ..runtime.devices import engine_for
from ..storage import selection
from ..storage.batch import Batch
from ..storage.batch_order import lookups
from ..storage.bounded.bound import RANKED_ROWS
from ..storage.make import make_storage
from ..storage.rows import Rows
from ..storage.word_rows import FEWEST_BUILT, WordRows
from . import archive, captured, copies, notebook
from .array_types import A, Bools, Counts, K, Keys, Like, Order
from .closed import ClosedStorage
from .known_batches import KnownLookups, See, known_lookups, known_updates
from .locks import ReadWriteLock
from .options import (
    ExistingFile,
    buckets_of,
    capacity_of,
    check_string_options,
    choices_of,
    integer,
)
from .pickling import as_bytes, rebuild
from .stats import Stats
from .unclosed import Ending, flush_when_unclosed

if TYPE_CHECKING:
    from ..storage.bounded.bounded_rows import BoundedRows
    from .file_commit import FileCommit

__all__ = ["BaseTable"]

T = TypeVar("T")

_COPIED_ELEMENTS = 1 << 17
"""Of a lookup that reads its keys more than once: a piece, whose copies stay in a cache."""

BOOL, COUNT = np.dtype(np.bool_), np.dtype(np.uint32)

PRESENCE = Column(BOOL, ())
"""Whether each key is there."""

RANKS = Column(np.dtype(np.uint64), ())
"""The ranks that a bounded table keeps beside its pairs."""

_PROVING_DESIGNS = ("linear_probing", "bucketed_cuckoo")
"""In which `BaseTable.check` counts different keys: the first one, or the second one for a table of the first."""


class BaseTable(Generic[K]):
    """What all tables are and have. See `HashMap` for the parameters.

    A table's own attributes are slots. So what is in its ``__dict__`` belongs to the caller, or to a subclass of the
    caller's, and goes along when the table is copied or pickled (`__getstate__`).
    """

    __slots__ = (
        "_bound",
        "_bounds",
        "_captures",
        "_commit",
        "_design",
        "_device",
        "_engine",
        "_has_rows",
        "_key",
        "_like",
        "_load_factor",
        "_lock",
        "_lookups",
        "_memory",
        "_options",
        "_parameters",
        "_score",
        "_seed",
        "_storage",
        "_transfer",
        "_unclosed",
        "_updates",
        "_value",
        "_value_kind",
    )

    _kind: ClassVar[str] = "BaseTable"
    _multi: ClassVar[bool] = False
    _operations: ClassVar[tuple[Operation, ...]] = tuple(Operation)

    def __init__(
        self,
        key: npt.DTypeLike,
        value: npt.DTypeLike | None,
        *,
        capacity: int | None = None,
        design: str = "auto",
        device: str | None = None,
        load_factor: float | None = None,
        load_bounds: tuple[float, float] | None = None,
        seed: int | None = None,
        hash: str = "mixer",
        on_full: str = "grow",
        attempts: int = 8,
        count_probes: bool = False,
        nulls: str = "raise",
        floats: str | None = None,
        memory: str | os.PathLike[str] | None = None,
        max_size: int | None = None,
        evict: str | None = None,
        score: npt.DTypeLike | None = None,
        **parameters: Any,
    ) -> None:
        self._key = key_column(key, nulls, floats).own()
        if self._key.has_any_length:
            check_string_options(self._key.name, device, memory)
            device = "cpu"
        self._value = None if value is None else Column.of_values(value).own()
        self._has_rows = any(column.numpy.shape for column in (self._key, self._value) if column is not None)
        self._value_kind = kind_of(self._value.dtype) if self._value else 0
        self._engine: Any = engine_for(device)
        self._device: str = self._engine.device
        options = design, load_factor, load_bounds, hash, on_full, attempts, count_probes, max_size, evict, score
        choices = choices_of(self._kind, self._device, parameters, memory, *options)
        self._design, self._parameters, self._bound, self._score, store = choices
        self._check_design()
        self._load_factor, self._bounds, self._memory = store.load_factor, store.bounds, store.memory
        capacity = capacity_of(capacity, self._bound)
        if self._bound is not None:
            self._need("erase")
            if self._memory != "device" and self._bound.evict in RANKED_ROWS:
                raise ParameterError(
                    f"evict={self._bound.evict!r} keeps a rank beside each pair on the device, and the pairs of this "
                    f"table are in {str(self._memory)!r}: give evict='lfu' or 'random'"
                )
        self._seed = int.from_bytes(os.urandom(8)) >> 1 if seed is None else integer("seed", seed, 0)
        self._transfer = Transfer(self._engine)
        self._lock = ReadWriteLock(self._engine.lost_in_child)
        # Of each type of arrays that were looked up in the table's memory, for find (True) and for contains.
        self._lookups: dict[tuple[type, bool], KnownLookups | None] = {}
        self._updates: dict[type, See | None] = {}  # of each type of arrays that were kept
        self._captures: list[captured.Capture] = []  # of CUDA graphs
        self._like: tuple[Library, str] | None = None  # of the first keys given to keep: library and device
        self._storage: Rows = make_storage(
            self._engine,
            self._design,
            self._parameters,
            key_bytes=self._key.nbytes,
            value_bytes=self._value.nbytes if self._value else 0,
            capacity=capacity,
            seed=self._seed,
            family=hash,
            options=store,
            multi=self._multi,
            bound=self._bound,
            any_length=self._key.has_any_length,
            drops_nulls=nulls == "drop",
        )
        self._options = {
            "hash": hash,
            "on_full": on_full,
            "attempts": store.attempts,
            "count_probes": store.counts_probes,
            "nulls": nulls,
            "floats": floats,
        }
        self._commit: FileCommit | None = None  # has the file hold the table; None without a file
        self._unclosed: Ending | None = None
        if isinstance(self._memory, Path):
            self._keep_in_file(self._memory, store.opens)

    # ---- what the table is
    @property
    def design(self) -> str:
        """Name of the design."""
        return self._design.name

    @property
    def device(self) -> str:
        """Where the table lives: ``"cpu"``, ``"cuda:0"``."""
        return self._device

    @property
    def memory(self) -> str | Path:
        """Where the slots lie: ``"device"``, ``"host"``, or the path of a file, behind all links."""
        return self._memory

    @property
    def key_dtype(self) -> np.dtype[Any]:
        """Type of a key; of a row of keys, with its shape. Of strings of any length, ``dtype("str")``."""
        return self._key.numpy

    @property
    def _rules(self) -> dict[str, Any]:
        """The options that say when two keys are one: a table with these takes the same keys."""
        return {name: self._options[name] for name in ("nulls", "floats")}

    @property
    def seed(self) -> int:
        """Seed of the hash constants; tables of one seed and history are alike."""
        return self._seed

    @property
    def capacity(self) -> int:
        """Keys that the present memory holds at the load factor that the table was made for."""
        return self._settled(lambda: self._storage.store.capacity)

    @property
    def load_factor(self) -> float:
        """Keys held over slots."""
        return self._settled(lambda: self._storage.store.size / self._storage.store.slots)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the table holds."""
        return self._settled(lambda: self._storage.nbytes)

    def __len__(self) -> int:
        return self._settled(lambda: self._storage.store.size)

    def __repr__(self) -> str:
        if isinstance(self._storage, ClosedStorage):
            return f"<{type(self).__name__}: closed>"
        return self._settled(self._repr_locked)

    def _repr_html_(self) -> str:
        """The table's figures, for a notebook: no pair is read."""
        return notebook.html(self)

    def stats(self) -> Stats:
        """Figures of the table, without reading its slots."""
        return self._settled(self._stats_locked)

    # ---- verbs that look keys up
    @overload
    def contains(self, keys: Keys, *, order: Literal["given"] = "given") -> Bools: ...

    @overload
    def contains(self, keys: A, *, order: Literal["given"] = "given") -> A: ...

    @overload
    def contains(self, keys: Keys, *, order: Literal["any"]) -> tuple[npt.NDArray[K], Bools]: ...

    @overload
    def contains(self, keys: A, *, order: Literal["any"]) -> tuple[A, A]: ...

    def contains(self, keys: Any, *, order: Order = "given") -> Any:
        """Which keys are there: bool[n]. Reads at most one bucket per hash function and key.

        Parameters
        ----------
        keys
            Array of length n.
        order
            ``"any"`` lets the table choose the order of the answers: ``(keys[n], found[n])``, where ``keys`` are the
            given ones in that order. A large batch is then answered in the order in which its keys lie in the table,
            where this saves time. Where the order is kept, ``keys`` is the object that was given.
        """
        self._need("contains")
        if order != "given":
            keys, _, found = self._look_up_in_any_order(keys, None, 0, order)
            return keys, found
        return self._look_up(keys, None, 0)[1]

    def __contains__(self, key: Any) -> bool:
        """Whether one key is there. What the key type cannot represent exactly is not.

        Raises
        ------
        ShapeError
            For a batch of keys: `contains` answers for each.
        """
        self._need("contains")
        seen = self._view_one(key)
        return seen is not None and bool(self._transfer.on_host(view(self._look_up(seen, None, 0)[1]))[0])

    @overload
    def probe_counts(self, keys: Keys) -> Counts: ...

    @overload
    def probe_counts(self, keys: A) -> A: ...

    def probe_counts(self, keys: Any) -> Any:
        """How many buckets find reads for each key: uint32[n]. Of a key that the key type cannot represent, none."""
        self._need("probe_counts")
        return self._answered(keys, COUNT, self._settled, self._storage.counts)

    @overload
    def guest_counts(self, keys: Keys) -> Counts: ...

    @overload
    def guest_counts(self, keys: A) -> A: ...

    def guest_counts(self, keys: Any) -> Any:
        """How many words find reads for each key to learn which other buckets may hold it: uint32[n].

        Only ``dynamic_cuckoo`` keeps such words. On a CPU all counts are 0: there, find reads the buckets instead.

        Raises
        ------
        UnsupportedVerb
            If the design keeps none.
        """
        self._need("guest_counts")

        def counts(at: int, n: int, out: int, stream: Any) -> None:
            self._storage.counts(at, n, out, stream, entry="guest_counts")

        return self._answered(keys, COUNT, self._settled, counts)

    # ---- verbs that read all keys
    @overload
    def keys(self: BaseTable[Never], *, like: None = None) -> Any: ...

    @overload
    def keys(self, *, like: Like = None) -> npt.NDArray[K]: ...

    @overload
    def keys(self, *, like: A) -> A: ...

    @overload
    def keys(self, *, like: str) -> Any: ...

    def keys(self, *, like: Any = None) -> Any:
        """All keys, in no particular order.

        Parameters
        ----------
        like
            An array: the result is an array of its library, in host memory or on the GPU as this one is. Or the name of
            a library, such as ``"torch"``: the result is on the table's device, or in host memory for ``"numpy"``. By
            default, as the first keys that the table was given to keep. Keys of a table on a GPU stay there unless the
            result is in host memory.

        Raises
        ------
        DtypeError
            If the library has no such type.
        DeviceError
            If ``like`` is on another GPU than the table, or the library has no arrays on the table's device.
        ParameterError
            If there is no library of that name.
        """
        self._need("keys")
        return self._read_all(like, self._key)[0]

    def __iter__(self) -> Iterator[K]:
        """The keys one by one, those of a `MultiMap` once for each pair: a snapshot of the table, in host memory."""
        return iter(read_only(self.keys(like="numpy")))

    # ---- verbs that change the table
    @overload
    def erase(self, keys: Keys) -> Bools: ...

    @overload
    def erase(self, keys: A) -> A: ...

    def erase(self, keys: Any) -> Any:
        """Erase keys: bool[n], True where this element erased its key. Of several elements with one key, one is True.

        The slots become tombstones, which inserts use again and rebuilds remove. A find goes on behind a bucket that
        was ever full, so lookups do not get faster.
        """
        self._need("erase")
        return self._answered(keys, BOOL, self._lock.write, self._storage.erase)

    def clear(self) -> None:
        """Forget all keys; keep the memory."""
        self._need("clear")
        self._lock.write(self._storage.clear, None)

    def reserve(self, n: int) -> None:
        """Make room for ``n`` keys at the load factor that the table was made for. Never shrinks the table.

        Raises
        ------
        MemoryError
            If there is no room; the table is as it was.
        """
        self._need("reserve")
        wanted = integer("n", n, 0)
        self._alone(self._resize_locked, wanted)

    def shrink(self) -> None:
        """Rebuild the table in the memory that the present keys need, without tombstones."""
        self._need("shrink")
        self._alone(self._resize_locked, None)

    def _resize_locked(self, keys: int | None) -> None:
        """Make room for ``keys`` keys, if there is less; or rebuild for the present keys."""
        store = self._storage.store
        if keys is None or keys > store.capacity:
            self._storage.rebuild(store.size if keys is None else keys, None)

    def flush(self, buckets: int | slice | None = None) -> int:
        """Have the home of a table hold what the table holds now; or drop the erased slots of a table of lists.

        A table in a file (``memory=path``): what the table holds now is what `open` finds, whatever becomes of this
        process. Until the next flush, `open` finds that again, and nothing of the updates in between. A tiered table
        with ``write="back"``: values that have changed on the device come home.

        A table of lists: the lists of buckets are packed into as few nodes as hold their keys. The table does so by
        itself once there are more erased slots than keys.

        Parameters
        ----------
        buckets
            Of a table of lists: the number of a bucket, a slice of numbers without a step, or None for all buckets.

        Returns
        -------
        int
            Number of nodes that were freed; 0 for other tables.

        Raises
        ------
        UnsupportedVerb
            If the table is in no file, and the design has nothing to flush.
        ParameterError
            If there is no such bucket.
        """
        if isinstance(self._memory, Path):
            self._alone(self._commit_locked)
            return 0
        self._need("flush")

        def flush() -> int:
            store: Any = self._storage.store  # of a design that has something to flush
            if not self._design.layout.keeps_duplicates:
                store.write_back()
                return 0
            return int(store.pack(*buckets_of(buckets, store.array.buckets, store.array.lists)))

        return self._alone(flush)

    # ---- copies, pickles and files
    def copy(self) -> Self:
        """Another table with the same pairs and options, on the same device, as ``copy.copy`` makes it.

        The copy shares the attributes that a subclass has added; ``copy.deepcopy`` copies those, too.
        """
        self._need("copy")
        twin = self._settled(self._copied_locked)
        copies.give_state(twin, self.__getstate__())
        return twin

    def _copied_locked(self) -> Self:
        """A table with the same pairs and options; the pairs are copied on the device."""
        twin = self._made({**self._typed_description(), "capacity": 1}, self.device, 1)
        twin._storage = self._storage.copy(None)
        twin._like = self._like
        return twin

    def __copy__(self) -> Self:
        return self.copy()

    def to(self, device: str) -> Self:
        """The table on a device: this table, if it is there already, or else another one with the same pairs.

        Parameters
        ----------
        device
            ``"cpu"``, ``"cuda"`` or ``"cuda:1"``. The pairs go through host memory.

        Raises
        ------
        EngineUnavailable, DeviceError
            If there is no such device.
        MemoryError
            If there is no room; this table is as it was.
        """
        if engine_for(device).device == self.device:
            return self
        self._need("copy")
        return copies.replaced(self, self._contents(), {"device": device})

    def cpu(self) -> Self:
        """The table on the CPU; see `to`."""
        return self.to("cpu")

    def cuda(self, index: int | None = None) -> Self:
        """The table on a GPU, by default on the current one; see `to`."""
        return self.to("cuda" if index is None else f"cuda:{integer('index', index, 0)}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        self._need("copy")
        twin = copies.rebuilt(type(self), self._contents(), self.device)
        memo[id(self)] = twin  # an attribute may lead back to the table
        copies.give_state(twin, deepcopy(self.__getstate__(), memo))
        twin._like = self._like
        return twin

    def __replace__(self, /, **changes: Any) -> Self:
        """Another table with the same pairs and other options, as ``copy.replace`` makes it. ``device`` is an option.

        With another design, the parameters and the load factor are the defaults of that design.
        """
        self._need("copy")
        return copies.replaced(self, self._contents(), changes)

    def __reduce__(self) -> tuple[Any, ...]:
        self._need("save")
        description, keys, values, ranks = self._contents()
        columns = (keys, values) if ranks is None else (keys, values, ranks)
        arrays = (None if column is None else as_bytes(column) for column in columns)
        return rebuild, (type(self), self.device, description, *arrays), self.__getstate__()

    def __getstate__(self) -> Any:
        """The attributes that the caller has added, in the form of ``object.__getstate__``.

        That is None, a dict, or a dict and another one for slots.
        """
        state: Any = super().__getstate__()
        attributes, slots = state if isinstance(state, tuple) else (state, {})
        own = {name: value for name, value in slots.items() if name not in BaseTable.__slots__}
        return (attributes, own) if own else attributes

    def __setstate__(self, state: Any) -> None:
        attributes, slots = state if isinstance(state, tuple) else (state, {})
        vars(self).update(attributes or {})
        for name, value in slots.items():
            setattr(self, name, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file, which replaces an older one only when it is complete and on disk.

        The mode and the owner of the older file stay. If ``path`` is a link, the file that it leads to is replaced.

        Raises
        ------
        PathError
            If ``path`` is a folder or a device, or its folder is missing or takes no file. The table is not read then.
        """
        self._need("save")
        if isinstance(self._key, NullableColumn):
            raise UnsupportedVerb(f"a file has no keys of type {self._key.name}: pickle the table")

        def contents() -> copies.TableContents:
            return self._settled(lambda: copies.TableContents(self._description(), *self._all_columns_locked()))

        archive.write(path, contents)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str | None = None) -> Self:
        """Read a table that `save` wrote, on any device.

        A table that may not grow gets more slots than it had if its keys find no room in their new order. A table that
        may grow gets only the memory that its keys need if there is none for the capacity that it had.

        Raises
        ------
        CorruptFile
            If the file is truncated, altered, or not a saved table of this class.
        MemoryError
            If there is no room.
        """
        return copies.loaded(cls, path, archive.read(path, cls._kind), device)

    # ---- a file that holds the table
    @classmethod
    def open(cls, path: str | os.PathLike[str], *, device: str | None = None) -> Self:
        """Open the file of a table that was made with ``memory=path``: the table as it was at its last `flush`.

        Nothing is read but the ticket board: an eighth of the slots' number in bytes for each bit of a ticket. The
        options of the table are those that it was made with.

        Raises
        ------
        PathError
            If there is no such file, or a table has it open, here or in another process, or it has several names (hard
            links).
        CorruptFile
            If the file or its journal is damaged, the journal is missing, or the file holds no table of this class.
        MemoryError
            If there is no room, in memory, in the address space or among the open files.
        """
        from ..storage.tickets.table_file import describe

        target = ExistingFile(os.path.realpath(path))
        try:
            header = describe(Path(target))["table"]["header"]
            return cls._made(archive.table_of(header, cls._kind), device, header["capacity"], target)
        except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
            if isinstance(error, CorruptFile | DeviceError):
                raise
            raise CorruptFile(f"{target} holds no {cls._kind}: {error}") from None

    def _keep_in_file(self, path: Path, opens: bool) -> None:
        """Have a new file hold the table, and have the file flushed if nobody closes the table."""
        from .file_commit import FileCommit

        store: Any = self._storage.store  # of a design whose slots may lie in a file
        self._commit = FileCommit(store, (self._key, self._value), self._description())
        if not opens:
            self._commit.check((None, None))
            self._commit()  # nobody else has the table
        self._unclosed = flush_when_unclosed(self, self._lock, store, self._commit, path)

    def _commit_locked(self) -> None:
        """Have the file hold the table. The caller holds the lock, and the table is not closed."""
        assert self._commit is not None
        self._commit()

    def close(self) -> None:
        """Give back all memory; of a table in a file, `flush` first, and let others open the file.

        Every later call raises `WarphashError`. A table in a file that is not closed is flushed when the last reference
        to it goes, or when the process ends, with a `ResourceWarning`. A process that is killed flushes nothing: the
        file then has what the last `flush` confirmed. In the child of a fork, the table is the parent's: nothing is
        flushed.
        """
        self._lock.write(self._close_locked)

    def _close_locked(self) -> None:
        if isinstance(self._storage, ClosedStorage):
            return
        store: Any = self._storage.store
        if self._commit is not None and not store.is_inherited:
            store.finish(None)
            self._commit()
        self._give_back_locked()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the table. If the block failed, its file has what the last `flush` confirmed."""
        if kind is None:
            return self.close()
        self._lock.write(self._give_back_locked)

    def _give_back_locked(self) -> None:
        """Forget the storage."""
        in_file = isinstance(self._memory, Path)
        mend = f"{type(self).__name__}.open({str(self._memory)!r}) opens it again" if in_file else "make a new one"
        if self._unclosed is not None:
            self._unclosed.detach()
        self._captures, self._commit = [], None
        self._storage = cast(Rows, ClosedStorage(mend))

    # ---- CUDA graphs
    def captures_are_current(self) -> bool:
        """Whether the CUDA graphs that captured lookups of this table still read what a find would read now.

        They do until an update, `reserve` or `shrink` rebuilds or enlarges the table. Then capture the graphs again.
        The memory that graphs may read stays with the table until it is closed or gone.
        """
        return self._settled(captured.are_current, self)

    # ---- its own proof
    def check(self) -> None:
        """Verify the table's invariants. O(slots), with memory for a copy of the keys and for a set of them.

        Raises
        ------
        WarphashError
            With the state, if one is broken.
        """
        self._settled(self._check_locked)

    def _check_locked(self) -> None:
        (keys,) = self._scanned_locked(ENGINE_MEMORY, self._device, [self._key])
        problems = []
        if broken := self._storage.store.broken_buckets():
            problems.append(f"{broken:,} buckets break the rules of their layout")
        if not self._multi and (repeated := keys.rows - self._distinct(keys)):
            problems.append(f"{repeated:,} keys are stored twice")
        _, found = self._present_in_any_order_locked(keys)
        if lost := keys.rows - selection.count(self._engine, found, keys.rows):
            problems.append(f"{lost:,} stored keys cannot be found")
        if self._bound is not None:
            bounded = self._bounded
            if keys.rows > bounded.max_size + bounded.piece:
                problems.append(
                    f"{keys.rows:,} keys are more than max_size={bounded.max_size:,} and a piece of a batch"
                )
        if problems:
            state = f"State: {self._stats_locked()}"
            raise WarphashError(f"{self._repr_locked()} is broken: {'; '.join(problems)}. {state}")

    def _distinct(self, keys: ArrayView) -> int:
        """How many different keys there are among ``keys``: the size of a set of another design."""
        design = next(name for name in _PROVING_DESIGNS if name != self.design)
        options: dict[str, Any] = {"design": design, "device": self.device, "seed": self._seed + 1, **self._rules}
        proof = BaseTable(self.key_dtype, None, capacity=max(1, keys.rows), **options)
        proof._update_locked([keys], Op.KEEP, None)
        return len(proof)

    # ---- the lock, which is not reentrant: the caller of a method ``_*_locked`` holds it
    def _settled(self, verb: Callable[..., T], *args: Any) -> T:
        """Call ``verb`` while no batch is under way: beside readers, or alone, to end a batch first."""
        done = self._lock.read(lambda: None if self._storage.store.pending else (verb(*args),))
        return self._alone(verb, *args) if done is None else done[0]

    def _alone(self, verb: Callable[..., T], *args: Any) -> T:
        """Call ``verb`` alone, behind the end of the batch that is under way."""
        return self._lock.write(self._finish_and_call, verb, *args)

    def _finish_and_call(self, verb: Callable[..., T], *args: Any) -> T:
        self._storage.store.finish(None)
        return verb(*args)

    # ---- what a verb is made of
    def _need(self, verb: str) -> None:
        """Raise `UnsupportedVerb` if the design does not have a verb."""
        if verb not in self._design.capabilities:
            have = ", ".join(name for name in registry.names() if verb in registry.get(name).capabilities)
            mend = f"these have: {have}" if have else "no other design has"
            raise UnsupportedVerb(f"design {self.design!r} has no {verb}; {mend}")

    def _view(self, column: Column, rows: Any, what: str) -> ArrayView:
        """See an array of a batch, and check it. A view that this table has checked passes."""
        seen = column.view(rows, what)
        if seen.device != self._device:
            self._transfer.need_way(seen, what)
        return seen

    def _view_keys(self, keys: Any) -> ArrayView:
        """See the keys of a batch to be kept, and check them."""
        return self._view(self._key, keys, "keys")

    def _sought(self, keys: Any) -> tuple[ArrayView, Fits]:
        """See the keys of a batch to be looked up or erased, and which of them the key type represents."""
        return self._sought_rows(*self._key.fitting(keys))

    def _sought_rows(self, seen: ArrayView, fits: Fits) -> tuple[ArrayView, Fits]:
        if seen.device != self._device:
            self._transfer.need_way(seen, "keys")
        return seen, fits

    def _one_or_many(self, keys: Any) -> tuple[bool, ArrayView, Fits]:
        """Whether ``keys`` is one key and no batch; and as `_sought`."""
        seen, fits = self._key.elements(keys)
        is_one = seen.shape == self._key.shape
        return is_one, *self._sought_rows(*self._key.rows(seen, fits))

    def _view_beside(self, keys: ArrayView, column: Column, rows: Any, what: str) -> ArrayView:
        """See an array with a row for each key, and check it. A single row is that of all keys."""
        seen = self._view(column, rows, what)
        if seen.library is not keys.library or seen.shape[0] != keys.shape[0]:
            return self._one_for_each(keys, seen, column, rows, what)
        return seen

    def _one_for_each(self, keys: ArrayView, seen: ArrayView, column: Column, rows: Any, what: str) -> ArrayView:
        """Rows of another library or number than the keys: one for each key, or a single row that is that of all."""
        if seen.batch == keys.batch:
            return seen
        if view(rows, column.dtype).shape == column.shape:
            return view(np.broadcast_to(self._transfer.on_host(seen)[0], keys.shape[:1] + column.shape))
        if len(keys.batch) == len(seen.batch) == 1:
            raise ShapeError(f"keys and {what} must be of one length, got {keys.rows:,} keys and {seen.rows:,} {what}")
        raise ShapeError(
            f"keys and {what} must be of one shape, got keys of {keys.batch} and {what} of {seen.batch}: "
            "give one for each key, or a single one for all keys"
        )

    def _view_pairs(self, keys: Any, values: Any) -> list[ArrayView]:
        """See the keys of a batch to keep, and the values, if the table has values."""
        seen = self._view(self._key, keys, "keys")
        pairs = [seen] if self._value is None else [seen, self._view_beside(seen, self._value, values, "values")]
        if self._has_rows:
            return self._learned(pairs)
        return pairs

    def _learned(self, pairs: Sequence[ArrayView]) -> list[ArrayView]:
        """Rows to keep, in the order of the table, which learns their names.

        Raises
        ------
        DtypeError
            If the table could not give the names back, or its file cannot have them: then it learns none. Or if it
            knows other ones.
        """
        columns = [column for column in (self._key, self._value) if column is not None]
        given = [column.names_given(rows) for column, rows in zip(columns, pairs, strict=False)]
        for column, names in zip(columns, given, strict=False):  # a mixed batch may have no values
            if names is not None and column.names.known is None:
                check_text(names)
        self._check_described(given)
        whats = zip(columns, pairs, ("keys", "values"), strict=False)
        return [column.learn(rows, what) for column, rows, what in whats]

    def _view_scores(self, keys: ArrayView, scores: Any) -> ArrayView | None:
        """See the scores of a batch, if the table ranks its keys by scores."""
        if self._score is None:
            if scores is not None:
                raise ParameterError("scores= is for tables with evict='score': leave it out")
            return None
        if scores is None:
            raise ParameterError("the table ranks its keys by scores: give scores=, to insert, assign or upsert")
        return self._view_beside(keys, self._score, scores, "scores")

    def _view_one(self, key: Any, mend: str = "ask contains(keys)") -> ArrayView | None:
        """See one key, as an array of any type or a value; None if the key type does not represent it exactly.

        ``mend`` is what a caller should do that has a batch.
        """
        seen = self._key.view_one(key, mend)
        return None if seen is None else self._sought_rows(seen, None)[0]

    def _run(self, body: Body, ins: Sequence[ArrayView], outs: Sequence[ArrayView], stream: Any) -> None:
        """Run ``body`` on the addresses of arrays, or of copies that the engine can reach. The caller holds the lock.

        The work on ``stream`` comes behind the streams of all ``ins``.

        Raises
        ------
        CaptureError
            If a CUDA graph captures one of the streams.
        """
        if stream not in captured.NEVER:
            captured.refuse(self._engine, stream)
        device, here = self._device, True
        for seen in ins:
            here = here and seen.device == device
            if seen.stream is not None and seen.stream != stream:
                captured.refuse(self._engine, seen.stream)
                self._engine.wait(seen.stream)  # another library's; the engine's own streams follow each other
        for made in outs:
            here = here and made.device == device
        if here:
            at, _held = self._transfer.addresses(ins)
            body(ins[0].shape[0] if ins else 0, at, [made.ptr for made in outs])
        else:
            self._transfer.run(body, ins, outs, stream)

    def _run_naming_keys(self, body: Body, ins: Sequence[ArrayView], outs: Sequence[ArrayView], stream: Any) -> None:
        """As `_run`; a `TableFull` names keys of ``ins[0]`` instead of the numbers of their elements."""
        try:
            self._run(body, ins, outs, stream)
        except TableFull as error:
            raise self._naming_keys(error, ins[0]) from None

    def _naming_keys(self, error: TableFull, keys: ArrayView) -> TableFull:
        """The error with keys of a batch instead of the numbers of their elements. The caller holds the lock."""
        return TableFull(str(error), self._key.named(self._transfer.on_host(keys)[error.keys]))

    # ---- the one path of lookups
    def _look_up(self, keys: Any, column: Column | None, default: Any) -> tuple[Any, Any]:
        """Values and presence of keys, given or `Sought`; None for the values without a ``column``."""
        absent = b"\0" if column is None else column.default(default)
        which = type(keys), column is not None
        known = self._lookups.get(which)
        if known is not None and (made := known.see(keys)) is not None:
            status = self._lock.read(known.launch, self._storage, int.from_bytes(absent, "little"), made)
            if status == 0:
                return made[0], made[1]
            if status > 0:
                self._engine.refuse_launch(status)
        seen, fits = keys if type(keys) is Sought else self._key.fitting(keys)
        if seen.device != self._device:
            self._transfer.need_way(seen, "keys")
        sought = seen if fits is None else chosen(seen, fits)
        library, rows, engine = sought.library, sought.shape[:1], self._engine
        values = None if column is None else library.empty(sought, rows + column.shape, column.dtype, engine)
        found = library.empty(sought, rows, BOOL, engine)
        self._find(sought, values, found, absent)
        if fits is None and which not in self._lookups and seen.device == self._device:
            self._lookups[which] = known_lookups(self, type(keys), seen, column, PRESENCE)
        if fits is not None:
            values = None if values is None else self._spread(seen, fits, values, absent)
            found = self._spread(seen, fits, found, b"\0")
            library = seen.library
        if column is None or values is None:
            return None, library.export(found)
        return column.exported(values) if column.shape else library.export(values), library.export(found)

    def _spread(self, seen: ArrayView, fits: Fits, answers: ArrayView, absent: bytes) -> ArrayView:
        """The answers for all keys of a batch, of those for the ones that fit; ``absent`` is that of the others."""
        shape = seen.shape[:1] + answers.shape[1:]
        out = seen.library.empty(seen, shape, answers.dtype, self._engine)
        spread(out, fits, answers, absent)
        return out

    def _look_up_in_any_order(self, keys: Any, column: Column | None, default: Any, order: str) -> tuple[Any, Any, Any]:
        """Keys, values and presence, in an order that the table chooses; None for the values without a ``column``."""
        if order != "any":
            raise ParameterError(f'order must be "given" or "any", got {order!r}')
        absent = b"\0" if column is None else column.default(default)
        seen, fits = self._sought(keys)
        if fits is None and self._may_choose_order(seen):
            library, rows, engine = seen.library, seen.shape[:1], self._engine
            moved = library.empty(seen, rows + self._key.shape, self._key.dtype, engine)
            values = None if column is None else library.empty(seen, rows + column.shape, column.dtype, engine)
            found = library.empty(seen, rows, BOOL, engine)
            if self._lock.read(self._find_in_any_order_locked, seen, moved, values, found, absent):
                given = None if column is None else column.exported(values)
                return self._key.exported(moved), given, library.export(found)
        return keys, *self._look_up(Sought(seen, fits), column, default)

    def _may_choose_order(self, keys: ArrayView) -> bool:
        """Whether an order of the table's choice could save time: keys are many, in memory of a GPU."""
        large = keys.rows >= lookups.FEWEST_PARTITIONED and keys.device == self._device
        return large and self._engine.reach_bytes > 0 and isinstance(self._storage, WordRows)

    def _find_in_any_order_locked(
        self, keys: ArrayView, moved: ArrayView, values: ArrayView | None, found: ArrayView, absent: bytes
    ) -> bool:
        """As `WordRows.find_in_any_order`; False also if an update has to be finished first."""
        storage = self._storage
        if storage.store.recovery.step is not None or not isinstance(storage, WordRows):
            return False
        out = 0 if values is None else values.ptr
        return storage.find_in_any_order(keys.ptr, keys.rows, moved.ptr, out, found.ptr, absent, keys.stream)

    def _find(self, keys: ArrayView, values: ArrayView | None, found: ArrayView, absent: bytes) -> None:
        """Look up keys: values, unless they are None, and presence."""
        if keys.device != self._device:
            if not self._lock.read(self._find_through_host_locked, keys, values, found, absent):
                self._alone(self._find_through_host_locked, keys, values, found, absent)
            return
        at, n, out, stream = keys.ptr, keys.shape[0], 0 if values is None else values.ptr, keys.stream
        if not self._lock.read(self._find_locked, at, n, out, found.ptr, absent, stream):
            self._alone(self._find_locked, at, n, out, found.ptr, absent, stream)

    def _find_locked(self, keys: int, n: int, values: int, found: int, absent: bytes, stream: int | None) -> bool:
        """Look up ``n`` keys by address, unless an update has to be finished first: whether that was not so.

        ``values`` is 0 where only presence is asked for.
        """
        if stream not in captured.NEVER and self._engine.is_captured(stream):
            captured.look_up(self, keys, n, values, found, absent, stream)
            return True
        storage = self._storage
        if storage.store.recovery.step is not None:
            return False
        if storage.rereads and self._transfer.shares_memory:
            self._find_by_copies_locked(keys, n, values, found, absent)
        else:
            storage.find(keys, n, values, found, absent, stream)
        return True

    def _find_by_copies_locked(self, keys: int, n: int, values: int, found: int, absent: bytes) -> None:
        """As `_find_locked`, by copies of pieces of the keys, and of the flags, that nobody else writes to."""
        private, copy = self._transfer.private, self._engine.copy
        width, value_bytes = self._key.nbytes, self._value.nbytes if self._value else 0
        flags = np.empty(min(n, _COPIED_ELEMENTS), np.uint8)
        for at in range(0, n, _COPIED_ELEMENTS):
            count = min(_COPIED_ELEMENTS, n - at)
            rows, _rows = private(keys + at * width, count * width)
            out = values and values + at * value_bytes
            self._storage.find(rows, count, out, address_of(flags), absent, None)
            copy(found + at, address_of(flags), count)

    def _find_through_host_locked(
        self, keys: ArrayView, values: ArrayView | None, found: ArrayView, absent: bytes
    ) -> bool:
        """As `_find_locked`, of arrays in host memory that the engine does not reach."""
        if self._storage.store.recovery.step is not None:
            return False

        def body(n: int, at: list[int], to: list[int]) -> None:
            self._storage.find(at[0], n, to[1] if len(to) > 1 else 0, to[0], absent, keys.stream)

        self._transfer.run(body, [keys], [found] if values is None else [found, values], keys.stream, in_pieces=True)
        return True

    def _present_in_any_order_locked(self, keys: ArrayView) -> tuple[ArrayView, ArrayView]:
        """Keys in an order that the table chooses, and which of them are there; in the same kind of memory."""
        if self._may_choose_order(keys):
            found = keys.library.empty(keys, keys.shape[:1], BOOL, self._engine)
            with suppress(MemoryError):  # an order that costs memory is not worth an error
                moved = keys.library.empty(keys, keys.shape, self._key.dtype, self._engine)
                if self._find_in_any_order_locked(keys, moved, None, found, b"\0"):
                    return moved, found
        return keys, self._present_locked(keys)

    def _present_locked(self, keys: ArrayView) -> ArrayView:
        """Which keys are there, in the same kind of memory as the keys."""
        found = keys.library.empty(keys, keys.shape[:1], BOOL, self._engine)
        self._answer_locked(keys, found, self._storage.present)
        return found

    @property
    def _unused_storage(self) -> Rows:
        """The storage, inside a bound: a find there is no use of the keys."""
        return self._storage if self._bound is None else self._bounded.unused

    # ---- the one path of verbs with one answer for each key
    def _answered(self, keys: Any, dtype: np.dtype[Any], run: Any, verb: Callable[[int, int, int, Any], Any]) -> Any:
        """What ``verb``, of `rows.Rows`, writes for each key; ``run`` calls it under the lock."""
        seen, fits = self._sought(keys)
        rows = seen if fits is None else chosen(seen, fits)
        answers = rows.library.empty(rows, rows.shape[:1], dtype, self._engine)
        run(self._answer_locked, rows, answers, verb)
        if fits is not None:
            answers = self._spread(seen, fits, answers, bytes(dtype.itemsize))
        return answers.library.export(answers)

    def _answer_locked(self, keys: ArrayView, answers: ArrayView, verb: Callable[[int, int, int, Any], Any]) -> None:
        stream = keys.stream
        if keys.device != self._device:
            self._run(lambda n, at, to: verb(at[0], n, to[0], stream), [keys], [answers], stream)
            return
        if stream not in captured.NEVER:
            captured.refuse(self._engine, stream)
        at, _held = self._transfer.addresses([keys])
        verb(at[0], keys.shape[0], answers.ptr, stream)

    # ---- the one path of updates
    def _update(
        self, keys: Any, values: Any, op: Op, *, scores: Any = None, unique: bool = False, answers: bool = True
    ) -> Any:
        """Insert, assign or combine: bool[n], True where this element added its key; None without ``answers``."""
        see = self._updates.get(type(keys))
        if see is not None and scores is None and answers:
            known = see(keys) if self._value is None else see(keys, values)
            if known is not None:
                made, n, at_stream, *at, made_at = known
                self._lock.write(
                    self._update_at_locked, at[0], at[1] if len(at) > 1 else 0, n, op, made_at, unique, at_stream, keys
                )
                return made
        pairs = self._view_pairs(keys, values)
        seen = pairs[0]
        given = None if self._score is scores is None else self._view_scores(seen, scores)
        if self._like is None:
            self._note_kind(seen)
        added = seen.library.empty(seen, seen.shape[:1], BOOL, self._engine) if answers else None
        stream, device, last = seen.stream, self._device, pairs[-1]
        if given is None and seen.device == device == last.device and last.stream == stream:
            values_at, added_at = 0 if self._value is None else last.ptr, 0 if added is None else added.ptr
            self._lock.write(
                self._update_at_locked, seen.ptr, values_at, seen.shape[0], op, added_at, unique, stream, seen
            )
            if answers and type(keys) not in self._updates:  # a build may be all that a table is for
                self._updates[type(keys)] = known_updates(self, type(keys), pairs, PRESENCE)
        else:
            self._lock.write(self._update_locked, pairs, op, added, unique=unique, scores=given)
        return None if added is None else added.library.export(added)

    def _update_at_locked(
        self, keys: int, values: int, n: int, op: Op, added: int, unique: bool, stream: int | None, named: Any
    ) -> None:
        """As `_update_locked`, of ``n`` pairs in the engine's memory, by address. ``named`` is the array of keys.

        Nobody else writes to ``added``.
        """
        if stream not in captured.NEVER:
            captured.refuse(self._engine, stream)
        if self._transfer.shares_memory:
            storage = self._storage
            if n >= FEWEST_BUILT and op == Op.KEEP and isinstance(storage, WordRows):
                batch = Batch(keys, values, n, flags=added, unique=unique)
                if storage.build(batch):
                    return
            value_bytes = 0 if self._value is None else self._value.nbytes
            keys, values, rows = self._transfer.private_pairs(keys, n * self._key.nbytes, values, n * value_bytes)
        else:
            rows = None
        try:
            self._storage.update(Batch(keys, values, n, op, self._value_kind, added, 0, unique, stream))
        except TableFull as error:
            if rows is not None and not self._key.has_any_length:
                named = rows.view(self._key.dtype).reshape(n, *self._key.shape)
            raise self._naming_keys(error, view(named)) from None

    def _update_locked(
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
        stream = pairs[0].stream
        update: Callable[..., None] = self._storage.update
        ranking = ranks if scores is None else scores
        ins = pairs if ranking is None else [*pairs, ranking]

        def body(n: int, at: list[int], to: list[int]) -> None:
            more = {}
            if ranks is not None:
                more = {"ranks": at[-1]}
            elif scores is not None:
                more = {"scores": at[-1], "score_kind": kind_of(scores.dtype)}
            values = at[1] if self._value is not None else 0
            answers = 0 if added is None else to[0], 0 if held is None else to[-1]
            update(Batch(at[0], values, n, op, self._value_kind, *answers, unique, stream), **more)

        self._run_naming_keys(body, ins, [made for made in (added, held) if made is not None], stream)

    def _fill(self, keys: Any, values: Any, ranks: ArrayView | None, *, unique: bool) -> None:
        """Insert the pairs of another table. Nobody else has this table yet, so its lock is free."""
        self._update_locked(self._view_pairs(keys, values), Op.KEEP, None, unique=unique, ranks=ranks)

    def _note_kind(self, keys: ArrayView) -> None:
        """Remember what kind of array the first keys were that a caller gave the table to keep."""
        if self._like is None and keys.library is not ENGINE_MEMORY:
            self._like = library_of_rows(keys.library), keys.device

    def _note_kind_of(self, other: BaseTable[Any]) -> None:
        """As `_note_kind`, if the first keys come from another table: their kind is the one that table has noted."""
        if self._like is None and other._like is not None and other._like[1] in ("cpu", self._device):
            self._like = other._like

    # ---- the one path of verbs that read all keys
    def _read_all(self, like: Any, *columns: Column) -> list[Any]:
        """All rows of some columns, as arrays like ``like`` (`keys`)."""
        library, device = self._kind_like(like)
        made = self._settled(self._owned_columns_locked, library, device, columns)
        return self._exported(made, columns, library)

    def _exported(
        self, made: Sequence[ArrayView | StringArray], columns: Sequence[Column], library: Library
    ) -> list[Any]:
        """Rows of some columns as arrays or columns of a library."""
        return [column.exported(rows, library) for rows, column in zip(made, columns, strict=True)]

    def _owned_columns_locked(
        self, library: Library, device: str, columns: Sequence[Column]
    ) -> list[ArrayView | StringArray]:
        """All rows of some columns, valid behind the lock, too."""
        made = zip(self._scanned_locked(library, device, columns), columns, strict=True)
        return [self._owned_locked(rows) if column is self._key else rows for rows, column in made]

    def _owned_locked(self, keys: ArrayView) -> ArrayView | StringArray:
        """Keys that stay valid behind the lock: strings of any length are copied."""
        if not isinstance(self._key, StringColumn):
            return keys
        from ..storage.strings.string_table import packed

        offsets, data, valid = packed(self._engine, keys.ptr, keys.rows)
        return StringArray(offsets, data, self._key.text, valid)

    def _kind_like(self, like: Any) -> tuple[Library, str]:
        """The library and the device of results: of an array or a name; by default, of the first keys."""
        own = self._device if self._device.startswith("cuda") else "cpu"
        if isinstance(self._key, StringColumn) and like is not None:
            return self._key.library_like(like), own
        if like is None:
            return self._like or (NUMPY, own)
        if isinstance(like, str):
            return library_like(like), own
        seen = view(like)
        self._transfer.need_way(seen, "like")
        return library_of_rows(seen.library), seen.device

    def _scanned_locked(self, library: Library, device: str, columns: Sequence[Column]) -> list[ArrayView]:
        """All rows of some columns: of keys, values and ranks, in this order."""
        n = self._storage.store.size
        like = library.see(library.example(device))
        outs = [library.empty(like, (n, *column.shape), column.dtype, self._engine) for column in columns]
        stored = n

        def body(_n: int, _at: list[int], to: list[int]) -> None:
            nonlocal stored
            keys = to[0] if columns[0] is self._key else 0
            values = next((at for at, column in zip(to, columns, strict=True) if column is self._value), 0)
            if columns[-1] is RANKS:
                stored = self._bounded.scan(n, keys, values, like.stream, to[-1])
            else:
                stored = self._storage.scan(n, keys, values, like.stream)

        self._run(body, [], outs, like.stream)
        if stored != n:
            raise WarphashError(f"{self._repr_locked()} is broken: {stored:,} keys are stored, and {n:,} are counted")
        return outs

    def _host_columns_locked(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
        """All keys, and all values if the table has values, in host memory."""
        columns = [self._key] if self._value is None else [self._key, self._value]
        made = self._owned_columns_locked(NUMPY, "cpu", columns)
        held: list[Any] = [rows if isinstance(rows, StringArray) else rows.owner for rows in made]
        keys, *values = held
        return keys, values[0] if values else None

    def _all_columns_locked(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
        """All keys; all values, if the table has values; and all ranks, if the table keeps ranks; in host memory."""
        if self._bound is None or self._bound.evict not in RANKED_ROWS:
            return *self._host_columns_locked(), None
        columns = [column for column in (self._key, self._value, RANKS) if column is not None]
        made = self._owned_columns_locked(NUMPY, "cpu", columns)
        held: list[Any] = [rows if isinstance(rows, StringArray) else rows.owner for rows in made]
        keys, *values, ranks = held
        return keys, values[0] if values else None, ranks

    @property
    def _bounded(self) -> BoundedRows:
        """The storage of a bounded table."""
        return cast("BoundedRows", self._storage)

    def _repr_locked(self) -> str:
        value = "" if self._value is None else f", value={self._value.numpy}"
        store = self._storage.store
        return (
            f"<{type(self).__name__} key={self._key.name}{value}: {store.size:,} keys in "
            f"{store.slots:,} slots, {self.design} on {self.device}>"
        )

    def _stats_locked(self) -> Stats:
        store, nbytes, use = self._storage.store, self._storage.nbytes, self._storage.memory_use()
        size = store.size
        pair = self._key.nbytes + (self._value.nbytes if self._value else 0)
        return Stats(
            size=size,
            slots=store.slots,
            load_factor=size / store.slots,
            nbytes=nbytes,
            bytes_per_pair=nbytes / size if size else float("inf"),
            memory_utilisation=size * pair / use.in_use,
            reserve_nbytes=use.reserve,
            design=self.design,
            parameters=dict(self._parameters),
            rebuilds=store.rebuilds,
            resizes=store.resizes,
            peak_nbytes=store.peak_nbytes,
            nodes=use.nodes,
            insert_probes=store.insert_probes,
            max_size=self._bound and self._bound.max_size,
            evicted=self._bound and self._bounded.evicted,
            tiers=use.tiers,
            subtables=use.subtables,
        )

    # ---- descriptions, of which tables like this one are made
    def _check_design(self) -> None:
        """Raise `ParameterError` if this kind of table cannot be of the design."""

    def _description(self) -> dict[str, Any]:
        """The options of the table. The caller holds the lock."""
        return {
            "kind": self._kind,
            "capacity": self._storage.store.capacity,
            "design": self.design,
            "parameters": self._parameters,
            "load_factor": self._load_factor,
            "load_bounds": self._bounds,
            "seed": self._seed,
            "max_size": self._bound and self._bound.max_size,
            "evict": self._bound and self._bound.evict,
            "score": self._score and self._score.dtype.name,
            "memory": None if isinstance(self._memory, Path) else self._memory,  # a copy does not lie in the file
            "names": self._names,
            **self._options,
        }

    @property
    def _names(self) -> list[list[Any] | None] | None:
        """The names of the items of rows of keys, and of values, as far as the table knows any."""
        return archive.names_in(known_names((self._key, self._value)))

    def _learn_names(self, names: Sequence[Sequence[Any] | None] | None) -> None:
        """Know the `_names` of another table.

        Raises
        ------
        DtypeError
            If the table lies in a file that cannot have them. Then it knows none.
        """
        given = [None if known is None else tuple(known) for known in names or ()]
        self._check_described(given)
        self._know_names(given)

    def _know_names(self, names: Sequence[Sequence[Any] | None]) -> None:
        """Know the names of the items of rows of keys, and of values."""
        for column, known in zip((self._key, self._value), names, strict=False):
            if column is not None and known is not None:
                column.names.learn(tuple(known))

    def _check_described(self, given: Sequence[Names | None]) -> None:
        """Raise `DtypeError` if the table lies in a file that cannot have the names of rows to keep."""
        if self._commit is None or not any(given):
            return
        names, columns = [*given, None, None], (self._key, self._value)
        columns_and_names = zip(columns, names, strict=False)
        behind = [None if column is None else column.names.after(new) for column, new in columns_and_names]
        if behind != known_names(columns):
            self._commit.check(behind)

    def _typed_description(self) -> dict[str, Any]:
        """The options of the table, and its types: all that `_made` needs. The caller holds the lock."""
        value = self._value.numpy if self._value else None
        return {**self._description(), "key": self.key_dtype, "value": value}

    @classmethod
    def _made(
        cls,
        description: dict[str, Any],
        device: str | None,
        capacity: int,
        memory: str | os.PathLike[str] | None = None,
    ) -> Self:
        """An empty table of a description; or the one in an `ExistingFile`."""
        options = {name: description[name] for name in ("load_factor", "seed", "hash", "on_full", "attempts")}
        table = cls.__new__(cls)
        BaseTable.__init__(
            table,
            description["key"],
            description["value"],
            capacity=capacity,
            design=description["design"],
            device=device,
            count_probes=description["count_probes"],
            nulls="raise" if (nulls := description.get("nulls")) is None else nulls,  # as of older files, and the next
            floats=description.get("floats"),
            load_bounds=description.get("load_bounds"),
            max_size=description.get("max_size"),
            evict=description.get("evict"),
            score=description.get("score"),
            memory=description.get("memory") if memory is None else memory,
            **options,
            **description["parameters"],
        )
        table._know_names(description.get("names") or ())
        return table

    def _contents(self) -> copies.TableContents:
        """The description and all pairs, of one moment."""
        return self._settled(lambda: copies.TableContents(self._typed_description(), *self._all_columns_locked()))
