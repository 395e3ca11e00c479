"""What an example found, and which findings are one."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fuzz.example import Broken, Example

__all__ = ["Finding", "finding_of", "table_of"]

OURS = ("warphash", "fuzz")
STEPS = 12


@dataclass(frozen=True)
class Finding:
    """A failure of an example.

    Attributes
    ----------
    what
        The broken invariant; or the exception and the line of warphash, or of the fuzzer, that it came through.
    detail
        The message.
    steps
        The last steps of the example.
    """

    kind: str
    design: str
    what: str
    detail: str
    command: str
    steps: tuple[str, ...] = ()

    @property
    def signature(self) -> tuple[str, str, str]:
        """Findings of one signature are counted as one."""
        return self.kind, self.design, self.what


def finding_of(example: Example, error: BaseException) -> Finding:
    """The finding that an exception is."""
    if isinstance(error, Broken):
        what, detail = error.what, str(error)
    else:
        what, detail = f"{type(error).__name__} at {_line(error)}", f"{type(error).__name__}: {error}"
    return Finding(example.kind, example.design, what, detail, example.command, tuple(example.steps[-STEPS:]))


def _line(error: BaseException) -> str:
    """The innermost line of ours that an exception came through."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if set(OURS) & set(Path(each.filename).parts)]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


def table_of(findings: Iterable[Finding]) -> str:
    """A short table: a line for each kind and invariant, with the designs, and the first example's command."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        groups.setdefault((each.kind, each.what), []).append(each)
    lines = []
    for (kind, what), found in sorted(groups.items()):
        designs = sorted({each.design for each in found if each.design})
        lines += [
            f"{len(found):5} x {kind}: {what}",
            f"        designs: {', '.join(designs) or '-'}",
            f"        first:   {found[0].detail[:300]}",
            *(f"          step   {step[:200]}" for step in found[0].steps),
            f"        again:   {found[0].command}",
        ]
    return "\n".join(lines)
