"""How the series of a picture look: told apart by colour, and without it by marker, line and pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["LOOKS", "QUIET", "Look", "stamp"]

QUIET = "#6e7781"
"""The colour of what is told beside the data."""


@dataclass(frozen=True)
class Look:
    """A colour; the marker and the dashes of a line; the pattern of a bar; and the letter of a stack of bars."""

    colour: str
    marker: str
    dashes: Any
    pattern: str
    letter: str

    def line(self, with_markers: bool) -> dict[str, Any]:
        """Options of a line."""
        marker = {"marker": self.marker, "markersize": 4} if with_markers else {}
        return {"color": self.colour, "linestyle": self.dashes, "linewidth": 1.8, **marker}

    @property
    def bar(self) -> dict[str, Any]:
        """Options of a bar."""
        return {"color": self.colour, "hatch": self.pattern, "edgecolor": "white", "linewidth": 0}


LOOKS = tuple(
    Look(*look)
    for look in (
        ("#1f77b4", "o", "-", "", "a"),
        ("#e08214", "s", "--", "///", "b"),
        ("#2a9d8f", "^", "-.", "...", "c"),
        ("#8c6bb1", "D", ":", "xxx", "d"),
        ("#c0392b", "v", (0, (5, 1)), "\\\\\\", "e"),
        ("#8d6e2f", "P", (0, (3, 1, 1, 1)), "+++", "f"),
        ("#6e7781", "X", (0, (1, 1)), "ooo", "g"),
    )
)
"""Of the series, in order."""


def stamp(canvas: Any, made_by: str) -> None:
    """Write into the lower right corner of a figure of matplotlib what made it: command, date and version."""
    canvas.text(0.995, 0, made_by, ha="right", va="top", fontsize=6.5, color=QUIET)
