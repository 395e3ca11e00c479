"""A small table, and that it is as it was."""

from __future__ import annotations

import numpy as np

from support.model import Model
from warphash import HashMap

__all__ = ["KEYS", "VALUES", "N", "unchanged"]

N = 30
KEYS = np.arange(N, dtype=np.uint32) * 7
VALUES = np.arange(N, dtype=np.uint32)


def unchanged(table: HashMap) -> None:
    """The table holds `KEYS` and `VALUES` still, and nothing else."""
    model = Model()
    model.pairs = {key.tobytes(): value.tobytes() for key, value in zip(KEYS, VALUES, strict=True)}
    model.agrees(table, KEYS)
