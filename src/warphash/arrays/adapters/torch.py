"""PyTorch tensors, on the CPU or a GPU, in the order of PyTorch's current stream."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...errors import DeviceError, DtypeError, ShapeError
from ..dlpack import LEGACY_STREAM
from ..library import (
    MAX_ROWS,
    Allocator,
    ArrayView,
    Dtype,
    KnownArrays,
    Maker,
    Shape,
    alignment_of,
    array_view,
    refuse_rows,
)
from ..plain_array import refuse_attributes, refuse_unit
from .numpy import address_of, no_stream

__all__ = ["LIBRARY", "refuse_layout", "torch_type"]


class TorchLibrary:
    """PyTorch. ``place`` of a view is the tensor's ``torch.device``."""

    kind = "torch"

    def see(self, tensor: Any) -> ArrayView:
        """View a tensor. Four calls of PyTorch's, if the tensor is contiguous: each takes about 0.1 us."""
        if type(tensor) is not sys.modules["torch"].Tensor:
            _refuse_subclass(tensor)
        elif tensor.__dict__:
            refuse_unit(tensor, "give tensor.detach()")
        try:
            shape = tuple(tensor.shape)
        except RuntimeError as error:
            _refuse_nested(tensor)
            raise _without_memory(error) from None
        if shape and shape[0] > MAX_ROWS:
            refuse_rows(shape[0])
        if tensor.layout != sys.modules["torch"].strided:
            refuse_layout(tensor)
        if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
        dtype = _numpy_type(tensor.dtype)
        place = tensor.device
        if tensor.is_cuda:
            device, stream = _device_and_stream(place.index)
            try:
                at = tensor.data_ptr()
            except RuntimeError as error:
                raise _without_memory(error) from None
            if not at and tensor.numel():
                raise _without_memory()
            return array_view((at, shape, dtype, device, stream(), tensor, None, self, None, place))
        if place.type == "meta":
            raise DeviceError(
                "expected a tensor on cpu or cuda, got one on meta, which has no values: give one that has"
            )
        if place.type != "cpu":
            raise DeviceError(f"expected a tensor on cpu or cuda, got {place}; call .to('cuda') or .cpu()")
        try:
            host = tensor.detach().numpy()
        except RuntimeError as error:
            raise _without_memory(error) from None
        if not tensor.data_ptr() and tensor.numel():
            raise _without_memory()
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

    def cast(self, tensor: Any, dtype: Dtype) -> Any:
        """As `Library`."""
        return tensor.detach().to(torch_type(dtype))

    def spread(self, out: Any, fits: Any, answers: Any, row: npt.NDArray[Any]) -> None:
        """As `Library`."""
        torch = sys.modules["torch"]
        bits = torch_type(np.dtype(f"i{row.dtype.itemsize}")) if row.dtype.kind == "u" else torch_type(row.dtype)
        out, answers = out.view(bits), answers.view(bits)  # PyTorch does less with unsigned integers
        out[...] = torch.from_numpy(row.copy()).view(bits).to(out.device)
        out[fits] = answers

    def note_write(self, tensor: Any) -> None:
        """Have PyTorch refuse a derivative that needs what the tensor held before."""
        sys.modules["torch"].autograd.graph.increment_version(tensor)

    def is_captured(self) -> bool:
        """As `Library`."""
        return bool(sys.modules["torch"].cuda.is_current_stream_capturing())

    def is_on_gpu(self, tensor: Any) -> bool:
        """Whether it is a tensor of CUDA."""
        return bool(tensor.is_cuda)

    def on_stream(self, handle: int, index: int) -> AbstractContextManager[None]:
        """As `Library`."""
        cuda = sys.modules["torch"].cuda
        is_default = handle in (0, LEGACY_STREAM)
        stream = cuda.default_stream(index) if is_default else cuda.ExternalStream(handle, device=index)
        made: AbstractContextManager[None] = cuda.stream(stream)
        return made

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
                and not tensor.__dict__
            ):
                try:
                    at: int = tensor.data_ptr()
                except RuntimeError:  # of a tensor that PyTorch transforms, which `see` refuses
                    return None
                return None if at & slack or not at else at
            return None

        return address

    def current_stream(self, like: ArrayView) -> Callable[[], int | None]:
        """As `Library.current_stream`."""
        return _device_and_stream(like.place.index)[1] if like.host is None else no_stream

    def known(self, like: ArrayView, dtype: Dtype) -> KnownArrays:
        """As `Library`."""
        torch = sys.modules["torch"]
        rules: tuple[tuple[tuple[str, ...], Any], ...] = (
            (("dtype",), torch_type(dtype)),
            (("device",), like.place),
            (("layout",), torch.strided),
            (("is_contiguous()",), True),
            (("is_neg()",), False),
            (("__dict__",), {}),
        )
        if dtype.kind == "c":
            rules = *rules, (("is_conj()",), False)
        raw, here = _raw_stream(), like.host is None
        stream = partial(raw, like.place.index) if raw is not None and here else self.current_stream(like)
        return KnownArrays(torch.Tensor, rules, ("data_ptr()",), stream)

    def maker(self, like: ArrayView, dtype: Dtype) -> Maker:
        """As `Library`. With one GPU, the current device is that of the table."""
        torch, kind = sys.modules["torch"], torch_type(dtype)
        if torch.cuda.device_count() == 1 and (empty := _empty_on_current_device()) is not None:
            return empty, (1,), kind
        return partial(torch.empty_strided, dtype=kind, device=like.place), (1,)

    def example(self, device: str) -> Any:
        """An empty tensor."""
        return sys.modules["torch"].empty(0, device=device)


def _refuse_subclass(tensor: Any) -> None:
    """Raise `DtypeError` for a tensor of a subclass that is more than its memory."""
    kind, torch = type(tensor), sys.modules["torch"]
    if kind is torch.nn.Parameter:
        refuse_unit(tensor, "give tensor.detach()")
        return
    _refuse_nested(tensor)
    dispatch = getattr(kind, "__torch_dispatch__", None)
    if dispatch is not None and dispatch is not torch.Tensor.__torch_dispatch__:
        raise DtypeError(
            f"expected a tensor whose values lie in its memory, got {kind.__name__}, of which a table would take the "
            "memory alone: give a plain tensor of the values that are meant"
        )
    refuse_attributes(tensor, "give tensor.as_subclass(torch.Tensor)")


def refuse_layout(tensor: Any) -> NoReturn:
    """Raise `ShapeError` for a tensor that is nested or sparse."""
    _refuse_nested(tensor)
    raise ShapeError(f"expected a dense tensor, got {tensor.layout}; call .to_dense()")


def _refuse_nested(tensor: Any) -> None:
    if tensor.is_nested:
        raise ShapeError(
            "expected a tensor whose rows are of one length, got a nested tensor: give its tensors one by one, as "
            "tensor.unbind() has them, or torch.cat(tensor.unbind())"
        )


def _without_memory(error: RuntimeError | None = None) -> DtypeError:
    got = "has none" if error is None else f"answers {type(error).__name__} ({error})"
    return DtypeError(
        f"expected a tensor with memory of its own, got one that {got}: call the table outside of functions "
        "that PyTorch transforms, as by vmap or functionalize, or by warphash.torch inside of torch.compile"
    )


def _raw_stream() -> Callable[[int], int] | None:
    """The handle of PyTorch's current stream on a GPU, 0 for the legacy one; None if PyTorch has no such function."""
    found: Callable[[int], int] | None = getattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", None)
    return found  # 0.1 us; the public way takes 2 us


def _empty_on_current_device() -> Callable[[Shape, Shape, Any], Any] | None:
    """Makes a tensor of a shape, strides and a type on the current GPU; None if PyTorch has no such function.

    PyTorch's own compiler makes its tensors so. Of 1,000 elements on a CPU: 0.5 us, where ``torch.empty`` takes 1.6.
    """
    guards = getattr(getattr(sys.modules["torch"]._C, "_dynamo", None), "guards", None)
    found: Callable[[Shape, Shape, Any], Any] | None = getattr(guards, "_empty_strided_cuda", None)
    return found


@lru_cache
def _device_and_stream(index: int) -> tuple[str, Callable[[], int]]:
    """The name of a GPU, and a function for the handle of PyTorch's current stream there."""
    torch = sys.modules["torch"]
    current = _raw_stream()

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
    if name.startswith("q"):  # quantized
        raise DtypeError(
            f"expected numbers, got {name} with a scale, which a table does not keep: give tensor.dequantize(), or "
            "tensor.int_repr() if all tensors have one scale"
        )
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
