"""What is said of the values of a group: sums, extremes, counts, and how each is found.

Most are made of words that a group keeps of its values (`summaries`); all words that a call needs are kept in one pass.
The others need the code of each value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..arrays.arrow_values import Valid
from ..errors import DtypeError, ParameterError
from ..runtime.abi import Accumulation
from .decimal_sums import means_of, sums_of
from .elements import Elements
from .items import Missing
from .numbered import INT64, Asked, Indices
from .summaries import Wanted, WordArray, summarised, summarised_by
from .values import AnyValues, DeviceValues, Values

__all__ = ["AGGREGATES", "SIZE", "Aggregate", "Answer", "Groups", "aggregate_named", "size_of"]

_FLOAT64 = np.dtype(np.float64)

SIZE = Wanted(Accumulation.COUNT, None)
"""How many elements a group has."""


class Groups:
    """Elements in groups, and what these keep.

    Parameters
    ----------
    elements
        In host memory or on a GPU. All answers are arrays of NumPy, or of the library of the elements on a GPU.
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

    @property
    def elements(self) -> Elements:
        """The elements."""
        return self._elements

    @cached_property
    def codes(self) -> Indices:
        """The group of each element, int64; -1 for an element that was dropped."""
        written = self._codes
        if written is None:
            written = self._elements.number(Asked(codes=True, nan=self._missing, null=self._missing)).code_of_each
        made: Indices = self._elements.in_type(written, INT64)
        if self._order is None or not len(self):
            return made
        ranks, behind = self._elements.argsort(self._order), self._elements.ranks(1) - 1
        places = self._elements.xp.concatenate((self._elements.in_type(ranks, INT64), behind))
        found: Indices = places[made]  # that of -1 is the last one
        return found

    def word(self, operation: Accumulation, values: AnyValues | None) -> WordArray:
        """A word that was wanted."""
        return self._words[Wanted(operation, values)]

    def counts(self, values: AnyValues) -> WordArray:
        """How many values each group has that are no nulls."""
        return self._words[_count_of(values)]

    def counts_of(self, codes: Indices) -> WordArray:
        """How often each group is among some codes."""
        return summarised_by(self._elements, codes, len(self), [SIZE])[0]

    def squares(self, values: AnyValues, centers: WordArray) -> tuple[WordArray, WordArray]:
        """The sums of the squared distances of values from the center of their group, and of the distances."""
        wanted = [Wanted(Accumulation.SQUARES, values), Wanted(Accumulation.DISTANCES, values)]
        squares, distances = summarised_by(self._elements, self.codes, len(self), wanted, centers)
        return squares, distances

    def rows(self, values: AnyValues) -> tuple[Indices, Indices]:
        """The positions of values that are no nulls and have a group; and their groups."""
        kept = self.codes >= 0 if values.valid is None else (self.codes >= 0) & values.valid
        rows = self._elements.places_of(kept)
        return rows, self.codes[rows]

    def first_rows(self, rows: Indices, codes: Indices) -> Indices:
        """The first of some rows in each group; of a group without such rows, the first one of all."""
        at = self._elements.firsts_of(codes, len(self))
        made: Indices = self._elements.in_type(self.firsts, INT64) + 0
        found = at >= 0
        made[found] = rows[at[found]]
        return made


class Answer(NamedTuple):
    """An answer for each group.

    Attributes
    ----------
    values
        An array as of `Groups`, or a column of the library of the values.
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
    of_times, of_decimals
        They may be times, or decimal numbers.
    """

    words: Callable[[AnyValues], list[Wanted]]
    answer: Callable[[Groups, Any], Answer]
    of_any_type: bool = False
    of_times: bool = False
    of_decimals: bool = False

    def check(self, name: str, values: AnyValues) -> None:
        """Raise `DtypeError` for values of which there is no such answer."""
        if self.of_any_type:
            return
        if values.unread is not None:
            raise values.unread
        if values.is_decimal:
            if not self.of_decimals:
                raise DtypeError(
                    f"expected numbers of at most 64 bits for {name!r}, got decimal numbers: cast the column to float64"
                )
            return
        if values.numbers is not None and (self.of_times or not values.is_time):
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
def _count_of(values: AnyValues) -> Wanted:
    if values.valid is None or isinstance(values, DeviceValues):
        return SIZE
    return Wanted(Accumulation.COUNT, values.counted)


def _of_kind(of_integers: Accumulation, of_floats: Accumulation) -> Callable[[AnyValues], list[Wanted]]:
    return lambda values: [Wanted(of_floats if values.kind == "f" else of_integers, values)]


_number_sums = _of_kind(Accumulation.SUM, Accumulation.FLOAT_SUM)
_products = _of_kind(Accumulation.PRODUCT, Accumulation.FLOAT_PRODUCT)


def _with_count(*operations: Accumulation) -> Callable[[AnyValues], list[Wanted]]:
    return lambda values: [*(Wanted(operation, values) for operation in operations), _count_of(values)]


def _sums(values: AnyValues) -> list[Wanted]:
    if isinstance(values, Values) and values.is_decimal:
        return [Wanted(Accumulation.SUM, part) for part in values.parts]
    return _number_sums(values)


def _mean_words(values: AnyValues) -> list[Wanted]:
    return [*_sums(values), _count_of(values)] if values.is_decimal else _MOMENTS(values)


def _nothing(values: AnyValues) -> list[Wanted]:
    return []


# ---- answers
def size_of(groups: Groups) -> Answer:
    """How many elements each group has, if that was wanted."""
    return Answer(groups.word(*SIZE))


def _count(groups: Groups, values: AnyValues) -> Answer:
    return Answer(groups.counts(values))


def _total(words: Callable[[AnyValues], list[Wanted]]) -> Callable[[Groups, AnyValues], Answer]:
    def answer(groups: Groups, values: AnyValues) -> Answer:
        (wanted,) = words(values)
        return Answer(groups.word(*wanted))

    return answer


def _sum(groups: Groups, values: AnyValues) -> Answer:
    words = [groups.word(*wanted) for wanted in _sums(values)]
    return Answer(sums_of(words, values.dtype) if values.is_decimal else words[0])


def _has_values(groups: Groups, values: AnyValues, least: int = 1) -> Valid:
    """Which groups have so many values; None if all have."""
    if least == 1 and values.valid is None:
        return None
    valid = groups.counts(values) >= least
    return None if valid.all() else valid


def _means(groups: Groups, values: AnyValues) -> WordArray:
    made: WordArray = groups.word(Accumulation.FLOAT_SUM, values) / groups.counts(values).clip(1)
    return made


def _mean(groups: Groups, values: AnyValues) -> Answer:
    if values.is_decimal:
        words = [groups.word(*wanted) for wanted in _sums(values)]
        made = means_of(words, groups.counts(values), values.dtype)
    else:
        made = _means(groups, values)
    return Answer(made, _has_values(groups, values))


def _variances(groups: Groups, values: AnyValues) -> WordArray:
    """Variances by the corrected two-pass algorithm (Chan, Golub and LeVeque, American Statistician 37, 1983).

    A mean of many large numbers is rounded. Distances from the exact mean add up to 0, so their sum tells the error.
    """
    counts = groups.counts(values)
    squares, distances = groups.squares(values, _means(groups, values))
    with np.errstate(over="ignore", invalid="ignore"):
        excess = distances * (distances / counts.clip(1))
    excess[~(excess < math.inf)] = 0  # then the squares are infinite or NaN, too
    made: WordArray = (squares - excess).clip(0) / (counts - 1).clip(1)
    return made


def _var(groups: Groups, values: AnyValues) -> Answer:
    return Answer(_variances(groups, values), _has_values(groups, values, 2))


def _std(groups: Groups, values: AnyValues) -> Answer:
    return Answer(groups.elements.xp.sqrt(_variances(groups, values)), _has_values(groups, values, 2))


def _any(groups: Groups, values: AnyValues) -> Answer:
    return Answer(groups.word(Accumulation.TRUE, values) > 0)


def _all(groups: Groups, values: AnyValues) -> Answer:
    return Answer(groups.word(Accumulation.TRUE, values) == groups.counts(values))


class _Extreme:
    """The least or the greatest value of each group, or where it first is."""

    def __init__(self, operation: Accumulation) -> None:
        self._operation = operation

    def words(self, values: AnyValues) -> list[Wanted]:
        """As of `Aggregate`."""
        counted = [] if values.valid is None else [_count_of(values)]
        return [Wanted(self._operation, values), *counted]

    def value(self, groups: Groups, values: AnyValues) -> Answer:
        """The extreme itself."""
        if values.is_ordered:
            return _taken(values, self._positions(groups, values))
        made = groups.elements.in_type(groups.word(self._operation, values), values.dtype)
        return Answer(made, _has_values(groups, values))

    def position(self, groups: Groups, values: AnyValues) -> Answer:
        """Where the extreme first is."""
        return Answer(self._positions(groups, values), _has_values(groups, values))

    def _positions(self, groups: Groups, values: AnyValues) -> Indices:
        """Where the extreme first is; of a group without values, where the group first appears."""
        rows, codes = groups.rows(values)
        extremes = values.comparable(groups.word(self._operation, values))[codes]
        found = values.comparable(values.numbers)[rows]
        is_there = found == extremes
        if values.kind == "f":
            is_there |= (found != found) & (extremes != extremes)
        return groups.first_rows(rows[is_there], codes[is_there])


def _taken(values: AnyValues, rows: Indices) -> Answer:
    return Answer(values.elements.taken(rows), is_column=True)


def _first(groups: Groups, values: AnyValues) -> Answer:
    return _taken(values, groups.firsts if values.valid is None else groups.first_rows(*groups.rows(values)))


def _last(groups: Groups, values: AnyValues) -> Answer:
    flip = groups.elements.xp.flip
    rows, codes = (flip(part, (0,)) for part in groups.rows(values))
    return _taken(values, groups.first_rows(rows, codes))


def _nunique(groups: Groups, values: AnyValues) -> Answer:
    rows, codes = groups.rows(values)
    return Answer(groups.counts_of(codes[values.distinct(rows, codes)]))


def _median(groups: Groups, values: AnyValues) -> Answer:
    elements, (rows, codes) = groups.elements, groups.rows(values)
    assert values.numbers is not None
    found = elements.in_type(values.numbers[rows], _FLOAT64)
    order = values.order(found)  # NaN come last
    found = found[order[elements.argsort(codes[order])]]
    counts = groups.counts_of(codes)
    behind, held = counts.cumsum(0), counts > 0
    counts, behind = counts[held], behind[held]
    below, above = found[behind - counts + (counts - 1) // 2], found[behind - counts + counts // 2]
    with np.errstate(over="ignore", invalid="ignore"):
        middles = (below + above) / 2
    greatest = found[behind - 1]
    middles[greatest != greatest] = math.nan
    if held.all():
        return Answer(middles)
    made = elements.in_type(held, _FLOAT64)
    made[held] = middles
    return Answer(made, held)


_MIN, _MAX = _Extreme(Accumulation.MIN), _Extreme(Accumulation.MAX)
_MOMENTS = _with_count(Accumulation.FLOAT_SUM)
_TRUE = _with_count(Accumulation.TRUE)

AGGREGATES = {
    "count": Aggregate(lambda values: [_count_of(values)], _count, of_any_type=True),
    "sum": Aggregate(_sums, _sum, of_decimals=True),
    "mean": Aggregate(_mean_words, _mean, of_decimals=True),
    "min": Aggregate(_MIN.words, _MIN.value, of_times=True, of_decimals=True),
    "max": Aggregate(_MAX.words, _MAX.value, of_times=True, of_decimals=True),
    "first": Aggregate(_nothing, _first, of_any_type=True),
    "last": Aggregate(_nothing, _last, of_any_type=True),
    "any": Aggregate(_TRUE, _any),
    "all": Aggregate(_TRUE, _all),
    "prod": Aggregate(_products, _total(_products)),
    "var": Aggregate(_MOMENTS, _var),
    "std": Aggregate(_MOMENTS, _std),
    "nunique": Aggregate(_nothing, _nunique, of_any_type=True),
    "argmin": Aggregate(_MIN.words, _MIN.position, of_times=True, of_decimals=True),
    "argmax": Aggregate(_MAX.words, _MAX.position, of_times=True, of_decimals=True),
    "median": Aggregate(_nothing, _median),
}
"""By their names. A mean and what follows of it are float64."""
