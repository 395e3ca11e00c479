"""The data files of figures and tables: what is built and measured, and what the paper reports in numbers.

A file in ``figures/`` holds no program: a new figure is a new file, which `figure.run` interprets.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from ..errors import ParameterError
from .dynamic import Dynamic
from .fill import MEASURES, Fill

__all__ = ["Figure", "Point", "Ratio", "Series", "load", "names", "operation_of"]

_PAPERS = ("fig", "table", "slab", "dy", "stash")
"""What the names of figures begin with: Better GPU Hash Tables', then A Dynamic Hash Table for the GPU's, then Dynamic
Hash Tables on GPUs', then Stadium Hashing's."""


@dataclass(frozen=True)
class Series:
    """One line.

    Attributes
    ----------
    design, parameters
        The table; or one of `allocators.ALLOCATORS`, without parameters; or one of `experiments.ACCESSES`, with its
        bytes.
    most
        The line ends there: the highest load factor, or other measure of `fill`. None for no end.
    value
        ``"uint32"``, or ``"none"`` for keys alone.
    rebuilds
        Each of several batches has all keys so far built anew; of a resized table, the keys that moved are inserted.
    """

    label: str
    design: str
    parameters: dict[str, Any]
    most: float | None = None
    value: str = "uint32"
    rebuilds: bool = False


@dataclass(frozen=True)
class Point:
    """One number: ours or the paper's. Rates in millions per second, times in milliseconds.

    Attributes
    ----------
    part
        What the value is a part of that of the point without one: ``"insert"``, ``"find"``, ``"erase"`` or
        ``"resize"``.
    """

    series: str
    panel: str
    x: float
    value: float
    part: str = ""


def operation_of(panel: str) -> str:
    """What a panel shows, whichever data set it is of."""
    return panel.partition(" of ")[0]


@dataclass(frozen=True)
class Ratio:
    """What a paper sums two lines up in: ``of`` over ``over``.

    Attributes
    ----------
    panel
        The panel of the two lines; or, of figures with one for each of several data sets, what comes before ``" of "``:
        then the geometric mean is over these, too.
    at
        An x, ``"last"``, or ``"all"`` for the geometric mean over all x.
    published
        The paper's number.
    """

    panel: str
    of: str
    over: str
    published: float
    at: float | str = "all"


@dataclass(frozen=True)
class Figure:
    """One data file.

    Attributes
    ----------
    metric
        ``"rate"`` (of keys), ``"mean rate"`` (over all x), ``"operation rate"``, ``"allocation rate"``,
        ``"access rate"``, ``"time"`` (since the first batch), ``"probes"`` (buckets read per key), ``"success"`` (share
        of builds), ``"utilisation"`` (of slabs), ``"failures"`` (per cent of the keys without a slot); or
        ``"panel"``: each panel names its own (`experiments.PANEL_METRICS`).
    x, values
        What is swept: ``"keys"``, a measure of `fill`, a field of `dynamic.Dynamic`, or a parameter of the designs.
    keys, load_factor, utilisation
        What stays. Where keys are swept, one of the last two says how full tables are.
    panels
        Operations, as `lab.runner.Measurement` names them; or ``"batches 64"``: all keys in so many batches; or
        ``"allocate"``: a unit of 128 bytes for each key; or ``"access"``, or ``"resize up"``. All of one kind
        (`experiments.EXPERIMENTS`). ``"of tw"`` behind one names the data (`dynamic_sets`); else it is random.
    operations_per_key
        Of a mix.
    dynamic
        What stays of a dynamic workload.
    """

    title: str
    source: str
    metric: str
    x: str
    values: list[float]
    keys: int
    panels: list[str]
    paper_device: str
    series: list[Series]
    published: list[Point] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    load_factor: float | None = None
    utilisation: float | None = None
    operations_per_key: float = 1
    dynamic: Dynamic = field(default_factory=Dynamic)
    note: str = ""

    @property
    def paper(self) -> str:
        """Title, authors and year."""
        return self.source.partition(")")[0] + ")"

    def by_data(self) -> dict[str, list[str]]:
        """The panels of each data set."""
        found: dict[str, list[str]] = {}
        for panel in self.panels:
            found.setdefault(panel.partition(" of ")[2] or "random", []).append(panel)
        return found

    def fill(self, x: float) -> Fill:
        """How full tables are at an x."""
        if self.x in MEASURES:
            return Fill(self.x, x)
        if self.utilisation is not None:
            return Fill("utilisation", self.utilisation)
        return Fill("load_factor", self.load_factor or 0.0)


def names() -> list[str]:
    """All figures, paper by paper."""
    found = [path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml")]
    return sorted(found, key=lambda name: (next(i for i, it in enumerate(_PAPERS) if name.startswith(it)), name))


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
    content["ratios"] = [Ratio(**r) for r in content.get("ratios", [])]
    content["dynamic"] = Dynamic(**content.get("dynamic", {}))
    return Figure(**content)


def _folder() -> Any:
    return resources.files(__package__) / "figures"
