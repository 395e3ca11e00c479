"""Keys that a caller gave: one array, or a tuple of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..relational.composites import RowElements, row_elements_of
from .wire import Array, check_rows, seen

__all__ = ["KeyColumns", "key_columns"]


class KeyColumns(NamedTuple):
    """Key columns of one length, which were given as a tuple or as one array."""

    columns: list[Array]
    is_tuple: bool

    def whole(self, columns: Sequence[Array]) -> Any:
        """Such columns in the form that was given."""
        return tuple(columns) if self.is_tuple else columns[0]

    @property
    def given(self) -> Any:
        """The keys."""
        return self.whole(self.columns)


def key_columns(given: Any) -> KeyColumns:
    """Keys as a local verb takes them: the items of an array of any shape, or the rows of a tuple of columns."""
    if isinstance(given, tuple) and isinstance(row_elements_of(given), RowElements):
        columns = [seen(column) for column in given]
        check_rows(columns, "columns")
        return KeyColumns(columns, True)
    return KeyColumns([seen(given).reshape(-1)], False)
