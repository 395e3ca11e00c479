"""Measure jobs beside other libraries to their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from ..bench.runner import Lab
from ..jobs.base import Job
from ..jobs.run import JobTime, measure
from ..ops.libraries import installed
from . import results
from .job_plots import draw_jobs
from .kept_files import Files, keep

__all__ = ["measure_jobs_to_files"]


def measure_jobs_to_files(
    lab: Lab, jobs: Sequence[Job], rows: int | None, seed: int, files: Files, note: Callable[[str], None]
) -> tuple[list[JobTime], dict[str, str]]:
    """Measure jobs on a CPU. What stops it leaves the files as of `keep`.

    Returns
    -------
    times, not_measured
        All times; and the libraries that were left out, and why.
    """
    versions, missing = installed(lab.device)
    left_out = dict.fromkeys(missing, "not installed")
    times = keep(
        measure(jobs, versions, lab.repetitions, seed, rows, note),
        lab,
        files,
        lambda found: {
            "libraries": versions,
            "not_measured": left_out,
            "jobs": [asdict(time) for time in found],
        },
        lambda found, complete: draw_jobs(found, files.plot, lab.machine, results.made_by(files.command), complete),
    )
    return times, left_out
