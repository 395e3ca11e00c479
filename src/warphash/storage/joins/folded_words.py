"""Words of rows of several columns, on a CPU: one column is folded in after the other (``joins/cpu/words.cuh``)."""

from __future__ import annotations

from ...runtime.abi import FilterBatch
from ...runtime.engine import Engine
from ...runtime.source import JOINS
from ...settings import get_num_threads
from ..groups.spans import cut
from ..groups.ways import chunks_of

__all__ = ["fold_words"]

_WORD_BYTES = 8


def fold_words(engine: Engine, words: int, items: int, n: int, factor: int) -> None:
    """Fold a column into the words of its rows, in place.

    Parameters
    ----------
    engine
        Of the CPU.
    words, items, n
        Addresses of ``n`` words, and of the items of the column, of 8 bytes each; 0: all items are 0.
    factor
        An odd number below 2**64.
    """
    if n:
        batch = FilterBatch(n=n, keys=items, key_bytes=_WORD_BYTES, salt=factor, out_words=words)
        engine.program(JOINS).run("fold_words", cut(n, chunks_of(n, get_num_threads())), batch, n, None)
