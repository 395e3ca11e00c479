"""`stream=`: a verb behind a stream of the caller's, and in its order. `test_gpu_arrays` tries it on a GPU."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warphash import CaptureError, HashMap, HashSet, MultiMap, ParameterError
from warphash.arrays import on_stream as module
from warphash.arrays.dlpack import LEGACY_STREAM
from warphash.arrays.on_stream import on_stream

KEYS = np.array([7, 8, 9])

VERBS: dict[str, tuple[type[Any], Callable[..., Any]]] = {
    "HashMap.insert": (HashMap, lambda m, **named: m.insert(KEYS, KEYS, **named)),
    "HashMap.assign": (HashMap, lambda m, **named: m.assign(KEYS, KEYS, **named)),
    "HashMap.upsert": (HashMap, lambda m, **named: m.upsert(KEYS, KEYS, "add", **named)),
    "HashMap.find": (HashMap, lambda m, **named: m.find(KEYS, -1, **named)),
    "HashMap.find, in any order": (HashMap, lambda m, **named: m.find(KEYS, -1, order="any", **named)),
    "HashMap.find_or_insert": (HashMap, lambda m, **named: m.find_or_insert(KEYS, KEYS, **named)),
    "HashMap.number": (HashMap, lambda m, **named: m.number(KEYS, **named)),
    "HashMap.contains": (HashMap, lambda m, **named: m.contains(KEYS, **named)),
    "HashMap.erase": (HashMap, lambda m, **named: m.erase(KEYS, **named)),
    "HashSet.insert": (HashSet, lambda m, **named: m.insert(KEYS, **named)),
    "HashSet.contains": (HashSet, lambda m, **named: m.contains(KEYS, **named)),
    "HashSet.erase": (HashSet, lambda m, **named: m.erase(KEYS, **named)),
    "MultiMap.insert": (MultiMap, lambda m, **named: m.insert(KEYS, KEYS, **named)),
    "MultiMap.count": (MultiMap, lambda m, **named: m.count(KEYS, **named)),
    "MultiMap.find": (MultiMap, lambda m, **named: m.find(KEYS, -1, **named)),
    "MultiMap.find_all": (MultiMap, lambda m, **named: m.find_all(KEYS, **named)),
    "MultiMap.contains": (MultiMap, lambda m, **named: m.contains(KEYS, **named)),
    "MultiMap.erase": (MultiMap, lambda m, **named: m.erase(KEYS, **named)),
    "MultiMap.erase_all": (MultiMap, lambda m, **named: m.erase_all(KEYS, **named)),
}


def made(kind: type[Any]) -> Any:
    table = kind("int64", device="cpu") if kind is HashSet else kind("int64", "int64", device="cpu")
    table.insert(KEYS[1:2], *([] if kind is HashSet else [KEYS[1:2]]))
    return table


class Engine:
    """Notes what it is asked for."""

    device = "cuda:1"

    def __init__(self, captured: bool = False) -> None:
        self.said: list[Any] = []
        self.captured = captured

    def is_captured(self, handle: int) -> bool:
        return self.captured

    def order(self, handle: int, function: Any) -> Any:
        self.said.append(("order", handle))
        return function(handle)

    def wait(self, handle: int) -> None:
        self.said.append(("wait", handle))


def test_every_verb_that_takes_a_stream_is_tried() -> None:
    takes = {
        f"{kind.__name__}.{name}"
        for kind in (HashMap, HashSet, MultiMap)
        for name in dir(kind)
        if inspect.isroutine(getattr(kind, name)) and not name.startswith("_")
        if "stream" in inspect.signature(getattr(kind, name)).parameters
    }
    assert takes == {name.partition(",")[0] for name in VERBS}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_runs_on_the_stream(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, call = VERBS[verb]
    said: list[Any] = []

    @contextmanager
    def noted(stream: Any, keys: Any, engine: Any) -> Iterator[None]:
        said.append((stream, keys is KEYS, engine.device))
        yield
        said.append("done")

    for name in ("base", "maps", "multimap"):
        monkeypatch.setattr(f"warphash.table.{name}.on_stream", noted)
    one, other = made(kind), made(kind)
    expected, came = call(one), call(other, stream=77)
    assert said == [(77, True, "cpu"), "done"]
    assert str(came) == str(expected) and sorted(one.keys()) == sorted(other.keys())


@pytest.mark.parametrize("verb", VERBS)
def test_a_table_on_a_cpu_takes_no_stream(verb: str) -> None:
    kind, call = VERBS[verb]
    table = made(kind)
    with pytest.raises(ParameterError, match="stream= is for tables on a GPU, and this one is on cpu: leave it out"):
        call(table, stream=0)
    assert len(table) == 1


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (77, 77),
        (0, 0),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 78)), 78),
        (SimpleNamespace(cuda_stream=79), 79),
        (SimpleNamespace(ptr=80), 80),
    ],
)
def test_arrays_without_a_current_stream_are_behind_the_stream_and_it_behind_them(stream: Any, handle: int) -> None:
    engine = Engine()
    with on_stream(stream, KEYS, engine):
        engine.said.append("verb")
    assert engine.said == [("order", handle), "verb", ("wait", handle)]


@pytest.mark.parametrize("stream", [True, -1, "main", 1.5, SimpleNamespace(ptr=None)])
def test_what_is_no_stream_is_refused(stream: Any) -> None:
    engine = Engine()
    wrong = pytest.raises(ParameterError, match="stream must be a handle or an object with __cuda_stream__")
    with wrong, on_stream(stream, KEYS, engine):
        raise AssertionError
    assert engine.said == []


def test_a_stream_that_a_graph_captures_is_refused_for_other_arrays() -> None:
    refused = pytest.raises(CaptureError, match="call the verb outside of the capture")
    with refused, on_stream(77, KEYS, Engine(captured=True)):
        raise AssertionError


class Current:
    """The current stream of a library that stands in for CuPy or PyTorch."""

    def __init__(self) -> None:
        self.streams: list[Any] = ["main"]

    @contextmanager
    def use(self, name: Any) -> Iterator[None]:
        self.streams.append(name)
        yield
        self.streams.pop()


@pytest.mark.parametrize(("handle", "stream"), [(0, "null"), (LEGACY_STREAM, "null"), (77, (77, 1))])
def test_the_stream_is_the_current_one_of_cupy(handle: int, stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cupy, current = ModuleType("cupy"), Current()
    cupy.ndarray = type("ndarray", (), {"__module__": "cupy", "__cuda_array_interface__": {}})  # type: ignore[attr-defined]
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        Device=lambda index: current.use(f"device {index}"),
        ExternalStream=lambda handle, index: current.use((handle, index)),
        Stream=SimpleNamespace(null=current.use("null")),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    engine = Engine(captured=True)
    with on_stream(handle, cupy.ndarray(), engine):
        assert current.streams == ["main", "device 1", stream]
    assert current.streams == ["main"] and engine.said == []


@pytest.mark.parametrize(("handle", "stream"), [(0, "default 1"), (LEGACY_STREAM, "default 1"), (77, (77, 1))])
def test_the_stream_is_the_current_one_of_pytorch(handle: int, stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch, current = ModuleType("torch"), Current()
    torch.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        default_stream=lambda index: f"default {index}",
        ExternalStream=lambda handle, device: (handle, device),
        stream=current.use,
    )
    from warphash.arrays.adapters.torch import LIBRARY

    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(module, "library_of", lambda keys: LIBRARY)
    engine = Engine()
    with on_stream(handle, SimpleNamespace(is_cuda=True), engine):
        assert current.streams == ["main", stream]
    assert current.streams == ["main"] and engine.said == []
    with on_stream(handle, SimpleNamespace(is_cuda=False), engine):
        assert current.streams == ["main"]
    assert len(engine.said) == 2
