"""Every verb asks the registry whether the design has it: here a static design, which is built and then only read."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.verbs import KINDS, public
from warphash import HashMap, HashSet, MultiMap, UnsupportedVerb
from warphash.designs import registry
from warphash.designs.base import GROUP_VERBS, LIST_VERBS

STATIC = frozenset({"contains", "find", "keys", "values", "items", "to_arrays", "copy", "save", "probe_counts"})
"""Verbs of a design that is built in one pass."""

UNGATED = frozenset(
    {
        *("design", "device", "memory", "key_dtype", "value_dtype", "seed", "capacity", "load_factor", "nbytes"),
        *("__len__", "__repr__", "stats", "check", "captures_are_current", "__getstate__", "__setstate__"),
        *("from_arrays", "load", "open", "close", "__enter__", "__exit__", "to", "cpu", "cuda", "plan"),
    }
)
"""What every table has: its figures, its own proof, and ways to be built and to be given back."""

KEYS, VALUES = np.arange(100), np.arange(100) * 3


def replaced_design(monkeypatch: pytest.MonkeyPatch, name: str, capabilities: frozenset[str]) -> None:
    """Register a design under its name with other capabilities: its kernels stay."""
    design = replace(registry.get(name), capabilities=capabilities)
    monkeypatch.setitem(registry._BY_NAME, name, design)


@pytest.fixture
def static(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    replaced_design(monkeypatch, "bucketed_cuckoo", STATIC)
    yield "bucketed_cuckoo"


def in_place(operator: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda table, _folder: operator(table)


CALLS: dict[str, tuple[str, Callable[[Any, Path], Any]]] = {
    "insert": ("insert", in_place(lambda t: t.insert(*given(t)))),
    "assign": ("assign", in_place(lambda t: t.assign(*given(t)))),
    "upsert": ("upsert", in_place(lambda t: t.upsert(*given(t), "add"))),
    "find_or_insert": ("find_or_insert", in_place(lambda t: t.find_or_insert(*given(t)))),
    "number": ("number", in_place(lambda t: t.number(KEYS))),
    "erase": ("erase", in_place(lambda t: t.erase(KEYS))),
    "erase_if": ("erase", in_place(lambda t: t.erase_if("keys", "<", 5))),
    "evict": ("erase", in_place(lambda t: t.evict(5))),
    "erase_all": ("erase_all", in_place(lambda t: t.erase_all(KEYS))),
    "execute": ("execute", in_place(lambda t: t.execute(np.zeros(100, "u1"), *given(t)))),
    "__setitem__": ("assign", in_place(lambda t: t.__setitem__(KEYS, VALUES))),
    "__delitem__": ("erase", in_place(lambda t: t.__delitem__(KEYS))),
    "clear": ("clear", in_place(lambda t: t.clear())),
    "reserve": ("reserve", in_place(lambda t: t.reserve(1000))),
    "shrink": ("shrink", in_place(lambda t: t.shrink())),
    "flush": ("flush", in_place(lambda t: t.flush())),
    "contains": ("contains", in_place(lambda t: t.contains(KEYS))),
    "find": ("find", in_place(lambda t: t.find(KEYS))),
    "find_all": ("find_all", in_place(lambda t: t.find_all(KEYS))),
    "count": ("count", in_place(lambda t: t.count(KEYS))),
    "__getitem__": ("find", in_place(lambda t: t[KEYS])),
    "__contains__": ("contains", in_place(lambda t: 5 in t)),
    "probe_counts": ("probe_counts", in_place(lambda t: t.probe_counts(KEYS))),
    "guest_counts": ("guest_counts", in_place(lambda t: t.guest_counts(KEYS))),
    "keys": ("keys", in_place(lambda t: t.keys())),
    "__iter__": ("keys", in_place(iter)),
    "values": ("values", in_place(lambda t: t.values())),
    "items": ("items", in_place(lambda t: t.items())),
    "to_arrays": ("to_arrays", in_place(lambda t: t.to_arrays())),
    "copy": ("copy", in_place(lambda t: t.copy())),
    "__copy__": ("copy", in_place(copy.copy)),
    "__deepcopy__": ("copy", in_place(copy.deepcopy)),
    "__replace__": ("copy", in_place(lambda t: t.__replace__(attempts=9))),
    "__reduce__": ("save", in_place(pickle.dumps)),
    "save": ("save", lambda table, folder: table.save(folder / "table")),
    **{
        name: ("keys", in_place(lambda t, name=name: getattr(t, name)(t)))
        for name in ("__or__", "__and__", "__sub__", "__xor__", "__le__", "__lt__", "__ge__", "__gt__", "__eq__")
    },
    "isdisjoint": ("keys", in_place(lambda t: t.isdisjoint(t))),
    **{
        name: ("keys", in_place(lambda t, name=name: getattr(t, name)(t)))
        for name in ("union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset")
    },
    **{
        name: (
            capability,
            in_place(lambda t, name=name: getattr(t, name)(type(t).from_arrays(*given(t), device="cpu"))),
        )
        for name, capability in (("__ior__", "insert"), ("__iand__", "erase"), ("__isub__", "erase"))
    },
    "update": ("insert", in_place(lambda t: t.update(type(t).from_arrays(*given(t), device="cpu")))),
    "get": ("find", in_place(lambda t: t.get(5))),
    "pop": ("erase", in_place(lambda t: t.pop(KEYS))),
    "setdefault": ("find_or_insert", in_place(lambda t: t.setdefault(*given(t)))),
    "add": ("insert", in_place(lambda t: t.add(5))),
    "discard": ("erase", in_place(lambda t: t.discard(5))),
    "remove": ("erase", in_place(lambda t: t.remove(5))),
}
OF_MULTIMAPS = {"__getitem__": ("find_all", CALLS["__getitem__"][1])}
OF_MAPS = {name: ("assign", CALLS[name][1]) for name in ("update", "__ior__", "__or__")}
"""The capability that each verb needs, and a call of the verb."""


def given(table: Any) -> tuple[Any, ...]:
    return (KEYS,) if isinstance(table, HashSet) else (KEYS, VALUES)


def crossed() -> list[Any]:
    return [
        pytest.param(kind, verb, id=f"{kind}-{verb}")
        for kind in ("HashMap", "HashSet")
        for verb in public(kind)
        if verb not in UNGATED
    ]


@pytest.mark.parametrize(("kind", "verb"), crossed())
def test_a_static_design_has_the_verbs_of_its_capabilities(static: str, kind: str, verb: str, tmp_path: Path) -> None:
    arrays = (KEYS, VALUES) if kind == "HashMap" else (KEYS,)
    table: Any = KINDS[kind].from_arrays(*arrays, design=static, device="cpu")
    capability, call = (CALLS | OF_MAPS if kind == "HashMap" else CALLS)[verb]
    if capability in STATIC:
        call(table, tmp_path)
    else:
        with pytest.raises(UnsupportedVerb, match=f"design '{static}' has no {capability}; these have: ") as caught:
            call(table, tmp_path)
        said = str(caught.value).partition("these have: ")[2].split(", ")
        assert said == [name for name in registry.names() if capability in registry.get(name).capabilities]
        assert static not in said and said
    assert len(table) == 100
    table.check()


@pytest.mark.parametrize("verb", [verb for verb in public("MultiMap") if verb not in UNGATED])
def test_a_multimap_has_the_verbs_of_its_capabilities(
    monkeypatch: pytest.MonkeyPatch, verb: str, tmp_path: Path
) -> None:
    capability, call = (CALLS | OF_MULTIMAPS)[verb]
    table = MultiMap.from_arrays(KEYS, VALUES, design="slab", device="cpu")
    if capability in LIST_VERBS:
        call(table, tmp_path)
    replaced_design(monkeypatch, "slab", frozenset())
    table = MultiMap.from_arrays(KEYS, VALUES, design="slab", device="cpu")
    with pytest.raises(UnsupportedVerb, match=f"design 'slab' has no {capability}; "):
        call(table, tmp_path)


@pytest.mark.parametrize("verb", [verb for verb in public("MultiMap") if verb not in UNGATED])
def test_a_multimap_in_groups_has_the_verbs_of_groups(verb: str, tmp_path: Path) -> None:
    capability, call = (CALLS | OF_MULTIMAPS)[verb]
    table = MultiMap.from_arrays(KEYS, VALUES, design="iceberg", device="cpu")
    if capability in GROUP_VERBS:
        call(table, tmp_path)
    else:
        with pytest.raises(UnsupportedVerb, match=f"design 'iceberg' has no {capability}; ") as error:
            call(table, tmp_path)
        assert str(error.value).count("iceberg") == 1, "a design that has the verb for maps alone is not recommended"
    table.check()


def test_a_static_design_is_answered_right(static: str) -> None:
    table = HashMap.from_arrays(KEYS, VALUES, design=static, device="cpu")
    values, found = table.find(np.array([7, 1000]), default=-1)
    assert values.tolist() == [21, -1] and found.tolist() == [True, False]
    loaded = pickle.loads(pickle.dumps(table))
    assert loaded[5] == 15 and len(loaded) == 100


def test_a_verb_that_no_design_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in registry.names():
        replaced_design(monkeypatch, name, STATIC)
    with pytest.raises(UnsupportedVerb, match="has no erase; no other design has"):
        HashMap.from_arrays(KEYS, VALUES, device="cpu").erase(KEYS)
