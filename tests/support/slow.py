"""The cases that are slow by their time, and shares of the tests.

Tests that add little to their like, or are slow in all cases, have the mark ``slow``. `LIST` has the cases that are
slow though their like is fast: a size, a design or an engine of a test. ``pytest --note-slow 2`` adds the cases that
took more than 2 seconds, but never the last daily case of a test, unless it takes `LONGEST_S`. To make the list anew,
empty the file first.

``pytest --share 2/3`` runs every third test, from the second on.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

__all__ = ["LIST", "Notes", "mark_listed", "share_of"]

LIST = Path(__file__).parents[1] / "slow.txt"
"""The file of node identifiers, one a line."""

LONGEST_S = 8.0
"""Seconds that the fastest case of a test may take every day."""


def mark_listed(items: list[pytest.Item], *, are_all: bool) -> None:
    """Mark the cases of the list as slow.

    Raises
    ------
    pytest.UsageError
        If the items are those of all files that are collected, and the list has another one of these files: a test was
        renamed, or is gone.
    """
    listed, files = set(LIST.read_text().splitlines()), set[str]()
    for item in items:
        files.add(item.nodeid.partition("::")[0])
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)
            listed.discard(item.nodeid)
    gone = [case for case in listed if case.partition("::")[0] in files]
    if are_all and gone:
        raise pytest.UsageError(f"{LIST} has {len(gone)} cases that are no tests, as {min(gone)}: delete their lines")


def share_of(items: list[pytest.Item], share: str) -> list[pytest.Item]:
    """Every n-th item, from the k-th on, of a share that reads ``k/n``."""
    first, step = (int(number) for number in share.split("/"))
    if not 1 <= first <= step:
        raise pytest.UsageError(f"expected --share K/N with 1 <= K <= N, got {share}: give, for example, 1/3")
    return items[first - 1 :: step]


class Notes:
    """Adds slow cases to the list when the run ends.

    Parameters
    ----------
    limit_s
        Seconds that a case may take.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._cases: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a phase of a case."""
        if not report.skipped:
            self._cases[report.nodeid.partition("[")[0]][report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the list."""
        LIST.write_text("".join(f"{case}\n" for case in sorted({*LIST.read_text().splitlines(), *self.slow()})))

    def slow(self) -> list[str]:
        """The cases that are slow, but for the fastest one of each test."""
        found = []
        for times in self._cases.values():
            fastest = min(times, key=times.__getitem__)
            kept = None if times[fastest] > LONGEST_S else fastest
            found += [case for case, seconds in times.items() if seconds > self._limit_s and case != kept]
        return found
