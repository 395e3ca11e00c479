"""Items that are kept to look others up: a table of their bytes, beside what is kept of nulls.

Strings need no table of rows. Their `StringTable` has a number for each, so an array leads from that number to a code.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..arrays.adapters.numpy import address_of
from ..arrays.arrow_values import Valid, both
from ..arrays.row_type import MAX_KEY_BYTES
from ..errors import DtypeError
from ..runtime.devices import engine_for
from ..storage.batch_order.sample import words_seem_distinct
from ..storage.groups.word_places import WordPlaces, places_of
from ..storage.joins.folded_words import fold_words
from ..storage.random_words import random_words
from ..storage.strings.string_table import StringTable
from ..table.maps import HashMap, HashSet
from .comparable import as_type_of
from .composites import RowElements
from .device_elements import DeviceElements
from .device_known import DeviceKnown, device_known_if_unique
from .elements import Elements, KeptElements
from .items import Fixed, Items, Missing, Packed, Text, are_absent, packed
from .numbered import INT64, Asked, Indices
from .word_lookups import SomeCodes, some_codes_in

__all__ = ["Known", "KnownItems", "KnownRows", "as_keys", "known_if_unique", "known_of", "set_of"]

_MOST_WORDS = MAX_KEY_BYTES // 8
"""Columns of integers that are one key together."""

_MENDS = {
    "U": "give strings of any length, keys.astype(numpy.dtypes.StringDType())",
    "S": "give bytes of any length, keys.astype(object)",
}
"""What to do with items that are too wide, by the kind of their type."""

_WORDS_AT_ONCE = 1 << 20
"""Rows of columns of integers that go to their table together."""

_NO_NUMBER = 2**32 - 1
"""Of a string that a `StringTable` does not have."""

_LookUp = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


class Known(Protocol):
    """Elements that others are looked up in: in host memory (`KnownItems`), on a GPU (`DeviceKnown`), or rows."""

    def codes_of(self, elements: Elements) -> Any:
        """The code of each element, of the type of the codes; -1 for one that is not there.

        Raises
        ------
        DeviceError
            For elements on another device.
        """

    def some_codes_of(self, elements: Elements) -> SomeCodes:
        """The codes of those elements that may be there, if it pays to know them; else of all. Raises as `codes_of`."""

    def contains(self, elements: Elements) -> Any:
        """Which elements are there, bool[n]. Raises as `codes_of`."""


class _Sought(NamedTuple):
    """What is looked up of items.

    Attributes
    ----------
    rows
        Strings, or keys; None if no item can be there.
    there
        Which items have such a row; None: all.
    held
        What the rows lead to: rows of strings are addresses.
    """

    rows: npt.NDArray[Any] | None
    there: Valid
    held: Any


class KnownItems:
    """Items to be found, each with its code.

    Parameters
    ----------
    items
        The items.
    codes
        Integers, none of them negative; None: nobody will ask for codes.
    nan, null
        ``"one"``: NaN is found if it is there, and a null; ``"dropped"``: they are not.
    assume_unique
        Items that have codes do not repeat.

    Attributes
    ----------
    repeats
        Whether some items repeat, so that the codes of the others of these are lost. Not known of strings.

    Raises
    ------
    DtypeError
        As `items.packed`, and for more bytes than a key has.
    MemoryError
        If there is no room.
    """

    def __init__(
        self,
        items: Items,
        codes: Indices | None = None,
        *,
        nan: Missing = "one",
        null: Missing = "one",
        assume_unique: bool = True,
    ) -> None:
        self._like = items._replace(array=items.array[:0], valid=None)  # the type alone
        self._are_absent = are_absent(items)
        self._nan = nan
        self._null_code = -1
        self._code_type: np.dtype[Any] = INT64 if codes is None else codes.dtype
        if null == "one" and items.valid is not None and not items.valid.all():
            self._null_code = 0 if codes is None else int(codes[int(np.argmin(items.valid))])
        self._engine = engine_for("cpu")
        self._strings: StringTable | None = None
        self._code_of_string: Indices | None = None
        self._table: Any = None
        self._places: WordPlaces | None = None
        self.repeats: bool = items.valid is not None and null == "one" and int(items.valid.sum()) < len(items.valid) - 1
        if isinstance(items, Text):
            self._keep_strings(items, codes)
        else:
            self._keep_rows(packed(self._engine, items, nan), codes, assume_unique)

    def _keep_strings(self, items: Text, codes: Indices | None) -> None:
        rows = items.array if items.valid is None else np.ascontiguousarray(items.array[items.valid])
        numbers = np.empty(len(rows), np.uint32)
        self._strings = StringTable(self._engine, 0)
        self._strings.intern(address_of(rows), len(rows), address_of(numbers))
        if codes is not None:
            self._code_of_string = np.full(self._strings.used + 1, -1, codes.dtype)  # the last one is of `_NO_NUMBER`
            self._code_of_string[numbers] = codes if items.valid is None else codes[items.valid]

    def _keep_rows(self, rows: Packed, codes: Indices | None, assume_unique: bool) -> None:
        if rows.width > MAX_KEY_BYTES:
            mend = _MENDS.get(self._like.array.dtype.kind, "take a hash of each")
            raise DtypeError(
                f"an item to be looked up has at most {MAX_KEY_BYTES} bytes, got {rows.width} of "
                f"{self._like.array.dtype}: {mend}"
            )
        if codes is None:
            self._table = set_of(rows)
            return
        kept, at, n = codes if rows.kept is None else codes[rows.kept], address_of(rows.rows), len(rows.rows)
        self._places = places_of(self._engine, at, rows.width, n)
        if self._places is not None:
            self._places.put(at, n, address_of(kept), kept.itemsize)
            self.repeats = self.repeats or self._places.used < n
        else:
            self._table = HashMap.from_arrays(as_keys(rows), kept, assume_unique=assume_unique, **_options(rows))
            self.repeats = self.repeats or len(self._table) < n

    def codes_of(self, elements: Elements) -> Indices:
        """As `Known.codes_of`."""
        items = elements.items
        return self._all_codes(items, self._sought(items))

    def contains(self, elements: Elements) -> npt.NDArray[np.bool_]:
        """As `Known.contains`."""
        items = elements.items
        return self._answers(items, self._sought(items), self._flags, np.bool_(False), np.bool_(self._null_code >= 0))

    def some_codes_of(self, elements: Elements) -> SomeCodes:
        """As `Known.some_codes_of`."""
        sought = self._sought(elements.items)
        if sought.rows is None or sought.there is not None or self._table is None:
            return SomeCodes(None, self._all_codes(elements.items, sought))
        return some_codes_in(self._table, sought.rows, self._code_type)

    def _all_codes(self, items: Items, sought: _Sought) -> Indices:
        kind = self._code_type.type
        return self._answers(items, sought, self._codes, kind(-1), kind(self._null_code))

    def _answers(self, items: Items, sought: _Sought, look_up: _LookUp, absent: Any, of_null: Any) -> npt.NDArray[Any]:
        """One answer for each item: of those that have a row, by a function of their rows."""
        found, there = None if sought.rows is None else look_up(sought.rows), sought.there
        if there is None:
            assert found is not None
            return found
        answers = np.full(len(items.array), absent)
        if found is not None:
            answers[there] = found
        if items.valid is not None:
            answers[~items.valid] = of_null
        return answers

    def _sought(self, items: Items) -> _Sought:
        """What is looked up of items."""
        there, n = items.valid, len(items.array)
        compared = None if self._are_absent else as_type_of(items, self._like)
        if compared is None:
            return _Sought(None, np.zeros(n, np.bool_), None)
        there = both(there, compared.fits)
        if isinstance(compared.items, Fixed):
            rows = packed(self._engine, Fixed(compared.items.array, there), self._nan)
            return _Sought(as_keys(rows), rows.kept, rows)
        strings = compared.items.array
        return _Sought(np.ascontiguousarray(strings if there is None else strings[there]), there, compared.items)

    def _codes(self, rows: npt.NDArray[Any]) -> Indices:
        """The codes of strings, or of keys."""
        if self._places is not None:
            found = np.empty(len(rows), self._code_type)
            self._places.find(address_of(rows), len(rows), address_of(found), found.itemsize)
            return found
        if self._strings is None:
            some = some_codes_in(self._table, rows, self._code_type)
            return some.codes if some.places is None else _spread(some.places, some.codes, len(rows))
        assert self._code_of_string is not None
        places = self._numbers(rows).view(np.int32)  # `_NO_NUMBER` is -1 then
        return self._code_of_string.take(places)

    def _flags(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which strings, or keys, are there."""
        if self._places is not None:
            return self._codes(rows) >= 0
        if self._strings is None:
            return np.asarray(self._table.contains(rows), np.bool_)
        return np.not_equal(self._numbers(rows), _NO_NUMBER)

    def _numbers(self, strings: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
        assert self._strings is not None
        numbers = np.empty(len(strings), np.uint32)
        self._strings.look_up(address_of(strings), len(strings), address_of(numbers))
        return numbers


class KnownWords:
    """Rows of columns of integers to be found, each with its code, by a word for each row.

    Equal rows have equal words. Rows of one word are compared column by column, so different rows may share one: then
    one of them is lost, as a row that repeats is.

    Parameters
    ----------
    rows
        The rows (`_are_words`).
    firsts
        Positions of those rows that are to be found; None: of all.
    codes
        0, 1, 2, …: of each of these rows.

    Attributes
    ----------
    repeats
        Whether some rows repeat or share a word, so that the codes of the others of these are lost.
    """

    def __init__(self, rows: RowElements, firsts: Indices | None, codes: Indices) -> None:
        columns = [column.items for column in rows.columns]
        self._like = [items._replace(array=items.array[:0]) for items in columns]
        self._arrays = [items.array if firsts is None else items.array[firsts] for items in columns]
        self._factors = random_words(len(columns), random.getrandbits(32)) | np.uint64(1)
        self._code_type, n = codes.dtype, len(codes)
        options: dict[str, Any] = {"device": "cpu", "priorities": ("query",)}
        self._table: HashMap[Any, Any] = HashMap(np.uint64, codes.dtype, capacity=n, **options)
        for at in range(0, n, _WORDS_AT_ONCE):
            piece = slice(at, at + _WORDS_AT_ONCE)
            self._table.insert(_as_words([array[piece] for array in self._arrays], self._factors), codes[piece])
        self.repeats = len(self._table) < n

    def codes_of(self, elements: Elements) -> Indices:
        """As `Known.codes_of`, of rows of as many columns."""
        assert isinstance(elements, RowElements)
        n = len(elements)
        arrays: list[npt.NDArray[Any]] = []
        there: Valid = None
        for column, like in zip(elements.columns, self._like, strict=True):
            compared = as_type_of(column.items, like)
            if compared is None:
                return np.full(n, -1, self._code_type)
            arrays.append(compared.items.array)
            there = both(there, both(compared.items.valid, compared.fits))
        codes = np.empty(n, self._code_type)
        for at in range(0, n, _WORDS_AT_ONCE):
            piece = slice(at, at + _WORDS_AT_ONCE)
            codes[piece] = self._find([array[piece] for array in arrays])
        if there is not None:
            codes[~there] = -1
        return codes

    def _find(self, arrays: Sequence[npt.NDArray[Any]]) -> Indices:
        codes: Indices = self._table.find(_as_words(arrays, self._factors), -1)[0]
        places = np.flatnonzero(codes >= 0)
        rows = codes[places]
        differs = np.zeros(len(places), np.bool_)
        for known, sought in zip(self._arrays, arrays, strict=True):
            differs |= known[rows] != sought[places]
        if differs.any():
            codes[places[differs]] = -1
        return codes

    def some_codes_of(self, elements: Elements) -> SomeCodes:
        """As `Known.some_codes_of`: of all rows."""
        return SomeCodes(None, self.codes_of(elements))

    def contains(self, elements: Elements) -> npt.NDArray[np.bool_]:
        """As `Known.contains`, of rows of as many columns."""
        return self.codes_of(elements) >= 0


def _are_words(rows: RowElements) -> bool:
    """Whether rows are of columns of integers of the host, without nulls, and no more of these than a key has words."""
    if rows.on_gpu is not None or len(rows.columns) > _MOST_WORDS:
        return False
    items = [column.items for column in rows.columns]
    return all(
        isinstance(each, Fixed) and each.valid is None and each.array.dtype.kind in "iu" and each.array.ndim == 1
        for each in items
    )


def _as_words(arrays: Sequence[npt.NDArray[Any]], factors: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A word for each row of columns of integers, by an odd factor for each column."""
    words, engine = np.zeros(len(arrays[0]), np.uint64), engine_for("cpu")
    for array, factor in zip(arrays, factors.tolist(), strict=True):
        items = np.ascontiguousarray(array.astype(np.int64, copy=False))
        fold_words(engine, address_of(words), address_of(items), len(items), factor)
    return words


class KnownRows:
    """Rows of columns to be found, each with its code.

    Items of each column are looked up in the distinct ones of that column, and so become codes. Rows of codes are
    looked up among those of the known rows. So columns of two types are compared by their values.

    Parameters
    ----------
    rows
        The rows.
    firsts
        First positions of the distinct rows. The code of each is its place among these.
    nan, null
        ``"one"``: an item that is NaN or null equals its like; ``"dropped"``: no row with one is found.
    dtype
        Of the codes.

    Raises
    ------
    DtypeError
        As `KnownItems`; and for more than 16 columns, as each row of codes is a key.
    MemoryError
        If there is no room.
    """

    def __init__(
        self,
        rows: RowElements,
        firsts: Indices,
        *,
        nan: Missing = "one",
        null: Missing = "one",
        dtype: np.dtype[Any] = INT64,
    ) -> None:
        if len(rows.columns) > _MOST_WORDS:
            raise DtypeError(
                f"rows that are looked up have at most {_MOST_WORDS} columns, got {len(rows.columns)}: name the "
                "columns that are the key, or join several columns of text to one"
            )
        self._columns, codes = [], []
        for column in rows.columns:
            numbers = column.number(Asked(codes=True))
            self._columns.append(known_of(column, numbers.firsts, nan=nan, null=null))
            codes.append(numbers.code_of_each[firsts])
        coded = rows.coded(codes)
        self._rows = known_of(coded, coded.ranks(len(coded)), dtype=dtype)

    def codes_of(self, elements: Elements) -> Any:
        """As `Known.codes_of`, of rows of as many columns."""
        return self._rows.codes_of(self._coded(elements))

    def some_codes_of(self, elements: Elements) -> SomeCodes:
        """As `Known.some_codes_of`: of all rows, whose codes by columns take most of the time."""
        return SomeCodes(None, self.codes_of(elements))

    def contains(self, elements: Elements) -> Any:
        """As `Known.contains`, of rows of as many columns."""
        return self._rows.contains(self._coded(elements))

    def _coded(self, elements: Elements) -> Elements:
        """Rows of codes. An item that its column does not have is -1, which no known row has."""
        assert isinstance(elements, RowElements)
        pairs = zip(self._columns, elements.columns, strict=True)
        return elements.coded([known.codes_of(column) for known, column in pairs])


def _rows_seem_distinct(rows: RowElements) -> bool:
    """As `words_seem_distinct`, of a stretch of rows, each mixed to one word: different rows seldom agree then."""
    n = len(rows)
    begin = max(0, n - _WORDS_AT_ONCE) // 2
    arrays = [column.items.array[begin : begin + _WORDS_AT_ONCE] for column in rows.columns]
    words = _as_words(arrays, random_words(len(arrays), n) | np.uint64(1))
    return words_seem_distinct(address_of(words), words.itemsize, len(words))


def known_of(
    elements: KeptElements,
    firsts: Indices,
    *,
    nan: Missing = "one",
    null: Missing = "one",
    dtype: np.dtype[Any] = INT64,
) -> Known:
    """The distinct ones of some elements, by their first positions. The code of each is its place among these.

    Rules and exceptions are those of `KnownItems`, `DeviceKnown` and `KnownRows`.
    """
    if isinstance(elements, RowElements):
        if _are_words(elements):
            made = KnownWords(elements, firsts, elements.in_type(elements.ranks(len(firsts)), dtype))
            if not made.repeats:  # which of 10 M rows happens once in 400,000 times: two of them share a word
                return made
        return KnownRows(elements, firsts, nan=nan, null=null, dtype=dtype)
    is_whole = len(firsts) == len(elements)
    if isinstance(elements, DeviceElements):
        return DeviceKnown(elements if is_whole else elements.like(elements.taken(firsts)), dtype, nan=nan)
    items, codes = elements.items, elements.in_type(elements.ranks(len(firsts)), dtype)
    if not is_whole:
        valid = None if items.valid is None else items.valid[firsts]
        items = items._replace(array=items.array[firsts], valid=valid)
    return KnownItems(items, codes, nan=nan, null=null)


def known_if_unique(
    elements: KeptElements, *, nan: Missing = "one", null: Missing = "one", dtype: np.dtype[Any] = INT64
) -> Known | None:
    """Elements of which none repeats, each with its position as its code; None if some do, or if that is not known.

    The table itself finds out. So it takes less time than to number the elements first, which a sample tells to be the
    better way if they repeat. Rules and exceptions are those of `KnownItems`; ``"dropped"`` elements may repeat.
    """
    if isinstance(elements, DeviceElements):
        return device_known_if_unique(elements, dtype, nan)
    if isinstance(elements, RowElements):
        if not (_are_words(elements) and _rows_seem_distinct(elements)):
            return None
        known = KnownWords(elements, None, elements.in_type(elements.ranks(len(elements)), dtype))
        return None if known.repeats else known
    if isinstance(elements.items, Text):
        return None
    rows = packed(engine_for("cpu"), elements.items, nan)
    if not words_seem_distinct(address_of(rows.rows), rows.width, len(rows.rows)):
        return None
    codes = elements.in_type(elements.ranks(len(elements)), dtype)
    made = KnownItems(elements.items, codes, nan=nan, null=null, assume_unique=False)
    return None if made.repeats else made


def set_of(rows: Packed) -> HashSet[Any]:
    """A set of rows."""
    return HashSet.from_arrays(as_keys(rows), **_options(rows))


def _options(rows: Packed) -> dict[str, Any]:
    """Of words, a table whose lookups are the fastest."""
    return {"device": "cpu", "priorities": ("query",)} if rows.width <= 8 else {"device": "cpu"}


def _spread(places: npt.NDArray[Any], codes: Indices, n: int) -> Indices:
    """Codes of ``n`` elements, of those at some places; -1 for the others."""
    made = np.full(n, -1, codes.dtype)
    made[places] = codes
    return made


def as_keys(rows: Packed) -> npt.NDArray[Any]:
    """Rows of bytes as keys of a table: integers, if they are as wide."""
    kind = "u" if rows.width in (1, 2, 4, 8) else "V"
    return np.ascontiguousarray(rows.rows).reshape(-1).view(np.uint8).view(f"{kind}{rows.width}")
