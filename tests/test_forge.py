"""The files of a forge: what workflows run is what `.ci/run` has, and each address that is not there yet is listed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
GATE = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
PARTS = set(re.findall(r"^part_(\w+)\(\)", GATE, re.M))
RUN = re.compile(r"^ *(?:- )?run: *(.*)$", re.M)
ELSEWHERE = {"pipx run build --sdist"}
"""Commands that no part of `.ci/run` has. cibuildwheel makes the wheels, in the images that it has for them."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TO_FILL_IN = "example.invalid"


def parts_of(workflow: str) -> list[str]:
    """The parts of `.ci/run` that a workflow runs, those of a matrix included."""
    named: list[str] = []
    for command in RUN.findall(workflow):
        if command in ELSEWHERE:
            continue
        called = re.fullmatch(r"\.ci/run (\w+|\$\{\{ matrix\.part \}\})", command)
        assert called, f"a workflow runs {command!r}, which is no part of .ci/run"
        listed = re.search(r"^ *part: \[(.*)\]$", workflow, re.M)
        named += [called[1]] if called[1].isidentifier() else listed[1].split(", ") if listed else []
    return named


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_commands_of_a_workflow_are_those_of_the_gate(path: Path) -> None:
    workflow = path.read_text(encoding="utf-8")
    assert set(parts_of(workflow)) <= PARTS
    assert "run: |" not in workflow and RUN.findall(workflow)


def test_workflows_run_each_part_of_the_gate() -> None:
    named = {part for path in WORKFLOWS for part in parts_of(path.read_text(encoding="utf-8"))}
    all_parts = re.search(r"^all_parts=\((.*)\)$", GATE, re.M)
    assert all_parts and set(all_parts[1].split()) <= named
    assert named == PARTS


def test_pythons_of_the_tests_are_the_oldest_and_newest() -> None:
    tests = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    pythons = re.findall(r'"(3\.\d+t?)"', tests)
    assert f">={pythons[0]}" == PROJECT["project"]["requires-python"]
    assert any(python.endswith("t") for python in pythons)


def test_wheels_are_for_both_architectures() -> None:
    wheels = (ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8")
    assert "runner: [ubuntu-24.04, ubuntu-24.04-arm]" in wheels
    builds = PROJECT["tool"]["cibuildwheel"]["build"]
    stable = PROJECT["tool"]["scikit-build"]["wheel"]["py-api"]
    assert any(build.startswith(stable) for build in builds) and any("t-" in build for build in builds)


def test_each_reason_for_an_exception_is_given() -> None:
    ignored = PROJECT["tool"]["repo-review"]["ignore"]
    assert ignored and all(len(reason) > 20 for reason in ignored.values())


def test_links_of_readme_lead_somewhere_on_the_page_of_an_index() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for each in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    home = re.compile(rf"{re.escape(PROJECT['project']['urls']['Repository'])}/(?:blob|raw)/main/([^#]+)")
    paths = [found[1] for link in links if (found := home.match(link))]
    assert len(paths) > 20 and all((ROOT / path).exists() for path in paths)
    assert [link for link in links if not link.startswith("https://")] == []


def test_addresses_that_a_maintainer_fills_in_are_listed() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## What a maintainer fills in\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `([^`]+)`", section, re.M))
    folders = ("src", "docs", "scripts", ".github")
    files = [path for path in ROOT.iterdir() if path.is_file()]
    files += [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    suffixes = (".md", ".toml", ".yml", ".yaml", ".cff", ".py")
    found = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.suffix in suffixes and TO_FILL_IN in path.read_text(encoding="utf-8")
    } - {"CONTRIBUTING.md"}
    assert found and listed == found


def test_the_citation_names_the_version_and_five_papers() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['project']['version']}\n" in citation
    assert citation.count("\n  - type: ") == 5


def test_a_promise_of_security_names_what_shows_it() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    shown = re.findall(r"`(tests/[\w/.]+)` \|$", text, re.M)
    assert len(shown) >= 6 and all((ROOT / path).exists() for path in shown)
