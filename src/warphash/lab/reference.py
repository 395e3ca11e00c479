"""The reference results: the commands that make the files of ``results/``, and what makes all files of a folder.

`pieces` is the one list of these commands. ``results/README.md`` has it as a table (`table`).

`make` runs the commands one after another, each in a process of its own. A command starts with the kernels unloaded and
the memory of the device free, and can be stopped at any moment: a results file is complete or absent (`atomic_file`),
and is written behind its picture. So whatever stops `make`, the next call goes on with the file that was under way. It
skips each file that its command has made with today's kernels and without a wrong answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ParameterError
from . import figure_data
from .results import read, why_stale

__all__ = ["Made", "Piece", "make", "pieces", "table", "why_due"]

_BENCHES = {
    "cuda": {
        "bench-uint32": "--data random --n 50000000",
        "bench-uint64": "--data random --n 50000000 --keys uint64 --values uint64",
        "bench-uint32-load90": "--data random --n 50000000 --load 0.9",
        "bench-dynamic_cuckoo-load80": "--data random --n 50000000 --load 0.8 --design dynamic_cuckoo",
        "bench-dynamic_cuckoo-load90": "--data random --n 50000000 --load 0.9 --design dynamic_cuckoo",
    },
    "cpu": {"bench": "", "rivals": "--rivals --data random --n 10000000 --design bcht"},
}
"""Options of ``warphash bench`` by the device and by the names of the files."""

_KEYS = {
    50_000_000: ("fig", "table", "slab4", "dygrow"),
    100_000_000: ("dystable", "dyrate"),
    20_000_000: ("dy7",),
    10_000_000: ("dy9", "dy10", "dyvoter", "dyr", "dyalpha", "dybeta", "dybatch"),
    5_000: ("dyfail",),
    8_000_000: ("stash18a",),
}
"""Most keys of figures: of one, or of all with a prefix of letters. Other figures have the number of their paper."""

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
    """

    name: str
    command: str
    place: str
    before: tuple[str, ...] = ()

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
        found.append(Piece(name, command, f"--json {name}.json --plot {name}.png"))
    for name in figure_data.names() if device == "cuda" else ():
        keys = next((n for n, names in _KEYS.items() if {name, name.rstrip("0123456789")} & set(names)), None)
        command = f"figure {name} --device {device}" + (f" --n {keys}" if keys else "")
        found.append(
            Piece(f"figures/{name}", command, "--out figures", _TUNE if name.startswith("stash") else ()),
        )
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
    path = folder / f"{piece.name}.json"
    if not path.exists():
        return "no file"
    content = read(path)
    if reason := why_stale(content):
        return reason
    if content["command"] != f"warphash {piece.whole_command}":
        return "another command"
    rows = [*content.get("points", []), *content.get("measurements", []), *content.get("contests", [])]
    wrong = sum(row["mismatches"] for row in rows)
    return f"{wrong:,} wrong answers" if wrong else None


def make(
    folder: Path,
    wanted: Sequence[Piece],
    seconds: float,
    only: Sequence[str] = (),
    note: Callable[[str], None] = lambda _: None,
) -> Made:
    """Make the files that are due (`why_due`), in order, as long as there is time.

    A piece that took more seconds than are left, by the file that is there, is not begun, and nothing behind it is. A
    piece that is not known to take so long is begun, and stopped when the time is over.

    Parameters
    ----------
    folder
        Made if it is not there.
    seconds
        Of the whole call.
    only
        Names of pieces. The others are left alone.

    Raises
    ------
    ParameterError
        If there is no piece of such a name.
    """
    deadline = time.monotonic() + seconds
    if unknown := set(only) - {piece.name for piece in wanted}:
        known = ", ".join(piece.name for piece in wanted)
        raise ParameterError(f"there is no results file {sorted(unknown)[0]!r}; there are: {known}")
    due = [(piece, reason) for piece, reason in _due(folder, wanted) if not only or piece.name in only]
    made: list[str] = []
    failed: list[str] = []
    prepared: set[str] = set()
    for number, (piece, reason) in enumerate(due):
        names_left = [other.name for other, _ in due[number:]]
        left_s, known_s = deadline - time.monotonic(), _known_seconds(folder / f"{piece.name}.json")
        if known_s >= left_s:
            note(f"{piece.name} takes {known_s:.0f} s, and {max(0, left_s):.0f} of {seconds:g} s are left")
            return Made(made, failed, names_left)
        note(f"{piece.name}: {reason}")
        (folder / piece.name).parent.mkdir(parents=True, exist_ok=True)
        try:
            for command in (*(first for first in piece.before if first not in prepared), piece.whole_command):
                _run(command, folder, deadline)
            prepared.update(piece.before)
        except subprocess.TimeoutExpired:
            note(f"{piece.name} did not end within {max(0, left_s):.0f} s")
            return Made(made, failed, names_left)
        except subprocess.CalledProcessError as error:
            said = (error.stderr or "").strip().splitlines()
            note(f"{piece.name} failed: {said[-1] if said else f'exit code {error.returncode}'}")
            failed.append(piece.name)
        else:
            made.append(piece.name)
    return Made(made, failed, [])


def _due(folder: Path, wanted: Sequence[Piece]) -> Iterator[tuple[Piece, str]]:
    for piece in wanted:
        if reason := why_due(piece, folder):
            yield piece, reason


def _known_seconds(path: Path) -> float:
    """Seconds that the run of an older file took; 0 if nothing is known."""
    return float(read(path).get("seconds", 0)) if path.exists() else 0.0


def _run(command: str, folder: Path, deadline: float) -> None:
    """Run ``warphash`` with these arguments in a folder, by the package that this process has imported."""
    root = Path(__file__).resolve().parents[2]
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    subprocess.run(
        [sys.executable, "-m", "warphash", *command.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        timeout=max(0.0, deadline - time.monotonic()),
    )
