"""The CPU engine: the designs' headers compiled ahead of time, run over threads. The default where there is no GPU.

The extension has the kernels of usual tables (`Design.compiled`). Those of rare ones, and those of the laboratory, are
compiled when a program first asks for them, with the options of the extension, and kept on disk (`compiler.py`).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..errors import EngineUnavailable
from ..settings import get_num_threads, kept_fraction
from . import _cpu, program_log, thread_limits  # type: ignore[attr-defined]  # the first is compiled
from .abi import Launch
from .engine import Buffer, KernelSpec, Program
from .host_engine import HostEngine

__all__ = ["CpuEngine", "engine"]

_BLOCK_ELEMENTS = 256
"""That stand for a block of a GPU: ``kApplyingThreads`` in ``quotient/bucket.cuh``."""

_FEWEST_FOR_THREADS, _FEWEST_BYTES_FOR_THREADS = 1 << 14, 1 << 22
"""Elements, and bytes to fill or copy, from which on there is work for two threads: twice ``kLeastElements`` and
``kLeastBytes`` of the extension."""


def best_level() -> str:
    """The best compiled level of this processor, by its name in ``CMakeLists.txt``.

    Raises
    ------
    EngineUnavailable
        If the extension was compiled on a better processor, for that one alone.
    """
    levels: str = _cpu.levels()
    if not levels:
        raise EngineUnavailable(
            "warphash was compiled for a processor with AVX2 or AVX-512, which this one does not have: "
            "install it here from source, or there with "
            "pip install . --config-settings=cmake.define.WARPHASH_LEVELS=all"
        )
    return levels.split()[0]


def entries_of(spec: KernelSpec) -> int:
    """The address of the entries of ``spec`` for the best compiled level of this processor.

    Raises
    ------
    EngineUnavailable
        As `best_level`; or if the extension does not have them, and there is no compiler.
    """
    level = best_level()
    value_bytes = -1 if spec.value_is_row else spec.value_word_bytes
    built_in: int = _cpu.entries(spec.design, spec.word_bytes, value_bytes, spec.slots_per_bucket, level)
    return built_in or _compiled_entries(spec, level)


def _compiled_entries(spec: KernelSpec, level: str) -> int:
    """The same of a library of their own, which is compiled unless the cache has it."""
    from .compiler import KERNEL_OPTIONS, compiled
    from .source import translation_unit

    program_log.note_load()
    options = (*KERNEL_OPTIONS, *_cpu.options(level).split())
    library = ctypes.CDLL(str(compiled(translation_unit(spec, "cpu"), options, "cpu")))
    return ctypes.addressof(ctypes.c_char.in_dll(library, "warphash_entries"))


class _CpuProgram:
    """The entry points of one `KernelSpec`."""

    block_threads = 0

    def __init__(self, spec: KernelSpec) -> None:
        self._first = entries_of(spec)
        self._entries: dict[str, int] = {}

    def run(self, entry: str, table: ctypes.Structure, batch: Launch, n: int, stream: Any = None) -> None:
        address = self._entries.get(entry)
        if address is None:
            self._entries[entry] = address = _cpu.entry(self._first, entry)
        threads = get_num_threads() if n >= _FEWEST_FOR_THREADS else 1
        _cpu.run(address, ctypes.addressof(table), ctypes.addressof(batch), batch.count, n, threads)

    def run_blocks(self, entry: str, table: ctypes.Structure, batch: Launch, blocks: int, stream: Any = None) -> None:
        self.run(entry, table, batch, blocks * _BLOCK_ELEMENTS, stream)

    def expect(self, entries: Sequence[str]) -> None:
        """Nothing is left to compile."""

    def is_begun(self, entry: str) -> bool:
        """As `Program.is_begun`: all kernels are compiled."""
        return True


class CpuEngine(HostEngine):
    """This machine's processors and memory. Calls return when the work is done; ``stream`` is ignored.

    Freed memory is kept for later requests (``src/extension/memory.hpp``): `settings.kept_fraction` of the machine's.
    """

    device = "cpu"
    asynchronous: bool = False
    window_bytes: int = 0
    reach_bytes: int = 0
    lanes: int = 1
    stage_bytes: int = 256 << 10
    pool_blocks: int = 0

    def __init__(self) -> None:
        self._programs: dict[KernelSpec, Program] = {}
        _cpu.keep_freed(int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * kept_fraction()))

    def program(self, spec: KernelSpec) -> Program:
        program_log.note(self.device, spec)
        thread_limits.register()
        if spec not in self._programs:
            self._programs[spec] = _CpuProgram(spec)
        return self._programs[spec]

    def allocate(self, nbytes: int, stream: Any = None) -> Buffer:
        try:
            memory: Buffer = _cpu.Memory(nbytes)
        except MemoryError:
            raise MemoryError(f"the system refused {nbytes:,} bytes of memory") from None
        return memory

    def fill(self, target: int, byte: int, nbytes: int, stream: Any = None) -> None:
        _cpu.fill(target, byte, nbytes, get_num_threads() if nbytes >= _FEWEST_BYTES_FOR_THREADS else 1)

    def copy(self, target: int, source: int, nbytes: int, stream: Any = None) -> None:
        _cpu.copy(target, source, nbytes, get_num_threads() if nbytes >= _FEWEST_BYTES_FOR_THREADS else 1)

    def to_host(self, ptr: int, dtype: npt.DTypeLike, count: int, stream: Any = None) -> npt.NDArray[Any]:
        array = np.empty(count, dtype)
        self.copy(address_of(array), ptr, array.nbytes)
        return array

    def upload(self, target: int, array: npt.NDArray[Any], stream: Any = None) -> None:
        self.copy(target, address_of(array), array.nbytes)


@cache
def engine() -> CpuEngine:
    """The one CPU engine of the process."""
    return CpuEngine()
