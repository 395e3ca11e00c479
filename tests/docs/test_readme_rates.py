"""The rates of README.md and results/README.md are those of the files that they name, and README says which are old."""

from __future__ import annotations

import json
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from warphash.lab.report.results import why_stale

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


def section(document: Path, title: str) -> str:
    """What stands below a heading of a document."""
    return document.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]


IN_README = section(ROOT / "README.md", "How fast")
TEXT = " ".join(IN_README.split())
SECTION = section(RESULTS / "README.md", "Rates of the designs")
DESIGNS = " ".join(SECTION.split())
ROW = re.compile(
    r"^\| `(\w+)`(?:, (\d+) slots)?(?:, memory utilisation (0\.\d+))? \|(.*)\| \[[\w-]+\]\((.+)\) \|$", re.M
)
ROWS = ROW.findall(SECTION)
FILES = sorted(set(re.findall(r"\]\(([^)]+\.json)\)", SECTION)))
QUOTED = {*FILES, *re.findall(r"\]\(results/([^)]+\.json)\)", IN_README)}
OPERATIONS = ("build unique", "build", "find 100", "find 50", "find 0")
SAID = {
    "h200": "The rates on the H200 are of earlier kernels ([which](results/README.md#which-kernels)).",
    "cpu": "The rates on the CPU are of earlier kernels ([which](results/README.md#which-kernels)).",
}
"""What README says beside the rates of a folder whose files are not of today's kernels."""


@cache
def read(file: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RESULTS / file).read_text(encoding="utf-8"))
    return content


def measurements(file: str, design: str, slots: str) -> list[dict[str, Any]]:
    """The measurements of a row of a benchmark."""
    found = [
        m
        for m in read(file).get("measurements", [])
        if m["design"] == design and (not slots or m["parameters"]["slots_per_bucket"] == int(slots))
    ]
    assert len({m["operation"] for m in found}) == len(found), f"{design} has variants: name the slots"
    return found


def billions(file: str, design: str, slots: str, utilisation: str) -> dict[str, str]:
    """What a row has to say of each operation that the file has: billion keys a second."""
    content = read(file)
    if "measurements" in content:
        found = measurements(file, design, slots)
        for m in found:
            assert (m["n"], m["key_dtype"], m["value_dtype"], m["data"]) == (50_000_000, "uint32", "uint32", "random")
            assert f"{m['load_factor']:.1f}" == "0.8" and m["mismatches"] == 0
            assert not utilisation or f"{m['utilisation']:.2f}" == utilisation
        return {m["operation"]: f"{m['rate_per_s'] / 1e9:.1f}" for m in found}
    assert content["figure"]["x"] == "utilisation" and content["keys"] == 50_000_000 and content["mismatches"] == 0
    # A design's first series is the one without further options.
    label = next(series["label"] for series in content["figure"]["series"] if series["design"] == design)
    found = [p for p in content["points"] if p["series"] == label and p["x"] == float(utilisation)]
    return {point["panel"]: f"{point['value'] / 1e3:.1f}" for point in found}


def test_the_section_has_its_rows_and_files() -> None:
    assert len(ROWS) == len(re.findall(r"^\| `", SECTION, re.M)) >= 8
    assert len(FILES) >= 4 and all((RESULTS / file).is_file() for file in QUOTED)
    assert {file for *_, file in ROWS} <= set(FILES)


@pytest.mark.parametrize(("design", "slots", "utilisation", "cells", "file"), ROWS)
def test_a_row_is_that_of_its_file(design: str, slots: str, utilisation: str, cells: str, file: str) -> None:
    expected = billions(file, design, slots, utilisation)
    assert expected and [cell.strip() for cell in cells.split("|")] == [expected.get(of, "") for of in OPERATIONS]


def test_a_row_of_lists_names_its_memory_utilisation() -> None:
    assert {utilisation for design, _, utilisation, *_ in ROWS if design == "slab"} == {"0.65", "0.80"}


def test_the_sentences_about_designs_are_those_of_their_files() -> None:
    shares = [
        m["ceiling_ratio"]
        for design, slots, _, _, file in ROWS
        for m in measurements(file, design, slots)
        if m["operation"].startswith("find")
    ]
    assert f"Lookups reach {100 * min(shares):.0f} to {100 * max(shares):.0f} %" in DESIGNS
    dyrate = read("h200/figures/dyrate.json")
    rates = [p["value"] / 1e3 for p in dyrate["points"] if p["series"] == "DyHash" and "rate" in p["panel"]]
    over = next(r["value"] for r in dyrate["ratios"] if r["ratio"]["over"] == "Linear")
    assert f"does {min(rates):.1f} to {max(rates):.1f} billion operations a second, {over:.1f} times as many" in DESIGNS


def test_the_sentence_about_the_flagship_is_that_of_its_file() -> None:
    rates = {
        m["operation"]: m["rate_per_s"] / 1e9 for m in measurements("h200/bench-uint32.json", "quotient_cuckoo", "")
    }
    build, find = rates["build unique"], rates["find 100"]
    assert f"with {build:.1f} billion distinct keys a second, and looks them up with {find:.1f}." in TEXT


OPS = "cpu/ops.json"
RATES = (
    "{warphash:.0f} million rows a second, where NumPy makes {numpy:.0f}, pandas {pandas:.0f}, Polars {polars:.0f}, "
    "PyArrow {pyarrow:.0f} and DuckDB {duckdb:.0f}"
)
VERBS = {
    "isin": "On two threads of a CPU, `isin` finds which of 10 million int64 keys are among 1 million others, half of "
    f"which are there: {RATES}, all with the building of their tables.",
    "unique_inverse": "`unique` with the inverse numbers 10 million int64 keys with 1 million distinct ones: "
    f"{RATES} (`warphash bench --ops`, [ops](results/cpu/ops.json)).",
}
"""What README says of the verbs."""


def test_the_sentences_about_other_libraries_are_those_of_their_file() -> None:
    for op, sentence in VERBS.items():
        assert sentence.format(**rates_of_verb(read(OPS), op)) in TEXT


def rates_of_verb(content: dict[str, Any], op: str) -> dict[str, float]:
    """Million rows a second with 1 million distinct, scattered keys; half of the looked-up keys are there."""
    found = [row for row in content["ops"] if row["op"] == op and row["distinct"] == 1_000_000]
    found = [row for row in found if row["spread"] == "scattered" and row["hit_share"] in (None, 0.5)]
    assert content["complete"] and not any(row["mismatches"] for row in content["ops"])
    assert {(row["rows"], row["key_dtype"], row["threads"]) for row in found} == {(10_000_000, "int64", 2)}
    return {row["contestant"]: row["rows_per_s"] / 1e6 for row in found}


def test_the_script_writes_the_sentences_about_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file that was not measured: the README has no such sentences before `OPS` is there."""
    names = ("warphash", "numpy", "pandas", "polars", "pyarrow", "duckdb")
    common = {"rows": 10_000_000, "distinct": 1_000_000, "spread": "scattered", "key_dtype": "int64", "threads": 2}
    rows = [
        {**common, "op": op, "hit_share": share, "contestant": name, "rows_per_s": 1e6 * (at + first), "mismatches": 0}
        for op, share, first in (("isin", 0.5, 11), ("isin", 0.05, 31), ("unique_inverse", None, 21))
        for at, name in enumerate(names)
    ]
    file = tmp_path / "results" / OPS
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"complete": True, "ops": rows}))
    script = runpy.run_path(str(ROOT / "scripts" / "readme_rates.py"))
    monkeypatch.setitem(script["beside_libraries"].__globals__, "ROOT", tmp_path)
    before = " ".join(sentence.format(**dict.fromkeys(names, 0)) for sentence in VERBS.values())
    after = script["replaced"](before, *script["beside_libraries"]())
    content = json.loads(file.read_text())
    assert after == " ".join(sentence.format(**rates_of_verb(content, op)) for op, sentence in VERBS.items())
    assert re.findall(r"\b[123]\d\b", after.replace("10 million", "")) == [
        str(rate) for rate in (*range(11, 17), *range(21, 27))
    ]


@pytest.mark.parametrize("folder", SAID)
def test_rates_of_earlier_kernels_are_said_to_be(folder: str) -> None:
    """Once all files are of today's kernels, the sentence has to go."""
    quoted = sorted(file for file in QUOTED if file.startswith(f"{folder}/"))
    reasons = {file: reason for file in quoted if (reason := why_stale(read(file)))}
    assert quoted and (SAID[folder] in TEXT) == bool(reasons), reasons
