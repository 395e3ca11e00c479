"""The vectors of a rank's own ids: rows of parameters. Nothing here is collective.

Layout. Rows are numbered from 0, and lie in blocks, one behind the other. Each block is a parameter::

    block 0 [0, c)    block 1 [c, 2 c)    block 2 [2 c, 4 c)    block 3 [4 c, 8 c) ...

Why blocks, and not one parameter that a larger one replaces: a parameter that an optimizer trains, and at which the
graph of an earlier lookup ends, stays the same object with the same shape. Growth copies nothing. n rows have about
log2(n / c) blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
import torch

__all__ = ["Gradients", "capacity_of", "first_vectors", "put", "sums", "vectors_of"]

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_FACTORS = (0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64))
"""Of SplitMix64 (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, 2014), as int64."""


def capacity_of(blocks: Sequence[torch.Tensor]) -> int:
    """Rows of all blocks together."""
    return sum(map(len, blocks))


def vectors_of(blocks: Sequence[torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
    """The vectors of rows; zeros for negative rows."""
    made = blocks[0].new_zeros((len(rows), blocks[0].shape[1]))
    for block, at, within in _parts(blocks, rows):
        made.index_copy_(0, at, block.detach().index_select(0, within))
    return made


def put(blocks: Sequence[torch.Tensor], begin: int, vectors: torch.Tensor) -> None:
    """Write the vectors of rows from ``begin`` on."""
    for block, first in zip(blocks, _starts(blocks), strict=True):
        low, high = max(begin, first), min(begin + len(vectors), first + len(block))
        if low < high:
            block.detach()[low - first : high - first] = vectors[low - begin : high - begin]


def first_vectors(ids: torch.Tensor, width: int, seed: int) -> torch.Tensor:
    """Standard normal numbers that depend on the id, the column and the seed alone: float64[n, width].

    So it does not matter which rank has an id, or when the id comes up.
    """
    columns = torch.arange(1, width + 1, device=ids.device) * _GOLDEN
    of_seed = np.uint64(seed * _GOLDEN & _WORD).view(np.int64).item()
    words = _mixed(_mixed(ids.to(torch.int64) + of_seed)[:, None] + columns)
    fractions = (_shifted(words, 12).to(torch.float64) + 0.5) / (1 << 52)
    made: torch.Tensor = torch.special.ndtri(fractions)
    return made


def _mixed(words: torch.Tensor) -> torch.Tensor:
    """Hashes of 64-bit words: the last steps of SplitMix64."""
    words = (words ^ _shifted(words, 30)) * _FACTORS[0]
    words = (words ^ _shifted(words, 27)) * _FACTORS[1]
    return words ^ _shifted(words, 31)


def _shifted(words: torch.Tensor, bits: int) -> torch.Tensor:
    """Words shifted to the right, with zeros behind."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)


# ---- gradients
def sums(numbers: torch.Tensor, n: int, vectors: torch.Tensor) -> torch.Tensor:
    """The sum of the vectors of each of the numbers 0 to n - 1, rounded once."""
    made = torch.zeros((n, vectors.shape[1]), dtype=_type_of_sums(vectors.dtype), device=vectors.device)
    return made.index_add_(0, numbers, vectors.to(made.dtype)).to(vectors.dtype)


class Gradients:
    """Gradients of blocks: sums of the vectors that are added to their rows.

    Parameters
    ----------
    blocks
        All rows that are added are theirs.
    sparse
        As of ``torch.nn.Embedding``: gradients have the rows that were added alone.
    """

    def __init__(self, blocks: Sequence[torch.Tensor], *, sparse: bool) -> None:
        self._blocks = blocks
        self._added: list[list[tuple[torch.Tensor, torch.Tensor]]] = [[] for _ in blocks]
        self._dense: list[torch.Tensor] | None = None
        if not sparse:
            self._dense = [torch.zeros_like(block, dtype=_type_of_sums(block.dtype)) for block in blocks]

    def add(self, rows: torch.Tensor, vectors: torch.Tensor) -> None:
        """Add vectors to rows. Those of negative rows are dropped."""
        for number, (block, at, within) in enumerate(_parts(self._blocks, rows)):
            chosen = vectors.to(block.device).index_select(0, at)
            if self._dense is None:
                self._added[number].append((within, chosen))
            else:
                self._dense[number].index_add_(0, within, chosen.to(self._dense[number].dtype))

    def made(self) -> list[torch.Tensor]:
        """The gradient of each block, in the block's type."""
        if self._dense is not None:
            return [made.to(block.dtype) for made, block in zip(self._dense, self._blocks, strict=True)]
        return [_sparse(block, added) for block, added in zip(self._blocks, self._added, strict=True)]


def _sparse(block: torch.Tensor, added: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    rows = torch.cat([block.new_zeros(0, dtype=torch.int64), *(rows for rows, _ in added)])
    vectors = torch.cat([block.new_zeros((0, block.shape[1])), *(vectors for _, vectors in added)])
    return torch.sparse_coo_tensor(rows[None], vectors, block.shape)


def _type_of_sums(dtype: torch.dtype) -> torch.dtype:
    """Numbers of 16 bits are summed in 32."""
    return torch.float32 if dtype.itemsize < torch.float32.itemsize else dtype


# ---- which block a row is in
def _parts(
    blocks: Sequence[torch.Tensor], rows: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Each block, the places of its rows among ``rows``, and where they are in the block."""
    for block, first in zip(blocks, _starts(blocks), strict=True):
        of_block = rows.to(block.device) - first
        at = ((of_block >= 0) & (of_block < len(block))).nonzero().view(-1)
        yield block, at, of_block.index_select(0, at)


def _starts(blocks: Sequence[torch.Tensor]) -> list[int]:
    """The first row of each block."""
    return list(accumulate(map(len, blocks[:-1]), initial=0))
