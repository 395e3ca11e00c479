"""The keys of least rank, and the keys beside numbers that compare with a bound: chosen and packed on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import WarphashError
from ...runtime.abi import REPORT_WORDS, CompareBatch, Comparison, Ranks, SelectBatch
from ...runtime.engine import Buffer, Engine
from ...runtime.source import BOUNDED
from ..new_memory import filled
from ..scratch import zeroed_report

__all__ = ["Numbers", "keys_of_least_rank", "keys_that_compare"]

_DIGIT_BITS = 11
"""Of a rank, that one histogram tells: six histograms tell all."""

_ALL_BITS = 64
_BITS_TRIED = 2 * _DIGIT_BITS
"""Of a rank: counts of batches, and frequencies, have no more. Two histograms then tell all."""

_COPIES = 8
"""Of a histogram (``kHistogramCopies`` in ``kernels/bounded``)."""

_RANKS_OF_ELEMENT = 64
"""Ranks that one element of the kernel ``histogram`` counts."""


def keys_of_least_rank(
    engine: Engine, keys: Buffer, key_bytes: int, ranks: Buffer, n: int, k: int, stream: Any
) -> tuple[Buffer, int]:
    """Copies of the ``k`` keys of least rank, of ``n`` keys, 0 < k < n; and a rank that none of them exceeds. Waits.

    Of equal ranks, any are taken.
    """
    last, ties = _kth_rank(engine, ranks.ptr, n, k, stream)
    chosen = engine.allocate(k * key_bytes, stream)
    report = filled(engine, 8 * REPORT_WORDS + 8, stream)
    batch = SelectBatch(n=n, report=report.ptr, last=last, ties=ties, ticket=report.ptr + 8 * REPORT_WORDS)
    batch.keys, batch.key_bytes, batch.out_keys = keys.ptr, key_bytes, chosen.ptr
    engine.program(BOUNDED).run("choose", Ranks(ranks=ranks.ptr), batch, n, stream)
    return chosen, last


def _kth_rank(engine: Engine, ranks: int, n: int, k: int, stream: Any) -> tuple[int, int]:
    """The rank up to which ``k`` of ``n`` elements have ranks; and how many elements of just that rank to take."""
    histogram = engine.allocate(4 * _COPIES << _DIGIT_BITS, stream)
    prefix, shift, left = 0, _BITS_TRIED, k
    while shift:
        digit = min(_DIGIT_BITS, shift)
        bins = 1 << digit
        engine.fill(histogram.ptr, 0, 4 * _COPIES * bins, stream)
        batch = SelectBatch(n=-(-n // _RANKS_OF_ELEMENT), length=n, histogram=histogram.ptr, bins=bins)
        batch.shift, batch.prefix, batch.prefix_shift = shift - digit, prefix, shift
        engine.program(BOUNDED).run("histogram", Ranks(ranks=ranks), batch, batch.n, stream)
        copies = engine.to_host(histogram.ptr, np.uint32, _COPIES * bins, stream).reshape(_COPIES, bins)
        sums = np.cumsum(copies.sum(axis=0, dtype=np.int64))
        if sums[-1] < left:  # at first: others of the least ranks have more bits
            if shift != _BITS_TRIED:
                raise WarphashError(f"{sums[-1]:,} of {n:,} ranks were counted: report this as a bug")
            shift = _ALL_BITS
            continue
        here = int(np.searchsorted(sums, left))
        left -= int(sums[here - 1]) if here else 0
        count = int(sums[here]) - (int(sums[here - 1]) if here else 0)
        prefix, shift = prefix << digit | here, shift - digit
        if left == count:  # all ranks that begin so are taken
            return (prefix + 1 << shift) - 1, n
    return prefix, left


class Numbers(NamedTuple):
    """Numbers in device memory, and how they compare with a bound.

    Attributes
    ----------
    rows
        Address of packed numbers.
    row_bytes
        Of a number.
    kind
        How the bits of a number are read (`abi.kind_of`).
    ranked
        The numbers are already ranks of numbers of this kind.
    comparison
        Which numbers are meant: those of which ``number comparison bound`` is true.
    bound
        Rank of the bound (`ranks.rank_of`).
    """

    rows: int
    row_bytes: int
    kind: int
    ranked: bool
    comparison: Comparison
    bound: int


def keys_that_compare(
    engine: Engine, keys: Buffer, key_bytes: int, numbers: Numbers, n: int, stream: Any
) -> tuple[Buffer | None, int]:
    """Copies of the keys whose numbers compare with the bound; and how many they are, None for none. Waits."""
    report = zeroed_report(engine, stream)
    batch = CompareBatch(n=n, report=report.ptr, keys=keys.ptr, key_bytes=key_bytes, **numbers._asdict())
    program = engine.program(BOUNDED)
    program.run("compare", Ranks(), batch, n, stream)
    count = report.read(stream).winners
    if count == 0:
        return None, 0
    chosen = engine.allocate(count * key_bytes, stream)
    report.reset(stream)
    batch.out_keys = chosen.ptr
    program.run("compare", Ranks(), batch, n, stream)
    return chosen, count
