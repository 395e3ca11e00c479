"""A step that is shielded runs to its end while Ctrl-C is pressed."""

from __future__ import annotations

import _thread
import signal
import threading

import pytest

from warphash.storage.shielded import shielded


@pytest.mark.usefixtures("ctrl_c")
def test_interrupts_do_not_stop_a_step() -> None:
    done = []

    def step() -> None:
        for number in range(1000):
            _thread.interrupt_main()
            done.append(number)

    before = signal.getsignal(signal.SIGINT)
    shielded(step)
    assert done == list(range(1000))
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        _thread.interrupt_main()
        threading.Event().wait(1)


def test_an_error_of_the_step_comes_out() -> None:
    def step() -> None:
        raise MemoryError("no memory for the step")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(MemoryError, match="no memory for the step"):
        shielded(step)
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_needs_no_shield() -> None:
    done = []
    thread = threading.Thread(target=shielded, args=(lambda: done.append(1),))
    thread.start()
    thread.join()
    assert done == [1]
