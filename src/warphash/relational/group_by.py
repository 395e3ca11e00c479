"""`group_by`: what is said of the values of each key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from ..arrays.decimals import decimal_scale
from ..errors import ParameterError
from .aggregates import SIZE, Answer, Groups, aggregate_named, size_of
from .composites import elements_on_gpu, key_elements_of, rows_at
from .decimal_sums import as_objects
from .elements import Elements
from .frame_groups import FrameGroupBy, refuse_unnamed
from .frames import frame_of, named
from .items import Missing
from .summaries import Wanted
from .values import AnyValues, values_of

__all__ = ["Aggregates", "GroupBy", "GroupRows", "Summaries", "group_by"]

_MISSING: dict[str, Missing] = {"key": "one", "drop": "dropped"}
_ORDERS = ("first", "sorted", "any")
_Nulls = Literal["key", "drop"]
_Order = Literal["first", "sorted", "any"]


class Summaries(ABC):
    """Groups of which one answer at a time may be asked for."""

    @abstractmethod
    def agg(self, **asked: Any) -> Aggregates:
        """Summarise columns group by group: ``name=(column, operation)`` for each answer."""

    def size(self) -> Any:
        """How many rows each group has, as `agg`.

        Returns
        -------
        array[groups]
            int64, in the order of the groups.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> groups = warphash.group_by(np.array([7, 3, 7]))
        >>> groups.size()
        array([2, 1])
        """
        return self.agg(size="size")["size"]

    def count(self, column: Any) -> Any:
        """How many values of a column each group has, as `agg`.

        Parameters
        ----------
        column
            As of `agg`.

        Returns
        -------
        array[groups]
            int64, in the order of the groups. Nulls are not counted.

        Raises
        ------
        DtypeError, DeviceError, ShapeError, MemoryError
            As `agg`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> warphash.group_by(np.array([7, 3, 7])).count(np.array([1.5, 4.0, 2.5]))
        array([2, 1])
        """
        return self.agg(count=(column, "count"))["count"]

    def sum(self, column: Any) -> Any:
        """The sum of a column's values in each group, as `agg`.

        Parameters
        ----------
        column
            As of `agg`.

        Returns
        -------
        array[groups]
            Of integers 64 bits wide, of floating-point numbers float64.

        Raises
        ------
        DtypeError, DeviceError, ShapeError, MemoryError
            As `agg`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> warphash.group_by(np.array([7, 3, 7])).sum(np.array([1.5, 4.0, 2.5]))
        array([4., 4.])
        """
        return self.agg(sum=(column, "sum"))["sum"]

    def mean(self, column: Any) -> Any:
        """The mean of a column's values in each group, as `agg`.

        Parameters
        ----------
        column
            As of `agg`.

        Returns
        -------
        array[groups]
            float64.

        Raises
        ------
        DtypeError, DeviceError, ShapeError, MemoryError
            As `agg`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> warphash.group_by(np.array([7, 3, 7])).mean(np.array([1.5, 4.0, 2.5]))
        array([2., 4.])
        """
        return self.agg(mean=(column, "mean"))["mean"]

    def min(self, column: Any) -> Any:
        """The least of a column's values in each group, as `agg`.

        Parameters
        ----------
        column
            As of `agg`.

        Returns
        -------
        array[groups]
            Of the type of the column.

        Raises
        ------
        DtypeError, DeviceError, ShapeError, MemoryError
            As `agg`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> warphash.group_by(np.array([7, 3, 7])).min(np.array([1.5, 4.0, 2.5]))
        array([1.5, 4. ])
        """
        return self.agg(min=(column, "min"))["min"]

    def max(self, column: Any) -> Any:
        """The greatest of a column's values in each group, as `agg`.

        Parameters
        ----------
        column
            As of `agg`.

        Returns
        -------
        array[groups]
            Of the type of the column.

        Raises
        ------
        DtypeError, DeviceError, ShapeError, MemoryError
            As `agg`.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> warphash.group_by(np.array([7, 3, 7])).max(np.array([1.5, 4.0, 2.5]))
        array([2.5, 4. ])
        """
        return self.agg(max=(column, "max"))["max"]


class GroupRows(NamedTuple):
    """The rows of each group: those of group ``g`` are ``rows[offsets[g] : offsets[g + 1]]``.

    Attributes
    ----------
    offsets
        Where the rows of each group begin, and the end: int64[groups + 1].
    rows
        Numbers of rows, ascending in each group; int64.
    """

    offsets: Any
    rows: Any


@dataclass(frozen=True)
class Aggregates:
    """What `GroupBy.agg` answers: ``made["name"]`` is the column of that name.

    Attributes
    ----------
    keys
        The key of each group.
    columns
        The answers by their names, one for each group.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> made = warphash.group_by(np.array([7, 3, 7])).agg(sold="size")
    >>> list(made), made.keys, made["sold"]
    (['sold'], array([7, 3]), array([2, 1]))
    """

    keys: Any
    columns: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


class GroupBy(Summaries):
    """Keys in groups, one for each distinct key. Made by `group_by`.

    Keys are numbered anew in each call. So several aggregates take less time in one call of `agg`.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> groups = warphash.group_by(np.array([7, 3, 7]))
    >>> groups.keys, groups.codes
    (array([7, 3]), array([0, 1, 0]))
    """

    def __init__(self, elements: Elements, missing: Missing, is_sorted: bool) -> None:
        self._elements, self._missing, self._is_sorted = elements, missing, is_sorted

    def _groups(self, wanted: Sequence[Wanted] = (), codes: bool = False) -> Groups:
        return Groups(self._elements, self._missing, self._is_sorted, wanted, codes)

    @property
    def keys(self) -> Any:
        """The key of each group, as ``values`` of `unique`."""
        return self._elements.taken(self._groups().firsts)

    @property
    def codes(self) -> Any:
        """The group of each row, int64; -1 for a row that was dropped."""
        return self._elements.for_each(self._groups(codes=True).codes)

    def rows(self) -> GroupRows:
        """The rows of each group.

        Returns
        -------
        GroupRows
            In the library of the keys.

        Notes
        -----
        O(n).

        Examples
        --------
        >>> import numpy as np, warphash
        >>> groups = warphash.group_by(np.array([7, 3, 7]))
        >>> groups.rows()
        GroupRows(offsets=array([0, 2, 3]), rows=array([0, 2, 1]))
        """
        elements, groups = self._elements, self._groups([SIZE], codes=True)
        ends = groups.word(*SIZE).cumsum(0)
        order = elements.argsort(groups.codes)
        order = order[len(order) - int(ends[-1]) if len(groups) else len(order) :]  # behind those that were dropped
        offsets = elements.xp.concatenate((elements.ranks(1), ends))
        return GroupRows(elements.apart(offsets), elements.apart(order))

    def agg(self, *unnamed: Any, **asked: Any) -> Aggregates:
        """Summarise columns group by group, in one pass over the rows for all of them.

        Parameters
        ----------
        *unnamed
            None is taken: the error says how answers are named.
        **asked
            For each name of an answer: ``(column, operation)``, or ``"size"``. A column is an array, a list or a column
            of pandas, Polars or PyArrow, with one value for each key. It is where the keys are; on a GPU, it is an
            array of the library of the keys. Operations are:

            - ``"size"``, ``"count"``, ``"nunique"``: rows; values; distinct values. int64.
            - ``"sum"``, ``"prod"``: of integers 64 bits wide, modulo 2^64; of floating-point numbers float64. Truth
              values are added as 0 and 1. Sums of decimal numbers are exact decimal numbers, without a product.
            - ``"mean"``, ``"median"``, ``"var"``, ``"std"``: float64. The last two divide by one less than the count.
              Decimal numbers have a mean alone.
            - ``"min"``, ``"max"``, ``"first"``, ``"last"``: of the type of the column.
            - ``"argmin"``, ``"argmax"``: the first row with the least, the greatest value. int64.
            - ``"any"``, ``"all"``: whether one value, whether each value is other than 0. bool.

        Returns
        -------
        Aggregates
            One answer for each group, in the library of the keys; ``"first"`` and ``"last"``, and extremes of times
            and of decimal numbers, in that of the column.

        Raises
        ------
        ParameterError
            For another operation.
        DtypeError
            For values that an operation does not take: strings have no sum. For a sum of decimal numbers that has more
            digits than its type.
        DeviceError
            For a column that is not where the keys are, and for one of another library on a GPU.
        ShapeError
            For a column of another length.
        MemoryError
            If there is no room.

        Notes
        -----
        O(n) for n rows; ``"median"`` O(n log n), and so are extremes of decimal numbers beyond 64 bits.

        Nulls of a column are left out, and so is NaT. NaN is a number, as in Polars and DuckDB: what is made of numbers
        with a NaN is NaN, in `min` and `max`, too. -0.0 is less than 0.0 there. A group without values has the sum 0,
        the product 1, and a null for what takes a value; `var` and `std` take two. A library without nulls gets
        NaN; where an answer is no floating-point number, an array of NumPy of Python objects, with None for a null.

        Floating-point sums are made in the order of rows. Where groups are few and rows are many, stretches of the rows
        are summed, and then the sums are added. How rows are cut depends on how many rows and groups there
        are. So the result is the same, to the bit, for any number of threads.

        That holds on a CPU. On a GPU, floating-point sums and products, means and variances are made in the order in
        which threads come to a group: the last bits of a result differ from call to call.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> price = np.array([1.5, 4.0, 2.5])
        >>> made = warphash.group_by(np.array([7, 3, 7])).agg(total=(price, "sum"), sold="size")
        >>> made.keys, made["total"], made["sold"]
        (array([7, 3]), array([4., 4.]), array([2, 1]))
        """
        refuse_unnamed(unnamed)
        plan = _Plan(self._elements)
        answers = {name: plan.added(name, given) for name, given in asked.items()}
        groups = self._groups(plan.wanted)
        columns = {name: self._given(answer(groups)) for name, answer in answers.items()}
        return Aggregates(self._elements.taken(groups.firsts), columns)

    def _given(self, answer: Answer) -> Any:
        """An answer as the caller gets it."""
        if answer.is_column:
            return answer.values
        if answer.valid is None:
            made = self._elements.apart(answer.values)
            is_decimal = isinstance(made, np.ndarray) and decimal_scale(made.dtype) is not None
            return as_objects(made) if is_decimal else made
        return self._elements.apart_with_nulls(answer.values, answer.valid)


class _Plan:
    """What a call of `GroupBy.agg` is asked for, and the words that groups of the keys have to keep."""

    def __init__(self, keys: Elements) -> None:
        self._n, self._on_gpu = len(keys), elements_on_gpu(keys)
        self.wanted: list[Wanted] = []
        self._columns: dict[
            int, tuple[Any, AnyValues]
        ] = {}  # by their identity; a column is kept as long as this lives

    def added(self, name: str, given: Any) -> Callable[[Groups], Answer]:
        """Add an answer, and return what makes it. Raises as `GroupBy.agg`."""
        if given == "size":
            given = (None, "size")
        if not (isinstance(given, tuple) and len(given) == 2):
            raise ParameterError(f"expected (column, operation) or 'size' for {name}, got {type(given).__name__}")
        column, operation = given
        if operation == "size":
            self.wanted.append(SIZE)
            return size_of
        aggregate = aggregate_named(operation)
        values = self._values(column)
        aggregate.check(operation, values)
        self.wanted += aggregate.words(values)
        return lambda groups: aggregate.answer(groups, values)

    def _values(self, column: Any) -> AnyValues:
        if id(column) not in self._columns:
            self._columns[id(column)] = column, values_of(column, self._n, self._on_gpu)
        return self._columns[id(column)][1]


@overload
def group_by(keys: Any, on: None = None, *, nulls: _Nulls = "key", order: _Order = "first") -> GroupBy: ...


@overload
def group_by(
    keys: Any, on: Hashable | Sequence[Hashable], *, nulls: _Nulls = "key", order: _Order = "first"
) -> FrameGroupBy: ...


def group_by(
    keys: Any, on: Hashable | Sequence[Hashable] | None = None, *, nulls: _Nulls = "key", order: _Order = "first"
) -> GroupBy | FrameGroupBy:
    """Group rows by their keys.

    Parameters
    ----------
    keys
        As ``x`` of `unique`, with one axis: an array, a list, a column, or a tuple of columns. Arrays of PyTorch and
        CuPy may be on a GPU, and stay there. With ``on``, a frame as of `merge`.
    on
        Of a frame: the name of the column with the keys, or a list of names. `GroupBy.agg` then takes columns by their
        names, and answers a frame.
    nulls
        ``"key"``: all nulls are one key, and so are all NaN, and all NaT. ``"drop"``: rows with one of them are in no
        group.
    order
        Of groups: ``"first"``, that in which keys first appear; ``"sorted"``, ascending; ``"any"``, the one that takes
        the least time.

    Returns
    -------
    GroupBy or FrameGroupBy
        Its methods read the keys, and answer. An array that is written to meanwhile gives answers of no use.

    Raises
    ------
    ParameterError
        If there is no such rule or order; and if a frame has no such column, or more than one.
    DeviceError, DtypeError, ShapeError
        As `unique`; `ShapeError` for an array of several axes; and `DtypeError` if ``keys`` is no frame, and ``on`` is
        given.

    Notes
    -----
    O(n) for n rows, by a hash table; O(n + d log d) with ``order="sorted"`` for d groups. On a CPU, a thread keeps a
    record for each group that it owns, so no aggregate takes an atomic operation. On a GPU, words of groups take atomic
    operations; a block keeps those of the first groups in memory of its own.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> shop, price = np.array([7, 3, 7]), np.array([1.5, 4.0, 2.5])
    >>> sales = warphash.group_by(shop).agg(total=(price, "sum"), dearest=(price, "max"), sold="size")
    >>> sales.keys, sales["total"], sales["dearest"], sales["sold"]
    (array([7, 3]), array([4., 4.]), array([2.5, 4. ]), array([2, 1]))
    >>> warphash.group_by(shop, order="sorted").mean(price)
    array([4., 2.])
    >>> warphash.group_by({"shop": shop, "price": price}, "shop").agg(total=("price", "sum"))
    {'shop': array([7, 3]), 'total': array([4., 4.])}
    """
    if nulls not in _MISSING:
        raise ParameterError(f"nulls must be 'key' or 'drop', got {nulls!r}")
    if order not in _ORDERS:
        raise ParameterError(f"order must be 'first', 'sorted' or 'any', got {order!r}")
    missing, is_sorted = _MISSING[nulls], order == "sorted"
    if on is None:
        return GroupBy(key_elements_of(keys), missing, is_sorted)
    frame = frame_of(keys)
    places = named(frame.names, on, "on")
    return FrameGroupBy(frame, places, GroupBy(rows_at(frame, places), missing, is_sorted).agg)
