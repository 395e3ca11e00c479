"""Which engines can run here, and why an engine cannot."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import warphash
from warphash.runtime.devices import engine_for

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


def narrow(monkeypatch: pytest.MonkeyPatch, device: str, window_bytes: int, lanes: int) -> None:
    """Make a device one whose cache is that small, so that tables of a few keys have several parts."""
    monkeypatch.setattr(engine_for(device), "window_bytes", window_bytes)
    monkeypatch.setattr(engine_for(device), "lanes", lanes)
