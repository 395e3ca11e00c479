"""Lookups in CUDA graphs, as far as no GPU is needed: the CPU engine plays one whose stream 7 is captured.

`tests/frameworks/test_torch_graphs.py` captures and replays real graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.inside import parts_of, storage_of
from warphash import CaptureError, HashMap, HashSet, MultiMap, Operation
from warphash.arrays.library import ArrayView
from warphash.arrays.view import view
from warphash.designs import registry
from warphash.runtime.cpu import CpuEngine

KEYS = np.arange(100, 200)
CAPTURED = 7


@pytest.fixture(autouse=True)
def graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuEngine, "is_captured", lambda self, stream: stream == CAPTURED)


def captured(array: Any) -> ArrayView:
    """An array that is ready in the order of the captured stream."""
    return view(np.asarray(array))._replace(stream=CAPTURED)


def made(design: str = "auto", **options: Any) -> HashMap:
    return HashMap.from_arrays(KEYS, KEYS * 2, design=design, device="cpu", on_full="raise", **options)


DESIGNS = [name for name in registry.names() if not registry.get(name).layout.composed]


@pytest.mark.parametrize("design", DESIGNS)
def test_lookups_are_captured_until_the_table_moves(design: str) -> None:
    table = made(design, capacity=1000)
    assert table.captures_are_current()
    values, found = table.find(captured([100, 7, 199]), default=-1)
    assert values.tolist() == [200, -1, 398] and found.tolist() == [True, False, True]
    assert table.contains(captured([150, 201])).tolist() == [True, False]
    assert len(parts_of(table).lookups.captures.kept) == 1, "captures of one and the same memory are kept once"
    if "assign" in registry.get(design).capabilities:
        table.assign(np.arange(150, 250), np.zeros(100, np.int64))
        assert table.captures_are_current()
    if "reserve" in registry.get(design).capabilities:
        table.reserve(100_000)
        assert not table.captures_are_current()
    table.close()
    assert parts_of(table).lookups.captures.kept == []


def test_the_memory_of_a_graph_stays() -> None:
    table = made()
    old = storage_of(table).store.state.array
    table.find(captured(KEYS))
    kept = parts_of(table).lookups.captures.kept[0].memory
    table.reserve(100_000)
    assert storage_of(table).store.state.array is not old
    assert kept.table.slots == old.table.slots
    assert kept is not old, "an array that moves its memory by itself must not take that of the graph along"


def calls(table: Any) -> dict[str, Callable[[], Any]]:
    """Verbs that no graph can repeat, on arrays of the captured stream."""
    keys, values, all_finds = captured(KEYS), captured(KEYS), captured(np.full(100, Operation.FIND, np.uint8))
    return {
        "insert": lambda: table.insert(keys, values),
        "insert of values on the captured stream": lambda: table.insert(KEYS, values),
        "assign": lambda: table.assign(keys, values),
        "upsert": lambda: table.upsert(keys, values, "add"),
        "find_or_insert": lambda: table.find_or_insert(keys, values),
        "setdefault": lambda: table.setdefault(keys, values),
        "erase": lambda: table.erase(keys),
        "set item": lambda: table.__setitem__(keys, values),
        "delete item": lambda: table.__delitem__(keys),
        "execute": lambda: table.execute(all_finds, keys),
        "probe_counts": lambda: table.probe_counts(keys),
    }


@pytest.mark.parametrize("verb", calls(None))
def test_every_other_verb_says_why_not(verb: str) -> None:
    table = made("slab", capacity=200)
    before = sorted(table.items())
    with pytest.raises(CaptureError, match=r"only find and contains .* as it was"):
        calls(table)[verb]()
    assert sorted(table.items()) == before
    table.check()
    table.insert(KEYS + 100, KEYS)
    assert len(table) == 200


def test_sets_and_multimaps() -> None:
    members = HashSet.from_arrays(KEYS, device="cpu")
    assert members.contains(captured([100, 99])).tolist() == [True, False]
    with pytest.raises(CaptureError, match="only find and contains"):
        members.insert(captured(KEYS))
    pairs = MultiMap.from_arrays(KEYS // 2, KEYS, design="slab", device="cpu", on_full="raise")
    assert pairs.contains(captured([50, 49])).tolist() == [True, False]
    for verb in (pairs.find_all, pairs.count, pairs.erase_all):
        with pytest.raises(CaptureError, match="only find and contains"):
            verb(captured([50]))
    with pytest.raises(CaptureError, match=r"takes several kernels.*design='slab'"):
        MultiMap.from_arrays(KEYS // 2, KEYS, device="cpu").contains(captured([50]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_size": 200}, "a use of its keys.* without max_size"),
        ({"design": "slab", "on_full": "grow"}, "lists may grow.*on_full='raise'"),
        ({"design": "stadium", "memory": "host"}, "pairs lie in 'host'.* memory='device'"),
        ({"design": "tiered"}, "pairs lie in 'host'"),
    ],
)
def test_tables_of_which_no_lookup_is_captured(options: dict[str, Any], message: str) -> None:
    table = HashMap("int64", "int64", device="cpu", **options)
    table.insert(KEYS, KEYS)
    with pytest.raises(CaptureError, match=message):
        table.find(captured(KEYS))
    assert table.find(KEYS)[1].all()


def test_an_update_that_nobody_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made()
    monkeypatch.setattr(type(storage_of(table).store), "pending", True)
    with pytest.raises(CaptureError, match=r"under way\. Call len\(table\)"):
        table.contains(captured(KEYS))


def test_keys_that_need_working_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, and keys narrower than a word, are copied before they are looked up."""
    original = CpuEngine.allocate

    def allocate(self: CpuEngine, nbytes: int, stream: Any = None) -> Any:
        if self.is_captured(stream):
            raise CaptureError("no working memory")
        return original(self, nbytes, stream)

    monkeypatch.setattr(CpuEngine, "allocate", allocate)
    for dtype in ("uint16", "S24"):
        table = HashSet.from_arrays(KEYS.astype(dtype), device="cpu")
        with pytest.raises(CaptureError, match=r"no working memory: only keys and values .* of 4 or 8 bytes"):
            table.contains(captured(KEYS.astype(dtype)))
        assert parts_of(table).lookups.captures.kept == []
