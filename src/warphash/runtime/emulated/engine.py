"""The emulated engine: the CUDA kernels themselves on fibers, for tests where there is no GPU.

Each launch runs one schedule of the lanes, drawn from `schedule_seed` and from what is launched (the kernel, the hash
constants, the length and the random word of the batch), so that a test that fails does so again alone; other seeds give
other schedules (``kernels/platform/fibers.cuh``). Work is done when a call returns; ``stream`` is ignored.

Memory has guard pages before and behind every allocation, a known pattern wherever nobody should write, and stays
unreadable for a while after it is freed (`guarded.py`). What a kernel does outside its memory is an `EmulationError`
that names the kernel and the place.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from ...arrays.adapters.numpy import address_of
from ...errors import EngineUnavailable, WarphashError
from ...settings import SEED_VARIABLE
from .. import program_log
from ..abi import Launch
from ..compiler import KERNEL_OPTIONS, compiled
from ..engine import Buffer, KernelSpec, Program
from ..host_engine import HostEngine
from ..memory import DeviceBuffer
from ..source import translation_unit
from .guarded import GuardedMemory

__all__ = ["EmulatedEngine", "EmulationError", "engine", "schedule_seed"]

_BLOCK_LANES = 256
"""Lanes of every block: ``kBlockLanes`` in ``platform/fibers.cuh``."""

_launching = threading.Lock()
"""A library has one scheduler, and so one launch at a time; the process has one handler of faults."""

schedule_seed = int(os.environ.get(SEED_VARIABLE, "1"))
"""Seed of all schedules; 0 runs the lanes in order. Set it to see other schedules."""

OPTIONS = (*KERNEL_OPTIONS, "-Og", "-g1", "-fno-strict-aliasing")
"""With -O1 a library takes a third longer to compile, and tests that compile 57 of them took a quarter longer."""


class EmulationError(WarphashError, RuntimeError):
    """A kernel broke a rule of the device: a lost lane, a deadlock, an address that is not its own."""


@functools.cache
def engine() -> EmulatedEngine:
    """The one emulated engine of the process."""
    return EmulatedEngine()


_engines: WeakSet[EmulatedEngine] = WeakSet()
"""All engines of the process: tests make further ones."""


def _after_fork_in_child() -> None:
    """Forget the threads that had a lock: a thread may make a table, in no call, while another one forks."""
    global _launching
    _launching = threading.Lock()
    for made in _engines:
        made.renew_locks()


os.register_at_fork(after_in_child=_after_fork_in_child)


class EmulatedEngine(HostEngine):
    """A GPU of 4 blocks at a time and 1 GiB, on one thread.

    Parameters
    ----------
    rewrite
        Changes the source before it is compiled: how a test defines a macro or plants a bug.
    """

    device = "emulated"
    asynchronous: bool = True  # as far as a table can tell
    window_bytes: int = 2048  # so that tables of a few hundred keys have several
    reach_bytes: int = 1 << 30  # all of the memory
    lanes: int = 4
    stage_bytes: int = 0
    pool_blocks: int = 4  # every check of a table reads the whole pool

    def __init__(self, rewrite: Callable[[str], str] = str) -> None:
        self.memory = GuardedMemory()
        self._rewrite = rewrite
        self._programs: dict[KernelSpec, EmulatedProgram] = {}
        self._compiling = threading.Lock()
        _engines.add(self)

    def renew_locks(self) -> None:
        """Forget the threads that had a lock."""
        self._compiling = threading.Lock()
        self.memory.renew_lock()

    def program(self, spec: KernelSpec) -> Program:
        """The kernels of ``spec``: loaded, else from the cache on disk, else compiled (about 1 s)."""
        program_log.note(self.device, spec)
        with self._compiling:
            if spec not in self._programs:
                source = self._rewrite(translation_unit(spec, "emulated"))
                self._programs[spec] = EmulatedProgram(self, load(source))
            return self._programs[spec]

    def allocate(self, nbytes: int, stream: Any = None) -> Buffer:
        """Guarded memory, aligned to 16 bytes and full of a pattern. Raises `MemoryError` beyond 1 GiB."""
        return DeviceBuffer(self.memory.take(nbytes), nbytes, self.memory.give_back)

    def fill(self, target: int, byte: int, nbytes: int, stream: Any = None) -> None:
        self.memory.check(target, nbytes)
        ctypes.memset(target, byte, nbytes)

    def copy(self, target: int, source: int, nbytes: int, stream: Any = None) -> None:
        for address in (target, source):
            self.memory.check(address, nbytes)
        ctypes.memmove(target, source, nbytes)

    def to_host(self, ptr: int, dtype: npt.DTypeLike, count: int, stream: Any = None) -> npt.NDArray[Any]:
        array = np.empty(count, dtype)
        self.memory.check(ptr, array.nbytes)
        ctypes.memmove(address_of(array), ptr, array.nbytes)
        return array

    def upload(self, target: int, array: npt.NDArray[Any], stream: Any = None) -> None:
        self.memory.check(target, array.nbytes)
        ctypes.memmove(target, address_of(array), array.nbytes)


class EmulatedProgram:
    """A loaded library; its entry points are found by name.

    Attributes
    ----------
    lane_steps
        Of each entry that ran: its idle and its busy lanes, over all steps of its warps (``count_round``).
    """

    block_threads = 64  # fewer than a block has, so that both ways of an update are taken by batches of all sizes

    def __init__(self, engine: EmulatedEngine, library: ctypes.PyDLL) -> None:
        self._engine = engine
        self._library = library
        self._fault_address = library.warphash_fault_address
        self._fault_address.restype = ctypes.POINTER(ctypes.c_uint64)
        self._lane_rounds = library.warphash_lane_rounds
        self._lane_rounds.restype = ctypes.POINTER(ctypes.c_uint64)
        self.lane_steps: dict[str, tuple[int, int]] = {}

    def run(self, entry: str, table: ctypes.Structure, batch: Launch, n: int, stream: Any = None) -> None:
        """Run kernel ``entry`` over at most ``n`` elements, to its end.

        Raises
        ------
        EmulationError
            With the block, warp and lane that broke a rule, and the schedule; or if the kernel takes a table or a
            batch of another type.
        """
        if n <= 0:
            return
        function = getattr(self._library, f"warphash_{entry}")
        function.restype = ctypes.c_char_p
        seed = launch_seed(entry, table, batch)
        given = [part for it in (table, batch) for part in (ctypes.byref(it), ctypes.c_uint64(ctypes.sizeof(it)))]
        with _launching:
            message = function(*given, ctypes.c_uint64(n), ctypes.c_uint64(seed))
            (idle, busy), (idle_before, busy_before) = self._lane_rounds()[:2], self.lane_steps.get(entry, (0, 0))
            self.lane_steps[entry] = idle_before + idle, busy_before + busy
            said = [message.decode()] if message else []
            if address := self._fault_address():
                said.append(self._engine.memory.place(address.contents.value))
        said += self._engine.memory.overwritten()
        if said:
            where = f"kernel {entry!r} over {n:,} elements, schedule_seed {schedule_seed}"
            raise EmulationError(f"{where}: {'; '.join(said)}")

    def run_blocks(self, entry: str, table: ctypes.Structure, batch: Launch, blocks: int, stream: Any = None) -> None:
        """As `run`, over whole blocks."""
        self.run(entry, table, batch, blocks * _BLOCK_LANES, stream)

    def expect(self, entries: Sequence[str]) -> None:
        """Nothing is left to compile."""

    def is_begun(self, entry: str) -> bool:
        """As `Program.is_begun`: all kernels are compiled."""
        return True


def launch_seed(entry: str, table: ctypes.Structure, batch: Launch) -> int:
    """The schedule of one launch: 64 bits of a digest, or 0 for the lanes in order."""
    if schedule_seed == 0:
        return 0
    constants, op = getattr(table, "multiplier", ()), getattr(batch, "op", 0)
    what = (schedule_seed, entry, *constants, batch.n, batch.random, op)
    return int.from_bytes(hashlib.blake2b(repr(what).encode(), digest_size=8).digest(), "little") | 1


def load(source: str) -> ctypes.PyDLL:
    """The library of ``source``, compiled unless the cache has it; raises as `compiled`."""
    if not sys.platform.startswith("linux"):
        raise EngineUnavailable("device 'emulated' runs on Linux only: use device='cpu'")
    # PyDLL keeps the interpreter's lock, where Python has one: nothing else happens during a launch.
    return ctypes.PyDLL(str(compiled(source, OPTIONS, "emulated")))
