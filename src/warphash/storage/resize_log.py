"""Resizes, told to who listens: a table grows, shrinks, or moves all of its pairs.

The log (logger ``warphash``, level DEBUG) hears of a resize once it is done. `watched` hears of its begin and its end,
for measurements. A call that resizes nothing does not come here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

__all__ = ["Cause", "Resize", "watched"]

_log = logging.getLogger("warphash")

_watchers: list[tuple[Callable[[], None], Callable[[], None]]] = []


class Cause(StrEnum):
    """Why a table was resized."""

    ASKED = "the program asked for it"
    BATCH = "a batch needs room"
    BOUNDS = "the load factor left its bounds"
    ERASED = "too many slots are erased"
    INTERRUPT = "an interrupted update left pairs without a slot"
    NO_SLOT = "pairs found no slot"


class Resize:
    """A resize that begins now, of a table with so many slots. A resize that fails is never done."""

    def __init__(self, design: str, slots: int, cause: Cause) -> None:
        self._design, self._before, self._cause = design, slots, cause
        for begins, _ in _watchers:
            begins()

    def done(self, keys: int, slots: int) -> None:
        """The table of ``keys`` keys has ``slots`` now, which may be as many as before."""
        for _, ends in _watchers:
            ends()
        if not _log.isEnabledFor(logging.DEBUG):
            return
        verb = "grew" if slots > self._before else "shrank" if slots < self._before else "was rebuilt"
        _log.debug(
            "%s table %s from %s to %s slots with %s keys: %s",
            self._design,
            verb,
            *map("{:,}".format, (self._before, slots, keys)),
            self._cause,
        )


@contextmanager
def watched(begins: Callable[[], None], ends: Callable[[], None]) -> Iterator[None]:
    """Call ``begins`` at the begin of each resize in the block, and ``ends`` once the resize is done, in its thread.

    A resize that fails has no end, so the next begin stands for both.
    """
    _watchers.append((begins, ends))
    try:
        yield
    finally:
        _watchers.remove((begins, ends))
