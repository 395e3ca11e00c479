"""Jobs in turns, so that all see the same load of the machine, and a table of the best time of each."""

import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["best_of", "show"]


def best_of(jobs: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """The seconds of each job's fastest run."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(runs):
        for name, job in jobs.items():
            begin = time.perf_counter()
            made = job()
            best[name] = min(best[name], time.perf_counter() - begin)
            del made
    return best


def show(best: Mapping[str, float], items: int, unit: str) -> None:
    """Print the time of each job, and millions of items per second."""
    for name, seconds in best.items():
        print(f"{name:32} {1000 * seconds:8,.0f} ms {items / seconds / 1e6:8.1f} M {unit}/s")
