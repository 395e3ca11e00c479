"""Engines that refuse memory, and engines whose memory is counted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock


@dataclass
class Refusals:
    """How often memory was asked for, and refused."""

    asked: int = 0
    refused: int = 0


@contextlib.contextmanager
def refusing(engine: Any, first: int, *, once: bool = True) -> Iterator[Refusals]:
    """Refuse the ``first``-th allocation of an engine, and all behind it unless only ``once``."""
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
    """Bytes of all memory that was allocated meanwhile and lives still, and the most of them at one time."""

    now: int = 0
    peak: int = 0


class _Noted:
    """A buffer that tells when it goes."""

    def __init__(self, buffer: Any, held: Held) -> None:
        self.ptr, self.nbytes, self._buffer, self._held = buffer.ptr, buffer.nbytes, buffer, held
        held.now += self.nbytes
        held.peak = max(held.peak, held.now)

    def __del__(self) -> None:
        self._held.now -= self.nbytes


@contextlib.contextmanager
def held_memory(engine: Any) -> Iterator[Held]:
    """Count what is allocated on an engine, and given back."""
    allocate, held = engine.allocate, Held()
    with mock.patch.object(engine, "allocate", lambda nbytes, stream=None: _Noted(allocate(nbytes, stream), held)):
        yield held
