"""No module imports another in a circle: at its head, inside a function, or for its annotations alone."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (SRC / "warphash").rglob("*.py")
}


def imported(module: str) -> set[str]:
    """The modules of the package that a module imports, wherever it does."""
    path, found = MODULES[module], set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            found |= {name if (name := f"{base}.{alias.name}") in MODULES else base for alias in node.names}
    return found & MODULES.keys() - {module}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """But for annotations inside ``table/``: the parts of a table name the table that has them."""
    graph = {module: imported(module) for module in MODULES}
    for module, others in graph.items():
        if module.startswith("warphash.table."):
            graph[module] = {other for other in others if not other.startswith("warphash.table.")}
    assert "warphash.runtime.engine" in graph["warphash.storage.update.transaction"]
    TopologicalSorter(graph).prepare()  # raises CycleError, with the circle
