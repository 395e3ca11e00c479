"""The data files of figures and tables: what to build and measure, and the numbers that the paper reports.

A file ``NAME.toml`` beside this module holds data only. Each published point is a row of its array ``rows``, under the
names in ``columns``. A new figure needs only a new file, which `lab.report.figure_files.run` interprets.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from ...errors import ParameterError
from .dynamic import Dynamic
from .fill import MEASURES, Fill

__all__ = ["Figure", "Point", "Ratio", "Series", "load", "names", "operation_of"]

_PAPERS = ("fig", "table", "slab", "dy", "stash", "hh")
"""Prefixes of the figures' names, paper by paper: ``fig`` and ``table`` (Better GPU Hash Tables), ``slab`` (A Dynamic
Hash Table for the GPU), ``dy`` (Dynamic Hash Tables on GPUs), ``stash`` (Stadium Hashing), ``hh`` (HH Hash)."""


@dataclass(frozen=True)
class Series:
    """One line of a figure.

    Attributes
    ----------
    design, parameters
        The table; or one of `allocators.ALLOCATORS`, without parameters; or one of `experiments.ACCESSES`, with the
        bytes of a place. In a figure of metric ``"contest rate"``, a design or one of the `rivals`. In a figure of
        builds and finds, ``"dict"`` is Python's.
    least, most
        Lowest and highest load factor of the line, or value of another measure of `fill`. None for no limit.
    value
        ``"uint32"``, or ``"none"`` for a set.
    rebuilds
        In a figure of batches: build a new table of all keys so far for each batch. In a figure of resizes: time the
        insert of the keys that a resize moves.
    drops
        The table drops the pairs that find no slot (`lossy`): rates are of the distinct keys.
    """

    label: str
    design: str
    parameters: dict[str, Any]
    least: float | None = None
    most: float | None = None
    value: str = "uint32"
    rebuilds: bool = False
    drops: bool = False

    def reaches(self, fill: float) -> bool:
        """Whether the line has a point of this measure of `fill`."""
        return (self.least is None or fill >= self.least) and (self.most is None or fill <= self.most)


@dataclass(frozen=True)
class Point:
    """One number, measured or published. Rates are in millions per second, times in milliseconds.

    Attributes
    ----------
    part
        ``"insert"``, ``"find"``, ``"erase"`` or ``"resize"`` if the value is that part of a time. Empty for the whole.
    """

    series: str
    panel: str
    x: float
    value: float
    part: str = ""


_OF_THE_HOST = frozenset(["bus", "contest", "slices", "tiers", "trace"])
"""First words of panels. Batches of a dynamic workload are not among them: to launch them takes one processor, and a
host has several for each command that runs at once."""
_HOST_TABLES = frozenset(["dict", "tiered"])


def operation_of(panel: str) -> str:
    """What a panel shows: its name without the data set."""
    return panel.partition(" of ")[0]


@dataclass(frozen=True)
class Ratio:
    """A ratio of two lines that a paper reports: ``of`` over ``over``.

    Attributes
    ----------
    panel
        The panel of the two lines. If a figure has one panel for each data set, ``panel`` may be the part before
        ``" of "``: then the geometric mean includes all data sets.
    at
        An x, ``"last"``, or ``"all"`` for the geometric mean over all x.
    published
        The paper's number.
    published_most
        The greatest of several numbers; ``published`` is the least. None if there is one.
    """

    panel: str
    of: str
    over: str
    published: float
    at: float | str = "all"
    published_most: float | None = None


@dataclass(frozen=True)
class Figure:
    """One data file.

    Attributes
    ----------
    metric
        ``"rate"`` (of keys), ``"mean rate"`` (over all x), ``"operation rate"``, ``"allocation rate"``,
        ``"access rate"``, ``"contest rate"`` (of keys, from arrays of the host), ``"time"`` (since the first batch),
        ``"probes"`` (buckets read per key), ``"sectors"`` (of 32 bytes, counted from the probes), ``"success"`` (share
        of builds), ``"utilisation"`` (of slabs), ``"failures"`` (per cent of the keys, those without a slot); or
        ``"panel"``: each panel names its own metric (`experiments.PANEL_METRICS`).
    x, values
        What is swept: ``"keys"``, ``"key_bytes"``, ``"row_bytes"`` (of a key, or of a value), a measure of `fill`, a
        field of `dynamic.Dynamic`, or a parameter of the designs.
    keys, load_factor, utilisation
        Fixed parameters. If keys are swept, ``load_factor`` or ``utilisation`` says how full the tables are.
    panels
        Operations, as `lab.bench.runner.Measurement` names them; ``"batches 64"`` for all keys in 64 batches;
        ``"allocate"`` for a unit of 128 bytes for each key; ``"access"``; ``"resize up"``; ``"slices 100000 half
        rate"`` for slices of 100,000 inserts and finds, half of the keys asked for being present; ``"trace insert"``
        for the pairs of HH Hash (`traces`); or ``"contest build"`` for the same pairs in any library. All panels of a
        figure are of one kind (`experiments.EXPERIMENTS`). A suffix such as ``" of tw"`` names the data set
        (`dynamic_sets`); without a suffix, keys are random.
    operations_per_key
        Operations of a mix for each key in the table.
    dynamic
        Fixed parameters of a dynamic workload.
    memory
        Where the slots of the tables lie: ``"device"`` or ``"host"``. Empty for designs that have no choice.
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
    memory: str = ""

    @property
    def paper(self) -> str:
        """Title, authors and year of the paper."""
        return self.source.partition(")")[0] + ")"

    @property
    def times_host(self) -> bool:
        """Whether the host's processors or its memory take part in what is timed."""
        kinds = {panel.split()[0] for panel in self.panels}
        designs = {series.design for series in self.series}
        return bool(kinds & _OF_THE_HOST) or self.memory == "host" or not designs.isdisjoint(_HOST_TABLES)

    def by_data(self) -> dict[str, list[str]]:
        """The panels, grouped by data set."""
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
    """Names of all figures, paper by paper."""
    found = [path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml")]
    return sorted(found, key=lambda name: (next(i for i, it in enumerate(_PAPERS) if name.startswith(it)), name))


def load(name: str) -> Figure:
    """Read one data file.

    Raises
    ------
    ParameterError
        If there is no figure of that name.
    """
    if name not in names():
        raise ParameterError(f"there is no figure {name!r}; there are: {', '.join(names())}")
    content = tomllib.loads((_folder() / f"{name}.toml").read_text())
    content["series"] = [Series(**s) for s in content["series"]]
    published = content.get("published", {"columns": [], "rows": []})
    content["published"] = [Point(**dict(zip(published["columns"], row, strict=True))) for row in published["rows"]]
    content["ratios"] = [Ratio(**r) for r in content.get("ratios", [])]
    content["dynamic"] = Dynamic(**content.get("dynamic", {}))
    return Figure(**content)


def _folder() -> Any:
    return resources.files(__package__)
