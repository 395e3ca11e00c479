"""Keys and values as the words of slots (`Slots`), and the rules that every update keeps.

A table has `rows.Rows`, which take the caller's rows of keys and values by their addresses. Rows have `Slots`, which
keep keys and values as words. There is one class of them for each family of designs. The slots of most families lie in
one array (``update/array_slots.py``). As ``slots`` is a number everywhere, an object of such a class is called a store.

**Every update is a transaction.**

1. Prepare. All memory that the batch can need is allocated, or its worst case is bounded, before the first kernel that
   changes the table. Its size follows from the batch, and not from the table.
2. Run. Before the first kernel is launched, the store notes how the table becomes whole again if the update stops here
   (`Recovery.step`). The note is replaced when another step would need another recovery.
3. Commit. One assignment makes the new state the table's; then the note is withdrawn.

A refused allocation, at any point, or a batch that does not fit, leaves the table as it was: the store undoes the batch
with memory that it has. There is one exception. A batch changes values and would fit into a large table, but by chance
a key finds no slot, and the memory to grow is refused: then the changed values stay (`transaction.is_risky`).

An interruption from outside (`KeyboardInterrupt`, at any bytecode) leaves the note in place.
Then `Slots.pending` is true, and `Slots.finish` makes the table whole: each key of the batch is in or out, every older
key is there, and the counts are right. The slots in device memory are the truth; what the host has counted is taken
from there anew. A recovery changes nothing that a second run of it would need, so it may be interrupted, too.

**Reading changes nothing.** The attributes of a store compute nothing, and wait for nobody. They are right while
nothing is `pending`. Verbs that need them call `finish` first, and hold the table's lock alone while they do.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from ..designs.base import Design
from ..runtime.engine import Engine, KernelSpec
from .batch import Batch
from .elements import Elements
from .file_log import FileLog
from .lookup import Searchable

__all__ = [
    "MemoryUse",
    "Recovery",
    "Slots",
    "State",
    "StoreOptions",
    "SubtableFigures",
    "TableKind",
    "TierFigures",
    "resting",
]

S = TypeVar("S")


class TableKind(NamedTuple):
    """What tables of a kind have in common; the first arguments of the array of a family."""

    engine: Engine
    design: Design
    parameters: Mapping[str, Any]
    spec: KernelSpec


class StoreOptions(NamedTuple):
    """What a store may do, whatever its family.

    Attributes
    ----------
    grows
        The store may take more memory.
    attempts
        How often a batch may fail at one size before the store grows, or gives up. Chains fail for want of nodes alone.
    load_factor
        Keys for each slot that a capacity is meant for.
    bounds
        Of the load factor: the least behind a batch that erases, the most behind any, if there is memory to change it.
        None for no bounds.
    counts_probes
        Updates count the buckets that they read.
    memory
        Where the slots lie, of a design that has a choice (`Design.memories`): ``"device"``, ``"host"``, or a file.
    opens
        The file is there, and holds the table.
    leaves
        An update may return before its kernels have ended. The caller calls `Slots.finish` before all that
        `Recovery.step` forbids, and before the store is asked for its size.
    log
        What the file keeps beside the slots; None for nothing.
    """

    grows: bool
    attempts: int
    load_factor: float
    bounds: tuple[float, float] | None
    counts_probes: bool
    memory: str | Path = "device"
    opens: bool = False
    leaves: bool = False
    log: FileLog | None = None


class TierFigures(NamedTuple):
    """What is in the two tiers of a table, and what went between them.

    Attributes
    ----------
    cached, cache_capacity
        Pairs in the cache, and the most that it is to hold.
    cache_nbytes, home_nbytes
        Memory of the cache, and of the home.
    hits, misses
        Keys that finds have met in the cache, and the others.
    admitted, evicted
        Pairs that the cache has taken up, and pairs that have left it.
    bytes_to_home, bytes_from_home
        Keys and values that went to the home, and answers that came from there.
    """

    cached: int
    cache_capacity: int
    cache_nbytes: int
    home_nbytes: int
    hits: int
    misses: int
    admitted: int
    evicted: int
    bytes_to_home: int
    bytes_from_home: int

    @property
    def hit_rate(self) -> float:
        """The share of keys that finds have met in the cache; 0 before the first find."""
        return self.hits / max(1, self.hits + self.misses)


class SubtableFigures(NamedTuple):
    """Slots of a subtable, and the keys in them."""

    slots: int
    keys: int


class MemoryUse(NamedTuple):
    """What the memory of a store is used for.

    Attributes
    ----------
    in_use
        Bytes of the buckets, and of the nodes and rows that are not free.
    reserve
        Bytes of the nodes and rows that are free.
    nodes
        Nodes in use, the first ones of the buckets included; None without lists.
    tiers
        Of a table in two tiers.
    subtables
        Of a table of subtables, one behind the other.
    """

    in_use: int
    reserve: int = 0
    nodes: int | None = None
    tiers: TierFigures | None = None
    subtables: tuple[SubtableFigures, ...] | None = None


class Recovery:
    """How a store becomes whole again after an update that stopped half way.

    Attributes
    ----------
    step
        ``step(stream)`` makes the store whole; None if no update began that did not end. It may run more than once.
        A store may put off the clearing of its memory so: the step clears it.
    """

    def __init__(self) -> None:
        self.step: Callable[[Any], None] | None = None

    def run(self, engine: Engine, stream: Any) -> None:
        """Make the store whole, if an update stopped half way.

        Raises
        ------
        MemoryError, TableFull
            If there is no memory for it, or no slot. The next call tries again.
        """
        if self.step is not None:
            engine.synchronize(None)
            self.step(stream)
            self.step = None


def resting(step: Callable[[S, Any], None], store: S) -> Callable[[Any], None]:
    """The step of a store that may be noted between two calls.

    The step does not hold the store, so a table that nobody uses any more is freed at once.
    """
    return partial(step, weakref.proxy(store))


class State(Protocol):
    """What a commit replaces."""

    @property
    def array(self) -> Searchable:
        """The memory that holds the pairs."""


class Slots(Protocol):
    """Keys and values as words, by address, in the slots of one family of designs. Its caller holds the table's lock.

    Attributes
    ----------
    size, slots, capacity
        Keys held; slots for keys; keys that the memory is meant for.
    options
        What the store may do.
    seed
        Of the hash constants.
    rebuilds, probes, inserted
        How often all pairs were moved into new memory; buckets read by updates that counted them, and the keys that
        these updates added.
    resizes, peak_nbytes
        Of a store that resizes a part at a time: how often, and the most bytes held at one time. None of others.
    insert_probes
        Mean number of buckets that an insert read for a key; None if not counted.
    pending
        Whether a batch is under way that nobody has waited for, or the recovery has a step.
    recovery
        While it has a step, lookups, too, need `finish` first.
    state
        What a commit replaces, in one assignment.
    """

    engine: Engine
    design: Design
    options: StoreOptions
    seed: int
    recovery: Recovery
    rebuilds: int
    probes: int
    inserted: int

    @property
    def spec(self) -> KernelSpec: ...
    @property
    def state(self) -> State: ...
    @property
    def size(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def resizes(self) -> int | None: ...
    @property
    def peak_nbytes(self) -> int | None: ...
    @property
    def insert_probes(self) -> float | None: ...
    @property
    def pending(self) -> bool: ...
    def finish(self, stream: Any = None) -> None:
        """End the batch that is under way, and make the table whole if an update was interrupted. Waits."""

    def memory_use(self) -> MemoryUse: ...
    def update(self, batch: Batch) -> None:
        """Add the keys that are absent; apply the batch's operation to the values of the others.

        Raises
        ------
        TableFull
            If not all keys fit. The table is as it was; ``keys`` are the numbers of the elements without a slot.
        MemoryError
            If there is no memory. The table is as it was.
        """

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> None:
        """Erase ``n`` keys, or those of ``only`` some elements; ``flags`` as of a `Batch`."""

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """Copy up to ``room`` pairs out, in no particular order; how many there are. Waits."""

    def broken_buckets(self, stream: Any = None) -> int:
        """Buckets that break the rules of their layout; 0 is right. Waits."""

    def clear(self, stream: Any = None) -> None:
        """Forget all keys; keep the memory."""

    def rebuild(self, keys: int, stream: Any = None) -> None:
        """Move all pairs into new memory for ``keys`` keys, or for those that there are.

        Raises
        ------
        MemoryError
            If there is no room for it; the table is as it was.
        """

    def sibling(self, keys: int, stream: Any = None) -> Slots:
        """An empty store of the same kind and policy, for ``keys`` keys."""

    def copy(self, stream: Any = None) -> Slots:
        """A store with the same pairs in memory of its own; pairs are copied on the device."""
