"""The pairs of a table: `items` as a mapping has them, `to_arrays` as two arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from support.cases import Case, MultiCase
from support.types import Array, as_bytes
from warphash import HashMap, HashSet, MultiMap

NOT_HASHABLE = ("rows", "V12")
"""Keys that Python cannot hash: arrays, and NumPy's bytes without fields."""


def named(pairs: Iterable[tuple[Any, Any]]) -> Counter[tuple[bytes, bytes]]:
    return Counter((np.asarray(key).tobytes(), _named_value(value)) for key, value in pairs)


def _named_value(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else np.asarray(value).tobytes()


def check_pairs(table: Any, keys: Array, values: Array) -> None:
    expected = Counter(zip(as_bytes(keys), as_bytes(values), strict=True))
    view = table.items()
    for _ in range(2):
        assert len(view) == len(keys) and named(view) == expected
    held = table.to_arrays()
    for column, given in zip(held, (keys, values), strict=True):
        assert (column.dtype, column.shape) == (given.dtype, given.shape)
    assert Counter(zip(*map(as_bytes, held), strict=True)) == expected
    # Two scans of lists on a GPU come in two orders.
    for column, given in ((table.keys(), held[0]), (table.values(), held[1])):
        assert Counter(as_bytes(column)) == Counter(as_bytes(given))


def test_a_map_has_pairs(case: Case, rng: np.random.Generator) -> None:
    """Of two pairs, two arrays of two elements would pass for a mapping's items, and pair key with key."""
    if case.is_set:
        table = case.table()
        assert not hasattr(table, "items") and not hasattr(table, "to_arrays"), "a set has keys alone"
        return
    keys, values = case.keys(2, rng), case.values(2, rng)
    table = case.from_arrays(keys, values)
    check_pairs(table, keys, values)
    if case.key not in NOT_HASHABLE:
        assert named(dict(table.items()).items()) == named(zip(keys, values, strict=True))
        assert len({*table}) == 2
    check_pairs(HashMap.from_arrays(*table.to_arrays(), device=case.engine), keys, values)


def test_a_multimap_has_pairs(multi_case: MultiCase, rng: np.random.Generator) -> None:
    keys, values = multi_case.keys(2, rng), multi_case.values(2, rng)
    table = multi_case.from_arrays(keys, values)
    check_pairs(table, keys, values)
    table.insert(keys[:1], values[1:])
    keys, values = np.concatenate([keys, keys[:1]]), np.concatenate([values, values[1:]])
    check_pairs(table, keys, values)
    check_pairs(MultiMap.from_arrays(*table.to_arrays(), device=multi_case.engine), keys, values)


def test_each_iteration_is_of_the_table_as_it_is_then() -> None:
    table = HashMap.from_arrays(np.array([1, 2]), np.array([10, 20]), device="cpu")
    view = table.items()
    under_way = iter(view)
    table.insert([3], [30])
    assert sorted(under_way) == [(1, 10), (2, 20)]
    assert len(view) == 3 and sorted(view) == [(1, 10), (2, 20), (3, 30)]
    assert (3, 30) in view and (3, 10) not in view and 3 not in view
    assert repr(view).startswith("<items of <HashMap key=int64, value=int64: 3 keys")
    table.clear()
    assert len(view) == 0 and list(view) == [] and dict(view) == {}


def test_a_pair_is_of_numpy_scalars() -> None:
    ((key, value),) = HashMap.from_arrays(np.array([7], "u4"), np.array([0.5], "f4"), device="cpu").items()
    assert type(key) is np.uint32 and type(value) is np.float32


@pytest.mark.parametrize("rows", [True, False])
def test_keys_of_an_iteration_are_read_only(rows: bool) -> None:
    """So that those with fields can be hashed; and writing to a row of a snapshot would change no key."""
    keys = np.array([[1, 2], [3, 4]]) if rows else np.array([(1, 2), (3, 4)], [("a", "i8"), ("b", "i8")])
    for table in (HashMap.from_arrays(keys, np.arange(2), device="cpu"), HashSet.from_arrays(keys, device="cpu")):
        for key in table:
            with pytest.raises(ValueError, match="read-only"):
                key[0] = 5


def test_a_pair_with_rows_is_found() -> None:
    keys, values = np.array([[1, 2], [3, 4]]), np.array([[0.5], [0.25]])
    view = HashMap.from_arrays(keys, values, device="cpu").items()
    assert (keys[1], values[1]) in view and (keys[1], values[0]) not in view
