"""The front of a table: the caller's arrays seen as addresses, and checked; and the library that results are of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.engine import ENGINE_MEMORY
from ..arrays.adapters.numpy import NUMPY
from ..arrays.batch import as_rows, library_of_rows
from ..arrays.cast import Fits, spread
from ..arrays.exact import item_at
from ..arrays.form import OF_THE_KEYS, Form, share_memory
from ..arrays.library import ArrayView, Library, shown
from ..arrays.row_names import Names, check_text
from ..arrays.row_type import Column, known_names
from ..arrays.string_column import StringColumn, has_columns_of_strings
from ..arrays.transfer import Body, Transfer
from ..arrays.view import library_like, view, view_array
from ..errors import DtypeError, ParameterError, ShapeError, TableFull
from ..runtime.engine import Engine
from ..runtime.memory import bytes_at
from . import captured
from .key_columns import CompositeColumn

__all__ = ["BOOL", "COUNT", "PRESENCE", "Front"]

BOOL, COUNT = np.dtype(np.bool_), np.dtype(np.uint32)

PRESENCE = Column(BOOL, ())
"""Whether each key is there."""


def _is_of_items(column: Column) -> bool:
    """Whether rows of a column have several items, which may have names."""
    if type(column) is Column:
        return bool(column.shape)
    return bool(column.numpy.shape) or column.is_of_columns


class Front:
    """What a table knows of the arrays that callers give and get.

    Parameters
    ----------
    engine
        Where the table lives.
    key, value, score
        The types of rows: ``value`` is None for a set, and ``score`` for a table that ranks its keys by no scores.

    Attributes
    ----------
    like
        Library and device of the first keys that a caller gave the table to keep; None before.
    check_names
        Raises `DtypeError` for names of rows that the file of the table cannot have; None for a table in no file.
    """

    __slots__ = ("check_names", "device", "engine", "has_rows", "key", "like", "score", "transfer", "value")

    def __init__(self, engine: Engine, key: Column, value: Column | None, score: Column | None) -> None:
        self.engine: Any = engine
        self.device: str = engine.device
        self.key, self.value, self.score = key, value, score
        self.has_rows = _is_of_items(key) or (value is not None and _is_of_items(value))
        self.transfer = Transfer(engine)
        self.like: tuple[Library, str] | None = None
        self.check_names: Callable[[Sequence[Names | None]], None] | None = None

    @property
    def stored(self) -> list[Column]:
        """The columns of keys, and of values if the table has values."""
        return [self.key] if self.value is None else [self.key, self.value]

    # ---- arrays seen
    def seen(self, seen: ArrayView, what: str) -> ArrayView:
        """An array that was viewed. Raises `DeviceError` if it is on another GPU than the table."""
        if seen.device != self.device:
            self.transfer.need_way(seen, what)
        return seen

    def sought(self, keys: Any) -> tuple[ArrayView, Fits]:
        """See the keys of a batch to be looked up or erased, and which of them the key type represents."""
        seen, fits = self.key.fitting(keys)
        return self.seen(seen, "keys"), fits

    def one_or_many(self, keys: Any) -> tuple[bool, ArrayView, Fits]:
        """Whether ``keys`` is one key and no batch; and as `sought`."""
        seen, fits = self.key.elements(keys)
        is_one = seen.shape == self.key.shape
        seen, fits = self.key.rows(seen, fits)
        return is_one, self.seen(seen, "keys"), fits

    def one_key(self, key: Any, mend: str = "ask contains(keys)") -> ArrayView | None:
        """See one key, as an array of any type or a value; None if the key type does not represent it exactly.

        ``mend`` is what a caller should do that has a batch.
        """
        seen = self.key.view_one(key, mend)
        return None if seen is None else self.seen(seen, "keys")

    def beside(self, keys: ArrayView, column: Column, rows: Any, what: str) -> ArrayView:
        """See an array with a row for each key, and check it. A single row is that of all keys."""
        seen = self.seen(column.view(rows, what), what)
        if seen.library is not keys.library or seen.shape[0] != keys.shape[0]:
            return self.one_for_each(keys, seen, column, rows, what)
        return seen

    def one_for_each(self, keys: ArrayView, seen: ArrayView, column: Column, rows: Any, what: str) -> ArrayView:
        """Rows of another library or number than the keys: one for each key, or a single row that is that of all."""
        if seen.batch == keys.batch:
            return seen
        if column.see(rows).shape == column.shape:
            made = view(np.broadcast_to(self.transfer.on_host(seen)[0], keys.shape[:1] + column.shape))
            return made._replace(capsule=seen)  # which keeps alive what rows of strings lead to
        if len(keys.batch) == len(seen.batch) == 1:
            raise ShapeError(f"keys and {what} must be of one length, got {keys.rows:,} keys and {seen.rows:,} {what}")
        raise ShapeError(
            f"keys and {what} must be of one shape, got keys of {keys.batch} and {what} of {seen.batch}: "
            "give one for each key, or a single one for all keys"
        )

    def scores(self, keys: ArrayView, scores: Any) -> ArrayView | None:
        """See the scores of a batch, if the table ranks its keys by scores."""
        if self.score is None:
            if scores is not None:
                raise ParameterError("scores= is for tables with evict='score': leave it out")
            return None
        if scores is None:
            raise ParameterError("the table ranks its keys by scores: give scores=, to insert, assign or upsert")
        return self.beside(keys, self.score, scores, "scores")

    def raise_missing(self, keys: ArrayView, found: ArrayView, fits: Fits = None, given: Any = None) -> None:
        """Raise `KeyError` unless all keys are there: naming the first that is not, and counting the others.

        Parameters
        ----------
        fits, given
            Which keys the key type represents; and what the caller gave, if there are others.
        """
        there = self.transfer.on_host(found)
        if not there.all():
            missing = np.flatnonzero(~there)
            first = self._shown(keys, fits, given, int(missing[0]))
            others = f", and {len(missing) - 1:,} more keys that are not there" if len(missing) > 1 else ""
            raise KeyError(f"{first}{others}")

    def _shown(self, keys: ArrayView, fits: Fits, given: Any, number: int) -> str:
        """One key of a batch, in a message."""
        if fits is None or fits[number]:
            return self.key.shown(self.transfer.on_host(keys)[number])
        if self.key.is_of_columns:
            return shown(given) if len(fits) == 1 else f"row {number} of the keys, {shown(given)}"
        row, array = self.key.shape, view_array(given)
        if array is not None:
            return str(self.transfer.on_host(array).reshape(-1, *row)[number])
        return str(item_at(given, number, math.prod(row), self.key.dtype))

    # ---- names of the items of rows
    def learned(self, pairs: Sequence[ArrayView]) -> list[ArrayView]:
        """Rows to keep, in the order of the table, which learns their names.

        Raises
        ------
        DtypeError
            If the table could not give the names back, or its file cannot have them: then it learns none. Or if it
            knows other ones.
        """
        columns = self.stored
        given = [column.names_given(rows) for column, rows in zip(columns, pairs, strict=False)]
        for column, names in zip(columns, given, strict=False):  # a mixed batch may have no values
            if names is not None and column.names.known is None:
                check_text(names)
        self._check_described(given)
        whats = zip(columns, pairs, ("keys", "values"), strict=False)
        return [column.learn(rows, what) for column, rows, what in whats]

    def learn_names(self, names: Sequence[Sequence[Any] | None] | None) -> None:
        """Know the names of the items of rows of another table (`copies.Copies.names`).

        Raises
        ------
        DtypeError
            If the table lies in a file that cannot have them. Then it knows none.
        """
        given = [None if known is None else tuple(known) for known in names or ()]
        self._check_described(given)
        self.know_names(given)

    def know_names(self, names: Sequence[Sequence[Any] | None]) -> None:
        """Know the names of the items of rows of keys, and of values, which the file of the table has already."""
        for column, known in zip(self.stored, names, strict=False):
            if known is not None:
                column.names.learn(tuple(known))

    def _check_described(self, given: Sequence[Names | None]) -> None:
        """Raise `DtypeError` if the table lies in a file that cannot have the names of rows to keep."""
        if self.check_names is None or not any(given):
            return
        names, columns = [*given, None, None], (self.key, self.value)
        columns_and_names = zip(columns, names, strict=False)
        behind = [None if column is None else column.names.after(new) for column, new in columns_and_names]
        if behind != known_names(columns):
            self.check_names(behind)

    def has_order_of(self, other: Front) -> bool:
        """Whether the items of rows come in one order in both tables, as far as they have names.

        Raises
        ------
        DtypeError
            If the names are others.
        """
        return all(order is None for order in self._orders(other))

    def has_keys_of(self, other: Front) -> bool:
        """Whether keys are of the same type, and the items of rows have the same names, as `has_names_of`."""
        return bool(self.key.spec == other.key.spec) and self.has_names_of(other)

    def has_names_of(self, other: Front) -> bool:
        """Whether the items of rows have the same names in both tables, in any order, or have none in one of them."""
        try:
            self._orders(other)
        except DtypeError:
            return False
        return True

    def ordered(self, other: Front, keys: Any, values: Any) -> tuple[Any, Any]:
        """Keys and values of another table, in host memory, with the items of rows in the order of this one.

        Raises
        ------
        DtypeError
            If the names are others, or the rows of keys may be null.
        """
        made = []
        for rows, order in zip((keys, values), self._orders(other), strict=True):
            if order is not None and rows is keys and isinstance(other.key, CompositeColumn):
                made.append(other.key.reordered(rows, order))
                continue
            if order is not None and not isinstance(rows, np.ndarray):
                raise DtypeError(
                    "rows with nulls among them go together only if their columns come in one order: make one of the "
                    "tables anew, from a frame with the columns of the other"
                )
            made.append(rows if order is None else np.ascontiguousarray(rows[:, order]))
        return made[0], made[1]

    def _orders(self, other: Front) -> list[list[int] | None]:
        """For keys and for values: which items of the other table's rows the items of this table's rows are."""
        orders: list[list[int] | None] = []
        for ours, theirs, what in ((self.key, other.key, "keys"), (self.value, other.value, "values")):
            given = None if ours is None or theirs is None else theirs.names.known
            orders.append(
                None if ours is None or given is None else ours.names.order(given, f"{what} of the other table")
            )
        return orders

    # ---- the library of results
    def note_kind(self, keys: ArrayView) -> None:
        """Remember what kind of array the first keys were that a caller gave the table to keep."""
        if self.like is None and keys.library is not ENGINE_MEMORY:
            self.like = library_of_rows(keys.library), keys.device

    def note_kind_of(self, other: Front) -> None:
        """As `note_kind`, if the first keys come from another table: their kind is the one that table has noted."""
        if self.like is None and other.like is not None and other.like[1] in ("cpu", self.device):
            self.like = other.like

    def kind_like(self, like: Any) -> tuple[Library, str]:
        """The library and the device of results: of an array or a name; by default, of the first keys."""
        own = self.device if self.device.startswith("cuda") else "cpu"
        if isinstance(self.key, StringColumn | CompositeColumn) and like is not None:
            return self.key.library_like(like), own
        if like is None:
            return self.like or (NUMPY, own)
        if isinstance(self.value, StringColumn) and has_columns_of_strings(like):
            return self.value.library_like(like), own
        if isinstance(like, str):
            return library_like(like), own
        seen = self.seen(view(like), "like")
        return library_of_rows(seen.library), seen.device

    def spread(
        self, seen: ArrayView, fits: Fits, answers: ArrayView, absent: bytes, out: ArrayView | None = None
    ) -> ArrayView:
        """The answers for all keys of a batch, of those for the ones that fit; ``absent`` is that of the others.

        They are written to ``out``, or to a new array.
        """
        if out is None:
            out = seen.library.empty(seen, seen.shape[:1] + answers.shape[1:], answers.dtype, self.engine)
        spread(out, fits, answers, absent)
        return out

    def on_host(self, made: ArrayView) -> npt.NDArray[Any]:
        """As `Transfer.on_host`."""
        return self.transfer.on_host(made)

    # ---- new arrays for results
    def rows_for(self, keys: ArrayView, column: Column, n: int | None = None) -> ArrayView:
        """A new array with a row of a column for each key, or with ``n`` rows.

        The array is of the keys' library. Rows that lead to strings are in memory of NumPy, and their strings are
        copied while the lock is held (`scans.owned`).
        """
        library = NUMPY if column.has_any_length and keys.library is not ENGINE_MEMORY else keys.library
        return library.empty(keys, (keys.rows if n is None else n, *column.shape), column.dtype, self.engine)

    # ---- arrays that the caller has for results
    def written(self, given: Any, keys: ArrayView, column: Column, what: str) -> ArrayView:
        """See an array of the caller's for a row of a column for each key: of the keys' library, on their device.

        Raises
        ------
        DeviceError, DtypeError, ParameterError, ShapeError
            If the array is another one, or cannot be written to as it is.
        """
        like = keys._replace(library=library_of_rows(keys.library))
        if column.has_any_length:
            raise DtypeError(
                f"{what}= takes rows of a fixed width, and rows of type {column.name} have none: leave {what}= out"
            )
        form = Form(like, keys.batch + column.shape, column.dtype, what, is_written=True, of=OF_THE_KEYS)
        seen = form.see_to_write(given)
        rows = seen if len(keys.batch) == 1 else as_rows(seen, column.shape)
        assert rows is not None
        return rows

    def apart_from(self, given: ArrayView, out: ArrayView | None, found: ArrayView | None) -> ArrayView:
        """An array that a call reads; or a copy of the array, if its memory is shared with ``out`` or ``found``.

        Raises
        ------
        ParameterError
            If the arrays for results share memory.
        """
        if out is not None and found is not None and share_memory(out, found):
            raise ParameterError(
                "out and found share memory, and each is written to: give arrays that share none, or leave found= out"
            )
        if not any(made is not None and share_memory(given, made) for made in (out, found)):
            return given
        nbytes = given.nbytes
        if given.device == "cpu":
            host = np.empty(given.shape, given.dtype)
            at = host.ctypes.data
            bytes_at(at, nbytes)[:] = bytes_at(given.ptr, nbytes)
            return given._replace(ptr=at, owner=host, host=host)
        memory = self.engine.allocate(nbytes, given.stream)
        self.engine.copy(memory.ptr, given.ptr, nbytes, given.stream)
        return given._replace(ptr=memory.ptr, owner=memory)

    # ---- work on the addresses of arrays
    def run(self, body: Body, ins: Sequence[ArrayView], outs: Sequence[ArrayView], stream: Any) -> None:
        """Run ``body`` on the addresses of arrays, or of copies that the engine can reach. The caller holds the lock.

        The work on ``stream`` comes behind the streams of all ``ins``.

        Raises
        ------
        CaptureError
            If a CUDA graph captures one of the streams.
        """
        if stream not in captured.NEVER:
            captured.refuse(self.engine, stream)
        device, here = self.device, True
        for seen in ins:
            here = here and seen.device == device
            if seen.stream is not None and seen.stream != stream:
                captured.refuse(self.engine, seen.stream)
                self.engine.wait(seen.stream)  # another library's; the engine's own streams follow each other
        for made in outs:
            here = here and made.device == device
        if here:
            at, _held = self.transfer.addresses(ins)
            body(ins[0].shape[0] if ins else 0, at, [made.ptr for made in outs])
        else:
            self.transfer.run(body, ins, outs, stream)

    def run_naming_keys(self, body: Body, ins: Sequence[ArrayView], outs: Sequence[ArrayView], stream: Any) -> None:
        """As `run`; a `TableFull` names keys of ``ins[0]`` instead of the numbers of their elements."""
        try:
            self.run(body, ins, outs, stream)
        except TableFull as error:
            raise self.naming_keys(error, ins[0]) from None

    def naming_keys(self, error: TableFull, keys: ArrayView) -> TableFull:
        """The error with keys of a batch instead of the numbers of their elements. The caller holds the lock.

        An error of the table itself, which is of no batch, is answered as it is.
        """
        if error.keys is None:
            return error
        return TableFull(str(error), self.key.named(self.transfer.on_host(keys)[error.keys]))
