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
    CaptureError,
    CollectiveError,
    CorruptFile,
    DeviceError,
    DtypeError,
    EngineUnavailable,
    NestedCall,
    ParameterError,
    PathError,
    PeerLost,
    ProcessError,
    ShapeError,
    TableFull,
    UnsupportedVerb,
    WarphashError,
)
from .settings import get_num_threads, set_num_threads
from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import relational as relational
    from . import stream as stream
    from .relational.distinct import (
        UniqueAll,
        UniqueCounts,
        UniqueInverse,
        unique,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    from .relational.drop_duplicates import drop_duplicates
    from .relational.factors import duplicated, factorize, nunique, value_counts
    from .relational.frame_groups import FrameGroupBy
    from .relational.group_by import Aggregates, GroupBy, GroupRows, group_by
    from .relational.index import Index
    from .relational.join import join
    from .relational.matches import JoinIndices
    from .relational.membership import isin
    from .relational.merge import merge
    from .relational.set_functions import intersect1d, setdiff1d, setxor1d, union1d
    from .runtime.abi import Operation
    from .runtime.memory_resource import set_memory_resource
    from .table.maps import HashMap, HashSet
    from .table.multimap import MultiMap
    from .table.pickling import unpickle_to
    from .table.slab_allocator import SlabAllocator
    from .table.stats import Stats

__all__ = [
    "Aggregates",
    "CaptureError",
    "CollectiveError",
    "CorruptFile",
    "DeviceError",
    "DtypeError",
    "EngineUnavailable",
    "FrameGroupBy",
    "GroupBy",
    "GroupRows",
    "HashMap",
    "HashSet",
    "Index",
    "JoinIndices",
    "MultiMap",
    "NestedCall",
    "Operation",
    "ParameterError",
    "PathError",
    "PeerLost",
    "ProcessError",
    "ShapeError",
    "SlabAllocator",
    "Stats",
    "TableFull",
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "UnsupportedVerb",
    "WarphashError",
    "drop_duplicates",
    "duplicated",
    "factorize",
    "get_num_threads",
    "group_by",
    "intersect1d",
    "isin",
    "join",
    "merge",
    "nunique",
    "set_memory_resource",
    "set_num_threads",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unpickle_to",
    "value_counts",
]


_HOMES = {
    "Aggregates": "relational.group_by",
    "FrameGroupBy": "relational.frame_groups",
    "GroupBy": "relational.group_by",
    "GroupRows": "relational.group_by",
    "HashMap": "table.maps",
    "HashSet": "table.maps",
    "Index": "relational.index",
    "JoinIndices": "relational.matches",
    "MultiMap": "table.multimap",
    "Operation": "runtime.abi",
    "SlabAllocator": "table.slab_allocator",
    "Stats": "table.stats",
    "UniqueAll": "relational.distinct",
    "UniqueCounts": "relational.distinct",
    "UniqueInverse": "relational.distinct",
    "drop_duplicates": "relational.drop_duplicates",
    "duplicated": "relational.factors",
    "factorize": "relational.factors",
    "group_by": "relational.group_by",
    "intersect1d": "relational.set_functions",
    "isin": "relational.membership",
    "join": "relational.join",
    "merge": "relational.merge",
    "nunique": "relational.factors",
    "set_memory_resource": "runtime.memory_resource",
    "setdiff1d": "relational.set_functions",
    "setxor1d": "relational.set_functions",
    "stream": "stream",
    "union1d": "relational.set_functions",
    "unique": "relational.distinct",
    "unique_all": "relational.distinct",
    "unique_counts": "relational.distinct",
    "unique_inverse": "relational.distinct",
    "unique_values": "relational.distinct",
    "unpickle_to": "table.pickling",
    "value_counts": "relational.factors",
}


if not TYPE_CHECKING:  # a checker would take any name for one of the package

    def __getattr__(name: str) -> Any:
        # The tables come when they are first asked for, and NumPy with them, which takes ten times as long as all of
        # ours.
        module = import_module("." + _HOMES.get(name, "relational"), __name__)
        if name in _HOMES and name != _HOMES[name]:
            globals()[name] = getattr(module, name)
        if name in globals():  # a room, or one that was brought along, too
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
