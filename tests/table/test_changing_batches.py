"""A batch that another thread writes to during a call: each element counts as a value that it had during the call.

Kernels that read an element twice would see two values. Here, the arrays of a batch change behind each launch of a
kernel (`changing`), or all the time, by a thread. The table then holds keys that were in the arrays, each once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.cases import design_names, mixed_designs, multi_designs
from warphash import DtypeError, HashMap, HashSet, MultiMap, Operation
from warphash.arrays.strings import StringArray
from warphash.arrays.transfer import Transfer
from warphash.designs import registry
from warphash.runtime.cpu import _CpuProgram
from warphash.table.updates import Updates

N = 10_000
WIDTHS = {
    "4+4": ("u4", "u4"),
    "8+8": ("i8", "i8"),
    "2+1": ("u2", "u1"),
    "16+8": ("2i8", "i8"),
    "24+12": ("3i8", "3f4"),
}


@pytest.fixture(params=design_names())
def design(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=WIDTHS)
def types(request: pytest.FixtureRequest) -> tuple[str, str]:
    return WIDTHS[request.param]


def rows_of(numbers: Any, dtype: str) -> Any:
    """Numbers as rows of a type: each number has a row of its own, unless the type has fewer values."""
    kind = np.dtype(dtype)
    base = np.asarray(numbers).astype(np.dtype(kind.base))
    return np.ascontiguousarray(np.broadcast_to(base[:, None], (len(base), *kind.shape))) if kind.shape else base


def as_bytes(rows: Any) -> set[bytes]:
    """The rows, as a set of their bytes."""
    return {row.tobytes() for row in np.ascontiguousarray(rows)}


class Changing:
    """Arrays with two contents each, which take turns.

    Parameters
    ----------
    contents
        Of each array, both contents.
    """

    def __init__(self, *contents: tuple[Any, Any]) -> None:
        self.arrays = [first.copy() for first, _ in contents]
        self._contents, self._turn = contents, 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.arrays)

    def turn(self) -> None:
        """Write the other contents, whose elements are in no other order."""
        self._turn ^= 1
        for array, both in zip(self.arrays, self._contents, strict=True):
            array[...] = both[self._turn]


@contextmanager
def changing(monkeypatch: pytest.MonkeyPatch, turn: Callable[[], None]) -> Iterator[None]:
    """Call ``turn`` behind each launch of a kernel on the CPU engine."""
    run: Any = _CpuProgram.run

    def run_and_turn(self: Any, *args: Any, **options: Any) -> None:
        run(self, *args, **options)
        turn()

    with monkeypatch.context() as patch:
        patch.setattr(_CpuProgram, "run", run_and_turn)
        yield


def check_table(table: Any, ever_keys: set[bytes], ever_values: set[bytes] | None = None) -> None:
    """The table is sound, and has keys and values that were in the arrays alone, each key once."""
    table.check()
    keys = table.keys(like="numpy")
    held = as_bytes(keys)
    assert held <= ever_keys
    assert len(held) == len(keys) == len(table)
    if ever_values is not None:
        assert as_bytes(table.to_arrays(like="numpy")[1]) <= ever_values


def batches(types: tuple[str, str], n: int = N) -> tuple[Changing, set[bytes], set[bytes]]:
    """Keys that repeat and values, in two contents; and all keys and values that they have."""
    random = np.random.default_rng(1)
    first, second = random.integers(0, n, n), random.integers(n // 2, 2 * n, n)
    keys = rows_of(first, types[0]), rows_of(second, types[0])
    values = rows_of(first, types[1]), rows_of(second, types[1])
    return Changing(keys, values), as_bytes(keys[0]) | as_bytes(keys[1]), as_bytes(values[0]) | as_bytes(values[1])


# ---- arrays that change between two kernels
def test_updates_count_each_element_once(design: str, types: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    batch, ever_keys, ever_values = batches(types)
    table: Any = HashMap(*types, design=design, device="cpu", seed=1)
    verbs = [verb for verb in ("insert", "assign", "erase") if verb in registry.get(design).capabilities]
    with changing(monkeypatch, batch.turn):
        for verb in [*verbs, *verbs]:
            before = len(table)
            flags = getattr(table, verb)(*(batch.arrays[:1] if verb == "erase" else batch))
            assert flags.sum() == abs(len(table) - before), verb
            check_table(table, ever_keys, ever_values)


def test_a_build_reads_each_key_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build takes the batch from the caller's memory. Keys that repeat are too few for a sample to tell."""
    n = 100_000
    first = np.arange(n)
    first[:50] = first[-50:]
    batch = Changing((first, first + n), (first, first + n))
    table = HashMap("i8", "i8", capacity=n, device="cpu", seed=1)
    with changing(monkeypatch, batch.turn):
        added = table.insert(*batch)
    assert added.sum() == len(table)
    check_table(table, as_bytes(np.arange(2 * n)))
    with changing(monkeypatch, batch.turn):
        built = HashMap.from_arrays(*batch, device="cpu", seed=1)
    check_table(built, as_bytes(np.arange(2 * n)))
    assert len(built) == n - 50


@pytest.mark.parametrize("types", ["8+8", "16+8"], indirect=True)
def test_upserts_and_values_held(types: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    batch, ever_keys, ever_values = batches(types)
    table: Any = HashMap(*types, device="cpu", seed=1)
    with changing(monkeypatch, batch.turn):
        table.upsert(*batch, "max")
        held, _ = table.find_or_insert(*batch)
    check_table(table, ever_keys, ever_values)
    assert as_bytes(held) <= ever_values - as_bytes(rows_of([0], types[1])) | ever_values


@pytest.mark.parametrize("types", ["4+4", "8+8", "16+8"], indirect=True)
def test_numbers_are_dense(types: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    batch, ever_keys, _ = batches(types)
    table: Any = HashMap(*types, device="cpu", seed=1)
    with changing(monkeypatch, batch.turn):
        for _ in range(3):
            numbers, new = table.number(batch.arrays[0])
            assert numbers.max() < len(table) and new.sum() <= len(table)
    table.check()
    assert np.sort(table.values()).tolist() == list(range(len(table)))
    assert as_bytes(table.keys()) <= ever_keys


def test_bounded_and_tiered_tables(types: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for options in ({"max_size": N // 4, "evict": evict} for evict in ("lru", "lfu", "random")):
        batch, ever_keys, ever_values = batches(types)
        table: Any = HashMap(*types, device="cpu", seed=1, **options)
        with changing(monkeypatch, batch.turn):
            for verb in ("insert", "assign"):
                getattr(table, verb)(*batch)
            table.find(batch.arrays[0])
        check_table(table, ever_keys, ever_values)


@pytest.mark.parametrize("design", multi_designs())
def test_pairs_of_a_multi_map(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, ever_keys, _ = batches(("i8", "i8"))
    table: Any = MultiMap("i8", "i8", design=design, device="cpu", seed=1)
    with changing(monkeypatch, batch.turn):
        table.insert(*batch)
        assert len(table) == N
        keys = batch.arrays[0]
        values, offsets = table.find_all(keys)
        assert len(values) == offsets[-1]
        gone = table.erase(keys).sum()
        gone += table.erase_all(keys).sum()
    assert len(table) == N - gone
    table.check()
    assert as_bytes(table.keys(like="numpy")) <= ever_keys if len(table) else True


@pytest.mark.parametrize("design", mixed_designs())
def test_operations_of_a_mixed_batch(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, ever_keys, _ = batches(("i8", "i8"))
    codes = np.full(N, Operation.INSERT, np.uint8)
    changing_codes = Changing((codes, np.full(N, 200, np.uint8)))
    table: Any = HashMap("i8", "i8", design=design, capacity=4 * N, device="cpu", seed=1)

    def turn() -> None:
        batch.turn()
        changing_codes.turn()

    with changing(monkeypatch, turn):
        table.execute(*changing_codes, *batch)
    assert len(table)
    check_table(table, ever_keys)


def test_what_is_popped_is_what_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.arange(2 * N)
    table: Any = HashMap.from_arrays(numbers, numbers * 3, device="cpu", seed=1)
    batch = Changing((numbers[:N], numbers[N:]))
    (keys,) = batch
    with changing(monkeypatch, batch.turn):
        values = table.pop(keys)
    assert not table.contains(values // 3).any()
    assert len(table) == N
    (keys,) = batch = Changing((table.keys()[: N // 2], numbers[: N // 2] + 10 * N))
    with changing(monkeypatch, batch.turn):
        del table[keys]
    assert len(table) == N // 2


@pytest.mark.parametrize("is_planned", [False, True], ids=["verbs", "plan"])
def test_flags_that_others_write_to(design: str, is_planned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    table: Any = HashMap("i8", "3i8", design=design, device="cpu", seed=1)
    calls = table.plan(N) if is_planned else table
    keys, added = random.integers(0, N, N), np.zeros(N, np.bool_)
    values = rows_of(keys, "3i8")
    with changing(monkeypatch, Changing((added, ~added)).turn):  # of no array of the call
        calls.insert(keys, values)
    table.clear()

    def write() -> None:
        added[:] = random.integers(0, 2, N)

    with changing(monkeypatch, write):
        calls.insert(keys, values, added=added)
    assert added.sum() == len(table) == len(np.unique(keys))
    check_table(table, as_bytes(keys))
    found, absent = np.zeros(N, np.bool_), np.arange(N, 2 * N)

    def claim() -> None:
        found[:] = True

    with changing(monkeypatch, claim):
        calls.find(absent, found=found)
    assert not table.contains(absent).any()


@pytest.mark.parametrize("types", ["16+8", "24+12"], indirect=True)
def test_wide_keys_that_are_there_are_found(
    design: str, types: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = rows_of(np.arange(N), types[0]), rows_of(np.arange(N, 2 * N), types[0])
    table: Any = HashMap(*types, design=design, device="cpu", seed=1)
    table.insert(np.concatenate([first, second]), rows_of(np.arange(2 * N), types[1]))
    (keys,) = batch = Changing((first, second))
    with changing(monkeypatch, batch.turn):
        assert table.contains(keys).all()
        assert table.find(keys)[1].all()


def test_a_refused_copy_leaves_the_table_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    table: Any = HashMap.from_arrays(np.arange(9), np.arange(9), device="cpu")

    def refuse(*_: Any) -> Any:
        raise MemoryError

    for part, copies in ((Transfer, "private"), (Updates, "_private_pairs")):
        monkeypatch.setattr(part, copies, refuse)
    for verb in (lambda: table.insert([100], [1]), lambda: table.erase(np.arange(9)), lambda: table.assign([1], [5])):
        with pytest.raises(MemoryError):
            verb()
    monkeypatch.undo()
    assert sorted(table.items()) == [(i, i) for i in range(9)]
    table.check()


# ---- strings
def column_over(offsets: Any, data: Any) -> Any:
    """A column of Arrow data in the memory of two NumPy arrays."""
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, *map(pa.py_buffer, (offsets, data))])


def strings(numbers: Any) -> tuple[Any, Any]:
    """Offsets and bytes of some numbers, as strings of 12 to 14 bytes."""
    items = [b"%012d" % number + b"x" * (number % 3) for number in numbers.tolist()]
    offsets = np.zeros(len(items) + 1, np.int64)
    np.cumsum([len(item) for item in items], out=offsets[1:])
    data = np.zeros(14 * len(items), np.uint8)
    joined = np.frombuffer(b"".join(items), np.uint8)
    data[: len(joined)] = joined
    return offsets, data


@pytest.mark.parametrize("given", [column_over, lambda offsets, data: StringArray(offsets, data, False)])
def test_strings_in_memory_that_changes(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(1).integers(0, 500, (2, 2000)) * 3  # strings of one length: bytes change alone
    (offsets, first), (_, second) = map(strings, numbers)
    (data,) = batch = Changing((first, second))
    ever = {b"%012d" % number for number in numbers.ravel().tolist()}
    column = given(offsets, data)
    table: Any = HashMap("bytes", "i8", device="cpu", seed=1)
    with changing(monkeypatch, batch.turn):
        for verb in ("insert", "assign"):
            getattr(table, verb)(column, np.arange(2000))
            assert set(table.keys(like="numpy").tolist()) <= ever
            table.check()
    table.insert([*ever], np.arange(len(ever)))
    with changing(monkeypatch, batch.turn):
        assert np.asarray(table.contains(column)).all()
        table.erase(column)
    table.check()


def test_keys_with_nulls_in_memory_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    (keys,) = batch = Changing((np.arange(2000) % 700, np.arange(2000) % 700 + 500))
    table: Any = HashSet("i8", nulls="key", device="cpu", seed=1)
    with changing(monkeypatch, batch.turn):
        table.insert(keys)
    table.check()
    assert set(np.asarray(table.keys()).tolist()) <= set(range(1200))


@pytest.mark.parametrize("place", [0, 1, 1000, 2000])
def test_offsets_that_fall_are_refused(place: int) -> None:
    offsets, data = strings(np.arange(2000))
    offsets[place] += 100 if place in (1, 1000) else 2**20
    table: Any = HashSet("bytes", device="cpu")
    with pytest.raises(DtypeError, match="offsets"):
        table.insert(StringArray(offsets, data, False))
    assert not len(table)


def views_over(places: Any, lengths: Any, data: Any) -> Any:
    """A column of Arrow's views of more than 12 bytes, in the memory of NumPy arrays."""
    words = np.zeros((len(places), 4), np.uint32)
    words[:, 0], words[:, 3] = lengths, places
    words[:, 1] = [int.from_bytes(data[place : place + 4].tobytes(), "little") for place in places]
    return pa.Array.from_buffers(pa.binary_view(), len(places), [None, pa.py_buffer(words), pa.py_buffer(data)]), words


@pytest.mark.parametrize("step", [15, 10_000], ids=["dense", "sparse"])
def test_views_in_memory_that_changes(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(1).integers(0, 256, 200 * step + 20, np.uint8)
    places = np.arange(200) * step
    column, words = views_over(places, np.full(200, 14), data)
    expected = column.to_pylist()
    table: Any = HashSet("bytes", device="cpu", seed=1)
    with changing(monkeypatch, Changing().turn):
        table.insert(column)
    assert set(table.keys(like="numpy")) == set(expected)
    data[:] ^= 255
    assert table.contains(expected).all()
    assert not np.asarray(table.contains(column)).any()
    words[100, 0] = 2**31
    with pytest.raises(DtypeError, match="views that lead into its buffers"):
        table.insert(column)
    table.check()


def test_views_of_several_buffers() -> None:
    texts = [f"{'long' * (i % 5)}{i}" if i % 7 else None for i in range(3000)]
    view = pa.array(texts, pa.string_view())
    for column in (view, view.slice(7, 100), pa.chunked_array([view, view.slice(3)])):
        table: Any = HashSet("str", nulls="drop", device="cpu")
        table.insert(column)
        kept = [text for text in column.to_pylist() if text is not None]
        assert set(table.keys(like="numpy").tolist()) == set(kept)
        assert np.asarray(table.contains(column)).sum() == len(kept)


# ---- arrays that change all the time
@contextmanager
def writer(turn: Callable[[], None]) -> Iterator[None]:
    """A thread that calls ``turn`` again and again."""
    stop = Event()

    def work() -> None:
        while not stop.is_set():
            turn()

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("types", ["4+4", "8+8"], indirect=True)
def test_keys_that_are_there_are_found(design: str, types: tuple[str, str]) -> None:
    """A find computes the places of a block of keys, and looks there later."""
    n = 40_000 if design == "tiered" else 100_000
    first, second = rows_of(np.arange(n), types[0]), rows_of(np.arange(n, 2 * n), types[0])
    table: Any = HashMap(*types, design=design, device="cpu", seed=1)
    table.insert(np.concatenate([first, second]), rows_of(np.arange(2 * n), types[1]))
    (keys,) = batch = Changing((first, second))
    with writer(batch.turn):
        for _ in range(20):
            assert table.contains(keys).all()
            values, found = table.find(keys)
            assert found.all()
            assert (values % n == np.arange(n)).all()


_WRITES = """
import sys, threading, time
import numpy as np
import warphash as wh

design, keys, values, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
n, most = 100_000, 3_000
k, stop = np.zeros(n, keys), []
v = np.zeros(n, values)
table = wh.HashMap(keys, values, design=design, device="cpu", seed=1)
verbs = {"insert": (k, v), "assign": (k, v), "upsert": (k, v, "max"), "erase": (k,), "find": (k,)}
have = [verb for verb in verbs if verb in table._parts.facts.design.capabilities]

def write():
    random = np.random.default_rng(1)
    while not stop:
        some = random.integers(0, most, 5000)
        at = random.integers(0, n, 5000)
        k[at] = some if k.ndim == 1 else some[:, None]
        v[at] = some

thread = threading.Thread(target=write, daemon=True)
thread.start()
end = time.time() + seconds
try:
    while time.time() < end:
        for verb in have:
            before = len(table)
            answer = getattr(table, verb)(*verbs[verb])
            if verb in ("insert", "assign", "upsert", "erase"):
                assert answer.sum() == abs(len(table) - before), verb
        if len(table):
            held, with_values = table.to_arrays()
            assert held.min() >= 0 and held.max() < most and with_values.max() < most
            assert len(np.unique(held, axis=0)) == len(held)
        table.check()
        if np.random.default_rng().integers(4) == 0:
            table = wh.HashMap.from_arrays(k, v, design=design, device="cpu")
finally:
    stop.append(1)
    thread.join()
"""


@pytest.mark.parametrize(
    "types",
    ["8+8", *(pytest.param(types, marks=pytest.mark.slow) for types in ("4+4", "2+2", "3i8+8"))],
)
def test_a_process_lives_while_a_thread_writes(design: str, types: str) -> None:
    keys, values = types.split("+")
    named = [{"2": "i2", "4": "i4", "8": "i8"}.get(name, name) for name in (keys, values)]
    command = [sys.executable, "-c", _WRITES, design, *named, "0.4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
