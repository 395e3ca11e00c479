"""HashMap and HashSet: the public verbs. What they share is in `base`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..arrays import array_view as arrays
from ..arrays.row_type import Column, read_only
from ..errors import DtypeError, ParameterError, ShapeError, UnsupportedVerb
from ..runtime.abi import Op
from .list_verbs import ListVerbs
from .pairs import PairTable

__all__ = ["HashMap", "HashSet"]

_COMBINING = {"add": Op.ADD, "min": Op.MIN, "max": Op.MAX, "or": Op.OR, "and": Op.AND, "xor": Op.XOR}


class HashMap(PairTable):
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
    load_bounds
        ``(least, most)``, with least at most half of most: behind a batch that leaves a higher load factor, or an erase
        that leaves a lower one, the table is rebuilt into twice or half the slots. None doubles a table that is too
        full for its design before an insert, and halves none.
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
            The caller vouches that no key repeats; saves the work of finding out. A table larger than a GPU's cache
            is then built a third faster, with copies of keys and values beside it, if there is memory for them. On a
            CPU it saves little.
        capacity
            As for the class; the number of keys by default.
        **options
            As for the class.
        """
        key_view, value_view = arrays.view(keys), arrays.view(values)
        options.setdefault("device", key_view.device if key_view.host is None else None)
        n = key_view.rows if key_view.shape else 1
        key = Column.of_array(key_view, "keys").numpy
        value = Column.of_array(value_view, "values").numpy
        table = cls(key, value, capacity=n if capacity is None else capacity, **options)
        table._update(key_view.owner, value_view.owner, Op.KEEP, unique=assume_unique, answers=False)
        return table

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
        n = view.rows
        host_keys = self._transfer.on_host(view, view.stream)
        value_view = self._values.view(values, "values")
        if value_view.rows != n:
            raise ShapeError(f"keys and values must be of one length, got {n:,} keys and {value_view.rows:,} values")
        host_values = self._transfer.on_host(value_view, value_view.stream)
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
        return self._find(keys, default)

    def execute(self, operations: Any, keys: Any, values: Any = None, default: Any = 0) -> tuple[Any, Any]:
        """Finds, inserts, assigns and erases in one batch, all of which run at once (S3-09).

        They are linearizable: each happens at one moment while the call lasts, and an operation may see an insert of
        the same batch, or come before it. ``kernels/chains/execute.cuh`` tells why.

        Parameters
        ----------
        operations
            Of `Operation`, uint8[n]; on a GPU nobody looks whether they are, and another number does nothing.
        keys
            Array of that length.
        values
            Array of that length, of which inserts and assigns read theirs; None where there are no such. On a GPU
            nobody looks, and they write zeros.
        default
            What the other operations, and finds of absent keys, have as value.

        Returns
        -------
        values[n], bool[n]
            What each find found; and whether a find found its key, an insert or assign added it, an erase erased it.

        Raises
        ------
        UnsupportedVerb
            If the buckets of the design are no lists, or keys or values have more than 8 bytes.
        TableFull
            If there is no room for some keys, which its ``keys`` are. All other operations are done: a batch of which
            each part is its own is no whole that could be undone.
        ParameterError
            If some operations in memory of the host are none of `Operation`, or write and have no values; nothing was
            done.
        """
        view, column = self._view_keys(keys), self._values
        found = arrays.empty_like_kind(view, view.shape[:1] + column.shape, column.dtype, self._engine)
        done = self._execute(operations, view, values, found, column.default(default))
        return found.export(), done

    def find_or_insert(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Insert and find in one operation: ``(values[n], inserted[n])``.

        Returns
        -------
        values[n], bool[n]
            The value that each key has now; and True where this element added its key, as of `insert`.

        Raises
        ------
        TableFull
            As `insert`.
        """
        key_view, value_view = self._view_pairs(keys, values)
        rows, column = key_view.shape[:1], self._values
        inserted = arrays.empty_like_kind(key_view, rows, np.bool_, self._engine)
        held = arrays.empty_like_kind(key_view, rows + column.shape, column.dtype, self._engine)
        with self._lock.writing:
            self._update_locked(key_view, value_view, Op.KEEP, inserted, held)
        return held.export(), inserted.export()

    # ---- the dict face
    def __iter__(self) -> Iterator[Any]:
        return iter(read_only(self.keys()))

    def __getitem__(self, keys: Any) -> Any:
        view = arrays.view(keys, self._key.dtype)
        values, found = self.find(view.owner)
        self._raise_missing(view.owner, found)
        return values[0] if view.shape == self._key.shape else values

    def __setitem__(self, keys: Any, values: Any) -> None:
        view, value_view = self._view_keys(keys), arrays.view(values, self._values.dtype)
        if value_view.shape == self._values.shape and view.rows != 1:
            one = self._transfer.on_host(self._values.view(value_view.owner, "values"), value_view.stream)
            self._update(view.owner, np.broadcast_to(one, (view.rows, *self._values.shape)), Op.REPLACE)
        else:
            self._update(view.owner, value_view.owner, Op.REPLACE)

    def __delitem__(self, keys: Any) -> None:
        self._need("erase")
        view = self._view_keys(keys)
        erased = arrays.empty_like_kind(view, view.shape[:1], np.bool_, self._engine)
        with self._lock.writing:
            self._raise_missing(view.owner, self._contains_locked(view).export())
            self._answer_locked(view, erased, self._backing.erase)

    def _raise_missing(self, keys: Any, found: Any) -> None:
        view = self._view_keys(keys)
        there = self._transfer.on_host(arrays.view(found), view.stream)
        if not there.all():
            missing = np.flatnonzero(~there)
            first = self._transfer.on_host(view, view.stream)[missing[0]]
            others = f", and {len(missing) - 1:,} more keys that are not there" if len(missing) > 1 else ""
            raise KeyError(f"{first}{others}")


class HashSet(ListVerbs):
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
        n = view.rows if view.shape else 1
        table = cls(Column.of_array(view, "keys").numpy, capacity=n if capacity is None else capacity, **options)
        table._update(view.owner, None, Op.KEEP, unique=assume_unique, answers=False)
        return table

    def insert(self, keys: Any, *, assume_unique: bool = False) -> Any:
        """Add keys: bool[n], True where this element added its key. See `HashMap.insert`."""
        return self._update(keys, None, Op.KEEP, unique=assume_unique)

    def execute(self, operations: Any, keys: Any) -> Any:
        """Finds, inserts and erases in one batch, all of which run at once: bool[n]. See `HashMap.execute`."""
        return self._execute(operations, self._view_keys(keys), None, None, b"")

    def __iter__(self) -> Iterator[Any]:
        return iter(read_only(self.keys()))

    def __or__(self, other: HashSet) -> HashSet:
        return self._combined(other, lambda mine, theirs: [mine.keys, theirs.keys])

    def __and__(self, other: HashSet) -> HashSet:
        return self._combined(other, lambda mine, theirs: [mine.keys[theirs.holds(mine)]])

    def __sub__(self, other: HashSet) -> HashSet:
        return self._combined(other, lambda mine, theirs: [mine.keys[~theirs.holds(mine)]])

    def __xor__(self, other: HashSet) -> HashSet:
        return self._combined(
            other, lambda mine, theirs: [mine.keys[~theirs.holds(mine)], theirs.keys[~mine.holds(theirs)]]
        )

    def _combined(self, other: HashSet, choose: Callable[[_Side, _Side], list[npt.NDArray[Any]]]) -> HashSet:
        """A set of the keys that ``choose`` takes of both sets at one moment."""
        if not isinstance(other, HashSet):
            return NotImplemented
        if other.key_dtype != self.key_dtype:
            raise DtypeError(f"both sets must hold one key type, got {self.key_dtype} and {other.key_dtype}")
        with ExitStack() as locks:
            # All threads lock two sets in the same order: otherwise they could wait for each other.
            for table in sorted({self, other}, key=id):
                locks.enter_context(table._looking())
            description = self._typed_description()
            chosen = np.concatenate(choose(_Side(self), _Side(other)))
        return self._like_this({**description, "capacity": len(chosen)}, chosen, None, unique=False)


class _Side:
    """One of the two sets that are combined, while its lock is held."""

    def __init__(self, table: HashSet) -> None:
        self._table, self.keys = table, table._items_locked()[0]

    def holds(self, other: _Side) -> npt.NDArray[np.bool_]:
        """Which keys of the other one this one has, too."""
        found: npt.NDArray[np.bool_] = self._table._contains_locked(self._table._view_keys(other.keys)).export()
        return found
