"""The log of tables that grow, shrink, or move all of their pairs: logger ``warphash``, level DEBUG.

A store logs a resize once it is done. A call that resizes nothing does not come here.
"""

from __future__ import annotations

import logging
from enum import StrEnum

__all__ = ["Cause", "log_resize"]

_log = logging.getLogger("warphash")


class Cause(StrEnum):
    """Why a table was resized."""

    ASKED = "the program asked for it"
    BATCH = "a batch needs room"
    BOUNDS = "the load factor left its bounds"
    ERASED = "too many slots are erased"
    INTERRUPT = "an interrupted update left pairs without a slot"
    NO_SLOT = "pairs found no slot"


def log_resize(design: str, keys: int, before: int, after: int, cause: Cause) -> None:
    """Log that a table of ``keys`` keys had ``before`` slots and has ``after``, which may be as many."""
    if not _log.isEnabledFor(logging.DEBUG):
        return
    verb = "grew" if after > before else "shrank" if after < before else "was rebuilt"
    _log.debug(
        "%s table %s from %s to %s slots with %s keys: %s",
        design,
        verb,
        *map("{:,}".format, (before, after, keys)),
        cause,
    )
