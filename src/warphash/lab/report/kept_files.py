"""Keep the files of a long run up to date, so whatever stops the run leaves what was measured so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..bench import turns
from ..bench.runner import Lab
from ..ops.libraries import installed
from . import results

__all__ = ["Files", "keep", "keep_contest"]

T = TypeVar("T", bound=Any)


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


def keep_contest(
    name: str,
    measured: Callable[[Mapping[str, str], dict[str, str]], Iterator[T]],
    lab: Lab,
    files: Files,
    draw: Callable[..., None],
) -> tuple[list[T], dict[str, str]]:
    """Measure this library beside others. What stops it leaves the files as of `keep`.

    Parameters
    ----------
    name
        Of the entry of the file with all measurements, which are dataclasses.
    measured
        Measures, given the versions of the libraries that are installed, and where to note what is left out, and why.
    draw
        Draws the picture of measurements to a path, given the machine, what made the file, and whether all are there.

    Returns
    -------
    measured, not_measured
        All measurements; and what was left out, and why.
    """
    versions, missing = installed(lab.device)
    left_out = dict.fromkeys(missing, "not installed")
    points = keep(
        measured(versions, left_out),
        lab,
        files,
        lambda found: {"libraries": versions, "not_measured": left_out, name: [asdict(each) for each in found]},
        lambda found, complete: draw(found, files.plot, lab.machine, results.made_by(files.command), complete),
    )
    return points, left_out
