"""The power of two choices (BP2HT): see ``kernels/designs/power_of_two.cuh``."""

from .base import Design, Parameter

DESIGN = Design(
    name="power_of_two",
    aliases=("bp2ht",),
    title="Bucketed power-of-two-choices hash table",
    citation="Awad et al., Better GPU Hash Tables, arXiv 2108.07232, sections III-B and V-C",
    parameters=(Parameter("slots_per_bucket", 16, "slots in a bucket", choices=(8, 16, 32)),),
    fields=lambda p: {"hashes": 2},
    default_load_factor=lambda p: {8: 0.55, 16: 0.75, 32: 0.85}[p["slots_per_bucket"]],
    safe_load_factor=lambda p: {8: 0.6, 16: 0.8, 32: 0.9}[p["slots_per_bucket"]],
    moves_keys=False,
    settles=False,
)
