"""The names of the items of a row: of the columns of a frame, of the fields of a struct.

A table matches rows by these names. Names that are the numbers 0 to k - 1 say positions, as the columns of a frame that
pandas makes of an array do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import DtypeError
from ..near_names import did_you_mean
from .adapters.columns import library_name
from .arrow_values import Names
from .library import ArrayView, Library
from .plain_array import python_value

__all__ = ["Names", "RowNames", "check_text", "is_row_of_frame", "named_rows", "names_of", "names_of_one", "with_names"]

_BY_POSITION = "give a NumPy array of the rows, whose items go by their position"


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

    def forget(self) -> None:
        """Know no names."""
        self._known.clear()

    def after(self, given: Names | None) -> Names | None:
        """The names that the table knows when it has learned these."""
        known = self.known
        return given if known is None and given is not None and not _are_positions(given) else known

    def order(
        self, given: Names, what: str, like: str = "the first rows of the table", mend: str = _BY_POSITION
    ) -> list[int] | None:
        """Which of the given items is the first of a row of the table, and so on; None for the order as it is.

        Parameters
        ----------
        what, like, mend
            For the message: what was given, which rows have the known names, and what beside a new name helps.

        Raises
        ------
        DtypeError
            If the table knows other names, or a name differs from itself, as NaN does.
        """
        if any(name != name for name in given):
            raise DtypeError(f"expected names that are equal to themselves, got {_shown(given)}: rename the columns")
        known = tuple(range(len(given))) if _are_positions(given) else self.known
        if known is None or known == given:
            return None
        if set(known) != set(given):
            raise DtypeError(
                f"{what} must have the columns {_shown(known)}, as {like}, got {_shown(given)}: "
                f"{_nearest(known, given)}rename the columns, or {mend}"
            )
        return [given.index(name) for name in known]


def _are_positions(names: Names) -> bool:
    return all(isinstance(name, int) for name in names) and set(names) == set(range(len(names)))


def check_text(names: Names) -> None:
    """Raise `DtypeError` for names that libraries of frames refuse in a result: text that UTF-8 cannot encode."""
    for name in names:
        if isinstance(name, tuple):
            check_text(name)
        elif isinstance(name, str):
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise DtypeError(
                    f"expected names of columns that UTF-8 can encode, got {name!a}, whose character {error.start} is "
                    "half of a pair of surrogates: rename the columns"
                ) from None


def _nearest(known: Names, given: Names) -> str:
    """A question about the first name that is missing, if one of the given ones is near."""
    others = [name for name in given if name not in known]
    near = next((near for name in known if name not in given and (near := did_you_mean(name, others))), "")
    return near and f"{near} If so, "


def _shown(names: Names | None) -> str:
    return ", ".join(map(str, names)) if names else "no names"


def named_rows(given: Any) -> tuple[Any, Names | None]:
    """Rows that are objects of Python, without the names of their items; and these names.

    Parameters
    ----------
    given
        A row, or a list of rows. Mappings and named tuples have names, and in a list rows of frames and structs, too.

    Returns
    -------
    rows
        The items of the row, or a list of such rows with their items in the order of the first row. What has no names
        is returned as it is.
    names
        In that order; None without names.

    Raises
    ------
    DtypeError
        If rows of a list have different names, or some rows have none. For a mapping of columns.
    """
    if isinstance(given, ArrayView):
        return given, None
    if isinstance(given, Mapping) or hasattr(given, "_fields"):
        return _items(given), _names_of_row(given)
    if not isinstance(given, list | tuple) or not any(map(_may_have_names, set(map(type, given)))):
        return given, None
    rows = [python_value(row) for row in given]
    all_names = [_names_of_row(row) for row in rows]
    names = all_names[0]
    if not any(all_names):
        return given, None
    parts = []
    for row, own in zip(rows, all_names, strict=True):
        if own is None or names is None or set(own) != set(names):
            other = own if names else next(filter(None, all_names))
            raise DtypeError(
                f"expected rows of the same names in a list, got {_shown(names)} and {_shown(other)}: give a DataFrame "
                "of the rows, or rows without names, whose items go by their position"
            )
        items = _items(row)
        parts.append(items if own == names else [items[own.index(name)] for name in names])
    return parts, names


def is_row_of_frame(given: Any, names: Names) -> bool:
    """Whether an object is a row of a frame of pandas that has columns of these names, in any order."""
    return library_name(given) == "pandas" and getattr(given, "ndim", 0) == 1 and set(given.index) == set(names)


def _may_have_names(kind: type) -> bool:
    """Whether an object of a type may be a row with names: a mapping, a named tuple, of PyArrow or of pandas."""
    return issubclass(kind, Mapping) or any(hasattr(kind, name) for name in ("_fields", "as_py", "iloc"))


def _names_of_row(row: Any) -> Names | None:
    """The names of the items of one row; None if they have none, or their names are their positions."""
    if isinstance(row, Mapping):
        return tuple(row)
    if isinstance(row, tuple):
        return getattr(row, "_fields", None)
    names = tuple(getattr(row, "columns", row.index)) if library_name(row) == "pandas" else ()
    return None if names == tuple(range(len(names))) else names


def _items(row: Any) -> list[Any]:
    """The items of one row with names.

    Raises
    ------
    DtypeError
        If the row is more than one row: columns by their names.
    """
    items = list(row.values()) if isinstance(row, Mapping) else list(row)
    if getattr(row, "ndim", 1) > 1 or any(
        isinstance(item, list | np.ndarray) or hasattr(item, "iloc") for item in items
    ):
        raise DtypeError(f"expected a row of single items, got columns in a {type(row).__name__}: give a DataFrame")
    return items


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
