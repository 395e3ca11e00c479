"""MultiMap: a table that keeps every pair, also of equal keys. What all tables share is in `base`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Unpack, cast, overload

import numpy as np
import numpy.typing as npt

from ..arrays.batch import library_of_rows
from ..arrays.cast import Fits, chosen, spread_offsets
from ..arrays.column_types import text_type
from ..arrays.key_column import text_of
from ..arrays.library import ArrayView
from ..arrays.on_stream import on_stream
from ..arrays.row_type import Column
from ..arrays.view import view
from ..designs.base import Design
from ..errors import DtypeError, ParameterError
from ..runtime.abi import Op, Operation
from ..storage.chains.repeated_keys import RepeatedKeys
from . import mixed_batch
from .array_types import A, Batch, Bools, Counts, Foreign, K, Keys, KeySpec, KeyT, OneKey, Stream, TypeSpec, V, ValueT
from .base import BaseTable
from .front import COUNT
from .items import PairTable
from .key_columns import keys_and_column
from .keywords import DesignName, SharedOptions, TableOptions
from .signatures import names_keywords

if TYPE_CHECKING:
    from ..storage.groups.grouped_rows import GroupedRows
    from ..storage.strings.repeated_strings import RepeatedStrings

__all__ = ["MultiMap"]

MAX_BYTES = 8
"""Most bytes of a key, and of a value, in lists: both are stored in the slot."""


def _refuse_text(got: str) -> NoReturn:
    raise DtypeError(
        f"the values of a MultiMap are of a fixed width, got {got}: give the length of the longest, as in U16 or S16, "
        "or numbers of the values, which HashMap.number makes"
    )


class MultiMap(PairTable[K, V]):
    """A hash map that keeps every pair, also of equal keys.

    The values of a key come in the order in which they were inserted, those of one batch in the order of the batch.
    Every copy keeps this order: `copy`, a pickle, a saved table that is loaded, and a table with other options.

    **Groups.** With any design but the two below, the values of a key are a group, which lies in few runs of memory; a
    table of the design leads from the key to the group. An insert of n pairs takes O(n), and now and then all pairs are
    brought together anew. `find_all` copies runs. `erase` and `erase_all` take constant time for each key.

    **Lists.** With design ``"slab"`` or ``"lock_free_chaining"``, pairs lie in lists of nodes: A Dynamic Hash Table for
    the GPU, section III-B. These designs have `execute`. The values of one batch come in any order. A pair is appended
    in constant time, however many pairs its key has. `count`, `find_all` and `erase_all` read the whole list of a key.
    `find` and `erase` read the front of the list, with the erased pairs that `flush` has not yet dropped. To erase many
    pairs of one key, call `erase_all` once instead of `erase` for each pair. With the parameter ``reuse_erased=True``
    of design ``"slab"``, inserts take the slots of erased pairs: the values of a key then come in any order, the first
    pair of a key is any of its pairs, and lists are packed by `flush`, by a rebuild, and where the pool has no more
    nodes.

    Parameters
    ----------
    key, value
        Types as for `HashMap`, several columns included. In lists, of up to 8 bytes each, or keys of any length.
    capacity, design, **options
        As for `HashMap`. Any design but ``"tiered"``; by default the one whose lookups are fastest.

    Raises
    ------
    DtypeError, ParameterError, DeviceError, EngineUnavailable, MemoryError

    Examples
    --------
    >>> import numpy as np, warphash
    >>> m = warphash.MultiMap("int64", "int32", device="cpu")
    >>> m.insert(np.array([10, 20]), np.array([1, 2], "int32"))
    >>> m.insert(np.array([10]), np.array([3], "int32"))
    >>> values, offsets = m.find_all(np.array([20, 10, 99]))
    >>> values.tolist(), offsets.tolist()
    ([2, 1, 3], [0, 1, 3, 3])
    """

    _kind = "MultiMap"
    _multi = True
    _operations = (Operation.FIND, Operation.INSERT, Operation.ERASE)

    @names_keywords(SharedOptions, BaseTable.__init__)
    def __init__(
        self,
        key: type[K] | np.dtype[K] | KeySpec,
        value: type[V] | np.dtype[V] | TypeSpec,
        *,
        capacity: int | None = None,
        design: DesignName = "auto",
        **options: Unpack[SharedOptions],
    ) -> None:
        if value is None:
            raise DtypeError("a MultiMap needs a value type; for keys alone, use HashSet")
        if text_type(value) is not None:
            _refuse_text(repr(value))
        super().__init__(key, value, capacity=capacity, design=design, **options)

    @classmethod
    @names_keywords(TableOptions, BaseTable.__init__)
    def from_arrays(
        cls,
        keys: npt.NDArray[KeyT] | Foreign | Sequence[Any],
        values: npt.NDArray[ValueT] | Foreign | Sequence[Any],
        *,
        capacity: int | None = None,
        **options: Unpack[TableOptions],
    ) -> MultiMap[KeyT, ValueT]:
        """Build a table of ``keys`` and ``values`` in one pass.

        Parameters
        ----------
        keys, values
            As of `HashMap.from_arrays`; every pair is kept.
        capacity, **options
            As of `HashMap.from_arrays`.

        Returns
        -------
        MultiMap
            A new table.

        Raises
        ------
        DtypeError, ParameterError, ShapeError, DeviceError, EngineUnavailable, MemoryError
            As the class and `insert`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.MultiMap.from_arrays(np.array([7, 8, 7]), np.array([1, 2, 3]), device="cpu")
        >>> len(m)
        3
        """
        if (text := text_of(values)) is not None:
            _refuse_text(f"{'strings' if text else 'bytes'} of any length")
        (column, seen), value_view = keys_and_column(keys, options), view(values)
        options.setdefault("device", seen.device if seen.host is None else None)
        types = column.spec, Column.of_array(value_view, "values").numpy
        table: MultiMap[Any, Any] = cls(*types, capacity=seen.rows if capacity is None else capacity, **options)
        table._parts.updates.update(None, seen, value_view, Op.KEEP, answers=False)
        return table

    @property
    def _pairs(self) -> RepeatedKeys | GroupedRows | RepeatedStrings:
        parts = self._parts
        storage: Any = parts.guarded.storage
        is_text = parts.front.key.has_any_length
        rows = storage.inner if is_text else storage  # of keys, or of the numbers of strings
        pairs = rows if parts.facts.is_grouped else RepeatedKeys(rows)
        if is_text:
            from ..storage.strings.repeated_strings import RepeatedStrings  # few tables need it

            return RepeatedStrings(storage, pairs)
        return cast("RepeatedKeys | GroupedRows", pairs)

    def insert(self, keys: Any, values: Any, *, stream: Stream | None = None) -> None:
        """Add every pair, also of keys that are there, in O(n).

        Parameters
        ----------
        keys, values
            Arrays of one length. A single value, or a single row of values, is that of all keys.
        stream
            A CUDA stream, for a table on a GPU: a handle, or an object with ``__cuda_stream__``. The verb runs behind
            what the stream was given, and what it is given next comes behind the verb. None means the current stream of
            the keys' library.

        Raises
        ------
        TableFull
            If a batch does not fit and the table may not grow; the table is as it was.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.MultiMap.from_arrays(np.array([7, 8, 7]), np.array([1, 2, 3]), device="cpu")
        >>> m.insert(np.array([8]), np.array([4]))
        >>> m[8].tolist()
        [2, 4]
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                MultiMap.insert(self, keys, values)
            return
        self._parts.updates.update("insert", keys, values, Op.KEEP, answers=False)

    @overload
    def count(self, keys: Keys, *, stream: Stream | None = None) -> Counts: ...

    @overload
    def count(self, keys: A, *, stream: Stream | None = None) -> A: ...

    def count(self, keys: Any, *, stream: Stream | None = None) -> Any:
        """How many pairs each key has.

        Parameters
        ----------
        keys
            Array of length n.
        stream
            As for `insert`.

        Returns
        -------
        uint32[n]
            0 for an absent key.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.MultiMap.from_arrays(np.array([7, 8, 7]), np.array([1, 2, 3]), device="cpu")
        >>> m.count(np.array([7, 8, 9])).tolist()
        [2, 1, 0]
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return MultiMap.count(self, keys)
        self._need("count")
        return self._parts.lookups.answered(keys, COUNT, self._parts.guarded.settled, self._pairs.count)

    @overload
    def find(
        self, keys: Keys, default: Any = 0, *, out: Any = None, found: Any = None, stream: Stream | None = None
    ) -> tuple[npt.NDArray[V], Bools]: ...

    @overload
    def find(
        self, keys: A, default: Any = 0, *, out: A | None = None, found: A | None = None, stream: Stream | None = None
    ) -> tuple[A, A]: ...

    def find(
        self, keys: Any, default: Any = 0, *, out: Any = None, found: Any = None, stream: Stream | None = None
    ) -> tuple[Any, Any]:
        """The first value of each key, and ``default`` for absent keys.

        Parameters
        ----------
        keys, default, out, found
            As of `HashMap.find`.
        stream
            As for `insert`.

        Returns
        -------
        values[n], found[n]
            As of `HashMap.find`.

        Raises
        ------
        DeviceError, DtypeError, ParameterError, ShapeError
            As `HashMap.find`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.MultiMap.from_arrays(np.array([7, 8, 7]), np.array([1, 2, 3]), device="cpu")
        >>> values, found = m.find(np.array([7, 9]), default=-1)
        >>> values.tolist(), found.tolist()
        ([1, -1], [True, False])
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return MultiMap.find(self, keys, default, out=out, found=found)
        return self._parts.lookups.look_up("find", keys, self._values, default, out, found)

    @overload
    def find_all(self, keys: Keys, *, stream: Stream | None = None) -> tuple[npt.NDArray[V], npt.NDArray[np.int64]]: ...

    @overload
    def find_all(self, keys: A, *, stream: Stream | None = None) -> tuple[A, A]: ...

    def find_all(self, keys: Any, *, stream: Stream | None = None) -> tuple[Any, Any]:
        """All values of all keys.

        Parameters
        ----------
        keys
            Array of length n.
        stream
            As for `insert`.

        Returns
        -------
        values[m], offsets[n + 1]
            The values of key i are ``values[offsets[i]:offsets[i + 1]]``; offsets are int64. Waits for the device,
            since the host needs to know m.

        Raises
        ------
        MemoryError
            If there is no room for the values.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.MultiMap.from_arrays(np.array([7, 8, 7]), np.array([1, 2, 3]), device="cpu")
        >>> values, offsets = m.find_all(np.array([8, 7]))
        >>> values.tolist(), offsets.tolist()
        ([2, 1, 3], [0, 1, 3])
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return MultiMap.find_all(self, keys)
        self._need("find_all")
        values, offsets = self._all_values(*self._parts.front.sought(keys))
        return self._values.exported(values), offsets.library.export(offsets)

    def _all_values(self, given: ArrayView, fits: Fits) -> tuple[ArrayView, ArrayView]:
        """As `find_all`, of keys that were seen, and which of them fit."""
        front, column = self._parts.front, self._values
        seen = given if fits is None else chosen(given, fits)
        library, n, stream = library_of_rows(seen.library), seen.rows, seen.stream
        offsets = library.empty(seen, (n + 1,), np.dtype(np.int64), front.engine)
        made = []

        def body(n: int, at: list[int], to: list[int]) -> None:
            found = self._pairs.find_all(at[0], n, to[0], stream)
            values = library.empty(seen, (found.total, *column.shape), column.dtype, front.engine)
            made.append(values)
            front.run(lambda _n, _at, out: found.write(out[0]), [], [values], stream)

        self._parts.guarded.settled(front.run, body, [seen], [offsets], stream)
        if fits is None:
            return made[0], offsets
        whole = library.empty(seen, (given.rows + 1,), offsets.dtype, front.engine)
        spread_offsets(whole, fits, offsets)
        return made[0], whole

    @overload
    def __getitem__(self, keys: OneKey) -> npt.NDArray[V]: ...

    @overload
    def __getitem__(self, keys: Batch) -> tuple[npt.NDArray[V], npt.NDArray[np.int64]]: ...

    @overload
    def __getitem__(self, keys: A) -> tuple[A, A]: ...

    def __getitem__(self, keys: Any) -> Any:
        """All values of one key, ``values[m]``; or those of a batch, as `find_all` returns them.

        Raises
        ------
        KeyError
            If a key has no pair: naming the first such key, and counting the others.
        """
        self._need("find_all")
        front = self._parts.front
        is_one, seen, fits = front.one_or_many(keys)
        held, ends = self._all_values(seen, fits)
        counts = np.diff(front.on_host(ends))
        front.raise_missing(seen, view(counts > 0), fits, keys)
        values = self._values.exported(held)
        return values if is_one else (values, ends.library.export(ends))

    @overload
    def erase_all(self, keys: Keys, *, stream: Stream | None = None) -> Counts: ...

    @overload
    def erase_all(self, keys: A, *, stream: Stream | None = None) -> A: ...

    def erase_all(self, keys: Any, *, stream: Stream | None = None) -> Any:
        """Erase every pair of each key.

        Parameters
        ----------
        keys
            Array of length n.
        stream
            As for `insert`.

        Returns
        -------
        uint32[n]
            How many pairs this element erased.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.MultiMap.from_arrays(np.array([7, 8, 7]), np.array([1, 2, 3]), device="cpu")
        >>> m.erase_all(np.array([7, 9])).tolist(), len(m)
        ([2, 0], 1)
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return MultiMap.erase_all(self, keys)
        self._need("erase_all")
        return self._parts.lookups.answered(keys, COUNT, self._parts.guarded.lock.write, self._pairs.erase_all)

    @overload
    def execute(
        self, operations: Any, keys: Keys, values: Any = None, default: Any = 0
    ) -> tuple[npt.NDArray[V], Bools]: ...

    @overload
    def execute(self, operations: Any, keys: A, values: Any = None, default: Any = 0) -> tuple[A, A]: ...

    def execute(self, operations: Any, keys: Any, values: Any = None, default: Any = 0) -> tuple[Any, Any]:
        """Find, insert and erase in one batch, whose operations all run at once. For a table of lists.

        The operations are linearizable: each takes effect at one moment during the call. A find may come before or
        after an insert of the same batch. ``execute_pairs.cuh`` in ``kernels/chains`` has the proof.

        Parameters
        ----------
        operations
            Codes of `Operation`, uint8[n]: ``FIND`` finds the first value of its key, ``INSERT`` adds a pair behind all
            pairs of its key, and ``ERASE`` erases the first pair of its key. Codes in GPU memory are not checked: an
            ``ASSIGN`` there, or an unknown code, does nothing.
        keys
            Array of length n.
        values
            Array of length n, which inserts read; None if there are no inserts. If the codes are in GPU memory, inserts
            without values write zeros.
        default
            The answer of a find of an absent key, and of the other operations.

        Returns
        -------
        values[n], bool[n]
            The value that each find found; and True where a find found its key, an insert added its pair, or an erase
            erased a pair.

        Raises
        ------
        TableFull
            If there is no room for some pairs: the ``keys`` of the error. All other operations are done, since each is
            an operation of its own.
        ParameterError
            If codes in host memory are not of these operations, or insert without values. Nothing was done.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> from warphash import Operation
        >>> m = warphash.MultiMap.from_arrays(np.array([10, 20]), np.array([1, 2]), design="slab", device="cpu")
        >>> found, done = m.execute([Operation.INSERT, Operation.ERASE, Operation.FIND], [10, 20, 30], [3, 0, 0])
        >>> done.tolist(), m.find_all(np.array([10]))[0].tolist()
        ([True, True, False], [1, 3])
        """
        done, found = mixed_batch.execute(self._parts, self._operations, operations, keys, values, default)
        return found, done

    def _fill(self, keys: Any, values: Any, ranks: ArrayView | None, *, unique: bool) -> None:
        """As `BaseTable._fill`; the pairs of a key keep the order in which they come. Sorts copies of all pairs."""
        front, view_pairs = self._parts.front, self._parts.updates.view_pairs
        pairs = view_pairs(keys, values)
        if self._parts.facts.is_grouped:  # whose batches keep their order
            stream = pairs[0].stream
            front.run_naming_keys(lambda n, at, _: self._pairs.insert_runs(at[0], at[1], n, stream), pairs, [], stream)
            return
        order = np.argsort(self._groups(pairs[0]), kind="stable")
        rows = [front.on_host(seen) for seen in pairs]
        ordered = view_pairs(*(_taken(column, order) for column in rows))  # strings lie in what `pairs` keeps
        stream = pairs[0].stream
        front.run_naming_keys(lambda n, at, _: self._pairs.insert_runs(at[0], at[1], n, stream), ordered, [], stream)

    def _groups(self, keys: ArrayView) -> npt.NDArray[np.unsignedinteger[Any]]:
        """A number for each key, in host memory: elements of one key have one number, and others have others."""
        pairs: Any = self._pairs
        if not self._parts.front.key.has_any_length:
            return _as_numbers(self._parts.front.on_host(keys))
        groups: npt.NDArray[np.uint32] = pairs.groups(keys.ptr, keys.rows, keys.stream)
        return groups

    @classmethod
    def _check_design(cls, design: Design, key: Column, value: Column | None) -> None:
        for what, column in (("key", key), ("value", value)):
            if not design.layout.keeps_duplicates or column is None or column.has_any_length:
                continue
            if column.nbytes > MAX_BYTES:
                raise DtypeError(
                    f"with design={design.name!r}, a MultiMap's {what} has at most {MAX_BYTES} bytes, and "
                    f"{column.numpy} has {column.nbytes}: leave design= out"
                )
        if design.layout.composed:
            raise ParameterError(
                f"a MultiMap lies in one memory, and design {design.name!r} has two tiers: leave it out"
            )

    def _values_of(self, key: Any) -> npt.NDArray[Any]:
        front = self._parts.front
        seen = front.one_key(key)
        if seen is None:
            return np.empty(0, self._values.dtype)
        return front.on_host(view(self.find_all(seen)[0]))


def _as_bytes(rows: npt.NDArray[Any]) -> npt.NDArray[np.void]:
    """Each row as one item of raw bytes, padding included."""
    width = rows.dtype.itemsize * math.prod(rows.shape[1:])
    return np.ascontiguousarray(rows).reshape(-1).view(f"V{width}")


def _as_numbers(rows: npt.NDArray[Any]) -> npt.NDArray[np.unsignedinteger[Any]]:
    """A number for each row of up to 8 bytes: rows of equal bytes have equal numbers."""
    raw = _as_bytes(rows)
    width = next(width for width in (1, 2, 4, 8) if width >= raw.itemsize)
    return raw.astype(f"V{width}").view(f"u{width}")


def _taken(rows: npt.NDArray[Any], order: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """The rows in another order."""
    return _as_bytes(rows)[order].view(rows.dtype).reshape(rows.shape)
