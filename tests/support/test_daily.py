"""Tests of which cases run every day, of the list of slow tests and of shares: of the rules, and in runs of pytest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from itertools import combinations, product
from pathlib import Path

import pytest

from support import daily
from support.cases import Case

CASES = """
import time, pytest

@pytest.mark.parametrize("seconds", [0.0, 0.2, 0.3])
def test_sleeps(seconds):
    time.sleep(seconds)

def test_alone():
    time.sleep(0.2)
"""

CROSSED = """
import pytest

@pytest.mark.parametrize("design", "abcd")
@pytest.mark.parametrize("engine", "ef")
@pytest.mark.parametrize("size", "ghi")
@pytest.mark.parametrize("load", "jk")
def test_any(design, engine, size, load):
    pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with a few tests, the options of this suite, and a list without cases."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "slow.txt").touch()
    (tests / "test_some.py").write_text(CASES)
    (tests / "conftest.py").write_text(
        "from pathlib import Path\n"
        "from support import daily\n"
        "daily.LIST = Path(__file__).with_name('slow.txt')\n"
        f"exec(Path({str(Path(daily.__file__).parents[1] / 'conftest.py')!r}).read_text())\n"
    )
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\nmarkers =\n    slow: late\n    only: some\n"
        f"pythonpath = {Path(daily.__file__).parents[1]}\n"
    )
    return tmp_path


def test_a_test_that_takes_long_is_noted_and_then_its_fastest_case() -> None:
    notes = daily.Notes(3.5)
    for case, seconds in {"a[1]": 2.0, "a[2]": 3.0, "a[3]": 0.5, "b": 4.0, "d[1]": 2.0, "d[2]": 1.0}.items():
        for when in ("setup", "call"):
            notes.pytest_runtest_logreport(
                pytest.TestReport(case, ("", 0, ""), {}, "passed", None, when, duration=seconds / 2)  # type: ignore[arg-type]
            )
    assert notes.noted({"c"}) == {"a", "c"}
    assert notes.noted({"a", "c"}) == {"a[3]", "c"}


def crossed(**values: list[str]) -> dict[str, dict[str, str]]:
    """All cases of parameters with these values."""
    return {"-".join(case): dict(zip(values, case, strict=True)) for case in product(*values.values())}


def pairs_of(cases: Iterable[dict[str, str]]) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    return {pair for case in cases for pair in combinations(case.items(), 2)}


def test_each_pair_of_values_occurs() -> None:
    cases = crossed(test=[*"abcd"], design=[*"efghi"], engine=[*"jk"], size=[*"lmn"])
    chosen = daily.covering(cases)
    assert pairs_of(cases[name] for name in chosen) == pairs_of(cases.values())
    assert 20 <= len(chosen) <= 24  # each of 4 tests with each of 5 designs
    assert daily.covering(dict(reversed(cases.items()))) == chosen


def test_what_is_chosen_already_is_not_covered_again() -> None:
    cases = crossed(test=[*"ab"], design=[*"cd"])
    assert daily.covering(cases, {"a-c", "b-d"}) == {"a-d", "b-c"}
    assert daily.covering(cases, cases) == set()


def test_types_are_crossed_with_designs_and_not_with_each_test() -> None:
    cases = {
        f"{test}-{design}-{key}": {"test": test, "design": design, "case.key": key}
        for test, design, key in product("abc", "de", "fghij")
    }
    chosen = [cases[name] for name in daily.covering(cases)]
    assert {(case["design"], case["case.key"]) for case in chosen} == {*product("de", "fghij")}
    assert {(case["test"], case["design"]) for case in chosen} == {*product("abc", "de")}
    assert len(chosen) == 10


def test_each_test_has_a_case() -> None:
    cases = {f"{test}-{key}": {"test": test, "case.key": key} for test, key in product("abc", "de")}
    assert {name[0] for name in daily.covering(cases)} == {*"abc"}


def test_of_a_test_that_takes_long_each_value_occurs() -> None:
    cases = crossed(test=["a", "b"], design=[*"cdef"], size=[*"ghij"])
    chosen = daily.covering(cases, long={"a"})
    assert sum(name.startswith("a") for name in chosen) == 4
    assert pairs_of(cases[name] for name in chosen) == pairs_of(cases.values())


def test_a_case_without_parameters_is_chosen() -> None:
    assert daily.covering({"a": {"test": "a"}, "b": {"test": "b"}}) == {"a", "b"}


def test_parameters_of_one_design_are_not_those_of_another() -> None:
    first, second = (Case("cpu", design, "u4", "u4").axes["case.parameters"] for design in ("cuckoo", "slab"))
    assert first != second


def test_a_share_is_every_nth_test() -> None:
    assert [daily.share_of([*range(7)], f"{k}/3") for k in (1, 2, 3)] == [[0, 3, 6], [1, 4], [2, 5]]  # type: ignore[list-item]


def ran(suite: Path, *options: str) -> tuple[int, list[str]]:
    """The exit status of a run, and the names of the cases that ran."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *options]
    run = subprocess.run(command, cwd=suite, capture_output=True, text=True, timeout=60, check=False)
    names = [line.split("::")[1].split(" ")[0] for line in run.stdout.splitlines() if "PASSED" in line]
    return run.returncode, sorted(names) if names else [run.stderr]


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_slow_test_is_noted_and_its_fastest_case_stays(suite: Path, processes: str) -> None:
    cases = ["test_alone", *(f"test_sleeps[{seconds}]" for seconds in ("0.0", "0.2", "0.3"))]
    assert ran(suite, "-n", processes, "--note-slow", "0.1") == (0, cases)
    assert (suite / "tests" / "slow.txt").read_text().splitlines() == ["tests/test_some.py::test_sleeps"]
    assert ran(suite, "-n", processes, "--note-slow", "0.1", "-m", "not slow") == (0, cases)
    assert (suite / "tests" / "slow.txt").read_text().splitlines() == ["tests/test_some.py::test_sleeps[0.0]"]
    assert ran(suite, "-n", processes, "-m", "not slow") == (0, cases[:2])
    assert ran(suite, "-n", processes, "-m", "slow") == (0, cases[2:])


@pytest.mark.slow
def test_daily_and_slow_cases_are_all_cases(suite: Path) -> None:
    (suite / "tests" / "test_some.py").write_text(CROSSED)
    days, others, every = (ran(suite, "-n", "0", "-m", which)[1] for which in ("not slow", "slow", ""))
    assert sorted(days + others) == every and len(every) == 48 and 12 <= len(days) < 24


@pytest.mark.slow
def test_shares_are_all_tests(suite: Path) -> None:
    shares = [ran(suite, "-n", "0", "--share", f"{k}/3")[1] for k in (1, 2, 3)]
    assert [len(share) for share in shares] == [2, 1, 1] and len({name for share in shares for name in share}) == 4
    for wrong in ("0/3", "4/3"):
        assert ran(suite, "-n", "0", "--share", wrong)[0] == pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_listed_case_that_no_test_has_is_refused(suite: Path, processes: str) -> None:
    (suite / "tests" / "slow.txt").write_text("tests/test_some.py::test_gone\n")
    status, said = ran(suite, "-n", processes)
    assert status != 0 and "has 1 cases that are no tests, as tests/test_some.py::test_gone" in said[0]
    assert ran(suite, "-n", processes, "tests/test_some.py")[0] == 0
    assert ran(suite, "-n", processes, "--ignore=tests/test_some.py")[0] == pytest.ExitCode.NO_TESTS_COLLECTED
