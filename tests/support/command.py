"""Run the command line in this process."""

from __future__ import annotations

import sys

import pytest

from warphash import __main__

__all__ = ["run"]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of ``warphash`` with some arguments."""
    monkeypatch.setattr(sys, "argv", ["warphash", *arguments])
    with pytest.raises(SystemExit) as left:
        __main__.main()
    return int(left.value.code or 0)
