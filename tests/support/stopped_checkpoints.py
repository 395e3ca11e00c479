"""Stop the ranks that save a checkpoint at each of their calls of the system, and see what a load finds.

Run as a script with a folder and a step. The ranks are threads of a child of a fork, which talk over a barrier. The
child ends without a word at one call, whichever thread makes it: before the call, behind the call, or in the middle of
a write. Then the folder has to hold the old checkpoint or the new one, and the next save has to leave its own files
alone.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from warphash import HashMap
from warphash.distributed import checkpoint
from warphash.distributed.shard_order import owned, shard_counts

RANKS = 2
WRITES = 32
"""Of so many writes, one counts as a call: a rank writes each of its blocks."""


class Alone:
    """The channel of one rank, and its calls."""

    rank, world, device = 0, 1, "cpu"

    def agree(self) -> None:
        pass

    def told(self, given: Any) -> list[Any]:
        return [given]

    def conclude(self, error: BaseException | None, rounds: int) -> None:
        if error is not None:
            raise error


class Meeting(Alone):
    """The same of one of several ranks that are threads."""

    def __init__(self, rank: int, world: int, barrier: threading.Barrier, table: list[Any]) -> None:
        self.rank, self.world, self._barrier, self._table = rank, world, barrier, table  # type: ignore[misc]

    def agree(self) -> None:
        self.told(None)

    def told(self, given: Any) -> list[Any]:
        self._table[self.rank] = given
        self._barrier.wait()
        heard = list(self._table)
        self._barrier.wait()
        return heard

    def conclude(self, error: BaseException | None, rounds: int) -> None:
        assert not any(self.told(error)), error


class Stop:
    """Ends the process at a call of the system that changes a file; how many there were, if not."""

    def __init__(self, at: int, way: int) -> None:
        self.calls, self.writes, self._at, self._way = 0, 0, at, way
        self._lock = threading.Lock()
        self._replace(os, "fsync")
        for name in ("replace", "unlink", "mkdir"):
            self._replace(Path, name)
        original = Path.open
        Path.open = lambda path, mode: self._opened(original, path, mode)  # type: ignore

    def _replace(self, owner: Any, name: str) -> None:
        original = getattr(owner, name)
        setattr(owner, name, lambda *args, **options: self.call(original, *args, **options))

    def _opened(self, original: Any, path: Path, mode: str) -> Any:
        return File(self, self.call(original, path, mode)) if "x" in mode else original(path, mode)

    def call(self, original: Any, *args: Any, half: Callable[[], None] | None = None, **options: Any) -> Any:
        with self._lock:
            self.calls += 1
            if self.calls == self._at:
                try:
                    if self._way == 1:
                        original(*args, **options)
                    elif self._way == 2 and half:
                        half()
                finally:
                    os._exit(9)
        return original(*args, **options)


class File:
    """A file that is written without a buffer, so that what was written is there."""

    def __init__(self, stop: Stop, file: Any) -> None:
        self._stop, self._file = stop, file

    def write(self, data: Any) -> None:
        self._stop.writes += 1
        if self._stop.writes % WRITES:
            self._put(data)
        else:
            self._stop.call(self._put, data, half=lambda: self._put(data[: len(data) // 2]))

    def _put(self, data: Any) -> None:
        self._file.write(data)
        self._file.flush()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def tables(n: int, world: int) -> list[HashMap[Any, Any]]:
    """Tables of the ranks with the keys below ``n``, each of which has the value ``n``."""
    keys = np.arange(n)
    shards = np.array([np.flatnonzero(shard_counts(keys[at : at + 1]))[0] for at in range(n)])
    made = []
    for rank in range(world):
        first, end = owned(rank, world)
        mine = keys[(shards >= first) & (shards < end)]
        made.append(HashMap.from_arrays(mine, np.full(len(mine), n), device="cpu"))
    return made


def saved(*arguments: Any) -> None:
    try:
        checkpoint.save(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def save(folder: Path, ranks: list[HashMap[Any, Any]], note: Any) -> None:
    barrier, table = threading.Barrier(len(ranks)), [None] * len(ranks)
    threads = []
    for rank, local in enumerate(ranks):
        meeting: Any = Meeting(rank, len(ranks), barrier, table)
        threads.append(threading.Thread(target=saved, args=(meeting, meeting, folder, local, note)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def held_in(folder: Path) -> int:
    """The note of a checkpoint, whose keys and values must be those of the note."""
    alone: Any = Alone()
    local, note = checkpoint.load(alone, alone, folder, HashMap)
    local.check()
    keys, values = local.to_arrays(like="numpy")
    assert sorted(keys.tolist()) == list(range(note)) and (values == note).all()
    return int(note)


def stopped(folder: Path, ranks: list[HashMap[Any, Any]], note: int, at: int, way: int) -> bool:
    """Whether a child of a fork was stopped while it saved."""
    process = os.fork()
    if process == 0:
        Stop(at, way)
        save(folder, ranks, note)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code in (0, 9), f"the child ended with {code}"
    return code == 9


def main(folder: Path, step: int) -> None:
    old, new, here = 40, 64, folder / "here"
    save(folder / "old", tables(old, 3), old)
    ranks, after = tables(new, RANKS), tables(7, 1)
    points, found, at, goes_on = 0, set(), 1, True
    while goes_on:
        for way in range(3):
            shutil.copytree(folder / "old", here)
            goes_on = stopped(here, ranks, new, at, way)
            found.add(held_in(here))
            if not goes_on:
                assert held_in(here) == new
            save(here, after, 7)
            assert held_in(here) == 7 and len(list(here.iterdir())) == 3
            shutil.rmtree(here)
            points += 1
        at += step
    assert found == {old, new}
    shutil.rmtree(folder / "old")
    assert not stopped(folder / "old", ranks, new, 1 << 30, 0) and held_in(folder / "old") == new
    print(points)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
