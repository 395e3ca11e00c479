"""Arrays that are known by a protocol alone: ``__cuda_array_interface__`` (Numba's, too), DLPack, or ``__array__``.

These libraries have no current stream to ask for: GPU arrays are made ready on CUDA's default stream, or on the stream
that they name. Results on a GPU are memory of the engine, which any library takes over without a copy.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import DeviceError, DtypeError, ShapeError
from ..dlpack import (
    CPU_DEVICES,
    CUDA_DEVICES,
    LEGACY_STREAM,
    DeviceArray,
    ask_capsule,
    ask_device,
    ask_host_array,
    read_capsule,
)
from ..gpu_memory import gpu_of
from ..library import MAX_ROWS, Allocator, ArrayView, Dtype, Library, Shape, device_index, refuse_rows
from ..plain_array import WITHOUT_UNIT, gives_array, numpy_of, refuse_unit
from .numpy import NUMPY, address_of
from .read_column import read_column, see_items

__all__ = ["INTERFACE", "NUMBA", "empty_on_gpu", "see_dlpack", "see_foreign"]


class InterfaceLibrary:
    """Any library that speaks ``__cuda_array_interface__`` or DLPack. Results are `DeviceArray`."""

    kind = "interface"

    def see(self, array: Any) -> ArrayView:
        """View an array by ``__cuda_array_interface__``, else by DLPack."""
        if hasattr(array, "__cuda_array_interface__"):
            return see_interface(array, self)
        return see_dlpack(array, self)

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """Memory of the engine."""
        return empty_on_gpu(like, shape, dtype, allocator)

    def export(self, made: ArrayView) -> Any:
        """The `DeviceArray`."""
        return made.owner

    def example(self, device: str) -> Any:
        """An array without elements."""
        if device == "cpu":
            raise DeviceError(f"arrays of kind {self.kind!r} are on a GPU, and the table is on cpu: pass like='numpy'")
        return DeviceArray(None, 0, (0,), np.dtype(np.uint8), device_index(device), lambda stream: None)


class NumbaLibrary(InterfaceLibrary):
    """Numba. An array in host memory is one of NumPy's, so only GPU arrays come here."""

    kind = "numba"

    def export(self, made: ArrayView) -> Any:
        """A device array of Numba's."""
        return sys.modules["numba.cuda"].as_cuda_array(made.owner)


class ArrayApiLibrary:
    """A library of the Python array API standard that is not known by name.

    Parameters
    ----------
    namespace
        What ``__array_namespace__()`` answers.
    """

    kind = "array_api"

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    def see(self, array: Any) -> ArrayView:
        """View an array by DLPack."""
        return see_dlpack(array, self)

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """An array that the library takes over by DLPack."""
        if like.host is None:
            made = empty_on_gpu(like, shape, dtype, allocator)
            return made._replace(owner=self._namespace.from_dlpack(made.owner))
        host = np.empty(shape, dtype)
        owner = self._namespace.from_dlpack(host)
        return ArrayView(address_of(host), shape, dtype, "cpu", None, owner, host, self)

    def export(self, made: ArrayView) -> Any:
        """The library's array."""
        return made.owner

    def example(self, device: str) -> Any:
        """An empty array where the library makes arrays by default."""
        array = self._namespace.empty(0)
        if self.see(array).device != device:
            raise DeviceError(f"{self._namespace.__name__} makes no arrays on {device} by default: pass one, as like=")
        return array


INTERFACE = InterfaceLibrary()
NUMBA = NumbaLibrary()


def see_foreign(array: Any, dtype: Dtype | None = None) -> ArrayView | None:
    """View an array of a library that no adapter is for; None for what is no array.

    Parameters
    ----------
    dtype
        Type of the items, of which a frame is records if that is a structured type.

    Raises
    ------
    DtypeError, DeviceError, ShapeError
        As `view.view`.
    """
    kind = type(array)
    if not hasattr(kind, "__cuda_array_interface__") and (items := read_column(array, dtype)) is not None:
        if items.valid is not None:
            nulls = int((~items.valid).sum())
            raise DtypeError(f"expected values, got {nulls:,} nulls among them: drop or fill the nulls first")
        return see_items(array, items)
    if isinstance(shape := getattr(array, "shape", None), tuple) and shape and shape[0] > MAX_ROWS:
        refuse_rows(shape[0])
    if hasattr(array, "__cuda_array_interface__"):
        return INTERFACE.see(array)
    if hasattr(array, "__dlpack__"):
        if hasattr(array, "__array_namespace__"):
            return ArrayApiLibrary(array.__array_namespace__()).see(array)
        return INTERFACE.see(array)
    return _see_array(array) if gives_array(kind) else None


def see_interface(array: Any, library: Library) -> ArrayView:
    """View an array on a GPU by ``__cuda_array_interface__``."""
    refuse_unit(array, WITHOUT_UNIT)
    interface = array.__cuda_array_interface__
    dtype, shape = _interface_type(interface), tuple(int(extent) for extent in interface["shape"])
    if interface.get("mask") is not None:
        raise ShapeError("expected an array without a mask; drop or fill the masked elements first")
    strides = interface.get("strides")
    if strides is not None and 0 not in shape and tuple(strides) != _contiguous_strides(shape, dtype.itemsize, strides):
        raise ShapeError(f"expected a C-contiguous array, got shape {shape} with strides {strides}; copy it first")
    address = interface["data"][0] or 0
    device = ask_device(array)[1] if hasattr(array, "__dlpack_device__") else gpu_of(address)
    stream = int(interface.get("stream") or LEGACY_STREAM)
    return ArrayView(address, shape, dtype, f"cuda:{device}", stream, array, None, library)


def _interface_type(interface: Mapping[str, Any]) -> Dtype:
    """Type of an item; of records, with the fields that ``descr`` tells."""
    dtype: Dtype = np.dtype(interface["typestr"])
    descr = interface.get("descr")
    if dtype.kind == "V" and descr and len(descr[0]) > 1 and descr[0][0]:
        dtype = np.dtype(descr)
    if not dtype.isnative:
        raise DtypeError(f"expected an array of native byte order, got {dtype.str}: convert it first")
    return dtype


def see_dlpack(array: Any, library: Library) -> ArrayView:
    """View an array by DLPack. In host memory, an array of no standard becomes one of NumPy's.

    So does an array of a type that DLPack does not know, such as a date, if its library makes NumPy arrays of it.
    """
    refuse_unit(array, WITHOUT_UNIT)
    try:
        device_type, index = ask_device(array)
    except DtypeError:
        if not hasattr(array, "__array__"):
            raise
        return _see_array(array)
    if device_type in CPU_DEVICES:
        seen = _see_array(array) if hasattr(array, "__array__") else NUMPY.see(ask_host_array(array))
        return seen._replace(library=library, owner=array) if library.kind == "array_api" else seen
    if device_type not in CUDA_DEVICES:
        raise DeviceError(f"expected an array on a CPU or an NVIDIA GPU, got DLPack device type {device_type}")
    capsule = ask_capsule(array, LEGACY_STREAM)
    tensor = read_capsule(capsule)
    if not tensor.contiguous:
        raise ShapeError(f"expected a C-contiguous array, got a strided one of shape {tensor.shape}; copy it first")
    device = f"cuda:{index}"
    return ArrayView(tensor.ptr, tensor.shape, tensor.dtype, device, LEGACY_STREAM, array, None, library, capsule)


def empty_on_gpu(like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
    """Memory of the engine, on the device and stream of ``like``; the owner is a `DeviceArray`."""
    if allocator is None:
        raise DeviceError(f"an array of kind {like.kind!r} on {like.device} needs the engine to allocate it")
    buffer = allocator.allocate(math.prod(shape) * dtype.itemsize, like.stream)
    owner = DeviceArray(buffer, buffer.ptr, shape, dtype, device_index(like.device), allocator.wait)
    return ArrayView(buffer.ptr, shape, dtype, like.device, like.stream, owner, None, like.library, place=like.place)


def _contiguous_strides(shape: Shape, itemsize: int, given: Any) -> Shape:
    """The strides of a C-contiguous array; on axes of one element, where any will do, the given ones."""
    strides, step = [], itemsize
    for extent, stride in zip(reversed(shape), reversed(tuple(given)), strict=True):
        strides.append(stride if extent == 1 else step)
        step *= extent
    return tuple(reversed(strides))


# ---- what gives out a NumPy array of itself


def _see_array(array: Any) -> ArrayView:
    """View what NumPy makes an array of."""
    return NUMPY.see(numpy_of(array))
