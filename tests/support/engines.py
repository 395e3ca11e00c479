"""Which engines a test run has, and why not the others."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

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


def one_of_each(*names: str) -> list[Any]:
    """Parameters of a test that runs on these engines: marked, and skipped with the reason where one cannot run."""
    return [
        pytest.param(
            name,
            marks=[
                pytest.mark.skipif(bool(missing(name)), reason=missing(name)),
                *([pytest.mark.cuda] if name == "cuda" else []),
            ],
        )
        for name in names
    ]
