"""The inside of a table, for tests of what it is made of."""

from __future__ import annotations

from typing import Any

__all__ = ["parts_of", "storage_of"]


def parts_of(table: Any) -> Any:
    """The parts of a table (`warphash.table.parts.Parts`)."""
    return table._parts


def storage_of(table: Any) -> Any:
    """The present storage of a table."""
    return table._parts.guarded.storage
