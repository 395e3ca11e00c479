"""Engines whose kernels run in the memory of the process, each to its end, so that nothing is ever under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .engine import Buffer, Engine, KernelSpec, WindowBody
from .memory import bytes_at

__all__ = ["HostAnswer", "HostEngine"]


class HostAnswer:
    """An `engine.Answer` where nothing is ever under way.

    Parameters
    ----------
    memory
        Of the words.
    copy
        The engine's.
    """

    ready = True

    def __init__(self, memory: Buffer, copy: Callable[[int, int, int], None]) -> None:
        self._memory, self._copy = memory, copy
        self.words: npt.NDArray[np.uint64] = bytes_at(memory.ptr, memory.nbytes).view(np.uint64)
        self.ptr = memory.ptr

    def wait(self) -> None:
        """They are here."""

    def ask(self, ptr: int, stream: Any = None) -> None:
        self._copy(self.ptr, ptr, self.words.nbytes)

    def follow(self, stream: Any = None) -> None:
        """They are here."""


class HostEngine(Engine, Protocol):
    """An `Engine` but for its memory and its kernels. There is one memory, and ``stream`` is ignored."""

    shares_host_memory: bool = True
    lost_in_child: str | None = None
    clocks_mhz: Mapping[str, int] = MappingProxyType({})

    def recall(self, spec: KernelSpec) -> float | None:
        """None: nothing is measured here."""
        return None

    def remember(self, spec: KernelSpec, number: float) -> None:
        """Forget the number."""
        return None

    def allocate_pinned(self, nbytes: int) -> Buffer:
        return self.allocate(nbytes)

    def from_host(self, array: npt.NDArray[Any], stream: Any = None) -> Buffer:
        memory = self.allocate(array.nbytes)
        self.upload(memory.ptr, array)
        return memory

    def sweep(self, memory: int, nbytes: int, window_bytes: int, body: WindowBody, writes: bool, stream: Any) -> None:
        """As `Engine.sweep`, one window after another."""
        window = self.allocate(min(nbytes, window_bytes))
        for at in range(0, nbytes, window_bytes):
            size = min(window_bytes, nbytes - at)
            self.copy(window.ptr, memory + at, size)
            body(window.ptr, at, size)
            if writes:
                self.copy(memory + at, window.ptr, size)

    def reserve_heap(self, nbytes: int) -> None:
        """The C library's heap grows by itself."""
        return None

    def answer(self, words: int) -> HostAnswer:
        return HostAnswer(self.allocate_pinned(8 * words), self.copy)

    def is_captured(self, stream: Any) -> bool:
        """False: there are no graphs here."""
        return False

    def synchronize(self, stream: Any = None) -> None:
        """Nothing is ever under way."""
        return None
