"""The toy design in the toy family, and its layout: that of buckets, without columns."""

from __future__ import annotations

from dataclasses import replace

from warphash.designs.layout import Buckets

from .plain_toys import DESIGN as PLAIN


class Toys(Buckets):
    """Buckets of another family."""

    family = "toy"

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        return False


DESIGN = replace(PLAIN, layout=Toys())
