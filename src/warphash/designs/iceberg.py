"""Iceberg hashing (IHT): see ``kernels/designs/iceberg.cuh``."""

from collections.abc import Mapping
from typing import Any

from .base import Design, Parameter


def _region(p: Mapping[str, Any]) -> int:
    """Slots of a bucket that are open to every key: floor(t b) + 1, as the published probe counts have it.

    One slot at least is left for keys that are sent away. Without it, no build of two million keys with 16 slots
    succeeded at a load of 0.7.
    """
    slots: int = p["slots_per_bucket"]
    return min(int(p["threshold"] * slots) + 1, slots - 1)


_DEFAULT_AND_SAFE_LOADS = {
    3: {8: (0.55, 0.6), 16: (0.75, 0.82), 32: (0.85, 0.9)},
    4: {8: (0.7, 0.75), 16: (0.82, 0.87), 32: (0.88, 0.93)},
}
"""By `hashes` and slots of a bucket. Those of four hashes were measured (docs/performance/insert.md)."""


def _loads(p: Mapping[str, Any]) -> tuple[float, float]:
    """Default and safe load factor. With 16 slots, a single one for keys that are sent away is soon taken."""
    if p["slots_per_bucket"] == 16 and _region(p) == 15:
        return {3: (0.65, 0.7), 4: (0.77, 0.82)}[p["hashes"]]
    return _DEFAULT_AND_SAFE_LOADS[p["hashes"]][p["slots_per_bucket"]]


DESIGN = Design(
    name="iceberg",
    aliases=("iht",),
    title="Iceberg hash table",
    citation="Awad et al., Better GPU Hash Tables, arXiv 2108.07232, sections III-C and V-D",
    parameters=(
        Parameter("slots_per_bucket", 16, "slots in a bucket", choices=(8, 16, 32)),
        Parameter("hashes", 3, "buckets of a key: a primary one, and the secondary ones", choices=(3, 4)),
        Parameter(
            "threshold", 0.8, "share of a primary bucket that is open to every key", bounds=(0.2, 0.9), of_paper=True
        ),
        Parameter(
            "early_exit",
            True,
            "find stops at a primary bucket that sent no key away",
            choices=(True, False),
            of_paper=True,
        ),
    ),
    fields=lambda p: {"hashes": p["hashes"], "threshold": _region(p), "early_exit": int(p["early_exit"])},
    default_load_factor=lambda p: _loads(p)[0],
    safe_load_factor=lambda p: _loads(p)[1],
    moves_keys=False,
    settles=True,
    fills_first_bucket=lambda _: True,
    # With 8 slots, many more builds at a load of 0.6 would fail, for 0.7 % fewer reads (docs/performance/insert.md).
    has_two_rounds=lambda p: p["slots_per_bucket"] > 8,
)
