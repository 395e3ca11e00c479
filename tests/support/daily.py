"""Which cases of the tests run every day. The others get the mark ``slow``.

A case that has the mark from its module never runs daily. Of the others, cases are chosen until each pair of values of
two parameters occurs in a daily case. All cases of a file are chosen from together, and the test is one of the
parameters. So each test runs with each design, with each engine and with each value of its own parameters. The
conformance tests run with each design on each engine (`Case.axes`). Each design meets each type in some test of the
file. `UNCROSSED` holds the exceptions. Tests that take long run with fewer cases, by `LIST`.

The choice depends on nothing but the cases of the file. A run that collects a part of a file chooses from that part.

``pytest --note-slow 1`` notes the tests whose cases took more than a second. A test that is noted twice keeps its
fastest case alone. To make the list anew, empty the file first. ``pytest --share 2/3`` runs every third test, from the
second on.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Set
from itertools import combinations
from pathlib import Path

import pytest

__all__ = ["LIST", "Notes", "covering", "mark_slow", "share_of"]

LIST = Path(__file__).parents[1] / "slow.txt"
"""The file of tests that take long, a node identifier on each line. Of a listed test, each value of a parameter occurs
in a daily case, but not each pair. A line with a case says that only such cases of the test run daily."""

UNCROSSED = {("test", "case.parameters"), ("test", "case.key"), ("test", "case.value")}
"""Pairs of parameters whose values are not crossed. Types and parameters of tables are crossed with designs, not with
each test."""


def mark_slow(items: list[pytest.Item], *, are_all: bool) -> None:
    """Mark the cases that do not run every day.

    Raises
    ------
    pytest.UsageError
        If the items are those of all files that are collected, and the list has another one of these files: a test was
        renamed, or is gone.
    """
    lines = set(LIST.read_text().splitlines())
    files = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        files[item.nodeid.partition("::")[0]].append(item)
    names = {name for item in items for name in (item.nodeid, _test_of(item.nodeid))}
    gone = sorted(line for line in lines - names if line.partition("::")[0] in files)
    if are_all and gone:
        raise pytest.UsageError(f"{LIST} has {len(gone)} cases that are no tests, as {gone[0]}: delete their lines")
    long = {line for line in lines if line == _test_of(line)}
    by_cases = {_test_of(line) for line in lines - long}
    for cases in files.values():
        fast = {item.nodeid: item for item in cases if not item.get_closest_marker("slow")}
        daily = fast.keys() & (lines - long)
        values = {name: _values(item) for name, item in fast.items() if name in daily or _test_of(name) not in by_cases}
        daily |= covering(values, daily, long)
        for name in fast.keys() - daily:
            fast[name].add_marker(pytest.mark.slow)


def covering(
    cases: Mapping[str, Mapping[str, Hashable]], chosen: Collection[str] = (), long: Collection[Hashable] = ()
) -> set[str]:
    """The names of cases that, with the chosen ones, have all pairs of values of two parameters that any case has.

    Each step adds a case with the most new pairs: of several, the one whose digest is the least.

    Parameters
    ----------
    cases
        Of each case, by its name, the values of its parameters by their names. One of them is the ``test``.
    long
        Tests of which the pairs of other parameters need not occur.
    """
    pairs = {name: {*_pairs(values)} for name, values in cases.items()}
    needed = {
        name: {*_pairs(values, of="test")} if values["test"] in long else pairs[name] for name, values in cases.items()
    }
    met = {pair for name in chosen for pair in pairs[name]}
    waiting = [(-len(needed[name] - met), hashlib.sha256(name.encode()).digest(), name) for name in cases]
    heapq.heapify(waiting)
    added = set()
    while waiting:
        gain, digest, name = waiting[0]
        new = len(needed[name] - met)
        if new == -gain and new:
            met |= pairs[name]
            added.add(name)
        if new == -gain:
            heapq.heappop(waiting)
        else:  # the cases that were added since have some of its pairs
            heapq.heapreplace(waiting, (-new, digest, name))
    return added


def _pairs(values: Mapping[str, Hashable], of: str = "") -> Iterator[Hashable]:
    """The test, and pairs of two parameters with their values, or only those of one parameter."""
    yield values["test"]
    for one, other in combinations(values.items(), 2):
        names = (one[0], other[0])
        if names not in UNCROSSED and (not of or of in names):
            yield one, other


def _test_of(name: str) -> str:
    return name.partition("[")[0]


def _values(item: pytest.Item) -> dict[str, Hashable]:
    """The test of an item, and the values of its parameters. A value with ``axes`` stands for several parameters."""
    found: dict[str, Hashable] = {"test": _test_of(item.nodeid)}
    call = getattr(item, "callspec", None)
    for name, value in call.params.items() if call else ():
        axes = getattr(value, "axes", None)
        if isinstance(axes, dict):
            found |= axes
        elif isinstance(value, str | int | float | None):
            found[name] = repr(value)
        else:
            found[name] = f"number {call.indices[name]}" if _is_mutable(value) else (type(value), value)
    return found


def _is_mutable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return True
    return False


def share_of(items: list[pytest.Item], share: str) -> list[pytest.Item]:
    """Every n-th item, from the k-th on, of a share that reads ``k/n``."""
    first, step = (int(number) for number in share.split("/"))
    if not 1 <= first <= step:
        raise pytest.UsageError(f"expected --share K/N with 1 <= K <= N, got {share}: give, for example, 1/3")
    return items[first - 1 :: step]


class Notes:
    """Adds the tests that took long to the list when the run ends.

    Parameters
    ----------
    limit_s
        Seconds that the cases of a test may take together.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._cases: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a phase of a case."""
        if not report.skipped:
            self._cases[_test_of(report.nodeid)][report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the list."""
        LIST.write_text("".join(f"{line}\n" for line in sorted(self.noted({*LIST.read_text().splitlines()}))))

    def noted(self, lines: Set[str]) -> Set[str]:
        """The lines of the list, with those of the tests that took long."""
        for test, times in self._cases.items():
            if len(times) > 1 and sum(times.values()) > self._limit_s:
                lines = lines - {test} | {min(times, key=times.__getitem__)} if test in lines else lines | {test}
        return lines
