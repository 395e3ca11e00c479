"""Host arrays to and from a device, through pinned memory, in pieces that overlap.

A copy from ordinary memory makes the driver stage it anyway, and waits for it. Here the host fills one pinned piece
while the device works on the other: its copy in, its kernels and its copy out follow each other on one stream. One
stream is enough, because the host's own copy into pinned memory is slower than the bus and the kernels together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .engine import Buffer
from .memory import PinnedBuffer

__all__ = ["PIECE_BYTES", "Body", "Mark", "Staging", "StagingEngine"]

PIECE_BYTES = 8 << 20
"""Of one pinned piece; there are two. Large against the cost of a launch, small against a batch."""

PIECE_ITEMS = 1 << 20
"""Elements of one piece of a pipeline."""

Array = npt.NDArray[Any]

Body = Callable[[int, list[int], list[int]], None]
"""Called as ``body(count, inputs, outputs)`` with device addresses: enqueues the work on one piece."""


class Mark(Protocol):
    """A place in a stream that the host can wait for."""

    def record(self, stream: Any = None) -> None: ...
    def wait(self) -> None:
        """Return when the device has passed the mark; at once if it was never recorded."""


class StagingEngine(Protocol):
    """What staging asks of an engine."""

    def allocate(self, nbytes: int, stream: Any = None) -> Buffer: ...
    def allocate_pinned(self, nbytes: int) -> PinnedBuffer: ...
    def copy(self, target: int, source: int, nbytes: int, stream: Any = None) -> None: ...
    def mark(self) -> Mark: ...
    def synchronize(self, stream: Any = None) -> None: ...


class _Piece:
    """One pinned piece, and the mark behind the last work that touches it."""

    def __init__(self, engine: StagingEngine, nbytes: int) -> None:
        self.pinned = engine.allocate_pinned(nbytes)
        self.mark = engine.mark()


class Staging:
    """Two pinned pieces of an engine, made at the first use and shared by all of its tables."""

    def __init__(self, engine: StagingEngine) -> None:
        self._engine = engine
        self._pieces: list[_Piece] = []
        self._lock = threading.Lock()

    def upload(self, target: int, array: Array, stream: Any = None) -> None:
        """Copy a contiguous host array to device memory; returns when ``array`` has been read.

        Parameters
        ----------
        target
            Device address of ``array.nbytes`` bytes.
        array
            Any shape and any type of fixed width.
        stream
            The copy is in order with other work on it.
        """
        source = _as_bytes(array)
        with self._lock:
            for number, start in enumerate(range(0, source.size, PIECE_BYTES)):
                part = source[start : start + PIECE_BYTES]
                piece = self._piece(number)
                piece.mark.wait()
                piece.pinned.array[: part.size] = part
                self._engine.copy(target + start, piece.pinned.ptr, part.size, stream)
                piece.mark.record(stream)

    def download(self, source: int, array: Array, stream: Any = None) -> None:
        """Copy device memory into a contiguous host array; waits for ``stream``."""
        target = _as_bytes(array)
        with self._lock:
            landing: tuple[_Piece, npt.NDArray[np.uint8]] | None = None
            for number, start in enumerate(range(0, target.size, PIECE_BYTES)):
                part = target[start : start + PIECE_BYTES]
                piece = self._piece(number)
                piece.mark.wait()
                self._engine.copy(piece.pinned.ptr, source + start, part.size, stream)
                piece.mark.record(stream)
                _land(landing)
                landing = piece, part
            _land(landing)

    def pipeline(self, inputs: Sequence[Array], outputs: Sequence[Array], body: Body, stream: Any = None) -> None:
        """Run ``body`` over host arrays, piece by piece, the copies of one piece beside the work on the other.

        Parameters
        ----------
        inputs
            Contiguous host arrays of one length (first axis).
        outputs
            Contiguous, writable host arrays of that length, to be filled.
        body
            Enqueues the work on a piece, on ``stream``. Pieces come in order and never overlap on the device.

        Notes
        -----
        Device memory for two pieces, however long the arrays are.
        """
        n = len(inputs[0])
        arrays = [*inputs, *outputs]
        row_bytes = [array[:1].nbytes for array in arrays]
        slots = [_Slot(self._engine, row_bytes, min(n, PIECE_ITEMS), stream) for _ in range(2 if n > PIECE_ITEMS else 1)]
        try:
            for number, start in enumerate(range(0, n, PIECE_ITEMS)):
                stop = min(n, start + PIECE_ITEMS)
                slot = slots[number % len(slots)]
                slot.land()
                slot.send([array[start:stop] for array in inputs])
                body(stop - start, slot.addresses[: len(inputs)], slot.addresses[len(inputs) :])
                slot.fetch([array[start:stop] for array in outputs])
                slots[(number + 1) % len(slots)].land()
        finally:
            self._engine.synchronize(stream)  # the device is done with the pieces before they are freed
        for slot in slots:
            slot.land()

    def _piece(self, number: int) -> _Piece:
        if not self._pieces:
            self._pieces = [_Piece(self._engine, PIECE_BYTES) for _ in range(2)]
        return self._pieces[number % 2]


class _Slot:
    """Pinned and device memory for one piece of a pipeline."""

    def __init__(self, engine: StagingEngine, row_bytes: list[int], items: int, stream: Any) -> None:
        self._engine = engine
        self._stream = stream
        self._pinned = [engine.allocate_pinned(max(1, nbytes * items)) for nbytes in row_bytes]
        self._device = [engine.allocate(max(1, nbytes * items), stream) for nbytes in row_bytes]
        self._mark = engine.mark()
        self._targets: list[npt.NDArray[np.uint8]] = []
        self.addresses = [buffer.ptr for buffer in self._device]

    def send(self, parts: list[Array]) -> None:
        for part, pinned, address in zip(map(_as_bytes, parts), self._pinned, self.addresses, strict=False):
            pinned.array[: part.size] = part
            self._engine.copy(address, pinned.ptr, part.size, self._stream)

    def fetch(self, parts: list[Array]) -> None:
        self._targets = [_as_bytes(part) for part in parts]
        for target, pinned, buffer in self._outgoing():
            self._engine.copy(pinned.ptr, buffer.ptr, target.size, self._stream)
        self._mark.record(self._stream)

    def land(self) -> None:
        """Wait for the piece, and copy what it brought into the caller's arrays."""
        self._mark.wait()
        for target, pinned, _ in self._outgoing():
            target[:] = pinned.array[: target.size]
        self._targets = []

    def _outgoing(self) -> list[tuple[npt.NDArray[np.uint8], PinnedBuffer, Buffer]]:
        first = len(self._pinned) - len(self._targets)
        return list(zip(self._targets, self._pinned[first:], self._device[first:], strict=True))


def _as_bytes(array: Array) -> npt.NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _land(landing: tuple[_Piece, npt.NDArray[np.uint8]] | None) -> None:
    if landing is not None:
        piece, part = landing
        piece.mark.wait()
        part[:] = piece.pinned.array[: part.size]
