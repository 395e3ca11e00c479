"""Which engines can run here, and why an engine cannot."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import warphash

ENGINES = ("cpu", "emulated", "cuda")


@cache
def missing(engine: str) -> str:
    """The reason why ``engine`` cannot run here. Empty if it can."""
    try:
        warphash.HashSet(np.uint32, capacity=1, device=engine).insert(np.zeros(1, np.uint32))
    except (warphash.EngineUnavailable, warphash.DeviceError) as error:
        return str(error)
    return ""


def one_of_each(*names: str) -> list[Any]:
    """Parameters of a test that runs on those of these engines that can run here. Each has the marks of its engine."""
    return [pytest.param(name, marks=marks_of(name)) for name in names if not missing(name)]


def marks_of(engine: str) -> list[Any]:
    """The marks of a case of an engine."""
    return [pytest.mark.cuda] if engine == "cuda" else []
