"""A verb on a CUDA stream that the caller names, with ``stream=``.

Arrays of CuPy and PyTorch have a current stream. It is made the named one for the time of the verb, so that the
library's allocator makes the answers for this stream, too. Other arrays have none: the verb runs where it would without
``stream=``, behind the named stream, and what that is given next comes behind the verb.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CaptureError, ParameterError
from .library import device_index
from .view import library_of

__all__ = ["on_stream"]


@contextmanager
def on_stream(stream: Any, keys: Any, engine: Any) -> Iterator[None]:
    """Have a verb run on a stream.

    Parameters
    ----------
    stream
        A handle of the driver, or an object that has one: ``__cuda_stream__``, ``cuda_stream`` or ``ptr``.
    keys
        The batch, whose library has the current stream.
    engine
        Of the table.

    Raises
    ------
    ParameterError
        If it is no stream, or the table is not on a GPU.
    CaptureError
        If a CUDA graph captures the stream, and the library of the keys has no current stream: the verb would not be in
        the graph.
    """
    if not engine.device.startswith("cuda"):
        raise ParameterError(f"stream= is for tables on a GPU, and this one is on {engine.device}: leave it out")
    handle = _handle_of(stream)
    library: Any = library_of(keys)
    if hasattr(library, "on_stream") and library.is_on_gpu(keys):
        with library.on_stream(handle, device_index(engine.device)):
            yield
        return
    if engine.is_captured(handle):
        raise CaptureError(
            "a CUDA graph captures the stream, and can only have lookups of arrays of CuPy and PyTorch: call the verb "
            "outside of the capture; the table is as it was"
        )
    engine.order(handle, int)  # the next operation is behind the stream
    yield
    engine.wait(handle)


def _handle_of(stream: Any) -> int:
    """The driver's handle of a stream."""
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return int(stream)
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr"):  # of PyTorch and CuPy before they had the protocol
        if isinstance(handle := getattr(stream, name, None), int):
            return handle
    raise ParameterError(
        "stream must be a handle or an object with __cuda_stream__, such as a stream of CuPy or PyTorch, "
        f"got {stream!r}"
    )
