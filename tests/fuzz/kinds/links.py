"""Tables in files, made and opened by links, relative paths and other names, in processes that end in many ways.

An example is a history of sessions. Each session is a process that opens the file by some path, updates, flushes, and
ends: closed or not, in order or not. Between sessions, the file is renamed or copied. The next session finds what the
last one held if that ended in order, and what the last flush confirmed if it was cut off; or it refuses.
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.child import Child, folder
from fuzz.example import Example, require
from warphash import HashMap, WarphashError

State = dict[int, int]

ORDERLY = {
    "close": lambda table: table.close(),
    "drop the table": lambda table: None,
    "end of the process": lambda table: _keep(table),
    "sys.exit": lambda table: (_keep(table), sys.exit(0)),
    "cycle": lambda table: _cycle(table),
}
CUT_OFF = {"_exit": lambda table: os._exit(0), "kill": lambda table: os.kill(os.getpid(), signal.SIGKILL)}
_kept: list[Any] = []


def _keep(table: Any) -> None:
    _kept.append(table)


def _cycle(table: Any) -> None:
    table.itself = [table]


def run(example: Example) -> None:
    example.design = example.choose(["stadium", "stadium", "tiered"])
    example.listener("design", example.design)
    warnings.simplefilter("ignore", ResourceWarning)
    with folder() as home:
        os.chdir(home)  # the example has a process of its own
        history = _History(example, home)
        for number in range(example.between(2, 5)):
            history.session(number)
            history.move(number)
        history.verify()


class _History:
    """The file of a table, its names, and what it must hold."""

    def __init__(self, example: Example, folder: Path) -> None:
        self.example, self.folder = example, folder
        for name in ("a", "b", "c"):
            (folder / name).mkdir()
        (folder / "dir").symlink_to(folder / "a", target_is_directory=True)
        self.file = folder / "a" / "t.tab"
        self.link = folder / "b" / "link.tab"
        self.state: State | None = None  # None before the table is made
        self.behind = ""  # how the last session ended, and what became of the file then
        self.may_be_refused = False  # behind a kill, a file without its journal may be refused

    def path(self) -> Path:
        """A random name of the file."""
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(self.file)
        second = self.folder / "c" / "link.tab"
        second.unlink(missing_ok=True)
        second.symlink_to(Path("..") / "b" / "link.tab")
        names = [self.file, self.file, self.link, second, self.folder / "c" / ".." / self.file.relative_to(self.folder)]
        if self.file.parent.name == "a":
            names.append(self.folder / "dir" / self.file.name)
        made = self.example.choose(names)
        return Path(os.path.relpath(made, self.folder)) if self.example.happens(0.3) else made

    def session(self, number: int) -> None:
        """A process that opens the file, or makes it, and works with it."""
        example, path = self.example, self.path()
        steps = [
            example.choose(["update", "update", "grow", "flush", "erase", "copy"]) for _ in range(example.between(1, 5))
        ]
        ends = ORDERLY if example.happens(0.6) else CUT_OFF
        end = example.choose(sorted(ends))
        seed, is_new = example.between(0, 2**32), self.state is None
        before = self.state or {}
        example.note(f"session: {'make' if is_new else 'open'} {path}, {steps}, {end}")
        answer = self.folder / f"state{number}"
        child = Child(lambda: self._work(path, is_new, before, steps, seed, answer, ends[end]), in_order=True)
        refusal = child.wait(20, f"a session that ends by {end}")
        if not answer.exists():  # refused, which only a file without its journal may be
            require(is_new or self.may_be_refused, "a file is refused", f"{path}: {refusal}")
            self.state = None
            self.file.unlink(missing_ok=True)
            return
        current, flushed = pickle.loads(answer.read_bytes())
        self.may_be_refused, self.behind = end in CUT_OFF, end
        self.state = current if end in ORDERLY else flushed
        if self.state is None:  # cut off before anything was flushed
            self.state = self._first_state()

    def _first_state(self) -> State | None:
        return {} if self.file.exists() else None

    def _work(
        self,
        path: Path,
        is_new: bool,
        before: State,
        steps: list[str],
        seed: int,
        answer: Path,
        end: Callable[[Any], Any],
    ) -> None:
        rng, state = np.random.default_rng(seed), dict(before)
        table = self._table(path, is_new)
        flushed = None if is_new else dict(before)
        held = _pairs(table)
        require(held == before, f"a file opens with other pairs behind {self.behind}", _difference(held, before))
        for step in steps:
            n = 20_000 if step == "grow" else int(rng.integers(1, 300))
            numbers = rng.integers(0, 30_000, n)
            if step == "flush":
                table.flush()
                flushed = dict(state)
            elif step == "erase":
                table.erase(numbers.astype("u8"))
                for number in numbers.tolist():
                    state.pop(number, None)
            elif step == "copy":
                require(_pairs(table.copy()) == state, "a copy of a table in a file has other pairs")
            else:
                numbers = np.unique(numbers)
                values = numbers + int(rng.integers(1, 1000))
                table.assign(numbers.astype("u8"), values.astype("u8"))
                state |= dict(zip(numbers.tolist(), values.tolist(), strict=True))
        require(_pairs(table) == state, "a table in a file has wrong pairs")
        answer.write_bytes(pickle.dumps((state, flushed)))
        end(table)
        del table
        gc.collect()

    def _table(self, path: Path, is_new: bool) -> Any:
        if not is_new:
            return HashMap.open(path, device="cpu")
        options = {"write": "back", "device_capacity": 100} if self.example.design == "tiered" else {}
        return HashMap("u8", "u8", design=self.example.design, memory=path, capacity=50, device="cpu", **options)

    def move(self, number: int) -> None:
        """Rename or copy the file, with or without its journal, between two sessions."""
        if self.state is None or not self.file.exists():
            return
        how = self.example.choose(["stay", "stay", "rename", "copy", "rename with its journal"])
        target = self.folder / self.example.choose(["a", "c"]) / f"moved{number}.tab"
        self.example.note(f"{how} {target.relative_to(self.folder)}")
        if how == "stay":
            return
        self.behind += f" and a {how}"
        if how == "copy":
            shutil.copy(self.file, target)
        else:
            self.file.rename(target)
        journal = self.file.with_name(f".{self.file.name}.journal")
        if how.endswith("journal") and journal.exists():
            journal.rename(target.with_name(f".{target.name}.journal"))
        self.file = target

    def verify(self) -> None:
        """Open the file once more, by its own name."""
        if self.state is None:
            return
        require(self.file.exists(), "the file is gone")
        require(self.link.is_symlink() or not self.link.exists(), "a link was replaced by a file")
        state = self.state

        def body() -> None:
            try:
                table = HashMap.open(self.file, device="cpu")
            except WarphashError:
                require(self.may_be_refused, "a file is refused at the end")
                return
            held = _pairs(table)
            table.check()
            require(held == state, f"a file opens with other pairs behind {self.behind}", _difference(held, state))

        Child(body).wait(20, "the last session")


def _pairs(table: Any) -> State:
    keys, values = table.to_arrays(like="numpy")
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


def _difference(held: State, right: State) -> str:
    wrong = sum(right.get(key) != value for key, value in held.items())
    return f"{len(held)} keys, not {len(right)}; {wrong} of them wrong"
