"""DLPack between warphash and PyTorch: capsules of version 1 and from before, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
