"""Prepared calls: a plan answers as the verbs of its table do, whatever becomes of the table between two calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from support.inside import parts_of, storage_of
from support.walk import walk
from warphash import (
    CaptureError,
    DeviceError,
    DtypeError,
    HashMap,
    HashSet,
    ParameterError,
    ShapeError,
    TableFull,
    UnsupportedVerb,
    WarphashError,
)
from warphash.arrays.library import ArrayView
from warphash.arrays.transfer import Transfer
from warphash.arrays.view import view
from warphash.designs import registry
from warphash.runtime.cpu import CpuEngine

N = 100
KEYS = np.arange(N)
CAPTURED = 7


def made(**options: Any) -> HashMap:
    return HashMap.from_arrays(KEYS, KEYS * 2, **{"device": "cpu", **options})


def same(planned: Any, ordinary: Any) -> None:
    """Check that a plan answered as the verb of the table: arrays of one type, or several."""
    for one, other in zip(
        *((each if isinstance(each, tuple) else (each,)) for each in (planned, ordinary)), strict=True
    ):
        assert type(one) is type(other) and one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


# ---- as the verbs do
@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("is_given", [False, True], ids=["new arrays", "arrays of the caller"])
def test_a_plan_answers_as_the_verbs_while_the_table_changes(device: str, is_given: bool) -> None:
    table, twin = (HashMap("i8", "i4", device=device, capacity=N, seed=1) for _ in range(2))
    plan = table.plan(N)
    out, found, added = np.empty(N, "i4"), np.empty(N, bool), np.empty(N, bool)
    outs: dict[str, Any] = {"out": out, "found": found} if is_given else {}
    changes: list[Callable[[HashMap], Any]] = [
        lambda t: t.reserve(50 * N),
        lambda t: t.insert(np.arange(500, 500 + 60 * N), 5),  # grows, and rebuilds
        lambda t: t.shrink(),
        lambda t: t.erase(KEYS[::3]),
        lambda t: t.clear(),
        lambda t: t.insert(KEYS[:9], KEYS[:9].astype("i4")),
    ]
    for step, change in enumerate(changes):
        some, values = KEYS + 10 * step, np.arange(step, step + N, dtype="i4")
        answer = plan.insert(some, values, **({"added": added} if is_given else {}))
        assert not is_given or answer is added
        same(answer, twin.insert(some, values))
        same(plan.assign(some[::-1].copy(), values), twin.assign(some[::-1], values))
        for each in (table, twin):
            change(each)
        answers = plan.find(KEYS, -1, **outs)
        assert not is_given or (answers[0] is out and answers[1] is found)
        same(answers, twin.find(KEYS, -1))
        same(plan.contains(some, **({"found": found} if is_given else {})), twin.contains(some))
        assert len(table) == len(twin)
    table.check()


@pytest.mark.parametrize("design", registry.names())
def test_every_design(design: str) -> None:
    table = made(design=design, seed=1)
    plan, absent = table.plan(N), KEYS + N // 2
    same(plan.find(absent, default=-1), table.find(absent, default=-1))
    same(plan.contains(absent), table.contains(absent))
    for verb in ("insert", "assign"):
        if verb in registry.get(design).capabilities:
            assert getattr(plan, verb)(absent, KEYS).sum() == (N // 2 if verb == "insert" else 0)
    assert "insert" not in registry.get(design).capabilities or len(table) == N * 3 // 2
    table.check()


@pytest.mark.parametrize(
    ("keys", "values", "options"),
    [
        (KEYS.astype("u2"), KEYS.astype("u1"), {}),
        (KEYS.astype("S12"), KEYS.astype("f8"), {}),
        (np.stack([KEYS] * 3, 1), np.stack([KEYS] * 5, 1).astype("f4"), {}),
        (KEYS / 2, KEYS, {"floats": "bits"}),
        (KEYS / 2, KEYS, {"floats": "value"}),
        (KEYS.astype("M8[s]"), KEYS, {"max_size": 60}),
        (KEYS, np.zeros(N, [("a", "u1"), ("b", "f8")]), {"design": "dynamic_cuckoo"}),
    ],
    ids=["narrow", "bytes", "rows", "floats by bits", "floats by value", "bounded", "structures"],
)
def test_types(keys: Any, values: Any, options: dict[str, Any]) -> None:
    table, twin = (HashMap.from_arrays(keys, values, device="cpu", seed=1, **options) for _ in range(2))
    plan = table.plan(N)
    same(plan.find(keys), twin.find(keys))
    same(plan.insert(keys, values), twin.insert(keys, values))
    same(plan.contains(keys), twin.contains(keys))
    table.check()


def test_equal_floats_are_one_key() -> None:
    table = HashMap("f8", "i8", device="cpu", floats="value")
    plan = table.plan(2)
    assert plan.insert(np.array([0.0, np.nan]), np.array([1, 2])).all()
    assert plan.find(np.array([-0.0, -np.nan]))[0].tolist() == [1, 2]


def test_a_set() -> None:
    members = HashSet.from_arrays(KEYS, device="cpu")
    plan, added = members.plan(N), np.empty(N, bool)
    assert plan.n == N and plan.insert(KEYS + 50, added=added) is added and added.tolist() == [False] * 50 + [True] * 50
    assert plan.contains(KEYS + 60).sum() == 90 and not hasattr(plan, "find")
    assert "SetPlan: 100 keys a batch, in arrays of numpy" in repr(plan)


def test_keys_that_a_plan_is_the_first_to_keep() -> None:
    """Of which library the arrays of all keys are."""
    jax = pytest.importorskip("jax")
    table = HashMap("i4", "i4", device="cpu")
    plan = table.plan(N, like="jax")
    keys = jax.numpy.arange(N)
    assert plan.insert(keys, keys * 2).all() and isinstance(table.keys(), jax.Array)
    values, found = plan.find(keys)
    assert isinstance(values, jax.Array) and bool((values == keys * 2).all() and found.all())
    first = HashMap("i4", "i4", device="cpu")
    first.plan(N).insert(KEYS.astype("i4"), KEYS.astype("i4"))
    first.insert(keys, keys)
    assert type(first.keys()) is np.ndarray
    with pytest.raises(ParameterError, match=r"out must be an array of jax that is contiguous, .* can be written to"):
        plan.find(keys, out=keys)


def test_a_batch_of_no_keys() -> None:
    plan = made().plan(0)
    values, found = plan.find(KEYS[:0])
    assert len(values) == len(found) == len(plan.assign(KEYS[:0], KEYS[:0])) == 0


# ---- the short way
def test_a_call_sees_no_array() -> None:
    """The address is enough where the arrays are as the plan knows: no view is made, and nothing allocated."""
    table = made()
    plan, out, found = table.plan(N), np.empty(N, "i8"), np.empty(N, bool)
    rooms = {
        "find": walk(lambda: plan.find(KEYS, out=out, found=found)),
        "assign": walk(lambda: plan.assign(KEYS, KEYS, added=found)),
    }
    ordinary = {"find": walk(lambda: table.find(KEYS)), "assign": walk(lambda: table.assign(KEYS, KEYS))}
    flags = {"find": 0, "assign": 3}  # steps: nobody else may write to flags in use, so they are made, and copied
    for verb, seen in rooms.items():
        functions = [(step.file, step.function.rpartition(".")[2]) for step in seen.steps]
        assert not {name for _, name in functions} & {"see", "view", "empty"}, str(seen)
        assert ("table/locks.py", {"find": "read", "assign": "write"}[verb]) in functions
        assert len(seen.steps) - flags[verb] <= len(ordinary[verb].steps)


@pytest.mark.parametrize("device", one_of_each("emulated"))
def test_arrays_that_the_engine_does_not_reach(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are moved, as by the verbs: kernels are not given their addresses."""
    table, moved = made(device=device), list[str]()
    plan, run = table.plan(N), Transfer.run

    def counted(self: Transfer, *given: Any, **options: Any) -> None:
        moved.append("")
        run(self, *given, **options)

    monkeypatch.setattr(Transfer, "run", counted)
    assert plan.find(KEYS)[1].all() and plan.contains(KEYS).all() and not plan.assign(KEYS, KEYS).any()
    assert len(moved) == 3


# ---- arrays that share memory
def test_tensors_that_share_memory() -> None:
    torch = pytest.importorskip("torch")
    table = made()
    plan, keys = table.plan(N, like=torch.empty(0)), torch.from_numpy(KEYS[::-1].copy())
    answer, found = plan.find(keys, out=keys)
    assert answer is keys and bool(found.all()) and keys.tolist() == (KEYS[::-1] * 2).tolist()
    keys = torch.from_numpy(np.arange(N, 2 * N))
    added = keys.view(torch.bool)[:N]
    assert bool(plan.insert(keys, torch.zeros(N, dtype=torch.int64), added=added).all())
    assert len(table) == 2 * N
    table.check()


def test_pairs_that_share_memory_with_each_other() -> None:
    """Nothing is written to them."""
    table, keys = HashMap("i8", "i8", device="cpu"), KEYS + 0
    assert table.plan(N).insert(keys, keys).all() and (table.find(KEYS)[0] == KEYS).all()


# ---- arrays that are not as the plan knows
def of_columns(rows: int) -> Any:
    return np.zeros((rows, 2), np.int64)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda p: p.find(KEYS.astype("i4")),
            DtypeError,
            "keys must be int64, got int32: convert the array, or call the verb of the table",
        ),
        (lambda p: p.find(KEYS.astype(">i8").view("u8")), DtypeError, "keys must be int64, got uint64"),
        (
            lambda p: p.find(KEYS[1:]),
            ShapeError,
            r"keys must have shape \(100,\), .*, got \(99,\): make a plan for that",
        ),
        (lambda p: p.find(of_columns(N)), ShapeError, r"keys must have shape \(100,\), .*, got \(100, 2\)"),
        (lambda p: p.find(KEYS.reshape(10, 10)), ShapeError, r"keys must have shape \(100,\), .*, got \(10, 10\)"),
        (lambda p: p.contains(5), ShapeError, r"keys must have shape \(100,\), .*, got \(\)"),
        (lambda p: p.assign(KEYS, KEYS[1:]), ShapeError, r"values must have shape \(100,\), .*, got \(99,\)"),
        (lambda p: p.assign(KEYS, 5), ShapeError, r"values must have shape \(100,\), .*, got \(\)"),
        (lambda p: p.insert(KEYS, KEYS / 2), DtypeError, "values must be int64, got float64"),
        (
            lambda p: p.find(KEYS, out=np.empty(N)),
            DtypeError,
            "out must be int64, got float64: convert the array, or leave out= out",
        ),
        (lambda p: p.find(KEYS, out=np.empty(N + 1, "i8")), ShapeError, r"out must have shape \(100,\), .* \(101,\)"),
        (
            lambda p: p.find(KEYS, out=np.empty(2 * N, "i8")[::2]),
            ParameterError,
            "out must .* contiguous, .*got ndarray",
        ),
        (
            lambda p: p.find(KEYS, out=[0] * N),
            ParameterError,
            "out must be an array of numpy .*got list: leave out= out",
        ),
        (lambda p: p.find(KEYS, found=np.empty(N, "u1")), DtypeError, "found must be bool, got uint8"),
        (lambda p: p.insert(KEYS, KEYS, added=np.empty(1, bool)), ShapeError, r"added must have shape \(100,\)"),
        (
            lambda p: p.contains(view(KEYS)._replace(device="cuda:5")),
            DeviceError,
            "keys must be on cpu, .* on cuda:5: make a plan with like=keys",
        ),
        (lambda p: p.find(KEYS, default=0.5), DtypeError, "the default is no int64"),
    ],
)
def test_wrong_arrays(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    table = made()
    before = sorted(table.items())
    with pytest.raises(error, match=message):
        call(table.plan(N))
    assert sorted(table.items()) == before


@pytest.mark.parametrize("name", ["out", "found"])
def test_arrays_that_cannot_be_written_to(name: str) -> None:
    given = np.full(N, 1, {"out": "i8", "found": "?"}[name])
    given.flags.writeable = False
    with pytest.raises(ParameterError, match=f"{name} must be an array of numpy that .* can be written to"):
        made().plan(N).find(KEYS + N, **{name: given})
    assert given.all()


def test_rows_that_lie_across_words() -> None:
    """Two numbers of 4 bytes are written as a word of 8."""
    rows = np.stack([KEYS, -KEYS], 1).astype("i4")
    table = HashMap.from_arrays(KEYS, rows, device="cpu")
    across = np.zeros(2 * N + 1, "i4")[1:].reshape(N, 2)
    whole = np.zeros(2 * N + 2, "i4")[2:].reshape(N, 2)
    assert (table.plan(N).find(KEYS, out=whole)[0] == rows).all()
    with pytest.raises(ParameterError, match="out must be an array of numpy that is contiguous, aligned and"):
        table.plan(N).find(KEYS, out=across)


def test_arrays_of_another_library() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(
        ParameterError, match=r"keys must be an array of numpy, .*, got one of jax: make a plan with like="
    ):
        made().plan(N).find(jax.numpy.arange(N))


def test_arrays_that_only_have_to_be_seen() -> None:
    """Keys in steps, of a subclass or as a list are right; they take the longer way."""
    plan = made().plan(N)
    twice = np.repeat(KEYS, 2)
    for keys in (twice[::2], KEYS.view(type("Sub", (np.ndarray,), {})), KEYS.tolist(), view(KEYS)):
        values, found = plan.find(keys)
        assert found.all() and (values == 2 * KEYS).all()
    assert (plan.contains(twice[::2] + 1) == (KEYS < N - 1)).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: HashMap("str", "i8").plan(N), UnsupportedVerb, "a plan is for keys of a fixed width"),
        (lambda: HashSet("i8", nulls="key", device="cpu").plan(N), UnsupportedVerb, "call the verbs of the table"),
        (lambda: made().plan(-1), ParameterError, "n must be an integer of at least 0, got -1"),
        (lambda: made().plan(1.5), ParameterError, "n must be an integer"),
        (lambda: made().plan(1 << 32), ShapeError, r"at most 2\*\*31 rows"),
        (lambda: made().plan(N, like="nympy"), ParameterError, "like must be an array or one of"),
    ],
)
def test_plans_that_cannot_be(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_scores() -> None:
    table = HashMap("i8", "i8", device="cpu", max_size=1000, evict="score")
    plan = table.plan(N)
    for verb in (plan.insert, plan.assign):
        with pytest.raises(UnsupportedVerb, match="a plan has no scores: call the verb of the table, with scores="):
            verb(KEYS, KEYS)
    table.insert(KEYS, KEYS, scores=KEYS / 2)
    assert plan.find(KEYS)[1].all()


# ---- what a verb promises
@pytest.mark.parametrize("is_direct", [True, False], ids=["by address", "seen"])
def test_a_batch_that_does_not_fit(is_direct: bool) -> None:
    table = HashMap("i8", "i8", device="cpu", capacity=50, on_full="raise", seed=1)
    plan, keys = table.plan(N), KEYS if is_direct else np.repeat(KEYS, 2)[::2]
    with pytest.raises(TableFull, match="as it was") as caught:
        plan.insert(keys + 1000, keys)
    assert len(table) == 0 and len(caught.value.keys) and (caught.value.keys >= 1000).all()


def test_a_closed_table() -> None:
    table = made()
    plan = table.plan(N)
    table.close()
    for call in (lambda: plan.find(KEYS), lambda: plan.contains(KEYS), lambda: plan.assign(KEYS, KEYS)):
        with pytest.raises(WarphashError, match="the table is closed: make a new one"):
            call()


def test_an_interrupted_update_is_ended_first() -> None:
    """As before a find of the table: a lookup of the plan takes the lock alone, and has the update recovered."""
    table = made()
    plan, store = table.plan(N), storage_of(table).store
    recovered = []
    store.recovery.step = recovered.append
    assert plan.contains(KEYS).all() and len(recovered) == 1 and store.recovery.step is None


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU engine plays one whose stream 7 is captured."""
    monkeypatch.setattr(CpuEngine, "is_captured", lambda self, stream: stream == CAPTURED)


def captured(array: Any) -> ArrayView:
    return view(np.asarray(array))._replace(stream=CAPTURED)


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize("is_direct", [True, False], ids=["by address", "seen"])
def test_a_captured_lookup(is_direct: bool) -> None:
    table = made(on_full="raise", capacity=10 * N)
    plan = table.plan(N)
    keys: Any = captured(KEYS + 50)
    if is_direct:
        plan._stream, keys = (lambda: CAPTURED), KEYS + 50
    values, found = plan.find(keys, default=-1)
    assert found.sum() == plan.contains(keys).sum() == 50 and values[0] == 100 and values[-1] == -1
    assert len(parts_of(table).lookups.captures.kept) == 1 and table.captures_are_current()
    for update in (plan.insert, plan.assign):
        with pytest.raises(CaptureError, match="only find and contains"):
            update(keys, KEYS)
    assert len(table) == N
    table.reserve(1000 * N)
    assert not table.captures_are_current()
