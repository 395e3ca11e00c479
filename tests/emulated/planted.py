"""What a planted bug is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from emulated.scenarios import Races, Scenario, without_cas128
from support.planting import planted, planted_among
from warphash.designs.base import class_name

__all__ = ["Bug", "KernelBug", "impatient"]

PATIENCE, LITTLE_PATIENCE = "kMaxSwitchPoints = 1ull << 25;", "kMaxSwitchPoints = 1ull << 21;"
"""Switch points after which a launch counts as one without end: half a minute of them, or two seconds."""


def impatient(source: str) -> str:
    """Kernels on a device that soon gives up a launch: a bug may make a ring of a list."""
    return planted(source, PATIENCE, LITTLE_PATIENCE)


@dataclass(frozen=True)
class KernelBug:
    """A text of the kernels of one program, and what a careless hand might have written.

    Attributes
    ----------
    among
        Text that only that program has.
    """

    name: str
    right: str
    wrong: str
    scenario: Callable[..., None]
    among: str

    def __str__(self) -> str:
        return self.name

    def plant(self, source: str) -> str:
        """The source with the bug; kernels of other programs as they are."""
        return planted_among(self.among, self.right, self.wrong)(source)


@dataclass(frozen=True)
class Bug:
    """A text of the kernels and what a careless hand might have written.

    Attributes
    ----------
    among
        Text of the kernels that have the bug; empty for the kernels of the design.
    """

    name: str
    right: str
    wrong: str
    scenario: Scenario
    design: str = "bucketed_cuckoo"
    word: str = "u4"
    parameters: dict[str, Any] = field(default_factory=lambda: {"slots_per_bucket": 8})
    locks: bool = False
    value: str = ""
    multi: bool = False
    among: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def races(self) -> Races:
        """The table in which the bug is planted."""
        return Races(self.design, self.word, self.parameters, self.plant, self.value, self.multi)

    def without(self) -> Bug:
        """The same with nothing planted."""
        return replace(self, name=f"{self.scenario.__name__} without a bug", wrong=self.right)

    def plant(self, source: str) -> str:
        """The source with the bug; other kernels as they are: those of rows, and of the design that proves a table."""
        if (self.among or f"WARPHASH_ENTRIES({class_name(self.design)}, ") not in source:
            return source
        wrong = impatient(planted(source, self.right, self.wrong))
        return without_cas128(wrong) if self.locks else wrong
