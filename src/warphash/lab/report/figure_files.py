"""Measure and draw a figure or table of a paper from its data file (`figures.catalogue`)."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ... import atomic_file
from ...errors import PathError
from ..bench import turns
from ..bench.runner import Lab
from ..figures.catalogue import Point, load
from ..figures.experiments import measured
from ..figures.ratios import Compared, compare
from . import results
from .figure_plots import draw
from .plots import check_picture

__all__ = ["Result", "check_targets", "run"]


@dataclass(frozen=True)
class Result:
    """Points, ratios, number of wrong answers and picture of one run."""

    points: list[Point]
    ratios: list[Compared]
    mismatches: int
    picture: Path


def run(
    name: str,
    device: str = "cpu",
    n: int | None = None,
    out: Path = Path(),
    seed: int = 1,
    note: Callable[[str], None] = lambda _: None,
) -> Result:
    """Measure a figure, draw it, and write ``NAME.json`` and ``NAME.png`` into ``out``.

    Parameters
    ----------
    n
        Most keys. The default is the paper's number on a GPU and at most 1 million on a CPU. A sweep over keys or
        buckets ends at ``n``.

    Raises
    ------
    ParameterError
        If there is no such figure.
    PathError
        Before the first measurement, if no file can be written into ``out``.
    """
    figure = load(name)
    check_targets(name, out)
    n = n or (figure.keys if device != "cpu" else min(figure.keys, 1_000_000))
    lab = Lab(device)
    with results.recorded(lab) as made:
        with suppress(MemoryError):  # no room for its region: the rest is still worth measuring
            lab.memory.reference()
        rows = list(measured(figure, lab, n, seed, note))
    if figure.metric == "mean rate":
        rows = _means(rows)
    points, wrong = [point for point, _ in rows], sum(mismatches for _, mismatches in rows)
    ratios = compare(figure, points)
    data, picture = _targets(name, out)
    content = {
        **made.head(),
        "figure": asdict(figure),
        "keys": n,
        "mismatches": wrong,
        "points": [{**asdict(point), "mismatches": mismatches} for point, mismatches in rows],
        "ratios": [asdict(r) for r in ratios],
    }
    # The picture comes first, so where the new data file is, the new picture is, too.
    command = "warphash " + shlex.join(sys.argv[1:])
    with turns.away():
        draw(figure, points, ratios, picture, lab.machine, n, results.made_by(command))
    results.write(data, command, lab.machine, content)
    return Result(points, ratios, wrong, picture)


def check_targets(name: str, out: Path) -> None:
    """Make the folder ``out``. Raise if the figure's files cannot be written into the folder."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PathError(f"there can be no folder {out} ({error.strerror}): give another") from None
    data, picture = _targets(name, out)
    atomic_file.check(data)
    check_picture(picture)


def _targets(name: str, out: Path) -> tuple[Path, Path]:
    return out / f"{name}.json", out / f"{name}.png"


def _means(rows: list[tuple[Point, int]]) -> list[tuple[Point, int]]:
    """The mean over all x of each line of a panel, with the wrong answers behind it."""
    groups: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for point, wrong in rows:
        groups.setdefault((point.series, point.panel), []).append((point.value, wrong))
    return [
        (Point(*line, 0, float(np.mean([value for value, _ in its]))), sum(wrong for _, wrong in its))
        for line, its in groups.items()
    ]
