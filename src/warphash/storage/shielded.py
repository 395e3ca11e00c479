"""Steps that Ctrl-C does not stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

__all__ = ["shielded"]


def shielded(step: Callable[[], None]) -> None:
    """Run a step to its end, even if Ctrl-C is pressed meanwhile.

    For the end of a batch that was interrupted already: a second interrupt would leave the batch half done. The caller
    raises the first interrupt behind the step, so the second one is not lost. Python handles signals in the main thread
    alone, so a step in another thread needs no shield.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        return step()
    signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        step()
    finally:
        signal.signal(signal.SIGINT, handler)
