"""Quotient cuckoo hashing: slots that keep a remainder, in lines that know which of their keys are elsewhere."""

from __future__ import annotations

from .base import ALL_VERBS, Design
from .layout import Quotients

LOAD_FACTOR = 0.72
"""Pairs of 4 + 4 bytes in 10 slots of a line then take 0.9 of its bytes, and a find reads 1.04 lines for a present key
and 1.01 for an absent one (docs/performance/quotient.md)."""

SAFE_LOAD_FACTOR = 0.85
"""Three slots a line, of 8 + 8 bytes, are full at 0.95, and the first of two seeds failed at 0.9. More slots hold more
(docs/performance/quotient.md)."""

DESIGN = Design(
    name="quotient_cuckoo",
    aliases=("quotient",),
    title="Quotient cuckoo hashing",
    citation="Quotienting: Knuth, The Art of Computer Programming, volume 3, section 6.4. "
    "Bucketed cuckoo hashing, and filters as future work: Awad et al., Better GPU Hash Tables, 2021",
    parameters=(),
    fields=lambda _: {},
    default_load_factor=lambda _: LOAD_FACTOR,
    safe_load_factor=lambda _: SAFE_LOAD_FACTOR,
    layout=Quotients(),
    moves_keys=True,
    settles=False,
    fills_first_bucket=lambda _: True,
    capabilities=ALL_VERBS,
)
