"""Compare memory allocators: each thread takes one unit of 128 bytes, all threads at once.

The slab allocator is called as the kernels of a table call it. The device's ``malloc`` is called by a kernel that does
nothing else (``lab/kernels/malloc.cuh``). A Dynamic Hash Table for the GPU, section V, makes the same comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...errors import ParameterError
from ...runtime.abi import REPORT_WORDS, ChainTable, SlabBatch
from ...runtime.devices import engine_for
from ...runtime.engine import KernelSpec
from ...runtime.source import SLABS
from ...storage.chains.node_pool import BLOCK_UNITS, MAX_SUPER_BLOCKS, SLAB_BYTES, SlabPool
from ..bench.runner import Lab

__all__ = ["ALLOCATORS", "MALLOC", "Allocation", "measure_allocator"]

MALLOC = KernelSpec("malloc", 0, 0, 0, header="malloc.cuh", package="warphash.lab")
"""The kernels that call the platform's ``malloc``. `Engine.reserve_heap` sizes the heap of a GPU."""

_BLOCKS = 256
"""Memory blocks in a super block, as in the paper's section VI."""

_RESERVED_BYTES = 512
"""Memory that each allocator gets for one unit. The paper gives all allocators about the same memory. CUDA does not
document how much more than 128 bytes its heap needs for a unit, so there is plenty."""

_STREAM = 0
"""The stream on which the clock records its events."""


@dataclass(frozen=True)
class Allocation:
    """One allocator's rate in units per second. ``mismatches`` counts units that failed or were handed out twice."""

    allocator: str
    n: int
    rate_per_s: float
    seconds: float
    repetitions: int
    mismatches: int


class _Allocator(Protocol):
    def take(self) -> None: ...
    def give_back(self) -> None: ...
    def mismatches(self) -> int: ...


class _Slabs:
    """The slab allocator, with super blocks of the paper's size."""

    def __init__(self, engine: Any, n: int) -> None:
        self._engine, self._n = engine, n
        super_blocks = -(-_RESERVED_BYTES * n // (_BLOCKS * BLOCK_UNITS * SLAB_BYTES))
        if super_blocks > MAX_SUPER_BLOCKS:
            raise ParameterError(f"{n:,} slabs are too many to take: the pool would have {super_blocks:,} super blocks")
        self._pool = SlabPool(engine, _BLOCKS, super_blocks, stream=_STREAM)
        self._program = engine.program(SLABS)
        self._addresses = engine.allocate(4 * n, _STREAM)
        self._report = engine.allocate(8 * REPORT_WORDS, _STREAM)

    def take(self) -> None:
        batch = SlabBatch(n=self._n, addresses=self._addresses.ptr, report=self._report.ptr)
        self._program.run("take", ChainTable(pool=self._pool.descriptor), batch, self._n, _STREAM)

    def give_back(self) -> None:
        self._pool.clear(_STREAM)

    def mismatches(self) -> int:
        addresses = self._engine.to_host(self._addresses.ptr, np.uint32, self._n, _STREAM)
        there = (addresses >> 24 < self._pool.super_blocks) & (addresses >> 10 & 0x3FFF < _BLOCKS)
        return self._n - len(np.unique(addresses[there]))


class _Malloc:
    """The heap of the GPU, or of the C library."""

    def __init__(self, engine: Any, n: int) -> None:
        self._engine, self._n = engine, n
        engine.reserve_heap(_RESERVED_BYTES * n)
        self._program = engine.program(MALLOC)
        self._addresses = engine.allocate(8 * n, _STREAM)
        engine.fill(self._addresses.ptr, 0, 8 * n, _STREAM)  # free(0) does nothing

    def take(self) -> None:
        self._program.run("take", ChainTable(), SlabBatch(n=self._n, addresses=self._addresses.ptr), self._n, _STREAM)

    def give_back(self) -> None:
        self._program.run(
            "give_back", ChainTable(), SlabBatch(n=self._n, addresses=self._addresses.ptr), self._n, _STREAM
        )

    def mismatches(self) -> int:
        addresses = np.sort(self._engine.to_host(self._addresses.ptr, np.uint64, self._n, _STREAM))
        there = addresses[addresses > 0]
        return self._n - len(there) + int((np.diff(there) < SLAB_BYTES).sum())


ALLOCATORS: dict[str, type[_Slabs] | type[_Malloc]] = {"slab_allocator": _Slabs, "malloc": _Malloc}
"""The allocators, by the names that figures use."""


def measure_allocator(lab: Lab, name: str, n: int) -> Allocation:
    """Time ``n`` threads that take one unit each. All units are freed between the runs; this is not timed.

    Raises
    ------
    ParameterError
        If there is no such allocator, or the allocator has no room for ``n`` units.
    """
    if name not in ALLOCATORS:
        raise ParameterError(f"there is no allocator {name!r}; there are: {', '.join(ALLOCATORS)}")
    contestant: _Allocator = ALLOCATORS[name](engine_for(lab.device), n)
    seconds = lab.timed(contestant.take, contestant.give_back)
    wrong = contestant.mismatches()
    contestant.give_back()
    median = float(np.median(seconds))
    return Allocation(name, n, n / median, median, len(seconds), wrong)
