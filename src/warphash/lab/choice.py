"""Entries of a catalogue by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ..errors import ParameterError

__all__ = ["chosen_of"]

T = TypeVar("T")


def chosen_of(entries: Mapping[str, T], names: Sequence[str], option: str) -> list[T]:
    """The entries of some names, in the order of the catalogue; all if no name is given.

    Raises
    ------
    ParameterError
        If there is no such entry. ``option`` is the one that has the names.
    """
    if unknown := [name for name in names if name not in entries]:
        raise ParameterError(f"{option} must be one of {', '.join(entries)}, got {unknown[0]!r}")
    return [entry for name, entry in entries.items() if not names or name in names]
