"""What long work shows meanwhile: a bar by rows on a terminal, else a line every few seconds, on standard error."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator
from typing import Any, Protocol

from ..errors import ParameterError

__all__ = ["Lines", "Progress", "Silent", "counted", "progress_of"]

_SECONDS = 5.0
_METHODS = ("begin", "advance", "close")


class Progress(Protocol):
    """Told of the work as it goes on."""

    def begin(self, step: str, rows: int | None) -> None:
        """Begin a step over so many rows; None: nobody knows how many."""

    def advance(self, rows: int) -> None:
        """Add rows that the step is done with."""

    def close(self) -> None:
        """End. May be called twice."""


class Silent:
    """Shows nothing."""

    def begin(self, step: str, rows: int | None) -> None:
        """As of `Progress`."""

    def advance(self, rows: int) -> None:
        """As of `Progress`."""

    def close(self) -> None:
        """As of `Progress`."""


class Lines:
    """A line every few seconds, for standard error that is a file or a pipe. Work of less time shows none.

    Parameters
    ----------
    seconds
        Between two lines.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds, self._next = seconds, time.monotonic() + seconds
        self._step, self._done = "", 0
        self._rows: int | None = None

    def begin(self, step: str, rows: int | None) -> None:
        """As of `Progress`."""
        self._step, self._rows, self._done = step, rows, 0

    def advance(self, rows: int) -> None:
        """As of `Progress`."""
        self._done += rows
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._seconds
            of_all = f" of {self._rows:,}" if self._rows is not None else ""
            print(f"{self._step}: {self._done:,}{of_all} rows", file=sys.stderr, flush=True)

    def close(self) -> None:
        """As of `Progress`."""


class _Bar:
    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bars = Bars(*columns, console=Console(stderr=True), transient=True)
        self._task: Any = None

    def begin(self, step: str, rows: int | None) -> None:
        if self._task is None:
            self._bars.start()
        else:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(step, total=rows)

    def advance(self, rows: int) -> None:
        self._bars.advance(self._task, rows)

    def close(self) -> None:
        self._bars.stop()


def progress_of(given: Progress | bool | None) -> Progress:
    """What a caller asked for.

    Parameters
    ----------
    given
        An object with the methods of `Progress`; True: a bar if standard error is a terminal, else lines; None: the
        bar alone; False: nothing.

    Raises
    ------
    ParameterError
        For another object.
    """
    if given is False:
        return Silent()
    if given is None or given is True:
        if sys.stderr is not None and sys.stderr.isatty() and importlib.util.find_spec("rich"):
            return _Bar()
        return Lines() if given else Silent()
    if isinstance(given, type) or not all(callable(getattr(given, name, None)) for name in _METHODS):
        raise ParameterError(
            f"expected progress= to be True, False, None or an object with {', '.join(_METHODS)}, got {given!r}"
        )
    return given


def counted(progress: Progress, step: str, rows: int | None, tables: Iterator[Any]) -> Iterator[Any]:
    """Tables as they come. The rows of each count as done when the next one is asked for."""
    progress.begin(step, rows)
    for table in tables:
        yield table
        progress.advance(len(table))
