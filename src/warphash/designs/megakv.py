"""MegaKV, a cuckoo table that gives up soon: see ``kernels/designs/megakv.cuh``."""

from .base import Design, Parameter

DESIGN = Design(
    name="megakv",
    aliases=(),
    title="MegaKV",
    citation="Zhang et al., Mega-KV, as revised for Dynamic Hash Tables on GPUs, section 6.1",
    parameters=(Parameter("slots_per_bucket", 8, "slots in a bucket", choices=(8,)),),
    fields=lambda p: {"hashes": 2, "early_exit": 1},
    # A key that meets three full buckets in a row has no place: 2 of 10^9 at load 0.3, by Poisson's distribution.
    default_load_factor=lambda p: 0.25,
    safe_load_factor=lambda p: 0.3,
    moves_keys=True,
    settles=True,
    fills_first_bucket=lambda _: True,
    chain_limit=lambda _: 2,
)
