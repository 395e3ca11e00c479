"""What maps and sets share: the verbs that take keys alone, and the one path of every lookup and update.

Contract. A table maps each of its keys to one value. Every verb takes a batch and is one bulk operation: it happens as
a whole, after those before it and before those after it, whatever thread or stream they came from; finds may run beside
each other. Inside a batch, elements with one key count as one insert, and which of them it is, the flags say. A batch
that does not fit leaves the table as it was. Keys are compared by their bits.

The walk of ``m.find(keys)``: this module checks and allocates, ``arrays/array_view.py`` sees the keys,
``storage/codec.py`` makes words of them, ``storage/buckets/store.py`` launches ``kernels/core/bulk.cuh``, which asks
``kernels/designs/*.cuh`` where to look.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..arrays import array_view as arrays
from ..arrays.exact import exactly
from ..errors import CorruptFile, DtypeError, ParameterError, ShapeError, TableFull, WarphashError
from ..runtime.abi import Op
from .core import TableCore
from .options import integer
from .pickling import as_bytes, rebuild

__all__ = ["BaseTable"]

_HOPELESS = 16
"""A table with this many times the room that its keys need is not too small, whatever is wrong."""


class BaseTable(TableCore):
    """What maps and sets share. See `HashMap` for the parameters."""

    # ---- verbs of maps and sets
    def contains(self, keys: Any) -> Any:
        """Which keys are there: bool[n]. Reads at most one bucket per hash function and key."""
        view = self._view_keys(keys)
        return self._reading(lambda: self._contains_locked(view)).export()

    def __contains__(self, key: Any) -> bool:
        """Whether one key is there. What the key type cannot represent exactly is not.

        Raises
        ------
        ShapeError
            For a batch of keys: `contains` answers for each.
        """
        view = self._view_one(key)
        return view is not None and bool(self._transfer.on_host(arrays.view(self.contains(view.owner)), view.stream)[0])

    def erase(self, keys: Any) -> Any:
        """Take keys out: bool[n], True where this element erased its key; one element of several with one key.

        The slots become tombstones, which inserts use again and rebuilds remove: a bucket that was once full keeps
        sending finds on, so lookups stay right and get no faster.
        """
        self._need("erase")
        return self._answered(keys, np.bool_, self._lock.writing, self._backing.erase)

    def probe_counts(self, keys: Any) -> Any:
        """How many buckets find reads for each key: uint32[n]."""
        return self._answered(keys, np.uint32, self._looking(), self._backing.counts)

    def guest_counts(self, keys: Any) -> Any:
        """How many words find reads for each key to learn which other buckets may hold it: uint32[n].

        Only of designs that keep such words (``dynamic_cuckoo``); none on a CPU, which reads the buckets instead.

        Raises
        ------
        UnsupportedVerb
            If the design keeps none.
        """
        self._need("guest_counts")
        counts = functools.partial(self._backing.counts, entry="guest_counts")
        return self._answered(keys, np.uint32, self._looking(), counts)

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
        wanted = integer("n", n, 0)
        with self._lock.writing:
            if wanted > self._backing.elastic.capacity:
                self._backing.rebuild(wanted, None)

    def shrink(self) -> None:
        """Rebuild into the memory that the present keys need, without tombstones."""
        with self._lock.writing:
            self._backing.rebuild(self._backing.elastic.size, None)

    def copy(self) -> Self:
        """Another table with the same keys and options, on the same device; what ``copy.copy`` gives.

        The attributes of a subclass are those of the table itself; ``copy.deepcopy`` copies these too.
        """
        return self._like_this(*self._snapshot())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        description, keys, values = self._snapshot()
        twin = self._rebuilt(description, self.device, keys, values)
        memo[id(self)] = twin  # an attribute may lead back to the table
        twin._take_state(deepcopy(self.__getstate__(), memo))
        return twin

    def __replace__(self, /, **changes: Any) -> Self:
        """Another table with the same keys and other options, also on another device; what ``copy.replace`` gives.

        A design that is given starts from its own parameters and load factor.
        """
        if fixed := changes.keys() & {"key", "value"}:
            raise ParameterError(
                f"a table with other options has the same keys and values, and {' and '.join(sorted(fixed))} would be "
                "another type: convert the arrays, and make a table with from_arrays"
            )
        description, keys, values = self._snapshot()
        if "design" in changes:
            description |= {"parameters": {}, "load_factor": None}
        if "capacity" in changes:
            changes["capacity"] = integer("capacity", changes["capacity"], 0)
        device = changes.pop("device", self.device)
        options = {name: changes.pop(name) for name in description.keys() - {"kind", "parameters"} if name in changes}
        description |= {**options, "parameters": {**description["parameters"], **changes}}
        twin = self._rebuilt(description, device, keys, values)
        twin._take_state(self.__getstate__())
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        description, *columns = self._snapshot()
        arrays = (None if column is None else as_bytes(column) for column in columns)
        return rebuild, (type(self), self.device, description, *arrays), self.__getstate__()

    def check(self) -> None:
        """Verify the table's invariants; O(slots).

        Raises
        ------
        WarphashError
            With the state, if one is broken.
        """
        with self._looking():
            keys, _ = self._items_locked()
            elastic = self._backing.elastic
            problems = []
            if broken := elastic.store.broken_buckets():
                problems.append(f"{broken:,} buckets break the rules of their layout")
            if len(keys) != elastic.size:
                problems.append(f"{len(keys):,} keys are stored, and {elastic.size:,} are counted")
            rows = np.ascontiguousarray(keys).view(f"V{self._key.nbytes}").ravel()
            if not self._multi and (distinct := len(np.unique(rows))) != len(keys):
                problems.append(f"{len(keys) - distinct:,} keys are stored twice")
            if len(keys) and not (found := self._contains_locked(self._view_keys(keys)).export()).all():
                problems.append(f"{int((~found).sum()):,} stored keys cannot be found")
            if problems:
                state = f"State: {self._stats_locked()}"
                raise WarphashError(f"{self._repr_locked()} is broken: {'; '.join(problems)}. {state}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file, which replaces an older one only when it is complete and on disk.

        The older file's mode and owner stay. Of a link, the file that it leads to is replaced.

        Raises
        ------
        PathError
            Before the table is read, if ``path`` is a folder or a device, or its folder is missing or takes no file.
        """
        from . import archive  # with what it imports, a quarter of our import time

        def content() -> tuple[dict[str, Any], npt.NDArray[Any], npt.NDArray[Any] | None]:
            with self._looking():
                return self._description(), *self._items_locked()

        archive.write(path, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str | None = None) -> Self:
        """Read a table that `save` wrote, on any device.

        Where the keys of a table that may not grow find no room in their new order, it gets more slots than it had.
        Where there is no memory for the capacity that a growing table had, it gets what its keys need.

        Raises
        ------
        CorruptFile
            If the file is truncated, altered, or not a saved table of this class.
        MemoryError
            If there is no room.
        """
        from . import archive

        description, keys, values = archive.read(path, cls._kind)
        try:
            table = cls._rebuilt(description, device, keys, values, unique=False)
        except (DtypeError, ParameterError, ShapeError, TableFull) as error:
            raise CorruptFile(f"{os.fspath(path)} describes no table that could be saved: {error}") from None
        if len(table) != len(keys):
            raise CorruptFile(f"{os.fspath(path)} repeats {len(keys) - len(table):,} of its {len(keys):,} keys")
        return table

    # ---- inside
    def _view_one(self, key: Any) -> arrays.ArrayView | None:
        """One key, as an array of any type or a value; None if the key type does not represent it exactly."""
        dtype, shape = self._key.dtype, self._key.shape
        try:
            view = arrays.view(key, dtype)
            if view.dtype != dtype:
                view = arrays.view(exactly(self._transfer.on_host(view, view.stream), dtype))
        except DtypeError:
            return None
        except ShapeError:
            if isinstance(key, list | tuple):  # ragged
                return None
            raise
        if len(view.shape) > len(shape) and not isinstance(key, tuple):
            raise ShapeError(
                f"expected one key, of shape {shape}, got an array of shape {view.shape}: ask contains(keys)"
            )
        return self._view_keys(view.owner) if view.shape == shape else None

    @classmethod
    def _rebuilt(
        cls,
        description: dict[str, Any],
        device: str | None,
        keys: npt.NDArray[Any],
        values: npt.NDArray[Any] | None,
        *,
        unique: bool = True,
    ) -> Self:
        """A table of a description, with pairs; of keys that repeat, one each.

        Larger than described if they do not fit. A table that raises when it is full can hold more keys than its
        capacity, if its hash constants and the order of its batches happened to allow that. Smaller if there is no
        memory for the capacity, and the table may grow.
        """
        capacity = max(1, description["capacity"])
        while True:
            try:
                table = cls._made(description, device, capacity)
                table._update(keys, values, Op.KEEP, unique=unique, answers=False)
            except MemoryError:
                if capacity <= max(1, len(keys)) or description["on_full"] != "grow":
                    raise
                capacity = max(1, len(keys))
            except TableFull:
                if capacity > _HOPELESS * len(keys):
                    raise
                capacity = max(len(keys), capacity + capacity // 8 + 1)
            else:
                return table

    def _snapshot(self) -> tuple[dict[str, Any], npt.NDArray[Any], npt.NDArray[Any] | None]:
        """What `_rebuilt` takes, of one moment."""
        with self._looking():
            return self._typed_description(), *self._items_locked()

    def _like_this(
        self,
        description: dict[str, Any],
        keys: npt.NDArray[Any],
        values: npt.NDArray[Any] | None,
        *,
        unique: bool = True,
    ) -> Self:
        """A table with other pairs, on the same device, with the attributes of a subclass."""
        made = self._rebuilt(description, self.device, keys, values, unique=unique)
        made._take_state(self.__getstate__())
        return made

    def _take_state(self, state: Any) -> None:
        if state is not None:
            self.__setstate__(state)

    def _view_keys(self, keys: Any) -> arrays.ArrayView:
        return self._transfer.here(self._key.view(keys, "keys"), "keys")

    def _answered(self, keys: Any, dtype: npt.DTypeLike, lock: Any, verb: Callable[[int, int, int, Any], Any]) -> Any:
        """What ``verb``, of a `Backing`, writes for each key while ``lock`` is held."""
        view = self._view_keys(keys)
        answers = arrays.empty_like_kind(view, view.shape[:1], dtype, self._engine)
        with lock:
            self._answer_locked(view, answers, verb)
        return answers.export()

    def _answer_locked(
        self, keys: arrays.ArrayView, answers: arrays.ArrayView, verb: Callable[[int, int, int, Any], Any]
    ) -> None:
        at, _keys = self._transfer.to_read(keys, keys.stream)
        out, held = self._transfer.to_write(answers, keys.stream)
        verb(at, keys.rows, out, keys.stream)
        self._transfer.deliver(held, answers, keys.stream)

    def _contains_locked(self, keys: arrays.ArrayView) -> arrays.ArrayView:
        found = arrays.empty_like_kind(keys, keys.shape[:1], np.bool_, self._engine)
        self._look_up_locked(keys, None, found, b"\0")
        return found

    def _look_up_locked(
        self, keys: arrays.ArrayView, values: arrays.ArrayView | None, found: arrays.ArrayView, default: bytes
    ) -> None:
        n, stream = keys.rows, keys.stream
        if keys.host is not None and n and self._staging is not None:
            self._look_up_in_pieces(keys, values, found, default)
            return
        at, _keys = self._transfer.to_read(keys, stream)
        flags, flags_held = self._transfer.to_write(found, stream)
        out, out_held = (0, None) if values is None else self._transfer.to_write(values, stream)
        self._backing.find(at, n, out, flags, default, stream)
        self._transfer.deliver(flags_held, found, stream)
        if values is not None:
            self._transfer.deliver(out_held, values, stream)

    def _look_up_in_pieces(
        self, keys: arrays.ArrayView, values: arrays.ArrayView | None, found: arrays.ArrayView, default: bytes
    ) -> None:
        """Copies of one piece of the batch run beside the lookup of another."""

        def body(n: int, ins: list[int], outs: list[int]) -> None:
            self._backing.find(ins[0], n, outs[0] if values is not None else 0, outs[-1], default, None)

        self._staging.pipeline([keys.host], [view.host for view in (values, found) if view is not None], body)

    def _view_pairs(self, keys: Any, values: Any) -> tuple[arrays.ArrayView, arrays.ArrayView | None]:
        key_view = self._view_keys(keys)
        if self._value is None:
            return key_view, None
        value_view = self._transfer.here(self._value.view(values, "values"), "values")
        if value_view.rows != key_view.rows:
            raise ShapeError(
                f"keys and values must be of one length, got {key_view.rows:,} keys and {value_view.rows:,} values"
            )
        return key_view, value_view

    def _update(self, keys: Any, values: Any, op: Op, *, unique: bool = False, answers: bool = True) -> Any:
        """Insert, assign or combine: bool[n], True where this element added its key; None without ``answers``."""
        pairs = self._view_pairs(keys, values)
        added = arrays.empty_like_kind(pairs[0], (pairs[0].rows,), np.bool_, self._engine) if answers else None
        with self._lock.writing:
            self._update_locked(*pairs, op, added, unique=unique)
        return added.export() if added else None

    def _update_locked(
        self,
        keys: arrays.ArrayView,
        values: arrays.ArrayView | None,
        op: Op,
        added: arrays.ArrayView | None,
        held: arrays.ArrayView | None = None,
        *,
        unique: bool = False,
    ) -> None:
        """Insert, assign or combine.

        Parameters
        ----------
        added
            Receives which elements added their keys.
        held
            Receives the value that each key has after the update.
        """
        n, stream, transfer = keys.rows, keys.stream, self._transfer
        if values is not None and values.stream not in (None, stream):
            self._engine.wait(values.stream)  # their own: the engine's streams follow each other
        at, _keys = transfer.to_read(keys, stream)
        values_at, _values = (0, None) if values is None else transfer.to_read(values, stream)
        flags, flags_held = transfer.to_write(added, stream) if added else (0, None)
        out, out_held = transfer.to_write(held, stream) if held else (0, None)
        try:
            self._backing.update(
                at, values_at, n, op=op, kind=self._value_kind, flags=flags, held=out, unique=unique, stream=stream
            )
        except TableFull as error:
            raise TableFull(str(error), transfer.on_host(keys, stream)[error.keys]) from None
        if added:
            transfer.deliver(flags_held, added, stream)
        if held:
            transfer.deliver(out_held, held, stream)

    def _items(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
        with self._looking():
            return self._items_locked()

    def _items_locked(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
        n, engine = self._backing.elastic.size, self._engine
        keys = engine.allocate(n * self._key.nbytes)
        values = engine.allocate(n * self._value.nbytes) if self._value else None
        found = self._backing.scan(n, keys.ptr, values.ptr if values else 0, None)
        if found != n:
            raise WarphashError(f"{self._repr_locked()} is broken: {found:,} keys are stored, and {n:,} are counted")
        raw_keys = engine.to_host(keys.ptr, np.uint8, n * self._key.nbytes)
        raw_values = engine.to_host(values.ptr, np.uint8, n * self._value.nbytes) if values and self._value else None
        as_keys = raw_keys.view(self._key.dtype).reshape(n, *self._key.shape)
        if raw_values is None or self._value is None:
            return as_keys, None
        return as_keys, raw_values.view(self._value.dtype).reshape(n, *self._value.shape)
