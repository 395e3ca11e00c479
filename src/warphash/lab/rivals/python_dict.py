"""The rival ``dict`` of Python."""

import numpy as np

from .base import Rival

RIVAL = Rival(
    "dict",
    build=lambda keys, values: dict(zip(keys.tolist(), values.tolist(), strict=True)),
    find=lambda table, keys: np.fromiter((key in table for key in keys.tolist()), bool, len(keys)),
    most_keys=1 << 21,
)
