"""Verbs about distinct keys: arrays, columns and frames in, those of the same library out.

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
from .drop_duplicates import drop_duplicates
from .factors import duplicated, factorize, nunique, value_counts
from .frame_groups import FrameGroupBy
from .group_by import Aggregates, GroupBy, GroupRows, group_by
from .index import Index
from .join import join
from .matches import JoinIndices
from .membership import isin
from .merge import merge
from .set_functions import intersect1d, setdiff1d, setxor1d, union1d

__all__ = [
    "Aggregates",
    "FrameGroupBy",
    "GroupBy",
    "GroupRows",
    "Index",
    "JoinIndices",
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "drop_duplicates",
    "duplicated",
    "factorize",
    "group_by",
    "intersect1d",
    "isin",
    "join",
    "merge",
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
