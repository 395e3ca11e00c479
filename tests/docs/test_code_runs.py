"""Every Python block of the documents runs, and its assertions hold; commands print what is shown."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import logging
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
MODULES = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "src" / "warphash").rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)
BLOCK = re.compile(r"^```(?:python\n(?P<python>.*?)|console\n(?P<console>.*?))^```$", re.DOTALL | re.MULTILINE)
FRAMEWORK = re.compile(r"^(?:import|from) (torch|jax|pandas)\b", re.MULTILINE)


def lacks_framework(code: str) -> bool:
    """Whether the code imports a framework that is not installed: this package requires none."""
    return any(importlib.util.find_spec(name) is None for name in FRAMEWORK.findall(code))


LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.fixture(autouse=True)
def level_of_the_log() -> Iterator[None]:
    """A document may set it, and it is that of the whole process."""
    log = logging.getLogger("warphash")
    level = log.level
    yield
    log.setLevel(level)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_of(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of one document run in order, in one namespace; errors name the document's line.

    A block that imports a framework which is not installed is left out, with all blocks behind it, which may need it.
    """
    monkeypatch.chdir(tmp_path)
    text = document.read_text(encoding="utf-8")
    namespace = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        if block["console"]:
            run_commands(block["console"])
        elif lacks_framework(block["python"]):
            break
        else:
            line = text.count("\n", 0, block.start("python"))
            exec(compile("\n" * line + block["python"], str(document), "exec"), namespace)


def run_commands(console: str) -> None:
    """Each command, behind a dollar sign, prints the lines below it."""
    here = f'warphash() {{ {shlex.quote(sys.executable)} -m warphash "$@"; }}; set -e -o pipefail; '
    for part in console.removeprefix("$ ").split("\n$ "):
        command, _, shown = part.partition("\n")
        run = ["bash", "-c", here + command]
        done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout.rstrip("\n")) == (0, shown.rstrip("\n")), f"{command}: {done.stderr}"


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_of(module: str) -> None:
    tried = doctest.testmod(importlib.import_module(module))
    assert tried.attempted > 0
    assert tried.failed == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_of(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), f"{document.name} links to {target}, which is not there"


def test_readme_is_read_in_minutes() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_links_of_readme_lead_on_from_the_page_of_an_index() -> None:
    """The page of an index shows README.md with the substitutions of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links, pictures = len(LINK.findall(text)), text.count("![")
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for change in hook["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    home = project["project"]["urls"]["Repository"]
    assert links > 20 and pictures == 1 and LINK.findall(text) == []
    assert text.count(f"]({home}/blob/main/") == links - pictures and text.count(f"]({home}/raw/main/") == pictures


def test_readme_has_exactly_two_set_up_commands() -> None:
    shell = re.findall(
        r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    lines = shell[0].splitlines()
    assert len(shell) == 1
    assert [line.rsplit("&& ", 1)[1] for line in lines] == ["warphash bench", "pytest"]
