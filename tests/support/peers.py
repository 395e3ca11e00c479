"""The tests of other libraries, and those that do not apply, from the page of the documents that lists them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

__all__ = ["classes_of", "expect_failure", "lacking", "modules_of", "not_applicable"]

_PAGE = Path(__file__).parents[2] / "docs" / "relational-peers.md"
_ROW = re.compile(r"^\| `(Test\w+\.test_[^`]+)` \| (.+) \|$", re.MULTILINE)
_FIXTURE = type(pytest.fixture(lambda: None))


def not_applicable(library: str) -> dict[str, str]:
    """Why each listed test of a library does not apply, by its class and its name, where ``*`` is any parameters."""
    sections = re.split(r"^## ", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = (section for section in sections if section.startswith(f"{library}\n"))
    return dict(_ROW.findall(section))


def expect_failure(request: pytest.FixtureRequest, listed: dict[str, str]) -> None:
    """Expect a test to fail if it is listed with its parameters, or without them."""
    name = f"{request.node.cls.__name__}.{request.node.name}"
    bare = name.partition("[")[0]
    for pattern, reason in listed.items():
        if pattern == bare or (pattern.startswith(bare) and _is_like(name, pattern)):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
            return


def _is_like(name: str, pattern: str) -> bool:
    """Whether a name is a pattern, of which each ``*`` stands for any text."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


def lacking(listed: dict[str, str], classes: Mapping[str, Any]) -> list[str]:
    """Those of the listed tests that no class has."""
    tests = {name: name.partition("[")[0].partition(".") for name in listed}
    return [name for name, (of_class, _, test) in tests.items() if not hasattr(classes[of_class], test)]


def modules_of(package: str, names: Mapping[str, str]) -> dict[str, ModuleType]:
    """Modules with tests, by the first part of the names that their classes have here. Skips if there is none."""
    return {prefix: pytest.importorskip(f"{package}.{name}") for prefix, name in names.items()}


def classes_of(
    modules: Mapping[str, ModuleType], is_wanted: Callable[[str, Any], bool] = lambda name, test: True
) -> dict[str, type]:
    """Classes with the tests of some modules, by their names here.

    Parameters
    ----------
    modules
        As of `modules_of`.
    is_wanted
        Whether to take a test, by its name and its function.
    """
    return {
        name: made
        for prefix, module in modules.items()
        for name, made in _classes_of_module(prefix, module, is_wanted).items()
    }


def _classes_of_module(prefix: str, module: ModuleType, is_wanted: Callable[[str, Any], bool]) -> dict[str, type]:
    """As `classes_of`, of one module.

    Tests without a class become those of one whose name ends in ``Functions``. Each class has the module's fixtures, as
    two modules may have fixtures of one name. ``prefix`` is the first part of each class's name, after ``Test``.
    """
    groups = {name: vars(held) for name, held in vars(module).items() if name.startswith("Test")}
    groups["TestFunctions"] = {
        name: staticmethod(held) for name, held in vars(module).items() if name.startswith("test_") and callable(held)
    }
    fixtures = {
        name: pytest.fixture(staticmethod(inspect.unwrap(held)))
        for name, held in vars(module).items()
        if isinstance(held, _FIXTURE)
    }
    made = {}
    for name, held in groups.items():
        tests = {
            key: test
            for key, test in held.items()
            if key.startswith("test_") and is_wanted(key, getattr(test, "__func__", test))
        }
        if tests:
            others = {key: part for key, part in held.items() if not key.startswith(("test_", "__"))}
            named = f"Test{prefix}{name.removeprefix('Test')}"
            made[named] = type(named, (), {**fixtures, **others, **tests})
    return made
