"""HashMap and HashSet: the public verbs of tables in which a key stands once. What all tables share is in `base`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Literal, Never, Self, Unpack, cast, overload

import numpy as np
import numpy.typing as npt

from ..arrays.cast import Sought, chosen
from ..arrays.key_column import values_and_view
from ..arrays.library import ArrayView
from ..arrays.on_stream import on_stream
from ..arrays.strings import StringArray
from ..arrays.view import view
from ..errors import DtypeError, ParameterError, UnsupportedVerb
from ..runtime.abi import Op
from . import bounded, key_numbers, mapping, mixed_batch, set_algebra
from .array_types import (
    A,
    Batch,
    Bools,
    D,
    Foreign,
    K,
    Keys,
    KeySpec,
    KeyT,
    Like,
    OneKey,
    Order,
    Stream,
    TypeSpec,
    V,
    ValueT,
)
from .base import BaseTable, shrink_if_repeated
from .front import BOOL
from .items import PairTable
from .key_columns import keys_and_column
from .keywords import Comparison, Operator, TableOptions, TableOptionsWithCapacity
from .options import capacity_for, refuse_arrays
from .plan import MapPlan, SetPlan
from .scans import owned
from .signatures import names_keywords

__all__ = ["HashMap", "HashSet"]

_COMBINING = {"add": Op.ADD, "min": Op.MIN, "max": Op.MAX, "or": Op.OR, "and": Op.AND, "xor": Op.XOR}


class HashMap(PairTable[K, V]):
    """A hash map of keys and values on one device.

    Verbs take arrays of any shape, lists and single values. Keys of another type than the table's are compared by their
    values: what the key type cannot represent is not there. An update of another type is taken if every value fits, and
    is refused otherwise. Verbs answer with arrays of the keys' library, device and shape. Columns of pandas, Polars and
    PyArrow are answered with columns: of a pandas Series, with its index. Rows of two columns go together by their
    position, and not by their index. Columns of a frame, and fields of records, are matched by their names. To a type
    checker, a map of unsigned integers to floats is a ``HashMap[np.uint64, np.float32]`` (``array_types.py``).

    Parameters
    ----------
    key, value
        Anything that ``numpy.dtype`` takes: integers, datetimes, ``S`` and ``V`` bytes, structured types, and
        ``("int32", (3,))`` for rows of numbers. Keys of up to 128 bytes, and not floating-point; values of any width.
        Keys and values of type ``"str"`` or ``"bytes"`` are strings of any length, on the CPU: from lists, NumPy,
        pandas, Polars and any library that speaks Arrow. A list or a tuple of types, or a mapping of names to types,
        makes keys of several columns, such as ``["str", "int64"]``: batches are tuples of columns, lists of tuples or
        frames, and a key is a tuple.
    capacity
        Keys that the table holds at ``load_factor`` before it grows, 1024 by default; it has
        ``ceil(capacity / load_factor)`` slots.
    design
        Name or alias of a table design (`warphash.designs.registry.names`), or ``"auto"``, which takes
        ``priorities=`` out of ``"load_factor"``, ``"insertion"``, ``"query"`` and ``"stability"``. Without priorities,
        ``"auto"`` is ``"bucketed_cuckoo"``. On a GPU it is ``"quotient_cuckoo"``, if the caller gives no load factor,
        no bounds, no ``max_size`` and no parameter.
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; None takes a GPU if one is usable.
    load_factor
        In (0, 1]; None takes the design's default.
    load_bounds
        ``(least, most)``, with least at most half of most. After a batch that leaves a higher load factor the slots are
        doubled; after an erase that leaves a lower load factor they are halved. With None, a table that is too full
        for its design is doubled before an insert, and no table is halved.
    seed
        Seed of the hash constants; None draws a seed. Keys that are slow can be made for a known seed.
    hash
        ``"mixer"``, or ``"universal"`` for the family of Better GPU Hash Tables, section VII.
    on_full
        ``"grow"``, or ``"raise"`` to get `TableFull` if a batch does not fit.
    attempts
        How many sets of hash constants to try before the table grows, or raises `TableFull`.
    count_probes
        Count the buckets that inserts read, for ``stats().insert_probes``. Such a table takes the keys of a batch in
        the order given, one by one, as the papers do: its large batches take longer.
    nulls
        What becomes of nulls among keys: ``"raise"`` refuses them. ``"drop"`` leaves them out: no null is added, found
        or erased. With ``"key"``, all nulls are one key, which is None in Python. ``"drop"`` and ``"key"`` are for
        tables on the CPU.
    floats
        When floating-point keys are equal; None refuses such keys. ``"bits"``: if their bits are equal, so -0.0 is not
        0.0, and each NaN is the key of its bits. ``"value"``: -0.0 is 0.0, and NaN is one key; keys are given in host
        memory.
    memory
        Where the slots lie: ``"device"``. Design ``"stadium"`` also takes ``"host"``, the memory of a GPU's host, and
        the ``pathlib.Path`` of a file that is made (`open`, `flush`, `close`). The home of design ``"tiered"`` lies in
        ``"host"`` or in a file. None takes the first of what the design has. A copy, a pickle, a saved table and the
        result of set algebra lie in the memory that the table is in; of a table in a file, in the first of its design.
    max_size
        A bound on keys, for designs that erase: behind each update, the keys of least rank leave until no more than the
        bound are left. None for no bound. A batch goes in pieces of a quarter of the bound, at least 65,536 elements;
        no more keys than the bound and a piece are ever held. Each piece is added as a whole: a refused allocation
        leaves the pieces before it in the table. ``capacity`` is the bound and a quarter by default. Where the slots
        are not on the device, ``evict`` is ``"lfu"`` or ``"random"``.
    evict
        Which keys leave a bounded table. ``"lru"``, the default: those whose last use is longest ago; a find that finds
        its key is a use, and all uses of one call are as old. ``"lfu"``: those that were used least often of late, by a
        sketch of frequencies, which also remembers keys that left. ``"fifo"``: those that came first. ``"score"``:
        those of the least score, which the caller gives with each key. ``"random"``: any. Of keys of one rank, any
        leave.
    score
        Type of the scores for ``evict="score"``: integers or floats; ``"float64"`` by default. NaN is the
        least score.
    **parameters
        Parameters of the design. A user needs these first:

        - ``slots_per_bucket``: slots that are read together. Larger buckets reach a higher load factor and take longer
          to read.
        - ``hashes``: buckets, or slots, that a key may be in. With more of them, a table reaches a higher load factor,
          and lookups of absent keys take longer.
        - ``alpha``, ``beta``: the least and the greatest load factor of ``"dynamic_cuckoo"``.
        - ``ticket_bits``: bits of ``"stadium"`` for each slot. Longer tickets save reads of slots.
        - ``reuse_erased``: of a `MultiMap`: inserts take erased slots, and the values of a key come in any order.
        - ``device_capacity``: pairs of ``"tiered"`` on the device; a tenth of ``capacity`` by default.
        - ``write``: when ``"tiered"`` updates its home: ``"through"``, at once, or ``"back"``, by a flush.

        Only papers need the others: ``placement``, ``early_exit``, ``threshold``, ``buckets``, ``rebucket``,
        ``allocator``, ``probe_limit``, ``subtables``, ``coordination``, ``routing``, ``functions``, ``lanes``,
        ``access``, ``in_flight``, ``reg_load``, ``sizing``, ``range_slots`` and ``rounds``. The file of a design in
        ``warphash/designs`` says what its parameters do.

    Raises
    ------
    DtypeError, ParameterError, DeviceError, EngineUnavailable, MemoryError
    PathError
        If there is a file at ``memory``, or none can be made.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> m = warphash.HashMap("int64", "int32", device="cpu")
    >>> m.insert(np.array([10, 20, 10]), np.array([1, 2, 3], "int32")).sum()
    np.int64(2)
    >>> values, found = m.find(np.array([20, 99]), default=-1)
    >>> values.tolist(), found.tolist()
    ([2, -1], [True, False])
    >>> pairs = warphash.HashMap(["str", "int64"], "int32")
    >>> pairs.insert((["ann", "bob"], [3, 4]), np.array([1, 2], "int32")).tolist()
    [True, True]
    >>> pairs["ann", 3], ("bob", 3) in pairs
    (np.int32(1), False)
    """

    _kind = "HashMap"

    @names_keywords(TableOptionsWithCapacity, BaseTable.__init__)
    def __init__(
        self,
        key: type[K] | np.dtype[K] | KeySpec,
        value: type[V] | np.dtype[V] | TypeSpec,
        **options: Unpack[TableOptionsWithCapacity],
    ) -> None:
        if value is None:
            raise DtypeError("a HashMap needs a value type; for keys alone, use HashSet")
        super().__init__(key, value, **options)

    @classmethod
    @names_keywords(TableOptions, BaseTable.__init__)
    def from_arrays(
        cls,
        keys: npt.NDArray[KeyT] | Foreign | Sequence[Any],
        values: npt.NDArray[ValueT] | Foreign | Sequence[Any],
        *,
        scores: Any = None,
        assume_unique: bool = False,
        capacity: int | None = None,
        **options: Unpack[TableOptions],
    ) -> HashMap[KeyT, ValueT]:
        """Build a table of ``keys`` and ``values`` in one pass.

        Parameters
        ----------
        keys, values
            Arrays of one length. The table goes to their device unless ``device`` is given. A list of lists is an array
            of rows. Keys may be a tuple of columns, or a frame. A list of arrays is refused as keys, since the arrays
            may be meant as rows or as columns.
        scores
            As for `insert`.
        assume_unique
            The caller guarantees that no key repeats, which saves the work of finding out. A table larger than a GPU's
            cache is then built a third faster, if there is memory for a copy of the keys and values. On a CPU this
            saves little.
        capacity
            As for the class; by default the number of keys, or less in a bounded table. On a CPU, a table whose keys
            repeat 8 times or more is shrunk behind its build.
        **options
            As for the class.

        Returns
        -------
        HashMap
            A new table. Of several values for one key, one is kept whole.

        Raises
        ------
        DtypeError, ParameterError, ShapeError, DeviceError, EngineUnavailable, MemoryError
            As the class and `insert`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8, 7]), np.array([1, 2, 1]), device="cpu")
        >>> len(m), m.find(np.array([8]))[0].tolist()
        (2, [2])
        """
        (column, seen), (value_column, value_view) = keys_and_column(keys, options), values_and_view(values)
        options.setdefault("device", seen.device if seen.host is None else None)
        types = column.spec, value_column.numpy
        table: HashMap[Any, Any] = cls(*types, capacity=capacity_for(seen.rows, capacity, options), **options)
        table._parts.updates.update(None, seen, value_view, Op.KEEP, scores=scores, unique=assume_unique, answers=False)
        if capacity is None and not assume_unique:
            shrink_if_repeated(table, seen.rows)
        return table

    @overload
    def insert(
        self,
        keys: Keys,
        values: Any,
        *,
        scores: Any = None,
        assume_unique: bool = False,
        added: Any = None,
        stream: Stream | None = None,
    ) -> Bools: ...

    @overload
    def insert(
        self,
        keys: A,
        values: Any,
        *,
        scores: Any = None,
        assume_unique: bool = False,
        added: A | None = None,
        stream: Stream | None = None,
    ) -> A: ...

    def insert(
        self,
        keys: Any,
        values: Any,
        *,
        scores: Any = None,
        assume_unique: bool = False,
        added: Any = None,
        stream: Stream | None = None,
    ) -> Any:
        """Add the keys that are absent; a present key keeps its value.

        Parameters
        ----------
        keys, values
            Arrays of one length. A single value, or a single row of values, is that of all keys.
        scores
            Of a table with ``evict="score"``: a number for each key. A present key keeps its score, too.
        assume_unique
            The caller guarantees that the keys differ from each other and from the keys in the table.
        added
            Array bool[n] of the keys' library on their device, which is written to and returned. None for a new
            array. Keys, values and scores that share memory with ``added`` are copied first.
        stream
            A CUDA stream, for a table on a GPU: a handle, or an object with ``__cuda_stream__``. The verb runs behind
            what the stream was given, and what it is given next comes behind the verb. None means the current stream of
            the keys' library.

        Returns
        -------
        bool[n]
            True where this element added its key: one element of each new key. In a bounded table, a key may be added
            and leave in one call, and be added again by a later element.

        Raises
        ------
        TableFull
            If a batch does not fit and the table may not grow; the table is as it was.
        DeviceError, DtypeError, ParameterError, ShapeError
            If ``added`` is another array; the table is as it was.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap("int64", "int64", device="cpu")
        >>> m.insert(np.array([7, 8, 7]), np.array([1, 2, 1])).sum()
        np.int64(2)
        >>> m.insert(np.array([8, 9]), 5).tolist(), m[8]
        ([False, True], np.int64(2))
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return HashMap.insert(self, keys, values, scores=scores, assume_unique=assume_unique, added=added)
        return self._parts.updates.update(
            "insert", keys, values, Op.KEEP, scores=scores, unique=assume_unique, added=added
        )

    @overload
    def assign(
        self, keys: Keys, values: Any, *, scores: Any = None, added: Any = None, stream: Stream | None = None
    ) -> Bools: ...

    @overload
    def assign(
        self, keys: A, values: Any, *, scores: Any = None, added: A | None = None, stream: Stream | None = None
    ) -> A: ...

    def assign(
        self, keys: Any, values: Any, *, scores: Any = None, added: Any = None, stream: Stream | None = None
    ) -> Any:
        """Insert or overwrite. Of several values for one key, one is kept whole.

        Parameters
        ----------
        keys, values
            Arrays of one length. A single value, or a single row of values, is that of all keys.
        scores
            Of a table with ``evict="score"``: a number for each key, which overwrites, too.
        added
            As for `insert`.
        stream
            As for `insert`.

        Returns
        -------
        bool[n]
            True where the key is new: for one element of each new key.

        Raises
        ------
        TableFull, DeviceError, DtypeError, ParameterError, ShapeError
            As `insert`; the table is as it was.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7]), np.array([1]), device="cpu")
        >>> m.assign(np.array([7, 8]), np.array([10, 20])).tolist(), m[7]
        ([False, True], np.int64(10))
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return HashMap.assign(self, keys, values, scores=scores, added=added)
        return self._parts.updates.update("assign", keys, values, Op.REPLACE, scores=scores, added=added)

    @overload
    def upsert(
        self, keys: Keys, values: Any, op: Operator, *, scores: Any = None, stream: Stream | None = None
    ) -> Bools: ...

    @overload
    def upsert(self, keys: A, values: Any, op: Operator, *, scores: Any = None, stream: Stream | None = None) -> A: ...

    def upsert(self, keys: Any, values: Any, op: Operator, *, scores: Any = None, stream: Stream | None = None) -> Any:
        """Insert, or combine with the value that is there.

        Parameters
        ----------
        keys, values
            Arrays of one length. A single value, or a single row of values, is that of all keys.
        op
            ``"add"``, ``"min"``, ``"max"``, ``"or"``, ``"and"`` or ``"xor"``. ``"first"`` keeps the value that is
            there, or the value of the key's first element in the batch. ``"last"`` keeps the value of the key's last
            element. Sums of integers wrap around. Sums of bools are True or False. Sums of floats have the precision of
            their type, and depend by rounding on the order of additions, which is undefined. Of floats, ``"min"`` and
            ``"max"`` follow ``np.minimum`` and ``np.maximum``: NaN wins, and stays; -0.0 is less than 0.0. Rows of
            numbers are combined number by number. This takes longer where rows lie in the slots: those of up to 8 bytes
            beside keys of up to 8 bytes, and all rows in the designs ``"dynamic_cuckoo"`` and ``"stadium"``.
        scores
            As for `assign`, whatever ``op`` is, except that ``"first"`` keeps the score that is there.
        stream
            As for `insert`.

        Returns
        -------
        bool[n]
            True where the key is new.

        Raises
        ------
        UnsupportedVerb
            If the values have no such operation: strings, bytes, or bits of a float; or if they are rows of numbers of
            less than 4 bytes.
        ParameterError
            If there is no such ``op``.
        TableFull
            As `insert`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> counts = warphash.HashMap("S3", "int64", device="cpu")
        >>> counts.upsert(np.array([b"to", b"be", b"to"]), 1, "add").sum(), counts[b"to"]
        (np.int64(2), np.int64(2))
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return HashMap.upsert(self, keys, values, op, scores=scores)
        self._need("upsert")
        if op in ("first", "last"):
            return self._upsert_in_order(keys, values, op, scores)
        if op not in _COMBINING:
            raise ParameterError(f"op must be one of {[*_COMBINING, 'first', 'last']}, got {op!r}")
        column = self._values
        bitwise = op in ("or", "and", "xor")
        if column.dtype.kind not in ("biu" if bitwise else "biuf"):
            raise UnsupportedVerb(f"upsert {op!r} combines {'integers' if bitwise else 'numbers'}, not {column.name}")
        if op == "add" and column.dtype.kind == "b":  # as np.add: a sum of bytes would be no bool
            op = "or"
        return self._parts.updates.update("upsert", keys, values, _COMBINING[op], scores=scores)

    def _upsert_in_order(self, keys: Any, values: Any, op: str, scores: Any) -> Any:
        """Upsert "first" or "last". A bulk operation has no order, so each key's element is found beforehand."""
        front, updates = self._parts.front, self._parts.updates
        seen, value_view = updates.view_pairs(keys, values)
        given = front.scores(seen, scores)
        front.note_kind(seen)
        n, host_keys, host_values = seen.rows, *map(front.on_host, (seen, value_view))
        places = np.arange(n, dtype=np.uint64)
        order = HashMap(front.key.spec, np.uint64, capacity=max(1, n), device="cpu", **self._parts.facts.rules)
        order.upsert(host_keys, places, "min" if op == "first" else "max")
        chosen = order.find(host_keys)[0] == places
        added = np.zeros(n, np.bool_)
        added[chosen] = updates.update(
            "upsert",
            host_keys[chosen],
            host_values[chosen],
            Op.KEEP if op == "first" else Op.REPLACE,
            scores=None if given is None else front.on_host(given)[chosen],
        )
        out = seen.library.empty(seen, (n,), added.dtype, front.engine)
        if out.host is not None:
            out.host[:] = added
        elif n:
            held = front.engine.from_host(added, seen.stream)
            front.engine.copy(out.ptr, held.ptr, n, seen.stream)
        return out.library.export(out)

    @overload
    def evict(self: HashMap[Never, Never], n: int, *, like: None = None) -> tuple[Any, Any]: ...

    @overload
    def evict(self, n: int, *, like: Like = None) -> tuple[npt.NDArray[K], npt.NDArray[V]]: ...

    @overload
    def evict(self, n: int, *, like: A) -> tuple[A, A]: ...

    @overload
    def evict(self, n: int, *, like: str) -> tuple[Any, Any]: ...

    def evict(self, n: int, *, like: Any = None) -> tuple[Any, Any]:
        """Have the ``n`` keys of least rank leave a bounded table.

        Parameters
        ----------
        n
            How many keys; all keys leave if there are fewer.
        like
            As for `keys`.

        Returns
        -------
        keys[n], values[n]
            What left.

        Raises
        ------
        UnsupportedVerb
            If the table has no bound.
        MemoryError
            If there is no memory for a copy of all keys and their ranks; the table is as it was.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> cache = warphash.HashMap("int64", "int64", max_size=4, evict="fifo", device="cpu")
        >>> for key in range(3):
        ...     _ = cache.insert(np.array([key]), np.array([10 * key]))
        >>> cache.evict(1)
        (array([0]), array([0]))
        """
        keys, values = bounded.evict(self._parts, n, like)
        return keys, values

    def erase_if(self, column: Literal["keys", "values", "scores"], comparison: Comparison, bound: Any) -> int:
        """Erase the keys whose key, value or score compares with a bound.

        Parameters
        ----------
        column
            ``"keys"`` or ``"values"``, of numbers; or ``"scores"`` of a table with ``evict="score"``.
        comparison
            ``"<"``, ``"<="``, ``"=="``, ``"!="``, ``">="`` or ``">"``: a key is erased if ``number comparison bound``.
        bound
            A number. Integers are compared exactly, also with a bound that their type does not have. For floats, the
            bound is rounded to their type. NaN compares as in NumPy: it is unequal to every number, and else nothing.

        Returns
        -------
        int
            How many keys were erased.

        Raises
        ------
        DtypeError
            If the column has no numbers, or several in a row; or the bound is no number.
        MemoryError
            If there is no memory for a copy of all keys and the column; the table is as it was.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.arange(5), np.array([3.0, -1.0, 2.0, np.nan, 9.0]), device="cpu")
        >>> m.erase_if("values", "<", 2.5), len(m)
        (2, 3)
        """
        return bounded.erase_if(self._parts, column, comparison, bound)

    @overload
    def find(
        self,
        keys: Keys,
        default: Any = 0,
        *,
        order: Literal["given"] = "given",
        out: Any = None,
        found: Any = None,
        stream: Stream | None = None,
    ) -> tuple[npt.NDArray[V], Bools]: ...

    @overload
    def find(
        self,
        keys: A,
        default: Any = 0,
        *,
        order: Literal["given"] = "given",
        out: A | None = None,
        found: A | None = None,
        stream: Stream | None = None,
    ) -> tuple[A, A]: ...

    @overload
    def find(
        self, keys: Keys, default: Any = 0, *, order: Literal["any"], stream: Stream | None = None
    ) -> tuple[npt.NDArray[K], npt.NDArray[V], Bools]: ...

    @overload
    def find(
        self, keys: A, default: Any = 0, *, order: Literal["any"], stream: Stream | None = None
    ) -> tuple[A, A, A]: ...

    def find(
        self,
        keys: Any,
        default: Any = 0,
        *,
        order: Order = "given",
        out: Any = None,
        found: Any = None,
        stream: Stream | None = None,
    ) -> tuple[Any, ...]:
        """Values of keys, and which keys are there. Does not wait for the device.

        Parameters
        ----------
        keys
            Array of length n.
        default
            The value of a key that is not there; by default zeros, or a string of no characters.
        order
            ``"any"`` lets the table choose the order of the answers: ``(keys[n], values[n], found[n])``, where ``keys``
            are the given ones in that order. A large batch is then answered in the order in which its keys lie in the
            table, where this saves time. Where the order is kept, ``keys`` is the object that was given.
        out, found
            Arrays of the keys' library on their device, ``n`` rows of the values' type and bool[n], which are written
            to and returned. None for new arrays. The two share no memory with each other. Keys that share memory with
            such an array are copied first.
        stream
            As for `insert`.

        Returns
        -------
        values[n], found[n]
            The value of each key, and ``default`` for an absent one; and bool[n], True where the key is there. With
            ``order="any"`` ``keys[n]`` comes first.

        Raises
        ------
        DeviceError, DtypeError, ParameterError, ShapeError
            If ``out`` or ``found`` is another array, or is given with ``order="any"``.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([10, 20]), np.array([1, 2]), device="cpu")
        >>> keys, values, found = m.find(np.array([20, 99]), order="any")
        >>> sorted(zip(keys.tolist(), values.tolist(), found.tolist()))
        [(20, 2, True), (99, 0, False)]
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return HashMap.find(self, keys, default, order=cast("Any", order), out=out, found=found)
        parts = self._parts
        if order != "given":
            refuse_arrays(order, out=out, found=found)
            return parts.lookups.in_any_order("find", keys, parts.front.value, default, order)
        return parts.lookups.look_up("find", keys, parts.front.value, default, out, found)

    @overload
    def execute(
        self, operations: Any, keys: Keys, values: Any = None, default: Any = 0
    ) -> tuple[npt.NDArray[V], Bools]: ...

    @overload
    def execute(self, operations: Any, keys: A, values: Any = None, default: Any = 0) -> tuple[A, A]: ...

    def execute(self, operations: Any, keys: Any, values: Any = None, default: Any = 0) -> tuple[Any, Any]:
        """Find, insert, assign and erase in one batch, whose operations all run at once.

        The operations are linearizable: each takes effect at one moment during the call. A find may come before or
        after an insert of the same batch. ``execute.cuh`` in ``kernels/chains`` and
        in ``kernels/tickets`` has the proof.

        Parameters
        ----------
        operations
            Codes of `Operation`, uint8[n]. Codes in GPU memory are not checked; an unknown code does nothing.
        keys
            Array of length n.
        values
            Array of length n, which inserts and assigns read; None if there are no such operations. If the codes are
            in GPU memory, inserts and assigns without values write zeros.
        default
            The answer of a find of an absent key, and of the other operations.

        Returns
        -------
        values[n], bool[n]
            The value that each find found; and True where a find found its key, an insert or assign added its key, or
            an erase erased its key.

        Raises
        ------
        UnsupportedVerb
            If the design does no mixed batches, or keys or values have more than 8 bytes and the design is not
            ``"stadium"``, which takes any.
        TableFull
            If there is no room for some keys: the ``keys`` of the error. All other operations are done, since each is
            an operation of its own.
        ParameterError
            If codes in host memory are not of `Operation`, or write without values. Nothing was done.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> from warphash import Operation
        >>> m = warphash.HashMap.from_arrays(np.array([10]), np.array([1]), design="slab", device="cpu")
        >>> values, done = m.execute([Operation.FIND, Operation.INSERT], np.array([10, 20]), np.array([0, 2]))
        >>> values.tolist(), done.tolist()
        ([1, 0], [True, True])
        """
        done, found = mixed_batch.execute(self._parts, self._operations, operations, keys, values, default)
        return found, done

    @overload
    def find_or_insert(
        self, keys: Keys, values: Any, *, scores: Any = None, stream: Stream | None = None
    ) -> tuple[npt.NDArray[V], Bools]: ...

    @overload
    def find_or_insert(
        self, keys: A, values: Any, *, scores: Any = None, stream: Stream | None = None
    ) -> tuple[A, A]: ...

    def find_or_insert(
        self, keys: Any, values: Any, *, scores: Any = None, stream: Stream | None = None
    ) -> tuple[Any, Any]:
        """Insert and find in one operation.

        Parameters
        ----------
        keys, values
            Arrays of one length; ``values`` are for the keys that are absent.
        scores
            As for `insert`.
        stream
            As for `insert`.

        Returns
        -------
        values[n], bool[n]
            The value that each key has now; and True where this element added its key, as `insert` answers.

        Raises
        ------
        TableFull
            As `insert`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7]), np.array([1]), device="cpu")
        >>> values, inserted = m.find_or_insert(np.array([7, 8]), np.array([10, 20]))
        >>> values.tolist(), inserted.tolist()
        ([1, 20], [False, True])
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return HashMap.find_or_insert(self, keys, values, scores=scores)
        self._need("find_or_insert")
        front, updates, column = self._parts.front, self._parts.updates, self._values
        pairs = updates.view_pairs(keys, values)
        seen = pairs[0]
        given = front.scores(seen, scores)
        front.note_kind(seen)
        library = seen.library
        inserted = library.empty(seen, seen.shape[:1], BOOL, front.engine)
        held = front.rows_for(seen, column)

        def find_or_insert_locked() -> ArrayView | StringArray:
            updates.update_locked(pairs, Op.KEEP, inserted, held, scores=given)
            return owned(front.engine, column, held)

        made = self._parts.guarded.lock.write(find_or_insert_locked)
        return column.exported(made, library), library.export(inserted)

    @overload
    def number(self, keys: Keys, *, first: int = 0, stream: Stream | None = None) -> tuple[npt.NDArray[V], Bools]: ...

    @overload
    def number(self, keys: A, *, first: int = 0, stream: Stream | None = None) -> tuple[A, A]: ...

    def number(self, keys: Any, *, first: int = 0, stream: Stream | None = None) -> tuple[Any, Any]:
        """Give each distinct key a dense number, in the order of first appearance.

        A key that is there has its value for its number. The keys of the batch that are absent get the numbers
        ``first + len(table)``, ``first + len(table) + 1`` and so on, in the order in which they first appear, on every
        device and for any number of threads. So the numbers are dense if no other verb adds or erases keys, and all
        calls have the same ``first``.

        Parameters
        ----------
        keys
            Array of length n, at most 2**31. Nulls that the table drops are not new, and have the number 0.
        first
            The number of the first key, an integer of the values' type.
        stream
            As for `insert`.

        Returns
        -------
        numbers[n], bool[n]
            The number of each key, in the values' type; and True where this element added its key: the first element
            of each new key.

        Raises
        ------
        DtypeError
            If the values of the table are no integers, or are too narrow for the numbers of the new keys. The table is
            as it was.
        ParameterError
            If ``first`` is no integer of the values' type.
        UnsupportedVerb
            If the table is bounded: numbers of keys that leave would be given again.
        TableFull, MemoryError
            The table is as it was.

        Notes
        -----
        Takes time in proportion to n: one lookup of all keys, and, for the elements whose keys are absent, a numbering
        and an insert of each distinct key. A KeyboardInterrupt leaves all new keys of the batch in the table, or none.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap("int64", "int64", device="cpu")
        >>> numbers, new = m.number(np.array([70, 50, 70]))
        >>> numbers.tolist(), new.tolist()
        ([0, 1, 0], [True, True, False])
        >>> m.number(np.array([90, 50, 20]))[0].tolist()
        [2, 1, 3]
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return HashMap.number(self, keys, first=first)
        return key_numbers.number(self._parts, keys, first)

    def plan(self, n: int, *, like: Any = None) -> MapPlan[K, V]:
        """Prepare `find`, `contains`, `insert` and `assign` for batches of ``n`` keys, for callers who repeat them.

        A plan takes arrays of one library on one device, of the table's types. It converts nothing, and can write the
        answers to arrays of the caller. So a call takes the host less time. A plan keeps nothing of the table's memory:
        it stays valid when the table grows. Several threads may use it, each with arrays of its own for the answers. In
        a CUDA graph, `find` and `contains` of a plan can be captured as those of the table.

        Parameters
        ----------
        n
            Keys of a batch.
        like
            An array of the library, and on the device, of the arrays of the calls; or the name of a library, as for
            `keys`. By default, as the first keys that the table was given to keep.

        Returns
        -------
        MapPlan
            Its ``find``, ``contains``, ``insert`` and ``assign`` are those of the table.

        Raises
        ------
        UnsupportedVerb
            If keys or values are strings of any length, or keys may be null.
        DtypeError
            If the library has no such type.
        DeviceError, ParameterError
            As `keys`, for ``like``.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.arange(100), np.arange(100.0), device="cpu")
        >>> plan = m.plan(3)
        >>> values, found = np.empty(3), np.empty(3, bool)
        >>> for first in (0, 98):
        ...     _ = plan.find(np.arange(first, first + 3), default=-1, out=values, found=found)
        ...     print(values, found)
        [0. 1. 2.] [ True  True  True]
        [98. 99. -1.] [ True  True False]
        """
        return MapPlan(self, self._parts, n, like)

    # ---- the dict face
    @overload
    def get(self, keys: OneKey, default: None = None) -> V | None: ...

    @overload
    def get(self, keys: OneKey, default: D) -> V | D: ...

    @overload
    def get(self, keys: Batch, default: Any) -> npt.NDArray[V]: ...

    @overload
    def get(self, keys: A, default: Any) -> A: ...

    def get(self, keys: Any, default: Any = None) -> Any:
        """The value of one key, or ``default`` if the key is absent; or the values of a batch.

        Parameters
        ----------
        keys
            One key, or an array of keys. A key that the key type cannot represent is absent.
        default
            For one key, any object. For a batch, a value, which absent keys get: ``values[n]`` is returned.

        Returns
        -------
        value or values[n]
            A NumPy scalar or a row for one key; an array for a batch.

        Raises
        ------
        ParameterError
            For a batch without a default.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7]), np.array([1]), device="cpu")
        >>> m.get(7), m.get(8), m.get(np.array([7, 8]), 0).tolist()
        (np.int64(1), None, [1, 0])
        """
        self._need("find")
        return mapping.get(self._parts, keys, default)

    @overload
    def pop(self, keys: OneKey) -> V: ...

    @overload
    def pop(self, keys: OneKey, default: D) -> V | D: ...

    @overload
    def pop(self, keys: Batch, default: Any = ...) -> npt.NDArray[V]: ...

    @overload
    def pop(self, keys: A, default: Any = ...) -> A: ...

    def pop(self, keys: Any, default: Any = mapping.MISSING) -> Any:
        """Erase keys, and return the values that they had.

        Parameters
        ----------
        keys
            One key, or an array of keys.
        default
            For absent keys, as for `get`.

        Returns
        -------
        value or values[n]
            Of one key, or of a batch. All elements of a batch with one key return the value of the key.

        Raises
        ------
        KeyError
            Without a default, if a key is absent. No key was erased.
        MemoryError
            If there is no memory; no key was erased.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu")
        >>> m.pop(7), m.pop(np.array([8, 7]), 0).tolist(), len(m)
        (np.int64(1), [2, 0], 0)
        """
        self._need("find")
        self._need("erase")
        return mapping.pop(self._parts, keys, default)

    @overload
    def setdefault(self, keys: OneKey, values: Any) -> V: ...

    @overload
    def setdefault(self, keys: Batch, values: Any) -> npt.NDArray[V]: ...

    @overload
    def setdefault(self, keys: A, values: Any) -> A: ...

    def setdefault(self, keys: Any, values: Any) -> Any:
        """Add absent keys, and return the value that each key has now.

        `find_or_insert` also says which keys were added.

        Parameters
        ----------
        keys
            One key, or an array of keys.
        values
            Their values, where they are absent.

        Returns
        -------
        value or values[n]
            Of one key, or of a batch.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7]), np.array([1]), device="cpu")
        >>> m.setdefault(7, 5), m.setdefault(8, 5)
        (np.int64(1), np.int64(5))
        """
        key = self._parts.front.key
        one = key.see(keys).shape == key.shape
        held, _ = self.find_or_insert(keys, values)
        return held[0] if one else held

    def update(self, other: Any) -> None:
        """Assign all pairs of another `HashMap`, of a mapping, or of an iterable of pairs.

        Pairs of a `HashMap` on the same device stay there. To assign two
        arrays, call `assign`.

        Parameters
        ----------
        other
            A `HashMap`, a mapping, or an iterable of pairs ``(key, value)``. Of an iterable, the last pair of a key
            wins.

        Raises
        ------
        DtypeError
            If the pairs are of other types; the table is as it was.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> m = warphash.HashMap.from_arrays(np.array([7]), np.array([1]), device="cpu")
        >>> m.update({7: 10, 8: 20})
        >>> m[7], m[8]
        (np.int64(10), np.int64(20))
        """
        self._need("assign")
        if isinstance(other, BaseTable):
            mapping.update(self._parts, other._parts)
        elif (columns := mapping.columns_of(other)) is not None:
            if isinstance(other, Mapping):
                self.assign(*columns)
            else:  # of equal keys, the last one wins, as in a dict
                self.upsert(*columns, "last")

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def __or__(self, other: Any) -> Self:
        if not isinstance(other, HashMap | Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __eq__(self, other: object) -> bool:
        """Whether both maps have the same keys of the same type, each with an equal value. NaN equals nothing."""
        if not isinstance(other, HashMap):
            return NotImplemented
        if not self._parts.front.has_keys_of(other._parts.front):
            return False
        return set_algebra.related(self, other, mapping.same_pairs)

    __hash__ = None  # type: ignore[assignment]  # as of a dict: what changes has no hash

    @overload
    def __getitem__(self, keys: OneKey) -> V: ...

    @overload
    def __getitem__(self, keys: Batch) -> npt.NDArray[V]: ...

    @overload
    def __getitem__(self, keys: A) -> A: ...

    def __getitem__(self, keys: Any) -> Any:
        front = self._parts.front
        is_one, seen, fits = front.one_or_many(keys)
        values, found = self._parts.lookups.look_up("find", Sought(seen, fits), front.value, 0)
        front.raise_missing(seen, view(found), fits, keys)
        return values[0] if is_one else values

    def __setitem__(self, keys: Any, values: Any) -> None:
        self._parts.updates.update("assign", keys, values, Op.REPLACE)

    def __delitem__(self, keys: Any) -> None:
        self._need("erase")
        front, lookups, guarded = self._parts.front, self._parts.lookups, self._parts.guarded
        seen, fits = front.sought(keys)
        if fits is not None:
            front.raise_missing(seen, view(fits), fits, keys)
        seen = front.transfer.private_view(seen)  # what is found is what is erased
        erased = seen.library.empty(seen, seen.shape[:1], BOOL, front.engine)

        def erase() -> None:
            front.raise_missing(seen, lookups.present_locked(seen))
            lookups.answer_locked(seen, erased, guarded.storage.erase)

        guarded.alone(erase)


class HashSet(BaseTable[K]):
    """A set of keys on one device. Takes the parameters of `HashMap`, without ``value``.

    ``a | b``, ``a & b``, ``a - b``, ``a ^ b``, ``a <= b`` and ``a == b`` are those of Python's sets, and so are ``|=``,
    ``&=`` and ``-=``. They take sets; the methods of the same meaning take arrays and iterables, too.

    Parameters
    ----------
    key, capacity, **options
        As of `HashMap`.

    Raises
    ------
    DtypeError, ParameterError, DeviceError, EngineUnavailable, MemoryError, PathError
        As `HashMap`.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> s = warphash.HashSet.from_arrays(np.array([3, 1, 3]), device="cpu")
    >>> len(s), s.contains(np.array([1, 2])).tolist()
    (2, [True, False])
    """

    _kind = "HashSet"

    @names_keywords(TableOptionsWithCapacity, BaseTable.__init__)
    def __init__(self, key: type[K] | np.dtype[K] | KeySpec, **options: Unpack[TableOptionsWithCapacity]) -> None:
        super().__init__(key, None, **options)

    @classmethod
    @names_keywords(TableOptions, BaseTable.__init__)
    def from_arrays(
        cls,
        keys: npt.NDArray[KeyT] | Foreign | Sequence[Any],
        *,
        scores: Any = None,
        assume_unique: bool = False,
        capacity: int | None = None,
        **options: Unpack[TableOptions],
    ) -> HashSet[KeyT]:
        """Build a set of ``keys`` in one pass.

        Parameters
        ----------
        keys
            As of `HashMap.from_arrays`.
        scores, assume_unique, capacity, **options
            As of `HashMap.from_arrays`.

        Returns
        -------
        HashSet
            A new set.

        Raises
        ------
        DtypeError, ParameterError, ShapeError, DeviceError, EngineUnavailable, MemoryError
            As `HashMap.from_arrays`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> len(warphash.HashSet.from_arrays(np.array([[1, 2], [3, 4], [1, 2]]), device="cpu"))
        2
        """
        column, seen = keys_and_column(keys, options)
        options.setdefault("device", seen.device if seen.host is None else None)
        table: HashSet[Any] = cls(column.spec, capacity=capacity_for(seen.rows, capacity, options), **options)
        table._parts.updates.update(None, seen, None, Op.KEEP, scores=scores, unique=assume_unique, answers=False)
        if capacity is None and not assume_unique:
            shrink_if_repeated(table, seen.rows)
        return table

    @overload
    def insert(
        self,
        keys: Keys,
        *,
        scores: Any = None,
        assume_unique: bool = False,
        added: Any = None,
        stream: Stream | None = None,
    ) -> Bools: ...

    @overload
    def insert(
        self,
        keys: A,
        *,
        scores: Any = None,
        assume_unique: bool = False,
        added: A | None = None,
        stream: Stream | None = None,
    ) -> A: ...

    def insert(
        self,
        keys: Any,
        *,
        scores: Any = None,
        assume_unique: bool = False,
        added: Any = None,
        stream: Stream | None = None,
    ) -> Any:
        """Add keys.

        Parameters
        ----------
        keys
            Array of length n.
        scores, assume_unique, added
            As of `HashMap.insert`.
        stream
            A CUDA stream, for a table on a GPU: a handle, or an object with ``__cuda_stream__``. The verb runs behind
            what the stream was given, and what it is given next comes behind the verb. None means the current stream of
            the keys' library.

        Returns
        -------
        bool[n]
            True where this element added its key: one element of each new key.

        Raises
        ------
        TableFull, DeviceError, DtypeError, ParameterError, ShapeError
            As `HashMap.insert`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet("int64", device="cpu")
        >>> s.insert(np.array([3, 1])).tolist(), s.insert(np.array([1, 2])).tolist()
        ([True, True], [False, True])
        """
        if stream is not None:
            with on_stream(stream, keys, self._parts.front.engine):
                return HashSet.insert(self, keys, scores=scores, assume_unique=assume_unique, added=added)
        return self._parts.updates.update(
            "insert", keys, None, Op.KEEP, scores=scores, unique=assume_unique, added=added
        )

    # ---- one key, as of a Python set
    def plan(self, n: int, *, like: Any = None) -> SetPlan[K]:
        """Prepare `contains` and `insert` for batches of ``n`` keys, for callers who repeat them.

        Parameters
        ----------
        n, like
            As of `HashMap.plan`.

        Returns
        -------
        SetPlan
            Its ``contains`` and ``insert`` are those of the set.

        Raises
        ------
        UnsupportedVerb, DtypeError, DeviceError, ParameterError
            As `HashMap.plan`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> plan = warphash.HashSet.from_arrays(np.arange(5), device="cpu").plan(2)
        >>> plan.contains(np.array([4, 5])).tolist()
        [True, False]
        """
        return SetPlan(self, self._parts, n, like)

    def add(self, key: Any) -> None:
        """Add one key. `insert` adds a batch.

        Parameters
        ----------
        key
            One key.

        Raises
        ------
        DtypeError
            If the key type cannot represent the key.

        Examples
        --------
        >>> import warphash
        >>> s = warphash.HashSet("int64", device="cpu")
        >>> s.add(7)
        >>> 7 in s
        True
        """
        self._parts.updates.update("insert", [key], None, Op.KEEP, answers=False)

    def discard(self, key: Any) -> None:
        """Erase one key, if it is there. `erase` erases a batch.

        Parameters
        ----------
        key
            One key.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.array([7]), device="cpu")
        >>> s.discard(7)
        >>> s.discard(8)
        >>> len(s)
        0
        """
        self._erased(key)

    def remove(self, key: Any) -> None:
        """Erase one key.

        Parameters
        ----------
        key
            One key.

        Raises
        ------
        KeyError
            If the key is absent.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.array([7]), device="cpu")
        >>> s.remove(7)
        >>> len(s)
        0
        """
        if not self._erased(key):
            raise KeyError(key)

    def _erased(self, key: Any) -> bool:
        """Erase one key: whether it was there."""
        self._need("erase")
        front = self._parts.front
        seen = front.one_key(key, "call erase(keys)")
        return seen is not None and bool(front.on_host(view(self.erase(seen)))[0])

    @overload
    def evict(self: HashSet[Never], n: int, *, like: None = None) -> Any: ...

    @overload
    def evict(self, n: int, *, like: Like = None) -> npt.NDArray[K]: ...

    @overload
    def evict(self, n: int, *, like: A) -> A: ...

    @overload
    def evict(self, n: int, *, like: str) -> Any: ...

    def evict(self, n: int, *, like: Any = None) -> Any:
        """Have the ``n`` keys of least rank leave a bounded set.

        Parameters
        ----------
        n, like
            As of `HashMap.evict`.

        Returns
        -------
        keys[n]
            What left.

        Raises
        ------
        UnsupportedVerb, MemoryError
            As `HashMap.evict`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> seen = warphash.HashSet("int64", max_size=4, evict="score", device="cpu")
        >>> seen.insert(np.array([7, 8]), scores=[2.0, 1.0]).tolist(), seen.evict(1)
        ([True, True], array([8]))
        """
        return bounded.evict(self._parts, n, like)[0]

    def erase_if(self, column: Literal["keys", "scores"], comparison: Comparison, bound: Any) -> int:
        """Erase the keys that compare with a bound.

        Parameters
        ----------
        column
            ``"keys"``, of numbers; or ``"scores"`` of a set with ``evict="score"``.
        comparison, bound
            As of `HashMap.erase_if`.

        Returns
        -------
        int
            How many keys were erased.

        Raises
        ------
        DtypeError, MemoryError
            As `HashMap.erase_if`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> warphash.HashSet.from_arrays(np.arange(5), device="cpu").erase_if("keys", ">=", 3)
        2
        """
        return bounded.erase_if(self._parts, column, comparison, bound)

    @overload
    def execute(self, operations: Any, keys: Keys) -> Bools: ...

    @overload
    def execute(self, operations: Any, keys: A) -> A: ...

    def execute(self, operations: Any, keys: Any) -> Any:
        """Find, insert and erase in one batch, whose operations all run at once.

        Parameters
        ----------
        operations
            Codes of `Operation`, uint8[n], as of `HashMap.execute`.
        keys
            Array of length n.

        Returns
        -------
        bool[n]
            True where a find found its key, an insert added its key, or an erase erased its key.

        Raises
        ------
        UnsupportedVerb, TableFull, ParameterError
            As `HashMap.execute`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> from warphash import Operation
        >>> s = warphash.HashSet.from_arrays(np.array([10]), design="slab", device="cpu")
        >>> s.execute([Operation.ERASE, Operation.FIND], np.array([10, 20])).tolist()
        [True, False]
        """
        return mixed_batch.execute(self._parts, self._operations, operations, keys, None, 0)[0]

    # ---- set algebra, on the device of the left set
    def update(self, other: Any) -> None:
        """Add the keys of another set, an array or an iterable of keys.

        Parameters
        ----------
        other
            A `HashSet`, an array or an iterable of keys.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet("int64", device="cpu")
        >>> s.update({1, 2})
        >>> len(s)
        2
        """
        if isinstance(other, HashSet):
            self |= other
        else:
            self._parts.updates.update("insert", _rows(other), None, Op.KEEP, answers=False)

    def union(self, other: Any) -> Self:
        """The keys of this set and of another set, an array or an iterable of keys: ``self | other``.

        Parameters
        ----------
        other
            A `HashSet`, an array or an iterable of keys.

        Returns
        -------
        HashSet
            A new set on the device of this one, with its options but a bound.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.array([1, 2]), device="cpu")
        >>> sorted(s.union([2, 3]).keys().tolist())
        [1, 2, 3]
        """
        return self | self._as_set(other)

    def intersection(self, other: Any) -> Self:
        """The keys that are also in another set, an array or an iterable of keys: ``self & other``.

        Parameters
        ----------
        other
            A `HashSet`, an array or an iterable of keys.

        Returns
        -------
        HashSet
            A new set on the device of this one, with its options but a bound.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.array([1, 2]), device="cpu")
        >>> s.intersection([2, 3]).keys().tolist()
        [2]
        """
        return self & self._as_set_of_possible_keys(other)

    def difference(self, other: Any) -> Self:
        """The keys that are not in another set, an array or an iterable of keys: ``self - other``.

        Parameters
        ----------
        other
            A `HashSet`, an array or an iterable of keys.

        Returns
        -------
        HashSet
            A new set on the device of this one, with its options but a bound.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.array([1, 2]), device="cpu")
        >>> s.difference([2, 3]).keys().tolist()
        [1]
        """
        return self - self._as_set_of_possible_keys(other)

    def symmetric_difference(self, other: Any) -> Self:
        """The keys that are in one of the two alone: ``self ^ other``.

        Parameters
        ----------
        other
            A `HashSet`, an array or an iterable of keys.

        Returns
        -------
        HashSet
            A new set on the device of this one, with its options but a bound.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.array([1, 2]), device="cpu")
        >>> sorted(s.symmetric_difference([2, 3]).keys().tolist())
        [1, 3]
        """
        return self ^ self._as_set(other)

    def issubset(self, other: Any) -> bool:
        """Whether another set, an array or an iterable has all keys of this set: ``self <= other``.

        Parameters
        ----------
        other
            A `HashSet`, an array or an iterable of keys.

        Returns
        -------
        bool
            True if no key is missing there.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.array([1, 2]), device="cpu")
        >>> s.issubset([1, 2, 3]), s.issubset([1])
        (True, False)
        """
        return self <= self._as_set_of_possible_keys(other)

    def issuperset(self, other: Any) -> bool:
        """Whether this set has all keys of another set, an array or an iterable: ``self >= other``.

        Parameters
        ----------
        other
            A `HashSet`, an array or an iterable of keys.

        Returns
        -------
        bool
            True if no key is missing here.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s = warphash.HashSet.from_arrays(np.array([1, 2]), device="cpu")
        >>> s.issuperset([1]), s.issuperset([3])
        (True, False)
        """
        if isinstance(other, HashSet):
            return self >= other
        keys, fits = self._parts.front.sought(_rows(other))
        return fits is None and self >= self._as_set(keys)

    def _as_set(self, other: Any) -> HashSet:
        """Another set; or a set of the keys of an array or an iterable."""
        if isinstance(other, HashSet):
            return other
        made = HashSet(self._parts.front.key.spec, device=self.device, **self._parts.facts.rules)
        made.update(other)
        return made

    def _as_set_of_possible_keys(self, other: Any) -> HashSet:
        """As `_as_set`, without the keys that the key type of this set cannot represent."""
        if isinstance(other, HashSet):
            return other
        keys, fits = self._parts.front.sought(_rows(other))
        return self._as_set(keys if fits is None else chosen(keys, fits))

    def __ior__(self, other: HashSet) -> Self:
        return self._changed(other, set_algebra.add_all, "insert")

    def __iand__(self, other: HashSet) -> Self:
        return self._changed(other, set_algebra.keep_common, "erase")

    def __isub__(self, other: HashSet) -> Self:
        return self._changed(other, set_algebra.erase_all, "erase")

    def __or__(self, other: HashSet) -> Self:
        return self._combined(other, set_algebra.union)

    def __and__(self, other: HashSet) -> Self:
        return self._combined(other, set_algebra.intersection)

    def __sub__(self, other: HashSet) -> Self:
        return self._combined(other, set_algebra.difference)

    def __xor__(self, other: HashSet) -> Self:
        return self._combined(other, set_algebra.symmetric_difference)

    def __le__(self, other: HashSet) -> bool:
        """Whether the other set has all keys of this one."""
        return self._related(other, set_algebra.is_subset)

    def __lt__(self, other: HashSet) -> bool:
        """Whether the other set has all keys of this one, and more."""
        return self._related(other, set_algebra.is_proper_subset)

    def __ge__(self, other: HashSet) -> bool:
        """Whether this set has all keys of the other one."""
        return self._related(other, set_algebra.is_superset)

    def __gt__(self, other: HashSet) -> bool:
        """Whether this set has all keys of the other one, and more."""
        return self._related(other, set_algebra.is_proper_superset)

    def __eq__(self, other: object) -> bool:
        """Whether both sets have the same keys of the same type, whatever their designs and devices are."""
        if isinstance(other, HashSet) and not self._parts.front.has_keys_of(other._parts.front):
            return False
        return self._related(other, set_algebra.is_equal)

    __hash__ = None  # type: ignore[assignment]  # as of Python's sets: what changes has no hash

    def isdisjoint(self, other: Any) -> bool:
        """Whether no key is in both this set and another set, an array or an iterable.

        Parameters
        ----------
        other
            A `HashSet`, an array or an iterable of keys.

        Returns
        -------
        bool
            True if no key is in both.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> s, t = (warphash.HashSet.from_arrays(np.array(keys), device="cpu") for keys in ([1, 2], [2, 3]))
        >>> s.isdisjoint(t), s.isdisjoint([3, 4])
        (False, True)
        """
        return self._related(self._as_set_of_possible_keys(other), set_algebra.is_disjoint)

    def _combined(self, other: HashSet, choose: set_algebra.Choice) -> Self:
        return set_algebra.combined(self, other, choose) if isinstance(other, HashSet) else NotImplemented

    def _changed(self, other: HashSet, change: set_algebra.Change, verb: str) -> Self:
        if not isinstance(other, HashSet):
            return NotImplemented
        set_algebra.changed(self, other, change, verb)
        return self

    def _related(self, other: object, holds: set_algebra.Relation) -> bool:
        return set_algebra.related(self, other, holds) if isinstance(other, HashSet) else NotImplemented


def _rows(keys: Any) -> Any:
    """Keys as an array or a list: an iterable that has no order, or no length, becomes a list."""
    return list(keys) if isinstance(keys, Set | Iterator | Mapping) else keys


Set.register(HashSet)  # a HashMap is no Mapping: its keys() are an array, and no view
