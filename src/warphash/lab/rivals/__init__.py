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
    "boost_flat_map": "Boost 1.81 (libboost1.81-dev)",
    "absl_flat_hash_map": "Abseil (libabsl-dev)",
    "google_dense_hash_map": "Sparsehash (libsparsehash-dev)",
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
