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
    """Parameters of a test that runs on these engines, as far as they can run here; marked."""
    return [pytest.param(name, marks=marks_of(name)) for name in names if not missing(name)]


def marks_of(engine: str) -> list[Any]:
    """The marks of a case of an engine."""
    return [pytest.mark.cuda] if engine == "cuda" else []
