"""Crosses tests over engines, and over the conformance cases of each engine."""

from __future__ import annotations

import gc
import inspect
import signal
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from support.cases import cases, mixed_cases, multi_cases
from support.engines import ENGINES, marks_of, missing

settings.register_profile("warphash", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("warphash")


CASES = {"case": cases, "mixed_case": mixed_cases, "multi_case": multi_cases}
"""What the arguments of a test that are called so are crossed with."""


def pytest_report_header() -> list[str]:
    """Which engines are left out, and why."""
    return [f"no cases for {engine}: {reason}" for engine in ENGINES if (reason := missing(engine))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in CASES.keys() & set(metafunc.fixturenames):
        parameters = [
            pytest.param(case, id=str(case), marks=marks_of(engine) + [pytest.mark.slow] * case.rare)
            for engine in ENGINES
            if not missing(engine)
            for case in CASES[name](engine)
        ]
        metafunc.parametrize(name, parameters)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what a test is not `support.cases.only` of."""
    items[:] = [item for item in items if all(_is_wanted(item, *mark.args) for mark in item.iter_markers("only"))]


def _is_wanted(item: pytest.Item, wanted: Callable[..., bool]) -> bool:
    given = item.callspec.params
    return wanted(*(given[name] for name in inspect.signature(wanted).parameters))


def pytest_collection_finish() -> None:
    """Keep the thousands of cases out of the garbage collector's walks."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20211)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's own handler of Ctrl-C. A process that a script starts in the background ignores the signal instead."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
