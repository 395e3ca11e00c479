"""`ChainSlots`, the `slots.Slots` whose buckets are chains: batches, transactions, and when the chains change.

A batch fails for one reason only: the pool has no node for the end of a chain. A batch for which nodes surely suffice
is launched, and nobody waits for it: what it adds and erases is in the array's ledger. Any other batch is waited for.
Its elements that found no node are listed on the device, and launched again after the chains are packed, with a larger
pool, or on more chains.

**Transactions.** A kernel runs to its end, whatever becomes of the call that launched it, and counts in the ledger. So
after one launch the table is whole, and an interruption leaves nothing to do. What takes several steps:

- New chains (`rebuild`) are built beside the old ones, and become the table's by one assignment.
- `pack` goes from chain to chain, each of which is right before and after.
- `clear`, and the snapshot that a batch puts back which combines values and does not fit, are repeated (`Recovery`).
- An insert that does not fit erases what it added, by lists in memory that was there before the batch. An interrupted
  insert may have added some of its keys, each with its value. Where keys repeat, what it added is taken back at once,
  since a pair that is there twice does not tell which of the two is older.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...designs.base import Design
from ...errors import ParameterError, TableFull
from ...runtime.abi import Flag, Op
from ...runtime.engine import Engine, KernelSpec
from ...runtime.source import SLABS
from .. import policies
from ..batch import Batch, MixedBatch
from ..elements import Elements, with_flags
from ..estimate import estimate_new_keys
from ..lookup import LAUNCH_ELEMENTS
from ..resize_log import Cause, Resize
from ..scratch import Report
from ..shielded import shielded
from ..slots import MemoryUse, Recovery, StoreOptions, TableKind
from ..snapshots import Snapshot
from .chain_array import ChainArray
from .element_lists import Chosen, flagged_elements

__all__ = ["ChainSlots"]

_TAKEN_BACK_AT_ONCE = 1 << 16
"""Elements of a batch whose flags are read together when the batch is taken back."""


class _Counts(NamedTuple):
    """Keys held; erased slots, at most; buckets that inserts read, and the keys they added."""

    size: int = 0
    tombstones: int = 0
    probes: int = 0
    inserted: int = 0

    def plus(self, ledger: Report) -> _Counts:
        """These counts, and those of a ledger."""
        return _Counts(
            self.size + ledger.changed - ledger.erased,
            self.tombstones + ledger.erased,
            self.probes + ledger.probes,
            self.inserted + ledger.changed,
        )

    def minus(self, ledger: Report) -> _Counts:
        """What, with those of a ledger, are these counts."""
        return _Counts(
            self.size - ledger.changed + ledger.erased,
            self.tombstones - ledger.erased,
            self.probes - ledger.probes,
            self.inserted - ledger.changed,
        )


class _State(NamedTuple):
    """The chains, and the counts from before their ledger was opened."""

    array: ChainArray
    before: _Counts


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> ChainSlots:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    spec, lists = kind.spec, kind.parameters.get("buckets")
    if kind.parameters.get("reuse_erased") and not multi:
        raise ParameterError(
            "reuse_erased=True is for a MultiMap: a key that must stand once could be inserted in front of its copy"
        )
    pairs = spec.layout.pairs_per_bucket(spec.slots_per_bucket, spec.slot_bytes)
    slots = lists * pairs if lists else policies.slots_for(capacity, options.load_factor)
    chains = ChainArray(kind, slots, seed, hash, keys=capacity, fixed=not options.grows, repeats=multi)
    return ChainSlots(chains, options)


def more_programs(spec: KernelSpec, parameters: Mapping[str, Any]) -> Iterator[KernelSpec]:
    """The kernels beside its own that a table may launch on a GPU."""
    yield SLABS


class ChainSlots:
    """The `Slots` of chains, how many keys these hold, and how they may change. It resizes as a whole."""

    resizes: int | None = None
    peak_nbytes: int | None = None

    def __init__(self, array: ChainArray, options: StoreOptions) -> None:
        self.engine: Engine = array.engine
        self.design: Design = array.design
        self.spec: KernelSpec = array.spec
        self.seed: int = array.seed
        self.options = options
        self.grows, _, self.load_factor, self.bounds, self.counts_probes = options[:5]
        self._safe_load_factor = array.design.safe_load_factor(array.parameters)
        self.recovery = Recovery()
        self.state = _State(array, _Counts())
        self.rebuilds = 0
        self._plan_upkeep()

    def sibling(self, keys: int, stream: Any = None) -> ChainSlots:
        array = self.array.sibling(self._slots_for(keys), self.array.seed + 1, keys, stream)
        return ChainSlots(array, self.options)

    def copy(self, stream: Any = None) -> ChainSlots:
        self.finish(stream)
        twin = ChainSlots(self.array.copy(stream), self.options)
        twin.state = _State(twin.array, self._read()._replace(probes=0, inserted=0))
        twin._plan_upkeep()
        return twin

    # ---- what it is
    @property
    def array(self) -> ChainArray:
        """The chains."""
        return self.state.array

    @property
    def size(self) -> int:
        return self._counts().size

    @property
    def tombstones(self) -> int:
        """Erased slots that are not free yet, at most."""
        return self._counts().tombstones

    @property
    def slots(self) -> int:
        """Slots of the first nodes."""
        return self.array.slots

    @property
    def capacity(self) -> int:
        """Keys that the present memory is meant for."""
        array = self.array
        return array.keys if array.parameters["buckets"] else policies.capacity_of(array.slots, self.load_factor)

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    @property
    def probes(self) -> int:
        return self._counts().probes

    @probes.setter
    def probes(self, probes: int) -> None:
        array, before = self.state
        self.state = _State(array, before._replace(probes=probes - array.ledger.read().probes))

    @property
    def inserted(self) -> int:
        return self._counts().inserted

    @inserted.setter
    def inserted(self, inserted: int) -> None:
        array, before = self.state
        self.state = _State(array, before._replace(inserted=inserted - array.ledger.read().changed))

    @property
    def insert_probes(self) -> float | None:
        counts = self._counts()
        return counts.probes / counts.inserted if self.counts_probes and counts.inserted else None

    def memory_use(self) -> MemoryUse:
        """What the memory is used for. Waits."""
        return self.array.memory_use()

    @property
    def pending(self) -> bool:
        return self.recovery.step is not None or self.array.ledger.is_open

    def finish(self, stream: Any = None) -> None:
        self.recovery.run(self.engine, stream)
        if self.array.ledger.is_open:
            self.array.ledger.read(stream)
            self._plan_upkeep()

    def _counts(self) -> _Counts:
        """Counts of the batches that were waited for."""
        array, before = self.state
        return before.plus(array.ledger.known)

    def _read(self, stream: Any = None) -> _Counts:
        """Counts of now. Waits for batches that nobody has waited for."""
        array, before = self.state
        return before.plus(array.ledger.read(stream))

    # ---- lookups
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """As `Slots.scan`; the pairs of one chain follow each other, in its order."""
        return self.array.scan(room, out_keys, out_values, stream)

    def broken_buckets(self, stream: Any = None) -> int:
        return self.array.broken_buckets(stream)

    # ---- batches
    def update(self, batch: Batch, *, runs: bool = False) -> None:
        """As `Slots.update`; a batch that surely finds its nodes is only launched.

        Parameters
        ----------
        runs
            Where keys repeat: elements with one key that follow each other add their pairs in the order of the batch.
        """
        n, stream = batch.n, batch.stream
        self.recovery.run(self.engine, stream)
        if n == 0:
            return
        self._grow_ahead(batch)

        def launch(which: Chosen = None) -> None:
            entry = "append_runs" if runs else self.array.entries.insert
            self.array.launch(entry, batch, which, count_probes=self.counts_probes)

        if self._has_room_for(n, stream):
            self._launch_inserts(launch, n, 0, stream)
            return
        if not batch.flags:
            batch, _own_flags = with_flags(self.engine, batch)
        self.array.reserve_lists(stream)
        undo = self._undo_of(batch)
        try:
            self._complete_or_undo(n, launch, batch.flags, undo, stream)
        except BaseException:
            if self.array.repeats:  # an interrupt: at the next call, the memory of the batch may be gone
                shielded(partial(undo, stream))
            raise
        self._upkeep_if_due(False, stream)

    def _complete_or_undo(
        self, n: int, launch: Callable[[Chosen], None], flags: int, undo: Callable[[Any], None], stream: Any
    ) -> None:
        """Launch a batch until it is done. If nodes are missing, the table is as it was when this raises."""
        try:
            self._complete(n, launch, flags, stream)
        except (TableFull, MemoryError) as error:
            undo(stream)
            self.recovery.step = None
            self._upkeep_if_due(True, stream)
            if isinstance(error, TableFull):
                raise TableFull(f"{error}; the table is as it was", error.keys) from error
            raise
        self.recovery.step = None
        self._plan_upkeep()

    def execute(self, batch: MixedBatch, stream: Any = None) -> None:
        """Launch a mixed batch; wait for it, and launch again what found no node, unless nodes surely suffice.

        Interrupted, each operation is done or not.

        Raises
        ------
        TableFull
            If there is no node for some keys, or no memory. All other operations are done; ``keys`` are the numbers of
            the elements that are not.
        """
        self.recovery.run(self.engine, stream)
        n = batch.n
        given = Batch(batch.keys, batch.values, n, flags=batch.flags, stream=stream)

        def launch(which: Chosen = None) -> None:
            self.array.launch(self.array.entries.execute, given, which, mixed=batch)

        if self._has_room_for(n, stream):
            self._launch_inserts(launch, n, n, stream)
            return
        try:
            self._complete(n, launch, batch.flags, stream)
        except TableFull as error:
            raise TableFull(f"{error}; all other operations are done", error.keys) from error
        self._plan_upkeep()
        self._upkeep_if_due(True, stream)

    def erase(
        self,
        keys: int,
        n: int,
        flags: int = 0,
        only: Elements = None,
        stream: Any = None,
        *,
        counts: int = 0,
        entry: str = "erase",
    ) -> None:
        """As `Slots.erase`; or what another ``entry`` erases, and writes to ``counts``. The batch is only launched."""
        self.recovery.run(self.engine, stream)
        elements = len(only) if isinstance(only, np.ndarray) else n
        if elements:
            self._erases_left -= elements
            self.array.launch(entry, Batch(keys, 0, n, flags=flags, stream=stream), only, out_counts=counts)
            self._upkeep_if_due(True, stream)

    def _launch_inserts(self, launch: Callable[[], None], inserts: int, erases: int, stream: Any) -> None:
        """Launch a batch for which nodes suffice. What the host counts is lowered first: an interrupt does no harm."""
        self._adds_left -= inserts
        self._erases_left -= erases
        self.array.pool.lend(inserts)
        launch()
        self._ask_for_nodes(inserts, stream)
        self._upkeep_if_due(erases > 0, stream)

    def _complete(self, n: int, launch: Callable[[Chosen], None], flags: int, stream: Any) -> None:
        """Launch a batch until all its elements have found room.

        Raises
        ------
        TableFull
            If some have not: its ``keys``. Others may have.
        """
        which: Chosen = None
        missing = n
        while missing:
            array = self.array
            before = array.ledger.read(stream)
            array.pool.lend(missing)
            launch(which)
            self._ask_for_nodes(n, stream)
            after = array.ledger.read(stream)
            missing = after.unplaced - before.unplaced
            if not missing:
                return
            try:
                which = flagged_elements(self.engine, flags, n, Flag.UNPLACED, stream)
                self._find_nodes(missing, after.changed > before.changed, stream)
            except (TableFull, MemoryError) as error:
                self.array.pool.reopen(stream)  # some kept a node that others looked for in vain
                unplaced = np.flatnonzero(self.engine.to_host(flags, np.uint8, n, stream) == Flag.UNPLACED)
                raise TableFull(str(error), unplaced) from error

    def clear(self, stream: Any = None) -> None:
        self.recovery.run(self.engine, stream)
        before = _Counts()
        if self.counts_probes:
            counts = self._read(stream)
            before = _Counts(probes=counts.probes, inserted=counts.inserted)
        self._clear(_State(self.array, before), stream)

    def _clear(self, state: _State, stream: Any) -> None:
        def step(stream: Any) -> None:
            state.array.clear(stream)
            self.state = state

        self.recovery.step = step
        step(stream)
        self.recovery.step = None
        self._plan_upkeep()

    # ---- undoing a batch that does not fit
    def _undo_of(self, batch: Batch) -> Callable[[Any], None]:
        """What takes a batch back, and needs no memory then; noted as a recovery if it may run at a later call."""
        array, n, stream = self.array, batch.n, batch.stream
        if batch.op == Op.KEEP:
            if array.repeats:  # an interrupt may come before a kernel writes the flags
                self.engine.fill(batch.flags, Flag.PRESENT, n, stream)
            return _TakeBack(self, batch)
        most = policies.nodes_for_batch(n, array.pairs_per_node)
        if n <= LAUNCH_ELEMENTS and (array.pool.surely_free >= most or array.pool.free(stream) >= most):
            return lambda stream: None  # it is one launch, which finds its nodes
        counts = self._read(stream)
        undo = partial(self._put_back, array, counts, array.snapshot(stream) if counts.size else None)
        self.recovery.step = undo
        return undo

    def _put_back(self, array: ChainArray, counts: _Counts, snapshot: Snapshot | None, stream: Any) -> None:
        """Go back to chains, and what was in them."""
        if snapshot is not None:
            array.restore(snapshot, stream)
            before = counts.minus(array.ledger.read(stream))
        else:
            array.clear(stream)
            before = counts._replace(tombstones=0)
        self.state = _State(array, before)

    # ---- nodes
    def _find_nodes(self, missing: int, progress: bool, stream: Any) -> None:
        """Nodes for so many elements that found none.

        Raises
        ------
        TableFull, MemoryError
            If there are none.
        """
        pool, counts = self.array.pool, self._read(stream)
        if counts.tombstones > (counts.size // 4 if self.grows else 0):
            self._pack_all(stream)
            pool.reopen(stream)
        elif not self.grows:
            # A lane that comes second at the end of a chain keeps a node of its own until its kernel ends: as long as
            # keys are added, there may be room for the others too.
            pool.reopen(stream)
            if not progress:
                raise TableFull(f"{missing:,} keys found no node; allow on_full='grow', or give a larger capacity")
        elif pool.can_grow:
            pairs = counts.size + counts.tombstones + missing
            spares = min(missing, self.engine.lanes)
            pool.grow(policies.nodes_to_add(pool.capacity, pairs, self.array.pairs_per_node, spares), stream)
        else:
            keys = 2 * (counts.size + missing)
            self._replace(self._slots_for(keys), keys, Cause.NO_SLOT, stream, nodes=2 * pool.capacity)

    def _has_room_for(self, n: int, stream: Any) -> bool:
        """Whether there are surely nodes for any batch of ``n`` elements, perhaps after a wait for earlier ones.

        So that the device does not run out of work meanwhile, a pool that may grow has nodes for several batches.
        """
        array, pool = self.array, self.array.pool
        most = policies.nodes_for_batch(n, array.pairs_per_node)
        if n > LAUNCH_ELEMENTS:  # several launches, between which an interrupt may come
            return False
        if pool.surely_free >= most:
            return True
        if not self.engine.asynchronous:
            return False
        pool.learn()
        wanted = policies.nodes_to_hold(n, array.lists) if self.grows and pool.can_grow else 0
        if wanted and pool.counted_free < 4 * n:
            with suppress(MemoryError):  # by much, so that it is seldom
                pool.grow(max(wanted - pool.counted_free, pool.capacity // 2), stream)
        while pool.surely_free < most and pool.learn(wait=True):
            pass
        return pool.surely_free >= most

    def _ask_for_nodes(self, n: int, stream: Any) -> None:
        """Ask how many nodes are left behind a batch of ``n`` elements, if too few surely are for many more."""
        pool = self.array.pool
        if pool.surely_free < 3 * n and self.engine.asynchronous:
            pool.learn()
            if pool.surely_free < (2 * n if pool.asked else 3 * n):
                pool.ask(stream)

    # ---- sizes
    def _slots_for(self, keys: int) -> int:
        """Slots of a store for ``keys`` keys: those of now, if the number of chains is to stay."""
        array = self.array
        return policies.slots_for(max(1, keys), self.load_factor) if array.parameters["rebucket"] else array.slots

    def rebuild(self, keys: int, stream: Any = None) -> None:
        self.finish(stream)
        keys = max(keys, self.size)
        self._replace(self._slots_for(keys), keys, Cause.ASKED, stream)

    def _replace(self, slots: int, keys: int, cause: Cause, stream: Any, nodes: int = 0) -> None:
        """Move all pairs to new chains for ``keys`` keys, with at least ``nodes`` nodes in their pool.

        Raises
        ------
        MemoryError
            If there is no memory; the table is as it was.
        """
        old, counts = self.array, self._read(stream)
        resize = Resize(self.design.name, old.slots, cause)
        is_empty = not counts.size and self.recovery.step is None
        wanted = sized_for = max(keys, counts.size)
        new = old.sibling(slots, old.seed + 1, wanted, stream)
        # Twice until it is enough: keys may share chains more than chance has it.
        while new.pool.capacity < nodes or not (is_empty or new.take_over(old, stream).complete):
            sized_for = max(1, 2 * sized_for)
            new = old.sibling(slots, old.seed + 1, sized_for, stream)
        new.keys = wanted
        self.state = _State(new, counts._replace(tombstones=0))
        self.rebuilds += 1
        resize.done(counts.size, new.slots)

    def _grow_ahead(self, batch: Batch) -> None:
        """Make the table larger, before the first kernel, for a batch that is large and brings more keys than fit.

        Chains that are filled far beyond their load, and then moved, take several times as long. Behind a small batch,
        they are moved as seldom.
        """
        n, stream = batch.n, batch.stream
        if n <= self._adds_left or 2 * n < self.size:
            return
        size, slots, most = self._read(stream).size, self.slots, self._most_keys
        if size + n > most:
            with suppress(MemoryError):
                new = n if self.array.repeats else estimate_new_keys(self, batch, int(most) - size)
                if size + new > most:
                    slots = policies.slots_ahead(size + new, slots, self.load_factor, self.bounds)
                    self._replace(slots, max(size + new, self.array.keys), Cause.BATCH, stream)
        self._plan_upkeep()

    # ---- upkeep
    def pack(self, first: int, lists: int, stream: Any = None) -> int:
        """Pack the pairs of so many chains; how many nodes are free now. Waits."""
        self.finish(stream)
        if lists == self.array.lists:
            return self._pack_all(stream)
        freed, reclaimed = self.array.pack(first, lists, stream)
        self._lower_tombstones(reclaimed)
        return freed

    def _pack_all(self, stream: Any) -> int:
        freed, _ = self.array.pack(0, self.array.lists, stream)
        self._lower_tombstones(self._read(stream).tombstones)
        return freed

    def _lower_tombstones(self, gone: int) -> None:
        array, before = self.state
        self.state = _State(array, before._replace(tombstones=before.tombstones - gone))
        self._plan_upkeep()

    @property
    def _most_keys(self) -> float:
        """Beyond which a table that may grow gets more chains."""
        if not self.grows:
            return math.inf
        return min(self._safe_load_factor, self.bounds[1] if self.bounds else math.inf) * self.slots

    def _most_tombstones(self, size: int) -> float:
        """Beyond which the erased slots are dropped. Where inserts take them again, they stay."""
        return math.inf if self.array.reuses else policies.most_tombstones(size)

    def _plan_upkeep(self) -> None:
        """Find out how many keys can be added, and erased, before the chains need upkeep."""
        size, tombstones, *_ = self._read()
        least = self.bounds[0] if self.bounds else 0
        self._adds_left = self._most_keys - size
        # Each key that is erased is one slot more and one key less.
        self._erases_left = min((self._most_tombstones(size) - tombstones) // 2, size - least * self.slots)

    def _upkeep_if_due(self, erased: bool, stream: Any) -> None:
        if self._adds_left < 0 or (erased and self._erases_left < 0):
            self._keep_up(erased, stream)
            self._plan_upkeep()

    def _keep_up(self, erased: bool, stream: Any) -> None:
        """Bring the load factor within its bounds, if there is memory for it, and drop erased slots once they are many.

        Only an erase makes a table smaller.
        """
        size = self._read(stream).size
        if self.bounds:
            keys, slots = size, self._slots_in_bounds(size, self.bounds[0] if erased else 0)
        elif size > self._most_keys:  # few chains may have been asked for, and room for many keys
            keys = max(size, self.capacity)
            slots = self._slots_for(keys)
        else:
            keys, slots = size, self.slots
        if slots != self.slots:
            with suppress(MemoryError):
                self._replace(slots, keys, Cause.BOUNDS, stream)
        if self._read(stream).tombstones > self._most_tombstones(size):
            self._drop_erased(size, stream)

    def _slots_in_bounds(self, size: int, least: float) -> int:
        assert self.bounds
        return policies.slots_in_bounds(size, self.slots, (least, self.bounds[1])) or self.slots

    def _drop_erased(self, size: int, stream: Any) -> None:
        """Free all erased slots in the way that touches the fewest lines of memory."""
        array = self.array
        if not size:
            self._clear(_State(array, self._read(stream)._replace(tombstones=0)), stream)
            return
        nodes = array.pool.capacity - array.pool.free(stream)
        if policies.moves_instead_of_packing(size, array.lists, nodes, array.pool.capacity):
            with suppress(MemoryError):
                self._replace(array.slots, array.keys, Cause.ERASED, stream, nodes=array.pool.capacity)
                return
        self._pack_all(stream)


class _TakeBack:
    """Erases what an insert added, by its flags. Interrupted and called again, it goes on.

    Takes the flags a piece at a time, because an insert is also taken back where memory is short. Each element of a
    piece erases one pair, list by list in order. So the ledger tells how far it came.
    """

    def __init__(self, store: ChainSlots, batch: Batch) -> None:
        self._store, self._batch = store, batch
        # The first element of a piece; and of a piece that has begun, the elements that added pairs, and the ledger.
        self._piece: tuple[int, tuple[npt.NDArray[np.int64], int] | None] = 0, None

    def __call__(self, stream: Any) -> None:
        store, array, batch = self._store, self._store.array, self._batch
        while self._piece[0] < batch.n:
            first, begun = self._piece
            count = min(_TAKEN_BACK_AT_ONCE, batch.n - first)
            if begun is None:
                flags = array.engine.to_host(batch.flags + first, np.uint8, count, stream)
                begun = first + np.flatnonzero(flags == Flag.CHANGED), array.ledger.read(stream).erased
                self._piece = first, begun
            added, before = begun
            left = added[array.ledger.read(stream).erased - before :]
            store._erases_left -= len(left)
            if len(left):
                undo = "retract" if array.repeats else "erase"
                array.launch(undo, batch._replace(kind=0, flags=0, stream=stream), left)
            self._piece = first + count, None
