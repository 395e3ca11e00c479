"""Where tables on a GPU take their memory from: the public setting."""

from __future__ import annotations

import re
from typing import Any

from ..errors import DeviceError

__all__ = ["set_memory_resource"]


def set_memory_resource(resource: Any, *, device: str = "cuda") -> Any:
    """Have tables on a GPU take their memory from the allocator of another library, in this process.

    That holds for tables, and for what a batch needs while it runs; memory that is taken already goes back to where it
    came from. Buffers of up to 16 KiB stay with the engine, which cuts them from pieces of 256 KiB, and so does
    page-locked memory. Answers are arrays of the caller's library, and come from that library's allocator in any case.

    Parameters
    ----------
    resource
        A memory resource of RMM or of cuda.core, or an object with ``allocate(nbytes, stream=)``, which returns an
        address, and ``deallocate(ptr, nbytes, stream=)``, where a stream is an integer with ``__cuda_stream__``.
        ``"cupy"`` and ``"torch"`` stand for the allocator that the library uses at the time. None stands for a pool of
        the driver that warphash keeps for itself, which is the default.
    device
        ``"cuda"`` or ``"cuda:N"``: each GPU has a resource of its own.

    Returns
    -------
    object
        The resource of the device before this call.

    Raises
    ------
    ParameterError
        If ``resource`` is none of these, or its library is missing.
    DeviceError, EngineUnavailable
        If there is no such GPU.

    Notes
    -----
    A table that finds no memory raises `MemoryError` and stays as it was, as with the pool. ``WARPHASH_KEPT_FRACTION``
    is a setting of the pool alone: how much a resource keeps is its own affair.
    """
    from .cuda import engine as cuda

    match = re.fullmatch(r"cuda(?::(\d+))?", device) if isinstance(device, str) else None
    if match is None:
        raise DeviceError(f"device must be 'cuda' or 'cuda:N', which a memory resource is for, got {device!r}")
    return cuda.engine(int(match[1] or 0)).use_memory_of(resource)
