"""Fill: how full a table is, in the papers' measures, and the parameters that make a table so full.

The load factor tells how full a table of slots is. A table of lists has a given number of buckets instead. How well its
slabs are used then depends on the random lengths of the lists (A Dynamic Hash Table for the GPU, section III-C and
Figure 4c).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from ...designs import registry
from ...designs.layout import SLAB_BYTES
from ...errors import ParameterError
from ...storage.policies import expected_nodes
from ..bench.runner import Setting

__all__ = ["MEASURES", "Fill", "buckets_for", "data_slots", "has_buckets"]

MEASURES = ("load_factor", "utilisation", "slab_count", "buckets")

_STEP = 0.99
"""Step of the search for a number of buckets, as a factor. Utilisation as a function of buckets has dips, and the steps
must be short compared to a dip."""


@dataclass(frozen=True)
class Fill:
    """How full a table shall be.

    Attributes
    ----------
    measure
        ``"load_factor"``: keys over slots. ``"utilisation"``: bytes of pairs over bytes of slabs (or slots) in use.
        ``"slab_count"``: keys over the capacity of the first slabs of all lists. ``"buckets"``: number of lists.
    value
        The value of the measure.
    """

    measure: str
    value: float

    def applied(self, setting: Setting, keys: int, slot_bytes: int) -> tuple[Setting, float | None]:
        """The setting and the load factor of a table of ``keys`` keys.

        The load factor is None if the number of buckets determines the size.

        Parameters
        ----------
        slot_bytes
            Bytes of a key with its value.

        Raises
        ------
        ParameterError
            If the design does not have this measure, or cannot be so full.
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
    """Whether a design has a parameter ``buckets``: its number of lists."""
    return any(parameter.name == "buckets" for parameter in registry.get(design).parameters)


def data_slots(slot_bytes: int) -> int:
    """Number of pairs in a slab. The last 8 bytes of a slab hold its pointer and the word before the pointer."""
    return (SLAB_BYTES - 8) // slot_bytes


@cache
def buckets_for(utilisation: float, keys: int, slot_bytes: int) -> int:
    """The largest number of buckets with which ``keys`` keys reach a utilisation of their slabs.

    The largest number gives the shortest lists.

    Raises
    ------
    ParameterError
        If even a single list of all keys does not reach the utilisation.
    """

    def reaches(buckets: int) -> bool:
        slabs = expected_nodes(keys, buckets, data_slots(slot_bytes))
        return keys * slot_bytes >= utilisation * SLAB_BYTES * slabs

    enough = int(keys * slot_bytes / (SLAB_BYTES * utilisation)) + 1  # an upper bound: each bucket has at least a slab
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
