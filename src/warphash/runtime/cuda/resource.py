"""Memory of a GPU from the allocator of another library, in place of the engine's own pool.

A library that shares a GPU with tables keeps freed memory for itself, and so does the engine. With one allocator for
both, what one of them frees the other can take.

Order
-----
Allocators of CUDA libraries are ordered by streams: memory that was freed on a stream is given out again for work that
is put on this stream. The engine orders its work across streams. So it takes memory for a stream, and lets the stream
come behind its last operation; it gives memory back on a stream that is behind all of its operations. Those of CuPy and
PyTorch are asked for memory of the legacy default stream, whichever stream the work is on: they find out only for their
own arrays which streams use some memory.

The allocator is called without the engine's lock. It has a lock of its own, and the collector may free a buffer of the
engine while that lock is held.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from ...errors import ParameterError
from .handles import LEGACY_STREAM, StreamHandle

__all__ = ["ALIGNMENT_BYTES", "MemorySource", "Taken", "source_of"]

ALIGNMENT_BYTES = 256
"""What kernels expect of an address, and what CUDA's own allocators give."""


class Taken(NamedTuple):
    """Memory that an allocator has given.

    Attributes
    ----------
    ptr, nbytes
        Its address, and the size asked for.
    owner
        What the allocator answered.
    """

    ptr: int
    nbytes: int
    owner: Any


class MemorySource(Protocol):
    """An allocator, as the engine calls it.

    Attributes
    ----------
    given
        What the caller of `set_memory_resource` gave.
    stream
        The one stream that memory is taken and given back on; None for that of the work.
    """

    given: Any
    stream: int | None

    def take(self, nbytes: int, stream: int) -> Taken:
        """Memory for work on a stream. Raises `MemoryError` if there is too little."""
        ...

    def give_back(self, taken: Taken, stream: int) -> None:
        """Free memory behind the work that a stream was given."""
        ...


class _Resource:
    """An object with ``allocate(nbytes, stream=)`` and ``deallocate(ptr, nbytes, stream=)``.

    So are the memory resources of RMM and of cuda.core. RMM's answer an address, and cuda.core's a ``Buffer``, which is
    closed on a stream. Either takes streams of its own class alone.
    """

    stream: int | None = None

    def __init__(self, given: Any) -> None:
        self.given: Any = given
        roots = {base.__module__.partition(".")[0] for base in type(given).__mro__}
        self._stream: Callable[[int], Any] = StreamHandle
        if "rmm" in roots:
            made = import_module("rmm.pylibrmm.stream").Stream
            self._stream = lambda handle: made(StreamHandle(handle))
        elif "cuda" in roots:
            self._stream = import_module("cuda.core").Stream.from_handle

    def take(self, nbytes: int, stream: int) -> Taken:
        try:
            owner = self.given.allocate(nbytes, stream=self._stream(stream))
        except Exception as error:
            if "OUT_OF_MEMORY" not in str(error):  # as cuda.core says it, by an exception of its own
                raise
            raise MemoryError(str(error)) from None
        return Taken(int(getattr(owner, "handle", owner)), nbytes, owner)

    def give_back(self, taken: Taken, stream: int) -> None:
        if hasattr(taken.owner, "close"):
            taken.owner.close(self._stream(stream))
        else:
            self.given.deallocate(taken.ptr, taken.nbytes, stream=self._stream(stream))


class _Cupy:
    """The allocator that CuPy uses: its own pool, or what ``cupy.cuda.set_allocator`` was given."""

    given: Any = "cupy"
    stream: int | None = LEGACY_STREAM

    def __init__(self, index: int) -> None:
        self._cuda = import_module("cupy").cuda
        self._index = index

    def take(self, nbytes: int, stream: int) -> Taken:
        with self._cuda.Device(self._index), self._cuda.Stream.null:
            pointer = self._cuda.alloc(nbytes)
        return Taken(int(pointer.ptr), nbytes, pointer)

    def give_back(self, taken: Taken, stream: int) -> None:
        """Nothing: CuPy frees the memory with the last reference to it, which is the engine's."""


class _Torch:
    """The allocator that PyTorch uses: its own, or what ``torch.cuda.memory.change_current_allocator`` was given."""

    given: Any = "torch"
    stream: int | None = LEGACY_STREAM

    def __init__(self, index: int) -> None:
        self._cuda = import_module("torch").cuda
        self._cuda.init()
        self._index = index

    def take(self, nbytes: int, stream: int) -> Taken:
        try:
            ptr = self._cuda.caching_allocator_alloc(nbytes, self._index, self._cuda.default_stream(self._index))
        except self._cuda.OutOfMemoryError as error:
            raise MemoryError(str(error)) from None
        return Taken(int(ptr), nbytes, None)

    def give_back(self, taken: Taken, stream: int) -> None:
        self._cuda.caching_allocator_delete(taken.ptr)


NAMES: dict[str, Callable[[int], MemorySource]] = {"cupy": _Cupy, "torch": _Torch}
"""Libraries whose allocator has a name in place of an object, and what makes the source for a GPU."""


def source_of(resource: Any, index: int) -> MemorySource | None:
    """The allocator that a caller means; None for the engine's own pool.

    Raises
    ------
    ParameterError
        If it is none of those that `warphash.set_memory_resource` takes.
    """
    if resource is None:
        return None
    if isinstance(resource, str) and resource in NAMES:
        try:
            return NAMES[resource](index)
        except ImportError as error:
            raise ParameterError(f"resource {resource!r} needs that library, which is missing here: {error}") from None
    if callable(getattr(resource, "allocate", None)) and callable(getattr(resource, "deallocate", None)):
        return _Resource(resource)
    raise ParameterError(
        "resource must be 'cupy', 'torch', None, or an object with allocate(nbytes, stream=) and "
        f"deallocate(ptr, nbytes, stream=), such as a memory resource of RMM or of cuda.core, got {resource!r}"
    )
