"""Launches of kernels that go through a batch in tiles on a GPU (``kernels/core/gpu/batch_tiles.cuh``)."""

from __future__ import annotations

import ctypes
from typing import Any

from ..runtime.abi import Launch
from ..runtime.engine import Engine, KernelSpec

__all__ = ["over_tiles"]

_BLOCK_THREADS, _TILE = 512, 8192
"""Of a block: its threads, and the elements that it takes at a time."""

_A_BLOCK_EACH = frozenset(
    (
        "begin_records",
        "claim_words4",
        "claim_words8",
        "count_pairs",
        "find_words4",
        "find_words8",
        "finish_records",
        "list_firsts",
        "mark_firsts",
        "mark_words",
        "number_all",
        "rank_words",
    )
)
"""Kernels whose blocks have a tile each."""

_LANES_OF_BLOCK = {"spread": _BLOCK_THREADS, "accumulate": 2 * _BLOCK_THREADS}
"""Kernels whose blocks have memory of their own, and so go through several tiles. A GPU has one block for so many of
its lanes: then all blocks run at once."""


def over_tiles(
    engine: Engine,
    program: KernelSpec,
    entry: str,
    table: ctypes.Structure,
    batch: Launch,
    n: int,
    stream: Any,
) -> None:
    """Run a kernel over ``n`` elements of any engine; by tiles, if it goes through them on a GPU."""
    batch.n = n
    kernels, lanes = engine.program(program), _LANES_OF_BLOCK.get(entry)
    if engine.lanes == 1 or not (lanes or entry in _A_BLOCK_EACH):
        return kernels.run(entry, table, batch, n, stream)
    most = max(1, engine.lanes // lanes) if lanes else n
    kernels.run_blocks(entry, table, batch, min(-(-n // _TILE), most), stream)
