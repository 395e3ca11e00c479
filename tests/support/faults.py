"""Inject faults into a verb: refuse an allocation, or raise KeyboardInterrupt at a line of the package.

A `Scenario` is a table with some history, and one call. `refusals` makes the call once for each of its allocations, and
refuses that allocation. `interrupts` makes the call once for each line that it runs, and raises KeyboardInterrupt at
that line. Each call gets a new table. Afterwards another thread compares the whole table with a dict. The other thread
would wait if a lock were still held.

``python -m support.faults`` prints the faults that do harm.
"""

from __future__ import annotations

import dis
import functools
import json
import os
import re
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count as count_from
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

import numpy as np

import warphash
from support.cases import multi_verbs
from support.refusals import refusing
from support.types import Array
from warphash import HashMap, MultiMap, Operation, TableFull
from warphash.designs import registry
from warphash.runtime.devices import engine_for

__all__ = [
    "FAMILIES",
    "LOCKS",
    "SOME",
    "STORAGE_AND_TABLE",
    "VERBS",
    "Family",
    "Fault",
    "Interrupt",
    "Scenario",
    "Verb",
    "all_faults",
    "at_each_allocation",
    "at_each_line",
    "check_harmless",
    "faulty_call",
    "interrupted",
    "interrupts",
    "lines_of",
    "refusals",
    "scenarios",
]

Made = TypeVar("Made")
Model = dict[int, tuple[int, ...]]
"""The values of each key, oldest first. A key of a map has one value."""

PACKAGE = Path(warphash.__file__).parent
STORAGE_AND_TABLE = re.compile(r"storage/|table/(?!locks\.py)")
LOCKS = re.compile(r"table/locks\.py")
"""Patterns of paths inside the package."""

_FILES = tempfile.TemporaryDirectory()
"""Files of tables, until the process ends."""

TURNS = 8
"""Most interrupts of one call at one line, which a loop may reach many times."""


# ---- tables
@dataclass(frozen=True)
class Family:
    """One way to store pairs: a kind of table, a design, and the types that lead to this storage."""

    name: str
    design: str
    key: str = "u8"
    value: str = "u8"
    multi: bool = False
    in_file: bool = False
    behind_bus: bool = False
    evict: str | None = None
    write: str = ""
    reuses: bool = False

    def __str__(self) -> str:
        return self.name

    def runs_on(self, device: str) -> bool:
        """Whether such a table can be on a device."""
        return device == "cpu" or not (self.key.startswith("str") or self.value == "str")

    @property
    def key_type(self) -> Any:
        """Key type of the tables: a list of columns, or one type."""
        return self.key.split(",") if "," in self.key else self.key

    @property
    def sums(self) -> bool:
        """Whether values can be added."""
        return self.value == "u8"

    def table(self, capacity: int, device: str) -> Any:
        kind = MultiMap if self.multi else HashMap
        options: dict[str, Any] = {"memory": "host", "access": "sweep"} if self.behind_bus else {}
        if self.evict:
            options |= {"max_size": 10_000, "evict": self.evict}  # nothing leaves
        if self.write:  # all keys of a scenario have room in the cache
            options |= {"write": self.write, "device_capacity": 72}
        if self.reuses:
            options["reuse_erased"] = True
        if self.in_file:
            options["memory"] = Path(tempfile.mkdtemp(dir=_FILES.name)) / "table"
        return kind(self.key_type, self.value, capacity=capacity, design=self.design, device=device, seed=3, **options)

    def keys(self, ids: Any) -> Any:
        columns = tuple(_rows(ids, dtype) for dtype in self.key.split(","))
        return columns if len(columns) > 1 else columns[0]

    def values(self, numbers: Any) -> Array:
        return _rows(numbers, self.value)

    def state(self, table: Any) -> Model:
        """All pairs of a table."""
        held = table.to_arrays()
        model: dict[int, list[int]] = {}
        for key, value in zip(*map(_all_numbers, held), strict=True):
            model.setdefault(key, []).append(value)
        return {key: tuple(sorted(values)) for key, values in model.items()}


def _as_after_a_kill(path: Path) -> Path:
    """A copy of what the disk has of a table in a file."""
    folder = Path(tempfile.mkdtemp(dir=_FILES.name))
    for name in (path.name, f".{path.name}.journal"):
        if path.with_name(name).exists():
            shutil.copy(path.with_name(name), folder)
    return folder / path.name


def _rows(numbers: Any, dtype: str) -> Array:
    """Rows that each repeat one number, so that a torn row can be told: it has several numbers."""
    if dtype == "str":
        return np.array([f"{number} {'x' * (number % 40)}" for number in map(int, numbers)], object)
    words = np.asarray(numbers, np.uint64)
    wide = np.dtype(dtype).itemsize // 8
    return words if wide == 1 else np.repeat(words, wide).view(dtype)


def _numbers(rows: Array) -> list[int]:
    if rows.dtype.kind in "OT":
        return [int(key.split()[0]) for key in rows.tolist()]
    words = np.ascontiguousarray(rows).view(np.uint64).reshape(len(rows), rows.dtype.itemsize // 8)
    torn = (words != words[:, :1]).any(axis=1)
    assert not torn.any(), f"{torn.sum()} rows are torn, the first is {words[torn][0]}"
    return [int(number) for number in words[:, 0]]


def _all_numbers(rows: Any) -> list[int]:
    """The numbers of rows, of which each column has the same."""
    if not isinstance(rows, tuple):
        return _numbers(rows)
    first, *others = map(_numbers, rows)
    assert all(other == first for other in others), "the columns of keys go apart"
    return first


FAMILIES = {
    family.name: family
    for family in (
        Family("buckets", "bucketed_cuckoo"),
        Family("rows", "bucketed_cuckoo", "V24", "V40"),
        Family("wide-keys", "bucketed_cuckoo", "V24"),
        Family("lists", "slab"),
        Family("lists-of-pairs", "slab", multi=True),
        Family("groups-of-pairs", "bucketed_cuckoo", multi=True),
        Family("groups-behind-quotients", "quotient_cuckoo", multi=True),
        Family("lists-with-reused-slots", "slab", multi=True, reuses=True),
        Family("rows-in-lists", "slab", "V24", "V40"),
        Family("subtables", "dynamic_cuckoo"),
        Family("wide-subtables", "dynamic_cuckoo", "V24", "V40"),
        Family("two-level", "two_level_cuckoo"),
        Family("quotients", "quotient_cuckoo"),
        Family("strings", "bucketed_cuckoo", "str"),
        Family("columns", "bucketed_cuckoo", "str,u8"),
        Family("columns-of-fixed-widths", "bucketed_cuckoo", "u8,u8"),
        Family("strings-in-lists", "slab", "str", multi=True),
        Family("strings-in-groups", "bucketed_cuckoo", "str", multi=True),
        Family("string-values", "bucketed_cuckoo", value="str"),
        Family("string-values-of-rows", "slab", "V24", "str"),
        Family("string-values-of-tickets", "stadium", value="str"),
        Family("strings-of-strings", "bucketed_cuckoo", "str", "str"),
        Family("wide-groups", "bucketed_cuckoo", "V24", "V40", multi=True),
        Family("rows-in-ranges", "two_level_cuckoo", "V24", "V40"),
        Family("tickets", "stadium"),
        Family("wide-tickets", "stadium", "V24", "V40"),
        Family("tickets-in-a-file", "stadium", in_file=True),
        Family("strings-of-strings-in-a-file", "stadium", "str", "str", in_file=True),
        Family("tickets-behind-a-bus", "stadium", behind_bus=True),
        Family("bounded", "bucketed_cuckoo", evict="lfu"),
        Family("bounded-rows", "bucketed_cuckoo", evict="lru"),
        Family("bounded-rows-in-subtables", "dynamic_cuckoo", evict="fifo"),
        Family("bounded-rows-of-tickets", "stadium", "V24", "V40", evict="lru"),
        Family("bounded-strings", "bucketed_cuckoo", "str", evict="lru"),
        Family("bounded-string-values", "bucketed_cuckoo", value="str", evict="lru"),
        Family("bounded-strings-of-strings", "stadium", "str", "str", evict="lfu"),
        Family("tiers", "tiered", write="back"),
        Family("tiers-of-string-values", "tiered", value="str", write="back"),
        Family("tiers-of-rows", "tiered", "V24", "V40", write="back"),
        Family("tiers-through", "tiered", write="through"),
        Family("tiers-over-a-file", "tiered", in_file=True, write="back"),
        Family("tiers-of-strings-over-a-file", "tiered", "str", "str", in_file=True, write="back"),
    )
}
SOME = (
    *("buckets", "rows", "lists", "lists-of-pairs", "subtables", "tickets", "two-level", "quotients"),
    *("groups-of-pairs", "bounded-rows", "tiers", "strings", "string-values"),
)
"""The families that run every day. The other families keep wider rows in the same storage."""


# ---- calls
@dataclass(frozen=True)
class Verb:
    """One public call with a batch.

    Attributes
    ----------
    call
        Makes the call, from the family, the table and the numbers of the batch's keys.
    after
        Gives the content of the table after the call, from the family, the content before and the numbers.
    needs
        The capability that a design needs.
    kinds
        Kinds of tables that have the verb: ``"map"``, ``"multi"`` or both.
    whole
        Whether a call that raises leaves the table as it was. `execute` need not: there, each operation counts alone.
    together
        Whether an interrupt, too, leaves all new keys of the batch in or none.
    batch
        Keys of the batch. ``"both"``: present and absent keys, some of them repeated. ``"present"``: present keys only.
        ``"once"``: each key once.
    """

    name: str
    call: Callable[[Family, Any, Array], Any]
    after: Callable[[Family, Model, Array], Model]
    needs: str | None = None
    kinds: tuple[str, ...] = ("map", "multi")
    whole: bool = True
    together: bool = False
    batch: str = "both"

    def __str__(self) -> str:
        return self.name


BELOW = 40
"""`erase_if` erases the keys below."""


def new_values(ids: Any) -> Any:
    return 3 * np.asarray(ids, np.uint64) + np.uint64(1)


def _same(family: Family, model: Model, ids: Array) -> Model:
    return dict(model)


def _empty(family: Family, model: Model, ids: Array) -> Model:
    return {}


def _inserted(family: Family, model: Model, ids: Array) -> Model:
    held = dict(model)
    for key in map(int, ids):
        if family.multi:
            held[key] = (*held.get(key, ()), 3 * key + 1)
        else:
            held.setdefault(key, (3 * key + 1,))
    return {key: tuple(sorted(values)) for key, values in held.items()}


def _numbered(family: Family, model: Model, ids: Array) -> Model:
    held = dict(model)
    for key in map(int, ids):
        held.setdefault(key, (len(held),))
    return held


def _assigned(family: Family, model: Model, ids: Array) -> Model:
    return model | {int(key): (3 * int(key) + 1,) for key in ids}


def _upserted(family: Family, model: Model, ids: Array) -> Model:
    if not family.sums:
        return _assigned(family, model, ids)
    times = Counter(map(int, ids))
    return model | {key: (sum(model.get(key, ())) + n * (3 * key + 1),) for key, n in times.items()}


def _erased(family: Family, model: Model, ids: Array) -> Model:
    held = dict(model)
    for key in map(int, ids):
        held[key] = held.get(key, ())[1:] if family.multi else ()
    return {key: values for key, values in held.items() if values}


def _erased_below(family: Family, model: Model, ids: Array) -> Model:
    return {key: values for key, values in model.items() if key >= BELOW}


def _erased_all(family: Family, model: Model, ids: Array) -> Model:
    gone = set(map(int, ids))
    return {key: values for key, values in model.items() if key not in gone}


def _operations(family: Family, ids: Array) -> Array:
    """An operation for each key: insert, assign, erase and find in turn. Lists of pairs have no assign: two inserts."""
    write = Operation.INSERT if family.multi else Operation.ASSIGN
    every = [Operation.INSERT, write, Operation.ERASE, Operation.FIND]
    return np.array([every[i % 4] for i in range(len(ids))], np.uint8)


def _executed(family: Family, model: Model, ids: Array) -> Model:
    operations = _operations(family, ids)
    if family.multi:
        erased = _erased(family, model, ids[operations == Operation.ERASE])
        return _inserted(family, erased, ids[operations == Operation.INSERT])
    held = dict(model)
    for key, operation in zip(map(int, ids), operations.tolist(), strict=True):
        if operation == Operation.ERASE:
            held.pop(key, None)
        elif operation == Operation.ASSIGN or (operation == Operation.INSERT and key not in held):
            held[key] = (3 * key + 1,)
    return held


def _execute(family: Family, table: Any, ids: Array) -> Any:
    return table.execute(_operations(family, ids), family.keys(ids), family.values(new_values(ids)))


def _give(method: str) -> Callable[[Family, Any, Array], Any]:
    """A verb that takes keys and values."""
    return lambda family, table, ids: getattr(table, method)(family.keys(ids), family.values(new_values(ids)))


def _ask(method: str) -> Callable[[Family, Any, Array], Any]:
    """A verb that takes keys."""
    return lambda family, table, ids: getattr(table, method)(family.keys(ids))


def _bare(method: str) -> Callable[[Family, Any, Array], Any]:
    """A verb without arguments."""
    return lambda family, table, ids: getattr(table, method)()


def _update(family: Family, table: Any, ids: Array) -> Any:
    """All pairs of another table."""
    ids = np.unique(ids)
    other = HashMap(family.key_type, family.value, device=table.device, seed=4)
    other.insert(family.keys(ids), family.values(new_values(ids)))
    return table.update(other)


def _plan(family: Family, table: Any, ids: Array) -> Any:
    """An assign that was prepared."""
    return table.plan(len(ids)).assign(family.keys(ids), family.values(new_values(ids)))


def _assign_into(family: Family, table: Any, ids: Array) -> Any:
    """An assign whose flags the caller has room for."""
    return table.assign(family.keys(ids), family.values(new_values(ids)), added=np.empty(len(ids), np.bool_))


def _upsert(family: Family, table: Any, ids: Array) -> Any:
    return table.upsert(family.keys(ids), family.values(new_values(ids)), "add" if family.sums else "last")


VERBS = {
    verb.name: verb
    for verb in (
        Verb("insert", _give("insert"), _inserted),
        Verb("assign", _give("assign"), _assigned, kinds=("map",)),
        Verb("assign into", _assign_into, _assigned, kinds=("map",)),
        Verb("plan", _plan, _assigned, kinds=("map",)),
        Verb("upsert", _upsert, _upserted, kinds=("map",)),
        Verb("find_or_insert", _give("find_or_insert"), _inserted, kinds=("map",)),
        Verb("number", _ask("number"), _numbered, kinds=("map",), together=True),
        Verb("erase", _ask("erase"), _erased, needs="erase"),
        Verb("erase_if", lambda family, table, ids: table.erase_if("keys", "<", BELOW), _erased_below, needs="erase"),
        Verb("erase_all", _ask("erase_all"), _erased_all, kinds=("multi",)),
        Verb("__setitem__", _give("__setitem__"), _assigned, kinds=("map",)),
        Verb("__delitem__", _ask("__delitem__"), _erased_all, needs="erase", kinds=("map",), batch="present"),
        Verb("pop", _ask("pop"), _erased_all, needs="erase", kinds=("map",), batch="present"),
        Verb("update", _update, _assigned, kinds=("map",)),
        Verb("execute", _execute, _executed, needs="execute", whole=False, batch="once"),
        Verb("reserve", lambda family, table, ids: table.reserve(600), _same),
        Verb("shrink", _bare("shrink"), _same),
        Verb("flush", _bare("flush"), _same, needs="flush"),
        Verb("clear", _bare("clear"), _empty),
        Verb("find", _ask("find"), _same),
        Verb("contains", _ask("contains"), _same),
        Verb("__getitem__", _ask("__getitem__"), _same, kinds=("map",), batch="present"),
        Verb("find_all", _ask("find_all"), _same, kinds=("multi",)),
        Verb("count", _ask("count"), _same, kinds=("multi",)),
        Verb("probe_counts", _ask("probe_counts"), _same),
        Verb("to_arrays", _bare("to_arrays"), _same),
        Verb("copy", _bare("copy"), _same),
        Verb("check", _bare("check"), _same),
        Verb("stats", _bare("stats"), _same),
        Verb("__len__", _bare("__len__"), _same),
    )
}


# ---- scenarios
ERASED, OLD = np.arange(1, 11), np.arange(11, 71)
"""Numbers of the keys that were inserted and erased again, and of the keys that are in the table."""


@dataclass(frozen=True)
class Scenario:
    """A table with some history, and one call.

    Attributes
    ----------
    grows
        If True, the table has hardly any room left, and the batch is larger than a block of threads of the emulated
        engine. If False, the batch is small and fits.
    """

    family: Family
    verb: Verb
    device: str = "cpu"
    grows: bool = True

    def __str__(self) -> str:
        return f"{self.device}-{self.family}-{self.verb}-{'grows' if self.grows else 'fits'}"

    @property
    def axes(self) -> dict[str, str]:
        """What scenarios differ in."""
        return {"engine": self.device, "family": str(self.family), "verb": str(self.verb), "grows": str(self.grows)}

    @property
    def ids(self) -> Array:
        """Numbers of the batch's keys."""
        present, absent = (20, 70) if self.grows else (4, 6)
        old, new = OLD[:present], np.arange(1000, 1000 + absent)
        if self.verb.batch == "present":
            return old
        once = np.random.default_rng(5).permutation(np.concatenate([old, new]))
        return once if self.verb.batch == "once" else np.concatenate([once, old[:2], new[:2]])

    @property
    def before(self) -> Model:
        """The content of the table before the call."""
        return {int(key): (int(key),) for key in OLD}

    @property
    def after(self) -> Model:
        """The content of the table after the call has returned."""
        return self.verb.after(self.family, self.before, self.ids)

    def make(self) -> Any:
        """Make the table. A batch may still be running in it."""
        table = self.family.table(72 if self.grows else 400, self.device)
        for part in np.array_split(np.concatenate([OLD, ERASED]), 3):
            table.insert(self.family.keys(part), self.family.values(part))
        table.erase(self.family.keys(ERASED))
        if self.family.write:
            self._warm(table)
        if self.family.in_file:
            table.flush()
        return table

    def _warm(self, table: Any) -> None:
        """Have three quarters of the keys in the cache, some of them with values that are newer than at home."""
        cached, changed = OLD[: 3 * len(OLD) // 4], OLD[: len(OLD) // 4]
        for _ in range(4):
            table.find(self.family.keys(np.resize(cached, 80)))
        table.assign(self.family.keys(changed), self.family.values(changed + 1))
        table.assign(self.family.keys(changed), self.family.values(changed))

    def call(self, table: Any) -> Any:
        return self.verb.call(self.family, table, self.ids)

    # ---- what holds after a fault
    def problem(self, table: Any, *, done: bool, whole: bool, patience: float = 30) -> str:
        """Describe what is wrong with a table after a fault. Empty if nothing is wrong.

        Parameters
        ----------
        done
            The call has returned, so all of its work must be done.
        whole
            If True, a call that has not returned must have changed nothing. If False, such a call must leave each key
            wholly in or wholly out.
        patience
            Seconds after which a call of another thread counts as waiting for ever.
        """
        step, said = ["a lookup"], [""]

        def look() -> None:
            try:
                for step[0], verify in self._verifications(table, done, whole):
                    verify()
            except BaseException as error:
                lines = str(error).strip().splitlines() or [""]
                said[0] = f"{step[0]}: {type(error).__name__}: {lines[0]}"

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        thread.join(patience)
        return f"{step[0]} of another thread does not return" if thread.is_alive() else said[0]

    def _verifications(self, table: Any, done: bool, whole: bool) -> Iterator[tuple[str, Callable[[], None]]]:
        family, held = self.family, dict[int, tuple[int, ...]]()
        fresh = np.arange(5000, 5005)

        def committed() -> None:
            with HashMap.open(_as_after_a_kill(table.memory), device=self.device) as kept:
                kept.check()
                assert family.state(kept) == self.before

        def lookup() -> None:
            table.contains(family.keys(OLD))

        def pairs() -> None:
            held.update(family.state(table))
            before, after = self.before, self.after
            for key in before.keys() | after.keys() | held.keys():
                legal = {after.get(key)} if done else {before.get(key)} if whole else {before.get(key), after.get(key)}
                assert held.get(key) in legal, f"key {key} has {held.get(key)}, not one of {legal}"
            if self.verb.together:
                assert held in (before, after), f"{len(held)} keys, and not {len(before)} or {len(after)}"

        def size() -> None:
            pairs = sum(map(len, held.values()))
            assert len(table) == pairs, f"len is {len(table)}, and there are {pairs} pairs"
            assert table.contains(family.keys(list(held))).all(), "a listed key is not found"

        def next_insert() -> None:
            table.insert(family.keys(fresh), family.values(new_values(fresh)))
            assert family.state(table) == _inserted(family, held, fresh)

        def next_erase() -> None:
            if family.multi or "erase" in registry.get(family.design).capabilities:
                assert table.erase(family.keys(fresh)).all()
                assert family.state(table) == held

        def again() -> None:
            if self.verb.batch != "present" or set(map(int, self.ids)) <= held.keys():
                self.call(table)
                assert family.state(table) == self.verb.after(family, held, self.ids)
            table.check()

        if family.in_file:
            yield "the file", committed
        yield "a lookup", lookup
        yield "the pairs", pairs
        yield "the size", size
        yield "check()", table.check
        yield "an insert", next_insert
        yield "an erase", next_erase
        yield "the same call", again
        if family.in_file:
            yield "the file at the end", committed


def scenarios(device: str, families: Iterable[str] = FAMILIES, verbs: Iterable[str] = VERBS) -> list[Scenario]:
    """Every verb of every family, once with a batch that fits and once with a batch that makes the table grow."""
    verbs = list(verbs)
    return [
        Scenario(FAMILIES[family], VERBS[verb], device, grows)
        for family in families
        for verb in verbs
        if _has(FAMILIES[family], VERBS[verb]) and FAMILIES[family].runs_on(device)
        for grows in (False, True)
    ]


def _has(family: Family, verb: Verb) -> bool:
    kind = "multi" if family.multi else "map"
    if verb.name == "execute" and family.key != "u8" and not registry.get(family.design).layout.in_place:
        return False  # keys must lie in the slots
    if verb.name == "plan" and ("str" in (family.key, family.value) or "," in family.key):
        return False
    if verb.name == "number" and (not family.sums or family.evict):  # values are integers, and no key leaves
        return False
    if verb.name == "execute" and family.evict:
        return False
    if verb.name == "erase_if" and (family.key != "u8" or family.multi):  # compares numbers
        return False
    verbs = multi_verbs(family.design) if family.multi else registry.get(family.design).capabilities
    has = verb.needs in verbs or (verb.name == "flush" and family.in_file)
    return kind in verb.kinds and (verb.needs is None or has)


# ---- faults
@dataclass(frozen=True)
class Fault:
    """A call with a fault, and the table after the call.

    Attributes
    ----------
    number, place
        Number of the faulty allocation or line in the call, and its description.
    done
        Whether the call returned in spite of the fault.
    whole
        See `Scenario.problem`.
    """

    scenario: Scenario
    number: int
    place: str
    table: Any
    done: bool
    whole: bool

    def harm(self, patience: float = 30) -> str:
        """Describe what the fault broke. Empty if nothing broke. See `Scenario.problem`."""
        return self.scenario.problem(self.table, done=self.done, whole=self.whole, patience=patience)


def at_each_allocation(
    make: Callable[[], Made], call: Callable[[Made], Any], *, once: bool, device: str = "cpu", start: int = 1
) -> Iterator[tuple[Made, str, bool]]:
    """Make a table, and refuse an allocation of the call: for each of its allocations in turn, then for none.

    Yields the table, what the error said (empty if the call returned), and whether an allocation was refused.

    Parameters
    ----------
    once
        Only this allocation is refused. Otherwise all that follow are, too.
    """
    for number in range(start, 1000):
        table, said = make(), ""
        with refusing(engine_for(device), number, once=once) as count:
            try:
                call(table)
            except (MemoryError, TableFull) as error:
                said = str(error) or type(error).__name__
        yield table, said, bool(count.refused)
        if not count.refused:
            return
    raise AssertionError("the call still asks for memory after 1,000 allocations")


def refusals(scenario: Scenario, *, once: bool, start: int = 1) -> Iterator[Fault]:
    """Refuse each allocation of the call in turn: only this allocation (``once``), or also all that follow."""
    calls = at_each_allocation(scenario.make, scenario.call, once=once, device=scenario.device, start=start)
    for number, (table, said, refused) in enumerate(calls, start):
        if refused:
            place = f"allocation {number}" + (f": {said}" if said else "")
            yield Fault(scenario, number, place, table, not said, scenario.verb.whole)


class Interrupt:
    """Raises KeyboardInterrupt at the ``number``-th line that this thread begins in some files of the package.

    A line of a loop counts at most `TURNS` times.

    The end of a ``with`` statement does not count, although the trace function sees the line of the ``with`` again
    there. The interpreter does not look for signals between the last instruction of the block and the call of
    ``__exit__``, so no interrupt can come there. An interrupt can come at the first line inside an ``__exit__`` that is
    written in Python.
    """

    def __init__(self, number: int, files: re.Pattern[str]) -> None:
        self._number, self._files = number, files
        self.lines, self.place = 0, ""
        self._turns: Counter[tuple[CodeType, int]] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if _is_among(frame.f_code.co_filename, self._files) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event != "line" or frame.f_lasti in _ends_of_with(frame.f_code):
            return self._line
        self._turns[here := (frame.f_code, frame.f_lineno)] += 1
        if self._turns[here] > TURNS:
            return self._line
        self.lines += 1
        if self.lines != self._number:
            return self._line
        self.place = f"{Path(frame.f_code.co_filename).relative_to(PACKAGE)}:{frame.f_lineno}"
        raise KeyboardInterrupt


@functools.cache
def _is_among(path: str, files: re.Pattern[str]) -> bool:
    return path.startswith(f"{PACKAGE}/") and bool(files.match(path[len(f"{PACKAGE}/") :]))


@functools.cache
def _ends_of_with(code: CodeType) -> frozenset[int]:
    """Offsets where calls of ``__exit__`` without an error begin: three loads of None, before the call."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "PRECALL", "NOP")]
    ends = set()
    for i in range(1, len(steps) - 3):
        nones = all(step.opname == "LOAD_CONST" and step.argval is None for step in steps[i : i + 3])
        if nones and steps[i + 3].opname == "CALL":
            ends |= {steps[i].offset, *([steps[i - 1].offset] if steps[i - 1].opname == "SWAP" else [])}
    return frozenset(ends)


@dataclass(frozen=True)
class Repeating(Scenario):
    """A batch of several pieces, whose keys repeat within a piece and in others, and a table that has room for it."""

    @property
    def ids(self) -> Array:
        return np.random.default_rng(1).integers(OLD[-1] - 20, OLD[-1] + 30, 300)

    def make(self) -> Any:
        table = self.family.table(1200, self.device)
        table.insert(self.family.keys(OLD), self.family.values(OLD))
        if self.family.in_file:
            table.flush()
        return table


@dataclass(frozen=True)
class FirstBatch(Scenario):
    """The first batch of a table, whose keys repeat. There is room for it."""

    @property
    def ids(self) -> Array:
        return np.arange(450) % 300

    @property
    def before(self) -> Model:
        return {}

    def make(self) -> Any:
        return self.family.table(600, self.device)


def interrupted(
    call: Callable[[], Any], number: int, files: re.Pattern[str] = STORAGE_AND_TABLE
) -> tuple[Interrupt, bool]:
    """Make a call with an interrupt at its ``number``-th line: the interrupt, and whether the call returned."""
    interrupt, before = Interrupt(number, files), sys.gettrace()
    sys.settrace(interrupt)
    try:
        call()
    except KeyboardInterrupt:
        return interrupt, False
    finally:
        sys.settrace(before)
    return interrupt, True


def at_each_line(
    make: Callable[[], Made],
    call: Callable[[Made], Any],
    *,
    every: int = 1,
    start: int = 1,
    files: re.Pattern[str] = STORAGE_AND_TABLE,
) -> Iterator[tuple[Made, str, bool]]:
    """Make a table, and interrupt the call: at every ``every``-th line that it runs in some files, then at none.

    Yields the table, the place of the interrupt (empty for none), and whether the call returned.
    """
    for number in count_from(start, every):
        table = make()
        interrupt, done = interrupted(functools.partial(call, table), number, files)
        yield table, interrupt.place, done
        if not interrupt.place:
            return


def interrupts(
    scenario: Scenario, *, every: int = 1, start: int = 1, files: re.Pattern[str] = STORAGE_AND_TABLE
) -> Iterator[Fault]:
    """Interrupt the call at every ``every``-th line that it runs in some files of the package."""
    calls = at_each_line(scenario.make, scenario.call, every=every, start=start, files=files)
    for at, (table, place, done) in enumerate(calls):
        if place:
            yield Fault(scenario, start + at * every, place, table, done, False)


def all_faults(scenario: Scenario, *, every: int) -> Iterator[Fault]:
    """Refuse each allocation of the call, alone and with all that follow; interrupt at every ``every``-th line."""
    yield from refusals(scenario, once=True)
    yield from refusals(scenario, once=False)
    yield from interrupts(scenario, every=every)


def check_harmless(faults: Iterable[Fault]) -> None:
    """Raise AssertionError if some faults did harm; it names each of them."""
    harms = [f"{fault.number}, {fault.place}: {harm}" for fault in faults if (harm := fault.harm())]
    assert not harms, "\n".join(harms)


def lines_of(scenario: Scenario, files: re.Pattern[str] = STORAGE_AND_TABLE) -> int:
    """Number of lines that the call runs in some files of the package."""
    return interrupted(functools.partial(scenario.call, scenario.make()), 0, files)[0].lines


def faulty_call(kind: str, number: int, call: Callable[[], Any], device: str = "cpu") -> tuple[bool, bool]:
    """Make any call with a fault. Return whether the fault came, and whether the call returned.

    Parameters
    ----------
    kind
        ``"refusal"``: refuse the ``number``-th allocation. ``"interrupt"``: interrupt at the ``number``-th line.
    """
    if kind == "refusal":
        with refusing(engine_for(device), number) as count:
            try:
                call()
            except MemoryError:
                return True, False
        return bool(count.refused), True
    interrupt, done = interrupted(call, number)
    return bool(interrupt.place), done


# ---- the list of what does harm
def main(words: list[str]) -> None:
    """Print the harm that faults do: ``python -m support.faults DEVICE [EVERY [FAMILY [VERB ...]]]``."""
    device, every = words[0] if words else "cpu", int(words[1]) if len(words) > 1 else 1
    for scenario in scenarios(device, words[2:3] or FAMILIES, words[3:] or VERBS):
        for files, where in ((STORAGE_AND_TABLE, "interrupts"), (LOCKS, "interrupts in the lock")):
            _report(f"{scenario}: {where}", every, functools.partial(interrupts, scenario, every=every, files=files))
        for once, how in ((True, "once"), (False, "for good")):
            _report(f"{scenario}: refused {how}", 1, functools.partial(refusals, scenario, once=once))


def _report(title: str, every: int, faults: Callable[..., Iterator[Fault]]) -> None:
    """Print the harm of some faults. The faults run in processes of their own, because a fault may kill its process."""
    start, total, seen = 1, 0, Counter[tuple[str, str]]()
    ended = False
    while not ended:
        reader, writer = os.pipe()
        if not (child := os.fork()):
            with os.fdopen(writer, "w", buffering=1) as out:
                for fault in faults(start=start):
                    print(json.dumps([fault.number, fault.place]), file=out)
                    print(json.dumps(fault.harm(patience=0.5)), file=out)
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as lines:
            told = [json.loads(line) for line in lines]
        _, status = os.waitpid(child, 0)
        ended = not status
        if not ended and len(told) % 2 == 0:
            print(f"{title}: no table could be made for fault {start + len(told) // 2 * every}", flush=True)
            return
        told += [] if ended else [f"the process dies: {os.waitstatus_to_exitcode(status)}"]
        seen.update((place, harm) for (_, place), harm in zip(told[::2], told[1::2], strict=True) if harm)
        total += len(told) // 2
        start = told[-2][0] + every if told else start
    print(f"{title}: {sum(seen.values())} of {total} break", flush=True)
    for (place, harm), times in seen.items():
        print(f"    {place}{f' ({times} times)' if times > 1 else ''}: {harm}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
