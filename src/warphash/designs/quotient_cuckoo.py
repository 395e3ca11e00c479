"""Quotient cuckoo hashing: slots that keep a remainder, in lines that know which of their keys are elsewhere."""

from __future__ import annotations

from .base import ALL_VERBS, Design
from .layout import Quotients

DESIGN = Design(
    name="quotient_cuckoo",
    aliases=("quotient",),
    title="Quotient cuckoo hashing",
    citation="Quotienting: Knuth, The Art of Computer Programming, volume 3, section 6.4. "
    "Bucketed cuckoo hashing, and filters as future work: Awad et al., Better GPU Hash Tables, 2021",
    parameters=(),
    fields=lambda _: {},
    default_load_factor=lambda _: 0.72,
    safe_load_factor=lambda _: 0.85,
    layout=Quotients(),
    moves_keys=True,
    settles=False,
    fills_first_bucket=lambda _: True,
    capabilities=ALL_VERBS,
)
