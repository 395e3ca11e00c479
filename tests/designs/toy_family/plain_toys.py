"""The toy design: see ``toy_table.cuh``."""

from __future__ import annotations

from warphash.designs.base import Design, Parameter

DESIGN = Design(
    name="toy_table",
    aliases=("toy",),
    title="Toy",
    citation="nobody",
    parameters=(Parameter("slots_per_bucket", 8, "slots in a bucket", choices=(8, 16)),),
    fields=lambda p: {"hashes": 2},
    default_load_factor=lambda p: 0.5,
    safe_load_factor=lambda p: 0.6,
    moves_keys=False,
    settles=False,
)
