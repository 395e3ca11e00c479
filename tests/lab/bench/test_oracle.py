"""Tests of the oracle: it counts every kind of wrong answer."""

import numpy as np
import pytest

from support.elsewhere import ELSEWHERE
from warphash.lab.bench.oracle import Oracle

KEYS = np.array([9, 3, 7, 2**32 - 1, 0], np.uint32)
VALUES = np.array([90, 30, 70, 1, 2], np.uint32)
ASKED = np.array([3, 4, 0, 2**32 - 1], np.uint32)
RIGHT = np.array([30, 0, 2, 1], np.uint32), np.array([True, False, True, True])


def test_right_answers_pass():
    oracle = Oracle(KEYS, VALUES)
    assert oracle.check_find(ASKED, *RIGHT) == 0
    assert oracle.check_items(KEYS[::-1], VALUES[::-1]) == 0


@pytest.mark.parametrize("at", [0, 2, 3])
def test_a_wrong_value_is_one_mismatch(at):
    values = RIGHT[0].copy()
    values[at] += 1
    assert Oracle(KEYS, VALUES).check_find(ASKED, values, RIGHT[1]) == 1


@pytest.mark.parametrize("at", range(4))
def test_a_wrong_flag_is_one_mismatch(at):
    found = RIGHT[1].copy()
    found[at] ^= True
    assert Oracle(KEYS, VALUES).check_find(ASKED, RIGHT[0], found) == 1


def test_the_value_of_an_absent_key_is_free():
    values = RIGHT[0].copy()
    values[1] = 12345
    assert Oracle(KEYS, VALUES).check_find(ASKED, values, RIGHT[1]) == 0


def test_missing_answers_are_mismatches():
    assert Oracle(KEYS, VALUES).check_find(ASKED, RIGHT[0][:2], RIGHT[1][:2]) > 0


def test_lost_doubled_and_invented_items():
    oracle = Oracle(KEYS, VALUES)
    assert oracle.check_items(KEYS[1:], VALUES[1:]) == 1
    assert oracle.check_items(np.r_[KEYS, KEYS[:1]], np.r_[VALUES, VALUES[:1]]) == 1
    assert oracle.check_items(np.r_[KEYS[1:], np.uint32(5)], VALUES) == 1
    assert oracle.check_items(KEYS, np.roll(VALUES, 1)) == 5


def test_any_value_of_a_repeated_key_is_right_and_no_other():
    keys = np.array([5, 5, 6, 5], np.int64)
    values = np.array([1, 2, 3, 4], np.uint32)
    oracle = Oracle(keys, values)
    assert oracle.distinct == 2
    for value, mismatches in ((1, 0), (2, 0), (4, 0), (3, 1), (9, 1)):
        pair = np.array([5, 6], np.int64), np.array([value, 3], np.uint32)
        assert oracle.check_items(*pair) == mismatches
        assert oracle.check_find(pair[0], pair[1], np.array([True, True])) == mismatches


def test_an_empty_table_has_nothing():
    oracle = Oracle(KEYS[:0], VALUES[:0])
    assert oracle.check_find(ASKED, np.zeros(4, np.uint32), np.zeros(4, bool)) == 0
    assert oracle.check_find(ASKED, np.zeros(4, np.uint32), np.ones(4, bool)) == 4
    assert oracle.check_items(KEYS[:0], VALUES[:0]) == 0


def test_a_set_has_no_values():
    oracle = Oracle(KEYS, None)
    assert oracle.check_find(ASKED, None, RIGHT[1]) == 0
    assert oracle.check_items(KEYS, None) == 0


@pytest.mark.parametrize("repeats", [1, 3])
def test_an_oracle_works_where_its_arrays_are(repeats: int) -> None:
    rng = np.random.default_rng(2)
    keys, values = np.repeat(rng.permutation(500).astype(np.uint32), repeats), rng.integers(0, 9, 500 * repeats)
    oracle, other = Oracle(keys, values), Oracle(keys, values, arrays=ELSEWHERE)
    asked, found = np.arange(1000, dtype=np.uint32), np.arange(1000) < 500
    right = np.zeros(1000, int)
    right[keys] = values  # the last one of each key
    for wrong in (0, 1, 7):
        answers = right.copy()
        answers[:wrong] += 10
        assert oracle.check_find(asked, answers, found) == other.check_find(asked, answers, found) == wrong
    assert other.check_find(asked, right, ~found) == 1000
    items = np.unique(keys)
    assert oracle.check_items(items, right[items]) == other.check_items(items, right[items]) == 0
    assert oracle.check_items(items[2:], right[items[2:]]) == other.check_items(items[2:], right[items[2:]]) == 2
    assert other.check_items(items, right[items] + 10) == 500
