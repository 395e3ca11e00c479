"""The data files of figures and tables: what is built and measured, and what the paper reports in numbers.

A file in ``figures/`` holds no program: a new figure is a new file, which `figure.run` interprets.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from ..errors import ParameterError

__all__ = ["Figure", "Point", "Series", "load", "names"]


@dataclass(frozen=True)
class Series:
    """One line: a design with its parameters, up to the load factor ``most``."""

    label: str
    design: str
    parameters: dict[str, Any]
    most: float


@dataclass(frozen=True)
class Point:
    """One number: ours or the paper's. Rates in million keys per second."""

    series: str
    panel: str
    x: float
    value: float


@dataclass(frozen=True)
class Figure:
    """One data file.

    Attributes
    ----------
    metric
        ``"rate"``, ``"mean rate"`` (over all x), ``"probes"`` (buckets read per key), ``"success"`` (share of builds).
    x, values
        What is swept: ``"load_factor"`` or ``"keys"``.
    keys, load_factor
        What stays.
    panels
        Operations, as `lab.runner.Measurement` names them.
    """

    title: str
    source: str
    metric: str
    x: str
    values: list[float]
    keys: int
    load_factor: float
    panels: list[str]
    paper_device: str
    series: list[Series]
    published: list[Point]
    note: str = ""


def names() -> list[str]:
    """All figures, in the order of the paper."""
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def load(name: str) -> Figure:
    """Read one data file.

    Raises
    ------
    ParameterError
        If there is none of that name.
    """
    if name not in names():
        raise ParameterError(f"there is no figure {name!r}; there are: {', '.join(names())}")
    content = tomllib.loads((_folder() / f"{name}.toml").read_text())
    content["series"] = [Series(**s) for s in content["series"]]
    content["published"] = [Point(**p) for p in content.get("published", [])]
    return Figure(**content)


def _folder() -> Any:
    return resources.files(__package__) / "figures"
