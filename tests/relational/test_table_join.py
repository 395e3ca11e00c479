"""`join` with a table on the right side, beside lists of Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.engines import one_of_each
from warphash import DtypeError, HashMap, HashSet, MultiMap, ParameterError

ENGINES = one_of_each("cpu", "emulated", "cuda")
ROWS = {3: [30], 5: [50, 51, 52], 9: [90, 91]}
"""The rows of each key."""

LEFT = [5, 4, 3, 5, 4, 9, 9, 1]


def pairs_of(left: list[int], rows: dict[int, list[int]], how: str) -> list[tuple[int, int]]:
    alone = [-1] if how == "left" else []
    return [(i, row) for i, key in enumerate(left) for row in rows.get(key, alone)]


def listed(made: Any) -> list[tuple[int, int]]:
    return list(zip(np.asarray(made.left).tolist(), np.asarray(made.right).tolist(), strict=True))


def multimap(device: str) -> MultiMap[Any, Any]:
    pairs = [(key, row) for key, held in ROWS.items() for row in held]
    return MultiMap.from_arrays(*(np.array(column, "i8") for column in zip(*pairs, strict=True)), device=device)


def hashmap(device: str, value: str = "i8") -> HashMap[Any, Any]:
    return HashMap.from_arrays(
        np.array(list(ROWS), "i8"), np.array([held[0] for held in ROWS.values()], value), device=device
    )


@pytest.mark.parametrize("device", ENGINES)
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("left", [[], [4], [3], [1, 1], [9, 5], LEFT, LEFT * 70], ids=len)
@pytest.mark.parametrize("index_dtype", [None, "int32"])
def test_pairs_of_rows(device: str, left: list[int], how: Any, index_dtype: str | None) -> None:
    keys = np.array(left, "i8")
    made = warphash.join(keys, hashmap(device, "i4"), how, index_dtype=index_dtype)
    assert listed(made) == pairs_of(left, {key: held[:1] for key, held in ROWS.items()}, how)
    assert made.left.dtype == made.right.dtype == (index_dtype or "int64")
    if index_dtype is None:
        assert listed(warphash.join(keys, multimap(device), how)) == pairs_of(left, ROWS, how)


@pytest.mark.parametrize("device", ENGINES)
def test_rows_with_and_without_a_partner(device: str) -> None:
    keys = np.array(LEFT, "i8")
    some = {"semi": [i for i, key in enumerate(LEFT) if key in ROWS], "anti": [1, 4, 7]}
    of_keys = np.array(list(ROWS), "i8")
    tables = hashmap(device), multimap(device), HashSet.from_arrays(of_keys, device=device)
    for table in (*tables, HashMap.from_arrays(of_keys, of_keys / 2, device=device)):
        for how, rows in some.items():
            made = warphash.join(keys, table, how)  # type: ignore[arg-type]
            assert made.left.tolist() == rows and made.right is None


def test_keys_of_other_types_and_libraries() -> None:
    pd = pytest.importorskip("pandas")
    for keys in ([5, 4, 3], np.array([5.0, 4.5, 3.0]), pd.Series([5, None, 3])):
        made = warphash.join(keys, multimap("cpu"))
        assert listed(made) == [(0, 50), (0, 51), (0, 52), (2, 30)]
    names = HashMap.from_arrays(["a", "b"], np.arange(2))
    assert listed(warphash.join(["b", "c"], names, "left")) == [(0, 1), (1, -1)]


def test_a_saved_table_is_a_right_side(tmp_path: Any) -> None:
    hashmap("cpu").save(tmp_path / "rows")
    table = HashMap.load(tmp_path / "rows", device="cpu")
    assert listed(warphash.join(np.array([9, 4]), table)) == [(0, 90)]


def test_arrays_of_torch_stay_arrays_of_torch() -> None:
    torch = pytest.importorskip("torch")
    made = warphash.join(torch.tensor(LEFT), multimap("cpu"), "left")
    assert isinstance(made.left, torch.Tensor) and isinstance(made.right, torch.Tensor)
    assert listed(made) == pairs_of(LEFT, ROWS, "left")


@pytest.mark.parametrize("device", one_of_each("cuda"))
@pytest.mark.parametrize("how", ["inner", "left"])
def test_arrays_on_a_gpu(how: Any, device: str) -> None:
    torch = pytest.importorskip("torch")
    left = LEFT * 70
    for table, rows in ((hashmap(device), {key: held[:1] for key, held in ROWS.items()}), (multimap(device), ROWS)):
        made = warphash.join(torch.tensor(left, device=device), table, how)
        assert made.left.is_cuda and listed(type(made)(made.left.cpu(), made.right.cpu())) == pairs_of(left, rows, how)


def test_what_is_refused() -> None:
    keys, table = np.array([3, 3]), hashmap("cpu")
    for how in ("right", "outer"):
        with pytest.raises(ParameterError, match="Index"):
            warphash.join(keys, table, how)  # type: ignore[arg-type]
    for held in (HashMap.from_arrays(keys[:1], keys[:1] / 2), hashmap("cpu", "u8")):
        with pytest.raises(DtypeError, match="row numbers"):
            warphash.join(keys, held)
    with pytest.raises(DtypeError, match="row numbers"):
        warphash.join(keys, table, index_dtype="int32")
    with pytest.raises(ParameterError, match="has no rows"):
        warphash.join(keys, HashSet.from_arrays(keys[:1]))
    with pytest.raises(ParameterError, match="tuple of columns"):
        warphash.join((keys, keys), table)
    with pytest.raises(ParameterError, match="repeats the key"):
        warphash.join(keys, table, validate="1:1")
    assert listed(warphash.join(keys, table, validate="m:1")) == [(0, 30), (1, 30)]
    for wrong in ({"nulls": "equal"}, {"validate": "m:1"}):
        with pytest.raises(ParameterError, match="MultiMap may have several"):
            warphash.join(keys, multimap("cpu"), **wrong)  # type: ignore[arg-type]
