"""The names of the items of a row: of the columns of a frame, of the fields of a struct.

A table matches rows by these names. Names that are the numbers 0 to k - 1 say positions, as the columns of a frame that
pandas makes of an array do.
"""

from __future__ import annotations

from typing import Any

from ..errors import DtypeError
from .adapters.columns import library_name
from .arrow_values import Names
from .library import ArrayView, Library

__all__ = ["Names", "RowNames", "names_of", "names_of_one", "with_names"]


class RowNames:
    """The names that a table knows of the items of its rows: those of the first rows with names that it keeps.

    Parameters
    ----------
    known
        None while the table knows none.
    """

    __slots__ = ("_known",)

    def __init__(self, known: Names | None = None) -> None:
        self._known: dict[str, Names] = {} if known is None else {"names": known}

    @property
    def known(self) -> Names | None:
        """The names in the order of the items; None if the table knows none."""
        return self._known.get("names")

    def learn(self, given: Names | None) -> None:
        """Take names for those of the table, unless it knows some, or the given ones are positions."""
        if given is not None and not _are_positions(given):
            self._known.setdefault("names", given)  # one step, as several threads may come

    def order(self, given: Names, what: str) -> list[int] | None:
        """Which of the given items is the first of a row of the table, and so on; None for the order as it is.

        Raises
        ------
        DtypeError
            If the table knows other names.
        """
        known = tuple(range(len(given))) if _are_positions(given) else self.known
        if known is None or known == given:
            return None
        if set(known) != set(given):
            raise DtypeError(
                f"{what} must have the columns {_shown(known)}, as the first rows of the table, got {_shown(given)}: "
                "rename the columns, or give a NumPy array of the rows, whose items go by their position"
            )
        return [given.index(name) for name in known]


def _are_positions(names: Names) -> bool:
    return all(isinstance(name, int) for name in names) and set(names) == set(range(len(names)))


def _shown(names: Names) -> str:
    return ", ".join(map(str, names))


class _NamedRows:
    """The adapter of a library for rows whose items have names.

    Parameters
    ----------
    library
        The adapter.
    names
        Of the items of a row, in their order.
    """

    def __init__(self, library: Library, names: Names) -> None:
        self.kind, self.names, self._library = library.kind, names, library
        self.of_rows: Library = getattr(library, "of_rows", library)
        self.of_one_row: Library = getattr(library, "of_one_row", self.of_rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)


def with_names(seen: ArrayView, names: Names | None) -> ArrayView:
    """A view whose rows have items of these names; without names, if these are None."""
    library: Any = seen.library
    plain = library._library if isinstance(library, _NamedRows) else library
    return seen._replace(library=plain if names is None else _NamedRows(plain, names))


def names_of(seen: ArrayView) -> Names | None:
    """The names of the items of a row; None if they have none."""
    library: Any = seen.library
    return library.names if isinstance(library, _NamedRows) else None


def names_of_one(seen: ArrayView) -> Names | None:
    """The names of the items of a view that is a single row: of a Series of pandas, its index."""
    if library_name(seen.owner) == "pandas" and hasattr(seen.owner, "index"):
        return tuple(seen.owner.index)
    return names_of(seen)
