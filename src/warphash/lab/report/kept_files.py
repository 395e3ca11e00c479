"""Keep the files of a long run up to date, so whatever stops the run leaves what was measured so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..bench import turns
from ..bench.runner import Lab
from . import results

__all__ = ["Files", "keep"]

T = TypeVar("T")


@dataclass(frozen=True)
class Files:
    """Where the results and the picture of a run go, and the command line that makes them."""

    json: Path
    plot: Path
    command: str


def keep(
    measured: Iterator[T],
    lab: Lab,
    files: Files,
    content: Callable[[Sequence[T]], Mapping[str, Any]],
    draw: Callable[[Sequence[T], bool], None],
) -> list[T]:
    """Measure all points. Write the results file after each, and the picture when the run ends or is stopped.

    Parameters
    ----------
    content
        Entries of the file for the points so far.
    draw
        Draws the picture of the points, given whether all were measured.

    Returns
    -------
    list
        All points. If the run is stopped, the exception goes on to the caller after both files are written.
    """
    points: list[T] = []

    with results.recorded(lab) as recording:

        def save(complete: bool) -> None:
            entries = {**recording.head(), "complete": complete, **content(points)}
            results.write(files.json, files.command, lab.machine, entries)

        complete = False
        try:
            for point in measured:
                points.append(point)
                save(complete)
            complete = True
        finally:
            if points:
                with turns.away():
                    draw(points, complete)
                save(complete)
    return points
