"""The work of a command on data files: its steps, timed, and the summary on standard error."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from .data_files import STANDARD
from .shell import errors

__all__ = ["Work"]


class Work:
    """The steps of one command.

    Parameters
    ----------
    out
        Where the answer goes, for what is said after Ctrl-C.
    """

    def __init__(self, out: str) -> None:
        self._out, self._seconds = out, dict[str, float]()

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step. A terminal shows its name meanwhile.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C, once standard error says what became of the output.
        """
        begin = time.perf_counter()
        # On a terminal, the rows themselves may be written while the step runs.
        shown = errors.status(name) if (name, self._out) != ("write", STANDARD) else contextlib.nullcontext()
        try:
            with shown:
                yield
        except KeyboardInterrupt:
            kept = "the output is not complete" if self._out == STANDARD else f"{self._out} is as it was"
            errors.print(f"interrupted: {kept}", markup=False)
            raise
        self._seconds[name] = self._seconds.get(name, 0) + time.perf_counter() - begin

    def report(self, **counts: int) -> None:
        """Print the counts and the time of each step to standard error. An underscore in a name stands for a space."""
        from ..lab.report.tables import plain_table

        table = plain_table("", "")
        table.title = table.caption = None
        table.padding = (0, 2, 0, 0)
        cells: dict[str, Any] = {name.replace("_", " "): f"{count:,}" for name, count in counts.items()}
        cells |= {f"{name}, s": f"{seconds:.2f}" for name, seconds in self._seconds.items()}
        for name in cells:
            table.add_column(name, justify="right", no_wrap=True)
        table.add_row(*cells.values())
        errors.print(table)
