"""Which engines a test run has, and why not the others."""

from __future__ import annotations

from functools import cache

import numpy as np

import warphash

ENGINES = ("cpu", "emulated", "cuda")


@cache
def missing(engine: str) -> str:
    """Why ``engine`` cannot run here; empty if it can."""
    try:
        warphash.HashSet(np.uint32, capacity=1, device=engine).insert(np.zeros(1, np.uint32))
    except (warphash.EngineUnavailable, warphash.DeviceError) as error:
        return str(error)
    return ""
