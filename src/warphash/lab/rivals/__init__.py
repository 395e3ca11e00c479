"""Rivals: adapters to the libraries that people use today. Each builds a table of keys, then looks keys up."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from .base import Rival

__all__ = ["Rival", "available"]

_MODULES = ("python_dict", "atomic_dict", "pandas_index", "arrow_index_in", "polars_is_in", "polars_join")


def available() -> Iterator[Rival]:
    """The rivals whose library is installed."""
    for name in _MODULES:
        try:
            module = importlib.import_module(f"{__name__}.{name}")
        except ImportError:
            continue
        yield module.RIVAL
