"""Measure jobs beside other libraries to their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..bench.runner import Lab
from ..jobs.base import Job
from ..jobs.run import JobTime, measure
from .job_plots import draw_jobs
from .kept_files import Files, keep_contest

__all__ = ["measure_jobs_to_files"]


def measure_jobs_to_files(
    lab: Lab, jobs: Sequence[Job], rows: int | None, seed: int, files: Files, note: Callable[[str], None]
) -> tuple[list[JobTime], dict[str, str]]:
    """Measure jobs on a CPU: their times, and what was left out, as of `keep_contest`."""
    return keep_contest(
        "jobs",
        lambda versions, _: measure(jobs, versions, lab.repetitions, seed, rows, note),
        lab,
        files,
        draw_jobs,
    )
