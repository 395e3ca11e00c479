"""Draw pictures of figures anew from their results files, as after a change of the drawing. Nothing is measured.

::

    python scripts/redraw_figures.py results/h200/figures/stash14.json ...

A picture keeps the date on which its file was committed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

from warphash.lab.figures import ratios
from warphash.lab.figures.catalogue import Point, load
from warphash.lab.report import figure_plots, results


def redraw(path: Path) -> None:
    """Draw ``NAME.png`` beside ``NAME.json``."""
    content = json.loads(path.read_text(encoding="utf-8"))
    figure = load(path.stem)
    points = [Point(**{name: each[name] for name in Point.__dataclass_fields__}) for each in content["points"]]
    committed = subprocess.run(
        ["git", "log", "-1", "--format=%as", "--", path.name],
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    made_by = results.made_by(content["command"], date.fromisoformat(committed), content["warphash"])
    compared = ratios.compare(figure, points)
    picture = path.with_suffix(".png")
    figure_plots.draw(figure, points, compared, picture, content["machine"], content["keys"], made_by)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        redraw(Path(name))
