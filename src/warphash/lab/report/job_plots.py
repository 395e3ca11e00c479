"""Draw the picture of jobs: a panel for each, a bar of processor time for each contestant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from textwrap import fill

from ..jobs import JOBS
from ..jobs.base import OURS
from ..jobs.run import JobTime
from .looks import QUIET, stamp
from .plots import PALETTE, WRONG, save_picture, style

__all__ = ["draw_jobs"]

_COLUMNS = 3


def draw_jobs(times: Sequence[JobTime], path: Path, machine: str, made_by: str = "", complete: bool = True) -> None:
    """Draw the median of the processor seconds of all contestants, with a line from the least to the greatest ones.

    Parameters
    ----------
    complete
        Whether all jobs were measured. The picture says so if not.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    jobs = {job: [time for time in times if time.job == job] for job in dict.fromkeys(time.job for time in times)}
    rows = -(-len(jobs) // _COLUMNS)
    with mpl.rc_context(style()):
        figure, axes = plt.subplots(rows, _COLUMNS, figsize=(13.5, 1.4 + 2.2 * rows), squeeze=False)
        for axis, (job, mine) in zip(axes.flat, jobs.items(), strict=False):
            names = [f"{time.contestant}, {time.lines} line{'s' if time.lines > 1 else ''}" for time in mine]
            middle = [median(time.cpu_s) for time in mine]
            below = [median(time.cpu_s) - min(time.cpu_s) for time in mine]
            above = [max(time.cpu_s) - median(time.cpu_s) for time in mine]
            colors = [WRONG if time.mismatches else PALETTE[OURS] if time.is_ours else QUIET for time in mine]
            axis.barh(names[::-1], middle[::-1], xerr=(below[::-1], above[::-1]), color=colors[::-1], height=0.6)
            axis.set_title(fill(JOBS[job].title, 44), fontsize=9.5, loc="left")
            axis.set_xlabel("s", fontsize=8)
            axis.locator_params(axis="x", nbins=5)
            axis.set_xlim(left=0)
            axis.tick_params(labelsize=8)
        for axis in axes.flat[len(jobs) :]:
            axis.remove()
        wrong = sum(time.mismatches for time in times)
        verdict = f"{wrong:,} WRONG ANSWERS" if wrong else "all answers agree"
        rest = "" if complete else "  ·  the run was stopped early"
        height = figure.get_figheight()
        figure.tight_layout(rect=(0.01, 0.02, 1, 1 - 0.8 / height))
        heading = "Processor seconds of jobs: the median, with the least and the greatest"
        figure.text(0.02, 1 - 0.35 / height, heading, fontsize=16, weight="bold")
        figure.text(0.02, 1 - 0.62 / height, f"{machine}  ·  {verdict}{rest}", color=QUIET)
        stamp(figure, made_by)
        save_picture(figure, path, dpi=130, bbox_inches="tight", pad_inches=0.1)
        plt.close(figure)
