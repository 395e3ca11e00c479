"""Loaded kernels of a GPU, and their launches."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .device import Device
from .driver import check, outside_of_captures

__all__ = ["CudaProgram"]

_MOST_BLOCKS = (1 << 31) - 1
"""Of a grid, in its first dimension."""


class CudaProgram:
    """The kernels of a specification, found by name; a kernel is loaded when it is first launched.

    Parameters
    ----------
    load, begin, is_begun
        Gives the modules that have the kernels of some names; begins to compile such kernels, and returns; tells
        whether a kernel is compiled, or about to be.
    refilling, companions
        As of `Layout`.

    Attributes
    ----------
    kernels
        Those that are loaded (``Kernel`` of ``src/extension/kernel.hpp``).
    """

    block_threads = 1024
    """``kMostBlockThreads`` in ``platform/cuda.cuh``."""

    def __init__(
        self,
        engine: Device,
        load: Callable[[Sequence[str]], Iterable[Any]],
        begin: Callable[[Sequence[str]], object],
        is_begun: Callable[[str], bool],
        refilling: frozenset[str],
        companions: Mapping[str, Sequence[str]],
    ) -> None:
        self._engine = engine
        self._driver = engine._driver
        self._load, self._begin, self._refilling, self._companions = load, begin, refilling, companions
        self._asks, self._begun = is_begun, set[str]()
        self.kernels: dict[str, Any] = {}
        self._finding = threading.Lock()

    def run(self, entry: str, table: ctypes.Structure, batch: ctypes.Structure, n: int, stream: Any = None) -> None:
        """Launch kernel ``entry`` over at most ``n`` elements; returns before it ends, with both structures copied."""
        if n > 0:
            status = (self.kernels.get(entry) or self._find(entry)).run(table, batch, n, stream)
            if status:
                self._engine.refuse_launch(status)

    def run_blocks(
        self, entry: str, table: ctypes.Structure, batch: ctypes.Structure, blocks: int, stream: Any = None
    ) -> None:
        """As `run`, over whole blocks of as many threads as the kernel's launch bounds say."""
        kernel = self.kernels.get(entry) or self._find(entry)
        self.run(entry, table, batch, blocks * kernel.threads, stream)

    def expect(self, entries: Sequence[str]) -> None:
        """As `Program.expect`."""
        if entries[0] not in self.kernels:
            self._begin([name for name in entries if name not in self.kernels])

    def is_begun(self, entry: str) -> bool:
        """As `Program.is_begun`. What has begun stays so."""
        begun = entry in self.kernels or entry in self._begun
        if not begun and self._asks(entry):
            self._begun.add(entry)
            begun = True
        return begun

    def _find(self, entry: str) -> Any:
        """A kernel. Its companions are loaded, too."""
        with self._finding:
            names = [name for name in (entry, *self._companions.get(entry, ())) if name not in self.kernels]
            if entry in names:
                for name, module in zip(names, self._load(names), strict=True):
                    self.kernels[name] = self._found(name, module)
        return self.kernels[entry]

    def _found(self, entry: str, module: Any) -> Any:
        """A kernel of a module: its launch bounds say how many threads a block may have."""
        call, driver, what = self._engine.call, self._driver, f"finding kernel {entry!r}"
        with outside_of_captures():  # the driver may load the kernel just now
            function = check(call(driver.cuModuleGetFunction, module, entry.encode()), what)
        bounds = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        threads = int(check(call(driver.cuFuncGetAttribute, bounds, function), what))
        blocks = _MOST_BLOCKS
        if entry in self._refilling:
            at_once = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
            blocks = self._engine.processors * int(check(call(at_once, function, threads, 0), what))
        return self._engine.kernel(int(function), threads, blocks)
