"""Numbers of 32 bits: the same as those of 64 bits, for all kinds of arrays and columns and all ways of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warphash
from support.relational import KINDS, Kind, items_of, lists_of, shown

few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
kinds = pytest.mark.parametrize("kind", KINDS, ids=str)


def assert_narrow(made: Any, expected: Any) -> None:
    """The numbers are int32, of the library and with the values of the others."""
    assert type(made).__module__ == type(expected).__module__
    assert (np.asarray(made).dtype, np.asarray(expected).dtype) == (np.int32, np.int64)
    np.testing.assert_array_equal(np.asarray(made), np.asarray(expected))


@kinds
@few
@given(data=st.data())
def test_unique(kind: Kind, data: st.DataObject) -> None:
    array = kind.make(data.draw(lists_of(kind)))
    options: dict[str, bool] = {name: data.draw(st.booleans()) for name in ("sorted", "equal_nan")}
    values, *narrow = warphash.unique(array, True, True, True, index_dtype="int32", **options)
    expected, *wide = warphash.unique(array, True, True, True, **options)
    assert shown(items_of(values)) == shown(items_of(expected))
    for made, numbers in zip(narrow, wide, strict=True):
        assert_narrow(made, numbers)


@kinds
@pytest.mark.parametrize("nulls", ["drop", "key"])
@few
@given(data=st.data())
def test_factorize(kind: Kind, nulls: Any, data: st.DataObject) -> None:
    array, sort = kind.make(data.draw(lists_of(kind))), data.draw(st.booleans())
    codes, uniques = warphash.factorize(array, sort=sort, nulls=nulls, index_dtype=np.int32)
    expected, others = warphash.factorize(array, sort=sort, nulls=nulls, index_dtype=np.dtype("i8"))
    assert_narrow(codes, expected)
    assert shown(items_of(uniques)) == shown(items_of(others))


@pytest.fixture(params=["int32", "int64"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The type in which an index keeps positions, also that of more keys than a test has."""
    monkeypatch.setattr("warphash.relational.matches.narrowest_index_type", lambda n: np.dtype(request.param))


@kinds
@pytest.mark.usefixtures("kept")
@few
@given(data=st.data())
def test_index(kind: Kind, data: st.DataObject) -> None:
    index, sought = (kind.make(data.draw(lists_of(kind))) for _ in range(2))
    known = warphash.Index(index)
    (narrow, missing), (wide, _) = (known.get_indexer_non_unique(sought, index_dtype=name) for name in ("int32", None))
    assert_narrow(narrow, wide)
    assert np.asarray(missing).dtype == np.int64
    if known.is_unique:
        assert_narrow(known.get_indexer(sought, index_dtype="int32"), known.get_indexer(sought))


@pytest.mark.parametrize("distinct", [10, 5_000, 100_000])
def test_many_elements(distinct: int) -> None:
    """More than one way of the kernels, in rows of each."""
    numbers = np.random.default_rng(5).integers(0, distinct, 300_000)
    apart = numbers * 2**40
    inputs: list[tuple[Any, int | None]] = [
        (numbers, None),
        (apart, None),
        (numbers.astype("S12"), None),
        (np.where(numbers % 7, numbers / 4, np.nan), None),
        (np.stack((numbers, apart), 1), 0),
        ((numbers, numbers % 3, apart), None),
    ]
    for elements, axis in inputs:
        _, *narrow = warphash.unique(elements, True, True, True, axis, index_dtype="int32")
        _, *wide = warphash.unique(elements, True, True, True, axis)
        for made, expected in zip(narrow, wide, strict=True):
            assert_narrow(made, expected)


def test_no_elements() -> None:
    made = warphash.unique(np.empty(0, "i8"), True, True, True, sorted=True, index_dtype="int32")
    assert [len(part) for part in made] == [0] * 4 and {part.dtype for part in made[1:]} == {np.dtype(np.int32)}


@pytest.mark.parametrize("index_dtype", ["uint32", "int16", "number", 7, np.float64])
def test_other_types_are_refused(index_dtype: Any) -> None:
    index = warphash.Index([1, 2])
    for verb in (warphash.unique, warphash.factorize, index.get_indexer, index.get_indexer_non_unique):
        with pytest.raises(warphash.ParameterError, match="'int32' or 'int64'"):
            verb([1, 2], index_dtype=index_dtype)


def test_more_elements_than_int32_numbers_are_refused() -> None:
    many = np.zeros(2**31, np.int8)  # memory that is never touched
    for verb in (warphash.unique, warphash.factorize):
        with pytest.raises(warphash.ParameterError, match=r"at most 2,147,483,647 elements, got 2,147,483,648"):
            verb(many, index_dtype="int32")
