"""What a call works with: its memory, the folder of its files, and who is told how far it is."""

from __future__ import annotations

import importlib.util
import os
from typing import Self

from .memory import bytes_of
from .progress import Progress, progress_of
from .spill import SpillFolder

__all__ = ["Workspace", "need_pyarrow"]

_SHARES = 12
"""Rows that are held take a twelfth of the memory. A verb takes up to six times their bytes beside them (measured for
`group_by` of two columns of int64), and batches that are read and written take the rest."""

_MOST_SHARED = 1 << 30
"""Columns of strings with offsets of 32 bits stay in one chunk."""

_BLOCKS = 64


def need_pyarrow() -> None:
    """Raise `ImportError` without PyArrow."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError("warphash.stream needs PyArrow: pip install pyarrow", name="pyarrow")


class Workspace:
    """The means of one call. Used in a ``with``, which removes all files at its end.

    Parameters
    ----------
    memory, folder, progress
        As of the verbs.

    Raises
    ------
    ImportError
        Without PyArrow.
    ParameterError
        As `bytes_of`, `SpillFolder` and `progress_of`.
    PathError
        As `SpillFolder`.

    Attributes
    ----------
    memory
        In bytes.
    share
        Bytes of rows to hold at one time.
    block
        Bytes of rows that a run of sorted rows is read by.
    spill, progress
        Where files go, and who is told.
    """

    def __init__(
        self, memory: int | str, folder: str | os.PathLike[str] | None = None, progress: Progress | bool | None = None
    ) -> None:
        need_pyarrow()
        self.memory = bytes_of(memory)
        self.share = max(1, min(self.memory // _SHARES, _MOST_SHARED))
        self.block = max(1, self.share // _BLOCKS)
        self.spill = SpillFolder(folder)
        self.progress = progress_of(progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.progress.close()
        finally:
            self.spill.close()
