"""Memory of kernels beside the table: the lists and claims of an update, and the report of what kernels counted.

A report is a ``struct Report`` of ``kernels/core/abi.cuh``: kernels add to it, and the host reads it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..runtime.abi import (
    COUNT_WORDS,
    DISPLACED_CAPACITY,
    MOST_SUBTABLES,
    REPORT_LINES,
    REPORT_WORDS,
    InsertBatch,
)
from ..runtime.engine import Buffer, Engine

__all__ = [
    "Allocate",
    "Outcome",
    "Report",
    "ReportBuffer",
    "Scratch",
    "Workbench",
    "read_report",
    "starts_of",
    "zeroed_report",
]

Allocate = Callable[[int, Any], Buffer]
"""As `Engine.allocate`."""

_NONE_PLACED = (0,) * MOST_SUBTABLES


class Report(NamedTuple):
    """What the kernels of one bulk operation counted, summed over the lines; all zero before the first of them."""

    leftover: int
    winners: int
    displaced: int
    unplaced: int
    changed: int
    probes: int
    mismatches: int
    erased: int
    placed: tuple[int, ...] = ()
    """Keys added to, or erased from, each subtable."""
    crowds: int = 0
    chunks: int = 0
    """Crowded ranges of a quotient table, and the chunks of their elements (``quotient/crowds.cuh``)."""

    @classmethod
    def of(cls, words: npt.NDArray[np.uint64]) -> Report:
        """Read the first `COUNT_WORDS` words of ``struct Report``."""
        leftover, winners, _, displaced, unplaced, crowds, _, _ = words[:8].tolist()
        sums = np.add.reduce(words[8:].reshape(REPORT_LINES, 8))
        changed, probes, mismatches, erased, *pairs = sums.tolist()
        placed = _NONE_PLACED
        if any(pairs):
            placed = tuple(sums[4:].view(np.uint32).tolist())  # two counts in each word, the lower one first
            changed += sum(placed)
        counts = leftover, winners, displaced, unplaced, changed, probes, mismatches, erased
        return cls(*counts, placed, crowds >> 32, crowds & 0xFFFFFFFF)


class Outcome(NamedTuple):
    """What the kernels of one update did.

    Attributes
    ----------
    changed
        Keys added, or erased.
    displaced
        Displaced pairs: they lost their slots, and found no other.
    unplaced
        Elements of the batch that found no slot.
    probes
        Buckets read.
    """

    changed: int
    displaced: int
    unplaced: int
    probes: int

    @property
    def complete(self) -> bool:
        """Whether every pair has a slot."""
        return not (self.displaced or self.unplaced)


def read_report(engine: Engine, report: int, stream: Any) -> Report:
    """The counts of the report at an address. Waits for the kernels that were launched before."""
    return Report.of(engine.to_host(report, np.uint64, COUNT_WORDS, stream))


class ReportBuffer:
    """Memory of a report. It serves one operation at a time.

    Attributes
    ----------
    ptr
        Its address.
    """

    def __init__(self, engine: Engine, stream: Any) -> None:
        self._engine, self._memory = engine, engine.allocate(8 * REPORT_WORDS, stream)
        self.ptr = self._memory.ptr

    def reset(self, stream: Any) -> int:
        """Set all counts to 0; the address of the report."""
        self._engine.fill(self.ptr, 0, 8 * REPORT_WORDS, stream)
        return self.ptr

    def read(self, stream: Any) -> Report:
        """The counts. Waits for the kernels that were launched before."""
        return read_report(self._engine, self.ptr, stream)


def zeroed_report(engine: Engine, stream: Any) -> ReportBuffer:
    """A new report, all of whose counts are 0."""
    report = ReportBuffer(engine, stream)
    report.reset(stream)
    return report


def starts_of(sizes: Iterable[int]) -> list[int]:
    """Where arrays of so many bytes begin in one memory, aligned to 256 bytes; and where the last one ends."""
    return list(accumulate([size + 255 & -256 for size in sizes], initial=0))


_LENGTHS_BYTES = 64
"""Of a report: the lengths of its lists, and the numbers of displaced pairs and unplaced elements."""

_KEPT_BYTES = 1 << 20
"""Scratch memory up to this size stays with a table, so that small updates of one size allocate nothing."""


@dataclass(frozen=True)
class Scratch:
    """Memory of one update, and a batch that has its addresses: 0 where the update needs no such list."""

    purpose: tuple[int, bool, bool]
    memory: Buffer
    report: ReportBuffer
    batch: Any
    claims_bytes: int


class Workbench:
    """The scratch memory of an array.

    Parameters
    ----------
    engine
        Where the array is.
    batch_type
        What the kernels of an update take.
    displaced_bytes
        Of a pair that an update may displace; 0 if it displaces none.

    Attributes
    ----------
    kept
        Of the last update, if it is small.
    kept_bytes
        Scratch memory of up to so many bytes is kept for the next update.
    displaced
        Where the last update left displaced pairs, if it left any, or may have left some.
    """

    def __init__(self, engine: Engine, batch_type: type[InsertBatch], displaced_bytes: int) -> None:
        self._engine, self._batch_type, self._displaced_bytes = engine, batch_type, displaced_bytes
        self.kept: Scratch | None = None
        self.displaced: Scratch | None = None
        self.kept_bytes = _KEPT_BYTES

    def of(self, piece: int, combines: bool, unique: bool, stream: Any = None) -> Scratch:
        """Scratch memory for launches of ``piece`` elements."""
        if self.kept is not None and self.kept.purpose == (piece, combines, unique):
            return self.kept
        claims = 0 if unique else 1 << max(8, (2 * piece - 1).bit_length())
        listed = 0 if unique else 4 * piece
        displaced = min(piece, DISPLACED_CAPACITY) * self._displaced_bytes
        starts = starts_of((4 * claims, listed, listed, listed if combines else 0, displaced))
        memory, report = self._engine.allocate(max(256, starts[-1]), stream), ReportBuffer(self._engine, stream)
        self._engine.fill(report.ptr, 0, _LENGTHS_BYTES, stream)  # which a recovery may read before a kernel writes
        at = [memory.ptr + start if end > start else 0 for start, end in pairwise(starts)]
        lists = dict(zip(("claims", "leftover", "winners", "losers", "displaced"), at, strict=True))
        batch = self._batch_type(report=report.ptr, claim_mask=claims - 1, **lists)
        made = Scratch((piece, combines, unique), memory, report, batch, 4 * claims)
        self.kept = made if memory.nbytes <= self.kept_bytes else None
        return made

    def restart(self, scratch: Scratch, stream: Any, report_bytes: int = 8 * REPORT_WORDS) -> None:
        """Forget all claims, and so many bytes of the report."""
        self.forget_claims(scratch, stream)
        self._engine.fill(scratch.report.ptr, 0, report_bytes, stream)

    def forget_claims(self, scratch: Scratch, stream: Any) -> None:
        self._engine.fill(scratch.memory.ptr, 0xFF, scratch.claims_bytes, stream)

    def outcome(self, scratch: Scratch, stream: Any) -> Outcome:
        """What the launches of an update with this memory did. Waits."""
        report = scratch.report.read(stream)
        return self.end(Outcome(report.changed, report.displaced, report.unplaced, report.probes))

    def end(self, outcome: Outcome) -> Outcome:
        """The outcome of the last update. Memory with displaced pairs is not that of the next update."""
        if outcome.displaced:
            self.kept = None
        else:
            self.displaced = None
        return outcome
