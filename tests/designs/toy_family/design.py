"""A design of the toy family, and its layout: that of buckets, without columns."""

from __future__ import annotations

from warphash.designs.base import Design, Parameter
from warphash.designs.layout import Buckets


class Toys(Buckets):
    """Buckets of another family."""

    family = "toy"

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        return False


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
    layout=Toys(),
)
