"""Do all jobs in all ways, in turns, and compare the answers in the same run."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .base import OURS, Job, Way, lines_of

__all__ = ["JobTime", "measure"]


@dataclass(frozen=True)
class JobTime:
    """The time of one contestant in one job.

    Attributes
    ----------
    job, contestant
        Names. ``contestant`` begins with the name of a library.
    rows, lines
        Rows of the input; lines of code of the way.
    wall_s, cpu_s
        Seconds of each run, on the clock and of all processors of the process.
    mismatches
        1 if the answer does not agree with that of the first other contestant. A time with a mismatch is void.
    """

    job: str
    contestant: str
    rows: int
    lines: int
    wall_s: tuple[float, ...]
    cpu_s: tuple[float, ...]
    mismatches: int

    @property
    def is_ours(self) -> bool:
        """Whether it is the time of this library."""
        return self.contestant.partition(" ")[0] == OURS


def measure(
    jobs: Sequence[Job],
    libraries: Collection[str],
    repetitions: int,
    seed: int = 1,
    rows: int | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[JobTime]:
    """Measure jobs. Yield the times of a job's contestants when all of them are measured.

    Parameters
    ----------
    libraries
        That are installed, beside this one and Python's own.
    repetitions
        Runs of each contestant, in turns, behind one that is not counted.
    rows
        Of the inputs, at most; each job's own number by default.
    """
    for job in jobs:
        n = job.rows if rows is None else min(rows, job.rows)
        given = job.draw(n, seed)
        ways = {name: way for name, way in job.ways.items() if name.partition(" ")[0] in (OURS, "python", *libraries)}
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        answers: dict[str, Any] = {}
        for turn in range(repetitions + 1):
            for name, way in ways.items():
                note(f"{job.name}: {name}")
                answers[name], times = _timed(job, way, given)
                if turn:
                    runs[name].append(times)
        others = [answers[name] for name in ways if name.partition(" ")[0] != OURS]
        for name, way in ways.items():
            wall_s, cpu_s = zip(*runs[name], strict=True)
            differs = bool(others) and not job.agree(answers[name], others[0])
            yield JobTime(job.name, name, n, lines_of(way), wall_s, cpu_s, int(differs))


def _timed(job: Job, way: Way, given: Any) -> tuple[Any, tuple[float, float]]:
    """What is compared of an answer, and the seconds that it took."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    answer = way(given)
    times = time.perf_counter() - wall, time.process_time() - cpu
    return job.read(answer), times
