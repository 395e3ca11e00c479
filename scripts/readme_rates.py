"""Write the rates of README.md ("How fast") and results/README.md ("Rates of the designs") from the results files.

::

    python scripts/readme_rates.py          # writes both documents
    python scripts/readme_rates.py --check  # exits with 1 if one of them is not of its files
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
README, RATES = ROOT / "README.md", ROOT / "results" / "README.md"
SECTIONS = {README: "## How fast\n", RATES: "## Rates of the designs\n"}
ROW = re.compile(
    r"^(\| `(\w+)`(?:, (\d+) slots)?(?:, memory utilisation (0\.\d+))? \|).*(\| \[[\w-]+\]\((.+)\) \|)$", re.M
)
OPS = "cpu/ops.json"
OPERATIONS = ("build unique", "build", "find 100", "find 50", "find 0")
NUMBER = r"\d+(?:\.\d+)?"


def read(file: str) -> dict[str, Any]:
    """A results file, by its path from ``results/``."""
    content: dict[str, Any] = json.loads((ROOT / "results" / file).read_text(encoding="utf-8"))
    return content


def of_row(file: str, design: str, slots: str | None) -> list[dict[str, Any]]:
    """The measurements of a design in the file of a benchmark."""
    return [
        m
        for m in read(file).get("measurements", [])
        if m["design"] == design and (not slots or m["parameters"]["slots_per_bucket"] == int(slots))
    ]


def row(match: re.Match[str]) -> str:
    """A row with the rates of its file, in billions a second."""
    head, design, slots, utilisation, tail, file = match.groups()
    rates = {m["operation"]: m["rate_per_s"] / 1e9 for m in of_row(file, design, slots)}
    if "figure" in (content := read(file)):
        first = next(series["label"] for series in content["figure"]["series"] if series["design"] == design)
        points = [p for p in content["points"] if p["series"] == first and p["x"] == float(utilisation)]
        rates = {point["panel"]: point["value"] / 1e3 for point in points}
    cells = (f" {rates[operation]:.1f} " if operation in rates else " " for operation in OPERATIONS)
    return head + "|".join(cells) + tail


def replaced(text: str, *numbers: tuple[str, list[str]]) -> str:
    """The text with other numbers in its sentences. A pattern has a ``#`` for each number, and spaces for any space."""
    for pattern, values in numbers:
        parts = [r"\s+".join(map(re.escape, part.split(" "))) for part in pattern.split("#")]
        match = re.search(f"({NUMBER})".join(parts), text)
        if match is None:
            raise SystemExit(f"no sentence is like {pattern!r}")
        for number in range(len(values), 0, -1):
            text = text[: match.start(number)] + values[number - 1] + text[match.end(number) :]
    return text


def of_designs(text: str) -> str:
    """The section of results/README.md with the rates of its files."""
    rows = [match.groups() for match in ROW.finditer(text)]
    finds = [
        100 * m["ceiling_ratio"]
        for _, design, slots, _, _, file in rows
        for m in of_row(file, design, slots)
        if m["operation"].startswith("find")
    ]
    dyrate = read("h200/figures/dyrate.json")
    rates = [p["value"] / 1e3 for p in dyrate["points"] if p["series"] == "DyHash" and "rate" in p["panel"]]
    over = next(r["value"] for r in dyrate["ratios"] if r["ratio"]["over"] == "Linear")
    return replaced(
        ROW.sub(row, text),
        ("Lookups reach # to # % of", [f"{min(finds):.0f}", f"{max(finds):.0f}"]),
        (
            "does # to # billion operations a second, # times as many",
            [f"{min(rates):.1f}", f"{max(rates):.1f}", f"{over:.1f}"],
        ),
    )


def of_readme(text: str) -> str:
    """The section of README.md with the rates of its files."""
    best = {m["operation"]: m["rate_per_s"] / 1e9 for m in of_row("h200/bench-uint32.json", "quotient_cuckoo", None)}
    return replaced(
        text,
        *beside_libraries(),
        (
            "with # billion distinct keys a second, and looks them up with #.",
            [f"{best[operation]:.1f}" for operation in ("build unique", "find 100")],
        ),
    )


def beside_libraries() -> list[tuple[str, list[str]]]:
    """What other libraries make of the verbs."""
    rates = "# million rows a second, where NumPy makes #, pandas #, Polars #, PyArrow # and DuckDB #"
    return [
        (f"half of which are there: {rates}", millions("isin", 0.5)),
        (f"with 1 million distinct ones: {rates}", millions("unique_inverse", None)),
    ]


def millions(op: str, hit_share: float | None) -> list[str]:
    """Million rows a second of an operation with 1 million distinct, scattered keys of 10 million rows."""
    rates = {
        row["contestant"]: row["rows_per_s"] / 1e6
        for row in read(OPS)["ops"]
        if (row["op"], row["rows"], row["distinct"], row["spread"], row["hit_share"])
        == (op, 10_000_000, 1_000_000, "scattered", hit_share)
    }
    return [f"{rates[name]:.0f}" for name in ("warphash", "numpy", "pandas", "polars", "pyarrow", "duckdb")]


def main() -> None:
    is_right = True
    for document, rewrite in ((README, of_readme), (RATES, of_designs)):
        before = document.read_text(encoding="utf-8")
        title = SECTIONS[document]
        head, _, rest = before.partition(title)
        section, following, tail = rest.partition("\n## ")
        after = head + title + rewrite(section) + following + tail
        is_right &= after == before
        if sys.argv[1:] != ["--check"]:
            document.write_text(after, encoding="utf-8")
    if sys.argv[1:] == ["--check"] and not is_right:
        raise SystemExit("README.md or results/README.md has other rates than its files: run this script")


if __name__ == "__main__":
    main()
