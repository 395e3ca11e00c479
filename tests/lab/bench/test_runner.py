"""Tests of how often an operation is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from warphash.lab.bench.runner import Lab
from warphash.runtime import program_log


class _Timeless(Lab):
    """A laboratory whose runs take the seconds that they return."""

    def __init__(self, warms_up: bool) -> None:
        super().__init__("cpu", repetitions=3)
        self._first_is_slow = warms_up

    @property
    def warms_up(self) -> bool:
        return self._first_is_slow

    def time(self, run: Callable[[], Any]) -> float:
        return float(run())


@pytest.mark.parametrize(
    ("warms_up", "seconds", "counted"),
    [
        (False, [0.01, 0.02, 0.03, 0.04], [0.01, 0.02, 0.03]),
        (True, [0.4, 0.02, 0.03, 0.04, 0.05], [0.02, 0.03, 0.04]),  # the first run loads the kernels
        (True, [0.01, 0.15, 0.06, 0.04], [0.15, 0.06]),  # two runs are enough
        (True, [4.0, 3.9, 3.8], [3.9]),
        (False, [4.0, 3.9], [4.0]),
    ],
)
def test_runs_are_few_and_the_first_may_be_untimed(warms_up: bool, seconds: list[float], counted: list[float]) -> None:
    left, befores = iter(seconds), []
    assert _Timeless(warms_up).timed(lambda: next(left), lambda: befores.append(None)) == counted
    assert len(befores) == len(seconds) - len(list(left))


def test_a_shorter_run_may_load_the_kernels() -> None:
    left, warmed = iter([3.0, 2.0]), []
    assert _Timeless(True).timed(lambda: next(left), warm=lambda: warmed.append(None) or 0.0) == [3.0]
    assert _Timeless(False).timed(lambda: next(left), warm=lambda: warmed.append(None) or 0.0) == [2.0]
    assert len(warmed) == 1


@pytest.mark.parametrize("way", [Lab.timed, Lab.repeated])
def test_a_run_that_loads_kernels_does_not_count(way: Callable[..., list[float]]) -> None:
    seconds = iter([0.01, 0.02, 0.9, 0.03, 0.04])

    def run() -> float:
        run_s = next(seconds)
        if run_s == 0.9:
            program_log.note_load()
        return run_s

    assert way(_Timeless(True), run) == [0.02, 0.03, 0.04]
