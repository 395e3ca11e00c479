"""Work of NumPy over ranges of an array, on several threads: NumPy releases the interpreter's lock inside its loops."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from ..settings import get_num_threads

__all__ = ["in_threads"]


def in_threads(n: int, least: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(begin, end)`` for ranges that cover ``n`` elements.

    Parameters
    ----------
    n
        Elements.
    least
        Elements that are worth a thread. There are as many threads as a call on the CPU engine has, at most.
    work
        Called from several threads at once. What one of them raises is raised when all have ended.
    """
    count = max(1, min(get_num_threads(), n // least))
    ends = [n * number // count for number in range(count + 1)]
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(ends[number], ends[number + 1])
        except BaseException as error:
            errors.append(error)

    workers = []
    for number in range(1, count):
        worker = Thread(target=run, args=(number,), name="warphash", daemon=True)
        try:
            worker.start()
        except RuntimeError:  # no thread to be had, as when the interpreter ends
            run(number)
        else:
            workers.append(worker)
    run(0)
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
