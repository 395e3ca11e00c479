"""What the site is built of: a page for each design, four readers and four notebooks; notebooks hold no outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from warphash.designs import registry

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TREE = re.compile(r"^```\{toctree\}\n:hidden:\n\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_each_design_has_a_page() -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "designs").glob("*.md")}
    assert sorted(pages) == sorted([*registry.names(), "index"])
    assert [name for name in registry.names() if f"```{{design}} {name}\n" not in pages[name]] == []
    assert [name for name in registry.names() if f"| [{name}]({name}.md) |" not in pages["index"]] == []


def test_heads_of_headers_that_pages_show_are_there() -> None:
    named = re.findall(r"^(?:kernels|storage)/\S+$", "\n".join(page.read_text() for page in PAGES), re.MULTILINE)
    assert len(named) > 15
    assert [name for name in named if not (ROOT / "src" / "warphash" / name).is_file()] == []


def test_every_page_is_in_one_tree() -> None:
    """Or a reader would find it by a search alone. Sphinx warns of a page in none, and not of one in two."""
    listed = [
        (page.parent / entry).resolve()
        for page in PAGES
        for tree in TREE.findall(page.read_text(encoding="utf-8"))
        for entry in tree.split()
    ]
    pages = [page.with_suffix("") for page in [*PAGES, *NOTEBOOKS] if page != ROOT / "docs" / "index.md"]
    others = [ROOT / name for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY", "results/README")]
    assert sorted(listed) == sorted([*pages, *others])


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_no_outputs_and_checks_its_answers(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []
    assert sum("assert " in "".join(cell["source"]) for cell in code) >= 2


def test_there_are_four_notebooks_and_four_readers() -> None:
    readers = {path.stem for path in (ROOT / "docs" / "start").glob("*.md")} - {"index"}
    assert {notebook.stem for notebook in NOTEBOOKS} == readers and len(readers) == 4


def test_the_pipeline_builds_the_site_by_the_command_of_the_documents() -> None:
    pipeline = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (command,) = re.findall(r"^sphinx-build .*$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert " -W " in command and command.split()[-1] == "build/site"
    assert re.search(r"sed -n 's/\^\\\(sphinx-build", pipeline) and "sphinx-build -" not in pipeline
