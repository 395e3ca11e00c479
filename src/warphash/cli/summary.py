"""The work of a command on data files: its steps, timed, and the summary on standard error."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from .data_files import STANDARD
from .shell import errors

__all__ = ["Work"]

_SECONDS = 5.0
"""Between two lines on a standard error that is no terminal."""


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
    def step(self, name: str, *, shown: bool = True) -> Iterator[None]:
        """Time a step. A terminal shows its name meanwhile; else a long one prints a line every few seconds.

        Parameters
        ----------
        shown
            False for a step that shows by itself how far it is.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C, once standard error says what became of the output.
        """
        begin = time.perf_counter()
        # On a terminal, the rows themselves may be written while the step runs.
        is_quiet = not shown or (errors.is_terminal and (name, self._out) == ("write", STANDARD))
        try:
            with contextlib.nullcontext() if is_quiet else _shown(name):
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


def _shown(name: str) -> contextlib.AbstractContextManager[Any]:
    return errors.status(name) if errors.is_terminal else _lines(name)


@contextlib.contextmanager
def _lines(name: str) -> Iterator[None]:
    """Print a line every few seconds, from another thread, until the step ends."""
    is_over = threading.Event()
    begin = time.perf_counter()

    def report() -> None:
        while not is_over.wait(_SECONDS):
            errors.print(f"{name}: {time.perf_counter() - begin:.0f} s", markup=False)

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        is_over.set()
        reporter.join()
