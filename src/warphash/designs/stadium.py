"""Stadium hashing, a ticket for each slot: see ``kernels/designs/stadium.cuh``."""

from .base import ALL_VERBS, Design, Parameter
from .layout import Tickets

IN_FLIGHT = ("ignore", "wait")
"""In the order of ``TicketTable::waits``."""

FUNCTIONS = ("rounds", "family")
"""In the order of ``TicketTable::of_family``."""

ACCESS = ("auto", "sweep", "ordered", "direct")
"""How a batch gets at slots in the memory of a GPU's host (`storage/tickets/sweep.py`)."""

LANES = ("hybrid", "stash", "clstash")
"""How the lanes of a GPU share out the elements of a batch (`storage/tickets/lanes.py`)."""

DESIGN = Design(
    name="stadium",
    aliases=("stash",),
    title="Stadium hashing",
    citation="Stadium Hashing: Scalable and Flexible Hashing on GPUs, section III",
    parameters=(
        Parameter("ticket_bits", 8, "bits of a ticket: one tells whether the slot is free", choices=(1, 2, 4, 8)),
        Parameter(
            "functions",
            "rounds",
            "hash functions: the paper's, or those of the family `hash`",
            FUNCTIONS,
            of_paper=True,
        ),
        Parameter(
            "lanes",
            "hybrid",
            "a GPU's: one an element, collaborating, or by the load factor",
            choices=LANES,
            of_paper=True,
        ),
        Parameter(
            "access",
            "auto",
            "to slots in host memory: in copied windows, in order, one by one, or the fastest",
            choices=ACCESS,
            of_paper=True,
        ),
        Parameter(
            "in_flight",
            "ignore",
            "what a find of a mixed batch does about a key that is on its way",
            IN_FLIGHT,
            of_paper=True,
        ),
    ),
    fields=lambda p: {
        "hashes": 1,
        "ticket_shift": p["ticket_bits"].bit_length() - 1,
        "of_family": FUNCTIONS.index(p["functions"]),
        "waits": IN_FLIGHT.index(p["in_flight"]),
    },
    default_load_factor=lambda p: 0.8,
    safe_load_factor=lambda p: 0.95,  # it holds more, and is full at 1; but an absent key takes 1 / (1 - load) tickets
    layout=Tickets(),
    moves_keys=False,
    settles=True,
    searches_until_unused=True,
    capabilities=ALL_VERBS | {"execute"},
    memories=("device", "host", "file"),
)
