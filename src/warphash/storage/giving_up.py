"""When a table stops to look for slots for its keys, and what the error says."""

from __future__ import annotations

from ..errors import TableFull

__all__ = ["does_not_fit", "not_placed_anew", "slots_to_try", "why_no_slot"]

_MOST_SLOTS_PER_KEY = 256
"""Beyond which keys that still find no slot have another cause than the lack of room."""

_FEWEST_KEYS = 1024
"""A table of fewer keys may have as many slots as one of so many."""


def slots_to_try(wanted: int, slots: int, keys: int, design: str, *, tried: int, attempts: int, vouched: bool) -> int:
    """Slots of the next array in which keys without a slot are tried: ``wanted``, or ``slots`` as now.

    If ``wanted`` are far more than ``keys`` need, more slots cannot help, and other hash constants may. So the table
    gives up only after ``attempts`` sets of constants, however large it is: keys that share their buckets under one
    set, such as keys made for a known seed, do not share these under another.

    Parameters
    ----------
    tried
        Sets of hash constants under which the keys found no slot.
    vouched
        As of `why_no_slot`.

    Raises
    ------
    TableFull
        If more slots cannot help, and ``attempts`` sets of hash constants did not.
    """
    if wanted <= _MOST_SLOTS_PER_KEY * max(keys, _FEWEST_KEYS):
        return wanted
    if tried < attempts:
        return slots
    raise TableFull(
        f"{keys:,} keys found no place in {slots:,} slots of design {design!r}, {why_no_slot(tried, vouched=vouched)}"
    )


def does_not_fit(keys: int, slots: int, design: str, tried: int) -> TableFull:
    """What to raise if a table that may not grow has no slot for so many keys, under ``tried`` sets of constants."""
    return TableFull(
        f"{keys:,} keys do not fit into {slots:,} slots of design {design!r} under {_sets(tried)}; allow "
        "on_full='grow', or give a larger capacity"
    )


def not_placed_anew(keys: int, slots: int, tried: int) -> TableFull:
    """What to raise if a table that may not grow was to move its keys, under ``tried`` sets of hash constants."""
    return TableFull(
        f"{keys:,} keys could not be placed anew in {slots:,} slots under {_sets(tried)}; allow on_full='grow', or "
        "give a larger capacity or another seed"
    )


def why_no_slot(tried: int, *, vouched: bool) -> str:
    """Say why keys found no slot in a table that had room enough, and the mend.

    Parameters
    ----------
    tried
        Sets of hash constants under which the keys found no slot.
    vouched
        The table holds keys of a batch with ``assume_unique``, which nobody has compared.
    """
    if vouched:
        return "though all were tried: do keys of a batch with assume_unique=True repeat? Insert such keys without it"
    return (
        f"under {_sets(tried)}: too many of them share their buckets; give another seed, or design='slab', whose "
        "buckets have no end"
    )


def _sets(tried: int) -> str:
    return f"each of {tried} sets of hash constants" if tried > 1 else "one set of hash constants"
