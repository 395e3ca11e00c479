"""Two-level cuckoo hashing (HH Hash): see ``kernels/designs/two_level_cuckoo.cuh``."""

from .base import ALL_VERBS, Design, Parameter
from .layout import TwoLevel

SEED_LIMIT = 32
"""Sets of seeds that a placement tries. At the load factors that are safe, one in a thousand buckets needs a second."""

SAFE_LOAD_FACTORS = {2: 0.38, 3: 0.75, 4: 0.85}
"""By the number of functions. The limits of a bucket are 0.5, 0.91 and 0.97, and buckets differ in their keys."""

DESIGN = Design(
    name="two_level_cuckoo",
    aliases=("hh",),
    title="Two-level cuckoo hashing",
    citation="HH Hash: a two-level cuckoo hash table on GPUs",
    parameters=(
        Parameter("hashes", 2, "functions of a bucket, each with a subtable", bounds=(2, 4)),
        Parameter("range_slots", 1024, "slots of a bucket of the first level", bounds=(64, 2048)),
        Parameter("rounds", 32, "rounds of a placement before the bucket draws new seeds", bounds=(1, 4096)),
    ),
    fields=lambda p: {"hashes": p["hashes"], "round_limit": p["rounds"], "seed_limit": SEED_LIMIT},
    default_load_factor=lambda p: 0.35,
    safe_load_factor=lambda p: SAFE_LOAD_FACTORS[p["hashes"]],
    layout=TwoLevel(),
    moves_keys=True,
    settles=True,
    capabilities=ALL_VERBS,
)
