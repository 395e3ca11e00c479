"""The rows of a frame in groups, by the names of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ParameterError
from .frames import Frame, named

__all__ = ["FrameGroupBy", "refuse_unnamed"]


def refuse_unnamed(given: Sequence[Any]) -> None:
    """Raise `ParameterError` for answers without a name, such as a mapping that pandas would take."""
    if given:
        raise ParameterError(f"expected answers by their names, as in agg(total=('price', 'sum')), got {given[0]!r}")


class FrameGroupBy:
    """Rows of a frame in groups, one for each distinct key. Made by `group_by`.

    Keys are numbered anew in each call. So several aggregates take less time in one call of `agg`.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> frame = {"shop": np.array([7, 3, 7]), "price": np.array([1.5, 4.0, 2.5])}
    >>> warphash.group_by(frame, "shop").agg(dearest=("price", "max"))
    {'shop': array([7, 3]), 'dearest': array([2.5, 4. ])}
    """

    def __init__(self, frame: Frame, keys: Sequence[int], summarise: Callable[..., Any]) -> None:
        self._frame, self._keys, self._summarise = frame, keys, summarise  # `GroupBy.agg` of the keys

    def agg(self, *unnamed: Any, **asked: Any) -> Any:
        """Summarise columns group by group.

        Parameters
        ----------
        *unnamed
            None is taken: the error says how answers are named.
        **asked
            For each column of the answer: ``(name, operation)``, of a column of the frame, or ``"size"``. Operations
            are those of `GroupBy.agg`. A column may also be given itself, in place of its name.

        Returns
        -------
        frame
            Of the library of the frame, with a row for each group: the keys, and then the answers.

        Raises
        ------
        ParameterError
            If there is no such column, or more than one; if an answer is named as a key; and as `GroupBy.agg`.
        DtypeError, DeviceError, ShapeError, MemoryError
            As `GroupBy.agg`.

        Notes
        -----
        O(n) for n rows; as of `GroupBy.agg`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> frame = {"shop": np.array([7, 3, 7]), "price": np.array([1.5, 4.0, 2.5])}
        >>> warphash.group_by(frame, "shop").agg(total=("price", "sum"))
        {'shop': array([7, 3]), 'total': array([4., 4.])}
        """
        refuse_unnamed(unnamed)
        names = [self._frame.names[place] for place in self._keys]
        for name in asked:
            if name in names:
                raise ParameterError(f"an answer and a key would both be named {name!r}: name the answer otherwise")
        columns: dict[int, Any] = {}  # each once, however many answers it has
        made = self._summarise(**{name: self._given(name, given, columns) for name, given in asked.items()})
        keys = made.keys if isinstance(made.keys, tuple) else (made.keys,)
        return self._frame.made({**dict(zip(names, keys, strict=True)), **made.columns})

    def size(self) -> Any:
        """How many rows each group has.

        Returns
        -------
        frame
            The keys, and a column ``"size"``, int64.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> frame = {"shop": np.array([7, 3, 7]), "price": np.array([1.5, 4.0, 2.5])}
        >>> warphash.group_by(frame, "shop").size()
        {'shop': array([7, 3]), 'size': array([2, 1])}
        """
        return self.agg(size="size")

    def _given(self, name: str, given: Any, columns: dict[int, Any]) -> Any:
        """What `GroupBy.agg` takes."""
        if not (isinstance(given, tuple) and len(given) == 2):
            return given
        column, operation = given
        if not isinstance(column, str | int | tuple):
            return given
        (place,) = named(self._frame.names, column, f"{name}=")
        return columns.setdefault(place, self._frame.column(place)), operation
