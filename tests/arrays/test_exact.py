"""Python values as items of a type: each exactly, or an error with a mend."""

from __future__ import annotations

import array
import datetime
import decimal
import fractions
from typing import Any

import numpy as np
import pytest

from warphash import DtypeError, ShapeError
from warphash.arrays.exact import exactly

NEW_YORK = datetime.timezone(datetime.timedelta(hours=-5))
TOKYO = datetime.timezone(datetime.timedelta(hours=9))
RECORD = [("a", "i4"), ("b", "S2")]
NESTED = [("a", "u1"), ("b", [("c", "i2", (2,)), ("d", "U1")])]


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([1, True, np.int8(3), 4.0, fractions.Fraction(5)], "u2", np.array([1, 1, 3, 4, 5], "u2")),
        (array.array("i", [1, 2]), "u4", np.array([1, 2], "u4")),
        (bytearray(b"ab"), "u1", np.array([97, 98], "u1")),
        ([np.array([1, 2]), (3, 4)], "u2", np.array([[1, 2], [3, 4]], "u2")),
        ([0.1, decimal.Decimal("0.5"), 3, float("inf")], "f4", np.array([0.1, 0.5, 3, np.inf], "f4")),
        (2 + 1j, "c8", np.array(2 + 1j, "c8")),
        ([0, True, 1.0], "?", np.array([False, True, True])),
        (["é", ""], "U1", np.array(["é", ""], "U1")),
        ([b"ab", "c"], "S2", np.array([b"ab", b"c"], "S2")),
        ([b"a\0", np.void(b"bc")], "V2", np.array([b"a\0", b"bc"], "V2")),
        ([(1, b"ab")], RECORD, np.array([(1, b"ab")], RECORD)),
        ((1, b"ab"), RECORD, np.array((1, b"ab"), RECORD)),
        ([(7, ([1, 2], "x"))], NESTED, np.array([(7, ([1, 2], "x"))], NESTED)),
        (datetime.date(2020, 1, 1), "M8[s]", np.array("2020-01-01", "M8[s]")),
        (["2020-01-01T00:00:00.000", "NaT"], "M8[s]", np.array(["2020-01-01", "NaT"], "M8[s]")),
        ([datetime.timedelta(seconds=2), np.timedelta64(1, "m")], "m8[s]", np.array([2, 60], "m8[s]")),
        ([], RECORD, np.empty(0, RECORD)),
        ([[], []], "u4", np.empty((2, 0), "u4")),
        ([1, 2.5], None, np.array([1, 2.5])),
        ([2**63, 1], None, np.array([2**63, 1], "u8")),
        ([np.uint64(1), np.int64(-1)], None, np.array([1, -1])),
        (
            [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 2)],
            None,
            np.array(["2020-01-01", "2020-01-02"], "M8[us]"),
        ),
        ([datetime.timedelta(1)], None, np.array([86_400 * 10**6], "m8[us]")),
        (datetime.datetime(2020, 1, 1, 9, tzinfo=TOKYO), "M8[s]", np.array("2020-01-01", "M8[s]")),
        ([datetime.datetime(2020, 1, 1, 9, tzinfo=TOKYO)], None, np.array(["2020-01-01"], "M8[us]")),
        (datetime.datetime(9999, 12, 31, 23, tzinfo=NEW_YORK), "M8[us]", np.array("10000-01-01T04", "M8[us]")),
        ([datetime.datetime(1, 1, 1, tzinfo=TOKYO)], None, np.array(["0000-12-31T15"], "M8[us]")),
        ([np.datetime64(0, "D"), np.datetime64(0, "Y")], "M8[ps]", np.array([0, 0], "M8[ps]")),
        (np.timedelta64(2 * 10**18, "as"), "m8[s]", np.array(2, "m8[s]")),
        (["2020-01-01T00:00Z", "2020-01-01T09:00+09:00"], "M8[s]", np.array(["2020-01-01"] * 2, "M8[s]")),
        ("2019-12-31T18:30:00-0530", "M8[s]", np.array("2020-01-01", "M8[s]")),
    ],
)
def test_what_a_type_holds(value: Any, dtype: Any, expected: np.ndarray) -> None:
    made = exactly(value, None if dtype is None else np.dtype(dtype))
    assert made.dtype == expected.dtype and made.shape == expected.shape
    assert made.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("value", "dtype", "says"),
    [
        (["abcd"], "U3", "make the table of U4"),
        ([b"abcd", b"abcdef"], "S3", "make the table of S4"),
        ([b"ab\0"], "S3", "make the table of V3"),
        ([b"ab"], "V3", "give 3 bytes"),
        (["é"], "S3", "leave it out"),
        ([b"ab"], "U3", "bytes"),
        ([12], "S3", "int"),
        ([1.5], "S3", "float"),
        ([5, 0, 7], "?", "got 5"),
        ("1", "i8", "str"),
        ([None], "f8", "None"),
        ([None], "M8[s]", "None"),
        (["1.5"], "f8", "str"),
        (2**53 + 1, "f8", "9007199254740993"),
        (np.uint64(2**64 - 1), "f4", "18446744073709551615"),
        (np.float64(2**64), "u8", "18446744073709551616|1.8446"),
        (np.float64(2**63), "i8", "9.2233"),
        (np.timedelta64(5, "s"), "i4", "timedelta64"),
        (np.timedelta64(5, "ns"), "f8", "timedelta64"),
        (np.datetime64(5, "ns"), "i8", "datetime64"),
        (1e40, "f4", r"1e\+40"),
        (1j, "f8", "complex"),
        ([(1.5, b"ab")], RECORD, "field 'a'"),
        ([(1, b"abc")], RECORD, "field 'b'"),
        ([(1,)], RECORD, "a tuple of 2 items"),
        ([[1, 2]], [("a", "i4"), ("b", "i4")], "a tuple of 2 items"),
        ([np.datetime64("2020-01-01T00:00:00.5")], "M8[s]", r"datetime64\[ms\]"),
        ([datetime.datetime(2020, 1, 1, 0, 0, 0, 5)], "M8[s]", r"datetime64\[us\]"),
        (["2020-01-01T00:00:00.5"], "M8[s]", r"datetime64\[ms\]"),
        ([np.datetime64(2**62, "D")], "M8[ns]", r"datetime64\[D\]"),
        ([np.datetime64(1, "D")], "M8[fs]", r"datetime64\[D\]"),
        (["2020-01-01Z"], "M8[s]", "ISO 8601"),
        (np.timedelta64(4800, "M"), "m8[D]", r"timedelta64\[M\]"),
        ("now", "M8[s]", "ISO 8601"),
        (5, "M8[s]", "numpy.datetime64"),
        (5, "m8[s]", "numpy.timedelta64"),
        ({1, 2}, "i4", "list"),
        (iter([1]), "i4", "list"),
        ({1: 2}, "i4", "tuple"),
        ([1, "a"], None, "one kind"),
        ([b"a", 1], None, "one kind"),
        ([2**63 + 1, -1], None, r"n.to_bytes\(9, 'little', signed=True\) for n in values\], 'V9'"),
        ([np.uint64(2**63), np.int64(-1)], None, "9223372036854775808"),
        ([2**64], None, "18446744073709551616: give the bytes"),
        (["abc", "abc\0"], None, "keys of type 'str'"),
        ([b"ab\0", b"cd\0"], None, "make the table of V3"),
        ([object()], None, "one type"),
        ([], None, "numpy.empty"),
    ],
)
def test_what_a_type_does_not_hold(value: Any, dtype: Any, says: str) -> None:
    with pytest.raises(DtypeError, match=says):
        exactly(value, None if dtype is None else np.dtype(dtype))


def test_pandas_times_keep_their_nanoseconds() -> None:
    pd = pytest.importorskip("pandas")
    moment = pd.Timestamp("2020-01-01T00:00:00.000000001")
    assert exactly([moment], np.dtype("M8[ns]"))[0] == moment.to_datetime64()
    with pytest.raises(DtypeError, match="ns"):
        exactly([moment], np.dtype("M8[us]"))
    assert np.isnat(exactly([pd.NaT], np.dtype("M8[ns]"))[0])


def test_rows_of_different_lengths() -> None:
    with pytest.raises(ShapeError, match="one length"):
        exactly([[1, 2], [3]], np.dtype("u4"))


def test_bytes_between_fields_are_zero() -> None:
    padded = np.dtype([("a", "u1"), ("b", "i8")], align=True)
    assert exactly([(1, 2)] * 50, padded).tobytes() == (b"\1" + bytes(7) + b"\2" + bytes(7)) * 50


def test_a_span_is_no_integer_among_integers_of_any_size() -> None:
    """NumPy's spans are integers to `numbers`, and no type of NumPy has both."""
    with pytest.raises(DtypeError, match="no NumPy type in common"):
        exactly([2**63, np.timedelta64(0, "D")], None)
