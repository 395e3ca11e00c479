"""DyHash, which grows and shrinks one subtable at a time: see ``kernels/designs/dynamic_cuckoo.cuh``."""

from collections.abc import Mapping
from typing import Any

from ..errors import ParameterError
from .base import ALL_VERBS, Design, Parameter
from .layout import Subtables

COORDINATIONS = ("lanes", "voter", "spin")
"""How the lanes of a warp insert (`storage/subtables/coordination.py`). In the order of ``enum Coordination``."""

ROUTINGS = ("even", "equal_loads", "theorem")
"""Which subtable a key goes to first (`storage.policies.subtable_shares`)."""


def bounds(parameters: Mapping[str, Any]) -> tuple[float, float]:
    """The load factors between which the table stays.

    Raises
    ------
    ParameterError
        If one subtable more could leave the table with less than ``alpha`` (section 5.1).
    """
    alpha, beta, subtables = parameters["alpha"], parameters["beta"], parameters["subtables"]
    if alpha >= beta * subtables / (subtables + 1):
        raise ParameterError(
            f"design 'dynamic_cuckoo': alpha must be less than beta * subtables / (subtables + 1) = "
            f"{beta * subtables / (subtables + 1):.3f}, got {alpha}"
        )
    return alpha, beta


DESIGN = Design(
    name="dynamic_cuckoo",
    aliases=("dyhash",),
    title="DyHash",
    citation="Dynamic Hash Tables on GPUs, sections 4 and 5",
    parameters=(
        Parameter("subtables", 3, "subtables, of which one is resized at a time", bounds=(2, 8), of_paper=True),
        Parameter("alpha", 0.4, "least load factor behind an erase", bounds=(0.0, 0.8)),
        Parameter("beta", 0.9, "greatest load factor behind an insert", bounds=(0.1, 0.97)),
        Parameter(
            "coordination",
            "lanes",
            "an insert on a GPU: each lane puts its own key, or a warp one key at a time, by vote or by spinning",
            COORDINATIONS,
            of_paper=True,
        ),
        Parameter("routing", "even", "which share of the keys goes to each subtable first", ROUTINGS, of_paper=True),
    ),
    fields=lambda p: {"subtables": p["subtables"], "coordination": COORDINATIONS.index(p["coordination"])},
    default_load_factor=lambda p: min(0.8, p["beta"]),
    safe_load_factor=lambda p: 0.97,
    layout=Subtables(line_bytes=128),
    moves_keys=True,
    settles=True,
    fills_first_bucket=lambda _: True,
    capabilities=ALL_VERBS | {"guest_counts"},
    own_bounds=bounds,
)
