"""DLPack and ``__cuda_array_interface__`` for GPU memory, by hand: neither needs a library to be installed.

`DeviceArray` is memory of an engine that any library can take over. `read_capsule` views the memory of a library. Both
know the capsules of DLPack 1, which carry their version, and those from before, which carry none. A consumer says with
``max_version`` that it takes the former.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DtypeError, UnsupportedVerb

__all__ = [
    "CPU_DEVICES",
    "CUDA_DEVICES",
    "LEGACY_STREAM",
    "DeviceArray",
    "Tensor",
    "ask_capsule",
    "ask_device",
    "ask_host_array",
    "read_capsule",
]

CPU_DEVICES = (1, 3)
"""DLPack's device types for host memory: plain and pinned."""

CUDA_DEVICES = (2, 13)
"""DLPack's device types for GPU memory: plain and managed."""

LEGACY_STREAM = 1
"""CUDA's default stream, as both protocols write it (0 is ambiguous there)."""

NO_STREAM = -1
"""A consumer's word for "do not synchronise"."""

_KIND_OF_CODE = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_CODE_OF_KIND = {kind: code for code, kind in _KIND_OF_CODE.items()}

VERSION = (1, 0)
"""The version of DLPack whose structures these are. Later versions of the same major number only add to it."""


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Unversioned(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


_UNVERSIONED, _VERSIONED = b"dltensor", b"dltensor_versioned"
"""Names of capsules that nobody has taken over."""


_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Deleter)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_capsule_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
# Of a capsule that is being destroyed: as an address, since a new reference to it would destroy it twice.
_dying_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

_lent: dict[int, tuple[Any, ...]] = {}
"""The objects that each exported tensor keeps alive until its consumer calls the deleter, by the tensor's address."""


def _forget(address: int) -> None:
    _lent.pop(address, None)


def _forget_untaken(capsule: int) -> None:
    for name in (_UNVERSIONED, _VERSIONED):
        if _dying_is_valid(capsule, name):  # a consumer would have renamed it
            _forget(_dying_pointer(capsule, name))


_delete = _Deleter(_forget)
_destroy_capsule = _Deleter(_forget_untaken)


class DeviceArray:
    """A C-contiguous array in GPU memory that belongs to no library yet.

    Any library that speaks DLPack or ``__cuda_array_interface__`` takes it without a copy: ``cupy.asarray(a)``,
    ``torch.from_dlpack(a)``, ``jax.numpy.from_dlpack(a)``, ``numba.cuda.as_cuda_array(a)``.

    Parameters
    ----------
    owner
        Kept alive as long as anybody uses the memory.
    ptr, shape, dtype
        Where the array is, and what.
    index
        Which GPU.
    wait
        ``wait(stream)`` makes a CUDA stream wait for the work that fills the array.
    """

    def __init__(
        self,
        owner: Any,
        ptr: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        index: int,
        wait: Callable[[int], None],
    ) -> None:
        self._owner = owner
        self._ptr = ptr
        self._wait = wait
        self._index = index
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"<warphash.DeviceArray: shape {self.shape}, {self.dtype}, on cuda:{self._index}>"

    def __len__(self) -> int:
        return self.shape[0]

    def __reduce__(self) -> str:
        raise UnsupportedVerb(
            "a DeviceArray is neither copied nor pickled: it is memory of one process, which no library manages yet; "
            "let a library take it over, with cupy.asarray(a) or torch.from_dlpack(a), and copy or pickle that array"
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self._wait(LEGACY_STREAM)
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._ptr, False),
            "strides": None,
            "stream": LEGACY_STREAM,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA_DEVICES[0], self._index

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule, ready in the order of the consumer's ``stream``.

        Parameters
        ----------
        stream
            A handle, or an object with ``__cuda_stream__``. None is CUDA's default stream; -1 asks for no order.
        max_version
            The latest version of DLPack that the consumer knows. None is one from before version 1.
        dl_device, copy
            As DLPack says. The array stays where it is, and is not copied.

        Raises
        ------
        BufferError
            If DLPack has no such element type, or the consumer asks for another device or a copy.
        """
        if self.dtype.kind not in _CODE_OF_KIND:
            raise BufferError(f"DLPack has no type for {self.dtype}")
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(
                f"expected a consumer that takes the memory where it is, on cuda:{self._index}, got "
                f"dl_device={dl_device}, copy={copy}: let a library take the array over, and copy it there"
            )
        if stream != NO_STREAM:
            self._wait(stream or LEGACY_STREAM)
        is_versioned = max_version is not None and max_version[0] >= VERSION[0]
        managed = _Versioned(*VERSION) if is_versioned else _Unversioned()
        axes = len(self.shape)
        shape, strides = (ctypes.c_int64 * axes)(*self.shape), (ctypes.c_int64 * axes)()
        step = 1
        for axis in reversed(range(axes)):
            strides[axis], step = step, step * self.shape[axis]
        tensor = managed.tensor
        tensor.data = self._ptr
        tensor.device_type, tensor.device_id = self.__dlpack_device__()
        tensor.ndim = axes
        tensor.code, tensor.bits, tensor.lanes = _CODE_OF_KIND[self.dtype.kind], 8 * self.dtype.itemsize, 1
        tensor.shape, tensor.strides = (ctypes.cast(made, ctypes.POINTER(ctypes.c_int64)) for made in (shape, strides))
        managed.deleter = _delete
        address = ctypes.addressof(managed)
        _lent[address] = (managed, shape, strides, self._owner)
        return _capsule_new(address, _VERSIONED if is_versioned else _UNVERSIONED, _destroy_capsule)


@dataclass(frozen=True)
class Tensor:
    """The contents of a DLPack capsule. The memory lives as long as the capsule."""

    ptr: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: tuple[int, int]
    contiguous: bool


def read_capsule(capsule: Any) -> Tensor:
    """Look into a capsule without taking it: keep it, and its own destructor frees the memory later.

    Raises
    ------
    DtypeError
        For an element type that NumPy does not have, or a capsule of a later version of DLPack than 1.
    """
    if _capsule_is_valid(capsule, _VERSIONED):
        managed = _Versioned.from_address(_capsule_pointer(capsule, _VERSIONED))
        if managed.major != VERSION[0]:
            raise DtypeError(
                f"expected an array by version {VERSION[0]} of DLPack, got version {managed.major}.{managed.minor}"
            )
        tensor = managed.tensor
    else:
        tensor = _Unversioned.from_address(_capsule_pointer(capsule, _UNVERSIONED)).tensor
    kind = _KIND_OF_CODE.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        raise DtypeError(
            f"expected integers, floats, complex numbers or booleans, got DLPack type {tensor.code} of {tensor.bits}"
            " bits; view it as an unsigned integer of the same width, or convert it to whole bytes"
        )
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    expected, contiguous = 1, True
    for axis in reversed(range(tensor.ndim)):
        if tensor.strides and shape[axis] != 1:
            contiguous = contiguous and tensor.strides[axis] == expected
        expected *= shape[axis]
    return Tensor(
        ptr=(tensor.data or 0) + tensor.byte_offset,
        shape=shape,
        dtype=np.dtype(f"{kind}{tensor.bits // 8}"),
        device=(tensor.device_type, tensor.device_id),
        contiguous=contiguous or 0 in shape,
    )


def ask_device(array: Any) -> tuple[int, int]:
    """The DLPack device type and the index that a foreign array names.

    Raises
    ------
    DtypeError
        If its library has no answer: some know only then that DLPack has no such element type.
    """
    device_type, index = _ask(array, array.__dlpack_device__)
    return int(device_type), int(index)


def ask_capsule(array: Any, stream: int) -> Any:
    """The capsule of a foreign array in GPU memory, ready in the order of ``stream``. Raises as `ask_device`."""

    def capsule() -> Any:
        try:
            return array.__dlpack__(stream=stream, max_version=VERSION)
        except TypeError:  # of a library from before version 1, which knows no such argument
            return array.__dlpack__(stream=stream)

    return _ask(array, capsule)


def ask_host_array(array: Any) -> npt.NDArray[Any]:
    """A foreign array in host memory as a NumPy array of the same memory. Raises as `ask_device`."""
    seen: npt.NDArray[Any] = _ask(array, lambda: np.from_dlpack(array))
    return seen


def _ask(array: Any, question: Callable[[], Any]) -> Any:
    try:
        return question()
    except MemoryError:
        raise
    except Exception as error:  # of any type: each library has its own
        mend = (
            "numpy.asarray(array)" if hasattr(array, "__array__") else "list(array), whose items are checked one by one"
        )
        raise DtypeError(
            f"expected an array that its library gives out through DLPack, got {type(array).__name__}, which answers "
            f"{type(error).__name__} ({error}): give {mend}"
        ) from None
