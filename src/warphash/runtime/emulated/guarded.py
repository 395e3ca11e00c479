"""Host memory that notices what nobody should do to device memory.

Layout of one allocation, in pages; `#` cannot be touched, `x` holds a pattern that must stay::

    | ######## | xxxx [ the memory asked for ] xx | ######## |
                      ^ aligned to 16             ^ less than 16 bytes from the end

New memory holds the pattern too. Freed memory cannot be touched until `QUARANTINE` more allocations have been freed.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass

__all__ = ["DEVICE_BYTES", "GuardedMemory"]

DEVICE_BYTES = 1 << 30
"""What the emulated device has: beyond, `MemoryError`, as on a real one."""

QUARANTINE = 256
"""Freed allocations that stay untouchable: enough for those of a few operations."""

KEPT_BYTES = 1 << 16
"""Mappings up to this size are used again, with their pages; larger ones go back to the system."""

ALIGNMENT = 16
"""The widest access of a lane; a larger one would leave a gap before the guard page."""

PATTERN = 0xA5
PAGE = mmap.PAGESIZE
_UNTOUCHED = bytes([PATTERN]) * PAGE

_PROT_NONE, _PROT_READ_WRITE = 0, 3
_MAP_FIXED, _MAP_PRIVATE_ANONYMOUS = 0x10, 0x22


@dataclass(frozen=True)
class _Allocation:
    """Addresses: of the mapping, of the memory in it, and its size."""

    base: int
    mapped: int
    start: int
    nbytes: int

    @functools.cached_property
    def margins(self) -> list[tuple[int, int]]:
        """First address and length of what lies between the guards and the memory, where there is any."""
        end = self.start + self.nbytes
        spans = ((self.base + PAGE, self.start), (end, self.base + self.mapped - PAGE))
        return [(first, last - first) for first, last in spans if last > first]


class GuardedMemory:
    """All allocations of one engine."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        self._libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        self.renew_lock()
        self._waiting: list[int] = []
        self._live: OrderedDict[int, _Allocation] = OrderedDict()
        self._freed: deque[_Allocation] = deque()
        self._spare: dict[int, list[int]] = {}  # mappings that come out of quarantine, by their size
        self.used = 0

    def renew_lock(self) -> None:
        """Forget the thread that has the lock."""
        self._lock = threading.RLock()  # reentrant: a buffer may be collected, and given back, inside an operation
        self._reading = False

    def take(self, nbytes: int) -> int:
        """Address of new memory.

        Raises
        ------
        MemoryError
            Where the device would have none left.
        """
        size = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        mapped = -(-size // PAGE) * PAGE + 2 * PAGE
        with self._lock:
            if self.used + nbytes > DEVICE_BYTES:
                free = DEVICE_BYTES - self.used
                raise MemoryError(f"the emulated device has {free:,} bytes free, and {nbytes:,} are needed")
            spare = self._spare.get(mapped)
            base = spare.pop() if spare else self._libc.mmap(None, mapped, _PROT_NONE, _MAP_PRIVATE_ANONYMOUS, -1, 0)
            if base in (None, ctypes.c_void_p(-1).value):
                raise MemoryError(f"the system refused {mapped:,} bytes of memory")
            if self._libc.mprotect(base + PAGE, mapped - 2 * PAGE, _PROT_READ_WRITE):
                self._libc.munmap(base, mapped)
                raise MemoryError("the system allows no more mappings")
            ctypes.memset(base + PAGE, PATTERN, mapped - 2 * PAGE)
            start = base + mapped - PAGE - size
            self._live[start] = _Allocation(base, mapped, start, nbytes)
            self.used += nbytes
            return int(start)

    def give_back(self, ptr: int) -> None:
        """Make memory untouchable."""
        with self._lock:
            if self._reading:
                self._waiting.append(ptr)
                return
            gone = self._live.pop(ptr)
            self.used -= gone.nbytes
            if gone.mapped > KEPT_BYTES:
                # A fresh mapping in its place gives the pages back to the system, and keeps the addresses taken.
                self._libc.mmap(gone.base, gone.mapped, _PROT_NONE, _MAP_FIXED | _MAP_PRIVATE_ANONYMOUS, -1, 0)
            else:
                self._libc.mprotect(gone.base, gone.mapped, _PROT_NONE)
            self._freed.append(gone)
            if len(self._freed) > QUARANTINE:
                old = self._freed.popleft()
                spare = self._spare.setdefault(old.mapped, [])
                if old.mapped > KEPT_BYTES or len(spare) == QUARANTINE:
                    self._libc.munmap(old.base, old.mapped)
                else:
                    spare.append(old.base)

    def check(self, ptr: int, nbytes: int) -> None:
        """Raise `ValueError` unless ``nbytes`` at ``ptr`` lie in one live allocation."""
        if nbytes and not any(a.start <= ptr and ptr + nbytes <= a.start + a.nbytes for a in self._newest_first()):
            raise ValueError(f"{nbytes:,} bytes at {ptr:#x} are not device memory: {self.place(ptr)}")

    def place(self, address: int) -> str:
        """Where an address lies, in words."""
        for kind, allocations in (("", self._newest_first()), ("freed ", list(self._freed)[::-1])):
            for a in allocations:
                if a.base <= address < a.base + a.mapped:
                    if a.start <= address < a.start + a.nbytes:
                        where = f"byte {address - a.start:,} of"
                    elif address < a.start:
                        where = f"{a.start - address:,} bytes before"
                    else:
                        where = f"{address - a.start - a.nbytes:,} bytes behind the end of"
                    return f"address {address:#x} is {where} {kind}memory of {a.nbytes:,} bytes"
        return f"address {address:#x} is near no memory of the device"

    def overwritten(self) -> list[str]:
        """What was written between guard pages and live memory, in words; the pattern is put back."""
        with self._lock:
            self._reading = True
            differs = self._libc.memcmp
            said = [
                self._mend(first, length)
                for a in self._newest_first()
                for first, length in a.margins
                if differs(first, _UNTOUCHED, length)
            ]
            self._reading = False
            while self._waiting:
                self.give_back(self._waiting.pop())
        return said

    def _mend(self, first: int, length: int) -> str:
        """Put the pattern back from ``first`` on, and say where it was gone."""
        margin = ctypes.string_at(first, length)
        kept = length - len(margin.lstrip(_UNTOUCHED[:1]))
        ctypes.memset(first, PATTERN, length)
        return f"wrote outside its memory: {self.place(first + kept)}"

    def _newest_first(self) -> list[_Allocation]:
        with self._lock:
            return list(self._live.values())[::-1]
