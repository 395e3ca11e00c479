"""Compute the ratio of two series of a figure, and set it beside the ratio that the paper reports."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import geometric_mean

from .catalogue import Figure, Point, Ratio, operation_of

__all__ = ["Compared", "compare"]


@dataclass(frozen=True)
class Compared:
    """A paper's ratio and the measured ratio."""

    ratio: Ratio
    value: float


def compare(figure: Figure, points: list[Point]) -> list[Compared]:
    """The figure's ratios that can be computed: for each, both series must have points at a common x."""
    found = []
    for ratio in figure.ratios:
        of, over = (
            {
                (p.x, p.panel): p.value
                for p in points
                if p.series == name and ratio.panel in (p.panel, operation_of(p.panel))
            }
            for name in (ratio.of, ratio.over)
        )
        both = [at for at in of.keys() & over.keys() if over[at] > 0]
        x = max((x for x, _ in both), default=None) if ratio.at == "last" else ratio.at
        values = [of[at] / over[at] for at in both if x in ("all", at[0])]
        if values:
            found.append(Compared(ratio, geometric_mean(values)))
    return found
