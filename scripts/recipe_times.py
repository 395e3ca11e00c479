"""Write the table of times in docs/recipes.md anew, from the file of ``warphash bench --jobs``.

::

    python scripts/recipe_times.py          # writes docs/recipes.md
    python scripts/recipe_times.py --check  # exits with 1 if the page is not of its file
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from warphash.lab.jobs.run import JobTime
from warphash.lab.report.job_tables import over_best

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "recipes.md"
TIMES = ROOT / "results" / "cpu" / "jobs.json"
HEAD = "| job | contestant | lines | wall s | CPU s | over best |\n| --- | --- | --- | --- | --- | --- |\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\|\n)+")


def span(seconds: Iterable[float]) -> str:
    """The least and the greatest, in two digits or hundredths."""
    shown = [f"{each:.2f}" if each >= 0.1 else f"{each:.3f}" for each in sorted(seconds)]
    return " to ".join(dict.fromkeys((shown[0], shown[-1])))


def rows(times: list[JobTime]) -> Iterator[str]:
    """The rows of the table, those of a job together."""
    for job in dict.fromkeys(time.job for time in times):
        mine = [time for time in times if time.job == job]
        for time in mine:
            first, last = (f"`{job}`", f"{over_best(mine):.2f}") if time is mine[0] else ("", "")
            name = time.contestant.replace(" ", ", ")
            cells = (first, name, str(time.lines), span(time.wall_s), span(time.cpu_s), last)
            yield f"| {' | '.join(cells)} |\n"


def written(page: str) -> str:
    """The page with the times of its file."""
    times = [JobTime(**entry) for entry in json.loads(TIMES.read_text(encoding="utf-8"))["jobs"]]
    table = HEAD + "".join(rows(times))
    made, count = TABLE.subn(lambda _: table, page)
    if count != 1:
        raise SystemExit(f"expected one table of times in {PAGE.name}, got {count}")
    return made


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    made = written(page)
    if sys.argv[1:] == ["--check"]:
        raise SystemExit(made != page)
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
