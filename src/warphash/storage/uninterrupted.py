"""Work of several launches that an interrupt must not part."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["uninterrupted"]

T = TypeVar("T")


def uninterrupted(work: Callable[[], T]) -> T:
    """Do ``work`` whole, or not at all. A KeyboardInterrupt comes out when the work is done.

    Python raises it in the main thread alone, so another thread does the work. Starting a thread takes about 0.1 ms.
    """
    begins, cancelled = threading.Event(), threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        begins.wait()
        if cancelled.is_set():
            return
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="warphash", daemon=True)
    try:
        thread.start()
        begins.set()
        thread.join()
    except BaseException:
        if not begins.is_set():
            cancelled.set()
            begins.set()
        while thread.is_alive():
            with suppress(KeyboardInterrupt):
                thread.join()
        raise
    if errors:
        raise errors[0]
    return results[0]
