"""CuPy arrays, in the order of CuPy's current stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy.typing as npt

from ...errors import DeviceError, DtypeError
from ..dlpack import LEGACY_STREAM
from ..library import (
    ELSEWHERE,
    MAX_ROWS,
    Allocator,
    ArrayView,
    Dtype,
    KnownArrays,
    Maker,
    Shape,
    alignment_of,
    array_view,
    device_index,
    refuse_rows,
)
from ..plain_array import refuse_attributes

__all__ = ["LIBRARY"]

_DEVICES = tuple(f"cuda:{index}" for index in range(64))
"""Names of GPUs: a lookup in place of formatting a string for every array."""


class CupyLibrary:
    """CuPy. ``place`` of a view is the array's ``cupy.cuda.Device`` if that was not the current one, else None."""

    kind = "cupy"

    def see(self, array: Any) -> ArrayView:
        """View an array."""
        cupy = sys.modules["cupy"]
        if not isinstance(array, cupy.ndarray):
            raise DtypeError(f"expected a dense cupy.ndarray, got {type(array).__name__}")
        if type(array) is not cupy.ndarray:
            refuse_attributes(array, "give array.view(cupy.ndarray)")
        shape, data, cuda = array.shape, array.data, cupy.cuda
        if shape and shape[0] > MAX_ROWS:
            refuse_rows(shape[0])
        index = data.device_id
        if cuda.runtime.getDevice() != index:
            place = array.device
            with place:
                return self.see(array)._replace(place=place)
        if not array.flags.c_contiguous:
            array = cupy.ascontiguousarray(array).reshape(shape)
            data = array.data
        stream = cuda.get_current_stream().ptr or LEGACY_STREAM
        return array_view((data.ptr, shape, array.dtype, _DEVICES[index], stream, array, None, self, None, None))

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """A new array of CuPy's own allocator."""
        if dtype.kind not in "biufc":
            raise DtypeError(f"CuPy has no type for {dtype}: pass NumPy arrays, or use another type")
        make = sys.modules["cupy"].ndarray
        if like.place is None:
            made = make(shape, dtype)
        else:
            with like.place:
                made = make(shape, dtype)
        return array_view((made.data.ptr, shape, dtype, like.device, like.stream, made, None, self, None, like.place))

    def export(self, made: ArrayView) -> Any:
        """The array itself."""
        return made.owner

    def cast(self, array: Any, dtype: Dtype) -> Any:
        """As `Library`."""
        return array.astype(dtype)

    def spread(self, out: Any, fits: Any, answers: Any, row: npt.NDArray[Any]) -> None:
        """As `Library`."""
        out[...] = sys.modules["cupy"].asarray(row)
        out[fits] = answers

    def is_captured(self) -> bool:
        """As `Library`."""
        return bool(sys.modules["cupy"].cuda.get_current_stream().is_capturing())

    def is_on_gpu(self, array: Any) -> bool:
        """True: CuPy has no others."""
        return True

    @contextmanager
    def on_stream(self, handle: int, index: int) -> Iterator[None]:
        """As `Library`."""
        cuda = sys.modules["cupy"].cuda
        is_default = handle in (0, LEGACY_STREAM)
        with cuda.Device(index), cuda.Stream.null if is_default else cuda.ExternalStream(handle, index):
            yield

    def addresses(self, like: ArrayView, shape: Shape, dtype: Dtype, is_written: bool) -> Callable[[Any], int | None]:
        """As `Library.addresses`."""
        kind, index = sys.modules["cupy"].ndarray, device_index(like.device)
        slack = alignment_of(shape, dtype) - 1 if is_written else 0

        def address(array: Any) -> int | None:
            if type(array) is kind and array.dtype == dtype and array.shape == shape and array.flags.c_contiguous:
                data = array.data
                at: int = data.ptr
                if data.device_id == index and not at & slack:
                    return at
            return None

        return address

    def current_stream(self, like: ArrayView) -> Callable[[], int | None]:
        """As `Library.current_stream`."""
        cuda, index = sys.modules["cupy"].cuda, device_index(like.device)
        current_device, current = cuda.runtime.getDevice, cuda.get_current_stream

        def handle() -> int:
            return current().ptr or LEGACY_STREAM if current_device() == index else ELSEWHERE

        return handle

    def known(self, like: ArrayView, dtype: Dtype) -> KnownArrays:
        """As `Library`."""
        rules = (
            (("dtype",), dtype),
            (("flags", "c_contiguous"), True),
            (("data", "device_id"), device_index(like.device)),
        )
        return KnownArrays(sys.modules["cupy"].ndarray, rules, ("data", "ptr"), self.current_stream(like))

    def maker(self, like: ArrayView, dtype: Dtype) -> Maker:
        """As `Library`."""
        return sys.modules["cupy"].ndarray, dtype

    def example(self, device: str) -> Any:
        """An empty array."""
        if device == "cpu":
            raise DeviceError("CuPy has no arrays on cpu: pass like='numpy'")
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device_index(device)):
            return cupy.ndarray((0,), "u1")


LIBRARY = CupyLibrary()
