"""Lock-free chaining, a baseline (Misra and Chaudhuri): see ``kernels/designs/lock_free_chaining.cuh``."""

from .base import LIST_VERBS, Design
from .layout import Chains
from .slab import BUCKETS, REBUCKET

DESIGN = Design(
    name="lock_free_chaining",
    aliases=("misra",),
    title="Lock-free chained hash table",
    citation="Misra and Chaudhuri, Performance Evaluation of Concurrent Lock-free Data Structures on GPUs, 2012, as in "
    "Ashkiani et al., A Dynamic Hash Table for the GPU, IPDPS 2018, section VI-C",
    parameters=(BUCKETS, REBUCKET),
    fields=lambda p: {},
    default_load_factor=lambda p: 0.5,
    safe_load_factor=lambda p: 1.0 if p["rebucket"] else float("inf"),
    layout=Chains(lambda _: 2),
    moves_keys=False,
    settles=False,
    capabilities=LIST_VERBS,
)
