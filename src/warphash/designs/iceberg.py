"""Iceberg hashing (IHT): see ``kernels/designs/iceberg.cuh``."""

from .base import Design, Parameter

DESIGN = Design(
    name="iceberg",
    aliases=("iht",),
    title="Iceberg hash table",
    citation="Awad et al., Better GPU Hash Tables, arXiv 2108.07232, sections III-C and V-D",
    parameters=(
        Parameter("slots_per_bucket", 16, "slots in a bucket", choices=(8, 16, 32)),
        Parameter("threshold", 0.8, "share of a primary bucket that is open to every key", bounds=(0.2, 0.8)),
        Parameter("early_exit", True, "find stops at a primary bucket that sent no key away", choices=(True, False)),
    ),
    fields=lambda p: {
        "hashes": 3,
        "threshold": int(p["threshold"] * p["slots_per_bucket"]) + 1,  # see iceberg.cuh
        "early_exit": int(p["early_exit"]),
    },
    default_load_factor=lambda p: {8: 0.55, 16: 0.75, 32: 0.85}[p["slots_per_bucket"]],
    safe_load_factor=lambda p: {8: 0.6, 16: 0.82, 32: 0.9}[p["slots_per_bucket"]],
    moves_keys=False,
    settles=True,
    fills_first_bucket=lambda _: True,
)
