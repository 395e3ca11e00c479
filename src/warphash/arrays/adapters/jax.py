"""JAX arrays. JAX has no current stream to ask for: GPU arrays are made ready on CUDA's default stream."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...errors import DeviceError, DtypeError
from ..library import MAX_ROWS, Allocator, ArrayView, Dtype, Shape, device_index, refuse_rows
from ..plain_array import contiguous, numpy_of
from .foreign import empty_on_gpu, see_dlpack
from .numpy import address_of

__all__ = ["LIBRARY", "check_type"]


class JaxLibrary:
    """JAX. ``place`` of a view is the array's ``jax.Device``."""

    kind = "jax"

    def see(self, array: Any) -> ArrayView:
        """View an array on one device."""
        if array.shape and array.shape[0] > MAX_ROWS:
            refuse_rows(array.shape[0])
        try:
            devices = array.devices()
        except Exception as error:  # of JAX's own
            raise DtypeError(
                f"expected an array with values, got one that JAX traces or has deleted ({error}): call the table "
                "outside of jax.jit, vmap and grad, or as warphash.jax does it, with an array that was not donated"
            ) from None
        if len(devices) != 1:
            raise DeviceError(f"expected an array on one device, got one on {len(devices)}; jax.device_put it on one")
        (device,) = devices
        if device.platform == "cpu":
            host = contiguous(numpy_of(array)).reshape(array.shape)
            return ArrayView(address_of(host), host.shape, host.dtype, "cpu", None, array, host, self, None, device)
        return see_dlpack(array, self)._replace(place=device)

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """A new array that JAX takes over in `export`, since JAX's own arrays do not change."""
        check_type(dtype)
        if like.host is None:
            return empty_on_gpu(like, shape, dtype, allocator)
        host = np.empty(shape, dtype)
        return ArrayView(address_of(host), shape, dtype, "cpu", None, host, host, self, None, like.place)

    def export(self, made: ArrayView) -> Any:
        """An array of JAX's."""
        jax = sys.modules["jax"]
        return jax.numpy.from_dlpack(made.owner) if made.host is None else jax.device_put(made.owner, made.place)

    def example(self, device: str) -> Any:
        """An empty array."""
        jax = sys.modules["jax"]
        index = 0 if device == "cpu" else device_index(device)
        try:
            place = jax.devices(device.partition(":")[0])[index]
        except (RuntimeError, IndexError) as error:
            raise DeviceError(f"JAX has no arrays on {device} here ({error}): pass like='numpy'") from None
        return jax.device_put(np.empty(0, np.uint8), place)


def check_type(dtype: Dtype) -> None:
    """Raise `DtypeError` if JAX has no such type, or would change it."""
    if dtype.kind not in "biufc":
        raise DtypeError(f"JAX has no type for {dtype}: pass NumPy arrays, or use another type")
    wide = dtype.kind != "b" and dtype.itemsize >= (16 if dtype.kind == "c" else 8)
    if wide and not sys.modules["jax"].config.jax_enable_x64:
        raise DtypeError(f"JAX would cut {dtype} down to 32 bits: call jax.config.update('jax_enable_x64', True) first")


LIBRARY = JaxLibrary()
