"""docs/fidelity.md names tests, figures and rows that exist; every figure stands in it; its numbers have a source."""

from __future__ import annotations

import ast
import math
import re
import runpy
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from warphash.lab.figures import catalogue

ROOT = Path(__file__).parents[2]
NUMBERS = runpy.run_path(str(ROOT / "scripts" / "fidelity_numbers.py"))
PAGE: str = NUMBERS["PAGE"].read_text(encoding="utf-8")
SOURCES = tomllib.loads(NUMBERS["SOURCES"].read_text(encoding="utf-8"))
TEST: re.Pattern[str] = NUMBERS["TEST"]
LINES = re.findall(r"^\| <a id=.*\|$", PAGE, re.MULTILINE)
NAMES = [name for line in LINES for name in re.findall(r"^\| <a id=\"([^\"]+)\"></a>`\1` \|", line)]
POINTER = re.compile(r"fidelity\.md#([\w-]+)")
CLAIMS: dict[str, str] = NUMBERS["rows_of"](PAGE)
NOTES: dict[str, str] = NUMBERS["notes_of"](PAGE)
PREFIXES = {"(DyHash": "dyhash", "(SlabHash": "slabhash", "(BGHT": "bght", "(Stash": "stash", "HH Hash (": "hh"}
"""Of the rows of a paper, by what the heading of its section has."""

TREE = [path for folder in ("src", "tests", "docs") for path in sorted((ROOT / folder).rglob("*.*")) if path.is_file()]


@cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_row_has_one_name_and_its_paper() -> None:
    assert len(NAMES) == len(set(NAMES)) > 80
    assert len(NAMES) == PAGE.count("<a id="), "a row that is no row of a table, or has an anchor of another name"
    for heading, prefix in PREFIXES.items():
        part = next(part for part in PAGE.split("\n## ") if heading in part.splitlines()[0])
        assert set(re.findall(r"<a id=\"([a-z]+)-", part)) == {prefix}


def test_tables_are_narrow() -> None:
    assert {line.count("|") - 1 for line in LINES} == {4, 6}
    cells = [cell.strip() for line in LINES for cell in line.split("|")]
    assert not [cell for cell in cells if len(cell) > 400]


def outcome_of(line: str) -> str:
    """The first words of a row's outcome, or "errata" where a row has none."""
    cells = [cell.strip() for cell in line.split("|")]
    return cells[4].partition(", because ")[0] if len(cells) == 8 else "errata"


def test_every_claim_has_an_outcome_and_its_reason() -> None:
    for name, line in CLAIMS.items():
        outcome = line.split("|")[4].strip()
        assert outcome == "reproduced" or re.match(r"(differs|not built), because \S", outcome), name


def test_the_page_opens_with_the_counts_of_its_rows() -> None:
    counts = {
        prefix: Counter(outcome_of(line) for line in LINES if f'id="{prefix}-' in line) for prefix in PREFIXES.values()
    }
    expected = [
        [str(count[outcome]) for outcome in ("reproduced", "differs", "not built", "errata")]
        for count in (*counts.values(), sum(counts.values(), Counter()))
    ]
    table = PAGE.partition("| --- |")[2].partition("\n\n")[0].splitlines()[1:]
    assert [[cell.strip() for cell in line.split("|")[2:-1]] for line in table] == expected


@pytest.mark.parametrize(("path", "function"), sorted(set(TEST.findall(PAGE))))
def test_every_test_exists(path: str, function: str) -> None:
    assert (ROOT / path).is_file()
    assert not function or function in functions_of(path)


def test_every_figure_exists_and_has_its_row() -> None:
    evidence = " ".join(TEST.sub("", line.split("|")[5 if line.count("|") == 7 else 4]) for line in LINES)
    assert set(re.findall(r"`([^`]+)`", evidence)) == set(catalogue.names())


def test_every_number_has_its_source() -> None:
    page, problems = NUMBERS["compared"](PAGE, SOURCES)
    assert not problems
    assert page == PAGE


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, entry in SOURCES.items() for key in ("numbers", "note") if key in entry]
)
def test_a_wrong_number_is_noticed(name: str, key: str) -> None:
    """Each number of the row, or of its paragraph, in turn. Those of a figure are written anew."""
    row, note, entry = f"{CLAIMS[name]}\n", NOTES.get(name, ""), {name: SOURCES[name]}
    page = f"{row}\n{note}"
    first = len(row) + 1 if key == "note" else 0
    numbers = NUMBERS["numbers_of_note"](note) if key == "note" else NUMBERS["numbers_of_row"](row)
    written = set()
    for number in numbers:
        digit, at = "8" if number[0][0] != "8" else "7", first + number.start()
        mended, problems = NUMBERS["compared"](page[:at] + digit + page[at + 1 :], entry)
        assert any(problem.startswith(f"{name}: has {digit}{number[0][1:]}, and ") for problem in problems), number
        written.add(mended)
    assert any(isinstance(source, str) for source in entry[name][key]) == (page in written)


def test_the_numbers_about_theorem_1_follow_from_its_sum() -> None:
    """The sum of m^2 / n, which is twice that of C(m, 2) / n where there are many keys."""

    def conflicts(sizes: list[float], keys: list[float]) -> float:
        return sum(m * m / n for n, m in zip(sizes, keys, strict=True))

    def of_the_theorem(sizes: list[float], load: float) -> list[float]:
        """Keys of each subtable where all terms are equal."""
        roots = [math.sqrt(n) for n in sizes]
        return [load * sum(sizes) * root / sum(roots) for root in roots]

    def behind_a_doubling(share: float) -> float:
        """Of a subtable with this share of the slots, at equal load factors: conflicts over the least."""
        return conflicts([2 * share, 1 - share], [share, 1 - share]) / conflicts([1 + share], [1])

    def more(sizes: list[float]) -> float:
        return conflicts(sizes, of_the_theorem(sizes, 1)) / conflicts(sizes, sizes) - 1

    fullest = of_the_theorem([2, 2, 1], 0.8)[2]
    most = max(behind_a_doubling(share / 1000) for share in range(1, 1000))
    section = PAGE.partition("### Why Theorem 1 is no minimum\n")[2].partition("\n## ")[0]
    computed = [more([2, 1, 1]), more([2, 2, 1]), fullest, behind_a_doubling(1 / 3) - 1, most - 1]
    assert re.findall(r"([\d.]+)\s%", section) == [f"{100 * each:.1f}" for each in computed]
    # Load factors are equal, and the smallest subtable becomes as large as the largest one.
    terms = [m * m / n for m, n in ((2, 2), (1, 1), (1, 2))]
    assert f"by a factor of up to {max(terms) / min(terms):.0f} between" in " ".join(section.split())


def test_every_pointer_to_a_row_exists() -> None:
    for path in TREE:
        if path.suffix in (".py", ".cuh", ".md", ".toml"):
            assert set(POINTER.findall(path.read_text(encoding="utf-8"))) <= set(NAMES), path
