"""PyTorch tensors, on the CPU or a GPU, in the order of PyTorch's current stream."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...errors import DeviceError, DtypeError, ShapeError
from ..dlpack import LEGACY_STREAM
from ..library import (
    MAX_ROWS,
    Allocator,
    ArrayView,
    Dtype,
    KnownArrays,
    Shape,
    alignment_of,
    array_view,
    refuse_rows,
)
from .numpy import address_of, no_stream

__all__ = ["LIBRARY", "torch_type"]


class TorchLibrary:
    """PyTorch. ``place`` of a view is the tensor's ``torch.device``."""

    kind = "torch"

    def see(self, tensor: Any) -> ArrayView:
        """View a tensor. Four calls of PyTorch's, if the tensor is contiguous: each takes about 0.1 us."""
        shape = tuple(tensor.shape)
        if shape and shape[0] > MAX_ROWS:
            refuse_rows(shape[0])
        if tensor.layout != sys.modules["torch"].strided:
            raise ShapeError(f"expected a dense tensor, got {tensor.layout}; call .to_dense()")
        if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
        dtype = _numpy_type(tensor.dtype)
        place = tensor.device
        if tensor.is_cuda:
            device, stream = _device_and_stream(place.index)
            return array_view((tensor.data_ptr(), shape, dtype, device, stream(), tensor, None, self, None, place))
        if place.type != "cpu":
            raise DeviceError(f"expected a tensor on cpu or cuda, got {place}; call .to('cuda') or .cpu()")
        host = tensor.detach().numpy()
        return array_view((address_of(host), shape, dtype, "cpu", None, tensor, host, self, None, place))

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """A new tensor of PyTorch's own allocator."""
        made = sys.modules["torch"].empty(shape, dtype=torch_type(dtype), device=like.place)
        if like.host is None:
            ptr, host = made.data_ptr(), None
        else:
            host = made.numpy()
            ptr = address_of(host)
        return array_view((ptr, shape, dtype, like.device, like.stream, made, host, self, None, like.place))

    def export(self, made: ArrayView) -> Any:
        """The tensor itself."""
        return made.owner

    def addresses(self, like: ArrayView, shape: Shape, dtype: Dtype, is_written: bool) -> Callable[[Any], int | None]:
        """As `Library.addresses`. A subclass of tensors is seen, for what its methods answer is its own affair."""
        torch = sys.modules["torch"]
        kind, strided, wanted, place = torch.Tensor, torch.strided, torch_type(dtype), like.place
        slack = alignment_of(shape, dtype) - 1 if is_written else 0

        def address(tensor: Any) -> int | None:
            if (
                type(tensor) is kind
                and tensor.dtype is wanted
                and tensor.device == place
                and tensor.shape == shape
                and tensor.layout is strided
                and tensor.is_contiguous()
                and not tensor.is_conj()
                and not tensor.is_neg()
                and not (is_written and tensor.requires_grad)
            ):
                at: int = tensor.data_ptr()
                return None if at & slack else at
            return None

        return address

    def current_stream(self, like: ArrayView) -> Callable[[], int | None]:
        """As `Library.current_stream`."""
        return _device_and_stream(like.place.index)[1] if like.host is None else no_stream

    def known(self, like: ArrayView, dtype: Dtype) -> KnownArrays:
        """As `Library`."""
        torch = sys.modules["torch"]
        rules = (
            (("dtype",), torch_type(dtype)),
            (("device",), like.place),
            (("layout",), torch.strided),
            (("is_contiguous()",), True),
            (("is_conj()",), False),
            (("is_neg()",), False),
        )
        return KnownArrays(torch.Tensor, rules, ("data_ptr()",), self.current_stream(like))

    def maker(self, like: ArrayView, dtype: Dtype) -> Callable[[Shape], Any]:
        """As `Library`."""
        return partial(sys.modules["torch"].empty, dtype=torch_type(dtype), device=like.place)

    def example(self, device: str) -> Any:
        """An empty tensor."""
        return sys.modules["torch"].empty(0, device=device)


@lru_cache
def _device_and_stream(index: int) -> tuple[str, Callable[[], int]]:
    """The name of a GPU, and a function for the handle of PyTorch's current stream there."""
    torch = sys.modules["torch"]
    current = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # 0.1 us; the public way takes 2 us

    def handle() -> int:
        raw = current(index) if current else torch.cuda.current_stream(index).cuda_stream
        return raw or LEGACY_STREAM

    return f"cuda:{index}", handle


@lru_cache
def _numpy_type(dtype: Any) -> Dtype:
    name = str(dtype).removeprefix("torch.")
    try:
        found = np.dtype(name)
    except TypeError:
        found = np.dtype(np.void)
    if found.kind == "V":  # another library may have registered a type of that name, as JAX does with bfloat16
        mend = f"view it as an integer: tensor.view(torch.int{8 * dtype.itemsize})"
        raise DtypeError(f"expected a type that NumPy has, got {name}; {mend}")
    return found


@lru_cache
def torch_type(dtype: Dtype) -> Any:
    """The ``torch.dtype`` of a NumPy type. Raises `DtypeError` if PyTorch has none."""
    torch = sys.modules["torch"]
    found = getattr(torch, dtype.name, None)
    if not isinstance(found, torch.dtype):
        raise DtypeError(f"PyTorch {torch.__version__} has no type for {dtype}: pass NumPy arrays, or use another type")
    return found


LIBRARY = TorchLibrary()
