"""Arrays on the emulated GPU: of PyTorch, and of NumPy that pass for arrays of CuPy."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import sys
from typing import Any

import numpy as np
import pytest

from support.elsewhere import ELSEWHERE, Elsewhere, bare, there
from warphash.arrays import view
from warphash.arrays.adapters.numpy import NUMPY
from warphash.arrays.library import ArrayView
from warphash.runtime.devices import engine_for

__all__ = ["LIBRARIES", "pass_for_arrays_of"]

LIBRARIES = [name for name in ("torch", "cupy") if name == "cupy" or importlib.util.find_spec("torch")]
"""Those of which arrays can be made."""


class OnDevice:
    """An adapter whose arrays pass for arrays of the emulated GPU.

    An array that is seen is copied to that GPU. A new one lies there.

    Parameters
    ----------
    library
        The adapter of arrays in host memory.
    kind
        The library that it passes for.
    of_host, host_of
        Makes an array of one of NumPy's, with the same memory; and the other way round.
    """

    def __init__(self, library: Any, kind: str, of_host: Any, host_of: Any) -> None:
        self._library, self.kind, self._of_host, self._host_of = library, kind, of_host, host_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def see(self, array: Any) -> ArrayView:
        host = self._host_of(array)
        memory = engine_for("emulated").from_host(np.ascontiguousarray(host)) if host.size else None
        ptr = memory.ptr if memory else 0
        return ArrayView(ptr, host.shape, host.dtype, "emulated", None, array, None, self, memory)

    def empty(self, like: ArrayView, shape: Any, dtype: Any, allocator: Any) -> ArrayView:
        nbytes = math.prod(shape) * dtype.itemsize
        memory = engine_for("emulated").allocate(max(1, nbytes))
        held: Any = (ctypes.c_uint8 * nbytes).from_address(memory.ptr)
        held.owner = memory  # the memory lives as long as the array, and as its views
        owner = self._of_host(np.frombuffer(held, np.uint8).view(dtype).reshape(shape))
        return ArrayView(memory.ptr, shape, dtype, "emulated", None, owner, None, self, memory)

    def cast(self, array: Any, dtype: Any) -> Any:
        return self._library.cast(array, dtype) if self.kind == "torch" else array.astype(dtype)

    def export(self, made: ArrayView) -> Any:
        return made.owner

    def is_captured(self) -> bool:
        return False


def pass_for_arrays_of(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes arrays on the emulated GPU, of a library."""
    if name == "torch":
        import torch

        from warphash.arrays.adapters.torch import LIBRARY

        on_device = OnDevice(LIBRARY, "torch", torch.from_numpy, torch.Tensor.numpy)
        monkeypatch.setitem(view.known_libraries, torch.Tensor, on_device)
        return lambda items, dtype: torch.from_numpy(np.array(items, dtype))

    monkeypatch.setitem(sys.modules, "cupy", ELSEWHERE)
    monkeypatch.setitem(view.known_libraries, Elsewhere, OnDevice(NUMPY, "cupy", there, bare))
    return lambda items, dtype: there(np.array(items, dtype))
