"""HashMap and HashSet: the public verbs.

Contract. A table maps each of its keys to one value. Every verb takes a batch and is one bulk operation: it happens as
a whole, after those before it and before those after it, whatever thread or stream they came from; finds may run beside
each other. Inside a batch, elements with one key count as one insert, and which of them it is, the flags say. A batch
that does not fit leaves the table as it was. Keys are compared by their bits.

The walk of ``m.find(keys)``: this module checks and allocates, ``arrays.py`` sees the keys, ``runtime/words.py`` makes
words of them, ``runtime/store.py`` launches ``kernels/bulk.cuh``, which asks ``kernels/designs/*.cuh`` where to look.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from . import arrays
from .columns import Column
from .designs import auto, registry
from .designs.base import Design
from .errors import DeviceError, DtypeError, ParameterError, ShapeError, TableFull, UnsupportedVerb, WarphashError
from .policies import slots_for
from .runtime.abi import Op, kind_of
from .runtime.backing import Backing, make_backing
from .runtime.devices import engine_for
from .runtime.locks import ReadWriteLock
from .runtime.store import HASHES

__all__ = ["HashMap", "HashSet", "Stats"]

_COMBINING = {"add": Op.ADD, "min": Op.MIN, "max": Op.MAX, "or": Op.OR, "and": Op.AND, "xor": Op.XOR}


@dataclass(frozen=True)
class Stats:
    """Figures of a table at one moment.

    Attributes
    ----------
    size, slots, load_factor
        Keys held, slots to hold them, and their ratio.
    nbytes, bytes_per_pair
        Memory of the table, and that over ``size``.
    memory_utilisation
        Bytes of live keys and values over ``nbytes``.
    design, parameters
        What the table is.
    rebuilds
        How often it moved all its keys, to grow or to draw other hash constants.
    insert_probes
        Mean buckets read by an insert since the table was made, if it was made with ``count_probes=True``.
    """

    size: int
    slots: int
    load_factor: float
    nbytes: int
    bytes_per_pair: float
    memory_utilisation: float
    design: str
    parameters: dict[str, Any]
    rebuilds: int
    insert_probes: float | None


class _Table:
    """What maps and sets share."""

    _kind: ClassVar[str]

    def __init__(
        self,
        key: npt.DTypeLike,
        value: npt.DTypeLike | None,
        *,
        capacity: int = 1024,
        design: str = "auto",
        device: str | None = None,
        load_factor: float | None = None,
        seed: int | None = None,
        hash: str = "mixer",
        on_full: str = "grow",
        attempts: int = 8,
        count_probes: bool = False,
        **parameters: Any,
    ) -> None:
        self._key = Column.of_keys(key)
        self._value = None if value is None else Column.of_values(value)
        self._value_kind = kind_of(self._value.dtype) if self._value else 0
        self._design, self._parameters = _chosen(design, parameters)
        self._load_factor = _load_factor(load_factor, self._design, self._parameters)
        _check_options(capacity, hash, on_full, attempts)
        self._seed = int.from_bytes(os.urandom(8)) >> 1 if seed is None else _integer("seed", seed, 0)
        self._engine: Any = engine_for(device)
        self._device: str = self._engine.device
        self._staging: Any = getattr(self._engine, "staging", None)
        self._lock = ReadWriteLock()
        self._backing: Backing = make_backing(
            self._engine,
            self._design,
            self._parameters,
            key_bytes=self._key.nbytes,
            value_bytes=self._value.nbytes if self._value else 0,
            slots=slots_for(int(capacity), self._load_factor),
            seed=self._seed,
            family=hash,
            grows=on_full == "grow",
            attempts=int(attempts),
            load_factor=self._load_factor,
            counts_probes=bool(count_probes),
        )
        self._options = {
            "hash": hash,
            "on_full": on_full,
            "attempts": int(attempts),
            "count_probes": bool(count_probes),
        }

    # ---- what it is
    @property
    def design(self) -> str:
        """Name of the design."""
        return self._design.name

    @property
    def device(self) -> str:
        """Where the table lives: ``"cpu"``, ``"cuda:0"``."""
        return self._device

    @property
    def key_dtype(self) -> np.dtype[Any]:
        """Type of a key; of a row of keys, with its shape."""
        return self._key.numpy

    @property
    def seed(self) -> int:
        """Seed of the hash constants; tables of one seed and history are alike."""
        return self._seed

    @property
    def capacity(self) -> int:
        """Keys that the present memory holds at the load factor that the table was made for."""
        return int(self._backing.elastic.store.slots * self._load_factor)

    @property
    def load_factor(self) -> float:
        """Keys held over slots."""
        return len(self) / self._backing.elastic.store.slots

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the table holds."""
        return self._backing.nbytes

    def __len__(self) -> int:
        return self._backing.elastic.size

    def __repr__(self) -> str:
        value = "" if self._value is None else f", value={self._value.numpy}"
        return (
            f"<{type(self).__name__} key={self.key_dtype}{value}: {len(self):,} keys in "
            f"{self._backing.elastic.store.slots:,} slots, {self.design} on {self.device}>"
        )

    def stats(self) -> Stats:
        """Figures of the table, without reading it."""
        elastic, size = self._backing.elastic, len(self)
        pair = self._key.nbytes + (self._value.nbytes if self._value else 0)
        return Stats(
            size=size,
            slots=elastic.store.slots,
            load_factor=self.load_factor,
            nbytes=self.nbytes,
            bytes_per_pair=self.nbytes / size if size else float("inf"),
            memory_utilisation=size * pair / self.nbytes,
            design=self.design,
            parameters=dict(self._parameters),
            rebuilds=elastic.rebuilds,
            insert_probes=elastic.probes / elastic.inserted if elastic.inserted else None,
        )

    # ---- verbs of maps and sets
    def contains(self, keys: Any) -> Any:
        """Which keys are there: bool[n]. Reads at most one bucket per hash function and key."""
        view = self._view_keys(keys)
        found = arrays.empty_like_kind(view, view.shape[:1], np.bool_, self._engine)
        self._look_up(view, None, found, b"\0")
        return found.export()

    def erase(self, keys: Any) -> Any:
        """Take keys out: bool[n], True where this element erased its key; one element of several with one key.

        The slots become tombstones, which inserts use again and rebuilds remove: a bucket that was once full keeps
        sending finds on, so lookups stay right and get no faster.
        """
        self._need("erase")
        view = self._view_keys(keys)
        erased = arrays.empty_like_kind(view, view.shape[:1], np.bool_, self._engine)
        with self._lock.writing:
            at, _keys = self._to_read(view, view.stream)
            out, held = self._to_write(erased, view.stream)
            self._backing.erase(at, len_of(view), out, view.stream)
            self._deliver(held, erased, view.stream)
        return erased.export()

    def probe_counts(self, keys: Any) -> Any:
        """How many buckets find reads for each key: uint32[n]."""
        view = self._view_keys(keys)
        counts = arrays.empty_like_kind(view, view.shape[:1], np.uint32, self._engine)
        with self._lock.reading:
            at, _keys = self._to_read(view, view.stream)
            out, held = self._to_write(counts, view.stream)
            self._backing.counts(at, len_of(view), out, view.stream)
            self._deliver(held, counts, view.stream)
        return counts.export()

    def keys(self) -> npt.NDArray[Any]:
        """All keys, in no particular order, as a NumPy array."""
        return self._items()[0]

    def clear(self) -> None:
        """Forget all keys; keep the memory."""
        with self._lock.writing:
            self._backing.clear(None)

    def reserve(self, n: int) -> None:
        """Grow, if need be, so that ``n`` keys fit at the load factor that the table was made for.

        Raises
        ------
        MemoryError
            If there is no room; the table is as it was.
        """
        slots = slots_for(_integer("n", n, 0), self._load_factor)
        with self._lock.writing:
            if slots > self._backing.elastic.store.slots:
                self._backing.rebuild(slots, None)

    def shrink(self) -> None:
        """Rebuild into the memory that the present keys need, without tombstones."""
        with self._lock.writing:
            self._backing.rebuild(slots_for(max(1, len(self)), self._load_factor), None)

    def copy(self) -> Self:
        """Another table with the same keys, on the same device."""
        keys, values = self._items()
        twin = self._like_this(capacity=max(1, self.capacity))
        twin._update(keys, values, Op.KEEP, unique=True)
        return twin

    def check(self) -> None:
        """Verify the table's invariants; O(slots).

        Raises
        ------
        WarphashError
            With the state, if one is broken.
        """
        keys, _ = self._items()
        with self._lock.reading:
            broken = self._backing.elastic.store.broken_buckets()
        problems = []
        if broken:
            problems.append(f"{broken:,} buckets break the rules of their layout")
        if len(keys) != len(self):
            problems.append(f"{len(keys):,} keys are stored, and {len(self):,} are counted")
        rows = np.ascontiguousarray(keys).view(f"V{self._key.nbytes}").ravel()
        if (distinct := len(np.unique(rows))) != len(keys):
            problems.append(f"{len(keys) - distinct:,} keys are stored twice")
        if len(keys) and not (found := self.contains(keys)).all():
            problems.append(f"{int((~found).sum()):,} stored keys cannot be found")
        if problems:
            raise WarphashError(f"{self!r} is broken: {'; '.join(problems)}. State: {self.stats()}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file, which replaces an older one only when it is complete."""
        from . import archive  # with what it imports, a quarter of our import time

        keys, values = self._items()
        archive.write(path, self._description(), keys, values)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str | None = None) -> Self:
        """Read a table that `save` wrote, on any device.

        Raises
        ------
        CorruptFile
            If the file is truncated, altered, or not a saved table of this class.
        """
        from . import archive

        description, keys, values = archive.read(path, cls._kind)
        table = cls._made(description, device, max(1, description["capacity"]))
        table._update(keys, values, Op.KEEP, unique=True)
        return table

    # ---- inside
    def _description(self) -> dict[str, Any]:
        return {
            "kind": self._kind,
            "capacity": self.capacity,
            "design": self.design,
            "parameters": self._parameters,
            "load_factor": self._load_factor,
            "seed": self._seed,
            **self._options,
        }

    @classmethod
    def _made(cls, description: dict[str, Any], device: str | None, capacity: int) -> Self:
        options = {name: description[name] for name in ("load_factor", "seed", "hash", "on_full", "attempts")}
        table = cls.__new__(cls)
        _Table.__init__(
            table,
            description["key"],
            description["value"],
            capacity=capacity,
            design=description["design"],
            device=device,
            count_probes=description["count_probes"],
            **options,
            **description["parameters"],
        )
        return table

    def _like_this(self, capacity: int) -> Self:
        value = self._value.numpy if self._value else None
        return self._made({**self._description(), "key": self.key_dtype, "value": value}, self.device, capacity)

    def _need(self, verb: str) -> None:
        if verb not in self._design.capabilities:
            have = ", ".join(name for name in registry.names() if verb in registry.get(name).capabilities)
            raise UnsupportedVerb(f"design {self.design!r} has no {verb}; these have: {have}")

    def _view_keys(self, keys: Any) -> arrays.ArrayView:
        return self._here(self._key.view(keys, "keys"), "keys")

    def _here(self, view: arrays.ArrayView, what: str) -> arrays.ArrayView:
        if view.device not in ("cpu", self._device):
            raise DeviceError(
                f"the table is on {self.device} and {what} are on {view.device}: move them, "
                f"or make the table with device={view.device!r}"
            )
        return view

    def _to_read(self, view: arrays.ArrayView, stream: Any) -> tuple[int, Any]:
        """Address of an array's rows where the engine can read them, and what keeps that memory."""
        if view.device == self._device:
            return view.ptr, None
        held = self._engine.from_host(view.host, stream)
        return held.ptr, held

    def _to_write(self, view: arrays.ArrayView, stream: Any) -> tuple[int, Any]:
        """Where the engine can write a result, and the memory there if `_deliver` has to take it from it."""
        if view.device == self._device:
            return view.ptr, None
        held = self._engine.allocate(max(1, view.nbytes), stream)
        return held.ptr, held

    def _deliver(self, held: Any, view: arrays.ArrayView, stream: Any) -> None:
        if held is not None and view.host is not None:
            raw = self._engine.to_host(held.ptr, np.uint8, view.nbytes, stream)
            view.host.reshape(-1).view(np.uint8)[:] = raw

    def _look_up(
        self, keys: arrays.ArrayView, values: arrays.ArrayView | None, found: arrays.ArrayView, default: bytes
    ) -> None:
        n, stream = len_of(keys), keys.stream
        with self._lock.reading:
            if keys.host is not None and n and self._staging is not None:
                self._look_up_in_pieces(keys, values, found, default)
                return
            at, _keys = self._to_read(keys, stream)
            flags, flags_held = self._to_write(found, stream)
            out, out_held = (0, None) if values is None else self._to_write(values, stream)
            self._backing.find(at, n, out, flags, default, stream)
            self._deliver(flags_held, found, stream)
            if values is not None:
                self._deliver(out_held, values, stream)

    def _look_up_in_pieces(
        self, keys: arrays.ArrayView, values: arrays.ArrayView | None, found: arrays.ArrayView, default: bytes
    ) -> None:
        """Copies of one piece of the batch run beside the lookup of another."""

        def body(n: int, ins: list[int], outs: list[int]) -> None:
            self._backing.find(ins[0], n, outs[0] if values is not None else 0, outs[-1], default, None)

        self._staging.pipeline([keys.host], [view.host for view in (values, found) if view is not None], body)

    def _update(self, keys: Any, values: Any, op: Op, *, unique: bool = False) -> Any:
        """Insert, assign or combine: bool[n], True where this element added its key."""
        key_view = self._view_keys(keys)
        n = len_of(key_view)
        added = arrays.empty_like_kind(key_view, (n,), np.bool_, self._engine)
        value_view = None
        if self._value is not None:
            value_view = self._here(self._value.view(values, "values"), "values")
            if len_of(value_view) != n:
                raise ShapeError(
                    f"keys and values must be of one length, got {n:,} keys and {len_of(value_view):,} values"
                )
        kind, stream = self._value_kind, key_view.stream
        with self._lock.writing:
            if value_view is not None and value_view.stream not in (None, stream):
                self._engine.wait(value_view.stream)  # their own: the engine's streams follow each other
            at, _keys = self._to_read(key_view, stream)
            values_at, _values = (0, None) if value_view is None else self._to_read(value_view, stream)
            flags, held = self._to_write(added, stream)
            try:
                self._backing.update(at, values_at, n, op=op, kind=kind, flags=flags, unique=unique, stream=stream)
            except TableFull as error:
                raise TableFull(str(error), self._rows_on_host(key_view, stream)[error.keys]) from None
            self._deliver(held, added, stream)
        return added.export()

    def _rows_on_host(self, view: arrays.ArrayView, stream: Any) -> npt.NDArray[Any]:
        if view.host is not None:
            return view.host
        raw: npt.NDArray[Any] = self._engine.to_host(view.ptr, np.uint8, view.nbytes, stream)
        return raw.view(view.dtype).reshape(view.shape)

    def _items(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
        with self._lock.reading:
            n = len(self)
            engine = self._engine
            keys = engine.allocate(n * self._key.nbytes)
            values = engine.allocate(n * self._value.nbytes) if self._value else None
            found = self._backing.scan(n, keys.ptr, values.ptr if values else 0, None)
            if found != n:
                raise WarphashError(f"{self!r} is broken: {found:,} keys are stored, and {n:,} are counted")
            raw_keys = engine.to_host(keys.ptr, np.uint8, n * self._key.nbytes)
            raw_values = (
                engine.to_host(values.ptr, np.uint8, n * self._value.nbytes) if values and self._value else None
            )
        as_keys = raw_keys.view(self._key.dtype).reshape(n, *self._key.shape)
        if raw_values is None or self._value is None:
            return as_keys, None
        return as_keys, raw_values.view(self._value.dtype).reshape(n, *self._value.shape)


def len_of(view: arrays.ArrayView) -> int:
    """Rows of an array."""
    return view.shape[0]


class HashMap(_Table):
    """A hash map of fixed-width keys and values on one device.

    Parameters
    ----------
    key, value
        Anything that ``numpy.dtype`` takes: integers, datetimes, ``S`` and ``V`` bytes, structured types, and
        ``("int32", (3,))`` for rows of numbers. Keys of up to 128 bytes, and not floating-point; values of any width.
    capacity
        Keys that the table holds at ``load_factor`` before it grows; it has ``ceil(capacity / load_factor)`` slots.
    design
        Name or alias of a table design (`warphash.designs.registry.names`), or ``"auto"``, which takes
        ``priorities=`` out of ``"load_factor"``, ``"insertion"``, ``"query"`` and ``"stability"``.
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; None takes a GPU if one is usable.
    load_factor
        In (0, 1]; None takes the design's own.
    seed
        Of the hash constants; None draws one.
    hash
        ``"mixer"``, or ``"universal"`` for the family of Better GPU Hash Tables, section VII (S4-11).
    on_full
        ``"grow"``, or ``"raise"`` to get `TableFull` where a batch does not fit.
    attempts
        Sets of hash constants to try before growing, or giving up.
    count_probes
        Count the buckets that inserts read, for ``stats().insert_probes``.
    **parameters
        Of the design.

    Raises
    ------
    DtypeError, ParameterError, DeviceError, EngineUnavailable, MemoryError

    Examples
    --------
    >>> import numpy as np, warphash
    >>> m = warphash.HashMap("int64", "int32", device="cpu")
    >>> m.insert(np.array([10, 20, 10]), np.array([1, 2, 3], "int32")).sum()
    np.int64(2)
    >>> values, found = m.find(np.array([20, 99]), default=-1)
    >>> values.tolist(), found.tolist()
    ([2, -1], [True, False])
    """

    _kind = "HashMap"

    def __init__(self, key: npt.DTypeLike, value: npt.DTypeLike, **options: Any) -> None:
        if value is None:
            raise DtypeError("a HashMap needs a value type; for keys alone, use HashSet")
        super().__init__(key, value, **options)

    @classmethod
    def from_arrays(
        cls, keys: Any, values: Any, *, assume_unique: bool = False, capacity: int | None = None, **options: Any
    ) -> Self:
        """Build a table of ``keys`` and ``values`` in one pass.

        Parameters
        ----------
        keys, values
            Arrays of one length. The table goes to their device unless ``device`` is given.
        assume_unique
            The caller vouches that no key repeats; saves the work of finding out.
        capacity
            As for the class; the number of keys by default.
        **options
            As for the class.
        """
        key_view, value_view = arrays.view(keys), arrays.view(values)
        options.setdefault("device", key_view.device if key_view.host is None else None)
        n = len_of(key_view) if key_view.shape else 1
        key = Column.of_array(key_view, "keys").numpy
        value = Column.of_array(value_view, "values").numpy
        table = cls(key, value, capacity=n if capacity is None else capacity, **options)
        table._update(key_view.owner, value_view.owner, Op.KEEP, unique=assume_unique)
        return table

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """Type of a value; of a row of values, with its shape."""
        return self._values.numpy

    @property
    def _values(self) -> Column:
        assert self._value is not None
        return self._value

    def insert(self, keys: Any, values: Any, *, assume_unique: bool = False) -> Any:
        """Add the keys that are absent; a present key keeps its value.

        Parameters
        ----------
        keys, values
            Arrays of one length.
        assume_unique
            The caller vouches that the keys differ from each other and from those in the table.

        Returns
        -------
        bool[n]
            True where this element added its key: one element of each new key.

        Raises
        ------
        TableFull
            If a batch does not fit and the table may not grow; the table is as it was.
        """
        return self._update(keys, values, Op.KEEP, unique=assume_unique)

    def assign(self, keys: Any, values: Any) -> Any:
        """Insert or overwrite: bool[n], True where new. Of several values for one key in the batch, one wins whole."""
        return self._update(keys, values, Op.REPLACE)

    def upsert(self, keys: Any, values: Any, op: str) -> Any:
        """Insert, or combine with the value that is there: bool[n], True where new.

        Parameters
        ----------
        op
            ``"add"``, ``"min"``, ``"max"``, ``"or"``, ``"and"``, ``"xor"``; ``"first"`` and ``"last"`` keep the value
            of the first or last element of its key in the batch, ``"first"`` after the one that is there. Sums of
            integers wrap around; sums of floats depend on the order, which is free.

        Raises
        ------
        UnsupportedVerb
            Where the values have no such operation: bytes, rows, or bits of a float.
        """
        if op in ("first", "last"):
            return self._upsert_in_order(keys, values, op)
        if op not in _COMBINING:
            raise ParameterError(f"op must be one of {[*_COMBINING, 'first', 'last']}, got {op!r}")
        column = self._values
        bitwise = op in ("or", "and", "xor")
        if column.shape or column.dtype.kind not in ("biu" if bitwise else "biuf"):
            raise UnsupportedVerb(f"upsert {op!r} combines {'integers' if bitwise else 'numbers'}, not {column.numpy}")
        return self._update(keys, values, _COMBINING[op])

    def _upsert_in_order(self, keys: Any, values: Any, op: str) -> Any:
        """A bulk operation has no order: the place of each key's first or last element is found beforehand."""
        view = self._view_keys(keys)
        n = len_of(view)
        host_keys = self._rows_on_host(view, view.stream)
        value_view = self._values.view(values, "values")
        if len_of(value_view) != n:
            raise ShapeError(f"keys and values must be of one length, got {n:,} keys and {len_of(value_view):,} values")
        host_values = self._rows_on_host(value_view, value_view.stream)
        places = np.arange(n, dtype=np.uint64)
        order = HashMap(self.key_dtype, np.uint64, capacity=max(1, n), device="cpu")
        order.upsert(host_keys, places, "min" if op == "first" else "max")
        chosen = order.find(host_keys)[0] == places
        added = np.zeros(n, np.bool_)
        added[chosen] = self._update(host_keys[chosen], host_values[chosen], Op.KEEP if op == "first" else Op.REPLACE)
        out = arrays.empty_like_kind(view, (n,), np.bool_, self._engine)
        if out.host is not None:
            out.host[:] = added
        elif n:
            held = self._engine.from_host(added, view.stream)
            self._engine.copy(out.ptr, held.ptr, n, view.stream)
        return out.export()

    def find(self, keys: Any, default: Any = 0) -> tuple[Any, Any]:
        """Values of keys: ``(values[n], found[n])``, with ``default`` for absent keys. Does not wait for the device."""
        view, column = self._view_keys(keys), self._values
        rows = view.shape[:1]
        values = arrays.empty_like_kind(view, rows + column.shape, column.dtype, self._engine)
        found = arrays.empty_like_kind(view, rows, np.bool_, self._engine)
        self._look_up(view, values, found, column.default(default))
        return values.export(), found.export()

    def find_or_insert(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Insert, then find: ``(values[n], inserted[n])``; each element gets the value its key has in the end."""
        inserted = self.insert(keys, values)
        return self.find(keys)[0], inserted

    def values(self) -> npt.NDArray[Any]:
        """All values, in the order of `keys` if nothing changed between."""
        return self.items()[1]

    def items(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """All keys and their values, as two NumPy arrays."""
        keys, values = self._items()
        assert values is not None
        return keys, values

    # ---- the dict face
    def __contains__(self, key: Any) -> bool:
        return bool(np.asarray(self.contains(np.asarray(key, self._key.dtype))).all())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __getitem__(self, keys: Any) -> Any:
        values, found = self.find(keys)
        self._raise_missing(keys, found)
        return values[0] if np.shape(keys) == self._key.shape else values

    def __setitem__(self, keys: Any, values: Any) -> None:
        view = self._view_keys(keys)
        if np.shape(values) == self._values.shape and len_of(view) != 1:
            values = np.broadcast_to(np.asarray(values, self._values.dtype), (len_of(view), *self._values.shape))
        self._update(keys, values, Op.REPLACE)

    def __delitem__(self, keys: Any) -> None:
        self._raise_missing(keys, self.contains(keys))
        self.erase(keys)

    def _raise_missing(self, keys: Any, found: Any) -> None:
        view = self._view_keys(keys)
        there = self._rows_on_host(arrays.view(found), view.stream)
        if not there.all():
            missing = np.flatnonzero(~there)
            first = self._rows_on_host(view, view.stream)[missing[0]]
            others = f", and {len(missing) - 1:,} more keys that are not there" if len(missing) > 1 else ""
            raise KeyError(f"{first}{others}")


class HashSet(_Table):
    """A set of fixed-width keys on one device. Takes the parameters of `HashMap`, without ``value``.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> s = warphash.HashSet.from_arrays(np.array([3, 1, 3]), device="cpu")
    >>> len(s), s.contains(np.array([1, 2])).tolist()
    (2, [True, False])
    """

    _kind = "HashSet"

    def __init__(self, key: npt.DTypeLike, **options: Any) -> None:
        super().__init__(key, None, **options)

    @classmethod
    def from_arrays(
        cls, keys: Any, *, assume_unique: bool = False, capacity: int | None = None, **options: Any
    ) -> Self:
        """Build a set of ``keys`` in one pass; see `HashMap.from_arrays`."""
        view = arrays.view(keys)
        options.setdefault("device", view.device if view.host is None else None)
        n = len_of(view) if view.shape else 1
        table = cls(Column.of_array(view, "keys").numpy, capacity=n if capacity is None else capacity, **options)
        table._update(view.owner, None, Op.KEEP, unique=assume_unique)
        return table

    def insert(self, keys: Any, *, assume_unique: bool = False) -> Any:
        """Add keys: bool[n], True where this element added its key. See `HashMap.insert`."""
        return self._update(keys, None, Op.KEEP, unique=assume_unique)

    def __contains__(self, key: Any) -> bool:
        return bool(np.asarray(self.contains(np.asarray(key, self._key.dtype))).all())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __or__(self, other: HashSet) -> HashSet:
        return self._combined(other, lambda mine, theirs, _: np.concatenate([mine, theirs]))

    def __and__(self, other: HashSet) -> HashSet:
        return self._combined(other, lambda mine, _, in_other: mine[in_other])

    def __sub__(self, other: HashSet) -> HashSet:
        return self._combined(other, lambda mine, _, in_other: mine[~in_other])

    def __xor__(self, other: HashSet) -> HashSet:
        return (self - other) | (other - self)

    def _combined(self, other: HashSet, choose: Callable[..., npt.NDArray[Any]]) -> HashSet:
        if not isinstance(other, HashSet):
            return NotImplemented
        if other.key_dtype != self.key_dtype:
            raise DtypeError(f"both sets must hold one key type, got {self.key_dtype} and {other.key_dtype}")
        mine, theirs = self.keys(), other.keys()
        chosen = choose(mine, theirs, other.contains(mine))
        made = self._like_this(capacity=max(1, len(chosen)))
        made.insert(chosen)
        return made


# ---- checks of options
def _chosen(name: str, parameters: dict[str, Any]) -> tuple[Design, dict[str, Any]]:
    if name == "auto":
        given = dict(parameters)
        name, chosen = auto.choose(given.pop("priorities", ()))
        parameters = {**chosen, **given}
    design = registry.get(name)
    return design, design.resolve(parameters)


def _load_factor(given: float | None, design: Design, parameters: dict[str, Any]) -> float:
    if given is None:
        return design.default_load_factor(parameters)
    if not isinstance(given, int | float | np.number) or isinstance(given, bool) or not 0 < given <= 1:
        raise ParameterError(f"load_factor must be in (0, 1], got {given!r}")
    return float(given)


def _integer(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def _check_options(capacity: Any, hash: str, on_full: str, attempts: Any) -> None:
    _integer("capacity", capacity, 0)
    _integer("attempts", attempts, 1)
    if hash not in HASHES:
        raise ParameterError(f"hash must be one of {HASHES}, got {hash!r}")
    if on_full not in ("grow", "raise"):
        raise ParameterError(f"on_full must be 'grow' or 'raise', got {on_full!r}")
