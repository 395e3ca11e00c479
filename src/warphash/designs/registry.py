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
    """Names of all designs, without aliases.

    Returns
    -------
    list of str
        In the order of the registry.

    Examples
    --------
    >>> from warphash.designs import registry
    >>> registry.names()[:3]
    ['cuckoo', 'bucketed_cuckoo', 'power_of_two']
    """
    return [design.name for design in _DESIGNS]


def usual_parameters() -> list[str]:
    """Names of the parameters of all designs that not only papers need (`Parameter.of_paper`).

    Returns
    -------
    list of str
        Each once.

    Examples
    --------
    >>> from warphash.designs import registry
    >>> "slots_per_bucket" in registry.usual_parameters()
    True
    """
    return list(dict.fromkeys(p.name for design in _DESIGNS for p in design.parameters if not p.of_paper))


def get(name: str) -> Design:
    """The design of a name.

    Parameters
    ----------
    name
        Name of a design, or an alias.

    Returns
    -------
    Design
        Its names, parameters, citation and capabilities.

    Raises
    ------
    ParameterError
        If there is none.

    Examples
    --------
    >>> from warphash.designs import registry
    >>> registry.get("bcht").name
    'bucketed_cuckoo'
    """
    if name not in _BY_NAME:
        near = did_you_mean(name, (*_BY_NAME, "auto"))
        raise ParameterError(
            f"there is no design {name!r}; there are: {', '.join(names())}, or 'auto'{near and f'; {near}'}"
        )
    return _BY_NAME[name]
