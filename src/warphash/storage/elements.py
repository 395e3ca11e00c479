"""Elements of a batch: which of them take part, how they are cut into launches, and room for their flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..runtime.abi import WINNERS
from ..runtime.engine import Buffer, Engine
from .batch import Batch

__all__ = ["CLAIMED_ELEMENTS", "DeviceList", "Elements", "Piece", "all_pieces", "flags_at", "pieces", "with_flags"]

Piece = tuple[int, int, int, int]
"""Elements of one launch: number of the element that its arrays begin at, how many, and the addresses of their list and
of its length. 0 without a list: all elements, in order. 0 for the length of a list of so many elements."""


class DeviceList(NamedTuple):
    """Elements that a kernel has listed: the address of their numbers, uint32, and of the report with their count."""

    indices: int
    report: int


Elements = npt.NDArray[np.int64] | DeviceList | None
"""Elements of a batch to take part, ascending if they are on the host; all of them if None."""

CLAIMED_ELEMENTS = 1 << 22
"""Elements settled, claimed and placed together: the claims of so many stay in the second-level cache of a GPU."""


def flags_at(engine: Engine, given: int, n: int, stream: Any) -> tuple[int, Buffer | None]:
    """Address of room for a flag of each element, the caller's or, where it gave none, ours; and what keeps ours."""
    if given:
        return given, None
    held = engine.allocate(max(1, n), stream)
    return held.ptr, held


def with_flags(engine: Engine, batch: Batch) -> tuple[Batch, Buffer]:
    """A batch for whose flags nobody asks, with room for them; and what keeps that room."""
    held = engine.allocate(max(1, batch.n), batch.stream)
    keys, values, n, op, kind, _, answers, unique, stream, shared = batch  # a third of the time of `_replace`
    return Batch(keys, values, n, op, kind, held.ptr, answers, unique, stream, shared), held


def all_pieces(n: int, most: int) -> Iterable[Piece]:
    """Launches over all of ``n`` elements, of up to ``most`` each."""
    if n <= most:
        return ((0, n, 0, 0),)
    return ((at, min(most, n - at), 0, 0) for at in range(0, n, most))


def pieces(engine: Engine, n: int, most: int, only: Elements, stream: Any) -> Iterable[Piece]:
    """Launches over ``n`` elements, or over those of ``only`` some. One launch has all that a kernel has listed."""
    if isinstance(only, DeviceList):
        return ((0, n, only.indices, only.report + WINNERS),)
    return all_pieces(n, most) if only is None else _listed_pieces(engine, n, most, only, stream)


def _listed_pieces(engine: Engine, n: int, most: int, only: npt.NDArray[np.int64], stream: Any) -> Iterator[Piece]:
    for at in range(0, n, max(most, 1)):
        count = min(most, n - at)
        here = only[np.searchsorted(only, at) : np.searchsorted(only, at + count)] - at
        if len(here):
            words = np.empty(2 + len(here), np.uint32)  # the length, in 64 bits, then the list
            words[:2] = np.array([len(here)], np.uint64).view(np.uint32)
            words[2:] = here
            held = engine.from_host(words, stream)
            yield at, len(here), held.ptr + 8, held.ptr
