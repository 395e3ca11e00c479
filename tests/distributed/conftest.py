from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from .ranks import Ranks, new_ranks

WORLD = 3


@pytest.fixture(scope="session")
def ranks() -> Iterator[Ranks]:
    """Three ranks that live as long as the tests. They outlive no lost rank: see `new_ranks`."""
    pytest.importorskip("torch")
    importlib.import_module("warphash.distributed")  # which the ranks alone would do
    with new_ranks(WORLD) as made:
        yield made
