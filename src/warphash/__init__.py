"""Hash tables on the GPU, and on the CPU through the same algorithms.

>>> import numpy as np, warphash
>>> m = warphash.HashMap.from_arrays(np.array([7, 8, 9]), np.array([70, 80, 90]), device="cpu")
>>> m[8]
np.int64(80)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import (
    CorruptFile,
    DeviceError,
    DtypeError,
    EngineUnavailable,
    ParameterError,
    PathError,
    ShapeError,
    TableFull,
    UnsupportedVerb,
    WarphashError,
)

if TYPE_CHECKING:
    from .multimap import MultiMap
    from .pickling import unpickle_to
    from .runtime.abi import Operation
    from .slab_allocator import SlabAllocator
    from .stats import Stats
    from .table import HashMap, HashSet

__version__ = "0.1.0"

__all__ = [
    "CorruptFile",
    "DeviceError",
    "DtypeError",
    "EngineUnavailable",
    "HashMap",
    "HashSet",
    "MultiMap",
    "Operation",
    "ParameterError",
    "PathError",
    "ShapeError",
    "SlabAllocator",
    "Stats",
    "TableFull",
    "UnsupportedVerb",
    "WarphashError",
    "unpickle_to",
]


_HOMES = {
    "HashMap": "table",
    "HashSet": "table",
    "MultiMap": "multimap",
    "Operation": "runtime.abi",
    "SlabAllocator": "slab_allocator",
    "Stats": "stats",
    "unpickle_to": "pickling",
}


def __getattr__(name: str) -> Any:
    # The tables come when they are first asked for, and NumPy with them, which takes ten times as long as all of ours.
    module = import_module("." + _HOMES.get(name, "table"), __name__)
    if name in _HOMES:
        globals()[name] = getattr(module, name)
    if name in globals():  # a room that the tables brought along, too
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
