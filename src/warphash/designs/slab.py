"""The slab list (SlabHash): see ``kernels/designs/slab.cuh``."""

from .base import LIST_VERBS, Design, Parameter
from .layout import SLAB_BYTES, Chains

BUCKETS = Parameter(
    "buckets", None, "lists, whatever the capacity; None for as many as it needs", bounds=(1, 2**32 - 16), of_paper=True
)
REBUCKET = Parameter(
    "rebucket", True, "rebuild into more buckets when the lists have grown long", (True, False), of_paper=True
)

DESIGN = Design(
    name="slab",
    aliases=("slabhash",),
    title="Slab list hash table",
    citation="Ashkiani et al., A Dynamic Hash Table for the GPU, IPDPS 2018, sections III to V",
    parameters=(
        BUCKETS,
        REBUCKET,
        Parameter(
            "allocator",
            "slab",
            "slabs in super blocks, or in one that a rebuild enlarges",
            ("slab", "slab_light"),
            of_paper=True,
        ),
        Parameter(
            "reuse_erased",
            False,
            "of a MultiMap: inserts take erased slots again, and the values of a key come in any order",
            (True, False),
        ),
    ),
    fields=lambda p: {},
    default_load_factor=lambda p: 0.7,  # memory utilisation 0.61, before its dip (Figure 4c)
    safe_load_factor=lambda p: 1.0 if p["rebucket"] else float("inf"),
    layout=Chains(lambda slot_bytes: SLAB_BYTES // slot_bytes),
    moves_keys=False,
    settles=False,
    capabilities=LIST_VERBS,
)
