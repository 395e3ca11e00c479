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
        self._functions: dict[str, tuple[Any, int, int]] = {}
        self._arguments = (ctypes.c_void_p * 2)()  # of a launch, as is the grid; the engine's lock guards them
        self._arguments_at = ctypes.addressof(self._arguments)
        self._grid = self._line_of_blocks()

    def run(self, entry: str, table: ctypes.Structure, batch: ctypes.Structure, n: int, stream: Any = None) -> None:
        """Launch kernel ``entry`` over at most ``n`` elements; returns before it ends, with both structures copied."""
        if n > 0:
            function, most_threads, most_blocks = self._functions.get(entry) or self._find(entry)
            threads = most_threads if n >= most_threads else -(-n // 32) * 32
            blocks = min(-(-n // threads), most_blocks)
            (status,) = self._engine.order(stream, self._launch, function, blocks, threads, table, batch)
            if status:
                raise error(status, f"launching a kernel on {self._engine.device}")

    def _launch(
        self, function: Any, blocks: int, threads: int, table: ctypes.Structure, batch: ctypes.Structure, handle: int
    ) -> Any:
        self._arguments[0], self._arguments[1] = ctypes.addressof(table), ctypes.addressof(batch)
        grid = self._grid
        grid.gridDimX, grid.blockDimX, grid.hStream = blocks, threads, handle
        return self._driver.cuLaunchKernelEx(grid, function, self._arguments_at, 0)

    def _line_of_blocks(self) -> Any:
        """A grid of one dimension, of which a launch says how long it is.

        Its blocks may come while the kernel before it in the stream has its last ones, and then wait for that
        (``wait_for_turn`` in ``platform/cuda.cuh``): 0.3 us instead of 1.3 between two kernels.
        """
        driver = self._driver
        grid = driver.CUlaunchConfig()
        grid.gridDimY = grid.gridDimZ = grid.blockDimY = grid.blockDimZ = 1
        if self._engine.overlaps_kernels:
            early = driver.CUlaunchAttribute()
            early.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            early.value.programmaticStreamSerializationAllowed = 1
            grid.attrs, grid.numAttrs = [early], 1
        return grid

    @functools.cached_property
    def block_threads(self) -> int:
        return self._find("update_block")[1]

    def _find(self, entry: str) -> tuple[Any, int, int]:
        """A kernel, the most threads that a block of it may have (its launch bounds), and the most blocks of use."""
        call, driver, what = self._engine.call, self._driver, f"finding kernel {entry!r}"
        function = check(call(driver.cuModuleGetFunction, self._module, entry.encode()), what)
        bounds = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        threads = int(check(call(driver.cuFuncGetAttribute, bounds, function), what))
        blocks = _MOST_BLOCKS
        if entry in self._refilling:
            at_once = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
            blocks = self._engine.processors * int(check(call(at_once, function, threads, 0), what))
        found = function, threads, blocks
        self._functions[entry] = found
        return found
