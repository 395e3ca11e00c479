"""The times of docs/recipes.md are those of their file, and no answer was wrong."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "recipe_times.py"))


def test_the_table_is_of_its_file() -> None:
    page = SCRIPT["PAGE"].read_text(encoding="utf-8")
    assert SCRIPT["written"](page) == page
    content = json.loads(SCRIPT["TIMES"].read_text(encoding="utf-8"))
    assert content["complete"] and not any(row["mismatches"] for row in content["jobs"])


def test_a_wrong_number_is_noticed() -> None:
    page = SCRIPT["PAGE"].read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `group` |"))
    planted = page.replace(row, row.replace(" | 1 | ", " | 2 | "))
    assert planted != page and SCRIPT["written"](planted) == page
    with pytest.raises(SystemExit, match="got 0"):
        SCRIPT["written"](page.replace("over best", "over the best"))
