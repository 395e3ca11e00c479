"""Copies and pickles of tables, and of all else that is public: whole, apart from the original, and of its options."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import re
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import ONE_OF_EACH_FAMILY, Case, MultiCase, design_names
from support.inside import parts_of
from support.model import Model
from support.multi_model import MultiModel
from warphash import DeviceError, EngineUnavailable, HashMap, HashSet, MultiMap, Operation, SlabAllocator, TableFull
from warphash.arrays.dlpack import DeviceArray
from warphash.runtime.cuda.driver import DriverError
from warphash.runtime.cuda.nvrtc import CompileError
from warphash.runtime.emulated.engine import EmulationError

KEYS = np.arange(40, dtype=np.uint32) * 3
VALUES = KEYS.astype(np.float64)


def through_pickle(protocol: int) -> Callable[[Any], Any]:
    return lambda original: pickle.loads(pickle.dumps(original, protocol))


def out_of_band(original: Any) -> Any:
    """Through buffers that are read-only and not aligned, as those of shared memory or a socket can be."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(original, protocol=5, buffer_callback=buffers.append)
    received = [memoryview(b"\0" + bytes(buffer.raw()))[1:] for buffer in buffers]
    return pickle.loads(data, buffers=received)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"protocol {protocol}": through_pickle(protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)},
    "out of band": out_of_band,
}
FEW = ("copy", "deepcopy", "protocol 2", "out of band")


def options_of(table: Any) -> dict[str, Any]:
    """All that a table was made with, but its capacity, which rounding and growth may raise."""
    options = parts_of(table).copies.typed_description_locked()
    described = {name: value for name, value in options.items() if name != "capacity"}
    return {**described, "device": table.device, "class": type(table)}


def check_twins(table: Any, model: Any, keys: Any, names: Any) -> None:
    for name in names:
        twin, twin_model = COPIES[name](table), copy.deepcopy(model)
        assert options_of(twin) == options_of(table), name
        assert twin.capacity >= table.capacity, name
        if isinstance(model, MultiModel):
            twin_model.agrees(twin)
            twin_model.erased_all(keys[1::2], twin.erase_all(keys[1::2]))
        else:
            twin_model.agrees(twin)
            twin_model.erased(keys[1::2], twin.erase(keys[1::2]))
        twin_model.agrees(twin, keys)
    model.agrees(table, keys)  # as it was: the twins have erased keys of their own


def test_of_a_table(case: Case, rng: np.random.Generator) -> None:
    names = FEW if case.engine == "emulated" else COPIES
    keys = case.keys(30 if case.engine == "emulated" else 150, rng)
    values = case.values(len(keys), rng)
    table, model = case.from_arrays(keys, values, attempts=5), Model(case.is_set)
    check_twins(case.table(capacity=5), Model(case.is_set), keys[:2], names)
    model.inserted(keys, values, np.ones(len(keys), bool))
    model.erased(keys[::4], table.erase(keys[::4]))
    check_twins(table, model, keys, names)


def test_of_a_multimap(multi_case: MultiCase, rng: np.random.Generator) -> None:
    names = FEW if multi_case.engine == "emulated" else COPIES
    keys = multi_case.keys(20 if multi_case.engine == "emulated" else 60, rng).repeat(2)
    values = multi_case.values(len(keys), rng)
    table, model = multi_case.from_arrays(keys, values), MultiModel()
    model.inserted(keys, values, table)
    check_twins(table, model, keys, names)


@pytest.mark.parametrize("name", COPIES)
def test_options_come_along(name: str) -> None:
    options: dict[str, Any] = {"device": "cpu", "seed": 5, "hash": "universal", "attempts": 3, "count_probes": True}
    bounded = HashMap("u4", "f8", design="linear_probing", load_bounds=(0.1, 0.7), capacity=99, **options)
    full = HashSet("u4", design="bucketed_cuckoo", slots_per_bucket=8, on_full="raise", load_factor=0.5, **options)
    lists = MultiMap("u4", "f8", design="slab", allocator="slab_light", buckets=7, rebucket=False, device="cpu")
    lists.reserve(5000)
    for table in (bounded, full, lists):
        twin = COPIES[name](table)
        assert options_of(twin) == options_of(table) and twin.capacity >= table.capacity
    with pytest.raises(TableFull):
        COPIES[name](full).insert(np.arange(10_000, dtype=np.uint32))


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ([("order", "i8"), ("line", "i4", (2,))], np.dtype([("flag", "u1"), ("price", "f8")], align=True)),
        (("S3", (2,)), "M8[us]"),
        ("m8[s]", ("c16", (2, 2))),
        (">u4", [("big", ">i2"), (("a title", "titled"), "U4")]),
        ("?", "?"),
    ],
    ids=["fields", "rows", "times", "foreign order", "bools"],
)
def test_types_come_along(name: str, key: Any, value: Any) -> None:
    table = HashMap(key, value, device="cpu")
    keys = np.zeros(2, table.key_dtype)
    keys.reshape(2, -1).view(np.uint8).reshape(2, -1)[1, 0] = 1
    values = np.zeros(2, table.value_dtype)
    values.reshape(2, -1).view(np.uint8).reshape(2, -1)[1, 0] = 1
    table.insert(keys, values)
    for original in (table, HashMap(key, value, device="cpu")):
        twin = COPIES[name](original)
        assert (twin.key_dtype, twin.value_dtype) == (table.key_dtype, table.value_dtype)
        assert len(twin) == len(original)
    held, found = COPIES[name](table).find(keys)
    assert found.all() and held.tobytes() == values.tobytes()


@pytest.mark.parametrize("key", ["u4", "M8[s]", "V12", ("i4", (3,)), [("a", "i8"), ("b", "i4")]], ids=str)
def test_keys_and_values_are_out_of_band(key: Any) -> None:
    """All the bytes that grow with the table go by as buffers; what is left does not grow."""
    sizes = []
    for n in (10, 1000):
        table = HashMap(key, "M8[ns]", device="cpu", capacity=1000, seed=1)
        base, shape = np.dtype(key).base, np.dtype(key).shape
        raw = np.zeros((n, np.dtype(key).itemsize), np.uint8)
        raw[:, :4] = np.arange(n, dtype="<u4").view(np.uint8).reshape(n, 4)
        table.insert(raw.reshape(-1).view(base).reshape(n, *shape), np.arange(n).astype("M8[ns]"))
        buffers: list[pickle.PickleBuffer] = []
        sizes.append(len(pickle.dumps(table, protocol=5, buffer_callback=buffers.append)))
        assert [buffer.raw().nbytes for buffer in buffers] == [table.key_dtype.itemsize * n, 8 * n]
    assert sizes[0] <= sizes[1] <= sizes[0] + 8 and sizes[1] < 1000


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize(
    "design",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in ONE_OF_EACH_FAMILY)) for name in design_names()],
)
@pytest.mark.parametrize("key", ["u4", "S40"])
def test_a_table_fuller_than_its_capacity(name: str, design: str, key: str) -> None:
    """It took keys in an order, and by hash constants, that a twin's one batch does not have."""
    for seed in range(3):
        keys = np.random.default_rng(seed).permutation(1 << 12).astype(np.uint32).astype(key)
        table = HashSet(key, capacity=60, design=design, device="cpu", seed=seed, on_full="raise")
        at, step = 0, 16
        while step:
            try:
                table.insert(keys[at : at + step])
                at += step
            except TableFull:
                step //= 2
        twin = COPIES[name](table)
        assert len(twin) == at and twin.contains(keys[:at]).all()
        assert options_of(twin) == options_of(table)
        assert len(table | table) == len(table & table) == at


# ---- subclasses


class Tagged(HashMap):
    """A caller's own class, whose constructor takes other arguments."""

    def __init__(self, tag: Any) -> None:
        super().__init__("u4", "f8", device="cpu")
        self.tag = tag


class Slotted(HashSet):
    __slots__ = ("tag",)


class Selective(HashSet):
    """Keeps a lock, which nothing copies."""

    def __init__(self, **options: Any) -> None:
        super().__init__("u4", device="cpu", **options)
        self.guard, self.tag = threading.Lock(), [1]

    def __getstate__(self) -> Any:
        return {"tag": self.tag}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__({**state, "guard": threading.Lock()})


class Reduced(Tagged):
    def __reduce__(self) -> Any:
        return Tagged, ("reduced",)


class Lists(MultiMap):
    pass


@pytest.mark.parametrize("name", COPIES)
def test_subclasses_keep_their_attributes(name: str) -> None:
    tagged = Tagged(["a"])
    tagged[KEYS] = VALUES
    lists = Lists.from_arrays(KEYS, VALUES, device="cpu")
    lists.tag = ["a"]
    slotted = Slotted.from_arrays(KEYS, device="cpu")
    slotted.tag = slotted.note = ["a"]
    for table in (tagged, lists, slotted):
        twin = COPIES[name](table)
        assert type(twin) is type(table) and len(twin) == len(KEYS)
        assert twin.tag == ["a"] and (twin.tag is table.tag) == (name == "copy")
    assert twin.note is twin.tag
    tagged.tag = tagged
    twin = COPIES[name](tagged)
    assert twin.tag is (tagged if name == "copy" else twin)


@pytest.mark.parametrize("name", COPIES)
def test_subclasses_choose_their_state(name: str) -> None:
    table = Selective()
    table.insert(KEYS)
    twin = COPIES[name](table)
    assert twin.tag == [1] and twin.guard is not table.guard and len(twin) == len(KEYS)
    if name not in ("copy", "deepcopy"):
        assert COPIES[name](Reduced("a")).tag == "reduced"


def test_what_makes_another_table_of_a_subclass_keeps_its_attributes() -> None:
    table = Slotted.from_arrays(KEYS, device="cpu")
    table.tag = ["a"]
    for made in (table.copy(), table | table, table & table, table - table, table ^ table, table.__replace__(seed=3)):
        assert type(made) is Slotted and made.tag is table.tag


def test_a_table_has_no_attributes_but_the_caller_s() -> None:
    """Those of its own are slots. Here they would be copied into the twin, over those which it was made with."""
    for table in (HashMap("u4", "u4", device="cpu"), HashSet("u4", device="cpu"), MultiMap("u4", "u4", device="cpu")):
        assert vars(table) == {} and table.__getstate__() is None


# ---- other options, weak references


def test_replace() -> None:
    table = HashMap.from_arrays(KEYS, VALUES, design="bucketed_cuckoo", slots_per_bucket=8, device="cpu", seed=3)
    same = table.__replace__()
    assert options_of(same) == options_of(table) and (same[KEYS] == VALUES).all()
    wider = table.__replace__(slots_per_bucket=32, capacity=5000, on_full="raise")
    assert wider.stats().parameters["slots_per_bucket"] == 32 and wider.capacity >= 5000 and wider.seed == 3
    listed = table.__replace__(design="slab", device="cpu")
    assert listed.design == "slab" and (listed[KEYS] == VALUES).all()
    for wrong in (
        {"key": "u8"},
        {"value": "u8", "key": "u8"},
        {"capacity": "large"},
        {"buckets": 3},
        {"kind": "HashSet"},
        {"seed": -1},
    ):
        with pytest.raises(warphash.ParameterError):
            table.__replace__(**wrong)
    with pytest.raises(DeviceError):
        table.__replace__(device="gpu")
    assert options_of(table.__replace__()) == options_of(table)


def test_weak_references() -> None:
    table = HashMap("u4", "u4", device="cpu")
    reference = weakref.ref(table)
    assert reference() is table
    del table
    assert reference() is None


# ---- where a table comes back


@pytest.fixture
def from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A pickle of a table on a GPU that is not there."""
    table = HashMap.from_arrays(KEYS, VALUES, device="cpu")
    monkeypatch.setattr(parts_of(table).front, "device", "cuda:99")
    return pickle.dumps(table)


def test_the_mend_for_a_missing_device_mends_it(from_elsewhere: bytes) -> None:
    with pytest.raises((EngineUnavailable, DeviceError), match="pickled on 'cuda:99', which is not usable") as caught:
        pickle.loads(from_elsewhere)
    mend = re.search(r"^with .*$", str(caught.value), re.MULTILINE)
    assert mend
    names = {"warphash": warphash, "pickle": pickle, "data": from_elsewhere}
    exec(mend[0], names)
    table: Any = names["table"]
    assert table.device == "cpu" and (table[KEYS] == VALUES).all()
    with pytest.raises((EngineUnavailable, DeviceError)):
        pickle.loads(from_elsewhere)


def test_the_choice_of_a_device_is_the_thread_s(from_elsewhere: bytes) -> None:
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait()
        try:
            with pytest.raises((EngineUnavailable, DeviceError)):
                pickle.loads(from_elsewhere)
        finally:
            done.set()

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(other)
        with warphash.unpickle_to("cpu"):
            inside.set()
            done.wait()
            assert pickle.loads(from_elsewhere).device == "cpu"
        answer.result()


def test_choices_of_a_device_nest(from_elsewhere: bytes) -> None:
    with warphash.unpickle_to("nowhere"):
        with warphash.unpickle_to("cpu"):
            assert pickle.loads(from_elsewhere).device == "cpu"
        with pytest.raises(DeviceError, match="device must be 'cpu', 'cuda'"):
            pickle.loads(from_elsewhere)
    with warphash.unpickle_to(None):
        assert pickle.loads(from_elsewhere).device in ("cpu", "cuda:0")
    with pytest.raises(ZeroDivisionError), warphash.unpickle_to("cpu"):
        raise ZeroDivisionError
    with pytest.raises((EngineUnavailable, DeviceError)):
        pickle.loads(from_elsewhere)


# ---- threads and processes


def test_a_pickle_beside_a_writer_is_of_one_moment() -> None:
    table = HashMap.from_arrays(KEYS, np.zeros(len(KEYS), np.int64), device="cpu")
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.wait(0.001):  # a writer that never rests keeps readers waiting
            number += 1
            table.assign(KEYS, np.full(len(KEYS), number))
            table.reserve(500)
            table.shrink()

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            for name in [*COPIES] * 5:
                twin = COPIES[name](table)
                assert len(twin) == len(KEYS) and len({*twin.values().tolist()}) == 1
        finally:
            stop.set()
        writer.result()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_tables_go_to_another_process_and_come_back(method: str) -> None:
    """An error that the other process raises comes back too."""
    tables = [HashMap.from_arrays(KEYS, VALUES, device="cpu", on_full="raise"), HashSet.from_arrays(KEYS, device="cpu")]
    tables.append(MultiMap.from_arrays(KEYS, VALUES, device="cpu"))
    many = np.arange(10_000, dtype=np.uint32)
    with multiprocessing.get_context(method).Pool(1) as pool:
        for table in tables:
            assert pool.apply(methodcaller("contains", KEYS), (table,)).all()
            twin = pool.apply(copy.copy, (table,))
            assert options_of(twin) == options_of(table) and sorted(twin.keys()) == KEYS.tolist()
        with pytest.raises(TableFull) as caught:
            pool.apply(methodcaller("insert", many, many.astype(np.float64)), (tables[0],))
    assert len(caught.value.keys) > 0 and np.isin(caught.value.keys, many).all()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_the_table_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """And changes a copy of its own: threads of a bulk operation end with it, so that none is missing in the child."""
    monkeypatch.setenv("WARPHASH_NUM_THREADS", "2")
    keys = np.arange(100_000, dtype=np.uint32)
    table = HashMap.from_arrays(keys, keys, device="cpu")
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def child() -> None:
        read = bool((table[keys] == keys).all())
        table.erase(keys[::2])
        table.insert(keys + 100_000, keys)
        table.check()
        theirs.send((read, len(table)))

    process = context.Process(target=child)
    process.start()
    assert ours.poll(60) and ours.recv() == (True, 150_000)
    process.join()
    assert process.exitcode == 0
    assert len(table) == len(keys) and (table[keys] == keys).all()
    table.check()


# ---- what is no table


@pytest.mark.parametrize("name", COPIES)
def test_other_public_objects(name: str) -> None:
    table = HashMap.from_arrays(KEYS, VALUES, device="cpu", count_probes=True)
    stats = table.stats()
    assert COPIES[name](stats) == stats
    for operation in Operation:
        assert COPIES[name](operation) is operation
    assert len({*COPIES[name](table.items())}) == len(KEYS)


ERRORS = [getattr(warphash, name) for name in warphash.__all__]
ERRORS = [kind for kind in ERRORS if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("kind", [*ERRORS, CompileError, DriverError, EmulationError])
def test_errors(name: str, kind: type[Exception]) -> None:
    error = kind("what came, and the mend")
    error.add_note("a note")
    again = COPIES[name](error)
    assert type(again) is kind and again.args == error.args and str(again) == str(error)
    assert again.__notes__ == ["a note"]


@pytest.mark.parametrize("name", COPIES)
def test_the_keys_of_a_full_table(name: str) -> None:
    with pytest.raises(TableFull) as caught:
        HashSet("M8[s]", capacity=4, on_full="raise", device="cpu").insert(np.arange(100).astype("M8[s]"))
    again = COPIES[name](caught.value)
    assert str(again) == str(caught.value) and again.keys.dtype == np.dtype("M8[s]")
    np.testing.assert_array_equal(again.keys, caught.value.keys)
    assert COPIES[name](TableFull("full")).keys is None


@pytest.mark.parametrize("name", COPIES)
def test_what_is_never_copied(name: str) -> None:
    slabs = SlabAllocator(device="cpu", blocks_per_super_block=1)
    with pytest.raises(warphash.UnsupportedVerb, match="make a new SlabAllocator"):
        COPIES[name](slabs)
    memory = DeviceArray(None, 0, (4,), np.dtype("u4"), 0, lambda stream: None)
    with pytest.raises(warphash.UnsupportedVerb, match=r"cupy\.asarray"):
        COPIES[name](memory)


def test_pickles_of_a_file(tmp_path: Path) -> None:
    table = HashMap.from_arrays(KEYS, VALUES, device="cpu")
    with (tmp_path / "tables").open("wb") as file:
        pickle.dump([table, table], file)
    with (tmp_path / "tables").open("rb") as file:
        one, other = pickle.load(file)
    assert one is other and (one[KEYS] == VALUES).all()
