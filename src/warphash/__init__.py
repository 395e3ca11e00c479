"""Hash tables on the GPU, and on the CPU through the same algorithms.

>>> import numpy as np, warphash
>>> m = warphash.HashMap.from_arrays(np.array([7, 8, 9]), np.array([70, 80, 90]), device="cpu")
>>> m[8]
np.int64(80)
"""

from .errors import (
    CorruptFile,
    DeviceError,
    DtypeError,
    EngineUnavailable,
    ParameterError,
    ShapeError,
    TableFull,
    UnsupportedVerb,
    WarphashError,
)
from .table import HashMap, HashSet, Stats

__version__ = "0.1.0"

__all__ = [
    "CorruptFile",
    "DeviceError",
    "DtypeError",
    "EngineUnavailable",
    "HashMap",
    "HashSet",
    "ParameterError",
    "ShapeError",
    "Stats",
    "TableFull",
    "UnsupportedVerb",
    "WarphashError",
]
