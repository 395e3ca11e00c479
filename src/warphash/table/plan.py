"""Prepared calls: the verbs of a table for a caller who repeats batches of one size.

A verb finds out what its arrays are, checks them and allocates its results; for a small batch on a GPU this takes the
host longer than the launch. A plan knows beforehand what the arrays are (`arrays.form.Form`), and writes to arrays of
the caller. What follows, under the table's lock, is the same for both. So a plan holds nothing of the table's memory,
and stays right when the table grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, overload

import numpy as np
import numpy.typing as npt

from ..arrays.form import Form, meet
from ..arrays.library import ELSEWHERE, MAX_ROWS, ArrayView, refuse_rows
from ..arrays.row_type import Column
from ..errors import UnsupportedVerb
from ..runtime.abi import Op
from .array_types import A, Bools, K, Keys, V
from .options import integer
from .parts import Parts

__all__ = ["MapPlan", "SetPlan"]

_BOOL = np.dtype(np.bool_)


class _Plan(Generic[K]):
    """What the plans of maps and of sets have in common."""

    __slots__ = (
        "_added",
        "_engine",
        "_found",
        "_key_bytes",
        "_keys",
        "_like",
        "_n",
        "_out",
        "_parts",
        "_stream",
        "_table",
        "_value_bytes",
        "_values",
        "_verbs",
    )

    def __init__(self, table: object, parts: Parts, n: int, like: Any) -> None:
        front = parts.front
        key, value = front.key, front.value
        for column, what in ((key, "keys"), (value, "values")):
            if column is not None and (column.has_any_length or column.is_of_columns):
                raise UnsupportedVerb(
                    f"a plan is for {what} of a fixed width, got a table with {what} of type {column.name}: call the "
                    "verbs of the table"
                )
        self._table, self._parts, self._n = table, parts, integer("n", n, 0)  # a table that nobody holds is gone
        self._engine, self._verbs = front.engine, parts.facts.verbs
        if self._n > MAX_ROWS:
            refuse_rows(self._n)
        library, device = front.kind_like(like)
        self._like = seen = library.see(library.example(device))
        self._keys = Form(seen, (self._n, *key.shape), key.dtype, "keys")
        self._found = Form(seen, (self._n,), _BOOL, "found", is_written=True)
        self._added = Form(seen, (self._n,), _BOOL, "added", is_written=True)
        self._key_bytes, self._value_bytes = self._keys.nbytes, 0
        self._values = self._out = None
        if value is not None:
            self._values = Form(seen, (self._n, *value.shape), value.dtype, "values")
            self._out = Form(seen, (self._n, *value.shape), value.dtype, "out", is_written=True)
            self._value_bytes = self._out.nbytes
        stream: Any = getattr(library, "current_stream", None)
        # Without a conversion of keys, and without a copy to another memory, kernels take the caller's arrays.
        takes_arrays = stream is not None and type(key) is Column and seen.device == front.device
        self._stream: Callable[[], int | None] = stream(seen) if takes_arrays else _elsewhere

    @property
    def n(self) -> int:
        """Keys of a batch."""
        return self._n

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._n:,} keys a batch, in arrays of {self._like.kind}, of {self._table!r}>"

    @overload
    def contains(self, keys: Keys, *, found: Any = None) -> Bools: ...

    @overload
    def contains(self, keys: A, *, found: A | None = None) -> A: ...

    def contains(self, keys: Any, *, found: Any = None) -> Any:
        """As ``contains`` of the table: which keys are there.

        Parameters
        ----------
        keys
            Array of the plan's form.
        found
            Array bool[n] of the same library, which is written to and returned. None for a new one. If it shares memory
            with ``keys``, these are copied first.

        Returns
        -------
        bool[n]
            ``found``, or a new array.

        Raises
        ------
        DeviceError, DtypeError, ParameterError, ShapeError
            If an array is of another form.
        CaptureError
            As ``contains`` of the table, inside of a CUDA graph.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> plan = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu").plan(2)
        >>> plan.contains(np.array([8, 9])).tolist()
        [True, False]
        """
        return self._look_up("contains", keys, None, None, found, b"\0")[1]

    def _look_up(self, verb: str, keys: Any, form: Form | None, out: Any, found: Any, absent: bytes) -> tuple[Any, Any]:
        """Values, unless ``form`` is None, and presence."""
        if verb not in self._verbs:
            self._parts.facts.refuse(verb)
        stream = self._stream()
        if stream == ELSEWHERE or (at := self._keys.address(keys)) is None:
            return self._look_up_seen(keys, form, out, found, absent)
        values, values_at = (out, 0) if form is None else self._new(form) if out is None else (out, form.address(out))
        flags, found_at = self._new(self._found) if found is None else (found, self._found.address(found))
        if values_at is None or found_at is None:
            return self._look_up_seen(keys, form, out, found, absent)
        n, key_bytes, value_bytes = self._n, self._key_bytes, self._value_bytes
        if (  # which new arrays never do
            meet(at, key_bytes, values_at, value_bytes)
            or meet(at, key_bytes, found_at, n)
            or meet(values_at, value_bytes, found_at, n)
        ):
            return self._look_up_seen(keys, form, out, found, absent)
        if (note_write := self._found.note_write) is not None:
            for given in (out, found):
                if given is not None:
                    note_write(given)
        self._parts.lookups.find_at(at, n, values_at, found_at, absent, stream)
        return values, flags

    def _look_up_seen(self, keys: Any, form: Form | None, out: Any, found: Any, absent: bytes) -> tuple[Any, Any]:
        """As `_look_up`, of arrays that have to be seen: to be converted or moved, or to say what is wrong with one."""
        seen = self._parts.front.key.view(self._keys.see(keys), "keys")
        values = None if form is None else self._to_write(form, out, seen)
        flags = self._to_write(self._found, found, seen)
        seen = self._parts.front.apart_from(seen, values, flags)
        self._parts.lookups.find(seen, values, flags, absent)
        return None if values is None else _answer(values, out), _answer(flags, found)

    def _update(self, verb: str, keys: Any, values: Any, added: Any, op: Op, unique: bool) -> Any:
        """True where this element added its key."""
        if verb not in self._verbs:
            self._parts.facts.refuse(verb)
        front, stream = self._parts.front, self._stream()
        if front.score is not None:
            raise UnsupportedVerb("a plan has no scores: call the verb of the table, with scores=")
        if stream == ELSEWHERE or (at := self._keys.address(keys)) is None:
            return self._update_seen(keys, values, added, op, unique)
        values_at = self._values.address(values) if self._values else 0
        flags, added_at = self._new(self._added) if added is None else (added, self._added.address(added))
        if values_at is None or added_at is None:
            return self._update_seen(keys, values, added, op, unique)
        if meet(at, self._key_bytes, added_at, self._n) or meet(values_at, self._value_bytes, added_at, self._n):
            return self._update_seen(keys, values, added, op, unique)
        if added is not None and (note_write := self._added.note_write) is not None:
            note_write(added)
        if front.like is None:
            front.note_kind(self._like)
        made_at, _own = (added_at, None) if added is None else self._parts.updates.flags_at(added_at, self._n)
        update_at, n = self._parts.updates.update_at_locked, self._n
        self._parts.guarded.lock.write(update_at, at, values_at, n, op, made_at, unique, stream, keys)
        if made_at != added_at:
            self._engine.copy(added_at, made_at, self._n)
        return flags

    def _update_seen(self, keys: Any, values: Any, added: Any, op: Op, unique: bool) -> Any:
        """As `_update`, of arrays that have to be seen."""
        updates = self._parts.updates
        pairs = updates.view_pairs(self._keys.see(keys), None if self._values is None else self._values.see(values))
        flags = self._to_write(self._added, added, pairs[0])
        updates.update_into(pairs, op, flags, unique=unique)
        return _answer(flags, added)

    def _new(self, form: Form) -> tuple[Any, int | None]:
        """A new array of a library whose arrays need no `Library.export`, and its address."""
        like = self._like
        made = like.library.empty(like, form.shape, form.dtype, self._engine)
        return made.owner, made.ptr

    def _to_write(self, form: Form, given: Any, like: ArrayView) -> ArrayView:
        """The given array, checked; or a new one."""
        if given is not None:
            return form.see_to_write(given)
        return like.library.empty(like, form.shape, form.dtype, self._engine)


class SetPlan(_Plan[K]):
    """Prepared calls of a `HashSet`, for batches of ``n`` keys. Made by `HashSet.plan`."""

    __slots__ = ()

    @overload
    def insert(self, keys: Keys, *, added: Any = None, assume_unique: bool = False) -> Bools: ...

    @overload
    def insert(self, keys: A, *, added: A | None = None, assume_unique: bool = False) -> A: ...

    def insert(self, keys: Any, *, added: Any = None, assume_unique: bool = False) -> Any:
        """As `HashSet.insert`.

        Parameters
        ----------
        keys, added, assume_unique
            As of `MapPlan.insert`.

        Returns
        -------
        bool[n]
            True where this element added its key.

        Raises
        ------
        DeviceError, DtypeError, ParameterError, ShapeError, TableFull, MemoryError
            As `MapPlan.insert`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> plan = warphash.HashSet("int64", device="cpu").plan(2, like="numpy")
        >>> plan.insert(np.array([7, 8])).tolist()
        [True, True]
        """
        return self._update("insert", keys, None, added, Op.KEEP, assume_unique)


class MapPlan(_Plan[K], Generic[K, V]):
    """Prepared calls of a `HashMap`, for batches of ``n`` keys. Made by `HashMap.plan`."""

    __slots__ = ("_default",)

    def __init__(self, table: object, parts: Parts, n: int, like: Any) -> None:
        super().__init__(table, parts, n, like)
        assert parts.front.value is not None
        self._default = parts.front.value.default

    @overload
    def find(
        self, keys: Keys, default: Any = 0, *, out: Any = None, found: Any = None
    ) -> tuple[npt.NDArray[V], Bools]: ...

    @overload
    def find(self, keys: A, default: Any = 0, *, out: A | None = None, found: A | None = None) -> tuple[A, A]: ...

    def find(self, keys: Any, default: Any = 0, *, out: Any = None, found: Any = None) -> tuple[Any, Any]:
        """As `HashMap.find`.

        Parameters
        ----------
        keys
            Array of the plan's form.
        default
            As for `HashMap.find`.
        out, found
            Arrays of the same library, ``n`` rows of the values' type and bool[n], which are written to and returned.
            They share no memory with each other. If one shares memory with ``keys``, these are copied first. None for
            new ones.

        Returns
        -------
        values[n], found[n]
            ``out`` and ``found``, or new arrays; ``default`` for absent keys.

        Raises
        ------
        DeviceError, DtypeError, ParameterError, ShapeError
            If an array is of another form.
        CaptureError
            As `HashMap.find`, inside of a CUDA graph.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> plan = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu").plan(2)
        >>> values, found = plan.find(np.array([8, 9]), default=-1)
        >>> values.tolist(), found.tolist()
        ([2, -1], [True, False])
        """
        return self._look_up("find", keys, self._out, out, found, self._default(default))

    @overload
    def insert(self, keys: Keys, values: Any, *, added: Any = None, assume_unique: bool = False) -> Bools: ...

    @overload
    def insert(self, keys: A, values: A, *, added: A | None = None, assume_unique: bool = False) -> A: ...

    def insert(self, keys: Any, values: Any, *, added: Any = None, assume_unique: bool = False) -> Any:
        """As `HashMap.insert`; a present key keeps its value.

        Parameters
        ----------
        keys, values
            Arrays of the plan's form, a row of values for each key.
        added
            Array bool[n] of the same library, which is written to and returned. None for a new one. A given array that
            shares memory with it is copied first.
        assume_unique
            As for `HashMap.insert`.

        Returns
        -------
        bool[n]
            True where this element added its key.

        Raises
        ------
        DeviceError, DtypeError, ParameterError, ShapeError
            If an array is of another form. The table is as it was.
        TableFull, MemoryError
            As `HashMap.insert`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> plan = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu").plan(2)
        >>> plan.insert(np.array([8, 9]), np.array([20, 30])).tolist()
        [False, True]
        """
        return self._update("insert", keys, values, added, Op.KEEP, assume_unique)

    @overload
    def assign(self, keys: Keys, values: Any, *, added: Any = None) -> Bools: ...

    @overload
    def assign(self, keys: A, values: A, *, added: A | None = None) -> A: ...

    def assign(self, keys: Any, values: Any, *, added: Any = None) -> Any:
        """As `HashMap.assign`.

        Parameters
        ----------
        keys, values, added
            As of `insert`.

        Returns
        -------
        bool[n]
            True where the key is new.

        Raises
        ------
        DeviceError, DtypeError, ParameterError, ShapeError, TableFull, MemoryError
            As `insert`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> plan = warphash.HashMap.from_arrays(np.array([7, 8]), np.array([1, 2]), device="cpu").plan(2)
        >>> plan.assign(np.array([8, 9]), np.array([20, 30])).tolist()
        [False, True]
        """
        return self._update("assign", keys, values, added, Op.REPLACE, False)


def _answer(made: ArrayView, given: Any) -> Any:
    """What the caller gets: the array that was given, or the one that was made."""
    return made.library.export(made) if given is None else given


def _elsewhere() -> int:
    """In place of a stream, where every array has to be seen."""
    return ELSEWHERE
