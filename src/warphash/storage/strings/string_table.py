"""Numbers for strings of any length, on a CPU (``kernels/strings/cpu/strings.cuh``).

A `StringTable` gives each distinct string a number and keeps its bytes. It forgets a string in `keep` only. So what
holds the numbers decides which strings are keys, and a string with a number that nobody holds is no key of anything:
it costs memory until the next `keep`.

**No update needs a recovery.** `StringTable.intern` first makes room as if every string of the batch were new, by one
assignment of a larger `State`. The kernel counts what it takes in memory of the state (``StringCounters``), so an
interrupt between two launches loses nothing: strings are in the index with their rows and bytes, or not at all.
"""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import CorruptFile, TableFull
from ...runtime import memory
from ...runtime.abi import STRING_SECRETS, StringBatch, StringCounters, StringIndex
from ...runtime.engine import Buffer, Engine
from ...runtime.source import STRINGS
from ..new_memory import filled

__all__ = [
    "NO_NUMBER",
    "NUMBER_BYTES",
    "ROW_BYTES",
    "Mark",
    "StringTable",
    "bytes_at",
    "copy_strings",
    "elements_without_nulls",
    "hashes_of",
    "packed",
    "string_offsets",
]

ROW_BYTES, NUMBER_BYTES = 16, 4
"""Of a ``StringRow``, an address and a length; and of a number."""

NO_NUMBER = 2**32 - 1
"""What stands for the number of a string that has none (``kernels/strings/cpu/strings.cuh``)."""

NULL_LENGTH, FREE_LENGTH = 2**64 - 1, 2**64 - 2
"""Lengths of no string: of a null, and of a number without a string."""

_Secrets = ctypes.c_uint64 * STRING_SECRETS

MOST_STRINGS = (1 << 31) - 2
"""Numbers have 31 bits, and 0 stands for none (``kernels/strings/cpu/strings.cuh``)."""

LEAST_BITS = 8
"""Of the index of an empty table: log2 of its slots."""

PIECE = 1 << 17
"""Fewest strings for which room is made at one time. A larger table makes room for as many as it has."""

LEAST_CHUNK, MOST_CHUNK = 1 << 12, 1 << 26
"""Bytes of a chunk of the arena: each is twice the one before it. A larger piece has a chunk of its size."""


class Mark(NamedTuple):
    """A moment in the life of a `StringTable`.

    Attributes
    ----------
    epoch
        How often strings were forgotten.
    taken
        Numbers that were given out since.
    """

    epoch: int
    taken: int


class State(NamedTuple):
    """What a commit replaces.

    Attributes
    ----------
    slots, bits
        The index, and log2 of its slots.
    strings, room
        A row for each number, and how many numbers have one.
    chunks, chunk_bytes
        The bytes of all strings, and the size of the last chunk, which takes new ones.
    free, free_count
        Numbers without a string, uint32, which are given out first.
    first
        The number to give out behind these.
    counters
        ``StringCounters``: what was given out since this state is there.
    kept_nbytes
        Of the strings that the last `StringTable.keep` has kept.
    epoch
        How often strings were forgotten.
    """

    slots: Buffer
    bits: int
    strings: Buffer
    room: int
    chunks: tuple[Buffer, ...]
    chunk_bytes: int
    free: Buffer | None
    free_count: int
    first: int
    counters: Buffer
    kept_nbytes: int = 0
    epoch: int = 0


class StringTable:
    """The numbers of strings.

    Parameters
    ----------
    engine
        Of the CPU.
    seed
        Of `hashes`, by which a bounded table decides who leaves. The index has secrets of its own, which no seed tells:
        nobody can make strings of one hash, and no number depends on a hash.
    capacity
        Strings to have an index and rows for, once there are more than one piece of a batch may bring. The index of
        fewer strings stays small, so a cache has more of it.
    hash_mask
        The bits of a hash that count.
    borrows
        No bytes are copied: whoever gives strings keeps them where they are until the table is gone.
    """

    def __init__(
        self, engine: Engine, seed: int, capacity: int = 0, hash_mask: int = 2**64 - 1, *, borrows: bool = False
    ) -> None:
        self._engine, self._seed, self._hash_mask, self._borrows = engine, seed, hash_mask, borrows
        self._secrets = _Secrets.from_buffer_copy(os.urandom(ctypes.sizeof(_Secrets)))
        self._seeded = _Secrets(*map(random.Random(seed).getrandbits, [64] * STRING_SECRETS))
        self._program = engine.program(STRINGS)
        self._capacity = min(capacity, MOST_STRINGS)
        few = min(capacity, PIECE)
        self._state = self._empty(_bits_for(few), max(1, few))
        self._is_restored = False  # others hold numbers, in a file that may be damaged

    # ---- figures
    @property
    def used(self) -> int:
        """Strings that have a number."""
        state = self._state
        return state.first - state.free_count + int(self._counters(state).taken)

    @property
    def nbytes(self) -> int:
        """Bytes of all memory."""
        state = self._state
        held = (state.slots, state.strings, state.counters, *state.chunks, *([state.free] if state.free else []))
        return sum(buffer.nbytes for buffer in held)

    @property
    def reserve_nbytes(self) -> int:
        """Bytes of rows that no string has, and of the chunk that no string has."""
        state = self._state
        rows = ROW_BYTES * (state.room - self.used)
        return rows + state.chunk_bytes - int(self._counters(state).bytes)

    @property
    def kept_nbytes(self) -> int:
        """Bytes of the strings that the last `keep` has kept."""
        return self._state.kept_nbytes

    @property
    def fresh_nbytes(self) -> int:
        """Bytes of the strings that have come since."""
        state = self._state
        full = sum(chunk.nbytes for chunk in state.chunks[:-1])
        return full + int(self._counters(state).bytes) - state.kept_nbytes

    # ---- strings to numbers, and back
    def look_up(self, rows: int, n: int, numbers: int) -> None:
        """Write the numbers of ``n`` strings, uint32; `NO_NUMBER` for a string that has none."""
        self._run("look_up", self._state, n, rows=rows, numbers=numbers)

    def intern(self, rows: int, n: int, numbers: int) -> None:
        """Write the numbers of ``n`` strings; a string that has none gets one, and its bytes are copied.

        Raises
        ------
        TableFull
            If there are more strings than numbers.
        MemoryError
            If there is no room. Strings of the batch may have numbers then, or after an interrupt.
        """
        for at, count in self._pieces(n):
            self._intern_piece(rows + at * ROW_BYTES, count, numbers + at * NUMBER_BYTES)

    def add(self, rows: int, n: int) -> npt.NDArray[np.uint32]:
        """Give numbers to those of ``n`` strings that have none: the new numbers. Raises as `intern`."""
        taken = int(self._counters(self._state).taken)
        numbers = None
        for at, count in self._pieces(n):
            if numbers is None or numbers.nbytes < count * NUMBER_BYTES:
                numbers = self._engine.allocate(count * NUMBER_BYTES)  # stays in a cache
            self._intern_piece(rows + at * ROW_BYTES, count, numbers.ptr)
        return self._given_since(taken)

    def _pieces(self, n: int) -> Iterator[tuple[int, int]]:
        """Where each piece of a batch begins, and its length: the strings for which room is made at one time."""
        at = 0
        while at < n:
            count = min(n - at, max(PIECE, self.used))
            yield at, count
            at += count

    def _intern_piece(self, rows: int, n: int, numbers: int) -> None:
        lengths = _rows_at(rows, n)[:, 1]
        nbytes = (int(lengths.sum()) + n) % 2**64  # the length of a null is -1
        self._prepare(n, 0 if self._borrows else nbytes)
        state = self._state
        self._counters(state).pending = 0
        self._run("intern", state, n, rows=rows, numbers=numbers)
        if self._counters(state).pending:
            self._run("resolve", state, n, numbers=numbers)

    def _given_since(self, taken: int) -> npt.NDArray[np.uint32]:
        """The numbers that were given out behind the first ``taken`` of this state."""
        state = self._state
        now, free = int(self._counters(state).taken), state.free_count
        fresh = np.arange(max(taken - free, 0), max(now - free, 0), dtype=np.uint32)
        fresh += np.uint32(state.first)
        if taken >= free or state.free is None:
            return fresh
        return np.concatenate([self._engine.to_host(state.free.ptr, np.uint32, free)[taken:now], fresh])

    def rows_of(self, numbers: int, n: int, rows: int) -> None:
        """Write where the strings of ``n`` numbers are.

        Raises
        ------
        CorruptFile
            If the numbers are those of a damaged file, and no strings have them.
        """
        self._check_known(numbers, n)
        self._run("rows_of", self._state, n, numbers=numbers, rows=rows)

    def hashes(self, numbers: int, n: int, out: int) -> None:
        """Write the hash of each string, uint64; 0 where the number is none."""
        if self._is_restored:
            held = self._engine.to_host(numbers, np.uint32, n)
            held = held[held != NO_NUMBER]
            self._check_known(held.ctypes.data, len(held))
        index = self._index(self._state, self._seeded)
        self._program.run("hashes", index, StringBatch(n=n, numbers=numbers, hashes=out), n, None)

    def all_rows(self, n: int, rows: int) -> bool:
        """Write where all ``n`` strings are, in the order of their numbers; False if some numbers are free."""
        state = self._state
        if state.free_count or self.used != n:
            return False
        self._engine.copy(rows, state.strings.ptr, n * ROW_BYTES)
        return True

    def _check_known(self, numbers: int, n: int) -> None:
        if self._is_restored and (unknown := self.unknown(numbers, n)):
            raise CorruptFile(
                f"the file of the table is damaged: {unknown:,} of {n:,} slots name strings that it lacks"
            )

    @property
    def _given(self) -> int:
        """How many numbers were ever given out."""
        state = self._state
        return int(state.first + max(0, self._counters(state).taken - state.free_count))

    def unknown(self, numbers: int, n: int) -> int:
        """How many of ``n`` numbers no string has."""
        state, given = self._state, self._given
        asked = self._engine.to_host(numbers, np.uint32, n)
        is_given = asked < given
        lengths = _rows_at(state.strings.ptr, given)[asked[is_given], 1]
        return n - int(np.count_nonzero(lengths != FREE_LENGTH))

    # ---- strings in a file
    @property
    def mark(self) -> Mark:
        """Now, for `numbers_since`."""
        return Mark(self._state.epoch, int(self._counters(self._state).taken))

    def numbers_since(self, mark: Mark | None) -> npt.NDArray[np.uint32]:
        """The numbers that were given out since a moment, of the present epoch; all with None."""
        if mark is not None:
            return self._given_since(mark.taken)
        lengths = _rows_at(self._state.strings.ptr, self._given)[:, 1]
        return np.flatnonzero(lengths != FREE_LENGTH).astype(np.uint32)

    def restore(
        self, numbers: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]
    ) -> None:
        """Have strings with these numbers alone.

        Parameters
        ----------
        numbers
            Where one repeats, its string repeats.
        lengths
            Of each string; -1 of a null.
        data
            The strings, one behind the other.

        Raises
        ------
        CorruptFile
            If these are no strings with numbers.
        """
        stored, n = np.maximum(lengths, 0), len(numbers)
        if n and (lengths.min() < -1 or int(numbers.max()) >= MOST_STRINGS or int(stored.sum()) != len(data)):
            raise CorruptFile("the file of the table is damaged: its strings have no possible lengths or numbers")
        engine = self._engine
        chunk = engine.allocate(max(1, len(data)))
        engine.copy(chunk.ptr, data.ctypes.data, len(data))
        element = np.full(int(numbers.max(initial=0)) + 1, -1)
        element[numbers] = np.arange(n)
        live = np.flatnonzero(element >= 0).astype(np.uint32)
        rows = np.empty((n, 2), np.uint64)
        rows[:, 0] = np.cumsum(stored) - stored
        rows[:, 0] += np.uint64(chunk.ptr)
        rows[:, 1] = lengths.view(np.uint64)
        state = self._state_of(live, rows[element[live]], chunk, len(data), 0)
        hashes = np.empty(len(live), np.uint64)
        batch = StringBatch(n=len(live), numbers=live.ctypes.data, hashes=hashes.ctypes.data)
        self._program.run("hashes", self._index(state, self._secrets), batch, len(live), None)
        slots = (hashes & np.uint64(self._hash_mask)) >> np.uint64(32) << np.uint64(32) | (live + np.uint64(1))
        self._run("move_slots", state, len(live), slots=slots.ctypes.data)
        self._state, self._is_restored = state, True

    # ---- strings that nobody needs
    def keep(self, numbers: int, n: int) -> None:
        """Forget all strings but those of ``n`` numbers, which may repeat.

        Raises
        ------
        MemoryError
            If there is no room for a copy of these; nothing has changed.
        """
        self._state = self._kept(numbers, n)

    def copy(self, numbers: int, n: int) -> StringTable:
        """A table with the strings of ``n`` numbers, which may repeat, and which the strings have there, too."""
        state = self._kept(numbers, n)
        twin = StringTable(self._engine, self._seed, 0, self._hash_mask)
        twin._secrets, twin._state = self._secrets, state
        return twin

    def clear(self) -> None:
        """Forget all strings; keep as much memory for the index and the rows."""
        state = self._state
        self._state = self._empty(state.bits, state.room)._replace(epoch=state.epoch + 1)

    # ---- memory
    def _empty(self, bits: int, room: int) -> State:
        engine = self._engine
        return State(
            slots=filled(engine, 8 << bits),
            bits=bits,
            strings=engine.allocate(ROW_BYTES * room),
            room=room,
            chunks=(engine.allocate(1),),
            chunk_bytes=0,
            free=None,
            free_count=0,
            first=0,
            counters=filled(engine, ctypes.sizeof(StringCounters)),
        )

    def _prepare(self, strings: int, nbytes: int) -> None:
        """Make room for so many new strings of so many bytes."""
        state, engine, used = self._state, self._engine, self.used
        if used + strings > MOST_STRINGS:
            raise TableFull(f"a table has at most {MOST_STRINGS:,} strings, got {strings:,} more than {used:,}")
        counters = self._counters(state)
        numbers = self._given
        if numbers + strings > state.room:
            room = max(numbers + strings, min(2 * state.room, MOST_STRINGS), self._capacity)
            rows = engine.allocate(ROW_BYTES * room)
            engine.copy(rows.ptr, state.strings.ptr, ROW_BYTES * numbers)
            state = state._replace(strings=rows, room=room)
        bits = _bits_for(used + strings)
        if bits > state.bits:
            bits = max(bits, _bits_for(self._capacity))
            slots = filled(engine, 8 << bits)
            grown = state._replace(slots=slots, bits=bits)
            self._run("move_slots", grown, 1 << state.bits, slots=state.slots.ptr)
            state = grown
        if counters.bytes + nbytes > state.chunk_bytes:
            size = max(nbytes, min(max(2 * state.chunk_bytes, LEAST_CHUNK), MOST_CHUNK))
            chunk = engine.allocate(size)
            fresh = filled(engine, ctypes.sizeof(StringCounters))
            StringCounters.from_address(fresh.ptr).taken = counters.taken
            state = state._replace(chunks=(*state.chunks, chunk), chunk_bytes=size, counters=fresh)
        self._state = state

    def _kept(self, numbers: int, n: int) -> State:
        """A state with the strings of ``n`` numbers alone, in memory of its own."""
        state, engine = self._state, self._engine
        self._check_known(numbers, n)
        is_live = np.zeros(self._given, np.bool_)
        is_live[engine.to_host(numbers, np.uint32, n)] = True
        live = np.flatnonzero(is_live).astype(np.uint32)
        n = len(live)
        rows = np.empty((n, 2), np.uint64)
        self.rows_of(live.ctypes.data, n, rows.ctypes.data)
        offsets = _offsets(rows)
        chunk = engine.allocate(max(1, int(offsets[-1])))
        copy_strings(engine, rows.ctypes.data, offsets.view(np.int64), chunk.ptr)
        rows[:, 0] = offsets[:-1]
        rows[:, 0] += np.uint64(chunk.ptr)
        kept = self._state_of(live, rows, chunk, int(offsets[-1]), self._given)
        self._run("move_slots", kept, 1 << state.bits, slots=state.slots.ptr)
        return kept._replace(epoch=state.epoch + 1)

    def _state_of(
        self, live: npt.NDArray[np.uint32], rows: npt.NDArray[np.uint64], chunk: Buffer, nbytes: int, ever: int
    ) -> State:
        """A state with some strings, and with nothing in its index.

        Parameters
        ----------
        live, rows
            The numbers, which rise, and the rows of their strings.
        chunk, nbytes
            The bytes of the strings.
        ever
            Numbers that were ever given out, for which there is room at least.
        """
        engine, n = self._engine, len(live)
        room = max(1, int(live[-1]) + 1 if n else 0)
        strings = engine.allocate(ROW_BYTES * max(room, ever))
        held = _rows_at(strings.ptr, max(room, ever))
        held[:] = 0, FREE_LENGTH
        held[live] = rows
        is_free = np.ones(room, np.bool_)
        is_free[live] = False
        free = np.flatnonzero(is_free).astype(np.uint32) if n else np.empty(0, np.uint32)
        bits = _bits_for(n)
        kept = State(
            slots=filled(engine, 8 << bits),
            bits=bits,
            strings=strings,
            room=max(room, ever),
            chunks=(chunk,),
            chunk_bytes=nbytes,
            free=engine.from_host(free) if len(free) else None,
            free_count=len(free),
            first=room if n else 0,
            counters=filled(engine, ctypes.sizeof(StringCounters)),
            kept_nbytes=nbytes,
        )
        StringCounters.from_address(kept.counters.ptr).bytes = nbytes
        return kept

    # ---- kernels
    @staticmethod
    def _counters(state: State) -> StringCounters:
        """The counts of a state, as kernels write them."""
        return StringCounters.from_address(state.counters.ptr)

    def _run(self, entry: str, state: State, n: int, **batch: int) -> None:
        self._program.run(entry, self._index(state, self._secrets), StringBatch(n=n, **batch), n, None)

    def _index(self, state: State, secrets: ctypes.Array[ctypes.c_uint64]) -> StringIndex:
        return StringIndex(
            slots=state.slots.ptr,
            bits=state.bits,
            strings=state.strings.ptr,
            arena=0 if self._borrows else state.chunks[-1].ptr,
            free_numbers=state.free.ptr if state.free else 0,
            free_count=state.free_count,
            first=state.first,
            counters=state.counters.ptr,
            hash_mask=self._hash_mask,
            secrets=secrets,
        )


def packed(
    engine: Engine, rows: int, n: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], npt.NDArray[np.bool_] | None]:
    """Copy ``n`` strings: ``offsets[n + 1]``, the bytes, and which strings are no null, bool[n], or None if all are."""
    offsets = string_offsets(rows, n)
    data = np.empty(int(offsets[-1]), np.uint8)
    copy_strings(engine, rows, offsets, data.ctypes.data)
    valid = _rows_at(rows, n)[:, 1] != NULL_LENGTH
    return offsets, data, None if valid.all() else valid


def copy_strings(engine: Engine, rows: int, offsets: npt.NDArray[np.int64], to: int) -> None:
    """Copy strings to an address, each to its offset behind it."""
    n = len(offsets) - 1
    if n:
        batch = StringBatch(n=n, rows=rows, offsets=offsets.ctypes.data, bytes=to)
        engine.program(STRINGS).run("copy_bytes", StringIndex(), batch, n, None)


def string_offsets(rows: int, n: int) -> npt.NDArray[np.int64]:
    """Where each of ``n`` strings begins if they lie one behind the other, and where the last one ends."""
    return _offsets(_rows_at(rows, n)).view(np.int64)


def hashes_of(engine: Engine, rows: int, n: int, secrets: Sequence[int], out: int) -> None:
    """Write a hash of each of ``n`` strings, uint64, that depends on its bytes and on the secrets alone."""
    numbers = np.arange(min(n, PIECE), dtype=np.uint32)
    for at in range(0, n, PIECE):
        count = min(PIECE, n - at)
        index = StringIndex(strings=rows + ROW_BYTES * at, secrets=_Secrets(*secrets))
        batch = StringBatch(n=count, numbers=numbers.ctypes.data, hashes=out + 8 * at)
        engine.program(STRINGS).run("hashes", index, batch, count, None)


def _offsets(rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Where each string begins if they lie one behind the other, and where the last one ends."""
    offsets = np.empty(len(rows) + 1, np.uint64)
    offsets[0] = 0
    np.cumsum(rows[:, 1], out=offsets[1:])
    nulls = rows[:, 1] == NULL_LENGTH
    if nulls.any():  # each has counted as -1
        offsets[1:] += np.cumsum(nulls, dtype=np.uint64)
    return offsets


def elements_without_nulls(rows: int, n: int) -> npt.NDArray[np.intp]:
    """Which of ``n`` strings are no nulls."""
    return np.flatnonzero(_rows_at(rows, n)[:, 1] != NULL_LENGTH)


def bytes_at(address: int, n: int, width: int) -> npt.NDArray[np.uint8]:
    """The bytes of ``n`` rows at an address, uint8[n, width]; none where there is no address."""
    if not (address and n and width):
        return np.empty((n, width), np.uint8)
    return memory.bytes_at(address, n * width).reshape(n, width)


def _rows_at(address: int, n: int) -> npt.NDArray[np.uint64]:
    """The rows at an address: of each, the address and the length of a string."""
    return bytes_at(address, n, ROW_BYTES).view(np.uint64)


def _bits_for(strings: int) -> int:
    """Log2 of the slots for so many strings: at most five of eight slots are in use."""
    return max(LEAST_BITS, (-(-8 * strings // 5) - 1).bit_length() if strings else 0)
