"""Crosses tests over engines, and over the conformance cases of each engine; `support.daily` says what runs daily."""

from __future__ import annotations

import gc
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from support.cases import cases, list_cases, mixed_cases, multi_cases
from support.daily import Notes, mark_slow, share_of
from support.engines import ENGINES, marks_of, missing
from support.imported import Imported
from warphash.settings import KEPT_VARIABLE, kept_fraction
from warphash.storage.quotient import route

settings.register_profile("warphash", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("warphash")


CASES = {"case": cases, "mixed_case": mixed_cases, "multi_case": multi_cases, "list_case": list_cases}
"""What the arguments of a test that are called so are crossed with."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", default="1/1", metavar="K/N", help="run every N-th test, from the K-th on")
    parser.addoption("--imported", metavar="FILE", help="add the modules of the package that the run imports to a file")
    parser.addoption("--all-imported", metavar="FILE", help="fail if a module of the package is not in that file")
    parser.addoption("--site", metavar="FOLDER", help="try the site of the documents that was built there")
    parser.addoption("--pictures", metavar="FOLDER", help="write pictures of its pages there")
    parser.addoption("--note-slow", type=float, metavar="SECONDS", help="list the tests that take longer as slow")


def pytest_configure(config: pytest.Config) -> None:
    for sign in ("CI", "BUILD_NUMBER"):  # with them, pytest explains to the end how two lists differ: for ten minutes
        os.environ.pop(sign, None)
    limit_s = config.getoption("--note-slow")
    if limit_s is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Notes(limit_s))
    if file := config.getoption("--imported"):
        config.pluginmanager.register(Imported(Path(file)))
    if hasattr(config, "workerinput"):  # all workers keep some memory of one GPU
        workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        os.environ[KEPT_VARIABLE] = str(kept_fraction() / workers)


def pytest_internalerror(excrepr: object) -> None:
    _internal_errors.append(str(excrepr))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Print the first internal error once more: who reads only the end of the output sees the last one otherwise."""
    if _internal_errors and not hasattr(config, "workerinput"):
        print(f"\nthe first internal error of {len(_internal_errors)}:\n{_internal_errors[0]}", file=sys.stderr)


_internal_errors: list[str] = []


def pytest_report_header() -> list[str]:
    """Which engines are left out, and why."""
    return [f"no cases for {engine}: {reason}" for engine in ENGINES if (reason := missing(engine))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_daily = metafunc.config.getoption("markexpr") == "not slow"  # then half of all items need not be collected
    # of a test of another library
    own = {str(mark.args[0]) for mark in metafunc.definition.iter_markers("parametrize")}
    for name in (CASES.keys() & set(metafunc.fixturenames)) - own:
        parameters = [
            pytest.param(case, id=str(case), marks=marks_of(engine) + [pytest.mark.slow] * case.rare)
            for engine in ENGINES
            if not missing(engine)
            for case in CASES[name](engine)
            if not (is_daily and case.rare)
        ]
        metafunc.parametrize(name, parameters)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Leave out what a test is not `support.cases.only` of, what ``-m`` does not select, and the other shares."""
    items[:] = [item for item in items if all(_is_wanted(item, *mark.args) for mark in item.iter_markers("only"))]
    try:
        mark_slow(items, are_all=config.args == config.getini("testpaths"))
    except pytest.UsageError as error:
        if hasattr(config, "workerinput"):  # pytest-xdist says only that the worker has ended
            with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
                print(error, file=sys.stderr)
        raise
    yield
    items[:] = share_of(items, config.getoption("--share"))


def _is_wanted(item: pytest.Item, wanted: Callable[..., bool]) -> bool:
    given = item.callspec.params
    return wanted(*(given[name] for name in inspect.signature(wanted).parameters))


def pytest_collection_finish() -> None:
    """Keep the thousands of cases out of the garbage collector's walks."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def no_first_updates() -> Iterator[None]:
    """Let no test depend on what the cache of kernels has: `storage/test_quotient_first.py` is about that."""
    with mock.patch.object(route, "is_for_first", lambda *given, **named: False):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20211)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's own handler of Ctrl-C. A process that a script starts in the background ignores the signal instead."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
