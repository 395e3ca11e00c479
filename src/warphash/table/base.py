"""The base class of all tables: what their verbs promise, and the verbs that all tables have.

Contract. A table maps each of its keys to one value (a `HashMap`), to none (a `HashSet`) or to several (a `MultiMap`).
Every verb takes a batch and is one bulk operation: it happens as a whole, after those before it and before those after
it, whatever thread or stream they came from; lookups may run beside each other. Inside a batch, elements with one key
count as one insert, and the flags say which element that is. A batch that does not fit leaves the table as it was. Keys
are compared by their bits. A verb that the design lacks raises `UnsupportedVerb`, which names the designs that have it.
A batch has any shape, and the answers for its elements have the same shape, followed by the shape of a row of values
where values are rows. What a docstring says of ``n`` keys holds of keys of any shape.

Reading changes nothing. A batch may be under way when a call returns. Verbs that need its end wait for it in
`Guarded.settled`, while they hold the table's lock alone.

The walk of ``m.find(keys)``: ``maps.py`` names the verb. ``lookups.py`` has the keys seen as an address and the results
allocated (``arrays/row_type.py``, ``arrays/adapters/``), takes the lock (``locks.py``), and hands the addresses to the
storage, which launches ``kernels/core/bulk.cuh``. Updates go through ``updates.py``, and reads of all keys through
``scans.py``. These are parts that a table has (``parts.py``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Never, Self, cast, overload

import numpy as np
import numpy.typing as npt

from ..arrays.column_types import ColumnTypes
from ..arrays.key_column import value_column
from ..arrays.library import ArrayView
from ..arrays.nullable_column import NullableColumn
from ..arrays.on_stream import on_stream
from ..arrays.row_type import Column
from ..arrays.view import view
from ..designs.base import Design
from ..errors import CorruptFile, DeviceError, ParameterError, UnsupportedVerb
from ..runtime.abi import Op, Operation
from ..runtime.devices import engine_for
from ..storage.rows import Rows
from . import archive, copies, notebook, proof
from .array_types import A, Bools, Counts, K, Keys, KeySpec, Like, Order, Stream
from .closed import ClosedStorage
from .copies import TableContents
from .facts import Widths, facts_of
from .front import BOOL, COUNT, Front
from .key_columns import key_column_of
from .options import ExistingFile, buckets_of, capacity_of, check_string_options, integer, refuse_arrays
from .parts import Parts
from .pickling import as_bytes, rebuild
from .stats import Stats
from .unclosed import Ending, flush_when_unclosed

if TYPE_CHECKING:
    from .file_commit import FileCommit

__all__ = ["BaseTable", "shrink_if_repeated"]

_FEWEST_ROWS, _REPEATS = 1 << 16, 8
"""Where `from_arrays` shrinks a table: fewest rows, and how often a key is there on average. Shrinking reads all slots,
so it is for tables that are then a small part of what they were."""

_PROVING_DESIGNS = ("linear_probing", "bucketed_cuckoo")
"""In which `BaseTable.check` counts different keys: the first one, or the second one for a table of the first."""


class BaseTable(Generic[K]):
    """What all tables are and have. See `HashMap` for the parameters.

    A table's own attributes are slots. So what is in its ``__dict__`` belongs to the caller, or to a subclass of the
    caller's, and goes along when the table is copied or pickled (`__getstate__`).
    """

    __slots__ = ("_commit", "_parts", "_unclosed")

    _kind: ClassVar[str] = "BaseTable"
    _multi: ClassVar[bool] = False
    _operations: ClassVar[tuple[Operation, ...]] = tuple(Operation)

    def __init__(
        self,
        key: npt.DTypeLike | KeySpec | ColumnTypes,
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
        keys = key_column_of(key, nulls, floats).own()
        values = None
        if value is not None:
            values = (Column.of_values(value) if self._multi else value_column(value)).own()
        if type(keys) is not Column or type(values) not in (Column, NoneType):
            device = _device_of(keys, values, device, memory)
        engine = engine_for(device)
        value_bytes, string_values = (values.nbytes, values.has_any_length) if values else (0, False)
        widths = Widths(keys.nbytes, value_bytes, keys.has_any_length, string_values)
        options = design, load_factor, load_bounds, hash, on_full, attempts, count_probes, max_size, evict, score
        which = self._kind, type(self).__name__, self._multi, engine.device, widths
        facts = facts_of(*which, nulls, floats, parameters, memory, *options)
        self._check_design(facts.design, keys, values)
        front = Front(engine, keys, values, facts.score)
        seed = int.from_bytes(os.urandom(8)) >> 1 if seed is None else integer("seed", seed, 0)
        self._parts = Parts(facts, front, capacity_of(capacity, facts.bound), seed)
        self._commit: FileCommit | None = None  # has the file hold the table; None without a file
        self._unclosed: Ending | None = None
        if isinstance(facts.memory, Path):
            self._keep_in_file(facts.memory, facts.storage.options.opens)

    # ---- what the table is
    @property
    def design(self) -> str:
        """Name of the design."""
        return self._parts.facts.design.name

    @property
    def device(self) -> str:
        """Where the table lives: ``"cpu"``, ``"cuda:0"``."""
        return self._parts.front.device

    @property
    def memory(self) -> str | Path:
        """Where the slots lie: ``"device"``, ``"host"``, or the path of a file, behind all links."""
        return self._parts.facts.memory

    @property
    def key_dtype(self) -> np.dtype[Any]:
        """Type of a key; of a row of keys, with its shape. Of strings of any length, ``dtype("str")``.

        Of keys of several columns, the type of a record, in which strings of any length have no width.
        """
        return self._parts.front.key.numpy

    @property
    def seed(self) -> int:
        """Seed of the hash constants; tables of one seed and history are alike."""
        return self._parts.seed

    @property
    def capacity(self) -> int:
        """Keys that the present memory holds at the load factor that the table was made for."""
        guarded = self._parts.guarded
        return guarded.settled(lambda: guarded.storage.store.capacity)

    @property
    def load_factor(self) -> float:
        """Keys held over slots."""
        guarded = self._parts.guarded
        return guarded.settled(lambda: guarded.storage.store.size / guarded.storage.store.slots)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the table holds."""
        guarded = self._parts.guarded
        return guarded.settled(lambda: guarded.storage.nbytes)

    def __len__(self) -> int:
        guarded = self._parts.guarded
        return guarded.settled(lambda: guarded.storage.store.size)

    def __repr__(self) -> str:
        parts = self._parts
        if isinstance(parts.guarded.storage, ClosedStorage):
            return f"<{type(self).__name__}: closed>"
        return parts.guarded.settled(parts.figures.repr_locked)

    def _repr_html_(self) -> str:
        """The table's figures, for a notebook: no pair is read."""
        parts = self._parts
        is_closed = isinstance(parts.guarded.storage, ClosedStorage)
        return notebook.html(parts.facts, parts.front, None if is_closed else self.stats())

    def stats(self) -> Stats:
        """Figures of the table, without reading its slots.

        Returns
        -------
        Stats
            Figures of this moment.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.stats().size, m.stats().design
        (2, 'bucketed_cuckoo')
        """
        return self._parts.guarded.settled(self._parts.figures.stats_locked)

    # ---- verbs that look keys up
    @overload
    def contains(
        self, keys: Keys, *, order: Literal["given"] = "given", found: Any = None, stream: Stream | None = None
    ) -> Bools: ...

    @overload
    def contains(
        self, keys: A, *, order: Literal["given"] = "given", found: A | None = None, stream: Stream | None = None
    ) -> A: ...

    @overload
    def contains(
        self, keys: Keys, *, order: Literal["any"], stream: Stream | None = None
    ) -> tuple[npt.NDArray[K], Bools]: ...

    @overload
    def contains(self, keys: A, *, order: Literal["any"], stream: Stream | None = None) -> tuple[A, A]: ...

    def contains(self, keys: Any, *, order: Order = "given", found: Any = None, stream: Stream | None = None) -> Any:
        """Which keys are there. Reads at most one bucket per hash function and key.

        Parameters
        ----------
        keys
            Array of length n.
        order
            ``"any"`` lets the table choose the order of the answers: ``(keys[n], found[n])``, where ``keys`` are the
            given ones in that order. A large batch is then answered in the order in which its keys lie in the table,
            where this saves time. Where the order is kept, ``keys`` is the object that was given.
        found
            Array bool[n] of the keys' library on their device, which is written to and returned. None for a new
            array. Keys that share memory with ``found`` are copied first.
        stream
            As for `insert`.

        Returns
        -------
        bool[n]
            True where the key is there; with ``order="any"`` ``(keys[n], bool[n])``.

        Raises
        ------
        DeviceError, DtypeError, ParameterError, ShapeError
            If ``found`` is another array, or is given with ``order="any"``.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.contains(np.array([8, 9])).tolist()
        [True, False]
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return BaseTable.contains(self, keys, order=cast("Any", order), found=found)
        if order != "given":
            refuse_arrays(order, found=found)
            keys, _, there = self._parts.lookups.in_any_order("contains", keys, None, 0, order)
            return keys, there
        return self._parts.lookups.look_up("contains", keys, None, 0, None, found)[1]

    def __contains__(self, key: Any) -> bool:
        """Whether one key is there. What the key type cannot represent exactly is not.

        Raises
        ------
        ShapeError
            For a batch of keys: `contains` answers for each.
        """
        parts = self._parts
        seen = parts.front.one_key(key)
        if seen is None:
            return False
        return bool(parts.front.on_host(view(parts.lookups.look_up("contains", seen, None, 0)[1]))[0])

    @overload
    def probe_counts(self, keys: Keys) -> Counts: ...

    @overload
    def probe_counts(self, keys: A) -> A: ...

    def probe_counts(self, keys: Any) -> Any:
        """How many buckets find reads for each key.

        Parameters
        ----------
        keys
            Array of length n.

        Returns
        -------
        uint32[n]
            Of a key that the key type cannot represent, 0.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.probe_counts(np.array([7])).tolist()
        [1]
        """
        self._need("probe_counts")
        parts = self._parts
        return parts.lookups.answered(keys, COUNT, parts.guarded.settled, parts.guarded.storage.counts)

    @overload
    def guest_counts(self, keys: Keys) -> Counts: ...

    @overload
    def guest_counts(self, keys: A) -> A: ...

    def guest_counts(self, keys: Any) -> Any:
        """How many words find reads for each key to learn which other buckets may hold it.

        Only ``dynamic_cuckoo`` keeps such words. On a CPU all counts are 0: there, find reads the buckets instead.

        Parameters
        ----------
        keys
            Array of length n.

        Returns
        -------
        uint32[n]
            Words read for each key.

        Raises
        ------
        UnsupportedVerb
            If the design keeps none.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.arange(3), design="dynamic_cuckoo", device="cpu")
        >>> s.guest_counts(np.array([0, 9])).tolist()
        [0, 0]
        """
        self._need("guest_counts")
        parts = self._parts

        def counts(at: int, n: int, out: int, stream: Any) -> None:
            parts.guarded.storage.counts(at, n, out, stream, entry="guest_counts")

        return parts.lookups.answered(keys, COUNT, parts.guarded.settled, counts)

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

        Returns
        -------
        keys[len(table)]
            Those of a `MultiMap` once for each pair.

        Raises
        ------
        DtypeError
            If the library has no such type.
        DeviceError
            If ``like`` is on another GPU than the table, or the library has no arrays on the table's device.
        ParameterError
            If there is no library of that name.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> sorted(m.keys().tolist())
        [7, 8]
        """
        self._need("keys")
        return self._parts.scans.read(like, self._parts.front.key)[0]

    def __iter__(self) -> Iterator[K]:
        """The keys one by one, those of a `MultiMap` once for each pair: a snapshot of the table, in host memory."""
        return self._parts.front.key.one_by_one(self.keys(like="numpy"))

    # ---- verbs that change the table
    @overload
    def erase(self, keys: Keys, *, stream: Stream | None = None) -> Bools: ...

    @overload
    def erase(self, keys: A, *, stream: Stream | None = None) -> A: ...

    def erase(self, keys: Any, *, stream: Stream | None = None) -> Any:
        """Erase keys.

        A `MultiMap` erases the first pair of each key: several elements with one key erase its pairs one after the
        other, and each is True that erased a pair.

        The slots become tombstones, which inserts use again and rebuilds remove. A find goes on behind a bucket that
        was ever full, so lookups do not get faster.

        Parameters
        ----------
        keys
            Array of length n.
        stream
            As for `insert`.

        Returns
        -------
        bool[n]
            True where this element erased its key. Of several elements with one key, one is True.

        Raises
        ------
        UnsupportedVerb
            If the design has no erase.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.erase(np.array([8, 9])).tolist(), len(m)
        ([True, False], 1)
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return BaseTable.erase(self, keys)
        self._need("erase")
        guarded = self._parts.guarded
        return self._parts.lookups.answered(keys, BOOL, guarded.lock.write, guarded.storage.erase)

    def clear(self) -> None:
        """Forget all keys; keep the memory.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.clear()
        >>> len(m)
        0
        """
        self._need("clear")
        guarded = self._parts.guarded
        guarded.lock.write(guarded.storage.clear, None)

    def reserve(self, n: int) -> None:
        """Make room for ``n`` keys at the load factor that the table was made for. Never shrinks the table.

        Parameters
        ----------
        n
            Keys to have room for, those that are there included.

        Raises
        ------
        MemoryError
            If there is no room; the table is as it was.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.reserve(10_000)
        >>> m.capacity >= 10_000
        True
        """
        self._need("reserve")
        wanted = integer("n", n, 0)
        self._parts.guarded.alone(self._resize_locked, wanted)

    def shrink(self) -> None:
        """Rebuild the table in the memory that the present keys need, without tombstones.

        Raises
        ------
        MemoryError
            If there is no room for the new memory beside the old; the table is as it was.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.reserve(10_000)
        >>> m.shrink()
        >>> m.capacity < 1_000
        True
        """
        self._need("shrink")
        self._parts.guarded.alone(self._resize_locked, None)

    def _resize_locked(self, keys: int | None) -> None:
        """Make room for ``keys`` keys, if there is less; or rebuild for the present keys."""
        storage = self._parts.guarded.storage
        store = storage.store
        if keys is None or keys > store.capacity:
            storage.rebuild(store.size if keys is None else keys, None)

    def flush(self, buckets: int | slice | None = None) -> int:
        """Have the home of a table hold what the table holds now; or drop the erased slots of a table of lists.

        A table in a file (``memory=path``): what the table holds now is what `open` finds, whatever becomes of this
        process. Until the next flush, `open` finds that again, and nothing of the updates in between. A tiered table
        with ``write="back"``: values that have changed on the device come home.

        A table of lists: the lists of buckets are packed into as few nodes as hold their keys. The table does so by
        itself once there are more erased slots than keys. A `MultiMap` in groups: the values of each key are brought
        together, and those of erased pairs are dropped. The table does so by itself when it pays.

        Parameters
        ----------
        buckets
            Of a table of lists: the number of a bucket, a slice of numbers without a step, or None for all buckets.

        Returns
        -------
        int
            Number of nodes, or of segments of values, that were freed; 0 for other tables.

        Raises
        ------
        UnsupportedVerb
            If the table is in no file, and the design has nothing to flush.
        ParameterError
            If there is no such bucket.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.arange(1_000), design="slab", device="cpu")
        >>> _ = s.erase(np.arange(400))
        >>> s.flush() > 0, len(s)
        (True, 600)
        """
        facts, guarded = self._parts.facts, self._parts.guarded
        if isinstance(facts.memory, Path):
            guarded.alone(self._commit_locked)
            return 0
        facts.need("flush")

        def flush() -> int:
            store: Any = guarded.storage.store  # of a design that has something to flush
            if facts.is_grouped:
                if buckets is not None:
                    raise ParameterError("the values of a MultiMap in groups lie in no buckets: leave buckets= out")
                return int(store.pack())
            if not facts.design.layout.keeps_duplicates:
                store.write_back()
                return 0
            return int(store.pack(*buckets_of(buckets, store.array.buckets, store.array.lists)))

        return guarded.alone(flush)

    # ---- copies, pickles and files
    def copy(self) -> Self:
        """Another table with the same pairs and options, on the same device, as ``copy.copy`` makes it.

        The copy shares the attributes that a subclass has added; ``copy.deepcopy`` copies those, too.

        Returns
        -------
        HashMap, HashSet or MultiMap
            A table of this class.

        Raises
        ------
        MemoryError
            If there is no room.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> twin = m.copy()
        >>> twin == m, twin is m
        (True, False)
        """
        self._need("copy")
        twin = self._parts.guarded.settled(self._copied_locked)
        twin._take_after(self, self.__getstate__())
        return twin

    def _copied_locked(self) -> Self:
        """A table with the same pairs and options; the pairs are copied on the device."""
        parts = self._parts
        twin = self._made({**parts.copies.typed_description_locked(), "capacity": 1}, self.device, 1)
        twin._parts.guarded.storage = parts.guarded.storage.copy(None)
        return twin

    def _take_after(self, other: BaseTable[Any], state: Any) -> None:
        """Have the attributes that a caller keeps in another table; and give keys in arrays like those given there."""
        if state is not None:
            self.__setstate__(state)
        if self.device == other.device:
            self._parts.front.like = other._parts.front.like

    def __copy__(self) -> Self:
        return self.copy()

    def to(self, device: str) -> Self:
        """The table on a device: this table, if it is there already, or else another one with the same pairs.

        Parameters
        ----------
        device
            ``"cpu"``, ``"cuda"`` or ``"cuda:1"``. The pairs go through host memory.

        Returns
        -------
        HashMap, HashSet or MultiMap
            A table of this class on that device.

        Raises
        ------
        EngineUnavailable, DeviceError
            If there is no such device.
        MemoryError
            If there is no room; this table is as it was.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.to("cpu") is m
        True
        """
        if engine_for(device).device == self.device:
            return self
        return self.__replace__(device=device)

    def cpu(self) -> Self:
        """The table on the CPU; see `to`.

        Returns
        -------
        HashMap, HashSet or MultiMap
            As of `to`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.cpu().device
        'cpu'
        """
        return self.to("cpu")

    def cuda(self, index: int | None = None) -> Self:
        """The table on a GPU, by default on the current one; see `to`.

        Parameters
        ----------
        index
            Number of a GPU; None: the current one.

        Returns
        -------
        HashMap, HashSet or MultiMap
            As of `to`.

        Raises
        ------
        EngineUnavailable, DeviceError, MemoryError
            As `to`.
        """
        return self.to("cuda" if index is None else f"cuda:{integer('index', index, 0)}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        self._need("copy")
        twin = self._rebuilt(self._parts.copies.contents(), self.device)
        memo[id(self)] = twin  # an attribute may lead back to the table
        twin._take_after(self, deepcopy(self.__getstate__(), memo))
        return twin

    def __replace__(self, /, **changes: Any) -> Self:
        """Another table with the same pairs and other options, as ``copy.replace`` makes it. ``device`` is an option.

        With another design, the parameters and the load factor are the defaults of that design.
        """
        self._need("copy")
        device = changes.pop("device", self.device)
        return self._with_pairs(copies.with_options(self._parts.copies.contents(), changes), device)

    def _with_pairs(self, held: TableContents, device: str, *, unique: bool = True) -> Self:
        """A table with other pairs or options, with the attributes of a subclass."""
        made = self._rebuilt(held, device, unique=unique)
        made._take_after(self, self.__getstate__())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        self._need("save")
        description, keys, values, ranks = self._parts.copies.contents()
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

        Parameters
        ----------
        path
            Of the file.

        Raises
        ------
        PathError
            If ``path`` is a folder or a device, or its folder is missing or takes no file. The table is not read then.
        UnsupportedVerb
            If keys may be null: pickle the table.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "table")
        ...     m.save(path)
        ...     warphash.HashMap.load(path) == m
        True
        """
        self._need("save")
        key = self._parts.front.key
        if isinstance(key, NullableColumn):
            raise UnsupportedVerb(f"a file has no keys of type {key.name}: pickle the table")
        archive.write(path, self._parts.copies.contents_for_file)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str | None = None) -> Self:
        """Read a table that `save` wrote, on any device.

        A table that may not grow gets more slots than it had if its keys find no room in their new order. A table that
        may grow gets only the memory that its keys need if there is none for the capacity that it had.

        Parameters
        ----------
        path
            Of the file.
        device
            As for `HashMap`: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; None takes a GPU if one is usable.

        Returns
        -------
        HashMap, HashSet or MultiMap
            A table of this class.

        Raises
        ------
        CorruptFile
            If the file is truncated, altered, or not a saved table of this class.
        MemoryError
            If there is no room.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np, warphash
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "table")
        ...     warphash.HashSet.from_arrays(np.arange(5), device="cpu").save(path)
        ...     len(warphash.HashSet.load(path, device="cpu"))
        5
        """
        held = archive.read(path, cls._kind)
        return copies.loaded(path, held, lambda: cls._rebuilt(held, device, unique=False))

    # ---- a file that holds the table
    @classmethod
    def open(cls, path: str | os.PathLike[str], *, device: str | None = None) -> Self:
        """Open the file of a table that was made with ``memory=path``: the table as it was at its last `flush`.

        Nothing is read but the ticket board: an eighth of the slots' number in bytes for each bit of a ticket. The
        options of the table are those that it was made with.

        Parameters
        ----------
        path
            Of the file.
        device
            As for `load`.

        Returns
        -------
        HashMap, HashSet or MultiMap
            A table of this class.

        Raises
        ------
        PathError
            If there is no such file, or a table has it open, here or in another process, or it has several names (hard
            links).
        CorruptFile
            If the head of the file, its strings or its journal are damaged, the journal is missing, or the file has no
            table of this class. Damage to the pairs in the slots is not looked for (`check`).
        MemoryError
            If there is no room, in memory, in the address space or among the open files.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np, warphash
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "table")
        ...     with warphash.HashMap("int64", "int64", design="stadium", memory=path, device="cpu") as m:
        ...         _ = m.insert(np.array([7]), np.array([1]))
        ...     with warphash.HashMap.open(path, device="cpu") as m:
        ...         int(m[7])
        1
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

        parts = self._parts
        front, guarded = parts.front, parts.guarded
        store: Any = guarded.storage.store  # of a design whose slots may lie in a file
        self._commit = FileCommit(store, (front.key, front.value), parts.copies.description_locked())
        front.check_names = self._commit.check
        if not opens:
            self._commit.check((None, None))
            self._commit()  # nobody else has the table
        self._unclosed = flush_when_unclosed(self, guarded.lock, store, self._commit, path)

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

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.close()
        >>> m
        <HashMap: closed>
        """
        self._parts.guarded.lock.write(self._close_locked)

    def _close_locked(self) -> None:
        storage = self._parts.guarded.storage
        if isinstance(storage, ClosedStorage):
            return
        store: Any = storage.store
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
        self._parts.guarded.lock.write(self._give_back_locked)

    def _give_back_locked(self) -> None:
        """Forget the storage."""
        parts = self._parts
        in_file = isinstance(parts.facts.memory, Path)
        mend = (
            f"{type(self).__name__}.open({str(parts.facts.memory)!r}) opens it again" if in_file else "make a new one"
        )
        if self._unclosed is not None:
            self._unclosed.detach()
        parts.lookups.captures.kept.clear()
        self._commit = parts.front.check_names = None
        parts.guarded.storage = cast(Rows, ClosedStorage(mend))

    # ---- CUDA graphs
    def captures_are_current(self) -> bool:
        """Whether the CUDA graphs that captured lookups of this table still read what a find would read now.

        They do until an update, `reserve` or `shrink` rebuilds or enlarges the table. Then capture the graphs again.
        The memory that graphs may read stays with the table until it is closed or gone.

        Returns
        -------
        bool
            True if all graphs are current; so also if there are none.
        """
        guarded, captures = self._parts.guarded, self._parts.lookups.captures
        return guarded.settled(lambda: captures.are_current(guarded.storage))

    # ---- its own proof
    def check(self) -> None:
        """Verify the table's invariants. O(slots), with memory for a copy of the keys and for a set of them.

        Raises
        ------
        WarphashError
            With the state, if one is broken.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.check()
        """
        self._parts.guarded.settled(proof.check_locked, self._parts, self._distinct)

    def _distinct(self, keys: ArrayView) -> int:
        """How many different keys there are among ``keys``: the size of a set of another design."""
        facts = self._parts.facts
        design = next(name for name in _PROVING_DESIGNS if name != facts.design.name)
        options: dict[str, Any] = {"design": design, "device": self.device, "seed": self.seed + 1, **facts.rules}
        proof = BaseTable(self._parts.front.key.spec, None, capacity=max(1, keys.rows), **options)
        proof._parts.updates.update_locked([keys], Op.KEEP, None)
        return len(proof)

    def _need(self, verb: str) -> None:
        """Raise `UnsupportedVerb` if the design does not have a verb."""
        self._parts.facts.need(verb)

    # ---- tables made of a description, and of pairs
    @classmethod
    def _check_design(cls, design: Design, key: Column, value: Column | None) -> None:
        """Raise `ParameterError` if this kind of table cannot be of the design."""

    def _fill(self, keys: Any, values: Any, ranks: ArrayView | None, *, unique: bool) -> None:
        """Insert the pairs of another table. Nobody else has this table yet, so its lock is free."""
        updates = self._parts.updates
        updates.update_locked(updates.view_pairs(keys, values), Op.KEEP, None, unique=unique, ranks=ranks)

    @classmethod
    def _rebuilt(cls, held: TableContents, device: str | None, *, unique: bool = True) -> Self:
        """A table of a description, with pairs: of a key that repeats one pair, or in a `MultiMap` all in their order.

        The capacity is that of `copies.with_room`.

        Parameters
        ----------
        unique
            The keys differ from each other.
        """
        description, keys, values, ranks = held

        def make(capacity: int) -> BaseTable[K]:
            table = cls._made(description, device, capacity)
            table._fill(keys, values, None if ranks is None else view(ranks), unique=unique)
            if ranks is not None:
                cast(Any, table._parts.guarded.storage).policy.resume(int(ranks.max(initial=0)))
            return table

        return cast(Self, copies.with_room(make, held))

    @classmethod
    def _made(
        cls,
        description: dict[str, Any],
        device: str | None,
        capacity: int,
        memory: str | os.PathLike[str] | None = None,
    ) -> Self:
        """An empty table of a description; or the one in an `ExistingFile`."""
        always = ("design", "load_factor", "seed", "hash", "on_full", "attempts", "count_probes")
        options = {name: description[name] for name in always}
        newer = ("nulls", "floats", "load_bounds", "max_size", "evict", "score", "memory")  # which older files lack
        options |= {name: description[name] for name in newer if description.get(name) is not None}
        if memory is not None:
            options["memory"] = memory
        table = cls.__new__(cls)
        BaseTable.__init__(
            table,
            description["key"],
            description["value"],
            capacity=capacity,
            device=device,
            **options,
            **description["parameters"],
        )
        table._parts.front.know_names(description.get("names") or ())
        return table


def _device_of(keys: Column, values: Column | None, device: str | None, memory: Any) -> str | None:
    """The device of a table with such columns: strings of any length, and keys of several columns, are on the CPU.

    Raises
    ------
    DeviceError, ParameterError
        As `check_string_options`.
    """
    for column, what in ((keys, "keys"), (values, "values")):
        if column is None:
            continue
        no_file = isinstance(column, NullableColumn) or column.is_of_columns
        if column.has_any_length or (no_file and isinstance(memory, os.PathLike)):
            check_string_options(what, column, device, memory if no_file else None)
            device = "cpu"
    return device


def shrink_if_repeated(table: BaseTable[Any], rows: int) -> None:
    """Shrink a table that was sized for so many rows, whose keys repeat so often that most of its memory is unused.

    A CPU builds a table fastest with a slot for each row, and shrinks it in less time than an insert into a small
    table takes more (docs/performance/cpu.md). A table on a GPU stays as it is, because the host does not wait
    for its build. So does a table whose size the caller has set.
    """
    if rows < _FEWEST_ROWS:
        return
    facts, store = table._parts.facts, table._parts.guarded.storage.store
    may_resize = facts.options["on_full"] == "grow" and facts.bound is None and facts.load_bounds is None
    is_plain = facts.memory == "device" and "shrink" in facts.design.capabilities
    if not may_resize or not is_plain or not table._parts.front.transfer.shares_memory:
        return
    if len(table) * _REPEATS < min(rows, store.capacity):
        with suppress(MemoryError):  # the table is as it was
            table.shrink()
