"""Allocators against each other: how fast threads get one unit of 128 bytes each, all at once.

The slab allocator is timed as a table's kernels use it, and the device's own ``malloc`` by a kernel that does nothing
else (``lab/kernels/malloc.cuh``). A Dynamic Hash Table for the GPU, section V, has the same contest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..errors import ParameterError
from ..runtime.abi import REPORT_WORDS, ChainTable, SlabBatch
from ..runtime.devices import engine_for
from ..runtime.engine import KernelSpec
from ..runtime.source import SLABS
from ..storage.chains.node_pool import BLOCK_UNITS, MAX_SUPER_BLOCKS, SLAB_BYTES, SlabPool
from .runner import Lab

__all__ = ["ALLOCATORS", "MALLOC", "Allocation", "measure_allocator"]

MALLOC = KernelSpec("malloc", 0, 0, 0, header="malloc.cuh", package="warphash.lab")
"""The platform's own heap. On a GPU see `Engine.reserve_heap`."""

_BLOCKS = 256
"""Memory blocks in a super block, as in the paper's section VI."""

_RESERVED_BYTES = 512
"""Memory that every allocator has for each unit that is taken: the paper gives all of them about the same, and how much
more than 128 bytes CUDA's heap needs is nowhere told."""

_STREAM = 0
"""The one whose events the clock takes."""


@dataclass(frozen=True)
class Allocation:
    """One allocator's rate in units per second, and how many units nobody had for himself."""

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
    """The slab allocator, with super blocks as the paper has them."""

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
"""By the names that figures give them."""


def measure_allocator(lab: Lab, name: str, n: int) -> Allocation:
    """Time ``n`` threads that take a unit each; what they took is given back between the runs, uncounted.

    Raises
    ------
    ParameterError
        If there is no such allocator, or it has no room for so many units.
    """
    if name not in ALLOCATORS:
        raise ParameterError(f"there is no allocator {name!r}; there are: {', '.join(ALLOCATORS)}")
    contestant: _Allocator = ALLOCATORS[name](engine_for(lab.device), n)
    seconds = lab.timed(contestant.take, contestant.give_back)
    wrong = contestant.mismatches()
    contestant.give_back()
    median = float(np.median(seconds))
    return Allocation(name, n, n / median, median, len(seconds), wrong)
