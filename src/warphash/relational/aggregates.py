"""What is said of the values of a group: sums, extremes, counts, and how each is found.

Most are made of words that a group keeps of its values (`summaries`); all words that a call needs are kept in one pass.
The others need the code of each value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays.arrow_values import Valid
from ..errors import DtypeError, ParameterError
from ..runtime.abi import Accumulation
from .elements import Elements
from .items import Fixed, Items, Missing
from .numbered import Asked, Indices, number_tuples, stable_order
from .summaries import Wanted, WordArray, summarised, summarised_by
from .values import Values

__all__ = ["AGGREGATES", "SIZE", "Aggregate", "Answer", "Groups", "aggregate_named", "size_of"]

SIZE = Wanted(Accumulation.COUNT, None)
"""How many elements a group has."""


class Groups:
    """Elements in groups, and what these keep.

    Parameters
    ----------
    elements
        In host memory.
    missing
        What elements are that are null, NaN or NaT.
    is_sorted
        Groups come in ascending order of their elements; else in the order of first appearance.
    wanted
        Words to keep.
    codes
        Whether `codes` are needed; they are found when they are first asked for if it is False.

    Attributes
    ----------
    firsts
        The position at which each group first appears.
    """

    def __init__(
        self, elements: Elements, missing: Missing, is_sorted: bool, wanted: Sequence[Wanted], codes: bool = False
    ) -> None:
        self._elements, self._missing = elements, missing
        wanted = list(dict.fromkeys(wanted))
        self.firsts, words, self._codes = summarised(elements, missing, wanted, codes)
        self._order: Indices | None = None
        if is_sorted:
            self._order = elements.order(elements.taken(self.firsts))
            self.firsts, words = self.firsts[self._order], [word[self._order] for word in words]
        self._words = dict(zip(wanted, words, strict=True))

    def __len__(self) -> int:
        return len(self.firsts)

    @cached_property
    def codes(self) -> Indices:
        """The group of each element, int64; -1 for an element that was dropped."""
        made = self._codes
        if made is None:
            made = self._elements.number(Asked(codes=True, nan=self._missing, null=self._missing)).code_of_each
        made = made.astype(np.int64, copy=False)
        if self._order is None or not len(self):
            return made
        places = np.empty(len(self) + 1, np.int64)
        places[self._order], places[-1] = np.arange(len(self)), -1
        return places[made]

    def word(self, operation: Accumulation, values: Values | None) -> WordArray:
        """A word that was wanted."""
        return self._words[Wanted(operation, values)]

    def counts(self, values: Values) -> npt.NDArray[np.int64]:
        """How many values each group has that are no nulls."""
        return self._words[_count_of(values)].view(np.int64)

    def squares(self, values: Values, centers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum of the squared distances of values from the center of their group."""
        (made,) = summarised_by(self.codes, len(self), [Wanted(Accumulation.SQUARES, values)], centers)
        return made.view(np.float64)

    def rows(self, values: Values) -> tuple[Indices, Indices]:
        """The positions of values that are no nulls and have a group; and their groups."""
        kept = self.codes >= 0 if values.valid is None else (self.codes >= 0) & values.valid
        rows = np.flatnonzero(kept)
        return rows, self.codes[rows]


class Answer(NamedTuple):
    """An answer for each group.

    Attributes
    ----------
    values
        An array of NumPy, or a column of the library of the values.
    valid
        Of an array: which groups have an answer; None if all have.
    is_column
        Whether it is a column of that library.
    """

    values: Any
    valid: Valid = None
    is_column: bool = False


class Aggregate(NamedTuple):
    """A kind of answer.

    Attributes
    ----------
    words
        What groups keep for it.
    answer
        Makes it.
    of_any_type
        Values may be no numbers.
    of_times
        They may be times.
    """

    words: Callable[[Values], list[Wanted]]
    answer: Callable[[Groups, Values], Answer]
    of_any_type: bool = False
    of_times: bool = False

    def check(self, name: str, values: Values) -> None:
        """Raise `DtypeError` for values of which there is no such answer."""
        if self.of_any_type or (values.numbers is not None and (self.of_times or not values.is_time)):
            return
        shown = "strings" if values.kind == "O" else str(values.dtype)
        raise DtypeError(f"expected numbers of at most 64 bits for {name!r}, got {shown}: convert the column")


def aggregate_named(name: str) -> Aggregate:
    """Raises `ParameterError` if there is none of that name."""
    try:
        return AGGREGATES[name]
    except (KeyError, TypeError):
        raise ParameterError(f"expected one of size, {', '.join(AGGREGATES)}, got {name!r}") from None


# ---- words
def _count_of(values: Values) -> Wanted:
    return SIZE if values.valid is None else Wanted(Accumulation.COUNT, values)


def _of_kind(of_integers: Accumulation, of_floats: Accumulation) -> Callable[[Values], list[Wanted]]:
    return lambda values: [Wanted(of_floats if values.kind == "f" else of_integers, values)]


_sums = _of_kind(Accumulation.SUM, Accumulation.FLOAT_SUM)
_products = _of_kind(Accumulation.PRODUCT, Accumulation.FLOAT_PRODUCT)


def _with_count(*operations: Accumulation) -> Callable[[Values], list[Wanted]]:
    return lambda values: [*(Wanted(operation, values) for operation in operations), _count_of(values)]


def _nothing(values: Values) -> list[Wanted]:
    return []


# ---- answers
def size_of(groups: Groups) -> Answer:
    """How many elements each group has, if that was wanted."""
    return Answer(groups.word(*SIZE).view(np.int64))


def _count(groups: Groups, values: Values) -> Answer:
    return Answer(groups.counts(values))


def _total(words: Callable[[Values], list[Wanted]]) -> Callable[[Groups, Values], Answer]:
    def answer(groups: Groups, values: Values) -> Answer:
        (wanted,) = words(values)
        return Answer(groups.word(wanted.operation, values).view(values.word_dtype))

    return answer


def _has_values(groups: Groups, values: Values, least: int = 1) -> Valid:
    """Which groups have so many values; None if all have."""
    if least == 1 and values.valid is None:
        return None
    valid = groups.counts(values) >= least
    return None if valid.all() else valid


def _means(groups: Groups, values: Values) -> npt.NDArray[np.float64]:
    sums = groups.word(Accumulation.FLOAT_SUM, values).view(np.float64)
    return sums / np.maximum(groups.counts(values), 1)


def _mean(groups: Groups, values: Values) -> Answer:
    return Answer(_means(groups, values), _has_values(groups, values))


def _variances(groups: Groups, values: Values) -> npt.NDArray[np.float64]:
    squares = groups.squares(values, _means(groups, values))
    return squares / np.maximum(groups.counts(values) - 1, 1)


def _var(groups: Groups, values: Values) -> Answer:
    return Answer(_variances(groups, values), _has_values(groups, values, 2))


def _std(groups: Groups, values: Values) -> Answer:
    return Answer(np.sqrt(_variances(groups, values)), _has_values(groups, values, 2))


def _any(groups: Groups, values: Values) -> Answer:
    return Answer(groups.word(Accumulation.TRUE, values) > 0)


def _all(groups: Groups, values: Values) -> Answer:
    return Answer(groups.word(Accumulation.TRUE, values) == groups.counts(values).view(np.uint64))


class _Extreme:
    """The least or the greatest value of each group, or where it first is."""

    def __init__(self, operation: Accumulation) -> None:
        self._operation = operation

    def words(self, values: Values) -> list[Wanted]:
        """As of `Aggregate`."""
        counted = [] if values.valid is None else [_count_of(values)]
        return [Wanted(self._operation, values), *counted]

    def value(self, groups: Groups, values: Values) -> Answer:
        """The extreme itself."""
        if values.is_time:
            return _taken(values, self._positions(groups, values))
        made = groups.word(self._operation, values).view(values.word_dtype)
        return Answer(made.astype(values.dtype, copy=False), _has_values(groups, values))

    def position(self, groups: Groups, values: Values) -> Answer:
        """Where the extreme first is."""
        return Answer(self._positions(groups, values), _has_values(groups, values))

    def _positions(self, groups: Groups, values: Values) -> Indices:
        """Where the extreme first is; of a group without values, where the group first appears."""
        rows, codes = groups.rows(values)
        extremes = groups.word(self._operation, values).view(values.word_dtype)[codes]
        assert values.numbers is not None
        found = values.numbers[rows]
        is_there = found == extremes
        if values.kind == "f":
            is_there |= (found != found) & (extremes != extremes)
        return _first_rows(groups, rows[is_there], codes[is_there])


def _first_rows(groups: Groups, rows: Indices, codes: Indices) -> Indices:
    """The first of some ascending rows in each group; of a group without such rows, its first one of all."""
    made = groups.firsts.astype(np.int64)
    made[codes[::-1]] = rows[::-1]  # the last of the rows that go to one place stays
    return made


def _taken(values: Values, rows: Indices) -> Answer:
    return Answer(values.elements.taken(rows), is_column=True)


def _first(groups: Groups, values: Values) -> Answer:
    return _taken(values, groups.firsts if values.valid is None else _first_rows(groups, *groups.rows(values)))


def _last(groups: Groups, values: Values) -> Answer:
    rows, codes = groups.rows(values)
    return _taken(values, _first_rows(groups, rows[::-1], codes[::-1]))


def _nunique(groups: Groups, values: Values) -> Answer:
    rows, codes = groups.rows(values)
    distinct = number_tuples([Fixed(codes), _some(values.items, rows)], Asked()).firsts
    return Answer(np.bincount(codes[distinct], minlength=len(groups)))


def _some(items: Items, rows: Indices) -> Items:
    return items._replace(array=items.array[rows], valid=None)


def _median(groups: Groups, values: Values) -> Answer:
    assert values.numbers is not None
    rows, codes = groups.rows(values)
    found = values.numbers[rows].astype(np.float64)
    order = np.argsort(found, kind="stable")  # NaN come last
    found = found[order[stable_order(codes[order])]]
    counts = np.bincount(codes, minlength=len(groups))
    held = counts > 0
    behind = np.cumsum(counts)[held]
    counts, made = counts[held], np.full(len(groups), np.nan)
    below, above = found[behind - counts + (counts - 1) // 2], found[behind - counts + counts // 2]
    with np.errstate(over="ignore", invalid="ignore"):
        middles = (below + above) / 2
    made[held] = np.where(np.isnan(found[behind - 1]), np.nan, middles)
    return Answer(made, None if held.all() else held)


_MIN, _MAX = _Extreme(Accumulation.MIN), _Extreme(Accumulation.MAX)
_MOMENTS = _with_count(Accumulation.FLOAT_SUM)
_TRUE = _with_count(Accumulation.TRUE)

AGGREGATES = {
    "count": Aggregate(lambda values: [_count_of(values)], _count, of_any_type=True),
    "sum": Aggregate(_sums, _total(_sums)),
    "mean": Aggregate(_MOMENTS, _mean),
    "min": Aggregate(_MIN.words, _MIN.value, of_times=True),
    "max": Aggregate(_MAX.words, _MAX.value, of_times=True),
    "first": Aggregate(_nothing, _first, of_any_type=True),
    "last": Aggregate(_nothing, _last, of_any_type=True),
    "any": Aggregate(_TRUE, _any),
    "all": Aggregate(_TRUE, _all),
    "prod": Aggregate(_products, _total(_products)),
    "var": Aggregate(_MOMENTS, _var),
    "std": Aggregate(_MOMENTS, _std),
    "nunique": Aggregate(_nothing, _nunique, of_any_type=True),
    "argmin": Aggregate(_MIN.words, _MIN.position, of_times=True),
    "argmax": Aggregate(_MAX.words, _MAX.position, of_times=True),
    "median": Aggregate(_nothing, _median),
}
"""By their names. A mean and what follows of it are float64."""
