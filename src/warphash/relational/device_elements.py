"""Arrays of PyTorch and CuPy on a GPU: numbered there, with kernels and with operations of their own library.

The host learns sizes alone. Positions, codes and counts are arrays of the same library, on the same GPU.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.batch import library_of_rows
from ..arrays.cast import cast
from ..arrays.library import ArrayView, Shape
from ..errors import DeviceError, DtypeError
from ..runtime.abi import ROWS_AT_ONCE
from ..runtime.abi import RowLists as ListsOnGpu
from ..runtime.devices import engine_for
from ..runtime.engine import Buffer
from ..storage.groups.device_places import DevicePlaces
from ..storage.groups.device_records import accumulate_on_gpu
from ..storage.groups.numbering import number
from ..storage.groups.records import Record
from ..storage.groups.words import LONGEST_WORD
from ..storage.joins.device_hits import DeviceHits
from ..storage.joins.device_pairs import DevicePairs
from .axes import checked_axis
from .items import Items, Missing
from .numbered import FIRSTS, Asked, Numbers
from .pairs import Pairs, RowLists

__all__ = ["DeviceElements", "number_device_rows", "on_device"]

_INT32, _INT64, _FLOAT64, _BOOL = map(np.dtype, (np.int32, np.int64, np.float64, np.bool_))

_WORDS = {"b": "uint", "f": "int"}
"""Integers of the same width, by the kind of type."""

_NAN_BITS = 0x7FF8 << 48
"""A NaN of float64. Each of the next 2^51 - 1 patterns of bits is one, too."""


class DeviceElements:
    """An array on a GPU.

    Parameters
    ----------
    seen
        The array.
    axis
        As of `ArrayElements`.

    Raises
    ------
    DeviceError
        For an array of another library.
    DtypeError
        For complex numbers.
    ParameterError
        If the array has no such axis.
    """

    def __init__(self, seen: ArrayView, axis: int | None = None) -> None:
        if seen.library.kind not in ("torch", "cupy"):
            raise DeviceError(
                f"expected an array of PyTorch or CuPy, or one in host memory, got one of kind {seen.kind!r} on "
                f"{seen.device}: give torch.from_dlpack(x)"
            )
        if seen.dtype.kind not in "biuf":
            raise DtypeError(
                f"expected numbers or truth values on {seen.device}, got {seen.dtype}: copy the array to the host"
            )
        self._seen = seen
        self._library: Any = library_of_rows(seen.library)
        self.xp: Any = sys.modules[seen.library.kind]
        self._axis = checked_axis(axis, len(seen.shape))
        owner = seen.owner.detach() if seen.library.kind == "torch" else seen.owner
        self.array = owner.reshape(-1) if self._axis is None else self._contiguous(self._moved(owner, self._axis, 0))

    # ---- what the libraries name in two ways
    def _moved(self, array: Any, source: int, target: int) -> Any:
        move = self.xp.movedim if hasattr(self.xp, "movedim") else self.xp.moveaxis
        return move(array, source, target)

    def _contiguous(self, array: Any) -> Any:
        return array.contiguous() if hasattr(array, "contiguous") else self.xp.ascontiguousarray(array)

    def ranks(self, n: int) -> Any:
        """As `Elements.ranks`."""
        if self._library.kind == "torch":
            return self.xp.arange(n, device=self.array.device)
        return self.xp.arange(n, dtype=_INT64)

    def in_type(self, numbers: Any, dtype: np.dtype[Any]) -> Any:
        """As `Elements.in_type`."""
        return numbers if self._library.see(numbers).dtype == dtype else self._library.cast(numbers, dtype)

    def argsort(self, numbers: Any) -> Any:
        """As `Elements.argsort`."""
        if self._library.kind == "torch":
            return numbers.argsort(stable=True)
        return self.xp.argsort(numbers, kind="stable")

    # ---- as of all elements
    @property
    def dtype(self) -> np.dtype[Any]:
        """Of an item."""
        return self._seen.dtype

    @property
    def device(self) -> str:
        """Where they are, as ``"cuda:0"``."""
        return self._seen.device

    def __len__(self) -> int:
        return int(self.array.shape[0])

    @property
    def shape(self) -> Shape:
        """As `Elements.shape`."""
        return self._seen.shape

    @property
    def items(self) -> Items:
        """Raises `DeviceError`: items are compared in host memory."""
        raise DeviceError(
            f"expected an array in host memory, got one on {self.device}: copy it to the host, or give all arrays on "
            "that device"
        )

    def number(self, asked: Asked = FIRSTS) -> Numbers:
        """As `Elements.number`."""
        dtype = asked.dtype
        array = self.with_one_pattern("apart" if asked.nan == "apart" else "one")
        seen, n = self._library.see(array), len(self)
        code = self._empty(n, dtype) if asked.codes else None
        if not n:
            return Numbers(self._empty(0, dtype).owner, code and code.owner, self._empty(0, dtype).owner)
        width = seen.nbytes // n
        if not width:  # rows without items
            seen, width = self._library.see(self._library.cast(self.ranks(n) * 0, _BOOL)), 1
        engine, stream = engine_for(seen.device), seen.stream
        at = 0 if code is None else code.ptr
        made = number(
            engine,
            seen.ptr,
            width,
            n,
            numbers=at,
            number_bytes=dtype.itemsize,
            counts=asked.counts,
            stream=stream,
        )
        numbers = Numbers(
            self._copied(made.firsts, made.size, dtype),
            None if code is None else code.owner,
            None if made.counts is None else self._copied(made.counts, made.size, dtype),
        )
        engine.synchronize(stream)  # the engine's memory must live until it was copied
        return self._without_nan(numbers) if asked.nan == "dropped" and seen.dtype.kind == "f" else numbers

    def _empty(self, n: int, dtype: np.dtype[Any]) -> ArrayView:
        made: ArrayView = self._library.empty(self._seen, (n,), dtype, None)
        return made

    def _copied(self, buffer: Buffer, size: int, dtype: np.dtype[Any]) -> Any:
        """Numbers below 2^31 of the engine's as an array of the library, of int32 or int64."""
        made, stream = self._empty(size, _INT32), self._seen.stream
        engine_for(self._seen.device).copy(made.ptr, buffer.ptr, 4 * size, stream)
        return made.owner if dtype == _INT32 else self._library.cast(made.owner, dtype)

    def with_one_pattern(self, nan: Missing = "one") -> Any:
        """The elements with one pattern of bits for each number, and for all NaN or (``"apart"``) for each of them."""
        array = self.array
        if self._seen.dtype.kind != "f":
            return array
        if nan == "apart":
            bits = self._library.cast(array, _FLOAT64) + 0.0
            missing = self.xp.isnan(bits)
            bits = bits.view(self.xp.int64)
            patterns = (self.ranks(self._seen.size) + _NAN_BITS).reshape(self.array.shape)
            bits[missing] = patterns[missing]
            return bits
        made = array + 0
        made[self.xp.isnan(made)] = float("nan")
        return made

    def is_nan(self, positions: Any) -> Any:
        """As `Elements.is_nan`; also rows with such an item."""
        if self.dtype.kind != "f":
            return positions < 0
        missing = self.xp.isnan(self.array[positions])
        return missing if self._axis is None else missing.reshape(len(missing), -1).any(1)

    def _without_nan(self, numbers: Numbers) -> Numbers:
        """The numbers of the other elements, if there is NaN."""
        return _some(numbers, ~self.is_nan(numbers.firsts))

    def words(self) -> Any:
        """Integers that are equal exactly if the elements are."""
        array, dtype = self.with_one_pattern(), self._seen.dtype
        if dtype.kind in "iu":
            return array
        return array.view(getattr(self.xp, f"{_WORDS[dtype.kind]}{8 * dtype.itemsize}"))

    def word_places(self, *, if_unique: bool) -> DevicePlaces | None:
        """What others are looked up in, if the elements are words; None if they are not.

        Parameters
        ----------
        if_unique
            None also if elements repeat.
        """
        seen, n = self._library.see(self.words()), len(self)
        width = seen.dtype.itemsize * math.prod(seen.shape[1:])
        if not 0 < width <= LONGEST_WORD:
            return None
        made = DevicePlaces(engine_for(self.device), seen.ptr, width, n, seen.stream, if_unique=if_unique)
        return made if made.is_unique or not if_unique else None

    def places_in(self, places: DevicePlaces, dtype: np.dtype[Any]) -> Any:
        """The place of each element among others of the same type, or -1: int32 or int64."""
        seen, made = self._library.see(self.words()), self._empty(len(self), dtype)
        places.find(seen.ptr, len(self), made.ptr, dtype.itemsize, seen.stream)
        del seen  # not before the launch
        return made.owner

    def stacked(self, columns: Sequence[DeviceElements], nan: Missing) -> DeviceElements:
        """Rows of integers that are equal exactly if those of some columns on this GPU are."""
        is_narrow = all(column.dtype.itemsize <= 4 and nan != "apart" for column in columns)
        dtype = _INT32 if is_narrow else _INT64
        rows = self.xp.stack([column._integers(dtype, nan) for column in columns], 1)
        return DeviceElements(self._library.see(self._contiguous(rows)), 0)

    def _integers(self, dtype: np.dtype[Any], nan: Missing) -> Any:
        """Integers of a type, equal exactly if the elements are. ``"apart"``: NaN is unequal to NaN."""
        is_apart = nan == "apart" and self._seen.dtype.kind == "f"
        made = self.with_one_pattern("apart") if is_apart else self.words()
        if is_apart or self._seen.dtype.itemsize == dtype.itemsize:
            return made.view(getattr(self.xp, dtype.name))
        return self._library.cast(made, dtype)

    def as_type(self, dtype: np.dtype[Any]) -> tuple[DeviceElements, Any]:
        """The elements in another type by their values, True as 1; and which of them it has, or None if it has all."""
        if dtype == self.dtype:
            return self, None
        array = self.array
        if dtype.kind == "b":
            return self.like(self._library.cast(array, dtype)), (array == 0) | (array == 1)
        if self.dtype.kind == "b":
            return self.like(self._library.cast(array, dtype)), None
        made = cast(self._library.see(array), dtype)
        assert made is not None  # both libraries convert arrays
        return self.like(made[0].owner), made[1]

    def like(self, array: Any) -> DeviceElements:
        """The items of another array of the same library."""
        return DeviceElements(self._library.see(array))

    def sent(self, items: npt.NDArray[Any]) -> DeviceElements:
        """Items in host memory, of the type of these elements, as elements in this library, on this GPU."""
        items = items.view(self.dtype)  # NumPy has two types for one width, of which PyTorch knows one
        if self._library.kind == "torch":
            return self.like(self.xp.as_tensor(items, device=self.array.device))
        return self.like(self.xp.asarray(items))

    def joined(self, other: object) -> DeviceElements:
        """The items of two arrays, in a type that the library finds for both."""
        return self.like(self.xp.concatenate((self.array, self.beside(other).array)))

    def beside(self, other: object) -> DeviceElements:
        """Other elements, of the same library and on the same GPU. Raises `DeviceError` for those that are not."""
        beside = on_device(other, self.device)
        if beside.xp is not self.xp:
            kinds = " and ".join(elements._library.kind for elements in (self, beside))
            raise DeviceError(
                f"expected arrays of one library, got some of {kinds}: convert one of them, as by torch.from_dlpack(x)"
            )
        return beside

    def wait(self) -> None:
        """Wait for all that was launched on the stream of these elements: other streams may then read it."""
        engine_for(self.device).synchronize(self._seen.stream)

    def places_of(self, flags: Any) -> Any:
        """As `Elements.places_of`."""
        return self._hits(self._contiguous(flags), "flags", _INT64).left

    def _hits(self, words: Any, of: str, dtype: np.dtype[Any]) -> Pairs:
        """The places of `DeviceHits`, and their codes."""
        seen, engine, stream = self._library.see(words), engine_for(self.device), self._seen.stream
        hits = DeviceHits(engine, seen.ptr, of, len(words), stream)
        places, codes = self._empty(hits.total, dtype), self._empty(hits.total if of == "codes" else 0, dtype)
        hits.write(places.ptr, codes.ptr, dtype.itemsize)
        del seen, hits  # not before the launches
        return Pairs(places.owner, codes.owner)

    def firsts_of(self, codes: Any, size: int) -> Any:
        """As `Elements.firsts_of`. No two writes go to one place, for a GPU has no order of writes."""
        made = self.ranks(size) * 0 - 1
        at = self.like(codes).number().firsts
        made[codes[at]] = at
        return made

    def row_lists(self, numbers: Numbers) -> RowLists:
        """As `Elements.row_lists`: `abi.RowLists` says what is behind the offsets and the rows."""
        ends, rows = numbers.count_of_each.cumsum(0), self.argsort(numbers.code_of_each)
        offsets = self.xp.concatenate((self.ranks(1), ends, ends[-1:]))
        behind = self.ranks(ROWS_AT_ONCE) * 0 - 1
        rows = self.xp.concatenate((rows, behind))
        return RowLists(self.in_type(offsets, _INT32), self.in_type(rows, _INT32))

    def pairs(self, codes: Any, lists: RowLists | None, dtype: np.dtype[Any], *, keeps_all: bool) -> Pairs:
        """As `Elements.pairs`."""
        if lists is None and keeps_all:
            return Pairs(self.in_type(self.ranks(len(codes)), dtype), self.in_type(codes, dtype))
        codes = self.in_type(codes, _INT32)
        if lists is None:
            return self._hits(codes, "codes", dtype)
        seen, offsets, rows = (self._library.see(array) for array in (codes, lists.offsets, lists.rows))
        held = ListsOnGpu(offsets=offsets.ptr, size=len(lists.offsets) - 2, rows=rows.ptr, row_bytes=_INT32.itemsize)
        engine, stream = engine_for(self.device), self._seen.stream
        made = DevicePairs(engine, held, seen.ptr, len(codes), keeps_all=keeps_all, stream=stream)
        left, right = self._empty(made.total, dtype), self._empty(made.total, dtype)
        made.write(left.ptr, right.ptr, dtype.itemsize)
        del seen, offsets, rows  # not before the launches
        return Pairs(left.owner, right.owner)

    def accumulated(
        self, codes: Any, groups: int, record: Record, dtypes: Sequence[np.dtype[Any]], centers: Any = None
    ) -> list[Any]:
        """Words that groups keep of values on this GPU, by the code of each value, of at least one.

        Parameters
        ----------
        groups
            How many there are.
        record, dtypes
            The words, and the types of the arrays to answer.
        centers
            Of `Accumulation.SQUARES` and `DISTANCES`: what is subtracted of the values of each group, float64.
        """
        numbers = self._library.see(codes)
        middles = None if centers is None else self._library.see(centers)
        if middles is not None:
            record = record.centered(middles.ptr)
        made = [self._empty(groups, dtype) for dtype in dtypes]
        shape, outs = (numbers.size, groups), [out.ptr for out in made]
        if groups:
            accumulate_on_gpu(
                engine_for(self.device), numbers.ptr, numbers.dtype.itemsize, shape, record, outs, self._seen.stream
            )
        del numbers, middles  # not before the launches
        return [out.owner for out in made]

    def owners(self, offsets: Any, total: int) -> Any:
        """As `Elements.owners`."""
        return self.xp.searchsorted(offsets[1:], self.ranks(total), side="right")

    def seen(self, codes: Any, size: int) -> Any:
        """As `Elements.seen`."""
        found = self.ranks(size + 1) < 0
        found[codes] = True  # that of -1 is the last one
        return found[:-1]

    def lasts(self, numbers: Numbers) -> Any:
        """As `Elements.lasts`. The positions of each element lie together in the order of the codes."""
        return self.argsort(numbers.code_of_each)[numbers.count_of_each.cumsum(0) - 1]

    def taken(self, positions: Any) -> Any:
        """As `Elements.taken`."""
        values = self.array[positions]
        return values if self._axis is None else self._moved(values, 0, self._axis)

    def order(self, values: Any) -> Any:
        """As `Elements.order`."""
        values = self._sortable(values)
        if self._axis is None:
            return self.argsort(values)
        rows = self._moved(values, self._axis, 0)
        order = self.ranks(len(rows))
        rows = rows.reshape(len(rows), -1) if len(rows) else rows
        for item in reversed(range(rows.shape[1] if len(rows) else 0)):
            order = order[self.argsort(rows[:, item][order])]
        return order

    def _sortable(self, values: Any) -> Any:
        """Values of a type that the library sorts, in the same order: PyTorch sorts few unsigned integers."""
        dtype = self._seen.dtype
        if self._library.kind != "torch" or dtype.kind != "u" or dtype.itemsize == 1:
            return values
        if dtype.itemsize == 8:
            return self._contiguous(values).view(self.xp.int64) ^ -(2**63)
        return self._library.cast(values, _INT64)

    def flags(self) -> Any:
        """As `Elements.flags`."""
        return self._library.cast(self.ranks(len(self)) >= 0, _BOOL)

    def shares(self, counts: Any) -> Any:
        """As `Elements.shares`."""
        return self._library.cast(counts, _FLOAT64) / max(1, int(counts.sum()))

    def for_each(self, answers: Any) -> Any:
        """As `Elements.for_each`."""
        return answers if self._axis is not None else answers.reshape(self._seen.shape)

    def apart(self, answers: Any) -> Any:
        """As `Elements.apart`."""
        return answers

    def apart_with_nulls(self, answers: Any, valid: Any) -> Any:
        """As `Elements.apart_with_nulls`. Raises `DtypeError` unless the answers are floating-point numbers."""
        dtype = self.see(answers).dtype
        if dtype.kind != "f":
            raise DtypeError(
                f"some answers are missing, and arrays of {dtype} have no nulls on {self.device}: give floating-point "
                "numbers, or ask for how='inner'"
            )
        made = answers + 0
        made[~valid] = float("nan")
        return made

    def see(self, array: Any) -> ArrayView:
        """An array of this library, with its address."""
        seen: ArrayView = self._library.see(array)
        return seen


def on_device(elements: object, device: str) -> DeviceElements:
    """Elements that are on a GPU. Raises `DeviceError` for elements that are elsewhere."""
    if not isinstance(elements, DeviceElements) or elements.device != device:
        place = elements.device if isinstance(elements, DeviceElements) else "the host"
        raise DeviceError(f"expected arrays on one device, got one on {device} and one on {place}: copy one of them")
    return elements


def number_device_rows(columns: Sequence[DeviceElements], asked: Asked) -> Numbers:
    """Number the distinct rows of columns on one GPU: as `numbered.number_tuples`, and there are no nulls."""
    numbers = columns[0].stacked(columns, asked.nan).number(asked._replace(nan="one"))
    if asked.nan != "dropped":
        return numbers
    kept = columns[0].flags()[numbers.firsts]
    for column in columns:
        if column.dtype.kind == "f":
            kept &= ~column.is_nan(numbers.firsts)
    return _some(numbers, kept)


def _some(numbers: Numbers, kept: Any) -> Numbers:
    """The numbers of some of the distinct elements; those of the others are -1."""
    firsts, codes, counts = numbers
    if codes is not None:
        rank = kept.cumsum(0, dtype=firsts.dtype) - 1
        rank[~kept] = -1
        codes = rank[codes]
    return Numbers(firsts[kept], codes, None if counts is None else counts[kept])
