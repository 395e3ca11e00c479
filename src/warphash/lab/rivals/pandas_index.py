"""The rival ``pandas.Index.get_indexer``."""

from typing import Any

import numpy as np
import pandas as pd

from .base import Array, Rival


def _build(keys: Array, values: Array) -> Any:
    index = pd.Index(keys)
    index.get_indexer(keys[:1])  # pandas builds its table at the first lookup
    return index


RIVAL = Rival("pandas get_indexer", _build, lambda index, keys: np.asarray(index.get_indexer(keys) >= 0))
