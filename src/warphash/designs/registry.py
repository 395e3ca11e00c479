"""The designs, one line each."""

from __future__ import annotations

from ..errors import ParameterError
from . import (
    bucketed_cuckoo,
    cuckoo,
    dynamic_cuckoo,
    iceberg,
    linear_probing,
    lock_free_chaining,
    megakv,
    power_of_two,
    slab,
)
from .base import Design

__all__ = ["get", "names"]

_DESIGNS: tuple[Design, ...] = (
    cuckoo.DESIGN,
    bucketed_cuckoo.DESIGN,
    power_of_two.DESIGN,
    iceberg.DESIGN,
    slab.DESIGN,
    lock_free_chaining.DESIGN,
    linear_probing.DESIGN,
    megakv.DESIGN,
    dynamic_cuckoo.DESIGN,
)

_BY_NAME = {name: design for design in _DESIGNS for name in (design.name, *design.aliases)}


def names() -> list[str]:
    """Names of all designs, without aliases."""
    return [design.name for design in _DESIGNS]


def get(name: str) -> Design:
    """Return the design called ``name``, which may be an alias.

    Raises
    ------
    ParameterError
        If there is none.
    """
    if name not in _BY_NAME:
        raise ParameterError(f"there is no design {name!r}; there are: {', '.join(names())}, or 'auto'")
    return _BY_NAME[name]
