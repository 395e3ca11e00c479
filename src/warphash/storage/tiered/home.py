"""The home of all pairs: a storage of the CPU engine, in memory or in a file, as another engine sees it.

Addresses are those of the other engine's memory. Lookups go through page-locked memory, a piece of a batch at a time,
since new memory costs the host as much time as the lookup. An update goes as a whole, for it is one transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arrays.adapters.numpy import address_of
from ...runtime.engine import Buffer, Engine
from ..batch import Batch
from ..rows import Rows

__all__ = ["PIECE", "Home", "Room", "Traffic"]

PIECE = 1 << 23
"""Keys that are looked up at once: enough for all threads of a host, and the answers stay in their caches."""

_LEAST_ROOM = 1 << 12
"""Keys that a room is for at least, so that small batches of all sizes share it."""

Bytes = npt.NDArray[np.uint8]


class Room:
    """Page-locked memory for the keys, the values and the flags of up to ``n`` keys on their way home and back."""

    def __init__(self, engine: Engine, n: int, key_bytes: int, value_bytes: int) -> None:
        self.n = n
        self.keys, self.values, self.flags = (
            engine.allocate_pinned(max(1, n * width)) for width in (key_bytes, value_bytes, 1)
        )
        self.arrived = engine.answer(1)  # of which only the place in the stream is used


class Traffic:
    """Bytes that went to the home, and came from there."""

    def __init__(self) -> None:
        self.to_home = self.from_home = 0
        self._lock = threading.Lock()

    def add(self, to_home: int, from_home: int) -> None:
        """Count some bytes more. Several threads may look up at once."""
        with self._lock:
            self.to_home += to_home
            self.from_home += from_home


class Home:
    """A storage of the CPU engine, by addresses of another engine.

    Parameters
    ----------
    engine
        The other engine.
    storage
        On the CPU engine.
    key_bytes, value_bytes
        Width of a row; ``value_bytes`` may be 0.
    in_file
        The storage is in a file.
    """

    def __init__(self, engine: Engine, storage: Rows, key_bytes: int, value_bytes: int, in_file: bool = False) -> None:
        self.storage = storage
        self.traffic = Traffic()
        self._in_file = in_file
        self._engine, self._key_bytes, self._value_bytes = engine, key_bytes, value_bytes
        self._rooms: list[Room] = []

    @property
    def is_inherited(self) -> bool:
        """Whether the storage is in a file that the process which this one was forked from has open."""
        return self._in_file and bool(self._store_in_file.is_inherited)

    def check_process(self) -> None:
        """Raise `PathError` if the storage is in a file that only another process may change."""
        if self._in_file:
            self._store_in_file.check_process()

    @property
    def _store_in_file(self) -> Any:
        return self.storage.store

    def find(self, keys: int, n: int, default: bytes, stream: Any) -> tuple[Buffer, Buffer]:
        """Values and flags of ``n`` keys, in memory of the engine. Waits for each piece."""
        width = self._value_bytes
        values = self._engine.allocate(max(1, n * width), stream)
        flags = self._engine.allocate(max(1, n), stream)
        with self.room(min(n, PIECE), stream) as room:
            for at in range(0, n, PIECE):
                piece = min(PIECE, n - at)
                self.send(room, keys + at * self._key_bytes, piece, stream)
                self.answer(room, piece, values.ptr + at * width, flags.ptr + at, default, stream)
        return values, flags

    def present(self, keys: int, n: int, flags: int, stream: Any) -> None:
        """Write to ``flags`` which of ``n`` keys are there. Waits. This is no lookup of the caller, so not counted."""
        with self.room(min(n, PIECE), stream) as room:
            for at in range(0, n, PIECE):
                piece = min(PIECE, n - at)
                self.send(room, keys + at * self._key_bytes, piece, stream)
                room.arrived.wait()
                self.storage.present(room.keys.ptr, piece, room.flags.ptr, None)
                self._engine.copy(flags + at, room.flags.ptr, piece, stream)

    def send(self, room: Room, keys: int, n: int, stream: Any) -> None:
        """Begin to copy ``n`` keys to a room, which holds as many."""
        self._engine.copy(room.keys.ptr, keys, n * self._key_bytes, stream)
        room.arrived.follow(stream)

    def answer(self, room: Room, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        """Look up the keys that were sent to a room, and begin to copy values and flags to two addresses.

        Waits for the keys, and for nothing that was launched behind `send`.
        """
        width = self._value_bytes
        room.arrived.wait()
        self.storage.find(room.keys.ptr, n, room.values.ptr if width else 0, room.flags.ptr, default, None)
        self._engine.copy(values, room.values.ptr, n * width, stream)
        self._engine.copy(flags, room.flags.ptr, n, stream)
        self.traffic.add(n * self._key_bytes, n * (width + 1))

    def counts(self, keys: int, n: int, entry: str, stream: Any) -> Buffer:
        """What `Rows.counts` writes for ``n`` keys: uint32[n] in memory of the engine."""
        given, counts = self._to_host(keys, n * self._key_bytes, stream), np.empty(max(1, n), np.uint32)
        self.storage.counts(address_of(given), n, address_of(counts), None, entry)
        return self._engine.from_host(counts, stream)

    def update(self, batch: Batch) -> None:
        """As `Rows.update`. Behind the update of the home, nothing can fail."""
        width, n, stream = self._value_bytes, batch.n, batch.stream
        given = self._to_host(batch.keys, n * self._key_bytes, stream)
        with_values = self._to_host(batch.values, n * width, stream) if batch.values else None
        done, after = np.empty(max(1, n), np.uint8), np.empty(max(1, n * width), np.uint8)
        at_home = batch._replace(keys=address_of(given), flags=address_of(done), stream=None)
        values, held = 0 if with_values is None else address_of(with_values), address_of(after) if batch.held else 0
        self.storage.update(at_home._replace(values=values, held=held))
        self._to_engine(batch.flags, done[:n], stream)
        self._to_engine(batch.held, after[: n * width], stream)
        self.traffic.add(n * (self._key_bytes + (width if batch.values else 0)), n * (1 + (width if batch.held else 0)))

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        """As `Rows.erase`."""
        given, done = self._to_host(keys, n * self._key_bytes, stream), np.empty(max(1, n), np.uint8)
        self.storage.erase(address_of(given), n, address_of(done), None)
        self._to_engine(flags, done[:n], stream)
        self.traffic.add(n * self._key_bytes, n)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int:
        """As `Rows.scan`."""
        keys, values = (np.empty(max(1, room * width), np.uint8) for width in (self._key_bytes, self._value_bytes))
        found = self.storage.scan(
            room, address_of(keys) if out_keys else 0, address_of(values) if out_values else 0, None
        )
        n = min(found, room)
        self._to_engine(out_keys, keys[: n * self._key_bytes], stream)
        self._to_engine(out_values, values[: n * self._value_bytes], stream)
        return found

    def _to_host(self, at: int, nbytes: int, stream: Any) -> Bytes:
        return self._engine.to_host(at, np.uint8, nbytes, stream) if nbytes else np.empty(1, np.uint8)

    def _to_engine(self, at: int, rows: Bytes, stream: Any) -> None:
        if at and rows.nbytes:
            self._engine.upload(at, rows, stream)

    @contextmanager
    def room(self, n: int, stream: Any) -> Iterator[Room]:
        """Room for ``n`` keys, which the caller has alone. Waits at the end for what goes on there."""
        try:
            room = self._rooms.pop()
        except IndexError:
            room = None
        if room is None or room.n < n:
            room = Room(self._engine, max(n, _LEAST_ROOM), self._key_bytes, self._value_bytes)
        try:
            yield room
        finally:
            self._engine.synchronize(stream)
            self._rooms.append(room)
