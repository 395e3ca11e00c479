"""What the parts of a GPU's engine need of the engine: calls of the driver, in the order of streams, and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from ..memory import DeviceBuffer, PinnedBuffer

__all__ = ["Device", "Mark"]


class Mark(Protocol):
    """A place in a stream that the host can wait for."""

    def record(self, stream: Any = None) -> None:
        """Put it behind all work on ``stream`` so far."""

    def wait(self) -> None:
        """Return when the device has passed the mark; at once if it was never recorded."""


class Device(Protocol):
    """A `CudaEngine`, which says what each of these does."""

    _driver: Any
    device: str
    processors: int
    call: Callable[..., Any]
    order: Callable[..., Any]
    join: Callable[..., Any]
    wait_for: Callable[..., Any]
    kernel: Callable[..., Any]

    def allocate(self, nbytes: int, stream: Any = None) -> DeviceBuffer: ...
    def allocate_pinned(self, nbytes: int) -> PinnedBuffer: ...
    def copy(self, target: int, source: int, nbytes: int, stream: Any = None, *, mark: Any = None) -> None: ...
    def discard(self, function: Any, handle: Any) -> None: ...
    def mark(self) -> Mark: ...
    def refuse_launch(self, status: int) -> NoReturn: ...
    def synchronize(self, stream: Any = None) -> None: ...
