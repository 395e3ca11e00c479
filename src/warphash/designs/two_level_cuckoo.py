"""Two-level cuckoo hashing (HH Hash): see ``kernels/designs/two_level_cuckoo.cuh``."""

import math
from collections.abc import Mapping
from typing import Any

from ..errors import ParameterError
from .base import ALL_VERBS, Design, Parameter
from .layout import TwoLevel

SEED_LIMIT = 32
"""Sets of seeds that a placement tries. At a load factor of 0.35, two to three of a thousand buckets need a second
set. With n^2 slots for n keys and a single function, four of ten do."""

SAFE_LOAD_FACTORS = {2: 0.38, 3: 0.75, 4: 0.85}
"""By the number of functions. The limits of a bucket are 0.5, 0.91 and 0.97, and buckets differ in their keys."""

SIZINGS = ("regular", "squared")


def squared_load_factor(parameters: Mapping[str, Any]) -> float:
    """The load factor at which a mean bucket has n keys, and each of its subtables n^2 slots."""
    slots: int = parameters["range_slots"]
    return math.sqrt(slots // parameters["hashes"]) / slots


def check(parameters: Mapping[str, Any]) -> None:
    """Raise `ParameterError` if buckets have a single function, but not n^2 slots: most would find no seeds."""
    if parameters["hashes"] == 1 and parameters["sizing"] != "squared":
        raise ParameterError("design 'two_level_cuckoo': hashes=1 needs sizing='squared', got sizing='regular'")


def default_load_factor(parameters: Mapping[str, Any]) -> float:
    """``reg_load``; with n^2 slots for n keys, what follows from these."""
    reg_load: float = parameters["reg_load"]
    return squared_load_factor(parameters) if parameters["sizing"] == "squared" else reg_load


def safe_load_factor(parameters: Mapping[str, Any]) -> float:
    """The load factor behind which the table gets more buckets."""
    if parameters["sizing"] == "squared":
        return 1.1 * squared_load_factor(parameters)
    return SAFE_LOAD_FACTORS[parameters["hashes"]]


DESIGN = Design(
    name="two_level_cuckoo",
    aliases=("hh",),
    title="Two-level cuckoo hashing",
    citation="HH Hash: a two-level cuckoo hash table on GPUs",
    parameters=(
        Parameter("hashes", 2, "functions of a bucket, each with a subtable", bounds=(1, 4)),
        Parameter(
            "reg_load",
            0.35,
            "load of a regular bucket: the default of load_factor",
            bounds=(0.001, 0.85),
            of_paper=True,
        ),
        Parameter(
            "sizing",
            "regular",
            "slots of a bucket with n keys: n / reg_load, or n^2 a function",
            SIZINGS,
            of_paper=True,
        ),
        Parameter("range_slots", 1024, "slots of a bucket of the first level", bounds=(64, 2048), of_paper=True),
        Parameter(
            "rounds", 32, "rounds of a placement before the bucket draws new seeds", bounds=(1, 4096), of_paper=True
        ),
    ),
    fields=lambda p: {
        "hashes": p["hashes"],
        "round_limit": p["rounds"] if p["hashes"] > 1 else 1,
        "seed_limit": SEED_LIMIT,
    },
    default_load_factor=default_load_factor,
    safe_load_factor=safe_load_factor,
    check=check,
    layout=TwoLevel(),
    moves_keys=True,
    settles=True,
    capabilities=ALL_VERBS,
)
