"""A process that updates and flushes a table in a file is killed at a random moment, and its files may be damaged.

Without damage, the file then holds exactly what a flush confirmed: the last one, or the next one if that was under way.
With damage to the header, the boards, the journal or the log of strings, it holds the same or is refused. The slots
have no checksums, so they are not damaged, but the file is cut and extended.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.child import Child, folder
from fuzz.example import Example, require
from warphash import CorruptFile, HashMap, PathError
from warphash.storage.strings import held_strings
from warphash.storage.tickets import table_file

Pairs = dict[int, int]

PAGE = 4096
KEYS = 400


def run(example: Example) -> None:
    example.design = example.choose(["stadium", "stadium", "stadium", "tiered"])
    example.listener("design", example.design)
    kind = example.choose(["u8", "str"])
    with folder() as home:
        path, log, seed = home / "t.tab", home / "log", example.between(0, 2**32)
        _killed(example, path, log, seed, kind)
        confirmed = _confirmed(log, seed)
        if confirmed is None:
            return  # killed before there was a table
        damage = _damage(example, path) if example.happens(0.6) else ""
        Child(lambda: _open(path, confirmed, damage)).wait(20, "an open behind a kill")


def _as(kind: str, numbers: Any) -> Any:
    """A key or a value of a type for each number."""
    return numbers if kind == "u8" else [f"{number} {'x' * (number % 70)}" for number in numbers.tolist()]


def _killed(example: Example, path: Path, log: Path, seed: int, kind: str) -> None:
    """Run updates and flushes in a child, and kill the child."""
    options = {"write": "back", "device_capacity": 100} if example.design == "tiered" else {}
    growing = example.happens(0.4)

    def body() -> None:
        held_strings.FEWEST_TO_COLLECT = 100  # strings are forgotten between some of the flushes
        table: Any = HashMap(
            kind,
            kind,
            design=example.design,
            memory=path,
            capacity=50 if growing else 2 * KEYS,
            device="cpu",
            **options,
        )
        with log.open("ab", buffering=0) as written:
            written.write(b"made\n")
            for number, (verb, keys, values) in enumerate(_steps(seed)):
                if verb == "flush":
                    written.write(f"begin {number}\n".encode())
                    table.flush()
                    written.write(f"done {number}\n".encode())
                elif verb == "erase":
                    table.erase(_as(kind, keys))
                else:
                    table.assign(_as(kind, keys), _as(kind, values))
        table.close()
        log.write_bytes(b"made\ndone 1000000\n" + 20 * b"\n")

    child = Child(body)
    lines, end = example.between(1, 20), time.monotonic() + 10
    while time.monotonic() < end and not (log.exists() and log.read_bytes().count(b"\n") >= lines):
        time.sleep(0.001)
    time.sleep(float(example.rng.random()) * 0.03)
    child.kill()
    example.note(f"killed behind {log.read_bytes().decode().split()[-2:] if log.exists() else 'nothing'}")


def _steps(seed: int) -> list[tuple[str, Any, Any]]:
    """The same updates for the killed process and for the model."""
    rng = np.random.default_rng(seed)
    steps = []
    for _ in range(150):
        verb = str(rng.choice(["assign", "assign", "erase", "flush"], p=[0.45, 0.25, 0.15, 0.15]))
        keys = np.unique(rng.integers(0, KEYS, rng.integers(1, 150))).astype("u8")
        steps.append((verb, keys, keys + rng.integers(1, 10**6).astype("u8")))
    return steps


def _confirmed(log: Path, seed: int) -> list[Pairs] | None:
    """What the file may hold: the pairs of the last flush that ended, and of one that began behind it."""
    if not log.exists():
        return None
    lines = log.read_text().split("\n")
    done = max((int(line.split()[1]) for line in lines if line.startswith("done ")), default=-1)
    begun = max((int(line.split()[1]) for line in lines if line.startswith("begin ")), default=-1)
    pairs: Pairs = {}
    allowed: list[Pairs] = [{}] if done < 0 else []
    for number, (verb, keys, values) in enumerate(_steps(seed)):
        if verb == "flush" and number in (done, begun):
            allowed.append(dict(pairs))
        elif verb == "erase":
            for key in keys.tolist():
                pairs.pop(key, None)
        elif verb == "assign":
            pairs |= dict(zip(keys.tolist(), values.tolist(), strict=True))
    return [*allowed[-2 if begun > done else -1 :], *([pairs] if done == 1_000_000 else [])]


def _damage(example: Example, path: Path) -> str:
    """Damage the file or its journal: what was done, or nothing if there is none."""
    journal = path.with_name(f".{path.name}.journal")
    targets = [each for each in (journal, journal, path) if each.exists() and each.stat().st_size]
    if not targets:
        return ""
    target = example.choose(targets)
    content = bytearray(target.read_bytes())
    hows = ["flip", "flip", "cut", "extend"] + (["remove", "zeros", "twice"] if target == journal else [])
    how = example.choose(hows)
    example.note(f"{how} {target.name} of {len(content)} bytes")
    if how == "flip":
        begin, end = (0, len(content)) if target == journal else example.choose([(0, 2 * PAGE), _log_in(path)])
        for _ in range(example.between(1, 3) if begin < end else 0):
            content[example.between(begin, end - 1)] ^= 1 << example.between(0, 7)
    elif how == "cut":
        del content[example.between(0, len(content) - 1) :]
    elif how == "extend":
        content += bytes(example.between(1, 9000))
    elif how == "zeros":
        at = example.between(0, len(content) - 1)
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    elif how == "twice":
        content *= 2
    if how == "remove":
        target.unlink()
    else:
        target.write_bytes(content)
    return f"{how} of the {'journal' if target == journal else 'file'}"


def _log_in(path: Path) -> tuple[int, int]:
    """Where the log of strings begins in a file, and where it ends."""
    try:
        description = table_file.describe(path)
    except CorruptFile:
        return 0, 0
    begin = table_file.Sizes(*(description[name] for name in table_file.Sizes._fields)).nbytes
    begin += description.get("log_at", 0)
    return begin, begin + description.get("log_bytes", 0)


def _open(path: Path, confirmed: list[Pairs], damage: str) -> None:
    try:
        table = HashMap.open(path, device="cpu")
        table.check()
        keys, values = table.to_arrays(like="numpy")
    except (CorruptFile, PathError):
        require(damage, "a file behind a kill is refused")
        return
    held = dict(
        zip(*([int(str(item).split()[0]) for item in column.tolist()] for column in (keys, values)), strict=True)
    )
    right = confirmed[-1]
    wrong = sum(right.get(key) != value for key, value in held.items())
    what = f"a file behind a kill{' and a ' if damage else ''}{damage}"
    require(held in confirmed, f"{what} holds what no flush confirmed", f"{len(held)} of {len(right)}, {wrong} wrong")
