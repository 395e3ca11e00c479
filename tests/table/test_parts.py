"""Who works on a table from outside of its class takes the parts of the table, and no private attribute of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import warphash
from warphash import HashMap, HashSet, MultiMap, UnsupportedVerb
from warphash.table.base import BaseTable
from warphash.table.items import PairTable

PACKAGE = Path(warphash.__file__).parent
TABLES = BaseTable, PairTable, HashMap, HashSet, MultiMap
ABOVE = {"_parts", "_rebuilt", "_with_pairs"}
"""What others may ask of a table: its parts, and another table of its class."""


def reaches(file: Path) -> Iterator[str]:
    """The private attributes of tables that a module reads of other objects than its own."""
    private = {name for kind in TABLES for name in vars(kind) if name[0] == "_" != name[1]} - ABOVE
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in private and ast.unparse(node.value) not in ("self", "cls"):
            yield f"{file.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}"


def test_nobody_reaches_into_a_table() -> None:
    rooms = [*(PACKAGE / "table").glob("*.py"), *(PACKAGE / "torch").glob("*.py"), *(PACKAGE / "lab").rglob("*.py")]
    files = [*rooms, PACKAGE / "jax.py", *(PACKAGE / "cli").glob("*.py")]
    known = {"table/base.py", "table/items.py"}  # the class itself, and the view of a table's items
    assert not [reach for file in files if str(file.relative_to(PACKAGE)) not in known for reach in reaches(file)]
    assert list(reaches(PACKAGE / "table" / "items.py")), "a reach is seen"


def test_a_verb_that_the_design_lacks_is_refused_on_every_path() -> None:
    table, keys = HashMap("i8", "i8", device="cpu"), np.arange(3)
    with pytest.raises(UnsupportedVerb, match="has no swim; no other design has"):
        table._parts.facts.need("swim")
    with pytest.raises(UnsupportedVerb, match="has no swim"):
        table._parts.lookups.look_up("swim", keys, None, 0)
    with pytest.raises(UnsupportedVerb, match="has no swim"):
        table._parts.lookups.in_any_order("swim", keys, None, 0, "any")
    with pytest.raises(UnsupportedVerb, match="has no execute; these have: "):
        table._parts.facts.need("execute")


def test_a_multi_map_in_groups_names_the_designs_whose_multi_maps_have_the_verb() -> None:
    table = MultiMap("i8", "i8", design="stadium", device="cpu")
    with pytest.raises(UnsupportedVerb, match=r"'stadium' has no execute; these have: slab, lock_free_chaining$"):
        table.execute([1], [1], [1])
