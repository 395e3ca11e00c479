"""Verbs about distinct keys: arrays and columns in, arrays and columns of the same library out.

>>> import numpy as np
>>> from warphash import relational
>>> relational.unique(np.array([7, 3, 7, 5]))
array([7, 3, 5])
"""

from __future__ import annotations

from .distinct import (
    UniqueAll,
    UniqueCounts,
    UniqueInverse,
    unique,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from .factors import duplicated, factorize, nunique, value_counts
from .group_by import Aggregates, GroupBy, GroupRows, group_by
from .index import Index
from .join import join
from .matches import JoinIndices
from .membership import isin
from .set_functions import intersect1d, setdiff1d, setxor1d, union1d

__all__ = [
    "Aggregates",
    "GroupBy",
    "GroupRows",
    "Index",
    "JoinIndices",
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "duplicated",
    "factorize",
    "group_by",
    "intersect1d",
    "isin",
    "join",
    "nunique",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "value_counts",
]
