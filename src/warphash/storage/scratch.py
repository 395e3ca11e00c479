"""What an update needs beside the table: lists, claims, the report; and elements cut into launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..runtime.abi import DISPLACED_CAPACITY, REPORT_WORDS, WINNERS, InsertBatch
from ..runtime.engine import Buffer, Engine
from .batch import Batch

__all__ = [
    "CLAIMED_ELEMENTS",
    "Allocate",
    "DeviceList",
    "Elements",
    "Pieces",
    "Scratch",
    "Workbench",
    "flags_at",
    "pieces",
    "starts_of",
    "with_flags",
]

Allocate = Callable[[int, Any], Buffer]
"""As `Engine.allocate`."""

Pieces = Iterable[tuple[int, int, int, int]]


def starts_of(sizes: Iterable[int]) -> list[int]:
    """Where arrays of so many bytes begin in one memory, aligned to 256 bytes; and where the last one ends."""
    return list(accumulate([size + 255 & -256 for size in sizes], initial=0))


class DeviceList(NamedTuple):
    """Elements that a kernel has listed: the address of their numbers, uint32, and of the report with their count."""

    indices: int
    report: int


Elements = npt.NDArray[np.int64] | DeviceList | None
"""Elements of a batch to take part, ascending if they are on the host; all of them if None."""

CLAIMED_ELEMENTS = 1 << 22
"""Elements settled, claimed and placed together: the claims of so many stay in the second-level cache of a GPU."""

_LENGTHS_BYTES = 64
"""Of a report: the lengths of its lists, and the numbers of displaced pairs and unplaced elements."""

_KEPT_BYTES = 1 << 20
"""Scratch memory up to this size stays with a table, so that small updates of one size allocate nothing."""


@dataclass(frozen=True)
class Scratch:
    """Memory of one update, and a batch that has its addresses: 0 where the update needs no such list."""

    purpose: tuple[int, bool, bool]
    memory: Buffer
    report: Buffer
    batch: Any
    claims_bytes: int


class Workbench:
    """The scratch memory of a store.

    Parameters
    ----------
    engine
        Where the store is.
    batch_type
        What the kernels of the store take.
    displaced_bytes
        Of a pair that an update may displace; 0 if it displaces none.
    allocate
        Where the memory comes from; None for the engine.
    kept_bytes
        Scratch memory of up to so many bytes is kept for the next update.

    Attributes
    ----------
    kept
        Of the last update, if it is small.
    """

    def __init__(
        self,
        engine: Engine,
        batch_type: type[InsertBatch],
        displaced_bytes: int,
        allocate: Allocate | None = None,
        kept_bytes: int = _KEPT_BYTES,
    ) -> None:
        self._engine, self._batch_type, self._displaced_bytes = engine, batch_type, displaced_bytes
        self._allocate = allocate
        self.kept: Scratch | None = None
        self.kept_bytes = kept_bytes

    def of(self, piece: int, combines: bool, unique: bool, stream: Any = None) -> Scratch:
        """Scratch memory for launches of ``piece`` elements."""
        if self.kept is not None and self.kept.purpose == (piece, combines, unique):
            return self.kept
        claims = 0 if unique else 1 << max(8, (2 * piece - 1).bit_length())
        listed = 0 if unique else 4 * piece
        displaced = min(piece, DISPLACED_CAPACITY) * self._displaced_bytes
        starts = starts_of((4 * claims, listed, listed, listed if combines else 0, displaced))
        allocate = self._allocate or self._engine.allocate
        memory = allocate(max(256, starts[-1]), stream)
        report = allocate(8 * REPORT_WORDS, stream)
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


def flags_at(engine: Engine, given: int, n: int, stream: Any) -> tuple[int, Buffer | None]:
    """Address of room for a flag of each element, the caller's or, where it gave none, ours; and what keeps ours."""
    if given:
        return given, None
    held = engine.allocate(max(1, n), stream)
    return held.ptr, held


def with_flags(engine: Engine, batch: Batch) -> tuple[Batch, Buffer]:
    """A batch for whose flags nobody asks, with room for them; and what keeps that room."""
    held = engine.allocate(max(1, batch.n), batch.stream)
    return batch._replace(flags=held.ptr), held


def pieces(engine: Engine, n: int, piece: int, only: npt.NDArray[np.int64] | DeviceList | None, stream: Any) -> Pieces:
    """Launches: first element, number of elements, addresses of an index list and its length (0: all in order)."""
    if isinstance(only, DeviceList):
        return ((0, n, only.indices, only.report + WINNERS),)
    if only is None and n <= piece:
        return ((0, n, 0, 0),)
    return _cut(engine, n, piece, only, stream)


def _cut(
    engine: Engine, n: int, piece: int, only: npt.NDArray[np.int64] | None, stream: Any
) -> Iterator[tuple[int, int, int, int]]:
    for at in range(0, n, max(piece, 1)):
        count = min(piece, n - at)
        if only is None:
            yield at, count, 0, 0
            continue
        here = only[np.searchsorted(only, at) : np.searchsorted(only, at + count)] - at
        if len(here):
            words = np.empty(2 + len(here), np.uint32)  # the length, in 64 bits, then the list
            words[:2] = np.array([len(here)], np.uint64).view(np.uint32)
            words[2:] = here
            held = engine.from_host(words, stream)
            yield at, len(here), held.ptr + 8, held.ptr
