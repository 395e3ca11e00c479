"""docs/fidelity.md names tests, figures and rows that exist; every figure stands in it; its numbers have a source."""

from __future__ import annotations

import ast
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


@pytest.mark.parametrize("name", [name for name, entry in SOURCES.items() if "numbers" in entry])
def test_a_wrong_number_is_noticed(name: str) -> None:
    """Each number of the row in turn. Those of a figure are written anew."""
    line, entry = CLAIMS[name], {name: SOURCES[name]}
    written = set()
    for number in NUMBERS["numbers_of_row"](line):
        digit = "8" if number[0][0] != "8" else "7"
        wrong = line[: number.start()] + digit + line[number.start() + 1 :]
        page, problems = NUMBERS["compared"](f"{wrong}\n", entry)
        assert any(problem.startswith(f"{name}: has {digit}{number[0][1:]}, and ") for problem in problems), number
        written.add(page)
    assert any(isinstance(source, str) for source in entry[name]["numbers"]) == (f"{line}\n" in written)


def test_every_pointer_to_a_row_exists() -> None:
    for path in TREE:
        if path.suffix in (".py", ".cuh", ".md", ".toml"):
            assert set(POINTER.findall(path.read_text(encoding="utf-8"))) <= set(NAMES), path
