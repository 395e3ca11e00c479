"""What the file of a table holds beside its pairs: the description, which is written whenever the file is flushed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..arrays.row_names import Names
from ..arrays.row_type import Column, known_names
from ..storage.tickets.table_file import check_describable
from . import archive
from .copies import names_in

__all__ = ["FileCommit"]


@dataclass(frozen=True)
class FileCommit:
    """Has a file hold the table of a store, when it is called. It leads to no table: that one may be gone by then.

    Attributes
    ----------
    store
        Of a design whose slots may lie in a file.
    columns
        Of keys, and of values; None if the table has no values.
    description
        The options of the table, as they were when it was made.
    """

    store: Any
    columns: Sequence[Column | None]
    description: dict[str, Any]

    def __call__(self) -> None:
        """Commit. The caller holds the lock."""
        header = self._header(known_names(self.columns))
        self.store.commit({"header": {**header, "capacity": self.store.capacity}})

    def check(self, names: Sequence[Names | None]) -> None:
        """Raise `DtypeError` if the file cannot describe the table with these names of items of keys, and of values."""
        check_describable({"header": self._header(names)})

    def _header(self, names: Sequence[Names | None]) -> dict[str, Any]:
        types = [archive.type_in_header(column) for column in self.columns if column is not None]
        now = {**self.description, "names": names_in(names)}
        return archive.header_of(now, types, 0)
