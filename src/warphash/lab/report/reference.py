"""The reference results: the commands that make the files of ``results/``, and what makes all files of a folder.

`pieces` is the one list of these commands. ``results/README.md`` has it as a table (`table`).

`make` runs each command in a process of its own, one after another, or a few at once that take turns (`turns`). So a
command starts with its kernels unloaded and its memory of the device free, and can be stopped at any moment: a results
file is complete or absent (`atomic_file`), and is written behind its picture. Whatever stops `make`, the next call goes
on. It skips each file that its command has made with today's kernels and without a wrong answer.

A command that does not end in its time is stopped. `UNFINISHED` then says how many seconds it had, and it comes behind
all others in the next calls. So one command that takes too long does not keep the others from being made.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ... import atomic_file
from ...errors import ParameterError
from ..bench import turns
from ..figures import catalogue
from .results import read, why_stale

__all__ = ["Made", "Piece", "make", "pieces", "table", "why_due"]

_BENCHES = {
    "cuda": {
        "bench-uint32": "--data random --n 50000000",
        "bench-uint64": "--data random --n 50000000 --keys uint64 --values uint64",
        "bench-uint32-load90": "--data random --n 50000000 --load 0.9",
        "bench-dynamic_cuckoo-load80": "--data random --n 50000000 --load 0.8 --design dynamic_cuckoo",
        "bench-dynamic_cuckoo-load90": "--data random --n 50000000 --load 0.9 --design dynamic_cuckoo",
        "sweep-size": "--sweep size --keys uint64 --values uint64",
        "sweep-size-hh": "--sweep size --keys uint64 --values uint64 --design two_level_cuckoo --load 0.35",
        "sweep-load": "--sweep load",
        "sweep-hits": "--sweep hits",
        "sweep-skew": "--sweep skew",
        "sweep-batch": "--sweep batch",
        "ops": "--ops",
    },
    "cpu": {
        "bench": "",
        "rivals": "--rivals --data random --n 10000000 --design bcht",
        "rivals-one-thread": "--rivals --data random --n 10000000 --design bcht --threads 1",
        "ops": "--ops",
        "ops-one-thread": "--ops --threads 1",
        "jobs": "--jobs",
        "sweep-size": "--sweep size --n 10000000 --threads 1",
        "sweep-load": "--sweep load --n 1000000 --threads 1",
    },
}
"""Options of ``warphash bench`` by the device and by the names of the files."""

_KEYS = {
    200_000_000: ("fig15", "figsectors"),
    50_000_000: ("fig", "table", "slab4", "dygrow", "figthreshold", "figthresholdb", "figchoices"),
    100_000_000: ("dystable", "dyrate", "dyfail", "dy9", "dyr", "dyalpha", "dybeta", "dybatch", "hhtiers"),
    2_000_000: ("dyroute", "dyvoter"),
    20_000_000: ("dy7",),
    10_000_000: ("dy10",),
}
"""Most keys of figures: of one, or of all with a prefix of letters. Other figures have the number of their paper."""

UNFINISHED = ".unfinished"
"""File of a folder: a JSON object with the pieces that were stopped, and the most seconds that each had."""

_TUNE = tuple(f"tune --keys uint32 --values uint32 --ticket-bits {bits}" for bits in (1, 2, 4, 8))
"""What is measured before the figures of Stadium Hashing."""


@dataclass(frozen=True)
class Piece:
    """One results file, and the command that makes it in the working folder.

    Attributes
    ----------
    name
        Of the file in its folder, without the ending: ``"figures/fig05"``.
    command
        The arguments of ``warphash``.
    place
        The arguments that say where the files go.
    before
        Commands that have to run before, once for all pieces that name them.
    alone
        Whether nothing else may run meanwhile, on the host, too.
    """

    name: str
    command: str
    place: str
    before: tuple[str, ...] = ()
    alone: bool = False

    @property
    def whole_command(self) -> str:
        """All arguments of ``warphash``."""
        return f"{self.command} {self.place}"


@dataclass(frozen=True)
class Made:
    """What `make` did: names of files that it made, of files whose command failed, and of files that are left."""

    made: list[str]
    failed: list[str]
    left: list[str]


def pieces(device: str) -> list[Piece]:
    """The reference results of a device, ``"cuda"`` or ``"cpu"``, in the order in which they are made."""
    found = []
    for name, options in _BENCHES[device].items():
        command = f"bench --device {device} {options}".rstrip()
        # Of all designs, one has its pairs on the host. The small calls of a sweep are mostly the work of the host.
        alone = device == "cuda" and "--design" not in options
        found.append(Piece(name, command, f"--json {name}.json --plot {name}.png", alone=alone))
    for name in catalogue.names() if device == "cuda" else ():
        prefix = name.rstrip("bc").rstrip("0123456789")
        keys = next((n for n, names in _KEYS.items() if {name, prefix} & set(names)), None)
        command = f"figure {name} --device {device}" + (f" --n {keys}" if keys else "")
        before, alone = _TUNE if name.startswith("stash") else (), catalogue.load(name).times_host
        found.append(Piece(f"figures/{name}", command, "--out figures", before, alone))
    return found


def table() -> list[str]:
    """The rows of the table in ``results/README.md``: the files, and their command. Figures of one form share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for device, top in (("cuda", "h200"), ("cpu", "cpu")):
        for piece in pieces(device):
            folder, _, stem = f"{top}/{piece.name}".rpartition("/")
            commands = *piece.before, piece.command.replace(f"figure {stem} ", "figure NAME ")
            rows.setdefault((folder, "; ".join(f"`warphash {command}`" for command in commands)), []).append(stem)
    return [
        f"| `{folder}/{stems[0] if len(stems) == 1 else '{' + ', '.join(stems) + '}'}` | {commands} |"
        for (folder, commands), stems in rows.items()
    ]


def why_due(piece: Piece, folder: Path) -> str | None:
    """Why a file of a folder has to be made; None if its command has made it with today's kernels, and all is right."""
    content = read(folder / f"{piece.name}.json")
    if not content:
        return "no file"
    if reason := why_stale(content):
        return reason
    if content["command"] != f"warphash {piece.whole_command}":
        return "another command"
    if not content.get("complete", True):
        return "not all points"
    rows = [row for name in ("points", "measurements", "contests", "ops", "jobs") for row in content.get(name, [])]
    wrong = sum(row["mismatches"] for row in rows)
    return f"{wrong:,} wrong answers" if wrong else None


def make(
    folder: Path,
    wanted: Sequence[Piece],
    seconds: float,
    only: Sequence[str] = (),
    note: Callable[[str], None] = lambda _: None,
    jobs: int = 1,
) -> Made:
    """Make the files that are due (`why_due`), as long as there is time.

    The call ends before a piece that takes longer than the time that is left, as far as the older file of the piece
    tells. A piece whose file tells nothing is begun, and stopped when the time is over.

    Parameters
    ----------
    folder
        Made if it is not there.
    seconds
        Of the whole call.
    only
        Names of pieces. The others are left alone.
    jobs
        How many commands run at once. They take turns at the GPU (`turns`): one measures while others draw keys and
        check answers, and the one that began first goes first. A piece that times the host comes behind, ``alone``.

    Raises
    ------
    ParameterError
        If there is no piece of such a name.
    """
    if unknown := set(only) - {piece.name for piece in wanted}:
        known = ", ".join(piece.name for piece in wanted)
        raise ParameterError(f"there is no results file {sorted(unknown)[0]!r}; there are: {known}")
    stopped_s: dict[str, float] = read(folder / UNFINISHED)
    known_s = {piece.name: _known_seconds(folder / f"{piece.name}.json") for piece in wanted}

    def too_long_s(piece: Piece) -> float:
        """Seconds that a piece is known not to end in; 0 if it may end within this call."""
        return max(stopped_s.get(piece.name, 0.0), known_s[piece.name] if known_s[piece.name] >= seconds else 0.0)

    chosen = [piece for piece in wanted if not only or piece.name in only]
    due = [(piece, reason) for piece in sorted(chosen, key=too_long_s) if (reason := why_due(piece, folder))]
    maker = _Maker(folder, known_s, stopped_s, seconds, note)
    if jobs == 1:
        maker.work(iter(due), {})
    else:
        with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(jobs) as pool:
            together = iter([entry for entry in due if not entry[0].alone])
            turn = {turns.TURNS_VARIABLE: str(Path(scratch) / "turns")}
            for worker in [pool.submit(maker.work, together, turn) for _ in range(jobs)]:
                worker.result()
        maker.work(iter([entry for entry in due if entry[0].alone]), {})
    left = [piece.name for piece, _ in due if piece.name not in {*maker.made, *maker.failed}]
    return Made(maker.made, maker.failed, left)


class _Maker:
    """Makes the due pieces in their order. Several threads may `work` at once, each with a process for its piece."""

    def __init__(
        self,
        folder: Path,
        known_s: Mapping[str, float],
        stopped_s: dict[str, float],
        seconds: float,
        note: Callable[[str], None],
    ) -> None:
        self.made: list[str] = []
        self.failed: list[str] = []
        self._folder, self._known_s, self._stopped_s = folder, known_s, stopped_s
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._note = note
        self._over = False
        self._prepared: set[str] = set()
        self._ranks = itertools.count()
        self._state, self._preparing = threading.Lock(), threading.Lock()

    def work(self, due: Iterator[tuple[Piece, str]], environment: Mapping[str, str]) -> None:
        """Make one piece after another, until none is left or the time is over."""
        while (piece := self._next(due)) is not None:
            self._make(piece, {**environment, turns.RANK_VARIABLE: str(next(self._ranks))})

    def _next(self, due: Iterator[tuple[Piece, str]]) -> Piece | None:
        with self._state:
            if self._over or (entry := next(due, None)) is None:
                return None
            piece, reason = entry
            took_s, left_s = self._known_s[piece.name], self._left_s()
            if took_s >= left_s:
                took = f", and it took {took_s:.0f}" if took_s else ""
                self._note(f"no time for {piece.name}: {left_s:.0f} of {self._seconds:g} s are left{took}")
                self._over = True
                return None
            self._note(f"{piece.name}: {reason}")
            return piece

    def _make(self, piece: Piece, environment: Mapping[str, str]) -> None:
        start_s = self._left_s()
        (self._folder / piece.name).parent.mkdir(parents=True, exist_ok=True)
        try:
            self._prepare(piece, environment)
            _run(piece.whole_command, self._folder, self._deadline, environment)
        except subprocess.TimeoutExpired:
            with self._state:
                self._over = True
                self._note(f"{piece.name} did not end within {start_s:.0f} s")
                self._stopped_s[piece.name] = max(start_s, self._stopped_s.get(piece.name, 0.0))
                _keep(self._folder, self._stopped_s)
        except subprocess.CalledProcessError as error:
            said = (error.stderr or "").strip().splitlines()
            with self._state:
                self._note(f"{piece.name} failed: {said[-1] if said else f'exit code {error.returncode}'}")
                self.failed.append(piece.name)
        else:
            with self._state:
                self.made.append(piece.name)
                if self._stopped_s.pop(piece.name, None):
                    _keep(self._folder, self._stopped_s)

    def _prepare(self, piece: Piece, environment: Mapping[str, str]) -> None:
        """Run the commands that come before a piece, if no other piece has had them run."""
        with self._preparing:
            for command in piece.before:
                if command not in self._prepared:
                    _run(command, self._folder, self._deadline, environment)
                    self._prepared.add(command)

    def _left_s(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


def _keep(folder: Path, stopped_s: Mapping[str, float]) -> None:
    """Write the file `UNFINISHED`, or remove it if no piece is left in it."""
    path = folder / UNFINISHED
    if stopped_s:
        atomic_file.replace(path, lambda file: file.write(json.dumps(stopped_s).encode()))
    else:
        path.unlink(missing_ok=True)


def _known_seconds(path: Path) -> float:
    """Seconds that the run of an older file took; 0 if nothing is known."""
    return float(read(path).get("seconds", 0))


def _run(command: str, folder: Path, deadline: float, environment: Mapping[str, str]) -> None:
    """Run ``warphash`` with these arguments in a folder, by the package that this process has imported."""
    package, _, _ = __name__.partition(".")
    found = Path(import_module(package).__path__[0])
    paths = [str(found.resolve().parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    subprocess.run(
        [sys.executable, "-m", "warphash", *command.split()],
        cwd=folder,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        timeout=max(0.0, deadline - time.monotonic()),
    )
