"""Files cite papers by title and section, not by codes of a private list, and name documents that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "docs", "results", "examples", "scripts", ".ci")
KINDS = (".py", ".cuh", ".cpp", ".hpp", ".h", ".c", ".toml", ".json", ".md", ".txt", ".sh", "")
FILES = [path for path in sorted(ROOT.iterdir()) if path.is_file() and path.suffix in KINDS] + [
    path for name in FOLDERS for path in sorted((ROOT / name).rglob("*")) if path.is_file() and path.suffix in KINDS
]
CODE = re.compile(r"\bS[0-4]-\d\d|_s[0-4]_\d\d_")
DOCUMENT = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.md")


def lines_with(pattern: re.Pattern[str]) -> list[tuple[Path, int, str]]:
    return [
        (path.relative_to(ROOT), number, found)
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for found in pattern.findall(line)
    ]


@pytest.mark.parametrize(
    ("text", "is_code"),
    [
        ("as there (S" + "4-08)", True),
        ("test_s" + "4_25_probe_table", True),
        ("keys of type S4-byte", False),
        ("S3-bucket", False),
    ],
)
def test_a_code_is_known_when_seen(text: str, is_code: bool) -> None:
    assert bool(CODE.search(text)) == is_code


def test_no_file_cites_a_code() -> None:
    assert len(FILES) > 200
    assert lines_with(CODE) == []


def test_every_document_that_is_named_exists() -> None:
    named = lines_with(DOCUMENT)
    assert len(named) > 20
    assert [place for place in named if not (ROOT / place[2]).is_file()] == []
