"""Draw the pictures of whole jobs from ``results/cpu/jobs.json``: that of all jobs, and README's. Nothing is measured.

::

    python scripts/draw_jobs.py             # results/cpu/jobs.png and docs/jobs.png
    python scripts/draw_jobs.py --to FOLDER

README's picture has six jobs: four of frames, in two of which another library is faster, and two of arrays.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from datetime import date
from pathlib import Path

from warphash.lab.jobs.run import JobTime
from warphash.lab.report import results
from warphash.lab.report.job_plots import draw_jobs

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "results" / "cpu" / "jobs.json"
IN_README = ("dedupe", "group", "counts_of_strings", "left_join", "renumber", "voxels")


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the pictures of whole jobs anew.")
    parser.add_argument("--to", type=Path, help="a folder in place of the project's")
    given = parser.parse_args()
    content = json.loads(MEASURED.read_text(encoding="utf-8"))
    times = [
        JobTime(**{**each, "wall_s": tuple(each["wall_s"]), "cpu_s": tuple(each["cpu_s"])}) for each in content["jobs"]
    ]
    committed = subprocess.run(
        ["git", "log", "-1", "--format=%as", "--", MEASURED.name],
        cwd=MEASURED.parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    day = date.fromisoformat(committed) if committed else date.today()  # an sdist has no history
    made_by = results.made_by(content["command"], day, content["warphash"])
    of_readme = [time for job in IN_README for time in times if time.job == job]
    root = given.to or ROOT
    for picture, drawn in (("results/cpu/jobs.png", times), ("docs/jobs.png", of_readme)):
        (root / picture).parent.mkdir(parents=True, exist_ok=True)
        draw_jobs(drawn, root / picture, content["machine"], made_by)


if __name__ == "__main__":
    main()
