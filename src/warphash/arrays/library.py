"""What a table needs of an array library: to see its arrays, and to make results of its kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import ShapeError

__all__ = [
    "ELSEWHERE",
    "MAX_ROWS",
    "Allocator",
    "ArrayView",
    "Dtype",
    "KnownArrays",
    "Library",
    "Maker",
    "Shape",
    "alignment_of",
    "array_view",
    "device_index",
    "dtype_of",
    "refuse_rows",
    "shown",
]

MAX_ROWS = 1 << 31
"""Of an array: kernels number the elements of a batch in 32 bits."""

ELSEWHERE = -1
"""In place of a stream: the library's current device is another one."""

Shape = tuple[int, ...]
Dtype = np.dtype[Any]


class Allocator(Protocol):
    """The part of an engine that makes memory for a library which has no allocator to ask."""

    def allocate(self, nbytes: int, stream: Any = None) -> Any:
        """A buffer: an object with ``ptr``, freed with its last reference."""

    def wait(self, consumer: int) -> None:
        """Make a stream wait for all work so far."""


class ArrayView(NamedTuple):
    """One C-contiguous array, of any library. A named tuple, since a call makes one for each of its arrays.

    Attributes
    ----------
    ptr, shape, dtype
        Address, shape and element type.
    device
        ``"cpu"`` or ``"cuda:0"``.
    stream
        Handle of the CUDA stream in whose order the memory is ready; None on the CPU.
    owner
        The library's own array. It keeps the memory alive.
    host
        The memory as a NumPy array; None on a GPU.
    library
        The adapter of the library.
    capsule
        The DLPack capsule that keeps the memory alive, if the array came through DLPack.
    place
        What the adapter needs to make another array on the same device; None for most libraries.
    """

    ptr: int
    shape: Shape
    dtype: Dtype
    device: str
    stream: int | None
    owner: Any
    host: npt.NDArray[Any] | None
    library: Library
    capsule: Any = None
    place: Any = None

    @property
    def rows(self) -> int:
        """Extent of the first axis."""
        return self.shape[0]

    @property
    def batch(self) -> Shape:
        """Shape of the caller's batch, of which these are the rows: of one axis, unless the library knows another."""
        shape: Shape = getattr(self.library, "batch", self.shape[:1])
        return shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def kind(self) -> str:
        """Name of the library: ``Library.kind``."""
        return self.library.kind

    def export(self) -> Any:
        """The array as its library's own type: what a caller is given."""
        return self.library.export(self)


array_view: Callable[[tuple[Any, ...]], ArrayView] = partial(tuple.__new__, ArrayView)
"""A view of all of its fields, in order: what ``ArrayView(...)`` makes, in two thirds of the time."""


class KnownArrays(NamedTuple):
    """How compiled code knows arrays of one library, type and device (``src/extension/known_batch.hpp``).

    A way is the names of attributes, one after another, from an array on. A name that ends in ``"()"`` is that of a
    method, which is called.

    Attributes
    ----------
    kind
        The type of the array.
    rules
        Pairs of a way and of what has to be found there.
    address
        The way to the address.
    stream
        Answers the handle of the stream on which arrays are ready now, 0 for the legacy one; or `ELSEWHERE`.
    """

    kind: type
    rules: tuple[tuple[tuple[str, ...], Any], ...]
    address: tuple[str, ...]
    stream: Callable[[], int | None]


Maker = tuple[Callable[..., Any], *tuple[Any, ...]]
"""A function, and what it is called with behind a shape."""


class Library(Protocol):
    """The adapter of one array library.

    An adapter of arrays that can be written to may also have two functions for calls that are repeated (`form.Form`).
    ``addresses(like, shape, dtype, is_written)`` makes a function that answers the address of an array which is
    contiguous, of this shape and type, on the device of ``like`` and, if ``is_written``, writable and aligned
    (`alignment_of`); and None for any other object. ``current_stream(like)`` makes a function that answers on which
    stream arrays are ready now, as ``ArrayView.stream``; or `ELSEWHERE`.

    An adapter of arrays on a GPU may also have two functions for compiled code. ``known(like, dtype)`` answers the
    `KnownArrays` of a type on the device of ``like``. ``maker(like, dtype)`` answers a function and arguments: called
    with a shape ``(n,)`` and these, the function makes a new array on that device. The caller sees to it that this
    device is the current one.

    An adapter of arrays on a GPU that can be converted there (`cast`) has three more functions, for the library's own
    arrays. ``cast(array, dtype)`` makes a copy in another type. ``spread(out, fits, answers, row)`` writes answers to
    the places where ``fits``, and a row of NumPy's to the others. ``is_captured()`` answers whether a CUDA graph
    captures the work of the library.

    An adapter of a library that keeps what a call has read, for a derivative, has ``note_write(array)``: a call writes
    to the array.

    An adapter of a library that has a current stream may also have ``is_on_gpu(array)``, and ``on_stream(handle,
    index)``, a context in which that stream of a GPU is the current one.

    Attributes
    ----------
    kind
        ``"numpy"``, ``"torch"``, ``"cupy"``, ``"jax"``, ``"numba"``, ``"array_api"``, ``"interface"`` or ``"engine"``.
    """

    @property
    def kind(self) -> str:
        """Name of the library."""

    def see(self, array: Any) -> ArrayView:
        """View an array of the library. The array is copied if it is not C-contiguous or of foreign byte order.

        Raises
        ------
        DtypeError, DeviceError, ShapeError
            As `view.view`.
        """

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """A new array on the device and the stream of ``like``, to be filled and then given out by `export`.

        Parameters
        ----------
        like
            An array of this library.
        allocator
            The engine; libraries with an allocator of their own take no memory from it.

        Raises
        ------
        DtypeError
            If the library has no such element type.
        """

    def export(self, made: ArrayView) -> Any:
        """What a caller is given of an array that `empty` made, once the work that fills the array is launched."""

    def example(self, device: str) -> Any:
        """An array of the library on ``"cpu"`` or ``"cuda:N"``, of which only place and kind count.

        Raises
        ------
        DeviceError
            If the library has no arrays there.
        """


def alignment_of(shape: Shape, dtype: Dtype) -> int:
    """The power of two that the address of an array has to be a multiple of, where kernels write rows as words."""
    nbytes = dtype.itemsize * math.prod(shape[1:])
    return min(nbytes & -nbytes, 8)


def dtype_of(array: Any) -> Any:
    """The ``dtype`` of an object; None if it has none, or its library fails to tell, as of a file that is closed."""
    try:
        return getattr(array, "dtype", None)
    except Exception:  # of any type: each library has its own
        return None


def shown(item: Any) -> str:
    """An item in a message: its ``repr``, cut where it is long, or its type if its library fails to tell."""
    try:
        return f"{item!r:.60}"
    except Exception:  # of any type: each library has its own
        return f"a {type(item).__name__}"


def device_index(device: str) -> int:
    """Which GPU ``"cuda:1"`` is."""
    return int(device.partition(":")[2])


def refuse_rows(rows: int) -> NoReturn:
    """Raise `ShapeError` for more than `MAX_ROWS` rows."""
    raise ShapeError(f"a batch has at most 2**31 rows, got {rows:,}: give it in parts")
