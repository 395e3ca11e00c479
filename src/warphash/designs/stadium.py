"""Stadium hashing, a ticket for each slot: see ``kernels/designs/stadium.cuh``."""

from .base import Design, Parameter

FUNCTIONS = ("rounds", "family")
"""In the order of ``Table::of_family``."""

DESIGN = Design(
    name="stadium",
    aliases=("stash",),
    title="Stadium hashing",
    citation="Stadium Hashing: Scalable and Flexible Hashing on GPUs, section III",
    parameters=(
        Parameter("ticket_bits", 8, "bits of a ticket: one tells whether the slot is free", choices=(1, 2, 4, 8)),
        Parameter("functions", "rounds", "hash functions: the paper's, or those of the family `hash`", FUNCTIONS),
    ),
    fields=lambda p: {
        "hashes": 1,
        "ticket_shift": p["ticket_bits"].bit_length() - 1,
        "of_family": FUNCTIONS.index(p["functions"]),
    },
    default_load_factor=lambda p: 0.8,
    safe_load_factor=lambda p: 0.95,  # it holds more, and is full at 1; but an absent key takes 1 / (1 - load) tickets
    moves_keys=False,
    settles=True,
    has_tickets=True,
)
