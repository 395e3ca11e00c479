"""The spans of integer columns, from the least to the greatest, on a CPU; and batches in chunks for its threads."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.abi import Chunks, KeyColumn, PackBatch
from ...runtime.engine import Engine
from ...runtime.source import GROUPS
from ...settings import get_num_threads
from .ways import chunks_of

__all__ = ["Span", "cut", "small_span", "spans_of"]

_LINE_ELEMENTS = 64
"""Chunks begin at multiples of so many elements, so that two threads write to no common line."""


class Span(NamedTuple):
    """The least word of a batch, as bits, and how many words there are from the least to the greatest.

    Words are taken as signed or as unsigned integers, whichever gives fewer.
    """

    low: int
    size: int


def cut(n: int, count: int) -> Chunks:
    """About so many chunks of ``n`` elements."""
    length = -(-n // count) + _LINE_ELEMENTS - 1 & -_LINE_ELEMENTS
    return Chunks(length=length, count=-(-n // length), salt=random.getrandbits(64))


def _span_of_type(width: int) -> Span | None:
    """The span of all words of 1 or 2 bytes; None for wider ones."""
    return Span(0, 1 << 8 * width) if width <= 2 else None


def small_span(
    engine: Engine, keys: int, width: int, n: int, is_small: Callable[[int], bool], sample: npt.NDArray[Any] | None
) -> Span | None:
    """The span of ``n`` words of 1, 2, 4 or 8 bytes, if its size is small; else None.

    Parameters
    ----------
    sample
        Some of the words, which tell of most large spans without a look at all words; None to look at all.
    """
    span = _span_of_type(width)
    if span is None:
        if sample is not None and not is_small(_least(_span(sample.view(f"i{width}")), _span(sample)).size):
            return None
        (span,) = spans_of(engine, [KeyColumn(integers=keys, width=width, stride=width)], n)
    return span if is_small(span.size) else None


def _least(*spans: Span) -> Span:
    return min(spans, key=lambda span: span.size)


def spans_of(engine: Engine, columns: Sequence[KeyColumn], n: int) -> list[Span]:
    """The spans of columns of ``n`` integers, at least one. Reads each once.

    Raises
    ------
    MemoryError
        If there is no memory to work in.
    """
    chunks = cut(n, chunks_of(n, get_num_threads()))
    bounds = engine.allocate(32 * chunks.count * len(columns))
    held = (KeyColumn * len(columns))(*columns)
    batch = PackBatch(n=n, columns=ctypes.addressof(held), arity=len(columns), bounds=bounds.ptr)
    engine.program(GROUPS).run("bounds", chunks, batch, n, None)
    found = engine.to_host(bounds.ptr, np.uint64, 4 * chunks.count * len(columns)).reshape(chunks.count, -1, 4)
    return [_least(_span(column[:, :2].view(np.int64)), _span(column[:, 2:])) for column in found.swapaxes(0, 1)]


def _span(words: npt.NDArray[Any]) -> Span:
    low, high = int(words.min()), int(words.max())
    return Span(low & (1 << 64) - 1, high - low + 1)
