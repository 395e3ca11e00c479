"""The power of two choices, or more (BP2HT): see ``kernels/designs/power_of_two.cuh``."""

from .base import Design, Parameter

_DEFAULT_AND_SAFE_LOADS = {
    2: {8: (0.55, 0.6), 16: (0.75, 0.8), 32: (0.85, 0.9)},
    3: {8: (0.7, 0.76), 16: (0.83, 0.88), 32: (0.89, 0.94)},
    4: {8: (0.75, 0.8), 16: (0.85, 0.9), 32: (0.9, 0.95)},
}
"""By choices and slots of a bucket. Those of three and four choices were measured (docs/performance/insert.md)."""

DESIGN = Design(
    name="power_of_two",
    aliases=("bp2ht",),
    title="Bucketed power-of-two-choices hash table",
    citation="Awad et al., Better GPU Hash Tables, arXiv 2108.07232, sections III-B and V-C",
    parameters=(
        Parameter("slots_per_bucket", 16, "slots in a bucket", choices=(8, 16, 32)),
        Parameter("hashes", 2, "buckets of which a key goes into the emptiest", choices=(2, 3, 4)),
    ),
    fields=lambda p: {"hashes": p["hashes"]},
    default_load_factor=lambda p: _DEFAULT_AND_SAFE_LOADS[p["hashes"]][p["slots_per_bucket"]][0],
    safe_load_factor=lambda p: _DEFAULT_AND_SAFE_LOADS[p["hashes"]][p["slots_per_bucket"]][1],
    moves_keys=False,
    settles=False,
)
