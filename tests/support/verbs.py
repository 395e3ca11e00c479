"""Call every public verb of every class of tables from a thread that shares the table with other threads.

A `World` is a table with three kinds of keys. *Stable* keys are always present. *Coming* keys are inserted by one call
of a writer and erased by its next call. Each thread has keys *of its own*, which no other thread changes. Each call is
atomic, so an answer shows all of the coming keys or none.
"""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import multi_verbs
from support.types import Array
from warphash import Operation, PathError, UnsupportedVerb, WarphashError
from warphash.designs import registry

KINDS = {"HashMap": warphash.HashMap, "HashSet": warphash.HashSet, "MultiMap": warphash.MultiMap}

THREADS = 2
"""Number of threads that share a table, besides the writer of the coming keys."""


class World:
    """A table that several threads use.

    Parameters
    ----------
    kind
        One of `KINDS`.
    key
        ``"u4"``, or ``"V24"`` for keys wider than a word.
    size
        Number of stable keys. There are half as many coming keys. Each thread has a fourth as many keys of its own.

    Attributes
    ----------
    other
        A set of some stable keys and the absent keys, for set algebra.
    """

    def __init__(self, kind: str, design: str, key: str = "u4", device: str = "cpu", size: int = 240) -> None:
        self.kind, self.key, self.has_values = kind, np.dtype(key), kind != "HashSet"
        self.copies = 3 if kind == "MultiMap" else 1
        bounds = np.cumsum([0, size, size // 2, *[size // 4] * THREADS, 50])
        self.stable, self.coming, *self.owns, self.absent = (np.arange(1 + a, 1 + b) for a, b in pairwise(bounds))
        types = (self.key, np.uint32) if self.has_values else (self.key,)
        self.table = KINDS[kind](*types, capacity=size // 4, design=design, device=device, seed=5)
        self.insert(np.repeat(self.stable, self.copies), np.tile(np.arange(self.copies), size))
        self.changing = set(np.concatenate([self.coming, *self.owns]).tolist())
        self.others = np.concatenate([self.stable[::2], self.absent])
        self.other = warphash.HashSet.from_arrays(self.keys(self.others), design=design, device=device)

    def keys(self, ids: Array) -> Array:
        """The keys with these numbers."""
        return ids.astype(self.key) if self.key.kind == "u" else np.repeat(ids.astype("u8"), 3).view(self.key)

    def ids(self, keys: Array) -> Array:
        """The numbers of these keys."""
        return keys.astype(np.int64) if self.key.kind == "u" else keys.view("u8").reshape(-1, 3)[:, 0].astype(np.int64)

    @staticmethod
    def values(ids: Array, more: Any = 0) -> Array:
        """The legal value of each key, which is never 0. ``more`` gives another legal value."""
        return (10 * ids + 1 + more).astype(np.uint32)

    def pairs(self, ids: Array, more: Any = 0) -> tuple[Array, ...]:
        """The arguments of verbs that insert these keys."""
        return (self.keys(ids), self.values(ids, more)) if self.has_values else (self.keys(ids),)

    def insert(self, ids: Array, more: Any = 0) -> Any:
        return self.table.insert(*self.pairs(ids, more))

    def erase(self, ids: Array) -> Array:
        return self.table.erase(self.keys(ids))

    # ---- what holds at any moment
    def is_whole(self, seen: Array) -> bool:
        """Whether the coming keys are present. Fails if only some of them are."""
        assert seen.all() or not seen.any(), f"{np.count_nonzero(seen)} of {len(seen)} keys that come and go together"
        return bool(seen.any())

    def agrees(self, keys: Array, values: Array | None = None) -> None:
        """Check all pairs of the table, as one call returned them."""
        ids = self.ids(keys)
        assert not np.isin(ids, self.absent).any()
        counts = np.bincount(ids, minlength=self.absent[-1] + 1)
        assert (counts[self.stable] == self.copies).all() and counts[0] == 0
        for together in (self.coming, *self.owns):
            assert self.is_whole(counts[together] == 1) or not counts[together].any()
        if values is not None:
            self.has_legal_values(ids, values)

    def has_legal_values(self, ids: Array, values: Array) -> None:
        more = values.astype(np.int64) - self.values(ids)
        assert (more >= 0).all() and (more < 3).all()
        assert self.copies > 1 or not more[np.isin(ids, np.concatenate([self.stable, self.coming]))].any()

    @property
    def sizes(self) -> set[int]:
        """All sizes that the table may have."""
        parts = [{0, len(ids)} for ids in (self.coming, *self.owns)]
        return {self.copies * len(self.stable) + sum(present) for present in product(*parts)}

    def finds(self, look: Callable[[Array], Array]) -> None:
        """Check the flags that ``look`` returns for each kind of keys."""
        assert look(self.keys(self.stable)).all() and not look(self.keys(self.absent)).any()
        self.is_whole(look(self.keys(self.coming)))

    def is_left_with(self, ids: Array) -> None:
        """Check the table after all threads are done."""
        self.table.check()
        keys = self.ids(self.table.keys())
        np.testing.assert_array_equal(np.sort(keys), np.sort(ids))


Call = Callable[[World, Array], None]


# ---- verbs that change keys; each leaves the thread's own keys absent again
def _insert(world: World, own: Array) -> None:
    added = world.insert(own)
    assert world.kind == "MultiMap" or added.all()
    assert world.table.contains(world.keys(own)).all()
    world.erase(own)


def _assign(world: World, own: Array) -> None:
    for more in (0, 1):
        assert (world.table.assign(*world.pairs(own, more)) == (not more)).all()
        np.testing.assert_array_equal(world.table[world.keys(own)], world.values(own, more))
    assert not world.table.assign(*world.pairs(world.stable)).any()
    world.erase(own)


def _upsert(world: World, own: Array) -> None:
    keys, ones = world.keys(own), np.ones(len(own), np.uint32)
    world.insert(own)
    for op, more in (("add", 1), ("min", 1), ("last", 0), ("first", 0)):
        given = world.values(own, more) if op in ("last", "first") else ones if op == "add" else world.values(own, 2)
        assert not world.table.upsert(keys, given, op).any()
        np.testing.assert_array_equal(world.table[keys], world.values(own, more))
    world.erase(own)


def _find_or_insert(world: World, own: Array) -> None:
    for ids in (own, world.coming):
        values, added = world.table.find_or_insert(*world.pairs(ids))
        np.testing.assert_array_equal(values, world.values(ids))
        world.is_whole(added)
    world.erase(own)


def _number(world: World, own: Array) -> None:
    """The numbers of keys that are there are their values. No key is new here: new numbers are no legal values."""
    keys = world.keys(world.stable)
    numbers, new = world.table.number(keys)
    np.testing.assert_array_equal(numbers, world.values(world.stable))
    assert not new.any()


def _erase(world: World, own: Array) -> None:
    world.insert(own)
    assert world.erase(own).all() and not world.erase(world.absent).any()
    world.is_whole(world.erase(world.coming))


def _erase_if(world: World, own: Array) -> None:
    """No key and no value is so large. (Keys that one comparison tells from all others do not come and go together.)"""
    if world.key.kind == "u":
        assert world.table.erase_if("keys", ">", int(world.absent[-1])) == 0
    if world.has_values:
        assert world.table.erase_if("values", ">", int(world.values(world.absent[-1:], 2)[0])) == 0


def _evict(world: World, own: Array) -> None:
    with pytest.raises(UnsupportedVerb, match="no bound"):
        world.table.evict(1)


def _erase_all(world: World, own: Array) -> None:
    world.insert(np.repeat(own, 2), np.tile([0, 1], len(own)))
    assert (world.table.erase_all(world.keys(own)) == 2).all()


def _execute(world: World, own: Array) -> None:
    ids = np.concatenate([own, world.coming, world.stable])
    operations = np.repeat(
        np.array([Operation.INSERT, Operation.FIND, Operation.FIND], np.uint8),
        [
            len(own),
            len(world.coming),
            len(world.stable),
        ],
    )
    answers = world.table.execute(operations, *world.pairs(ids))
    done = answers[1] if world.has_values else answers
    added, seen, found = np.split(done, [len(own), len(own) + len(world.coming)])
    assert added.all() and found.all()
    world.is_whole(seen)
    world.erase(own)


def _set_items(world: World, own: Array) -> None:
    world.table[world.keys(own)] = world.values(own)
    np.testing.assert_array_equal(world.table[world.keys(own)], world.values(own))
    world.erase(own)


def _delete_items(world: World, own: Array) -> None:
    world.insert(own)
    del world.table[world.keys(own)]
    assert not world.table.contains(world.keys(own)).any()
    with pytest.raises(KeyError):
        del world.table[world.keys(np.concatenate([own, world.stable]))]
    try:
        del world.table[world.keys(world.coming)]
    except KeyError as error:
        assert f"{len(world.coming) - 1:,} more" in str(error), "there were some of the coming keys"


def _get(world: World, own: Array) -> None:
    for ids in (world.stable, world.coming, world.absent):
        values = world.table.get(world.keys(ids), 0)
        assert (values == (world.values(ids) if world.is_whole(values != 0) else 0)).all()


def _pop(world: World, own: Array) -> None:
    keys = world.keys(own)
    world.insert(own)
    np.testing.assert_array_equal(world.table.pop(keys), world.values(own))
    with pytest.raises(KeyError):
        world.table.pop(world.keys(np.concatenate([world.stable, own])))
    assert (world.table.pop(keys, 7) == 7).all()
    world.is_whole(world.table.pop(world.keys(world.coming), 0) != 0)


def _setdefault(world: World, own: Array) -> None:
    for ids in (own, world.coming):
        np.testing.assert_array_equal(world.table.setdefault(*world.pairs(ids)), world.values(ids))
    world.erase(own)


def _update(world: World, own: Array) -> None:
    if world.has_values:
        other = KINDS[world.kind].from_arrays(*world.pairs(own), design=world.table.design, device=world.table.device)
        world.table.update(other)
        np.testing.assert_array_equal(world.table[world.keys(own)], world.values(own))
    else:
        world.table.update(world.keys(own))
        world.table.update(world.other & world.table)
        assert world.table.contains(world.keys(own)).all()
    world.erase(own)


def _union(world: World, own: Array) -> None:
    """``|=`` with another table, or ``|`` with a map."""
    kind = KINDS[world.kind]
    other = kind.from_arrays(*world.pairs(own), design=world.table.design, device=world.table.device)
    if world.has_values:
        merged = world.table | other
        np.testing.assert_array_equal(merged[world.keys(own)], world.values(own))
        world.is_whole(merged.contains(world.keys(world.coming)))
    table = world.table
    table |= other
    assert table is world.table and table.contains(world.keys(own)).all()
    world.erase(own)


def _erase_other(world: World, own: Array) -> None:
    """``-=`` with a set of the thread's own keys and of absent keys."""
    table, ids = world.table, np.concatenate([own, world.absent])
    world.insert(own)
    table -= warphash.HashSet.from_arrays(world.keys(ids), design=table.design, device=table.device)
    assert table is world.table and not table.contains(world.keys(own)).any()


def _keep_other(world: World, own: Array) -> None:
    """``&=`` with a set that has all keys but those of this thread."""
    world.insert(own)
    ids = np.setdiff1d(np.arange(1, world.absent[-1] + 1), own)
    table = world.table
    table &= warphash.HashSet.from_arrays(world.keys(ids), design=table.design, device=table.device)
    assert table is world.table and not table.contains(world.keys(own)).any()


def _one_by_one(world: World, own: Array) -> None:
    key = world.keys(own[:1])[0]
    world.table.add(key)
    assert world.table.contains(world.keys(own[:1])).all()
    world.table.remove(key)
    world.table.discard(key)
    with pytest.raises(KeyError):
        world.table.remove(key)


def _stay(world: World, own: Array) -> None:
    assert world.table.to(world.table.device) is world.table
    if world.table.device == "cpu":
        assert world.table.cpu() is world.table


def _same_map(world: World, own: Array) -> None:
    """Equality with a map that other threads change, and with itself."""
    assert world.table == world.table
    twin = world.table.copy()
    twin.pop(world.keys(world.stable[:1]))
    assert world.table != twin and twin != world.table


def _clear(world: World, own: Array) -> None:
    world.table.clear()
    world.insert(world.stable)
    for ids in (world.stable, world.coming, own):
        world.is_whole(world.table.contains(world.keys(ids)))
        if world.kind == "HashMap":
            values, found = world.table.find(world.keys(ids))
            np.testing.assert_array_equal(values, world.values(ids) if world.is_whole(found) else 0)


# ---- verbs that change the memory
def _reserve(world: World, own: Array) -> None:
    world.table.reserve(6 * len(world.stable))
    world.finds(world.table.contains)


def _shrink(world: World, own: Array) -> None:
    world.table.shrink()
    world.finds(world.table.contains)


def _flush(world: World, own: Array) -> None:
    world.insert(own)
    world.erase(own)
    assert world.table.flush() >= 0
    world.finds(world.table.contains)


# ---- verbs that look at keys
def _contains(world: World, own: Array) -> None:
    world.finds(world.table.contains)


def _find(world: World, own: Array) -> None:
    for ids in (world.stable, world.coming, world.absent):
        values, found = world.table.find(world.keys(ids))
        if world.is_whole(found):
            world.has_legal_values(ids, values)
        else:
            assert not values.any()
        assert (ids is world.coming) or found.all() == (ids is world.stable)


def _get_items(world: World, own: Array) -> None:
    if world.kind == "MultiMap":
        values, offsets = world.table[world.keys(world.stable)]
        assert (np.diff(offsets) == world.copies).all()
        world.has_legal_values(np.repeat(world.stable, world.copies), values)
        with pytest.raises(KeyError, match=f"{len(world.absent) - 1} more keys"):
            world.table[world.keys(np.concatenate([world.stable, world.absent]))]
        return
    np.testing.assert_array_equal(world.table[world.keys(world.stable)], world.values(world.stable))
    with pytest.raises(KeyError):
        world.table[world.keys(world.absent)]


def _holds_key(world: World, own: Array) -> None:
    if world.key.kind == "u":
        assert int(world.stable[3]) in world.table and int(world.absent[3]) not in world.table


def _count(world: World, own: Array) -> None:
    for ids, count in ((world.stable, 3), (world.stable[:10], 3), (world.absent, 0)):
        assert (world.table.count(world.keys(ids)) == count).all()
    world.is_whole(world.table.count(world.keys(world.coming)) == 1)


def _plan(world: World, own: Array) -> None:
    """A plan of this thread, and one for all threads, which write to arrays of their own."""
    plans = [world.table.plan(len(own)), vars(world).setdefault("plan", world.table.plan(len(own)))]
    for plan in plans:
        plan.insert(*world.pairs(own))
        found = np.zeros(len(own), np.bool_)
        assert plan.contains(world.keys(own), found=found) is found and found.all()
        if world.kind == "HashMap":
            plan.assign(*world.pairs(own, 2))
            values = np.zeros(len(own), np.uint32)
            assert plan.find(world.keys(own), out=values, found=found)[1].all()
            np.testing.assert_array_equal(values, world.values(own, 2))
        world.erase(own)
        assert not plan.contains(world.keys(own), found=found).any()


def _find_all(world: World, own: Array) -> None:
    for ids in (world.stable, world.stable[:10], world.coming, world.absent):
        values, offsets = world.table.find_all(world.keys(ids))
        counts = np.diff(offsets)
        if ids is world.coming:
            world.is_whole(counts == 1)
        else:
            assert (counts == (0 if ids is world.absent else 3)).all()
        world.has_legal_values(np.repeat(ids, counts), values)


def _probe_counts(world: World, own: Array) -> None:
    for ids in (world.stable, world.coming, world.absent):
        assert (world.table.probe_counts(world.keys(ids)) >= 1).all()


def _guest_counts(world: World, own: Array) -> None:
    assert world.table.guest_counts(world.keys(world.stable)).shape == world.stable.shape


# ---- verbs that look at the whole table
def _keys(world: World, own: Array) -> None:
    world.agrees(world.table.keys())


def _iterate(world: World, own: Array) -> None:
    world.agrees(np.array(list(world.table), world.key))


def _values(world: World, own: Array) -> None:
    assert len(world.table.values()) in world.sizes


def _to_arrays(world: World, own: Array) -> None:
    world.agrees(*world.table.to_arrays())


def _items(world: World, own: Array) -> None:
    keys, values = zip(*world.table.items(), strict=True)
    world.agrees(np.array(keys, world.key), np.array(values))


def _copied(copy_of: Callable[[Any], Any]) -> Call:
    def verb(world: World, own: Array) -> None:
        _agrees_with_copy(world, copy_of(world.table))

    return verb


def _captures_are_current(world: World, own: Array) -> None:
    assert world.table.captures_are_current()  # no graph has captured anything


def _check(world: World, own: Array) -> None:
    world.table.check()


def _copy(world: World, own: Array) -> None:
    _agrees_with_copy(world, world.table.copy())


def _save(world: World, own: Array) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        world.table.save(path)
        _agrees_with_copy(world, KINDS[world.kind].load(path, device=world.table.device))


def _agrees_with_copy(world: World, twin: Any) -> None:
    world.agrees(*(twin.to_arrays() if world.has_values else (twin.keys(),)))
    assert twin.capacity >= 1 and twin.design == world.table.design


def _from_arrays(world: World, own: Array) -> None:
    made = KINDS[world.kind].from_arrays(*world.pairs(own), design=world.table.design, device=world.table.device)
    assert len(made) == len(own)


def _combine(combined: Callable[[Any, Any], Any], expected: Callable[[set[int], set[int]], set[int]]) -> Call:
    """Set algebra of the table with a set that other threads use too, in both orders, and with itself."""

    def verb(world: World, own: Array) -> None:
        kept, other = set(world.stable.tolist()), set(world.others.tolist())
        for left, right in ((world.table, world.other), (world.other, world.table), (world.table, world.table)):
            answer = set(world.ids(combined(left, right).keys()).tolist())
            world.is_whole(np.isin(world.coming, list(answer)))
            sides = (kept if side is world.table else other for side in (left, right))
            assert answer - world.changing == expected(*sides)
            assert left is not right or expected({1}, {1}) or not answer

    return verb


def _relate(related: Callable[[Any, Any], bool], expected: Callable[[set[int], set[int]], bool]) -> Call:
    """A relation of the table with a set that has other keys too, in both orders."""

    def verb(world: World, own: Array) -> None:
        kept, other = set(world.stable.tolist()), set(world.others.tolist())
        assert related(world.table, world.other) == expected(kept, other)
        assert related(world.other, world.table) == expected(other, kept)
        assert related(world.table, world.table) == expected(kept, kept)

    return verb


def _no_attributes(world: World, own: Array) -> None:
    """A copy takes the caller's attributes along, but not the table's own state. Here, the caller has no attributes."""
    assert world.table.__getstate__() is None
    world.table.__setstate__({})


# ---- figures
def _len(world: World, own: Array) -> None:
    assert len(world.table) in world.sizes


def _repr(world: World, own: Array) -> None:
    said = repr(world.table)
    assert any(f" {size:,} keys in " in said for size in world.sizes)


def _stats(world: World, own: Array) -> None:
    stats = world.table.stats()
    assert stats.size in world.sizes and stats.load_factor == stats.size / stats.slots
    assert stats.bytes_per_pair == stats.nbytes / stats.size and 0 < stats.memory_utilisation <= 1


def _capacity(world: World, own: Array) -> None:
    assert world.table.capacity >= 1


def _load_factor(world: World, own: Array) -> None:
    assert world.table.load_factor > 0


def _nbytes(world: World, own: Array) -> None:
    assert world.table.nbytes >= 4 * len(world.stable)


def _close(world: World, own: Array) -> None:
    with world.table.copy() as twin:
        world.finds(twin.contains)
    with pytest.raises(WarphashError, match="closed"):
        twin.contains(world.keys(own))


def _open(world: World, own: Array) -> None:
    with pytest.raises(PathError):
        type(world.table).open("/there/is/no/such/file", device=world.table.device)


def _constant(name: str) -> Call:
    """A property that never changes."""

    def verb(world: World, own: Array) -> None:
        assert getattr(world.table, name) == getattr(world.table, name)

    return verb


def _of_kind(for_map: Call, for_set: Call) -> Call:
    """A verb whose meaning differs with the kind of table."""
    return lambda world, own: (for_map if world.has_values else for_set)(world, own)


VERBS: dict[str, Call] = {
    "insert": _insert,
    "assign": _assign,
    "upsert": _upsert,
    "find_or_insert": _find_or_insert,
    "number": _number,
    "get": _get,
    "pop": _pop,
    "setdefault": _setdefault,
    "update": _update,
    "__ior__": _union,
    "__isub__": _erase_other,
    "__iand__": _keep_other,
    **dict.fromkeys(("add", "discard", "remove"), _one_by_one),
    **dict.fromkeys(("to", "cpu", "cuda"), _stay),
    "erase": _erase,
    "erase_if": _erase_if,
    "evict": _evict,
    "erase_all": _erase_all,
    "execute": _execute,
    "__setitem__": _set_items,
    "__delitem__": _delete_items,
    "clear": _clear,
    "reserve": _reserve,
    "shrink": _shrink,
    "flush": _flush,
    "contains": _contains,
    "find": _find,
    "__getitem__": _get_items,
    "__contains__": _holds_key,
    "count": _count,
    "plan": _plan,
    "find_all": _find_all,
    "probe_counts": _probe_counts,
    "guest_counts": _guest_counts,
    "keys": _keys,
    "__iter__": _iterate,
    "values": _values,
    "items": _items,
    "to_arrays": _to_arrays,
    "__copy__": _copied(copy.copy),
    "__deepcopy__": _copied(copy.deepcopy),
    "__replace__": _copied(lambda table: table.__replace__(attempts=9)),
    "__reduce__": _copied(lambda table: pickle.loads(pickle.dumps(table))),
    "__getstate__": _no_attributes,
    "__setstate__": _no_attributes,
    "check": _check,
    "captures_are_current": _captures_are_current,
    "copy": _copy,
    "save": _save,
    "load": _save,
    "from_arrays": _from_arrays,
    "__or__": _of_kind(_union, _combine(lambda a, b: a | b, set.union)),
    "union": _combine(lambda a, b: a.union(b), set.union),
    "intersection": _combine(lambda a, b: a.intersection(b), set.intersection),
    "difference": _combine(lambda a, b: a.difference(b), set.difference),
    "symmetric_difference": _combine(lambda a, b: a.symmetric_difference(b), set.symmetric_difference),
    "issubset": _relate(lambda a, b: a.issubset(b), set.issubset),
    "issuperset": _relate(lambda a, b: a.issuperset(b), set.issuperset),
    "__and__": _combine(lambda a, b: a & b, set.intersection),
    "__sub__": _combine(lambda a, b: a - b, set.difference),
    "__xor__": _combine(lambda a, b: a ^ b, set.symmetric_difference),
    "__le__": _relate(lambda a, b: a <= b, set.issubset),
    "__lt__": _relate(lambda a, b: a < b, set.__lt__),
    "__ge__": _relate(lambda a, b: a >= b, set.issuperset),
    "__gt__": _relate(lambda a, b: a > b, set.__gt__),
    "__eq__": _of_kind(_same_map, _relate(lambda a, b: a == b, set.__eq__)),
    "isdisjoint": _relate(lambda a, b: a.isdisjoint(b), set.isdisjoint),
    "__len__": _len,
    "__repr__": _repr,
    "stats": _stats,
    "capacity": _capacity,
    "load_factor": _load_factor,
    "nbytes": _nbytes,
    **dict.fromkeys(("close", "__enter__", "__exit__"), _close),
    "open": _open,
    **{name: _constant(name) for name in ("design", "device", "memory", "key_dtype", "value_dtype", "seed")},
}
"""The function that a thread repeats for each verb, by the name of the verb's method."""

DERIVED = frozenset(
    [
        *("get", "pop", "setdefault", "update", "__ior__", "__isub__", "__iand__", "add", "discard", "remove"),
        *("union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "to", "cpu", "cuda"),
        "plan",
    ]
)
"""Verbs that are made of other verbs, most of them those of Python's dicts and sets: on any day, one design shows what
they do."""

CONSTANT = frozenset(
    [
        *("design", "device", "memory", "key_dtype", "value_dtype", "seed", "from_arrays", "load", "open"),
        *("evict", "items", "__getstate__", "__setstate__", "close", "__enter__", "__exit__", "to", "cpu", "cuda"),
        "plan",
    ]
)
"""Verbs that do not read the state of an existing table. `evict` refuses a table without a bound. `items` reads the
state only in each iteration, and `plan` in each call of the plan. A thread that closes the shared table would end the
test, so each closes a copy."""


def public(kind: str) -> list[str]:
    """The public methods and properties of a class, operators included."""
    ours = [each for each in KINDS[kind].__mro__ if each.__module__.startswith("warphash")]
    names = {name for each in ours for name, of in vars(each).items() if callable(of) or isinstance(of, property)}
    names |= {name for each in ours for name, of in vars(each).items() if isinstance(of, classmethod)}
    return sorted(name for name in names if not name.startswith("_") or (name.startswith("__") and name != "__init__"))


def has(kind: str, design: str, verb: str) -> bool:
    """Whether tables of a kind and a design have a verb of their class."""
    verbs = multi_verbs(design) if kind == "MultiMap" else registry.get(design).capabilities
    return verb not in ("execute", "flush", "guest_counts") or verb in verbs


def call(world: World, verb: str, own: Array) -> None:
    """Call a verb once, and check its answer."""
    in_place = registry.get(world.table.design).layout.in_place
    if has(world.kind, world.table.design, verb) and (verb != "execute" or in_place or world.key.itemsize <= 8):
        VERBS[verb](world, own)
        return
    with pytest.raises(UnsupportedVerb):
        VERBS[verb](world, own)
