"""The home of all pairs: a storage of the CPU engine, in memory or in a file, as another engine sees it.

Addresses are those of the other engine's memory. Lookups go through page-locked memory, a piece of a batch at a time,
since new memory costs the host as much time as the lookup. An update goes as a whole, for it is one transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.abi import Op
from ...runtime.engine import Buffer, Engine
from ..storage import Storage

__all__ = ["Home", "Traffic"]

PIECE = 1 << 22
"""Keys that are looked up at once: enough for all threads of a host, and the answers stay in their caches."""

Bytes = npt.NDArray[np.uint8]


class _Room(NamedTuple):
    """Page-locked memory for the keys, the values and the flags of a piece."""

    n: int
    keys: Buffer
    values: Buffer
    flags: Buffer


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
    """

    def __init__(self, engine: Engine, storage: Storage, key_bytes: int, value_bytes: int) -> None:
        self.storage = storage
        self.traffic = Traffic()
        self._engine, self._key_bytes, self._value_bytes = engine, key_bytes, value_bytes
        self._rooms: list[_Room] = []

    def find(self, keys: int, n: int, default: bytes, stream: Any) -> tuple[Buffer, Buffer]:
        """Values and flags of ``n`` keys, in memory of the engine. Waits for each piece."""
        engine, width = self._engine, self._value_bytes
        values, flags = engine.allocate(max(1, n * width), stream), engine.allocate(max(1, n), stream)
        with self._room(min(n, PIECE)) as room:
            for at in range(0, n, PIECE):
                piece = min(PIECE, n - at)
                engine.copy(room.keys.ptr, keys + at * self._key_bytes, piece * self._key_bytes, stream)
                engine.synchronize(stream)
                out = room.values.ptr if width else 0
                self.storage.find(room.keys.ptr, piece, out, room.flags.ptr, default, None)
                engine.copy(values.ptr + at * width, room.values.ptr, piece * width, stream)
                engine.copy(flags.ptr + at, room.flags.ptr, piece, stream)
                engine.synchronize(stream)  # before the room has other answers, or another owner
        self.traffic.add(n * self._key_bytes, n * (width + 1))
        return values, flags

    def counts(self, keys: int, n: int, entry: str, stream: Any) -> Buffer:
        """What `Storage.counts` writes for ``n`` keys: uint32[n] in memory of the engine."""
        given, counts = self._to_host(keys, n * self._key_bytes, stream), np.empty(max(1, n), np.uint32)
        self.storage.counts(given.ctypes.data, n, counts.ctypes.data, None, entry)
        return self._engine.from_host(counts, stream)

    def update(
        self,
        keys: int,
        values: int,
        n: int,
        *,
        op: Op,
        kind: int,
        flags: int,
        held: int,
        unique: bool,
        stream: Any,
    ) -> None:
        """As `Storage.update`. Behind the update of the home, nothing can fail."""
        width = self._value_bytes
        given = self._to_host(keys, n * self._key_bytes, stream)
        with_values = self._to_host(values, n * width, stream) if values else None
        done, after = np.empty(max(1, n), np.uint8), np.empty(max(1, n * width), np.uint8)
        self.storage.update(
            given.ctypes.data,
            0 if with_values is None else with_values.ctypes.data,
            n,
            op=op,
            kind=kind,
            flags=done.ctypes.data,
            held=after.ctypes.data if held else 0,
            unique=unique,
            stream=None,
        )
        self._to_engine(flags, done[:n], stream)
        self._to_engine(held, after[: n * width], stream)
        self.traffic.add(n * (self._key_bytes + (width if values else 0)), n * (1 + (width if held else 0)))

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        """As `Storage.erase`."""
        given, done = self._to_host(keys, n * self._key_bytes, stream), np.empty(max(1, n), np.uint8)
        self.storage.erase(given.ctypes.data, n, done.ctypes.data, None)
        self._to_engine(flags, done[:n], stream)
        self.traffic.add(n * self._key_bytes, n)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int:
        """As `Storage.scan`."""
        keys, values = (np.empty(max(1, room * width), np.uint8) for width in (self._key_bytes, self._value_bytes))
        found = self.storage.scan(
            room, keys.ctypes.data if out_keys else 0, values.ctypes.data if out_values else 0, None
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
    def _room(self, n: int) -> Iterator[_Room]:
        """Room for ``n`` keys, which the caller has alone."""
        try:
            room = self._rooms.pop()
        except IndexError:
            room = None
        if room is None or room.n < n:
            allocate = self._engine.allocate_pinned
            room = _Room(n, *(allocate(max(1, n * width)) for width in (self._key_bytes, self._value_bytes, 1)))
        try:
            yield room
        finally:
            self._rooms.append(room)
