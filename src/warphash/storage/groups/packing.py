"""Rows of several columns packed into one word each, on a CPU (``groups/cpu/pack.cuh``)."""

from __future__ import annotations

from ...runtime.abi import Members, PackBatch
from ...runtime.engine import Engine
from ...runtime.source import GROUPS
from .spans import Span

__all__ = ["pack_column"]


def pack_column(engine: Engine, words: int, items: int, width: int, n: int, span: Span, *, is_first: bool) -> None:
    """Multiply words by the size of a span, and add the distances of a column's items from its least.

    Parameters
    ----------
    words
        Address of uint64[n]. Their products have to be less than 2**64.
    items, width
        Address of ``n`` words of 1, 2, 4 or 8 bytes.
    span
        Of the items.
    is_first
        The words are written, and not read.
    """
    members = Members(low=span.low, range=span.size, word_bytes=width)
    batch = PackBatch(n=n, items=items, words=words, is_first=is_first)
    engine.program(GROUPS).run("pack", members, batch, n, None)
