"""Make an engine refuse memory, or count its memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock


@dataclass
class Refusals:
    """Number of allocations that were requested, and that were refused."""

    asked: int = 0
    refused: int = 0


@contextlib.contextmanager
def refusing(engine: Any, first: int, *, once: bool = True) -> Iterator[Refusals]:
    """Refuse the ``first``-th allocation of an engine, and also all that follow unless ``once`` is True."""
    allocate, count = engine.allocate, Refusals()

    def refuse(nbytes: int, stream: Any = None) -> Any:
        count.asked += 1
        if count.asked == first or (count.asked > first and not once):
            count.refused += 1
            raise MemoryError(f"allocation {count.asked} of {nbytes:,} bytes was refused")
        return allocate(nbytes, stream)

    with mock.patch.object(engine, "allocate", refuse):
        yield count


@dataclass
class Held:
    """Bytes that were allocated during the count and are not freed yet, and the peak of these bytes."""

    now: int = 0
    peak: int = 0


class _Noted:
    """A buffer that reports when it is freed."""

    def __init__(self, buffer: Any, held: Held) -> None:
        self.ptr, self.nbytes, self._buffer, self._held = buffer.ptr, buffer.nbytes, buffer, held
        held.now += self.nbytes
        held.peak = max(held.peak, held.now)

    def __del__(self) -> None:
        self._held.now -= self.nbytes


@contextlib.contextmanager
def held_memory(engine: Any) -> Iterator[Held]:
    """Count the bytes that an engine allocates and frees."""
    allocate, held = engine.allocate, Held()
    with mock.patch.object(engine, "allocate", lambda nbytes, stream=None: _Noted(allocate(nbytes, stream), held)):
        yield held
