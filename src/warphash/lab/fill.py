"""How full a table is, in the measures of the papers, and what a design is made with to be so full.

A table of slots is as full as its load factor says. A table of lists is made with a number of buckets, and how well its
slabs are used follows from chance (A Dynamic Hash Table for the GPU, section III-C and Figure 4c).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from ..designs import registry
from ..designs.layout import SLAB_BYTES
from ..errors import ParameterError
from ..storage.policies import expected_nodes
from .runner import Setting

__all__ = ["MEASURES", "Fill", "buckets_for", "data_slots", "has_buckets"]

MEASURES = ("load_factor", "utilisation", "slab_count", "buckets")

_STEP = 0.99
"""Of the search for a utilisation: its curve has dips, and is climbed in steps that are short beside them."""


@dataclass(frozen=True)
class Fill:
    """How full a table is to be.

    Attributes
    ----------
    measure
        ``"load_factor"``: keys over slots. ``"utilisation"``: bytes of pairs over those of slabs, or of slots, in use.
        ``"slab_count"``: keys over what the first slabs of all lists hold. ``"buckets"``: how many lists there are.
    value
        In that measure.
    """

    measure: str
    value: float

    def applied(self, setting: Setting, keys: int, slot_bytes: int) -> tuple[Setting, float | None]:
        """The setting and the load factor of a table of ``keys`` keys; no load factor where the buckets tell the size.

        Parameters
        ----------
        slot_bytes
            Of a key with its value.

        Raises
        ------
        ParameterError
            If the design has no such measure, or cannot be so full.
        """
        if not has_buckets(setting.design):
            if self.measure not in ("load_factor", "utilisation"):
                raise ParameterError(f"design {setting.design!r} has slots, and no {self.measure} to set")
            return setting, self.value
        if self.measure == "load_factor":
            return setting, self.value
        if self.measure == "buckets":
            buckets = int(self.value)
        elif registry.get(setting.design).name != "slab":
            raise ParameterError(f"design {setting.design!r} has no slabs, and no {self.measure} to set")
        elif self.measure == "slab_count":
            buckets = max(1, round(keys / (self.value * data_slots(slot_bytes))))
        else:
            buckets = buckets_for(self.value, keys, slot_bytes)
        return replace(setting, parameters={**setting.parameters, "buckets": buckets}), None


def has_buckets(design: str) -> bool:
    """Whether a design is made with a number of buckets, each a list."""
    return any(parameter.name == "buckets" for parameter in registry.get(design).parameters)


def data_slots(slot_bytes: int) -> int:
    """Pairs that a slab holds beside its pointer and the word before that."""
    return (SLAB_BYTES - 8) // slot_bytes


@cache
def buckets_for(utilisation: float, keys: int, slot_bytes: int) -> int:
    """The most buckets, and so the shortest lists, with which ``keys`` keys use their slabs so well.

    Raises
    ------
    ParameterError
        If not even one list of all keys does.
    """

    def reaches(buckets: int) -> bool:
        slabs = expected_nodes(keys, buckets, data_slots(slot_bytes))
        return keys * slot_bytes >= utilisation * SLAB_BYTES * slabs

    enough = int(keys * slot_bytes / (SLAB_BYTES * utilisation)) + 1  # no more are, as each bucket has a slab
    too_many = enough + 1
    while not reaches(enough):
        if enough == 1:
            raise ParameterError(f"{keys:,} keys never use {utilisation:.1%} of their slabs")
        too_many, enough = enough, max(1, int(enough * _STEP))
    while too_many - enough > 1:
        middle = (enough + too_many) // 2
        if reaches(middle):
            enough = middle
        else:
            too_many = middle
    return enough
