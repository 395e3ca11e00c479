"""Tests of `uninterrupted`: the work is done whole or not at all, whatever line of it is interrupted."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from _thread import interrupt_main
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from support.faults import Interrupt
from warphash.storage.uninterrupted import _calls, uninterrupted


def three_steps(steps: list[int]) -> None:
    for step in range(3):
        steps.append(step)
        time.sleep(0.001)


def test_a_result_and_an_error_come_out() -> None:
    assert uninterrupted(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)


def test_work_at_the_end_of_the_process_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python begins no thread any more when it calls what is registered for the end."""
    ended = ThreadPoolExecutor()
    ended.shutdown()
    monkeypatch.setattr("warphash.storage.uninterrupted._workers", lambda: ended)
    assert uninterrupted(threading.current_thread) is threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)


def test_threads_are_kept() -> None:
    names = {uninterrupted(lambda: threading.current_thread().name) for _ in range(100)}
    assert threading.current_thread().name not in names
    assert names <= {thread.name for thread in threading.enumerate()}


def test_callers_do_not_wait_for_each_other() -> None:
    together = threading.Barrier(3)
    with ThreadPoolExecutor(3) as callers:
        works = [callers.submit(uninterrupted, partial(together.wait, 60)) for _ in range(3)]
        assert sorted(work.result() for work in works) == [0, 1, 2]


FORKS = """
import os
from warphash.storage.uninterrupted import uninterrupted
assert uninterrupted(os.getpid) == os.getpid()
child = os.fork()
if child == 0:
    os._exit(uninterrupted(lambda: 7))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_has_threads_of_its_own() -> None:
    run = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "7\n"


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
        assert all(call.outcome for call in _calls), "every fork would wait for a call that has gone"
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
