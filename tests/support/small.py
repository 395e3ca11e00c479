"""A small table, and a check that it has not changed."""

from __future__ import annotations

import numpy as np

from support.model import Model
from warphash import HashMap

__all__ = ["KEYS", "VALUES", "N", "unchanged"]

N = 30
KEYS = np.arange(N, dtype=np.uint32) * 7
VALUES = np.arange(N, dtype=np.uint32)


def unchanged(table: HashMap) -> None:
    """Check that the table holds exactly `KEYS` and `VALUES`."""
    model = Model()
    model.pairs = {key.tobytes(): value.tobytes() for key, value in zip(KEYS, VALUES, strict=True)}
    model.agrees(table, KEYS)
