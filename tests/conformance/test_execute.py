"""Mixed batches, on every engine, design that has them and type that lies in its slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.cases import Case, design_names, mixed_designs, wide_mixed_designs
from support.mixed import Recorder
from support.model import Model
from support.types import Array, as_bytes, special_keys
from warphash import (
    DtypeError,
    HashMap,
    HashSet,
    Operation,
    ParameterError,
    ShapeError,
    TableFull,
    UnsupportedVerb,
    WarphashError,
)
from warphash.designs import registry

FIND, INSERT, ASSIGN, ERASE = Operation


def executed(table: Any, operations: Array, keys: Array, values: Array | None, **options: Any) -> tuple[Any, Array]:
    """What finds found, None of a set, and the flags."""
    operations = np.asarray(operations, np.uint8)
    return (
        (None, table.execute(operations, keys))
        if values is None
        else table.execute(operations, keys, values, **options)
    )


def determined(
    model: Model, operations: Array, keys: Array, values: Array | None, found: Array | None, flags: Array
) -> None:
    """Follow a batch in which no key has more than one operation, and check all its answers."""
    assert flags.dtype == bool and flags.shape == keys.shape[:1]
    default = b"" if found is None else np.zeros(found.shape[1:], found.dtype).tobytes()
    brought = [b""] * len(keys) if values is None else as_bytes(values)
    seen = [b""] * len(keys) if found is None else as_bytes(found)
    for operation, name, value, answer, flag in zip(
        operations.tolist(), as_bytes(keys), brought, seen, flags.tolist(), strict=True
    ):
        there = name in model.pairs
        assert flag == (there if operation in (FIND, ERASE) else not there), (Operation(operation), name)
        assert answer == (model.pairs[name] if operation == FIND and there else default)
        if operation == ASSIGN or (operation == INSERT and not there):
            model.pairs[name] = value
        elif operation == ERASE:
            model.pairs.pop(name, None)


def pool_of(case: Case, rng: np.random.Generator, n: int | None = None) -> Array:
    """Keys, and the patterns that slots use themselves."""
    return np.concatenate([case.keys(n or case.n, rng), special_keys(case.key_dtype)])


def test_one_operation_a_key(mixed_case: Case, rng: np.random.Generator) -> None:
    """Lists get longer and are flushed, pools grow, and tables are rebuilt between the batches."""
    keys = pool_of(mixed_case, rng)
    table, model = mixed_case.table(capacity=4), Model(mixed_case.is_set)
    for number in range(6 if mixed_case.engine == "emulated" else 12):
        batch = rng.permutation(keys)[: len(keys) // (1 + number % 3)]
        operations = rng.choice(4, len(batch), p=[0.1, 0.3, 0.2, 0.4] if number % 2 else [0.2, 0.4, 0.3, 0.1])
        values = mixed_case.values(len(batch), rng)
        determined(model, operations, batch, values, *executed(table, operations, batch, values))
        assert len(table) == len(model)
    model.agrees(table, keys)


def test_of_many_batches_each_begins_where_the_last_ended(mixed_case: Case, rng: np.random.Generator) -> None:
    """Small ones, of which a GPU's caller waits for none: erased slots are dropped and the pool grows all the same."""
    keys = pool_of(mixed_case, rng, 60)
    table, model = mixed_case.table(capacity=4), Model(mixed_case.is_set)
    for number in range(40 if mixed_case.engine == "emulated" else 200):
        batch = rng.permutation(keys)[:50]
        operations = np.full(50, (INSERT, ERASE)[number % 2]) if number % 4 > 1 else rng.choice(4, 50)
        values = mixed_case.values(len(batch), rng)
        determined(model, operations, batch, values, *executed(table, operations, batch, values))
    model.agrees(table, keys)


def test_every_batch_has_an_order(mixed_case: Case, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many operations on a key, by several threads: each key's answers are those of some order of them."""
    monkeypatch.setenv("WARPHASH_NUM_THREADS", "2")
    recorder = Recorder(mixed_case, mixed_case.table(capacity=4))
    if mixed_case.engine == "emulated":
        keys = pool_of(mixed_case, rng, 10)
        for n in (50, 300, 100):
            recorder.execute(*recorder.drawn(keys, n, rng))
    else:
        keys = pool_of(mixed_case, rng, 4000)
        keys = keys[: len(keys) // 8 * 8]
        recorder.execute(np.full(len(keys) // 2, INSERT, np.uint8), keys[::2])
        # Two threads of the CPU walk half of the batch each, at the same time: both meet a key in the same window.
        halves = [rng.permuted(np.repeat(np.arange(len(keys)), 5).reshape(-1, 40), axis=1).ravel() for _ in range(2)]
        batch = np.concatenate(halves)
        assert len(batch) > 1 << 15, "work for one thread"
        recorder.execute(rng.choice(4, len(batch)).astype(np.uint8), keys[batch])
    recorder.table.check()


def test_full_table_does_what_it_can(mixed_case: Case, rng: np.random.Generator) -> None:
    """TableFull names the keys that found no room; everything else has happened."""
    keys = pool_of(mixed_case, rng, 600)
    present, new = keys[:40], keys[40:]
    values = mixed_case.values(len(present), rng)
    table = mixed_case.from_arrays(present, values, capacity=40, on_full="raise")
    model = Model(mixed_case.is_set)
    model.inserted(present, values, np.ones(len(present), bool))
    batch = np.concatenate([present, new])
    operations = np.full(len(batch), INSERT)
    operations[:10], operations[10:20], operations[20:30] = FIND, ASSIGN, ERASE
    values = mixed_case.values(len(batch), rng)
    with pytest.raises(TableFull, match="all other operations are done") as caught:
        executed(table, operations, batch, values)
    left = set(as_bytes(np.asarray(caught.value.keys)))
    assert left and left <= set(as_bytes(new)) and len(left) == len(caught.value.keys)
    happened = np.array([name not in left for name in as_bytes(batch)])
    follow = Model(mixed_case.is_set)
    follow.pairs = dict(model.pairs)
    for operation, name, value in zip(
        operations[happened].tolist(),
        as_bytes(batch[happened]),
        [b""] * int(happened.sum()) if values is None else as_bytes(values[happened]),
        strict=True,
    ):
        if operation == ASSIGN or (operation == INSERT and name not in follow.pairs):
            follow.pairs[name] = value
        elif operation == ERASE:
            del follow.pairs[name]
    follow.agrees(table, keys)
    # The room of erased keys is found again.
    gone = np.asarray(table.keys())
    values = mixed_case.values(len(gone), rng)
    determined(
        follow, np.full(len(gone), ERASE), gone, values, *executed(table, np.full(len(gone), ERASE), gone, values)
    )
    again = np.asarray(caught.value.keys)[:20]
    values = mixed_case.values(len(again), rng)
    determined(follow, np.full(20, INSERT), again, values, *executed(table, np.full(20, INSERT), again, values))
    follow.agrees(table, keys)


def test_empty_batch(mixed_case: Case, rng: np.random.Generator) -> None:
    keys = pool_of(mixed_case, rng, 20)
    values = mixed_case.values(len(keys), rng)
    table, model = mixed_case.from_arrays(keys, values), Model(mixed_case.is_set)
    model.inserted(keys, values, np.ones(len(keys), bool))
    found, flags = executed(table, np.empty(0, np.uint8), keys[:0], mixed_case.values(0, rng))
    assert flags.shape == (0,) and (found is None or len(found) == 0)
    model.agrees(table)


def test_default_and_no_values(mixed_case: Case, rng: np.random.Generator) -> None:
    """Without inserts and assigns, values need not be there; what is not found has the default."""
    keys = pool_of(mixed_case, rng, 40)
    values = mixed_case.values(len(keys), rng)
    table, model = mixed_case.from_arrays(keys[:24], None if values is None else values[:24]), Model(mixed_case.is_set)
    model.inserted(keys[:24], None if values is None else values[:24], np.ones(24, bool))
    operations = np.where(np.arange(len(keys)) % 2, FIND, ERASE)
    if mixed_case.is_set:
        determined(model, operations, keys, None, *executed(table, operations, keys, None))
    else:
        base, shape = mixed_case.value_dtype.base, mixed_case.value_dtype.shape
        default = base.type(77) if base.kind in "iuf" else 0
        row = np.full((1, *shape), default) if default else np.zeros((1, *shape), base)
        found, flags = table.execute(operations.astype(np.uint8), keys, default=default)
        has_one = flags & (operations == FIND)
        assert set(as_bytes(found[~has_one])) == set(as_bytes(row)) and has_one.any()
        np.testing.assert_array_equal(found[has_one], values[has_one])
        model.erased(keys[operations == ERASE], flags[operations == ERASE])
    model.agrees(table, keys)


# ---- wrong input
KEYS = np.arange(30, dtype=np.uint32)


@pytest.mark.parametrize("design", sorted(set(design_names()) - set(mixed_designs())))
def test_designs_without_mixed_batches(design: str) -> None:
    operations = np.zeros(30, np.uint8)
    for verb in (
        lambda: HashMap("u4", "u4", design=design, device="cpu").execute(operations, KEYS),
        lambda: HashSet("u4", design=design, device="cpu").execute(operations, KEYS),
    ):
        with pytest.raises(UnsupportedVerb, match="these have: slab, lock_free_chaining"):
            verb()


@pytest.mark.parametrize("design", [name for name in design_names() if "flush" not in registry.get(name).capabilities])
def test_designs_without_a_flush(design: str) -> None:
    with pytest.raises(UnsupportedVerb, match="these have: slab, lock_free_chaining"):
        HashMap("u4", "u4", design=design, device="cpu").flush()


@pytest.fixture(params=mixed_designs())
def table(request: pytest.FixtureRequest) -> HashMap:
    return HashMap.from_arrays(KEYS, KEYS + 1, design=request.param, device="cpu", seed=2)


def unchanged(table: HashMap) -> None:
    model = Model()
    model.inserted(KEYS, KEYS + 1, np.ones(len(KEYS), bool))
    model.agrees(table, KEYS + 15)


@pytest.mark.parametrize(
    ("key", "value"), [("S9", "u4"), ("u4", "S9"), ("S12", "none"), ("u4", ("f4", (5,))), (("i4", (3,)), "u4")], ids=str
)
@pytest.mark.parametrize("design", sorted(set(mixed_designs()) - set(wide_mixed_designs())))
def test_designs_without_wide_mixed_batches(design: str, key: Any, value: Any) -> None:
    options = {"design": design, "device": "cpu"}
    table: Any = HashSet(key, **options) if value == "none" else HashMap(key, value, **options)
    keys = np.zeros((2, *table.key_dtype.shape), table.key_dtype.base)
    with pytest.raises(UnsupportedVerb, match=f"{design}.*up to 8 bytes, got .*'stadium' takes any"):
        table.execute(np.zeros(2, np.uint8), keys)
    assert len(table) == 0


@pytest.mark.parametrize("numbers", [[4], [0, 1, 2, 3, 255]])
def test_a_number_that_is_no_operation(table: HashMap, numbers: list[int]) -> None:
    operations = np.full(20, ERASE, np.uint8)
    operations[: len(numbers)] = numbers
    with pytest.raises(ParameterError, match=f"got {max(numbers)}: nothing was done"):
        table.execute(operations, KEYS[:20], KEYS[:20])
    unchanged(table)


@pytest.mark.parametrize(
    "operations", [np.full(3, 0.5), np.array(["insert"] * 3), np.array([1j] * 3)], ids=["f8", "U", "c"]
)
def test_operations_of_another_kind(table: HashMap, operations: Array) -> None:
    with pytest.raises(DtypeError):
        table.execute(operations, KEYS[:3], KEYS[:3])
    unchanged(table)


def test_operations_of_another_width(table: HashMap) -> None:
    """Refused, or taken where they fit; never wrapped."""
    for dtype in (np.int64, np.uint16, np.int8):
        for number in (256 + ERASE, -253) if dtype != np.int8 else (-1,):
            with pytest.raises((WarphashError, OverflowError)):
                table.execute(np.full(3, number).astype(dtype), KEYS[:3], KEYS[:3])
            unchanged(table)
    _, erased = table.execute([int(ERASE)] * 2, [29, 1000])
    assert erased.tolist() == [True, False]


def test_lengths_that_differ(table: HashMap) -> None:
    for n, m in ((2, 3), (4, 3), (0, 3), (3, 2), (3, 0)):
        with pytest.raises(ShapeError, match="one length"):
            table.execute(np.full(n, INSERT, np.uint8), KEYS[:3] + 100, KEYS[:m])
        unchanged(table)
    with pytest.raises(ShapeError):
        table.execute(np.zeros((3, 2), np.uint8), KEYS[:3], KEYS[:3])
    with pytest.raises(ShapeError):
        table.execute(np.zeros(4, np.uint8), KEYS[:4].reshape(2, 2), KEYS[:4])
    unchanged(table)


def test_an_enum_and_lists_are_taken(table: HashMap) -> None:
    values, done = table.execute([FIND, INSERT, ASSIGN, ERASE], [3, 100, 4, 5], [0, 7, 8, 0], default=9)
    assert (values.tolist(), done.tolist()) == ([4, 9, 9, 9], [True, True, False, True])
    assert table[[100, 4]].tolist() == [7, 8] and 5 not in table


@pytest.mark.parametrize("write", [INSERT, ASSIGN])
def test_writes_without_values(table: HashMap, write: Operation) -> None:
    """They would write zeros that nobody gave; finds and erases need no values."""
    for operations in ([write], [FIND, ERASE, write], [write] * 20):
        for given in (operations, np.array(operations, np.uint8)):
            with pytest.raises(ParameterError, match=f"need values, got none for {operations.count(write)}: nothing"):
                table.execute(given, KEYS[: len(operations)] + 20)
            unchanged(table)
    values, done = table.execute([FIND, ERASE, FIND], [3, 4, 1000], default=7)
    assert (values.tolist(), done.tolist()) == ([4, 7, 7], [True, True, False])
    keys = HashSet.from_arrays(KEYS, design=table.design, device="cpu")
    assert keys.execute([write, write], [3, 1000]).tolist() == [False, True]


def test_values_and_keys_of_another_kind(table: HashMap) -> None:
    operations = np.full(3, ASSIGN, np.uint8)
    for dtype in ("f4", "f8", "i4", "u8", "i2", "U3", "S4", "c16", "M8[s]", bool):
        wrong = np.ones(3, np.uint32).astype(dtype)
        if wrong.dtype.kind in "iuf":  # of numbers, such as do not fit
            wrong = np.full(3, {"f": 0.5, "i": -1, "u": 2**32}[wrong.dtype.kind], dtype)
        for keys, values in ((KEYS[:3], wrong), (wrong, KEYS[:3])):
            with pytest.raises(DtypeError):
                table.execute(operations, keys, values)
            unchanged(table)
    for numbers in ([-1, 0, 0], [2**32, 0, 0], [1.5, 0, 0], ["a", "b", "c"], [None] * 3, np.array([1.5, 0, 0], object)):
        for keys, values in ((KEYS[:3], numbers), (numbers, KEYS[:3])):
            with pytest.raises(DtypeError):
                table.execute(operations, keys, values)
            unchanged(table)
    with pytest.raises(DtypeError):
        table.execute(operations, None, KEYS[:3])
    with pytest.raises(ShapeError):
        table.execute(operations, KEYS[:3], KEYS[:6].reshape(3, 2))
    unchanged(table)


@pytest.mark.parametrize(
    "operations",
    [None, "find", ["find"] * 3, [None] * 3, [0.5] * 3, [4, 0, 256], [-1] * 3, np.ones(3, bool), int],
    ids=str,
)
def test_lists_that_are_no_operations(table: HashMap, operations: Any) -> None:
    with pytest.raises((DtypeError, ShapeError)):
        table.execute(operations, KEYS[:3], KEYS[:3])
    unchanged(table)


@pytest.mark.parametrize("default", ["x", None, -1, 2**32, 1.5, float("nan"), [1, 2], 1j, object], ids=str)
def test_defaults_that_are_no_value(table: HashMap, default: Any) -> None:
    with pytest.raises(DtypeError, match="default"):
        table.execute(np.full(3, ERASE, np.uint8), KEYS[:3], default=default)
    unchanged(table)


def test_nothing_to_do(table: HashMap) -> None:
    """Whatever an empty batch is made of, if its types are right; without values too."""
    none = np.zeros(0, np.uint32)
    for operations, keys, values in (
        ([], [], []),
        ([], [], None),
        (np.zeros(0, np.uint8), none, none),
        (np.zeros(9, np.uint8)[4:4], KEYS[30:], KEYS[::-1][:0]),
    ):
        found, done = table.execute(operations, keys, values)
        assert (found.shape, found.dtype, done.shape, done.dtype) == ((0,), np.uint32, (0,), bool)
        unchanged(table)
    for operations, keys, values in (
        (np.zeros(0, bool), none, none),
        (np.zeros(0, np.uint8), np.zeros(0, bool), none),
        (np.zeros(0, np.uint8), none, np.zeros(0, bool)),
    ):
        with pytest.raises(DtypeError):
            table.execute(operations, keys, values)
    for operations, keys in (([], [1]), ([0], []), (np.zeros((0, 2), np.uint8), none)):
        with pytest.raises(ShapeError):
            table.execute(operations, keys)
    unchanged(table)


def unaligned(array: Array) -> Array:
    """A copy that begins at an odd address."""
    raw = np.zeros(array.nbytes + 1, np.uint8)
    copy = raw[1:].view(array.dtype)
    copy[:] = array
    assert copy.itemsize == 1 or not copy.flags.aligned
    return copy


def test_arrays_that_lie_otherwise(table: HashMap, rng: np.random.Generator) -> None:
    """With steps, backwards, at odd addresses, of one number many times, not to be written: as plain ones do."""
    keys = rng.permutation(np.arange(60, dtype=np.uint32))
    operations = rng.choice(4, 60).astype(np.uint8)
    values = rng.integers(100, 200, 60, dtype=np.uint32)
    plain = table.copy()
    expected = plain.execute(operations, keys, values, default=5)
    steps = np.zeros((3, 60, 4), np.uint32)
    steps[1, :, 2], steps[2, ::-1, 0] = keys, values
    narrow = np.zeros((60, 3), np.uint8)
    narrow[:, 1] = operations
    ways = [
        (narrow[:, 1], steps[1, :, 2], steps[2, ::-1, 0]),
        (operations[::-1].copy()[::-1], keys[::-1].copy()[::-1], values.repeat(2)[::2]),
        (unaligned(operations), unaligned(keys), unaligned(values)),
    ]
    for way in ways:
        for array in way:
            array.flags.writeable = False
        again = table.copy()
        found, done = again.execute(*way, default=5)
        np.testing.assert_array_equal(found, expected[0])
        np.testing.assert_array_equal(done, expected[1])
        for given, array in zip(way, (operations, keys, values), strict=True):
            np.testing.assert_array_equal(given, array)
        there = np.sort(again.keys())
        np.testing.assert_array_equal(there, np.sort(plain.keys()))
        np.testing.assert_array_equal(again[there], plain[there])
    once = np.broadcast_to(np.uint8(ASSIGN), (60,)), keys, np.broadcast_to(np.uint32(9), (60,))
    table.execute(*once)
    assert (table[keys] == 9).all() and len(table) == 60
