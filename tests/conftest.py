"""Crosses tests over engines, and over the conformance cases of each engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from support.cases import Case, cases, list_cases, multi_cases
from support.engines import ENGINES, missing

settings.register_profile("warphash", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("warphash")


CASES = {"case": cases, "list_case": list_cases, "multi_case": multi_cases}
"""What the arguments of a test that are called so are crossed with."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in CASES.keys() & set(metafunc.fixturenames):
        parameters = [
            pytest.param(case, id=str(case), marks=[pytest.mark.cuda] if engine == "cuda" else [])
            for engine in ENGINES
            for case in CASES[name](engine)
        ]
        metafunc.parametrize(name, parameters)


@pytest.fixture(autouse=True)
def skip_without_engine(request: pytest.FixtureRequest) -> None:
    """Skips a case whose engine cannot run here, with the engine's own reason."""
    for name in CASES.keys() & set(request.fixturenames):
        case: Case = request.getfixturevalue(name)
        if reason := missing(case.engine):
            pytest.skip(reason)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20211)
