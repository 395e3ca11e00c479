"""DLPack between warphash and PyTorch: capsules of version 1 and from before, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warphash import HashMap
from warphash.arrays.dlpack import DeviceArray, read_capsule

torch = pytest.importorskip("torch")


class OnHost(DeviceArray):
    """A `DeviceArray` whose memory the host can read."""

    def __init__(self, memory: Any) -> None:
        super().__init__(memory, memory.ctypes.data, memory.shape, memory.dtype, 0, lambda stream: None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (0, 3), ()])
def test_out(dtype: str, shape: tuple[int, ...]) -> None:
    memory = np.ones(shape, dtype)
    taken = torch.from_dlpack(OnHost(memory))
    assert taken.shape == shape and str(taken.dtype) == f"torch.{dtype}"
    if memory.size:
        assert taken.data_ptr() == memory.ctypes.data and taken.is_contiguous()
    assert torch.equal(taken, torch.from_numpy(memory))


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_in(max_version: Any) -> None:
    tensor = torch.arange(12).reshape(3, 4)
    for given in (tensor, tensor.T, tensor[1]):
        seen = read_capsule(given.__dlpack__(max_version=max_version))
        assert (seen.ptr, seen.shape, seen.dtype) == (given.data_ptr(), tuple(given.shape), np.int64)
        assert seen.contiguous == given.is_contiguous()


@pytest.mark.parametrize("by_plan", [False, True])
def test_a_tensor_that_a_call_writes_to_is_one_that_has_changed(by_plan: bool) -> None:
    """PyTorch refuses a derivative that needs what the tensor held before."""
    keys = torch.arange(4)
    table = HashMap.from_arrays(keys, torch.tensor([1.0, 2.0, 3.0, 4.0]), device="cpu")
    find = table.plan(4, like=keys).find if by_plan else table.find
    out, found, weights = torch.empty(4), torch.empty(4, dtype=torch.bool), torch.ones(4, requires_grad=True)
    find(keys, out=out, found=found)
    (weights * out).sum().backward()
    assert weights.grad is not None and weights.grad.tolist() == [1.0, 2.0, 3.0, 4.0]
    total, before = (weights * out).sum(), found._version
    find(keys.flip(0).contiguous(), out=out, found=found)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()
    assert found._version > before
