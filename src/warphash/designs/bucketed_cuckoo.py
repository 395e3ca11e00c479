"""Bucketed cuckoo hashing (BCHT): see ``kernels/designs/bucketed_cuckoo.cuh``."""

from .base import Design, Parameter

DESIGN = Design(
    name="bucketed_cuckoo",
    aliases=("bcht",),
    title="Bucketed cuckoo hash table",
    citation="Awad et al., Better GPU Hash Tables, arXiv 2108.07232, sections III-A and V-B",
    parameters=(
        Parameter("slots_per_bucket", 16, "slots in a bucket", choices=(8, 16, 32)),
        Parameter("hashes", 3, "buckets that a key may live in", choices=(2, 3, 4)),
        Parameter(
            "placement",
            "first",
            "try the buckets in order, or take the emptiest",
            choices=("first", "least_loaded"),
            of_paper=True,
        ),
        Parameter(
            "early_exit", True, "find stops at a bucket that was never full", choices=(True, False), of_paper=True
        ),
    ),
    fields=lambda p: {
        "hashes": p["hashes"],
        "placement": int(p["placement"] == "least_loaded"),
        "early_exit": int(p["early_exit"]),
    },
    default_load_factor=lambda p: 0.8,
    # Two choices by first placement reach less: the 2-ary threshold for b = 8 is 0.997, but chains grow long before it.
    safe_load_factor=lambda p: 0.9 if p["hashes"] == 2 else 0.97,
    moves_keys=True,
    settles=True,
    fills_first_bucket=lambda p: p["placement"] == "first",
)
