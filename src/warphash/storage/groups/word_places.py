"""Codes of words whose span is small, on a CPU: a place for each word that can be (``groups/cpu/places.cuh``)."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...runtime.abi import KeyPlaces, PlaceBatch
from ...runtime.engine import Engine
from ...runtime.memory import bytes_at
from ...runtime.source import GROUPS
from ..batch_order.sample import sample_rows
from ..new_memory import filled
from .spans import Span, small_span
from .ways import FEWEST_SAMPLED, may_be_places, sampled_words

__all__ = ["WordPlaces", "places_of"]

_WORD_WIDTHS = (1, 2, 4, 8)


class WordPlaces:
    """The codes of some words.

    Attributes
    ----------
    used
        How many words there are: fewer than were given, if some repeat. Such a word has the code of one of them.
    """

    def __init__(self, engine: Engine, span: Span, width: int) -> None:
        self._engine, self._held = engine, filled(engine, 4 * (span.size + 1))
        self._table = KeyPlaces(places=self._held.ptr, low=span.low, range=span.size, word_bytes=width)
        self.used = 0

    def put(self, words: int, n: int, codes: int, code_bytes: int) -> None:
        """Give codes below 2**32 - 1, of 4 or 8 bytes each, to ``n`` packed words; arguments are addresses."""
        self._run("put_places", words, n, codes, code_bytes)
        self.used = int(np.count_nonzero(bytes_at(self._held.ptr, self._held.nbytes).view(np.uint32)))

    def find(self, words: int, n: int, codes: int, code_bytes: int) -> None:
        """Write the codes of ``n`` packed words, -1 for one that has none; arguments are addresses."""
        self._run("find_places", words, n, codes, code_bytes)

    def _run(self, entry: str, words: int, n: int, codes: int, code_bytes: int) -> None:
        batch = PlaceBatch(n=n, words=words, codes=codes, code_bytes=code_bytes)
        self._engine.program(GROUPS).run(entry, self._table, batch, n, None)


def places_of(engine: Engine, words: int, width: int, n: int) -> WordPlaces | None:
    """Empty places for ``n`` packed words at an address, if their span is small; else None, as on a GPU.

    Raises
    ------
    MemoryError
        If there is no memory for the places.
    """
    if engine.lanes != 1 or width not in _WORD_WIDTHS or not n:
        return None
    sample = None
    if n >= FEWEST_SAMPLED and width > 2:
        sample = sample_rows(engine, words, width, n, sampled_words(n))
    span = small_span(engine, words, width, n, partial(may_be_places, n), sample)
    return None if span is None else WordPlaces(engine, span, width)
