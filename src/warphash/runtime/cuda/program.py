"""Loaded kernels of a GPU, and their launches."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

from .driver import check, error

if TYPE_CHECKING:
    from .engine import CudaEngine

__all__ = ["CudaProgram"]

_MOST_BLOCKS = (1 << 31) - 1
"""Of a grid, in its first dimension."""


class CudaProgram:
    """Loaded kernels, found by name; an entry is looked up once."""

    def __init__(self, engine: CudaEngine, module: Any, refilling: frozenset[str]) -> None:
        self._engine = engine
        self._driver = engine._driver
        self._module = module
        self._refilling = refilling
        self._functions: dict[str, tuple[int, int, int]] = {}
        self._launch = engine._streams.launch

    def run(self, entry: str, table: ctypes.Structure, batch: ctypes.Structure, n: int, stream: Any = None) -> None:
        """Launch kernel ``entry`` over at most ``n`` elements; returns before it ends, with both structures copied."""
        if n > 0:
            function, most_threads, most_blocks = self._functions.get(entry) or self._find(entry)
            threads = most_threads if n >= most_threads else -(-n // 32) * 32
            blocks = min(-(-n // threads), most_blocks)
            status = self._engine.order(stream, self._launch, function, blocks, threads, table, batch)
            if status:
                raise error(status, f"launching a kernel on {self._engine.device}")

    @functools.cached_property
    def block_threads(self) -> int:
        return self._find("update_block")[1]

    def _find(self, entry: str) -> tuple[int, int, int]:
        """A kernel, the most threads that a block of it may have (its launch bounds), and the most blocks of use."""
        call, driver, what = self._engine.call, self._driver, f"finding kernel {entry!r}"
        function = check(call(driver.cuModuleGetFunction, self._module, entry.encode()), what)
        bounds = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        threads = int(check(call(driver.cuFuncGetAttribute, bounds, function), what))
        blocks = _MOST_BLOCKS
        if entry in self._refilling:
            at_once = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
            blocks = self._engine.processors * int(check(call(at_once, function, threads, 0), what))
        found = int(function), threads, blocks
        self._functions[entry] = found
        return found
