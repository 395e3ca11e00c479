"""The designs, one line each: the stem of the design's file here and of its header in ``kernels/designs``."""

from __future__ import annotations

from importlib import import_module

from ..errors import ParameterError
from ..near_names import did_you_mean
from .base import Design

__all__ = ["get", "names", "usual_parameters"]

_STEMS = (
    "cuckoo",
    "bucketed_cuckoo",
    "power_of_two",
    "iceberg",
    "slab",
    "lock_free_chaining",
    "linear_probing",
    "megakv",
    "dynamic_cuckoo",
    "stadium",
    "two_level_cuckoo",
    "quotient_cuckoo",
    "tiered",
)

_DESIGNS: tuple[Design, ...] = tuple(import_module(f".{stem}", __package__).DESIGN for stem in _STEMS)

_BY_NAME = {name: design for design in _DESIGNS for name in (design.name, *design.aliases)}


def names() -> list[str]:
    """Names of all designs, without aliases."""
    return [design.name for design in _DESIGNS]


def usual_parameters() -> list[str]:
    """Names of the parameters of all designs that not only papers need (`Parameter.of_paper`)."""
    return list(dict.fromkeys(p.name for design in _DESIGNS for p in design.parameters if not p.of_paper))


def get(name: str) -> Design:
    """Return the design called ``name``, which may be an alias.

    Raises
    ------
    ParameterError
        If there is none.
    """
    if name not in _BY_NAME:
        near = did_you_mean(name, (*_BY_NAME, "auto"))
        raise ParameterError(
            f"there is no design {name!r}; there are: {', '.join(names())}, or 'auto'{near and f'; {near}'}"
        )
    return _BY_NAME[name]
