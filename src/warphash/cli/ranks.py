"""A command on data files as one of the processes that ``torchrun`` starts: ``--distributed``.

All processes run the same command, each on its share of the row groups. Rank 0 alone prints. Exit codes are those of
the command without ``--distributed``, and alike on all ranks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import typer

from ..errors import CollectiveError, ParameterError, PathError
from .data_files import STANDARD, check_file, is_csv
from .summary import Work

__all__ = ["DISTRIBUTED", "MEMORY", "Ranks"]

DISTRIBUTED: Any = typer.Option(
    "--distributed",
    help="As one of the processes of torchrun: read a share of Parquet files, and write a file of each process into "
    "the new folder --out.",
)

MEMORY = "2GB"
"""For reading a share, by default."""


class Ranks:
    """The processes of a command, in a ``with``.

    Parameters
    ----------
    work
        The steps of the command.
    files
        What is read: Parquet files.
    out
        The folder that is written; None: nothing is written.
    others
        Options that say nothing here, by their names, and whether they were given.

    Raises
    ------
    ParameterError
        If the command was not started by ``torchrun``, if such an option was given, for other files, and without a
        folder.
    """

    def __init__(self, work: Work, files: Sequence[str], out: str | None, **others: Any) -> None:
        self._work = work
        self.rank = int(os.environ.get("RANK", "0"))
        with self._one_error():
            given = [f"--{name}" for name, value in others.items() if value]
            if given:
                raise ParameterError(f"--distributed has no {', '.join(given)}: leave it out")
            if out == STANDARD:
                raise ParameterError("--distributed writes a file of each process: give a new folder by --out")
            for path in files:
                if is_csv(path):
                    raise ParameterError(f"--distributed reads Parquet files, got {path!r}: convert it")
            try:
                from .. import distributed
            except ImportError as error:
                raise ParameterError(f"--distributed needs PyTorch ({error}): pip install torch") from None
            distributed.init("gloo")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import torch.distributed as dist

        if error is None or isinstance(error, typer.Exit):
            dist.barrier()
        dist.destroy_process_group()
        with self._one_error():
            if isinstance(error, CollectiveError | ParameterError):
                raise error

    def looked_at(self, files: Sequence[str]) -> tuple[list[str], int]:
        """The names of the columns of files, and how many rows the files have. Collective."""
        from ..distributed.channel import channel_of
        from ..stream.sources import ParquetSource

        def look() -> tuple[list[str], int]:
            for path in files:
                check_file(path)
            source = ParquetSource(files)
            return source.schema.names, source.rows

        return channel_of().done("look at the files", look)

    def total(self, n: int) -> int:
        """The sum of a number of each rank. Collective."""
        import torch
        import torch.distributed as dist

        whole = torch.tensor(n)
        dist.all_reduce(whole)
        return int(whole)

    def step(self, name: str) -> contextlib.AbstractContextManager[None]:
        """A step of the work, which rank 0 shows."""
        return self._work.step(name, shown=self.rank == 0)

    def report(self, **counts: int) -> None:
        """Print a summary, on rank 0."""
        if self.rank == 0:
            self._work.report(**counts)

    @contextlib.contextmanager
    def _one_error(self) -> Any:
        """Errors that all ranks have alike are printed by rank 0."""
        try:
            yield
        except (CollectiveError, ParameterError, PathError):
            if self.rank == 0:
                raise
            raise typer.Exit(2) from None
