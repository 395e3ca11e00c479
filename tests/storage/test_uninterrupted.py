"""Tests of `uninterrupted`: the work is done whole or not at all, whatever line of it is interrupted."""

from __future__ import annotations

import re
import sys
import threading
import time
from _thread import interrupt_main
from functools import partial

import pytest

from support.faults import Interrupt
from warphash.storage.uninterrupted import uninterrupted


def three_steps(steps: list[int]) -> None:
    for step in range(3):
        steps.append(step)
        time.sleep(0.001)


def test_a_result_and_an_error_come_out() -> None:
    assert uninterrupted(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)


def test_an_interrupt_at_any_line_leaves_the_work_whole() -> None:
    number, seen = 0, set[int]()
    while True:
        number += 1
        steps: list[int] = []
        interrupt, before = Interrupt(number, re.compile(r"storage/uninterrupted")), sys.gettrace()
        sys.settrace(interrupt)
        try:
            uninterrupted(partial(three_steps, steps))
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        if not interrupt.place:
            break
        time.sleep(0.01)
        assert len(steps) in (0, 3)
        seen.add(len(steps))
    assert seen == {0, 3} and number > 5


@pytest.mark.usefixtures("ctrl_c")
def test_a_signal_comes_out_behind_the_work() -> None:
    done: list[bool] = []

    def work() -> None:
        for _ in range(3):
            interrupt_main()
            time.sleep(0.02)
        done.append(threading.current_thread() is not threading.main_thread())

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert done == [True]
