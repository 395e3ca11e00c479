"""Stop a process that changes a table in a file at each of its calls of the system, and see what `open` finds.

Run as a script with a folder. A child of a fork changes a table, and ends without a word at one call: before the call,
behind the call, or in the middle of a write. Another one opens the file, and ends at another call. Then the table has
to hold what the last flush confirmed, or what the one that was under way would have.
"""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from warphash import HashMap

KEYS = np.arange(200, dtype=np.uint64)
NEVER = 1 << 30
STATES = 6
"""Flushes of a run, the first one of which makes the table."""


def state(number: int) -> tuple[np.ndarray, int]:
    """The keys and the value of all of them behind so many flushes."""
    return KEYS[: (100, 100, 100, 200, 200, 200)[number]], number


def change(path: Path, said: int) -> None:
    """Go through all states, and say when each is confirmed."""
    with HashMap.open(path, device="cpu") as table:
        for number in range(1, STATES):
            keys, value = state(number)
            for part in np.array_split(keys, 2):
                table.assign(part, np.full(len(part), value, np.uint64))
            if number == 3:
                table.reserve(2000)
                table.assign(keys, np.full(len(keys), value, np.uint64))
            if number < STATES - 1:
                table.flush()
                os.write(said, b".")


class Stop:
    """Ends the process at a call of the system that changes a file; how many there were, if not."""

    def __init__(self, at: int, way: int) -> None:
        self.calls, self._at, self._way = 0, at, way
        for owner, name in ((os, "pwrite"), (os, "fsync"), (os, "link"), (os, "posix_fallocate"), (Path, "unlink")):
            self._replace(owner, name)
        for name in ("replace", "rename"):
            self._replace(Path, name)
        stop = self

        class Map(mmap.mmap):
            def flush(self, *args: Any) -> None:
                stop.call(super().flush, *args)

        mmap.mmap = Map  # type: ignore[misc]

    def _replace(self, owner: Any, name: str) -> None:
        original = getattr(owner, name)
        setattr(owner, name, lambda *args, **options: self.call(original, *args, **options))

    def call(self, original: Any, *args: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls != self._at:
            return original(*args, **options)
        try:
            if self._way == 1:
                original(*args, **options)
            elif self._way == 2 and len(args) == 3:  # a write
                original(args[0], memoryview(args[1])[: len(args[1]) // 2], args[2])
        finally:
            os._exit(9)


def child(path: Path, at: int, way: int, opens: bool) -> tuple[bool, int]:
    """Whether a child was stopped, and how many states it confirmed."""
    heard, said = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            Stop(at, way)
            if opens:
                HashMap.open(path, device="cpu")
            else:
                change(path, said)
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
    os.close(said)
    with os.fdopen(heard, "rb") as pipe:
        confirmed = len(pipe.read())
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code in (0, 9), f"the child ended with {code}"
    return code == 9, confirmed


def main(folder: Path, step: int) -> None:
    path, at, points = folder / "table", 1, 0
    keys, value = state(0)
    with HashMap("u8", "u8", design="stadium", memory=path, device="cpu", capacity=100) as table:
        table.insert(keys, np.full(len(keys), value, np.uint64))
    made, stopped = path.read_bytes(), True
    while stopped:
        for way in range(3):
            path.write_bytes(made)
            stopped, confirmed = child(path, at, way, opens=False)
            if not stopped:
                break
            child(path, NEVER if way == at % 3 else 1 + at * 5 % 7, (at + way) % 3, opens=True)
            with HashMap.open(path, device="cpu") as table:
                table.check()
                held = dict(zip(*(column.tolist() for column in table.to_arrays()), strict=True))
            legal = [dict.fromkeys(keys.tolist(), value) for keys, value in map(state, (confirmed, confirmed + 1))]
            assert held in legal, f"stopped at call {at} in way {way} behind {confirmed} flushes"
            assert os.listdir(folder) == ["table"], os.listdir(folder)  # noqa: PTH208
            points += 1
        at += step
    print(points)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
