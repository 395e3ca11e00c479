"""When a table stops to look for slots for its keys, and what the error says."""

from __future__ import annotations

from ..errors import TableFull

__all__ = ["check_slots", "why_no_slot"]

_MOST_SLOTS_PER_KEY = 256
"""Beyond which a batch that still does not fit has another cause than the lack of room."""

_FEWEST_KEYS = 1024
"""A table of fewer keys may have as many slots as one of so many."""


def check_slots(slots: int, keys: int, design: str, *, vouched: bool) -> None:
    """Raise `TableFull` if more slots cannot help: if ``slots`` are far more than ``keys`` need.

    Parameters
    ----------
    vouched
        As of `why_no_slot`.
    """
    if slots > _MOST_SLOTS_PER_KEY * max(keys, _FEWEST_KEYS):
        raise TableFull(
            f"{keys:,} keys found no place in fewer than {slots:,} slots of design {design!r}, {why_no_slot(vouched)}"
        )


def why_no_slot(vouched: bool) -> str:
    """Say why keys found no slot in a table that had room enough, and the mend.

    Parameters
    ----------
    vouched
        The table holds keys of a batch with ``assume_unique``, which nobody has compared.
    """
    if vouched:
        return "though all were tried: do keys of a batch with assume_unique=True repeat? Insert such keys without it"
    return (
        "under any of the hash constants that were tried: too many of them share their buckets; give another seed, "
        "or design='slab', whose buckets have no end"
    )
