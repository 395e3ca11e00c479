"""Results files: what was measured, with all that a reader needs to judge it. Write, read and find stale files.

A file is a JSON object. ``warphash bench`` and ``warphash figure`` write the same head:

``schema``
    `SCHEMA`.
``warphash``
    Version of the package.
``command``
    The command line that made the file.
``machine``
    Name of the GPU; or of the processor, with the number of threads.
``clocks_mhz``
    Highest clock rates of the GPU, by its driver: ``{"sm": 1980, "memory": 3201}``. Empty on a CPU.
``kernels``
    The kernels that the run used, an object for each program: ``platform``, ``program``, ``package`` and ``headers``
    (`KernelSource`), and ``digest``, which is that of the code that these headers reach.
``ceilings``
    The memory's ceilings that the run measured (`Ceiling`). A figure has that of `Ceilings.reference` at least.
``seconds``
    Wall time of the measurements.

A file of ``warphash bench`` goes on with

``contests``
    Rates of other libraries (`Contest`).
``not_measured``
    The libraries that were left out, and why (`contest.not_measured`).
``measurements``
    One object for each rate (`Measurement`), with ``mismatches``, its wrong answers.

With ``--limits`` it also has

``limits``
    What the memory and a launch allow (`Limits.content`): seconds of a launch, rates of copies and of random accesses.
``shares``
    One object for each rate, in the order of ``measurements``: its limits (`Limit`), or null.

A file of ``warphash bench --sweep`` has ``limits``, and goes on with

``sweep``
    Name of the sweep (`SWEEPS`).
``complete``
    Whether all points were measured. The file is written again after each point.
``points``
    One object for each rate: the entries of its `Measurement`, and ``panel``, ``x`` and ``limit`` of its `SweepPoint`.

A file of ``warphash bench --ops`` has ``not_measured`` and ``complete``, and goes on with

``libraries``
    Versions of the libraries that were measured.
``ops``
    One object for each rate (`OpRate`), with ``mismatches``, its wrong answers.

A file of ``warphash bench --jobs`` has ``libraries``, ``not_measured`` and ``complete``, too, and goes on with

``jobs``
    One object for each contestant of a job (`JobTime`).

A file of ``warphash figure`` goes on with

``figure``
    The data file of the figure (`Figure`), with the paper's numbers.
``keys``
    Most keys of a table.
``points``
    One object for each number (`Point`), with ``mismatches``, the wrong answers of the measurement that it comes from.
``mismatches``
    Their sum.
``ratios``
    Our ratios beside those of the paper (`Compared`).

Files of schema 1 have no ``clocks_mhz``, ``kernels`` and ``seconds``; those of figures have no ``schema``,
``warphash`` and ``ceilings`` either, and no ``mismatches`` of a point.

A file is *stale* if today's headers give another digest for one of its programs. The digests are of kernels alone:
they do not tell how the Python code around a kernel has changed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from ... import __version__, atomic_file
from ...errors import ParameterError
from ...runtime import program_log
from ...runtime.devices import engine_for
from ...runtime.source import KernelSource
from ..bench.runner import Lab, Measurement

__all__ = ["SCHEMA", "Run", "load", "made_by", "read", "recorded", "save", "stale", "why_stale", "write"]

SCHEMA = 2
"""Version of the file's layout."""


class Run:
    """A run whose kernels are recorded (`recorded`)."""

    def __init__(self, lab: Lab, log: program_log.ProgramLog) -> None:
        self._lab, self._log, self._start = lab, log, time.perf_counter()

    def head(self) -> dict[str, Any]:
        """What a file says of the run so far: its clocks, kernels, ceilings and seconds."""
        return {
            "clocks_mhz": dict(engine_for(self._lab.device).clocks_mhz),
            "kernels": [{**asdict(source), "digest": _digest(source)} for source in self._log.sources()],
            "ceilings": [vars(ceiling) for ceiling in self._lab.ceilings],
            "seconds": time.perf_counter() - self._start,
        }


@contextmanager
def recorded(lab: Lab) -> Iterator[Run]:
    """Record the kernels of all measurements in the block."""
    with program_log.recorded() as log:
        yield Run(lab, log)


def made_by(command: str, made: date | None = None, version: str = __version__) -> str:
    """What a picture says of its origin: command, date (by default today), and version of warphash."""
    return f"{command}  ·  {(made or date.today()).isoformat()}  ·  warphash {version}"


def write(path: str | os.PathLike[str], command: str, machine: str, content: Mapping[str, Any]) -> None:
    """Write a results file. An older file of that name stays until the new file is complete."""
    head = {"schema": SCHEMA, "warphash": __version__, "command": command, "machine": machine}
    text = json.dumps({**head, **content}, indent=1) + "\n"
    atomic_file.replace(path, lambda file: file.write(text.encode()))


def save(
    path: str | os.PathLike[str], measurements: Sequence[Measurement], command: str, machine: str, **more: Any
) -> None:
    """Write the file of a benchmark. ``more`` has the entries of `Run.head`, ``contests`` and ``not_measured``."""
    write(path, command, machine, {**more, "measurements": [asdict(m) for m in measurements]})


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Measurement]]:
    """Read a file of `save`. Return its other entries, and its measurements."""
    content = json.loads(Path(path).read_text())
    if content.get("schema") != SCHEMA:
        raise ParameterError(f"{path} has schema {content.get('schema')!r}, expected {SCHEMA}: measure again")
    return content, [Measurement(**m) for m in content.pop("measurements")]


def read(path: Path) -> dict[str, Any]:
    """The content of a results file of any schema. Empty if there is no file, or it is no JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def stale(folder: Path) -> Iterator[tuple[Path, str]]:
    """Each results file in a folder and below that is not of today's kernels, with the reason.

    Raises
    ------
    ParameterError
        If there is no results file in the folder.
    """
    files = sorted(folder.rglob("*.json"))
    if not files:
        raise ParameterError(f"there is no results file in {folder}")
    for path in files:
        if reason := why_stale(read(path)):
            yield path, reason


def why_stale(content: Mapping[str, Any]) -> str | None:
    """Why the content of a results file is not of today's kernels; None if it is."""
    if not content.get("kernels"):
        return "no digest recorded"
    others = []
    for entry in content["kernels"]:
        source = KernelSource(entry["platform"], entry["program"], entry["package"], tuple(entry["headers"]))
        if _digest(source) != entry["digest"]:
            others.append(entry["program"])
    return f"other kernels: {', '.join(dict.fromkeys(others))}" if others else None


@cache
def _digest(source: KernelSource) -> str:
    """The digest of a source, computed once: no header changes while a process runs."""
    return source.digest()
