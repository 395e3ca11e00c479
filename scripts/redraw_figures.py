"""Draw pictures of figures anew from their results files, as after a change of the drawing. Nothing is measured.

::

    python scripts/redraw_figures.py results/h200/figures/stash14.json ...

A picture keeps the date on which its file was committed. Its title and its note are those of ``NAME.toml`` today. If a
series has another label there than in the file, the file gets the new label, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from warphash.lab.figures import ratios
from warphash.lab.figures.catalogue import Figure, Point, load
from warphash.lab.report import figure_plots, results


def new_labels(content: dict[str, Any], figure: Figure) -> dict[str, str]:
    """The labels of series that have another one in a file than today, and those of today."""
    pairs = [(old, asdict(series)) for old, series in zip(content["figure"]["series"], figure.series, strict=False)]
    same = [(old["label"], new["label"]) for old, new in pairs if old == {**new, "label": old["label"]}]
    return {old: new for old, new in same if old != new}


def relabelled(value: Any, labels: dict[str, str]) -> Any:
    """The content of a file, or a part of it, with other labels."""
    if isinstance(value, dict):
        return {key: relabelled(each, labels) for key, each in value.items()}
    if isinstance(value, list):
        return [relabelled(each, labels) for each in value]
    return labels.get(value, value) if isinstance(value, str) else value


def redraw(path: Path) -> None:
    """Draw ``NAME.png`` beside ``NAME.json``."""
    content = json.loads(path.read_text(encoding="utf-8"))
    figure = load(path.stem)
    if labels := new_labels(content, figure):
        content = relabelled(content, labels)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
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
