"""The rival ``cereggii.AtomicDict``, a lock-free table of Python objects that several threads may change."""

import numpy as np
from cereggii import AtomicDict

from .base import Array, Rival


def _build(keys: Array, values: Array) -> AtomicDict:
    table = AtomicDict({}, min_size=2 * len(keys))
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        table[key] = value
    return table


RIVAL = Rival(
    "cereggii AtomicDict",
    build=_build,
    find=lambda table, keys: np.fromiter((table.get(key) is not None for key in keys.tolist()), bool, len(keys)),
    most_keys=1 << 22,
)
