"""What a table is, and stays: its class, its design and its options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ..designs import registry
from ..designs.base import GROUP_VERBS, Design
from ..errors import ParameterError, UnsupportedVerb
from ..storage.bounded.bound import RANKED_ROWS, Bound

__all__ = ["Facts"]


class Facts(NamedTuple):
    """What a table is, and stays. A named tuple, since each table makes one.

    Attributes
    ----------
    kind, name
        The public class that says what the table is, and the class that the caller made, which may be derived from it.
    is_multi
        Whether the table keeps every pair, also of equal keys.
    parameters
        All parameters of the design.
    bound
        Of the number of keys; None for none.
    load_factor, load_bounds
        What the table is made for.
    memory
        Where the slots lie: ``"device"``, ``"host"``, or the path of a file, behind all links.
    options
        The other options, by their names.
    """

    kind: str
    name: str
    is_multi: bool
    design: Design
    parameters: dict[str, Any]
    bound: Bound | None
    load_factor: float
    load_bounds: tuple[float, float] | None
    memory: str | Path
    seed: int
    options: Mapping[str, Any]

    @property
    def verbs(self) -> frozenset[str]:
        """The verbs of the table: those of its design; of a `MultiMap` in groups, those of groups."""
        return GROUP_VERBS if self.is_grouped else self.design.capabilities

    @property
    def is_grouped(self) -> bool:
        """Whether keys repeat, and the values of a key are a group behind a table of the design."""
        return self.is_multi and not self.design.layout.keeps_duplicates

    @property
    def keeps_ranks(self) -> bool:
        """Whether a rank lies beside each pair."""
        return self.bound is not None and self.bound.evict in RANKED_ROWS

    @property
    def rules(self) -> dict[str, Any]:
        """The options that say when two keys are one: a table with these takes the same keys."""
        return {name: self.options[name] for name in ("nulls", "floats")}

    def check_bound(self) -> None:
        """Raise unless the design can have the bound.

        Raises
        ------
        UnsupportedVerb
            If the design does not erase.
        ParameterError
            If there would be ranks beside pairs that are not on the device.
        """
        if self.bound is None:
            return
        self.need("erase")
        if self.memory != "device" and self.keeps_ranks:
            raise ParameterError(
                f"evict={self.bound.evict!r} keeps a rank beside each pair on the device, and the pairs of this "
                f"table are in {str(self.memory)!r}: give evict='lfu' or 'random'"
            )

    def check_groups(self) -> None:
        """Raise `ParameterError` if values in groups would lie in a file, or have bounds of the load factor."""
        if self.is_grouped and isinstance(self.memory, Path):
            raise ParameterError(
                f"the values of a MultiMap lie in memory, got memory={str(self.memory)!r}: leave it out, and save the "
                "table"
            )
        if self.is_grouped and self.load_bounds is not None:
            raise ParameterError(
                f"load_bounds={self.load_bounds} is for slots, and values in groups lie without gaps: leave it out, or "
                "make the MultiMap with design='slab'"
            )

    def need(self, verb: str) -> None:
        """Raise `UnsupportedVerb` if the design does not have a verb."""
        if verb not in self.verbs:
            self.refuse(verb)

    def refuse(self, verb: str) -> NoReturn:
        """Raise `UnsupportedVerb` for a verb that the design does not have."""
        designs = [registry.get(name) for name in registry.names()]
        of_kind = [one for one in designs if one.layout.keeps_duplicates] if self.is_grouped else designs
        have = ", ".join(one.name for one in of_kind if verb in one.capabilities)
        mend = f"these have: {have}" if have else "no other design has"
        raise UnsupportedVerb(f"design {self.design.name!r} has no {verb}; {mend}")
