"""Draw stacked bars of the parts of a time: a group for each x, a bar for each series, a layer for each part."""

from __future__ import annotations

from typing import Any

from ..figures.catalogue import Figure, Point
from .looks import LOOKS

__all__ = ["AXES", "draw_stacks", "tick"]

AXES = {
    "key_bytes": "bytes of a key",
    "row_bytes": "bytes of a row",
    "ticket_bits": "bits of a ticket",
    "load_factor": "load factor",
    "utilisation": "memory utilisation",
    "slab_count": "average slab count",
    "alpha": "least load factor, α",
    "beta": "greatest load factor, β",
    "erases_per_insert": "erases per insert, r",
    "pairs_per_batch": "pairs in a batch",
    "range_slots": "slots of a bucket",
    "rounds": "rounds of a placement",
}
"""Axis labels of the swept parameters."""

_LAYERS: dict[str, dict[str, Any]] = {
    "insert": {"alpha": 1.0},
    "find": {"alpha": 0.65},
    "erase": {"alpha": 0.35},
    "resize": {"alpha": 0.9, "hatch": "////", "edgecolor": "white", "linewidth": 0},
}


def draw_stacks(axis: Any, figure: Figure, panel: str, points: list[Point]) -> None:
    """Draw a stacked bar for every point of a panel, with the letter of its series. The patterns are those of parts."""
    xs = sorted({p.x for p in points if p.panel == panel})
    width = 0.84 / len(figure.series)
    for number, (style, series) in enumerate(zip(LOOKS, figure.series, strict=False)):
        mine = {(p.x, p.part): p.value for p in points if (p.series, p.panel) == (series.label, panel)}
        places = [at - 0.42 + (number + 0.5) * width for at in range(len(xs))]
        below = [0.0] * len(xs)
        for part, look in _LAYERS.items():
            heights = [mine.get((x, part), 0.0) for x in xs]
            axis.bar(places, heights, width=0.92 * width, bottom=below, **{"color": style.colour, **look})
            below = [low + height for low, height in zip(below, heights, strict=True)]
        for place, top in zip(places, below, strict=True):
            said = style.letter if top else "not measured"
            at = {"xytext": (0, 1), "textcoords": "offset points", "ha": "center", "fontsize": 6.5}
            axis.annotate(said, (place, top), rotation=0 if top else 90, **at)
        axis.bar(places, 0, color=style.colour, label=f"{style.letter}: {series.label}")
    for part, look in _LAYERS.items():
        axis.bar(0, 0, label=part, **{"color": "#57606a", **look})
    axis.set_xticks(range(len(xs)), [tick(x) for x in xs])
    axis.set_xlabel(AXES.get(figure.x, figure.x))
    axis.tick_params(length=0)


def tick(x: float) -> str:
    """A short label for an x."""
    return f"{x:g}" if x < 1000 else f"{x / 1e6:g} M"
