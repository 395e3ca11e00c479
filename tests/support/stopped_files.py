"""Stop a process that changes a table in a file at each of its calls of the system, and see what `open` finds.

Run as a script with a folder, a step and a type of keys and values, ``u8`` or ``str``. A child of a fork changes a
table, and ends without a word at one call: before the call, behind the call, or in the middle of a write. Another one
opens the file, and ends at another call. Then the table has to hold what the last flush confirmed, or what the one that
was under way would have.
"""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from warphash import HashMap
from warphash.storage.strings import held_strings

KEYS = np.arange(200, dtype=np.uint64)
NEVER = 1 << 30
STATES = 6
"""Flushes of a run, the first one of which makes the table."""


def state(number: int) -> tuple[np.ndarray, int]:
    """The keys and the value of all of them behind so many flushes."""
    return KEYS[: (100, 100, 100, 200, 200, 200)[number]], number


def pairs_of(kind: str, keys: np.ndarray, value: int) -> tuple[Any, Any]:
    """Keys and values of a type. Each string is another one."""
    if kind == "u8":
        return keys, np.full(len(keys), value, np.uint64)
    return [f"{key} {'k' * (key % 9)}" for key in keys.tolist()], [f"{value} of {key}" for key in keys.tolist()]


def held_by(table: HashMap) -> dict[int, int]:
    """All pairs, as the numbers that `pairs_of` was given."""
    keys, values = (column.tolist() for column in table.to_arrays(like="numpy"))
    if table.key_dtype.kind == "U":
        assert all(value.split()[2] == key.split()[0] for key, value in zip(keys, values, strict=True))
        keys, values = ([int(text.split()[0]) for text in column] for column in (keys, values))
    return dict(zip(keys, values, strict=True))


def change(path: Path, said: int, kind: str) -> None:
    """Go through all states, and say when each is confirmed."""
    with HashMap.open(path, device="cpu") as table:
        for number in range(1, STATES):
            keys, value = state(number)
            for part in np.array_split(keys, 2):
                table.assign(*pairs_of(kind, part, value))
            if number == 3:
                table.reserve(2000)
                table.assign(*pairs_of(kind, keys, value))
            if number < STATES - 1:
                table.flush()
                os.write(said, b".")


class Stop:
    """Ends the process at a call of the system that changes a file; how many there were, if not."""

    def __init__(self, at: int, way: int) -> None:
        self.calls, self._at, self._way = 0, at, way
        for name in ("pwrite", "fsync", "link", "posix_fallocate", "ftruncate"):
            self._replace(os, name)
        for name in ("replace", "rename", "unlink"):
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


def child(path: Path, at: int, way: int, kind: str, opens: bool) -> tuple[bool, int]:
    """Whether a child was stopped, and how many states it confirmed."""
    heard, said = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            Stop(at, way)
            if opens:
                HashMap.open(path, device="cpu")
            else:
                change(path, said, kind)
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


def main(folder: Path, step: int, kind: str) -> None:
    path, at, points = folder / "table", 1, 0
    held_strings.FEWEST_TO_COLLECT = 0  # strings are forgotten, and the log is written anew, in some of the states
    with HashMap(kind, kind, design="stadium", memory=path, device="cpu", capacity=100) as table:
        table.insert(*pairs_of(kind, *state(0)))
    made, stopped = path.read_bytes(), True
    while stopped:
        for way in range(3):
            path.write_bytes(made)
            stopped, confirmed = child(path, at, way, kind, opens=False)
            if not stopped:
                break
            child(path, NEVER if way == at % 3 else 1 + at * 5 % 7, (at + way) % 3, kind, opens=True)
            with HashMap.open(path, device="cpu") as table:
                table.check()
                held = held_by(table)
            legal = [dict.fromkeys(keys.tolist(), value) for keys, value in map(state, (confirmed, confirmed + 1))]
            assert held in legal, f"stopped at call {at} in way {way} behind {confirmed} flushes"
            assert os.listdir(folder) == ["table"], os.listdir(folder)  # noqa: PTH208
            points += 1
        at += step
    print(points)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
