"""Measure operations with all contestants, and verify every answer in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import get_num_threads
from ...errors import DeviceError
from ..bench import turns
from ..bench.runner import Lab
from .base import Call, Op, OpsConfig, Shape, Table
from .inputs import shapes
from .libraries import LIBRARIES, Library

__all__ = ["OURS", "OpRate", "measure"]

OURS = "warphash"
"""The name of this library among the contestants."""

_ROWS_IN_A_ROW = 1_000
"""Rows of the calls that are timed together: a call of 10 rows is too short for a clock."""


@dataclass(frozen=True)
class OpRate:
    """The rate of one contestant in one operation.

    Attributes
    ----------
    op
        Name of the operation.
    contestant, library
        Who does it, and whose columns are given. For a rival, ``contestant`` begins with ``library``; for us it is
        ``"warphash"``, with the library where columns of several are measured.
    rows, distinct, spread, hit_share
        The input (`Shape`).
    key_dtype, device, threads
        Type of the keys; where the columns are; most threads that a contestant may use, None on a GPU.
    rows_per_s, seconds_per_call
        Rows per second and seconds of a call in the median run.
    least_seconds, most_seconds, repetitions
        Seconds of a call in the fastest run and in the slowest one, and the number of runs.
    mismatches
        Wrong answers in the same run. A rate with a mismatch is void.
    """

    op: str
    contestant: str
    library: str
    rows: int
    distinct: int
    spread: str
    hit_share: float | None
    key_dtype: str
    device: str
    threads: int | None
    rows_per_s: float
    seconds_per_call: float
    least_seconds: float
    most_seconds: float
    repetitions: int
    mismatches: int

    @property
    def is_ours(self) -> bool:
        """Whether it is the rate of this library."""
        return self.contestant.partition(" ")[0] == OURS


@dataclass(frozen=True)
class _Contestant:
    name: str
    library: type[Library]
    call: Call

    @property
    def is_ours(self) -> bool:
        return self.name.partition(" ")[0] == OURS


def measure(
    lab: Lab,
    ops: Sequence[Op],
    config: OpsConfig,
    versions: Mapping[str, str],
    left_out: dict[str, str],
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[OpRate]:
    """Measure all shapes of operations. Yield each rate when it is measured.

    Parameters
    ----------
    lab
        The first run of each call is not counted where the laboratory warms up.
    versions
        The libraries that are installed (`libraries.installed`).
    left_out
        Is given the operations that have no input on a GPU, and the contestants that refuse an operation; and why.
    """
    for op in ops:
        if lab.device != "cpu" and not op.on_gpu:
            left_out[op.name] = "arrays on a GPU have no strings"
            continue
        for shape in shapes(op, config):
            with turns.away():
                tables = op.draw(shape, config)
                wrong = op.oracle(*tables)
            for contestant in _contestants(op, lab.device, versions):
                title = f"{op.name}: {contestant.name}"
                if title in left_out:
                    continue
                note(f"{op.name}, {shape.distinct:,} of {shape.rows:,} {shape.spread}: {contestant.name}")
                library = contestant.library(lab.device)
                try:
                    seconds, answer = _timed(lab, contestant, library, tables, shape.rows)
                except Exception as error:
                    if contestant.is_ours and not (isinstance(error, DeviceError) and lab.device != "cpu"):
                        raise
                    # Another version of a rival may lack a call. What was measured before is worth keeping.
                    left_out[title] = f"{type(error).__name__}: {error}"
                else:
                    columns = library.columns(answer)
                    with turns.away():
                        mismatches = wrong(*columns)
                    yield _rate(lab, op, shape, config, contestant, seconds, mismatches)
                finally:
                    library.close()


def _contestants(op: Op, device: str, versions: Mapping[str, str]) -> Iterator[_Contestant]:
    """Us first, then the rivals whose library is installed."""
    held = op.ours_on if device == "cpu" else ("cupy", "torch")
    ours = [name for name in held if name in versions][: None if device == "cpu" else 1]
    for name in ours:
        yield _Contestant(f"{OURS} {name}" if len(op.ours_on) > 1 else OURS, LIBRARIES[name], op.ours)
    for name, call in op.rivals.items():
        library = name.partition(" ")[0]
        if library in versions:
            yield _Contestant(name, LIBRARIES[library], call)


def _timed(
    lab: Lab, contestant: _Contestant, library: Library, tables: Sequence[Table], rows: int
) -> tuple[list[float], Any]:
    """Seconds of a call in each run, and the answer of the last one in the form that the oracle takes."""
    first = library if contestant.is_ours else library.lib
    held = [library.held(table) for table in tables]
    in_a_row = max(1, _ROWS_IN_A_ROW // rows)
    answers: list[Any] = []

    def run() -> None:
        for _ in range(in_a_row):
            answers[:] = [contestant.call.run(first, *held)]

    seconds = [run_s / in_a_row for run_s in lab.timed(run, answers.clear)]
    return seconds, contestant.call.read(first, answers[0])


def _rate(
    lab: Lab, op: Op, shape: Shape, config: OpsConfig, contestant: _Contestant, runs: list[float], mismatches: int
) -> OpRate:
    seconds = float(np.median(runs))
    return OpRate(
        op=op.name,
        contestant=contestant.name,
        library=contestant.library.name,
        rows=shape.rows,
        distinct=shape.distinct,
        spread=shape.spread,
        hit_share=shape.hit_share,
        key_dtype=config.key,
        device=lab.device,
        threads=get_num_threads() if lab.device == "cpu" else None,
        rows_per_s=shape.rows / seconds,
        seconds_per_call=seconds,
        least_seconds=min(runs),
        most_seconds=max(runs),
        repetitions=len(runs),
        mismatches=mismatches,
    )
