"""The walk of a call through the package: the files that its Python calls enter, in order.

``python -m support.walk`` prints the walks that `tests/test_call_walk.py` bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import warphash

__all__ = ["WALKS", "Step", "Walk", "walk"]

PACKAGE = Path(warphash.__file__).parent


@dataclass(frozen=True)
class Step:
    """A call of a function of the package."""

    file: str
    function: str


@dataclass(frozen=True)
class Walk:
    """All calls of the package's functions that one call makes, in order."""

    steps: tuple[Step, ...]

    @property
    def files(self) -> int:
        """Number of files that the call enters."""
        return len({step.file for step in self.steps})

    @property
    def changes(self) -> int:
        """Number of times that the call enters a function in another file than the function before."""
        return max(0, len([file for file, _ in groupby(self.steps, lambda step: step.file)]) - 1)

    def __str__(self) -> str:
        rows = [
            f"{file:32} {', '.join(step.function for step in steps)}"
            for file, steps in groupby(self.steps, lambda step: step.file)
        ]
        return "\n".join([f"{self.files} files, {self.changes} changes of file, {len(self.steps)} calls", *rows])


def walk(call: Callable[[], Any]) -> Walk:
    """The walk of ``call``. The call is made twice, and the second one counts.

    The walk ends at the engine: calls that a function of ``runtime/`` makes are left out.
    """
    steps: list[Step] = []

    def enter(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and (file := _file_of(frame)) and not (_file_of(frame.f_back) or "").startswith("runtime/"):
            steps.append(Step(file, frame.f_code.co_qualname))

    call()
    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Walk(tuple(steps))


def _file_of(frame: FrameType | None) -> str | None:
    """Path of a function's file in the package."""
    path = Path(frame.f_code.co_filename) if frame else Path()
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else None


KEYS = np.arange(1, 101, dtype=np.uint64)


def find(device: str) -> Walk:
    """A lookup in a map of the default design."""
    table = warphash.HashMap("u8", "u8", device=device, seed=1)
    table.insert(KEYS, KEYS)
    len(table)
    return walk(lambda: table.find(KEYS))


def insert(device: str, **design: str) -> Walk:
    """An insert of new keys for which the table has room; of the default design if none is named."""
    table = warphash.HashMap("u8", "u8", device=device, seed=1, capacity=4000, **design)
    table.insert(KEYS, KEYS)
    len(table)
    more = iter((KEYS + np.uint64(1000), KEYS + np.uint64(2000)))
    return walk(lambda: table.insert(next(more), KEYS))


WALKS: dict[str, Callable[[str], Walk]] = {
    "find": find,
    "insert": insert,
    "insert into subtables": partial(insert, design="dynamic_cuckoo"),
    "insert into quotients": partial(insert, design="quotient_cuckoo"),
}

if __name__ == "__main__":
    for name, made in WALKS.items():
        for device in sys.argv[1:] or ["cpu", "emulated"]:
            print(f"\n{name} on {device}: {made(device)}")
