"""Any array in, the same kind out.

A library is known by the module of the caller's object, and only a library that the caller has already imported is
ever touched. Host arrays of every library become NumPy views of the same memory. GPU arrays become an address, and
the stream on which their library works now: a table runs there, and the library's own allocator gives the results, so
that nothing waits. JAX, Numba and libraries unknown here have no current stream to ask for: their arrays are made
ready on CUDA's default stream, and results are memory of ours that they take over through DLPack.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import DeviceError, DtypeError, ShapeError
from .dlpack import (
    CPU_DEVICES,
    CUDA_DEVICES,
    LEGACY_STREAM,
    DeviceArray,
    ask_capsule,
    ask_device,
    ask_host_array,
    read_capsule,
)
from .exact import exactly

__all__ = ["MAX_ROWS", "Allocator", "ArrayView", "empty_like_kind", "view"]

MAX_ROWS = 1 << 31
"""Of an array: kernels number the elements of a batch in 32 bits."""

Shape = tuple[int, ...]
Dtype = np.dtype[Any]


class Allocator(Protocol):
    """What results for a library without an allocator of its own take from an engine."""

    def allocate(self, nbytes: int, stream: Any = None) -> Any:
        """A buffer: an object with ``ptr``, freed with its last reference."""

    def wait(self, consumer: int) -> None:
        """Make a stream wait for all work so far."""


class ArrayView(NamedTuple):
    """One array of a caller's, C-contiguous. A named tuple, since one is made for every array of every call.

    Attributes
    ----------
    ptr, shape, dtype
        Where it is, and what.
    device
        ``"cpu"`` or ``"cuda:0"``.
    kind
        ``"numpy"``, ``"torch"``, ``"cupy"``, ``"jax"``, ``"numba"``, ``"array_api"`` or ``"interface"``.
    stream
        Handle of the CUDA stream in whose order the memory is ready; None on the CPU.
    owner
        The object that keeps the memory alive, of its library's type.
    host
        The memory as a NumPy array; None on a GPU.
    capsule
        What else keeps the memory alive, where it came through DLPack.
    """

    ptr: int
    shape: Shape
    dtype: Dtype
    device: str
    kind: str
    stream: int | None
    owner: Any
    host: npt.NDArray[Any] | None
    capsule: Any = None

    @property
    def rows(self) -> int:
        """Extent of the first axis."""
        return self.shape[0]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Their size together."""
        return self.size * self.dtype.itemsize

    def export(self) -> Any:
        """The array as its library's own type: what a caller is given."""
        if self.kind == "jax":
            return _export_jax(self)
        if self.kind == "numba":
            return self.owner if self.host is not None else sys.modules["numba.cuda"].as_cuda_array(self.owner)
        return self.owner


def view(array: Any, dtype: npt.DTypeLike | None = None) -> ArrayView:
    """See any array, list or scalar.

    Parameters
    ----------
    array
        Of any shape. Not contiguous, or of foreign byte order: copied. Read-only is fine.
    dtype
        What a list or a Python scalar becomes (`exact.exactly`); an array keeps its own type.

    Raises
    ------
    DtypeError
        For Python objects, for values that ``dtype`` does not hold, for nulls, and for columns of several types.
    DeviceError
        For memory that is neither the host's nor an NVIDIA GPU's.
    ShapeError
        For more than `MAX_ROWS` rows; for a GPU array that is not contiguous, of a library that cannot be asked to copy
        it; ragged lists.
    """
    _check_rows(array)
    if isinstance(array, np.ndarray):
        return _view_numpy(array)
    if reader := _reader(type(array)):  # type: ignore[arg-type]  # mypy takes a class for unhashable
        return reader(array)
    _check_columns(array)
    if hasattr(array, "__cuda_array_interface__"):
        return _view_interface(array)
    if hasattr(array, "__dlpack__"):
        return _view_dlpack(array)
    if hasattr(array, "__array__") and not isinstance(array, np.generic):  # pandas, polars, pyarrow
        return _view_numpy(_as_numpy(array))
    return _view_numpy(exactly(array, None if dtype is None else np.dtype(dtype)))


def _check_rows(array: Any) -> None:
    """Before anything is copied."""
    shape = getattr(array, "shape", None)
    rows = shape[0] if isinstance(shape, tuple) and shape else len(array) if isinstance(array, list) else 0
    if rows > MAX_ROWS:
        raise ShapeError(f"a batch has at most 2**31 rows, got {rows:,}: give it in parts")


def empty_like_kind(
    like: ArrayView, shape: Shape, dtype: npt.DTypeLike, allocator: Allocator | None = None
) -> ArrayView:
    """A new array of the same library, on the same device and stream, to be filled and then given out by `export`.

    Parameters
    ----------
    like
        An array of the caller's.
    shape, dtype
        Of the new one.
    allocator
        The engine; needed for GPU arrays of libraries other than CuPy and PyTorch.

    Raises
    ------
    DtypeError
        Where the library has no such type.
    """
    wanted = np.dtype(dtype)
    if like.kind == "torch":
        made = sys.modules["torch"].empty(shape, dtype=_torch_dtype(wanted), device=like.owner.device)
        return _of_torch(made, wanted) if like.host is not None else _beside(like, made.data_ptr(), shape, wanted, made)
    if like.kind == "cupy":
        made = _empty_cupy(like.owner, shape, wanted)
        return _beside(like, made.data.ptr, shape, wanted, made)
    if like.kind == "jax":
        _check_jax_dtype(wanted)
    if like.host is not None:
        host = np.empty(shape, wanted)
        owner = host if like.kind != "array_api" else like.owner.__array_namespace__().from_dlpack(host)
        return _host_view(host, like.kind, like.owner if like.kind == "jax" else owner)
    if allocator is None:
        raise DeviceError(f"an array of kind {like.kind!r} on {like.device} needs the engine to allocate it")
    buffer = allocator.allocate(math.prod(shape) * wanted.itemsize, like.stream)
    owner = DeviceArray(buffer, buffer.ptr, shape, wanted, _index(like.device), allocator.wait)
    if like.kind == "array_api":
        owner = like.owner.__array_namespace__().from_dlpack(owner)
    return _beside(like, buffer.ptr, shape, wanted, owner)


def _beside(like: ArrayView, ptr: int, shape: Shape, dtype: Dtype, owner: Any) -> ArrayView:
    """A new array on the same GPU and stream."""
    return ArrayView(ptr, shape, dtype, like.device, like.kind, like.stream, owner, None)


@lru_cache
def _reader(kind: type) -> Callable[[Any], ArrayView] | None:
    """How to see arrays of a type, if a library that is known here made it."""
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__"):
        for base in kind.__mro__:  # a subclass may live anywhere
            if found := _READERS.get(base.__module__.partition(".")[0]):
                return found
    return None


def _index(device: str) -> int:
    return int(device.partition(":")[2])


# ---- the host


def _view_numpy(array: npt.NDArray[Any]) -> ArrayView:
    if type(array) is not np.ndarray:
        if isinstance(array, np.ma.MaskedArray):
            raise ShapeError("expected an array without a mask; drop or fill the masked elements first")
        array = np.asarray(array)
    if array.dtype.hasobject:
        mend = "give list(array), whose items are checked one by one"
        raise DtypeError(f"expected a fixed-width type, got an array of {array.dtype}: {mend}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return _host_view(array, "numpy", array)


def _host_view(array: npt.NDArray[Any], kind: str, owner: Any) -> ArrayView:
    return ArrayView(array.ctypes.data, array.shape, array.dtype, "cpu", kind, None, owner, array)


def _as_numpy(array: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(array)
    except MemoryError:
        raise
    except Exception as error:  # of the library's own, as for its integers of 128 bits
        raise DtypeError(
            f"expected a type that NumPy has, got {type(array).__name__} ({error}): "
            "give array.to_list(), whose items are checked one by one"
        ) from None


def _check_columns(array: Any) -> None:
    """Refuse columns of pandas, Polars and PyArrow that NumPy would change: of integers with nulls it makes floats."""
    types: list[Any] = [getattr(array, "dtype", None)]
    if hasattr(array, "columns"):
        types = list(array.dtypes if hasattr(array, "dtypes") else getattr(getattr(array, "schema", None), "types", ()))
        if len(kinds := sorted(set(map(str, types)))) > 1:
            raise DtypeError(
                f"expected columns of one type, got {', '.join(kinds)}: give an array of a structured type"
            )
    if nulls := _count_nulls(array, types):
        raise DtypeError(f"expected values, got {nulls:,} nulls among them: drop or fill the nulls first")


def _count_nulls(array: Any, types: list[Any]) -> int:
    if hasattr(array, "null_count"):
        count = array.null_count
        return int(np.sum(np.asarray(count() if callable(count) else count)))
    if hasattr(array, "itercolumns"):  # of PyArrow
        return sum(column.null_count for column in array.itercolumns())
    if hasattr(array, "isna") and not all(isinstance(kind, np.dtype) for kind in types):  # NaN of NumPy's is a value
        return int(np.sum(np.asarray(array.isna())))
    return 0


# ---- PyTorch


def _view_torch(tensor: Any) -> ArrayView:
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided:
        raise ShapeError(f"expected a dense tensor, got {tensor.layout}; call .to_dense()")
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    name = str(dense.dtype).removeprefix("torch.")
    try:
        dtype = np.dtype(name)
    except TypeError:
        mend = f"view it as an integer: tensor.view(torch.int{8 * dense.itemsize})"
        raise DtypeError(f"expected a type that NumPy has, got {name}; {mend}") from None
    return _of_torch(dense, dtype)


def _of_torch(tensor: Any, dtype: Dtype) -> ArrayView:
    device = tensor.device
    if tensor.is_cuda:
        stream = sys.modules["torch"].cuda.current_stream(device).cuda_stream or LEGACY_STREAM
        shape = tuple(tensor.shape)
        return ArrayView(tensor.data_ptr(), shape, dtype, f"cuda:{device.index}", "torch", stream, tensor, None)
    if device.type != "cpu":
        raise DeviceError(f"expected a tensor on cpu or cuda, got {device}; call .to('cuda') or .cpu()")
    return _host_view(tensor.numpy(), "torch", tensor)


@lru_cache
def _torch_dtype(dtype: Dtype) -> Any:
    torch = sys.modules["torch"]
    found = getattr(torch, dtype.name, None)
    if not isinstance(found, torch.dtype):
        raise DtypeError(f"PyTorch {torch.__version__} has no type for {dtype}; pass NumPy arrays, or use another type")
    return found


# ---- CuPy


def _view_cupy(array: Any) -> ArrayView:
    cupy = sys.modules["cupy"]
    if not isinstance(array, cupy.ndarray):
        raise DtypeError(f"expected a dense cupy.ndarray, got {type(array).__name__}")
    index = array.data.device_id
    if cupy.cuda.runtime.getDevice() != index:
        with array.device:
            return _view_cupy(array)
    dense = array if array.flags.c_contiguous else cupy.ascontiguousarray(array).reshape(array.shape)
    stream = cupy.cuda.get_current_stream().ptr or LEGACY_STREAM
    return ArrayView(dense.data.ptr, dense.shape, dense.dtype, f"cuda:{index}", "cupy", stream, dense, None)


def _empty_cupy(like: Any, shape: Shape, dtype: Dtype) -> Any:
    if dtype.kind not in "biufc":
        raise DtypeError(f"CuPy has no type for {dtype}; pass NumPy arrays, or use another type")
    cupy = sys.modules["cupy"]
    if cupy.cuda.runtime.getDevice() != like.data.device_id:  # asked, as entering takes a fifth of the allocation
        with like.device:
            return _empty_cupy(like, shape, dtype)
    return cupy.ndarray(shape, dtype)


# ---- JAX


def _view_jax(array: Any) -> ArrayView:
    devices = array.devices()
    if len(devices) != 1:
        raise DeviceError(f"expected an array on one device, got one on {len(devices)}; jax.device_put it on one")
    (device,) = devices
    if device.platform == "cpu":
        return _host_view(np.ascontiguousarray(array).reshape(array.shape), "jax", array)
    return _view_dlpack(array, "jax")


def _check_jax_dtype(dtype: Dtype) -> None:
    jax = sys.modules["jax"]
    if dtype.kind not in "biufc":
        raise DtypeError(f"JAX has no type for {dtype}; pass NumPy arrays, or use another type")
    if dtype.kind != "b" and dtype.itemsize >= (16 if dtype.kind == "c" else 8) and not jax.config.jax_enable_x64:
        raise DtypeError(f"JAX would cut {dtype} down to 32 bits; call jax.config.update('jax_enable_x64', True) first")


def _export_jax(array: ArrayView) -> Any:
    jax = sys.modules["jax"]
    if array.host is None:
        return jax.numpy.from_dlpack(array.owner)
    (device,) = array.owner.devices()  # of the array that this one is like
    return jax.device_put(array.host, device)


# ---- GPU arrays of other libraries


def _view_interface(array: Any, kind: str = "interface") -> ArrayView:
    interface = array.__cuda_array_interface__
    dtype, shape = np.dtype(interface["typestr"]), tuple(int(extent) for extent in interface["shape"])
    if interface.get("mask") is not None:
        raise ShapeError("expected an array without a mask; drop or fill the masked elements first")
    strides = interface.get("strides")
    if strides is not None and 0 not in shape and tuple(strides) != _contiguous_strides(shape, dtype.itemsize, strides):
        raise ShapeError(f"expected a C-contiguous array, got shape {shape} with strides {strides}; copy it first")
    # The interface does not say which GPU; where the object does not either, it is the first.
    device = ask_device(array)[1] if hasattr(array, "__dlpack_device__") else 0
    stream = interface.get("stream") or LEGACY_STREAM
    return ArrayView(interface["data"][0] or 0, shape, dtype, f"cuda:{device}", kind, int(stream), array, None)


def _contiguous_strides(shape: Shape, itemsize: int, given: Any) -> Shape:
    """The strides of a C-contiguous array; on axes of one element, where any will do, the given ones."""
    strides, step = [], itemsize
    for extent, stride in zip(reversed(shape), reversed(tuple(given)), strict=True):
        strides.append(stride if extent == 1 else step)
        step *= extent
    return tuple(reversed(strides))


def _view_dlpack(array: Any, kind: str = "") -> ArrayView:
    device_type, index = ask_device(array)
    kind = kind or ("array_api" if hasattr(array, "__array_namespace__") else "interface")
    if device_type in CPU_DEVICES:
        seen = _view_numpy(_as_numpy(array) if hasattr(array, "__array__") else ask_host_array(array))
        return seen._replace(kind=kind, owner=array) if kind == "array_api" else seen
    if device_type not in CUDA_DEVICES:
        raise DeviceError(f"expected an array on a CPU or an NVIDIA GPU, got DLPack device type {device_type}")
    capsule = ask_capsule(array, LEGACY_STREAM)
    tensor = read_capsule(capsule)
    if not tensor.contiguous:
        raise ShapeError(f"expected a C-contiguous array, got a strided one of shape {tensor.shape}; copy it first")
    device = f"cuda:{index}"
    return ArrayView(tensor.ptr, tensor.shape, tensor.dtype, device, kind, LEGACY_STREAM, array, None, capsule)


_READERS: dict[str, Callable[[Any], ArrayView]] = {
    "torch": _view_torch,
    "cupy": _view_cupy,
    "jax": _view_jax,
    "jaxlib": _view_jax,
    "numba": partial(_view_interface, kind="numba"),
}
