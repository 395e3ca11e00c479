"""Answers in arrays of the caller: ``out=``, ``found=`` and ``added=`` of the verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from warphash import DeviceError, DtypeError, HashMap, HashSet, MultiMap, ParameterError, ShapeError, TableFull
from warphash.arrays.view import view
from warphash.designs import registry

N = 100
KEYS = np.arange(N)


PLANNED = pytest.mark.parametrize("is_planned", [False, True], ids=["verbs", "plan"])
"""Given arrays have one rule for the verbs of a table and for those of a plan."""


def calls_of(table: Any, n: int, is_planned: bool) -> Any:
    """What has the verbs: the table, or a plan of the table for ``n`` keys."""
    return table.plan(n) if is_planned else table


def made(**options: Any) -> HashMap:
    return HashMap.from_arrays(KEYS * 7, KEYS + 1, **{"device": "cpu", **options})


# ---- the same answers
@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("given", [("out",), ("found",), ("out", "found")], ids="+".join)
@pytest.mark.parametrize("design", registry.names())
def test_finds(device: str, given: tuple[str, ...], design: str) -> None:
    table, asked = made(device=device, design=design, seed=1), KEYS * 7 // 2
    rooms = {"out": np.empty(N, "i8"), "found": np.empty(N, bool)}
    values, found = table.find(asked, -1, **{name: rooms[name] for name in given})
    for name, answer in (("out", values), ("found", found)):
        assert (answer is rooms[name]) == (name in given)
    expected = table.find(asked, -1)
    assert (values == expected[0]).all() and (found == expected[1]).all() and 0 < found.sum() < N
    assert table.contains(asked, found=rooms["found"]) is rooms["found"] and (rooms["found"] == found).all()


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("design", [name for name in registry.names() if "insert" in registry.get(name).capabilities])
def test_updates(device: str, design: str) -> None:
    table, twin = (HashMap("i8", "i8", device=device, design=design, capacity=N, seed=1) for _ in range(2))
    added = np.empty(N, bool)
    for step, verb in enumerate(["insert", "assign", "insert", "assign"]):
        keys, values = KEYS + 30 * step, KEYS * step
        assert getattr(table, verb)(keys, values, added=added) is added
        assert (added == getattr(twin, verb)(keys, values)).all() and added.sum() > 0
    assert dict(table.items()) == dict(twin.items())
    table.check()


@pytest.mark.parametrize(
    ("key", "value", "options"),
    [
        ("u2", "u1", {}),
        ("S12", "f8", {}),
        ("i8", np.dtype(("f4", (5,))), {}),
        (np.dtype(("i4", (3,))), "M8[s]", {}),
        ("f8", "c8", {"floats": "value"}),
        ("i8", "i8", {"max_size": 1000}),
        ("str", "i4", {}),
    ],
    ids=["narrow", "bytes", "rows of values", "rows of keys", "floats", "bounded", "strings"],
)
def test_types(key: Any, value: Any, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    kind, rows = np.dtype("U4" if key == "str" else key), np.dtype(value)
    base = KEYS.reshape(N, *[1] * len(kind.shape)) * np.ones(kind.shape, int)
    keys: Any = base.astype(kind.base)
    values = rng.integers(0, 99, (N, *rows.shape)).astype(rows.base)
    table = HashMap(key, value, device="cpu", seed=1, **options)
    added = np.empty(N, bool)
    assert table.insert(keys, values, added=added) is added and added.all()
    out, found = np.empty((N, *rows.shape), rows.base), np.empty(N, bool)
    assert table.find(keys, out=out, found=found)[0] is out and found.all() and (out == values).all()
    table.check()


def test_sets_and_multimaps() -> None:
    members, flags = HashSet("i8", device="cpu"), np.empty(N, bool)
    assert members.insert(KEYS // 2, added=flags) is flags and flags.sum() == N // 2
    assert members.contains(KEYS, found=flags) is flags and flags.sum() == N // 2
    lists, out = MultiMap.from_arrays(KEYS // 2, KEYS, device="cpu"), np.empty(N, "i8")
    assert lists.find(KEYS, -1, out=out, found=flags) == (out, flags) or (out[N // 2 :] == -1).all()
    assert flags.sum() == N // 2 and set(out[: N // 2].tolist()) <= set(KEYS.tolist())


def test_a_batch_of_several_axes() -> None:
    table, asked = made(), (KEYS * 7).reshape(4, 5, 5)
    out, found = np.empty((4, 5, 5), "i8"), np.empty((4, 5, 5), bool)
    assert table.find(asked, out=out, found=found)[0] is out and found.all() and (out.ravel() == KEYS + 1).all()
    added = np.empty((2, 50), bool)
    assert table.assign((KEYS + 1000).reshape(2, 50), KEYS.reshape(2, 50), added=added) is added and added.all()
    with pytest.raises(ShapeError, match=r"out must have shape \(4, 5, 5\), as the keys are, got \(100,\): leave out="):
        table.find(asked, out=np.empty(N, "i8"))


def test_keys_of_another_type() -> None:
    """Some of them are no keys of the table: their answers are written, too."""
    table, out, found = made(), np.full(N, 5), np.full(N, True)
    asked = KEYS * 7 + np.where(KEYS % 3, 0, 0.5)
    values, there = table.find(asked, -1, out=out, found=found)
    assert values is out and there is found
    assert (found == (KEYS % 3 > 0)).all() and (out == np.where(found, KEYS + 1, -1)).all()
    assert table.contains(asked, found=asked.view("u1")[:N].view(bool)).sum() == found.sum()  # over the keys
    assert table.find([], out=out[:0])[0].size == 0 and table.find([7, 8], out=out[:2])[0].tolist() == [2, 0]


def test_a_bounded_table_with_scores() -> None:
    table, added = HashMap("i8", "i8", device="cpu", max_size=50, evict="score"), np.empty(N, bool)
    scores = KEYS.astype("f4")
    assert table.insert(KEYS, KEYS, scores=scores, added=added) is added
    assert sorted(table.keys().tolist()) == list(range(50, 100))
    over = scores.view("u1")[:N].view(bool)  # the flags lie over the scores
    table.clear()
    assert table.assign(KEYS, KEYS, scores=scores, added=over) is over
    assert sorted(table.keys().tolist()) == list(range(50, 100))


# ---- arrays that share memory
@pytest.mark.parametrize("design", registry.names())
@pytest.mark.parametrize("offset", [0, 8, 4 * N, 8 * N], ids=["same", "one further", "half", "behind"])
@PLANNED
def test_answers_over_the_keys(design: str, offset: int, is_planned: bool) -> None:
    """Right as if the keys were copied first."""
    table = HashMap.from_arrays(KEYS * 7, KEYS + 1, design=design, device="cpu")
    calls, block = calls_of(table, N, is_planned), np.zeros(17 * N, np.uint8)
    keys, out = block[: 8 * N].view("i8"), block[offset : offset + 8 * N].view("i8")
    flags = block[offset : offset + N].view(bool)
    keys[:] = KEYS[::-1] * 7
    answer, found = calls.find(keys, out=out)
    assert answer is out and found.all()
    np.testing.assert_array_equal(out, N - KEYS)
    keys[:] = KEYS[::-1] * 7
    assert calls.find(keys, found=flags)[1] is flags and flags.all()
    keys[:] = KEYS[::-1] * 7
    assert calls.contains(keys, found=flags) is flags and flags.all()
    table.check()


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
@pytest.mark.parametrize("key", ["i8", "i4", "S12"])
@pytest.mark.parametrize("verb", ["insert", "assign"])
@pytest.mark.parametrize("over", ["keys", "values", "both", "set"])
@PLANNED
def test_flags_over_the_pairs(device: str, key: str, verb: str, over: str, is_planned: bool) -> None:
    pairs = KEYS.astype(key), KEYS.astype("f8") + 0.5
    if over == "set":
        if verb == "assign":
            return
        table: Any = HashSet(key, device=device)
    else:
        table = HashMap(key, "f8", device=device)
    keys, values = pairs
    block = np.empty(keys.nbytes + values.nbytes, np.uint8)
    in_block = block[: keys.nbytes].view(key), block[keys.nbytes :].view("f8")
    in_block[0][:], in_block[1][:] = pairs
    at = {"keys": 3, "values": keys.nbytes + 8, "both": keys.nbytes - N // 2, "set": 0}[over]
    added = block[at : at + N].view(bool)
    calls = calls_of(table, N, is_planned)
    given = in_block[:1] if over == "set" else in_block
    assert getattr(calls, verb)(*given, added=added) is added
    assert added.all() and len(table) == N
    table.check()
    if over != "set":
        np.testing.assert_array_equal(table.find(keys)[0], values)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@PLANNED
def test_answers_that_share_memory_with_each_other_are_refused(device: str, is_planned: bool) -> None:
    table = HashMap.from_arrays(KEYS, KEYS * 2, device=device)
    calls, block = calls_of(table, N, is_planned), np.zeros(16 * N, np.uint8)
    out, found = block[: 8 * N].view("i8"), block[8 * N - 1 : 9 * N - 1].view(bool)
    with pytest.raises(ParameterError, match="out and found share memory"):
        calls.find(KEYS, out=out, found=found)
    assert not block.any()
    assert calls.find(KEYS, out=out, found=block[8 * N : 9 * N].view(bool))[1].all()
    repeated = np.lib.stride_tricks.as_strided(np.zeros(1, "i8"), (N,), (0,))
    with pytest.raises(ParameterError, match="contiguous"):
        calls.find(KEYS, out=repeated)
    none = calls_of(table, 0, is_planned)
    assert not none.find(KEYS[:0], out=out[:0], found=block[:0].view(bool))[1].size


# ---- arrays that cannot be taken
class Sub(np.ndarray):
    """An array whose methods are its own affair."""


def locked(array: Any) -> Any:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"out": np.empty(N)}, DtypeError, "out must be int64, got float64: convert the array, or leave out= out"),
        ({"out": np.empty(N + 1, "i8")}, ShapeError, r"out must have shape \(100,\), as the keys are, got \(101,\)"),
        ({"out": np.empty((N, 1), "i8")}, ShapeError, r"got \(100, 1\)"),
        ({"out": np.empty(2 * N, "i8")[::2]}, ParameterError, "out must .* contiguous, .*got ndarray: leave out= out"),
        ({"out": [0] * N}, ParameterError, "out must be an array of numpy .*got list"),
        ({"out": np.empty(N, "i8").view(Sub)}, ParameterError, "out must be an array of numpy .*got Sub"),
        ({"out": locked(np.empty(N, "i8"))}, ParameterError, "can be written to"),
        ({"out": np.empty(N, ">i8")}, (DtypeError, ParameterError), "out must be"),
        ({"found": np.empty(N, "u1")}, DtypeError, "found must be bool, got uint8"),
        ({"found": True}, (ShapeError, ParameterError), "found must"),
        ({"found": view(np.empty(N, bool))._replace(device="cuda:5")}, DeviceError, "found must be on cpu, .*cuda:5"),
        ({"order": "any", "out": np.empty(N, "i8")}, ParameterError, 'out= goes with order="given"'),
        ({"order": "any", "found": np.empty(N, bool)}, ParameterError, 'found= goes with order="given"'),
    ],
)
def test_wrong_arrays_of_a_find(given: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        made().find(KEYS, **given)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, a: t.insert(KEYS + 1, KEYS, added=a),
        lambda t, a: t.assign(KEYS + 1, KEYS, added=a),
        lambda t, a: t.contains(KEYS, found=a),
    ],
    ids=["insert", "assign", "contains"],
)
@pytest.mark.parametrize(
    ("given", "error"),
    [
        (np.empty(N, "i1"), DtypeError),
        (np.empty(N - 1, bool), ShapeError),
        (np.empty(3 * N, bool)[::3], ParameterError),
        (locked(np.empty(N, bool)), ParameterError),
        ("flags", ParameterError),
    ],
    ids=["type", "shape", "steps", "locked", "text"],
)
def test_wrong_flags_leave_the_table_as_it_was(call: Callable[..., Any], given: Any, error: type[Exception]) -> None:
    table = made()
    before = sorted(table.items())
    with pytest.raises((error, ShapeError, DtypeError) if isinstance(given, str) else error):
        call(table, given)
    assert sorted(table.items()) == before


def test_a_batch_that_does_not_fit_leaves_the_flags() -> None:
    table, added = HashMap("i8", "i8", device="cpu", capacity=50, on_full="raise", seed=1), np.full(N, True)
    with pytest.raises(TableFull, match="as it was") as caught:
        table.insert(KEYS + 1000, KEYS, added=added)
    assert len(table) == 0 and added.all() and (caught.value.keys >= 1000).all()


def test_arrays_of_another_library() -> None:
    torch = pytest.importorskip("torch")
    table, keys = made(), torch.from_numpy(KEYS * 7)
    out, found = torch.empty(N, dtype=torch.int64), torch.empty(N, dtype=torch.bool)
    assert table.find(keys, out=out, found=found)[0] is out and bool(found.all())
    assert out.tolist() == (KEYS + 1).tolist()
    answer, _ = table.find(keys, out=keys)
    assert answer is keys and keys.tolist() == (KEYS + 1).tolist()
    with pytest.raises(ParameterError, match="found must be an array of numpy, as the keys are, got one of torch"):
        table.contains(KEYS, found=found)
    with pytest.raises(ParameterError, match="contiguous"):
        table.find(torch.from_numpy(KEYS), out=torch.zeros(1, dtype=torch.int64).expand(N))
