"""Every exception that warphash raises on purpose.

Each also derives from the built-in that a caller would expect, so ``except ValueError`` works without this module. A
message says what was expected, what came, and the mend.
"""

from __future__ import annotations

import errno
from typing import Any

__all__ = [
    "EXTENSION_MEND",
    "CaptureError",
    "CollectiveError",
    "CorruptFile",
    "DeviceError",
    "DtypeError",
    "EngineUnavailable",
    "NestedCall",
    "ParameterError",
    "PathError",
    "PeerLost",
    "ProcessError",
    "ShapeError",
    "TableFull",
    "UnsupportedVerb",
    "WarphashError",
    "is_lack_of_room",
    "refused_by_system",
]

EXTENSION_MEND = "pip install --force-reinstall --no-deps warphash"
"""What brings the compiled extension back."""

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE))


class WarphashError(Exception):
    """Base of all the others."""


class TableFull(WarphashError):
    """A batch does not fit, and the table may not grow. The table is as it was.

    Attributes
    ----------
    keys
        The keys of the batch that found no slot, as a NumPy array; None where they are not known.
    """

    def __init__(self, message: str, keys: Any = None) -> None:
        super().__init__(message)
        self.keys = keys


class UnsupportedVerb(WarphashError, TypeError):
    """The design or the table's types have no such operation."""


class DtypeError(WarphashError, TypeError):
    """A key or value type that the table does not take."""


class ShapeError(WarphashError, ValueError):
    """Arrays of the wrong shape or of different lengths."""


class DeviceError(WarphashError, ValueError):
    """A device that does not exist, or an array that lives on another one than the table."""


class ParameterError(WarphashError, ValueError):
    """A parameter outside its range, or one that the design does not have."""


class CorruptFile(WarphashError, ValueError):
    """A saved table, or a table in a file, that is truncated, altered, without its journal, or no table."""


class CollectiveError(WarphashError, RuntimeError):
    """A call that all ranks of a group make failed on some of them. All ranks raise this error; the next call works.

    Attributes
    ----------
    failures
        What was raised, by rank; of ranks that made different calls, what each called.
    rounds
        How many rounds of the owners' work are done on all ranks. The rows that stay with a rank are a round, too.
    has_begun
        Whether ranks have begun with the rounds. If not, no rank has changed anything.
    """

    def __init__(
        self, message: str, failures: dict[int, str] | None = None, rounds: int = 0, *, has_begun: bool = False
    ) -> None:
        super().__init__(message)
        self.failures, self.rounds, self.has_begun = failures or {}, rounds, has_begun


class PeerLost(WarphashError, RuntimeError):
    """A rank of a group ended, or does not answer. The group, and every table over it, is of no further use."""


class PathError(WarphashError, OSError):
    """A path that no file can be read from or written to, such as a folder, or in a folder that takes no file."""


class ProcessError(WarphashError, RuntimeError):
    """A call that belongs into another process: of a forked copy of a table, or of a worker's copy of an `IdMap`."""


class NestedCall(WarphashError, RuntimeError):
    """A thread called a table from within a call of this table, as the handler of a signal may. Nothing was done.

    A lookup within a lookup is allowed.
    """


class EngineUnavailable(WarphashError, RuntimeError):
    """The device asked for cannot run here; the message holds the command that mends it."""


class CaptureError(WarphashError, RuntimeError):
    """A CUDA graph is being captured, and the call is not one that a graph can repeat. The table is as it was."""


def is_lack_of_room(error: OSError) -> bool:
    """Whether an error of the system says that there is no room: on the disk, in memory, or among the open files."""
    return error.errno in _NO_ROOM


def refused_by_system(error: OSError, what: str, mend: str) -> MemoryError | PathError:
    """The exception for an error of the system at a file: `MemoryError` where there is no room, else `PathError`.

    Parameters
    ----------
    what
        What was refused: a noun.
    mend
        What the caller may do where room is not the reason.
    """
    if is_lack_of_room(error):
        return MemoryError(f"there is no room for {what} ({error.strerror})")
    return PathError(f"the system refuses {what} ({error.strerror}): {mend}")
