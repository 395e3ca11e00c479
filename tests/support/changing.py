"""A thread that changes arrays while a call reads them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def changed_meanwhile(change: Callable[[np.random.Generator], None]) -> Iterator[None]:
    """Another thread calls ``change`` again and again, until the block ends."""
    ended = threading.Event()

    def write() -> None:
        random = np.random.default_rng(6)
        while not ended.is_set():
            change(random)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
