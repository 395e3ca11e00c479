"""Every example runs, and its checks hold; a wrong answer ends it; docs/recipes.md lists all."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from warphash.lab.data.datasets import generator

ROOT = Path(__file__).parents[2]
EXAMPLES = {path.name: path for path in sorted((ROOT / "examples").glob("*.py"))}
RECIPES = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
OPTIONAL = re.compile(r"^(?:import|from) (duckdb|pandas|polars|pyarrow|torch)\b", re.MULTILINE)

WRONG = {
    "count_kmers.py": ("known &= code < 4", "known &= code < 5"),
    "deduplicate_texts.py": ('drop_duplicates(documents, "text")', 'drop_duplicates(documents, "text", keep="last")'),
    "last_of_stream.py": ('evict="lru"', 'evict="fifo"'),
    "renumber_graph.py": ("number(batch.ravel())", "number(batch.T.ravel())"),
    "reshard_checkpoint.py": ('"step": torch.tensor(0), "table": table', '"step": torch.tensor(0)'),
    "resume_counts.py": ("note=number + 1", "note=number"),
    "sessions.py": ("begins[offsets[:-1]] = True", ""),
    "tpch.py": ("100 - pl.col", "101 - pl.col"),
    "train_embedding.py": ("restored.load_state_dict(checkpoint)", ""),
    "train_sharded_embedding.py": ('.load({"model": model}', '.load({"model": model.state_dict()}'),
    "voxels.py": ('x=(x, "mean")', 'x=(x, "max")'),
}
"""A piece of each example, and what makes the answer wrong in its place."""

OF_PROCESSES = ("reshard_checkpoint.py", "resume_counts.py", "train_sharded_embedding.py")
"""Which start processes by torchrun, for more than ten seconds."""


def run(example: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a small example in a process of its own; skip where a library or program that it needs is missing."""
    text = example.read_text(encoding="utf-8")
    missing = [name for name in OPTIONAL.findall(text) if importlib.util.find_spec(name) is None]
    if "tpchgen-cli" in text and generator() is None:
        missing.append("tpchgen-cli")
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    command = [sys.executable, str(example), "--n", "20_000"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    done = run(EXAMPLES[name], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in OF_PROCESSES else []) for name in EXAMPLES]
)
def test_a_wrong_answer_ends_an_example(name: str, tmp_path: Path) -> None:
    right, wrong = WRONG[name]
    text = EXAMPLES[name].read_text(encoding="utf-8")
    assert text.count(right) == 1
    planted = tmp_path / name
    planted.write_text(text.replace(right, wrong), encoding="utf-8")
    done = run(planted, tmp_path)
    assert done.returncode == 1 and "AssertionError" in done.stderr, done.stderr


def test_all_examples_are_listed() -> None:
    listed = re.findall(r"^\| \[`(\w+\.py)`\]\(\.\./examples/\1\) \|", RECIPES, re.MULTILINE)
    assert sorted(listed) == list(EXAMPLES)
