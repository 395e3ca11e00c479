"""Numbers and lists of the command line."""

from __future__ import annotations

import pytest

typer = pytest.importorskip("typer")
limits = pytest.importorskip("warphash.cli.limits")


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("1e6", 10**6), ("2.5e3", 2500), ("1_000", 1000)])
def test_numbers_of_keys(text: str, number: int) -> None:
    assert limits.keys_of(text) == number


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1e-3", "nan", "inf", "1e13", str(2**40 + 1), "x", ""])
def test_what_is_no_number_of_keys(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="such as 1000000 or 1e6, got"):
        limits.keys_of(text)


def test_lists_with_commas() -> None:
    assert limits.listed(["a,b", "c"]) == ["a", "b", "c"]
    assert limits.listed(None) == []
