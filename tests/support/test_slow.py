"""Tests of the list of slow cases, and of shares of the tests: of the rules, and in runs of pytest over a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import slow

CASES = """
import time, pytest

@pytest.mark.parametrize("seconds", [0.0, 0.2, 0.3])
def test_sleeps(seconds):
    time.sleep(seconds)

def test_alone():
    time.sleep(0.2)
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
        "from support import slow\n"
        "slow.LIST = Path(__file__).with_name('slow.txt')\n"
        f"exec(Path({str(Path(slow.__file__).parents[1] / 'conftest.py')!r}).read_text())\n"
    )
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\nmarkers =\n    slow: late\n    only: some\n"
        f"pythonpath = {Path(slow.__file__).parents[1]}\n"
    )
    return tmp_path


def test_the_fastest_case_of_a_test_stays() -> None:
    notes = slow.Notes(1.0)
    for case, seconds in {"a[1]": 2.0, "a[2]": 3.0, "a[3]": 0.5, "b": 2.0, "c": 9.0, "d[1]": 2.0, "d[2]": 1.5}.items():
        for when in ("setup", "call"):
            notes.pytest_runtest_logreport(
                pytest.TestReport(case, ("", 0, ""), {}, "passed", None, when, duration=seconds / 2)  # type: ignore[arg-type]
            )
    assert notes.slow() == ["a[1]", "a[2]", "c", "d[1]"]


def test_a_share_is_every_nth_test() -> None:
    assert [slow.share_of([*range(7)], f"{k}/3") for k in (1, 2, 3)] == [[0, 3, 6], [1, 4], [2, 5]]  # type: ignore[list-item]


def ran(suite: Path, *options: str) -> tuple[int, list[str]]:
    """The exit status of a run, and the names of the cases that ran."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *options]
    run = subprocess.run(command, cwd=suite, capture_output=True, text=True, timeout=60, check=False)
    names = [line.split("::")[1].split(" ")[0] for line in run.stdout.splitlines() if "PASSED" in line]
    return run.returncode, sorted(names) if names else [run.stderr]


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "2"])
def test_slow_cases_are_noted_and_the_fastest_one_of_a_test_stays(suite: Path, processes: str) -> None:
    cases = ["test_alone", *(f"test_sleeps[{seconds}]" for seconds in ("0.0", "0.2", "0.3"))]
    assert ran(suite, "-n", processes, "--note-slow", "0.1") == (0, cases)
    listed = ["tests/test_some.py::test_sleeps[0.2]", "tests/test_some.py::test_sleeps[0.3]"]
    assert (suite / "tests" / "slow.txt").read_text().splitlines() == listed
    assert ran(suite, "-n", processes, "-m", "not slow") == (0, cases[:2])
    assert ran(suite, "-n", processes, "-m", "slow") == (0, cases[2:])


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
