"""Print the times of jobs in a terminal: a table with a row for each contestant of a job."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ..jobs.run import JobTime
from .tables import plain_table

__all__ = ["over_best", "render_jobs"]


def over_best(times: Sequence[JobTime]) -> float:
    """The least processor time of a rival over our least one, of the times of a job; 0 if one is missing."""
    right = [time for time in times if not time.mismatches]
    ours, rivals = ([min(time.cpu_s) for time in right if time.is_ours == wanted] for wanted in (True, False))
    return min(rivals) / min(ours) if ours and rivals else 0.0


def render_jobs(times: Sequence[JobTime]) -> Table:
    """A table of at most 80 columns. The last column is `over_best`."""
    table = plain_table(
        f"[bold]Jobs[/]: {max(time.rows for time in times):,} rows and fewer",
        "Lines of code, and seconds from the least to the greatest, by the clock and of all processors.",
    )
    for name in ("job", "contestant"):
        table.add_column(name, no_wrap=True)
    for name in ("lines", "wall s", "CPU s", "over\nbest"):
        table.add_column(name, justify="right", no_wrap=True)
    for job in dict.fromkeys(time.job for time in times):
        mine = [time for time in times if time.job == job]
        for time in mine:
            cells = ["[bold red]FAIL[/]"] * 2 if time.mismatches else [_span(time.wall_s), _span(time.cpu_s)]
            first, last = (f"[bold]{job}[/]", f"{over_best(mine):.2f}") if time is mine[0] else ("", "")
            table.add_row(first, time.contestant, str(time.lines), *cells, last)
    return table


def _span(seconds: Sequence[float]) -> str:
    least, greatest = (f"{s:.3g}" for s in (min(seconds), max(seconds)))
    return least if least == greatest else f"{least} – {greatest}"
