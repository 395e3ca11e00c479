"""A few examples of each kind, and what the driver makes of examples that fail. ``python -m fuzz`` runs many."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fuzz.__main__ import batches
from fuzz.child import Child
from fuzz.driver import Batch, Kind, find, run
from fuzz.example import Example, require
from fuzz.finding import table_of
from fuzz.kinds import KINDS

SMOKE = {"verbs": 40, "attributes": 40, "order": 40, "overlaps": 40}
"""How many examples of the cheap kinds run every day. Crafted keys are left out: they are timed."""

SLOW = {"memory": 40, "links": 10, "kills": 10, "forks": 6, "shared_buffers": 5}
"""How many examples of the kinds that fork, kill and wait run with the slow tests."""


@pytest.mark.parametrize(
    ("kind", "examples"), [*SMOKE.items(), *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW.items())]
)
def test_examples_find_nothing(kind: str, examples: int) -> None:
    findings = run(batches([kind], examples, seed=0), jobs=1, report=lambda done, findings: None)
    assert not findings, table_of(findings)


def _fails_in_many_ways(example: Example) -> None:
    """An example in three raises, one ends its process, and one hangs."""
    example.choose_design()
    example.note("begun")
    if example.number % 6 == 1:
        require(False, "an invariant")
    if example.number % 6 == 3:
        faulthandler.disable()  # its stack in the output looks like a fault of the suite
        os.kill(os.getpid(), signal.SIGSEGV)
    if example.number % 6 == 4:
        time.sleep(600)
    if example.number % 6 == 5:
        raise ValueError("another error")


def test_every_failure_is_a_finding_and_the_others_go_on() -> None:
    kind = Kind(_fails_in_many_ways, share=1, batch=4, limit_s=0.5)
    done = []
    found = run(
        [Batch("planted", kind, 0, range(4)), Batch("planted", kind, 0, range(4, 8))],
        jobs=2,
        report=lambda count, findings: done.append(count),
    )
    assert done[-1] == 8
    assert sorted((each.command.rpartition(" ")[2], each.what.partition(" at ")[0]) for each in found) == [
        ("1", "an invariant"),
        ("3", "ends the process with SIGSEGV"),
        ("4", "hangs"),
        ("5", "ValueError"),
        ("7", "an invariant"),
    ]
    assert all(each.design and each.steps == ("begun",) for each in found)
    assert table_of(found).count("again:") == 4


def test_an_example_is_the_same_whenever_it_runs() -> None:
    def steps(number: int) -> list[str]:
        example = Example("verbs", 0, number)
        find(KINDS["verbs"], example)
        return example.steps

    assert steps(3) == steps(3) != steps(4)


def test_the_end_of_a_child_leaves_the_folders_of_its_parent() -> None:
    with TemporaryDirectory() as folder:
        Child(lambda: None, in_order=True).wait(20, "a child")
        assert Path(folder).exists()
