"""The tests of other libraries that do not apply, from the page of the documents that lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

__all__ = ["expect_failure", "not_applicable"]

_PAGE = Path(__file__).parents[2] / "docs" / "relational-peers.md"
_ROW = re.compile(r"^\| `(Test\w+\.test_[^`]+)` \| (.+) \|$", re.MULTILINE)


def not_applicable(library: str) -> dict[str, str]:
    """Why each listed test of a library does not apply, by its class and its name."""
    sections = re.split(r"^## ", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = (section for section in sections if section.startswith(f"{library}\n"))
    return dict(_ROW.findall(section))


def expect_failure(request: pytest.FixtureRequest, listed: dict[str, str]) -> None:
    """Expect a test to fail if it is listed with its parameters, or without them."""
    name = f"{request.node.cls.__name__}.{request.node.name}"
    if reason := listed.get(name) or listed.get(name.partition("[")[0]):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
