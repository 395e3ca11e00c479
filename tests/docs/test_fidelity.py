"""docs/fidelity.md names tests, figures and rows that exist; every figure stands in it; its rates are the results'."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from warphash.lab import figure_data

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| <a id=\"([^\"]+)\"></a>`([^`]+)` \|(.*)\|$", PAGE, re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
POINTER = re.compile(r"fidelity\.md#([\w-]+)")
TREE = [path for folder in ("src", "tests", "docs") for path in sorted((ROOT / folder).rglob("*.*")) if path.is_file()]


@cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_row_has_one_name_and_its_paper() -> None:
    names = [name for name, _, _ in ROWS]
    assert len(names) == len(set(names)) > 80
    assert all(anchor == name for anchor, name, _ in ROWS)
    assert len(names) == PAGE.count("<a id="), "a row that is no row of a table"
    for heading, prefix in (
        ("(DyHash", "dyhash-"),
        ("(SlabHash", "slabhash-"),
        ("(BGHT", "bght-"),
        ("(Stash", "stash-"),
        ("HH Hash (", "hh-"),
    ):
        part = next(part for part in PAGE.split("\n## ") if heading in part.splitlines()[0])
        assert set(re.findall(r"<a id=\"([a-z]+-)", part)) == {prefix}


def test_tables_are_narrow() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert {line.count("|") - 1 for line in lines} == {4, 5}


@pytest.mark.parametrize(("path", "function"), sorted(set(TEST.findall(PAGE))))
def test_every_test_exists(path: str, function: str) -> None:
    assert (ROOT / path).is_file()
    assert not function or function in functions_of(path)


def test_every_figure_exists_and_has_its_row() -> None:
    evidence = " ".join(TEST.sub("", cells.split("|")[2]) for _, _, cells in ROWS)
    assert set(re.findall(r"`([^`]+)`", evidence)) == set(figure_data.names())


def numbers_of(figure: str) -> set[str]:
    """What a row may say of a figure: its results to four digits, and its sizes. Empty if it was never measured."""
    path = ROOT / "results" / "h200" / "figures" / f"{figure}.json"
    if not path.is_file():
        return set()
    record = json.loads(path.read_text(encoding="utf-8"))
    values = [record["keys"], *(point[axis] for point in record["points"] for axis in ("x", "value"))]
    return {f"{float(f'{value:.4g}'):,.0f}" for value in values}


@pytest.mark.parametrize(
    ("name", "cells"), [(name, cells) for name, _, cells in ROWS], ids=[name for name, _, _ in ROWS]
)
def test_rates_are_those_of_the_results(name: str, cells: str) -> None:
    columns = cells.split("|")
    figures = set(re.findall(r"`(\w+)`", " ".join(columns[2:]))) & set(figure_data.names())
    known = set().union(*map(numbers_of, figures))
    if len(columns) == 4 and known:
        assert set(re.findall(r"\d{1,3}(?:,\d{3})+", columns[3])) <= known


def test_every_pointer_to_a_row_exists() -> None:
    names = {name for name, _, _ in ROWS}
    for path in TREE:
        if path.suffix in (".py", ".cuh", ".md", ".toml"):
            assert set(POINTER.findall(path.read_text(encoding="utf-8"))) <= names, path
