"""The benchmarks of `asv`: all run on small tables of every design, and the configuration finds them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import warphash
from warphash.designs import registry

ROOT = Path(__file__).parents[1]
CONFIGURATION = json.loads((ROOT / "asv.conf.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The suite is a package beside the tests. Its benchmarks set the number of threads, which is restored."""
    monkeypatch.syspath_prepend(str(ROOT))
    before = warphash.get_num_threads()
    yield
    warphash.set_num_threads(before)


def benchmarks() -> Iterator[tuple[type[Any], str]]:
    """Each class of the suite with each of its timed methods, as asv finds them."""
    for module in sorted((ROOT / CONFIGURATION["benchmark_dir"]).glob("[!_]*.py")):
        found = import_module(f"{CONFIGURATION['benchmark_dir']}.{module.stem}")
        for kind in vars(found).values():
            if inspect.isclass(kind) and kind.__module__ == found.__name__ and not kind.__name__.startswith("_"):
                yield from ((kind, name) for name in dir(kind) if name.startswith("time_"))


def test_every_benchmark_runs() -> None:
    ran: dict[str, set[str]] = {}
    for kind, name in benchmarks():
        designs = kind.params[0] if len(kind.param_names) > 1 else None
        for arguments in [(design, 1000) for design in designs] if designs else [(verb,) for verb in kind.params]:
            subject = kind()
            subject.setup(*arguments)
            before = len(subject.table)
            getattr(subject, name)(*arguments)
            after = {"time_insert": 1000, "time_erase": 0}.get(name, before)
            assert len(subject.table) == after, (name, arguments)
            ran.setdefault(name, set()).add(arguments[0])
    assert {"time_insert", "time_find_present", "time_find_absent", "time_erase", "time_upsert_add"} < set(ran)
    assert all(found == set(registry.names()) for name, found in ran.items() if name != "time_call")
    assert {"find", "contains", "insert", "assign", "upsert", "erase"} < ran["time_call"]


def test_the_documented_command_is_that_of_the_configuration() -> None:
    assert "asv continuous" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    kept = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    for folder in ("env_dir", "results_dir", "html_dir"):
        assert CONFIGURATION[folder].split("/")[0] + "/" in kept
