"""Host arrays to and from a device, through pinned memory, in pieces that overlap.

A copy from ordinary memory makes the driver stage it anyway, and waits for it. Here the host fills one pinned piece
while the device works on the other: its copy in, its kernels and its copy out follow each other on one stream. One
stream is enough, because the host's own copy into pinned memory is slower than the bus and the kernels together, even
shared out over a few threads.

A thread that waits for the device runs handlers of signals, and a handler may copy arrays, too. So a thread that has
the pieces gets others for what it does meanwhile (`_Pair.turn`).
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from .device import Device

__all__ = ["PIECE_BYTES", "Body", "Staging"]

PIECE_BYTES = 8 << 20
"""Of one pinned piece; there are two. Large against the cost of a launch, small against a batch."""

FIRST_PIECE_BYTES = 256 << 10
"""Of a piece until an array needs more: the driver takes 4 ms to pin `PIECE_BYTES` (H200), and a first small batch
would wait for four such pieces."""

SMALL_BYTES = 4096
"""Up to here an array comes down through a pinned page of its own: the reports of updates, above all."""

ALIGNMENT = 256
"""Of each array inside a piece, in bytes."""

COPY_THREADS = min(4, os.cpu_count() or 1)
"""One thread copies at a quarter of the bus's rate or less."""

SHARED_BYTES = 2 << 20
"""From here on a host copy is worth sharing out: waking the threads costs as much as copying 0.2 MB."""

Array = npt.NDArray[Any]

Body = Callable[[int, list[int], list[int]], None]
"""Called as ``body(count, inputs, outputs)`` with device addresses: enqueues the work on one piece."""


class _Piece:
    """Pinned memory, and the mark behind the last work that touches it."""

    def __init__(self, engine: Device, nbytes: int) -> None:
        self.pinned = engine.allocate_pinned(nbytes)
        self.mark = engine.mark()


class _Turns:
    """The turns of threads, each of which waits for the one before."""

    def __init__(self) -> None:
        self._lock, self._is_taken = threading.RLock(), False

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """A turn: whether its thread has an earlier turn, which a handler of a signal has interrupted."""
        with self._lock:
            is_nested = self._is_taken
            try:
                self._is_taken = True
                yield is_nested
            finally:
                self._is_taken = is_nested


class _Pair:
    """Two pieces, made when they are needed, for one copy or pipeline at a time."""

    def __init__(self, engine: Device) -> None:
        self._turns, self._engine = _Turns(), engine
        self._pieces: list[_Piece | None] = [None, None]

    @contextmanager
    def turn(self) -> Iterator[_Pair]:
        """The pair, for one thread at a time; another pair for a thread that has this one."""
        with self._turns.turn() as is_nested:
            yield _Pair(self._engine) if is_nested else self

    def piece(self, number: int, nbytes: int) -> _Piece:
        """The piece for a part of an array. It has ``nbytes`` at least, which are `PIECE_BYTES` at most."""
        piece = self._pieces[number % 2]
        if piece is None or piece.pinned.nbytes < nbytes:
            size = FIRST_PIECE_BYTES if nbytes <= FIRST_PIECE_BYTES else PIECE_BYTES
            self._pieces[number % 2] = piece = _Piece(self._engine, size)
        return piece


class _Landing:
    """A pinned page for small arrays. Whoever has a turn waits for the copy: nothing is in flight there before."""

    def __init__(self, engine: Device) -> None:
        self._turns, self._engine = _Turns(), engine
        self._page = _Piece(engine, SMALL_BYTES)

    def download(self, source: int, target: npt.NDArray[np.uint8], stream: Any) -> None:
        nbytes = target.size
        with self._turns.turn() as is_nested:
            page = _Piece(self._engine, SMALL_BYTES) if is_nested else self._page
            self._engine.copy(page.pinned.ptr, source, nbytes, stream, mark=page.mark)
            page.mark.wait()
            target[:] = page.pinned.array[:nbytes]


class Staging:
    """The pinned pieces of an engine, shared by all of its tables."""

    def __init__(self, engine: Device) -> None:
        self._engine = engine
        self._landing = _Landing(engine)
        self._copies = _Pair(engine)
        self._pipelines = _Pair(engine)  # apart, so that the body of a pipeline may copy

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
        with self._copies.turn() as pair:
            for number, start in enumerate(range(0, source.size, PIECE_BYTES)):
                part = source[start : start + PIECE_BYTES]
                piece = pair.piece(number, part.size)
                piece.mark.wait()
                _move(piece.pinned.array[: part.size], part)
                self._engine.copy(target + start, piece.pinned.ptr, part.size, stream, mark=piece.mark)

    def download(self, source: int, array: Array, stream: Any = None) -> None:
        """Copy device memory into a contiguous host array; waits for ``stream``."""
        target = _as_bytes(array)
        if target.size <= SMALL_BYTES:
            self._landing.download(source, target, stream)
            return
        with self._copies.turn() as pair:
            landing: tuple[_Piece, npt.NDArray[np.uint8]] | None = None
            for number, start in enumerate(range(0, target.size, PIECE_BYTES)):
                part = target[start : start + PIECE_BYTES]
                piece = pair.piece(number, part.size)
                piece.mark.wait()
                self._engine.copy(piece.pinned.ptr, source + start, part.size, stream, mark=piece.mark)
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
        Takes up to ``2 * PIECE_BYTES`` of device memory, however long the arrays are.
        """
        n = len(inputs[0])
        if n == 0:
            return
        row_bytes = [array[:1].nbytes for array in (*inputs, *outputs)]
        items = max(1, min(n, (PIECE_BYTES - ALIGNMENT * len(row_bytes)) // sum(row_bytes)))
        with self._pipelines.turn() as pair:
            make = functools.partial(_Lane, self._engine, pair, row_bytes, items, stream)
            lanes = [make(number) for number in range(1 if items == n else 2)]
            try:
                for number, start in enumerate(range(0, n, items)):
                    lane, other = lanes[number % len(lanes)], lanes[(number + 1) % len(lanes)]
                    stop = min(n, start + items)
                    lane.send([array[start:stop] for array in inputs])
                    body(stop - start, lane.addresses[: len(inputs)], lane.addresses[len(inputs) :])
                    lane.fetch([array[start:stop] for array in outputs])
                    other.land()
            finally:
                self._engine.synchronize(stream)  # nothing is in flight to or from the pieces, whatever happened
            for lane in lanes:
                lane.land()


class _Lane:
    """One pinned piece cut up for the arrays of a pipeline, and device memory cut up alike."""

    def __init__(self, engine: Device, pair: _Pair, row_bytes: list[int], items: int, stream: Any, number: int) -> None:
        sizes = [-(-nbytes * items // ALIGNMENT) * ALIGNMENT for nbytes in row_bytes]
        self._offsets, total = [sum(sizes[:at]) for at in range(len(sizes))], sum(sizes)
        is_wide = total > PIECE_BYTES  # rows wider than a piece
        self._piece = _Piece(engine, total) if is_wide else pair.piece(number, total)
        self._device = engine.allocate(total, stream)
        self._engine = engine
        self._stream = stream
        self._targets: list[npt.NDArray[np.uint8]] = []
        self.addresses = [self._device.ptr + offset for offset in self._offsets]

    def send(self, parts: list[Array]) -> None:
        for part, offset, address in zip(map(_as_bytes, parts), self._offsets, self.addresses, strict=False):
            _move(self._piece.pinned.array[offset : offset + part.size], part)
            self._engine.copy(address, self._piece.pinned.ptr + offset, part.size, self._stream)

    def fetch(self, parts: list[Array]) -> None:
        self._targets = [_as_bytes(part) for part in parts]
        for target, offset in self._outgoing():
            self._engine.copy(self._piece.pinned.ptr + offset, self._device.ptr + offset, target.size, self._stream)
        self._piece.mark.record(self._stream)

    def land(self) -> None:
        """Wait for the piece, and copy what it brought into the caller's arrays."""
        self._piece.mark.wait()
        for target, offset in self._outgoing():
            _move(target, self._piece.pinned.array[offset : offset + target.size])
        self._targets = []

    def _outgoing(self) -> list[tuple[npt.NDArray[np.uint8], int]]:
        first = len(self._offsets) - len(self._targets)
        return list(zip(self._targets, self._offsets[first:], strict=True))


def _as_bytes(array: Array) -> npt.NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _land(landing: tuple[_Piece, npt.NDArray[np.uint8]] | None) -> None:
    if landing is not None:
        piece, part = landing
        piece.mark.wait()
        _move(part, piece.pinned.array[: part.size])


@functools.cache
def _copiers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(COPY_THREADS, "warphash-copy")


def _move(target: npt.NDArray[np.uint8], source: npt.NDArray[np.uint8]) -> None:
    """Copy in host memory; NumPy lets go of the interpreter's lock meanwhile."""
    if source.size < SHARED_BYTES or COPY_THREADS == 1:
        np.copyto(target, source)
        return
    step = -(-source.size // COPY_THREADS)
    parts = [slice(start, start + step) for start in range(0, source.size, step)]
    list(_copiers().map(lambda part: np.copyto(target[part], source[part]), parts))
