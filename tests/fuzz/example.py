"""One example: its random numbers, its choices, and what it says when an invariant is broken."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from warphash.designs import registry

__all__ = ["DESIGNS", "Broken", "Example", "require"]

T = TypeVar("T")

DESIGNS = [name for name in registry.names() if name != "auto"]


class Broken(AssertionError):
    """An invariant does not hold.

    Attributes
    ----------
    what
        The invariant, in the same words for each example that breaks it: findings are counted by these words.
    """

    def __init__(self, what: str, detail: str = "") -> None:
        super().__init__(f"{what}: {detail}" if detail else what)
        self.what = what


def require(holds: Any, what: str, detail: Any = "") -> None:
    """Raise `Broken` unless ``holds``."""
    if not holds:
        raise Broken(what, str(detail)[:600])


@dataclass
class Example:
    """The example of a number.

    Attributes
    ----------
    kind, seed, number
        Name the example: the same three make the same random numbers.
    design
        Design of the example's table; empty until `choose_design`.
    steps
        What was done, for the report of a failure.
    listener
        Is told the design and each step at once, since a crash loses the lists here.
    """

    kind: str
    seed: int
    number: int
    design: str = ""
    steps: list[str] = field(default_factory=list)
    listener: Callable[[str, str], None] = lambda what, text: None

    @cached_property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(self.kind.encode()), self.number])

    @property
    def command(self) -> str:
        """The command that runs this example alone."""
        return f"python -m fuzz --kind {self.kind} --seed {self.seed} --number {self.number}"

    def choose_design(self, names: Sequence[str] = DESIGNS) -> str:
        self.design = self.choose(names)
        self.listener("design", self.design)
        return self.design

    def choose(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def happens(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def between(self, least: int, most: int) -> int:
        """A number from ``least`` to ``most``, both included."""
        return int(self.rng.integers(least, most + 1))

    def note(self, step: str) -> None:
        self.steps.append(step)
        self.listener("step", step)
