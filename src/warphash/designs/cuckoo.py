"""Cuckoo hashing with one slot a bucket (1CHT, CUDPP): see ``kernels/designs/cuckoo.cuh``."""

from .base import Design, Parameter

DESIGN = Design(
    name="cuckoo",
    aliases=("1cht", "cudpp"),
    title="Cuckoo hash table",
    citation="Alcantara et al., Building an Efficient Hash Table on the GPU, 2011, as in Awad et al., "
    "Better GPU Hash Tables, arXiv 2108.07232, section VII",
    parameters=(
        Parameter("hashes", 4, "slots that a key may live in", choices=(2, 3, 4)),
        Parameter(
            "early_exit", True, "find stops at a slot that was never taken", choices=(True, False), of_paper=True
        ),
    ),
    fields=lambda p: {"hashes": p["hashes"], "early_exit": int(p["early_exit"])},
    default_load_factor=lambda p: {2: 0.4, 3: 0.75, 4: 0.8}[p["hashes"]],
    safe_load_factor=lambda p: {2: 0.45, 3: 0.85, 4: 0.88}[p["hashes"]],
    moves_keys=True,
    settles=True,
    fills_first_bucket=lambda _: True,
)
