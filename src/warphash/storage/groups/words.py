"""Words: keys of 4 or 8 bytes, which kernels read whole."""

from __future__ import annotations

from typing import Any

from ...runtime.abi import NumberBatch, StoredRows, WordBatch
from ...runtime.engine import Buffer, Engine
from ...runtime.source import ROWS

__all__ = ["LONGEST_WORD", "widen"]

LONGEST_WORD = 8
"""Bytes of a word at most."""


def widen(engine: Engine, batch: NumberBatch, stream: Any) -> Buffer | None:
    """Replace the keys of a batch, of at most 8 bytes, by words, whose memory is returned. None if keys are words."""
    width, word_bytes = batch.key_bytes, 4 if batch.key_bytes <= 4 else LONGEST_WORD
    if width == word_bytes:
        return None
    words = engine.allocate(word_bytes * batch.n, stream)
    widened = WordBatch(n=batch.n, rows=batch.keys, row_bytes=width, words=words.ptr, word_bytes=word_bytes)
    engine.program(ROWS).run("widen", StoredRows(), widened, batch.n, stream)
    batch.keys, batch.key_bytes = words.ptr, word_bytes
    return words
