"""Which design ``design="auto"`` means: Table I of Better GPU Hash Tables, extended by our measurements.

The paper recommends by pairs of priorities: bucketed cuckoo with 16 slots wherever stability is not asked for, iceberg
or the power of two choices where it is. Its reason for 16 slots was that one GPU read 128 bytes at the price of 8. Here
a bucket of 8 pairs of 4 + 4 bytes is one line of 64 bytes, the unit that both kinds of memory fetch, and is faster on
either engine (docs/performance/find.md); 16 stays the choice where the load factor comes first.

Lookups alone are no priority of the paper's table. Quotient cuckoo hashing is the choice for them: on either engine it
finds absent keys faster than bucketed cuckoo does, and present keys of 4 bytes, too, in fewer bytes. On a GPU it is
also the choice where nothing is asked for, or insertions are. Builds and erases of large batches run at twice the rate
of bucketed cuckoo there, or more, and batches that come one after another are faster, too. On a CPU bucketed cuckoo is
built faster, so it stays the choice (docs/performance/quotient.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from ..errors import ParameterError

__all__ = ["PRIORITIES", "choose", "chosen_slots"]

PRIORITIES = ("load_factor", "insertion", "query", "stability")


def choose(priorities: Iterable[str] = (), *, on_gpu: bool = False) -> tuple[str, dict[str, Any]]:
    """Design and parameters for a set of priorities out of `PRIORITIES`.

    Parameters
    ----------
    on_gpu
        The table is on a GPU, and the caller gave no load factor, no bounds and no parameter.

    Raises
    ------
    ParameterError
        For an unknown priority.
    """
    wanted = {priorities} if isinstance(priorities, str) else set(priorities)
    unknown = wanted - set(PRIORITIES)
    if unknown:
        raise ParameterError(f"priorities must be among {PRIORITIES}, got {sorted(map(str, unknown))}")
    if "stability" in wanted:
        if "load_factor" in wanted:
            return "iceberg", {"slots_per_bucket": 32}
        if "query" in wanted and "insertion" not in wanted:
            return "power_of_two", {"slots_per_bucket": 16}
        return "iceberg", {"slots_per_bucket": 16}
    if wanted == {"query"} or (on_gpu and wanted <= {"insertion", "query"}):
        return "quotient_cuckoo", {}
    return "bucketed_cuckoo", {"slots_per_bucket": 16 if "load_factor" in wanted else 8}


def chosen_slots(design: str) -> set[int]:
    """The values of ``slots_per_bucket`` that a design is chosen with, for whichever priorities."""
    sets = (wanted for n in range(len(PRIORITIES) + 1) for wanted in combinations(PRIORITIES, n))
    chosen = [parameters for name, parameters in map(choose, sets) if name == design]
    return {parameters["slots_per_bucket"] for parameters in chosen if parameters}
