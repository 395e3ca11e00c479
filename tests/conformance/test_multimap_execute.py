"""Mixed batches on a MultiMap, on every engine, design of lists and type."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from support.cases import Case, list_designs, only
from support.mixed import Recorder
from support.multi_model import MultiModel
from support.types import Array, as_bytes, as_type, special_keys
from warphash import DtypeError, MultiMap, Operation, ParameterError, ShapeError, TableFull

FIND, INSERT, ASSIGN, ERASE = Operation
KNOWN = np.array([FIND, INSERT, ERASE], np.uint8)


def pool_of(case: Case, rng: np.random.Generator, n: int) -> Array:
    """Keys, and the patterns that slots use themselves."""
    return np.concatenate([case.keys(n, rng), special_keys(case.key_dtype)])


def values_of(case: Case, n: int, first: int = 0) -> Array:
    """Values that differ as far as the type goes."""
    raw = np.arange(first, first + n, dtype="<u8").view(np.uint8).reshape(n, 8)
    return as_type(raw[:, : case.value_dtype.itemsize], case.value_dtype)


def determined(table: Any, model: MultiModel, operations: Array, keys: Array, values: Array) -> None:
    """Run a batch in which no key has more than one operation, and check all its answers."""
    found, flags = table.execute(operations, keys, values, default=0)
    assert flags.dtype == bool and flags.shape == keys.shape[:1] and found.dtype == values.dtype
    default = np.zeros(1, values.dtype).tobytes()
    rows: Any = zip(operations.tolist(), *map(as_bytes, (keys, values, found)), flags.tolist(), strict=True)
    for operation, name, value, answer, flag in rows:
        held = model.values.get(name, [])
        assert flag == (operation == INSERT or bool(held)), (Operation(operation), name)
        assert answer == (held[0] if operation == FIND and held else default)
        left = [*held, value] if operation == INSERT else held[1:] if operation == ERASE else held
        model.values.pop(name, None)
        if left:
            model.values[name] = left


def test_one_operation_a_key(list_case: Case, rng: np.random.Generator) -> None:
    """Lists get longer and are flushed, pools grow, and tables are rebuilt between the batches."""
    keys = pool_of(list_case, rng, 60 if list_case.engine == "emulated" else 400)
    table, model = list_case.table(capacity=4), MultiModel()
    written = 0
    for number in range(9 if list_case.engine == "emulated" else 40):
        batch = rng.permutation(keys)[: len(keys) // (1 + number % 3)]
        operations = rng.choice(KNOWN, len(batch), p=[0.2, 0.3, 0.5] if number % 3 == 2 else [0.2, 0.6, 0.2])
        determined(table, model, operations, batch, values_of(list_case, len(batch), written))
        written += len(batch)
        assert len(table) == len(model)
    model.agrees(table, keys)


@only(lambda list_case: list_case.value_dtype.itemsize >= 4)  # all values of the recorder differ
def test_every_batch_has_an_order(list_case: Case, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many operations on a key, by several threads: each key's answers are those of some order of them."""
    monkeypatch.setenv("WARPHASH_NUM_THREADS", "2")
    recorder = Recorder(list_case, list_case.table(capacity=4))
    if list_case.engine == "emulated":
        keys = pool_of(list_case, rng, 10)
        for n in (50, 300, 100):
            recorder.execute(*recorder.drawn(keys, n, rng))
    else:
        keys = pool_of(list_case, rng, 4000)
        keys = keys[: len(keys) // 8 * 8]
        for _ in range(3):
            # Two threads of the CPU walk half of the batch each, at the same time: both meet a key in the same window.
            halves = [
                rng.permuted(np.repeat(np.arange(len(keys)), 5).reshape(-1, 40), axis=1).ravel() for _ in range(2)
            ]
            batch = np.concatenate(halves)
            assert len(batch) > 1 << 15, "work for one thread"
            recorder.execute(rng.choice(KNOWN, len(batch)), keys[batch])
    recorder.table.check()


def test_pairs_of_one_key(list_case: Case, rng: np.random.Generator) -> None:
    """A long list, to which pairs are appended by its tail while others are erased from its front."""
    n = {"emulated": 60, "cpu": 1000, "cuda": 1000}[list_case.engine]
    keys = pool_of(list_case, rng, 3)
    table, model = list_case.table(capacity=4), MultiModel()
    one, two = np.repeat(keys[:1], n, axis=0), np.repeat(keys[1:2], n, axis=0)
    for batch in (one, two):
        values = values_of(list_case, n)
        table.insert(batch, values)
        model.inserted(batch, values, table)
    batch = np.concatenate([one, two, keys])
    operations = np.repeat([INSERT, ERASE, FIND], [n, n, len(keys)]).astype(np.uint8)
    values = values_of(list_case, len(batch), 2 * n)
    found, flags = table.execute(operations, batch, values)
    assert flags[: 2 * n + 1].all() and as_bytes(found[2 * n : 2 * n + 1]) == model.values[as_bytes(keys)[0]][:1]
    model.erased(two, flags[n : 2 * n])
    model.inserted(one, values[:n], table)
    model.agrees(table, keys)


def test_full_table_does_what_it_can(list_case: Case, rng: np.random.Generator) -> None:
    """TableFull names the keys of the pairs that found no room; everything else has happened."""
    keys = list_case.keys(40, rng)
    table, model = list_case.table(capacity=40, on_full="raise"), MultiModel()
    values = values_of(list_case, len(keys))
    table.insert(keys, values)
    model.inserted(keys, values, table)
    batch = np.concatenate([keys, np.repeat(keys[20:], 40, axis=0)])
    operations = np.full(len(batch), INSERT, np.uint8)
    operations[:10], operations[10:20] = FIND, ERASE
    values = values_of(list_case, len(batch), 100)
    with pytest.raises(TableFull, match="all other operations are done") as caught:
        table.execute(operations, batch, values)
    left = Counter(as_bytes(np.asarray(caught.value.keys)))
    assert left and set(left) <= set(as_bytes(keys[20:]))
    model.erased(keys[10:20], np.ones(10, bool))
    asked = Counter(as_bytes(batch[20:]))
    added = {name: n - left[name] for name, n in asked.items()}
    np.testing.assert_array_equal(table.count(keys[20:]), [1 + added[name] for name in as_bytes(keys[20:])])
    assert len(table) == 40 - 10 + sum(added.values())
    table.check()
    determined(table, model, np.full(10, FIND, np.uint8), keys[:10], values_of(list_case, 10))
    # The room of erased pairs is found again.
    table.erase_all(keys)
    assert len(table) == 0
    model = MultiModel()
    determined(table, model, np.full(20, INSERT, np.uint8), keys[:20], values_of(list_case, 20))
    model.agrees(table, keys)


def test_default_and_no_values(list_case: Case, rng: np.random.Generator) -> None:
    """Without inserts, values need not be there; what is not found has the default."""
    keys = pool_of(list_case, rng, 30)
    values = values_of(list_case, 20, 1)
    table, model = list_case.from_arrays(keys[:20], values), MultiModel()
    model.inserted(keys[:20], values, table)
    operations = np.where(np.arange(len(keys)) % 2, FIND, ERASE).astype(np.uint8)
    found, flags = table.execute(operations, keys, default=77)
    has_one = flags & (operations == FIND)
    assert (found[~has_one] == 77).all() and has_one.sum() == 10
    np.testing.assert_array_equal(found[has_one], values[has_one[:20]])
    model.erased(keys[operations == ERASE], flags[operations == ERASE])
    model.agrees(table, keys)
    for nothing in (np.empty(0, np.uint8), []):
        found, flags = table.execute(nothing, keys[:0], values[:0])
        assert found.shape == flags.shape == (0,)
    model.agrees(table, keys)


# ---- wrong input
SMALL = np.arange(30, dtype=np.uint32)


@pytest.fixture(params=list_designs())
def table(request: pytest.FixtureRequest) -> MultiMap:
    return MultiMap.from_arrays(SMALL, SMALL + 1, design=request.param, device="cpu", seed=2)


def unchanged(table: MultiMap) -> None:
    model = MultiModel()
    model.inserted(SMALL, SMALL + 1, table)
    model.agrees(table, SMALL + 15)


@pytest.mark.parametrize("operations", [[ASSIGN] * 3, [FIND, ASSIGN, INSERT]], ids=str)
def test_an_assign_is_refused(table: MultiMap, operations: list[Operation]) -> None:
    for given in (operations, np.array(operations, np.uint8)):
        with pytest.raises(ParameterError, match="a MultiMap has no ASSIGN: nothing was done"):
            table.execute(given, SMALL[:3], SMALL[:3])
        unchanged(table)


@pytest.mark.parametrize("numbers", [[4], [0, 1, 3, 255]])
def test_a_number_that_is_no_operation(table: MultiMap, numbers: list[int]) -> None:
    operations = np.full(20, ERASE, np.uint8)
    operations[: len(numbers)] = numbers
    with pytest.raises(ParameterError, match=f"got {max(numbers)}: nothing was done"):
        table.execute(operations, SMALL[:20], SMALL[:20])
    unchanged(table)


def test_inserts_without_values(table: MultiMap) -> None:
    for operations in ([INSERT], [FIND, ERASE, INSERT], [INSERT] * 20):
        with pytest.raises(ParameterError, match=f"need values, got none for {operations.count(INSERT)}: nothing"):
            table.execute(operations, SMALL[: len(operations)] + 20)
        unchanged(table)


def test_arrays_that_do_not_fit(table: MultiMap) -> None:
    inserts = np.full(3, INSERT, np.uint8)
    for n, m in ((2, 3), (4, 3), (0, 3), (3, 2), (3, 0)):
        with pytest.raises(ShapeError, match="one length"):
            table.execute(np.full(n, INSERT, np.uint8), SMALL[:3], SMALL[:m])
        unchanged(table)
    for dtype in ("f4", "i4", "u8", "i2", "S4", bool):  # of numbers, such as do not fit
        wrong = np.ones(3, np.uint32).astype(dtype)
        if wrong.dtype.kind in "iuf":
            wrong = np.full(3, {"f": 0.5, "i": -1, "u": 2**32}[wrong.dtype.kind], dtype)
        for keys, values in ((SMALL[:3], wrong), (wrong, SMALL[:3])):
            with pytest.raises(DtypeError):
                table.execute(inserts, keys, values)
            unchanged(table)
    for operations in (None, ["find"] * 3, [0.5] * 3, np.full(3, 0.5)):
        with pytest.raises((DtypeError, ShapeError)):
            table.execute(operations, SMALL[:3], SMALL[:3])
        unchanged(table)
    for default in ("x", None, -1, 2**32, 1.5):
        with pytest.raises(DtypeError, match="default"):
            table.execute(np.full(3, ERASE, np.uint8), SMALL[:3], default=default)
        unchanged(table)
