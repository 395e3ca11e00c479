"""The slab list (SlabHash): see ``kernels/designs/slab.cuh``."""

from .base import Design, Parameter

DESIGN = Design(
    name="slab",
    aliases=("slabhash",),
    title="Slab list hash table",
    citation="Ashkiani et al., A Dynamic Hash Table for the GPU, IPDPS 2018, sections III to V",
    parameters=(
        Parameter("rebucket", True, "rebuild into more buckets when their first slabs would be full", (True, False)),
    ),
    fields=lambda p: {},
    default_load_factor=lambda p: 0.7,  # memory utilisation 0.61, before its dip (S3-21)
    safe_load_factor=lambda p: 1.0 if p["rebucket"] else float("inf"),
    moves_keys=False,
    settles=False,
    linked=True,
)
