"""Rivals: adapters to the libraries that people use today. Each builds a table of keys, then looks keys up."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from .base import Rival

__all__ = ["Rival", "available", "missing"]

_LIBRARIES = {
    "python_dict": "Python",
    "numpy_search": "NumPy",
    "numpy_isin": "NumPy",
    "atomic_dict": "cereggii",
    "pandas_index": "pandas",
    "arrow_index_in": "pyarrow",
    "polars_is_in": "polars",
    "polars_join": "polars",
    "duckdb_in": "duckdb",
}
"""The modules, and the library that each needs."""


def available() -> Iterator[Rival]:
    """The rivals whose library is installed."""
    for name in _LIBRARIES:
        try:
            module = importlib.import_module(f"{__name__}.{name}")
        except ImportError:
            continue
        yield module.RIVAL


def missing() -> list[str]:
    """The libraries that are not installed, so that their rivals are not measured."""
    found: dict[str, None] = {}
    for name, library in _LIBRARIES.items():
        try:
            importlib.import_module(f"{__name__}.{name}")
        except ImportError:
            found[library] = None
    return list(found)
