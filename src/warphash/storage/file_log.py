"""What the file of a table keeps beside its slots, and what grows at each commit: the bytes of strings (`FileLog`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["FileLog", "LogPart"]

Bytes = npt.NDArray[np.uint8]


class LogPart(NamedTuple):
    """What a commit adds to a log.

    Attributes
    ----------
    pieces
        The bytes, in parts.
    replaces
        The log has these bytes alone then. Otherwise they follow those that are there.
    """

    pieces: Sequence[Bytes]
    replaces: bool

    @property
    def nbytes(self) -> int:
        """Of all pieces."""
        return sum(piece.nbytes for piece in self.pieces)


class FileLog(Protocol):
    """A log in a file: the file says how long it is, so a tail that no commit confirmed counts for nothing."""

    def due(self, identity: str) -> LogPart:
        """What the log of a file lacks. The file is the one of this identity."""

    def confirmed(self) -> None:
        """The file has what `due` returned last."""

    def load(self, content: Bytes, identity: str) -> None:
        """Take over what a file of this identity has.

        Raises
        ------
        CorruptFile
            If the log is damaged.
        """
