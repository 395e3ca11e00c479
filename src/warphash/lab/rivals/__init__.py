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
    yield from filter(None, map(_rival, _LIBRARIES))


def missing() -> list[str]:
    """The libraries that are not installed, so that their rivals are not measured."""
    return list(dict.fromkeys(library for name, library in _LIBRARIES.items() if _rival(name) is None))


def _rival(name: str) -> Rival | None:
    """The rival of a module; None if the module's library is not installed."""
    try:
        rival: Rival = importlib.import_module(f"{__name__}.{name}").RIVAL
    except ImportError:
        return None
    return rival
