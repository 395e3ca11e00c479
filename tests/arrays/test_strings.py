"""Strings in all forms that people have: each becomes rows of the same strings, and each library takes ours."""

from __future__ import annotations

import ctypes
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warphash import DtypeError, ShapeError, get_num_threads, set_num_threads
from warphash.arrays import arrow, strings
from warphash.arrays.strings import NULL_LENGTH, StringArray, StringRows, holds_text, rows_of

STRINGS = ["a", "", "hällo", "x" * 40, "exactly12chr", "13 characters", "\0", "a\0", "日本"]
LENGTHS = (0, 1, 9, 40)


def items_of(rows: StringRows) -> list[Any]:
    """The strings that rows lead to."""
    made: list[Any] = []
    for address, length in rows.rows.reshape(-1).tolist():
        held = None if length == NULL_LENGTH else ctypes.string_at(address, length)
        made.append(held.decode() if held is not None and rows.text else held)
    return made


def of_pyarrow(kind: str, text: bool = True) -> Callable[[list[Any]], Any]:
    def make(items: list[Any]) -> Any:
        pa = pytest.importorskip("pyarrow")
        return pa.array(items if text else [item and item.encode() for item in items], getattr(pa, kind)())

    return make


def chunked(items: list[Any]) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.chunked_array([items[:2], [], items[2:]], pa.string())


def polars_strings(items: list[Any]) -> Any:
    pl = pytest.importorskip("polars")
    return pl.Series(items, dtype=pl.String)


def pandas_strings(dtype: Any) -> Callable[[list[Any]], Any]:
    return lambda items: pytest.importorskip("pandas").Series(items, dtype=dtype)


def numpy_strings(items: list[Any]) -> Any:
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("this NumPy has no StringDType")
    return np.array(items, np.dtypes.StringDType(na_object=None))


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": lambda items: np.array(items, object),
    "StringDType": numpy_strings,
    **{f"pyarrow-{kind}": of_pyarrow(kind) for kind in ("string", "large_string", "string_view")},
    "pyarrow-chunks": chunked,
    "polars": polars_strings,
    **{f"pandas-{dtype}": pandas_strings(dtype) for dtype in ("object", "str", "string")},
}


def pandas_index(items: list[Any]) -> Any:
    return pytest.importorskip("pandas").CategoricalIndex(items)


CODED: dict[str, Callable[[list[Any]], Any]] = {
    "pyarrow": lambda items: of_pyarrow("string")(items).dictionary_encode(),
    "pyarrow-views": lambda items: of_pyarrow("string")(items).dictionary_encode().cast(dictionary("string_view")),
    "polars-categorical": lambda items: polars_strings(items).cast(pytest.importorskip("polars").Categorical),
    "polars-enum": lambda items: polars_strings(items).cast(pytest.importorskip("polars").Enum(STRINGS)),
    "pandas": pandas_strings("category"),
    "pandas-index": pandas_index,
}
"""Columns of codes, with a dictionary or categories."""


def dictionary(kind: str) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.dictionary(pa.int32(), getattr(pa, kind)())


@pytest.mark.parametrize("form", CODED)
@pytest.mark.parametrize("length", LENGTHS)
def test_codes_lead_to_the_strings_of_their_dictionary(form: str, length: int) -> None:
    given = [*(STRINGS * 5)[: max(0, length - 1)], *[None] * min(1, length)]
    column = CODED[form](given)
    rows = rows_of(column, True)
    assert items_of(rows) == given and rows.nulls == min(1, length)
    assert items_of(rows_of(column[2:], True)) == given[2:]
    if length > 1:
        assert holds_text(column) is True


def test_a_dictionary_may_have_nulls() -> None:
    pa = pytest.importorskip("pyarrow")
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array([None, "a"]))
    assert items_of(rows_of(column, True)) == ["a", None, None] and rows_of(column, True).nulls == 2


def test_categories_that_are_no_strings_are_no_text() -> None:
    assert holds_text(pytest.importorskip("pandas").Series([1, 2], dtype="category")) is None
    assert holds_text(pytest.importorskip("pyarrow").array([1, 2]).dictionary_encode()) is None


BYTES = {f"pyarrow-{kind}": of_pyarrow(kind, False) for kind in ("binary", "large_binary", "binary_view")}


@pytest.mark.parametrize("form", FORMS)
class TestForms:
    @pytest.mark.parametrize("length", LENGTHS)
    def test_all_strings_are_there(self, form: str, length: int) -> None:
        given = (STRINGS * 5)[:length]
        assert items_of(rows_of(FORMS[form](given), True)) == given

    def test_several_threads_make_the_rows_of_a_column(self, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """In pieces that end inside the range of a thread."""
        monkeypatch.setattr(strings, "_OF_A_THREAD", 100)
        monkeypatch.setattr(strings, "_PIECE", 64)
        items = [f"{'x' * (n % 30)}{n}" for n in range(1001)]
        before = get_num_threads()
        set_num_threads(4)
        try:
            assert items_of(rows_of(FORMS[form](items), True)) == items
        finally:
            set_num_threads(before)

    def test_nulls_are_noted(self, form: str) -> None:
        given = [None, *STRINGS, None]
        rows = rows_of(FORMS[form](given), True)
        assert items_of(rows) == given and rows.nulls == 2

    def test_a_part_of_a_column(self, form: str) -> None:
        given = [*STRINGS, None, *STRINGS]
        assert items_of(rows_of(FORMS[form](given)[3:15], True)) == given[3:15]

    def test_what_holds_text_is_known(self, form: str) -> None:
        fixed = form in ("list", "tuple", "objects")
        assert holds_text(FORMS[form](STRINGS)) is (None if fixed else True)

    def test_strings_are_no_bytes(self, form: str) -> None:
        with pytest.raises(DtypeError, match=r"must be bytes, .*encode them"):
            rows_of(FORMS[form](STRINGS), False)


@pytest.mark.parametrize("form", BYTES)
def test_bytes(form: str) -> None:
    given = [*STRINGS, None]
    column = BYTES[form](given)
    assert items_of(rows_of(column, False)) == column.to_pylist()
    assert holds_text(column) is False
    with pytest.raises(DtypeError, match=r"must be strings, .*decode them"):
        rows_of(column, True)


@pytest.mark.parametrize(
    ("given", "text", "mend"),
    [
        (bytearray(b"a"), False, r"got bytearray: give bytes\(x\) of each$"),
        ([b"a", bytearray(b"a")], False, r"\(bytearray\): give bytes\(x\) of each$"),
        (memoryview(b"a"), False, r"got memoryview: give bytes\(x\) of each$"),
        ([bytearray(b"a")], True, r"decode them, as bytes\(x\)\.decode\(\) does$"),
        ([5], True, "convert them to strings, or make a table of that type"),
        (np.arange(2), False, "convert them to bytes, or make a table of that type"),
        ([b"a"], True, "decode them, or make"),
        (["a"], False, "encode them, or make"),
    ],
)
def test_the_mend_fits_what_came(given: Any, text: bool, mend: str) -> None:
    with pytest.raises(DtypeError, match=mend):
        rows_of(given, text)


@pytest.mark.parametrize("wrong", [[1], ["a", b"b"], ["a", 2.5], np.arange(3), 7, [["a"]]], ids=str)
def test_what_is_no_string_is_refused(wrong: Any) -> None:
    with pytest.raises(DtypeError, match="must be strings, as the table was made, got"):
        rows_of(wrong, True)


def test_a_surrogate_is_refused() -> None:
    with pytest.raises(DtypeError, match="lone surrogate"):
        rows_of(["a", "\ud800"], True)


def test_an_array_of_two_axes_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"shape \(n,\), got \(1, 2\)"):
        rows_of(np.array([["a", "b"]]), True)


def test_numbers_of_arrow_are_refused() -> None:
    with pytest.raises(DtypeError, match="Arrow data of format 'l'"):
        rows_of(pytest.importorskip("pyarrow").array([1]), True)


@pytest.mark.parametrize("fixed", [["a"], np.array(["a"]), np.arange(3), np.array(["a"], object), "a", None])
def test_what_has_a_fixed_width_is_known(fixed: Any) -> None:
    assert holds_text(fixed) is None


def test_a_frame_is_no_column() -> None:
    pa = pytest.importorskip("pyarrow")
    assert holds_text(pa.table({"a": ["x"]})) is None


class TestStringArray:
    @pytest.fixture
    def made(self) -> StringArray:
        given = rows_of([*STRINGS, None], True).owner
        assert isinstance(given, StringArray)
        return given

    def test_items(self, made: StringArray) -> None:
        expected = [*STRINGS, None]
        assert made.tolist() == list(made) == expected and made[-1] is None and made[2] == "hällo"
        assert [made[number] for number in range(len(made))] == expected and made[1:3] == expected[1:3]
        assert "hällo" in made and made.shape == (10,)

    def test_a_pickle(self, made: StringArray) -> None:
        assert pickle.loads(pickle.dumps(made, protocol=5)).tolist() == made.tolist()

    def test_as_numpy(self, made: StringArray) -> None:
        assert np.asarray(made).tolist() == made.tolist()
        assert np.asarray(rows_of(["a", "bc"], True).owner).tolist() == ["a", "bc"]

    def test_pyarrow_takes_it_over(self, made: StringArray) -> None:
        pa = pytest.importorskip("pyarrow")
        column = pa.array(made)
        column.validate(full=True)
        assert column.to_pylist() == made.tolist() and column.type == pa.large_string()
        assert column.buffers()[2].address == made.data.ctypes.data

    def test_polars_takes_it_over(self, made: StringArray) -> None:
        assert pytest.importorskip("polars").Series(made).to_list() == made.tolist()

    def test_what_was_given_out_is_let_go(self, made: StringArray) -> None:
        pa = pytest.importorskip("pyarrow")
        before = len(arrow._lent)
        column = pa.array(made)
        assert len(arrow._lent) > before
        del column
        made.__arrow_c_array__()  # capsules that nobody takes
        gc.collect()
        assert len(arrow._lent) == before


def test_a_stream_is_let_go() -> None:
    pa = pytest.importorskip("pyarrow")
    before = pa.total_allocated_bytes()
    column = pa.chunked_array([["x" * 100] * 1000, ["y" * 100] * 1000])
    rows = rows_of(column, True)
    del column
    assert items_of(rows)[-1] == "y" * 100
    del rows
    gc.collect()
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize(
    "texts",
    [
        ["", "a", "bc" * 9, "\x7f"],
        ["", ""],
        [],
        ["a\0", "b"],
        ["\0"],
        ["é", "a"],
        ["a"] * 50 + ["x" * 1000],
        [f"{number}" * (number % 4) for number in range(300)],
    ],
)
def test_strings_of_numpy(texts: list[str]) -> None:
    """Short strings of ASCII go another way than the others."""
    encoded = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([*map(len, encoded)], dtype=np.int64)]).astype(np.int64)
    made = np.asarray(StringArray(offsets, np.frombuffer(b"".join(encoded), np.uint8), True))
    assert made.tolist() == texts and made.shape == (len(texts),)
