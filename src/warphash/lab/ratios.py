"""How many times faster one series of a figure is than another, beside what its paper says in one number."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import geometric_mean

from .figure_data import Figure, Point, Ratio

__all__ = ["Compared", "compare"]


@dataclass(frozen=True)
class Compared:
    """A paper's ratio, and the one measured."""

    ratio: Ratio
    value: float


def compare(figure: Figure, points: list[Point]) -> list[Compared]:
    """The ratios of a figure that its points tell; of values at x that both series have."""
    found = []
    for ratio in figure.ratios:
        of, over = (
            {p.x: p.value for p in points if (p.series, p.panel) == (name, ratio.panel)}
            for name in (ratio.of, ratio.over)
        )
        both = sorted(x for x in of.keys() & over.keys() if over[x] > 0)
        if ratio.at == "last":
            both = both[-1:]
        elif ratio.at != "all":
            both = [x for x in both if x == ratio.at]
        if both:
            found.append(Compared(ratio, geometric_mean(of[x] / over[x] for x in both)))
    return found
