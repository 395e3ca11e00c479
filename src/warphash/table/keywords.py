"""The keyword arguments of tables, as a type checker and an editor see them.

What they mean is told at `HashMap` and at the designs. What they may be is checked when the table is made (`options`,
`Design.resolve`), also for callers who use no type checker.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict

import numpy.typing as npt

__all__ = [
    "Comparison",
    "DesignName",
    "Evict",
    "Operator",
    "SharedOptions",
    "TableOptions",
    "TableOptionsWithCapacity",
]

DesignName: TypeAlias = Literal[
    "auto",
    "cuckoo",
    "1cht",
    "cudpp",
    "bucketed_cuckoo",
    "bcht",
    "power_of_two",
    "bp2ht",
    "iceberg",
    "iht",
    "slab",
    "slabhash",
    "lock_free_chaining",
    "misra",
    "linear_probing",
    "linear",
    "megakv",
    "dynamic_cuckoo",
    "dyhash",
    "stadium",
    "stash",
    "two_level_cuckoo",
    "hh",
    "quotient_cuckoo",
    "quotient",
    "tiered",
]
"""Names and aliases of all designs."""

Operator: TypeAlias = Literal["add", "min", "max", "or", "and", "xor", "first", "last"]
Comparison: TypeAlias = Literal["<", "<=", "==", "!=", ">=", ">"]
Evict: TypeAlias = Literal["lru", "lfu", "fifo", "score", "random"]


class SharedOptions(TypedDict, total=False):
    """What every table takes, and the parameters of all designs."""

    device: str | None
    load_factor: float | None
    load_bounds: tuple[float, float] | None
    seed: int | None
    hash: Literal["mixer", "universal"]
    on_full: Literal["grow", "raise"]
    attempts: int
    count_probes: bool
    nulls: Literal["raise", "drop", "key"]
    floats: Literal["bits", "value"] | None
    memory: str | os.PathLike[str] | None
    max_size: int | None
    evict: Evict | None
    score: npt.DTypeLike | None
    # of design="auto"
    priorities: Sequence[Literal["load_factor", "insertion", "query", "stability"]]
    # of one design or several
    slots_per_bucket: int
    hashes: int
    alpha: float
    beta: float
    ticket_bits: int
    reuse_erased: bool
    device_capacity: int | None
    write: Literal["through", "back"]
    # of those, what only papers need (`Parameter.of_paper`)
    placement: Literal["first", "least_loaded"]
    early_exit: bool
    threshold: float
    buckets: int | None
    rebucket: bool
    allocator: Literal["slab", "slab_light"]
    probe_limit: int
    subtables: int
    coordination: Literal["lanes", "voter", "spin"]
    routing: Literal["even", "equal_loads", "theorem"]
    functions: Literal["rounds", "family"]
    lanes: Literal["hybrid", "stash", "clstash"]
    access: Literal["auto", "direct", "ordered", "sweep"]
    in_flight: Literal["ignore", "wait"]
    reg_load: float
    sizing: Literal["regular", "squared"]
    range_slots: int
    rounds: int


class TableOptions(SharedOptions, total=False):
    """Of a `HashMap` or `HashSet` that is made from arrays."""

    design: DesignName


class TableOptionsWithCapacity(TableOptions, total=False):
    """Of a `HashMap` or `HashSet`."""

    capacity: int | None
