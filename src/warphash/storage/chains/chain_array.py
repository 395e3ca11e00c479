"""The memory of a table of chains, and the launches of its kernels.

A chain, the list of a bucket, has its first node in an array and the others from a pool. The kernels are those of
``kernels/chains/lists.cuh``, ``append.cuh``, ``execute.cuh`` and ``multimap.cuh``.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from ...runtime.abi import ChainBatch, ChainTable
from .. import policies
from ..batch import Batch, MixedBatch
from ..elements import Piece, all_pieces, pieces
from ..hash_constants import MAX_BUCKETS, buckets_for, draw_constants
from ..lookup import LAUNCH_ELEMENTS, NO_FIELDS
from ..new_memory import copied
from ..scratch import Outcome, ReportBuffer, zeroed_report
from ..slots import MemoryUse, TableKind
from ..snapshots import Snapshot
from .element_lists import Chosen, ElementLists, FlaggedElements
from .ledger import Ledger
from .node_pool import BLOCK_UNITS, MAX_BLOCKS, MAX_SUPER_BLOCKS, SlabPool

__all__ = ["ChainArray"]

_NOT_MIXED = MixedBatch(0, 0, 0, 0, 0, 0)


class Entries(NamedTuple):
    """The kernels of a batch of inserts, and of a mixed batch."""

    insert: str
    execute: str


class ChainArray:
    """Chains of fixed number: their nodes, hash constants and counts. Not safe from several threads.

    Parameters
    ----------
    slots
        In the first nodes; at least so many, rounded up to whole nodes.
    seed
        Of the hash constants.
    family
        Of the hash functions, one of `HASHES`.
    keys
        How many the pool is meant for. A small table has no super block before a chain grows. A table that may not
        grow has as many nodes as buckets: as many keys as it has slots need no more, wherever they go.
    fixed
        The table may not take more memory.
    repeats
        Keys repeat, so some chains are long: the last node of each is remembered (``kernels/chains/append.cuh``).

    Attributes
    ----------
    buckets, lists
        Buckets that keys are hashed to; and with the reserved ones behind them.
    repeats
        As given.
    entries
        The kernels that add pairs. With the parameter ``reuse_erased`` they take erased slots again
        (``kernels/chains/reuse.cuh``).
    pool
        Nodes.
    ledger
        What the kernels of batches have counted.
    """

    batch_type, find_fields = ChainBatch, NO_FIELDS

    def __init__(
        self,
        kind: TableKind,
        slots: int,
        seed: int,
        family: str,
        keys: int = 0,
        fixed: bool = False,
        repeats: bool = False,
        stream: Any = None,
    ) -> None:
        self.engine, self.design, self.parameters, self.spec = self.kind = kind
        engine, parameters, spec = kind.engine, kind.parameters, kind.spec
        self.seed, self.family, self.keys, self.fixed, self.repeats = seed, family, keys, fixed, repeats
        self.reuses = bool(parameters.get("reuse_erased"))
        self.entries = _entries(repeats, self.reuses)
        self._erased_behind_tails = False
        per_node = spec.slots_per_bucket
        self.pairs_per_node = spec.layout.pairs_per_bucket(per_node, spec.slot_bytes)
        self.buckets = buckets_for(slots, self.pairs_per_node)
        self.slots = self.buckets * self.pairs_per_node
        self.lists = self.buckets + (1 if per_node >= 3 else 3)
        self._node_bytes = per_node * spec.slot_bytes
        self.program = engine.program(self.spec)
        self._memory = engine.allocate(self.lists * self._node_bytes, stream)
        self._tails = engine.allocate(4 * self.lists, stream) if repeats else None
        self.pool = self._make_pool(stream)
        self._allocate_counts(stream)
        drawn = draw_constants(random.Random(seed), family, self.spec.word_bytes)
        self._constants = {**dict(spec.constants), **drawn}
        self._described = (self.pool.memory, self._describe())
        self.clear(stream)

    def _make_pool(self, stream: Any) -> SlabPool:
        most = 1 if self.parameters.get("allocator") == "slab_light" else MAX_SUPER_BLOCKS
        nodes = policies.pool_nodes(self.keys, self.buckets, self.pairs_per_node)
        if self.fixed:
            nodes = max(nodes, self.buckets)
        blocks = max(1, -(-nodes // BLOCK_UNITS))
        super_blocks = -(-blocks // MAX_BLOCKS)
        if super_blocks > most:
            raise MemoryError(f"{nodes:,} nodes are more than a pool of {most} super blocks has")
        if self.buckets < BLOCK_UNITS and nodes < BLOCK_UNITS and not self.fixed and most > 1:
            super_blocks = 0
        if not self.fixed and most > 1 and self.engine.asynchronous:
            blocks = max(blocks, self.engine.pool_blocks, self.buckets // (8 * BLOCK_UNITS))
        units = nodes if self.fixed and super_blocks == 1 else None
        return SlabPool(self.engine, min(blocks, MAX_BLOCKS), super_blocks, units, self._node_bytes, most, stream)

    def _allocate_counts(self, stream: Any) -> None:
        self.ledger = Ledger(self.engine, stream)
        self._report = ReportBuffer(self.engine, stream)  # of kernels that are waited for
        self._lists = ElementLists(self.engine)
        self._batch = ChainBatch()

    def sibling(self, slots: int, seed: int, keys: int = 0, stream: Any = None) -> Self:
        """Empty chains of the same kind with other hash constants; ``keys`` as for the class."""
        return type(self)(self.kind, slots, seed, self.family, keys, self.fixed, self.repeats, stream)

    def copy(self, stream: Any = None) -> Self:
        """Chains with the same pairs, at the same places, in memory of their own."""
        engine, twin = self.engine, copy.copy(self)
        twin._memory = copied(engine, self._memory, stream)
        twin._tails = engine.allocate(4 * self.lists, stream) if self._tails else None
        twin._forget_tails(stream)
        twin.pool = self.pool.copy(stream)
        twin._allocate_counts(stream)
        twin._described = (twin.pool.memory, twin._describe())
        return twin

    # ---- memory
    @property
    def nbytes(self) -> int:
        return self._memory.nbytes + self.pool.nbytes + (self._tails.nbytes if self._tails else 0)

    @property
    def table(self) -> ChainTable:
        """What kernels are given."""
        described, table = self._described
        if described is not self.pool.memory:  # the pool has grown
            table = self._describe()
            self._described = (self.pool.memory, table)
        return table

    def _describe(self) -> ChainTable:
        return ChainTable(
            slots=self._memory.ptr,
            buckets=self.buckets,
            pool=self.pool.descriptor,
            pool_units=self.pool.only_units,
            tails=self._tails.ptr if self._tails else 0,
            **self._constants,
        )

    def memory_use(self) -> MemoryUse:
        """What the memory is used for. Waits."""
        taken, free = self.pool.taken_and_free()
        nodes = self.buckets + taken
        return MemoryUse(nodes * self._node_bytes, free * self._node_bytes, nodes)

    def clear(self, stream: Any = None) -> None:
        """Forget all keys and counts; keep the memory. Allocates nothing. To be repeated if it was interrupted."""
        self._forget_tails(stream)
        self.engine.fill(self._memory.ptr, 0xFF, self._memory.nbytes, stream)
        self.pool.clear(stream)
        self.ledger.restart(stream)

    def _forget_tails(self, stream: Any) -> None:
        """Before nodes are freed: a tail leads to a node of its chain."""
        if self._tails:
            self.engine.fill(self._tails.ptr, 0xFF, self._tails.nbytes, stream)

    @property
    def _regions(self) -> list[tuple[int, int]]:
        """Address and bytes of all memory that holds pairs."""
        return [(self._memory.ptr, self._memory.nbytes), *self.pool.regions]

    def snapshot(self, stream: Any = None) -> Snapshot:
        """A copy of all memory that holds pairs."""
        engine, regions = self.engine, self._regions
        try:
            held = engine.allocate(sum(nbytes for _, nbytes in regions), stream)
        except MemoryError:
            return np.concatenate([engine.to_host(at, np.uint8, nbytes, stream) for at, nbytes in regions])
        begin = held.ptr
        for at, nbytes in regions:
            engine.copy(begin, at, nbytes, stream)
            begin += nbytes
        return held

    def restore(self, snapshot: Snapshot, stream: Any = None) -> None:
        """Put a copy back. Nodes that came later are free. Allocates nothing. To be repeated if it was interrupted."""
        self._forget_tails(stream)
        self.pool.clear(stream)
        begin = 0
        for at, nbytes in self._regions:
            if begin == snapshot.nbytes:
                break
            if isinstance(snapshot, np.ndarray):
                self.engine.upload(at, snapshot[begin : begin + nbytes], stream)
            else:
                self.engine.copy(at, snapshot.ptr + begin, nbytes, stream)
            begin += nbytes
        self.pool.forget()

    # ---- operations that change nothing
    def find_all(self, keys: int, n: int, offsets: int, values: int, stream: Any = None) -> None:
        """Values of each key, from its offset (uint64, n + 1 of them) to the next."""
        width = self.spec.word_bytes
        for at, count, *_ in all_pieces(n, LAUNCH_ELEMENTS):
            batch = ChainBatch(n=count, keys=keys + at * width, offsets=offsets + 8 * at, out_values=values)
            self.program.run("find_all", self.table, batch, count, stream)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """As `Slots.scan`; the pairs of one chain follow each other, in its order."""
        report = zeroed_report(self.engine, stream)
        batch = ChainBatch(out_keys=out_keys, out_values=out_values, report=report.ptr, room=room)
        self._run_over_lists("scan", batch, stream)
        return report.read(stream).winners

    def broken_buckets(self, stream: Any = None) -> int:
        """As `Slots.broken_buckets`."""
        report = zeroed_report(self.engine, stream)
        nodes = [(self._memory.ptr, self.lists, self.buckets)]
        nodes += [(at, count, MAX_BUCKETS) for at, count in self.pool.units]
        for at, count, hashed in nodes:
            table = ChainTable.from_buffer_copy(self.table)
            table.slots, table.buckets = at, hashed
            self.program.run("audit", table, ChainBatch(n=count, report=report.ptr), count, stream)
        return report.read(stream).mismatches

    # ---- operations that change the chains, waited for. They allocate nothing.
    def take_over(self, other: ChainArray, stream: Any = None) -> Outcome:
        """Place all pairs of other chains, those of one key in their order."""
        self.pool.lend(self.pool.capacity)
        report = self._report.reset(stream)
        for at, count, *_ in all_pieces(other.lists, LAUNCH_ELEMENTS):
            batch = ChainBatch(
                n=count,
                source_nodes=other._memory.ptr + at * self._node_bytes,
                source_buckets=max(0, other.buckets - at),
                source_pool=other.pool.descriptor,
                report=report,
            )
            self.program.run("relist", self.table, batch, count, stream)
        counts = self._report.read(stream)
        return Outcome(counts.changed, 0, counts.unplaced, 0)

    def pack(self, first: int, lists: int, stream: Any = None) -> tuple[int, int]:
        """Pack so many chains: how many nodes are free now, and erased slots gone. Interrupted, it has packed some.

        Source: A Dynamic Hash Table for the GPU, section IV-C (FLUSH).
        """
        self._forget_tails(stream)
        report = self._report.reset(stream)
        self._run_over_lists("flush", ChainBatch(report=report), stream, first, lists)
        counts = self._report.read(stream)
        return counts.erased, counts.changed

    # ---- operations on the elements of a batch, not waited for
    def reserve_lists(self, stream: Any = None) -> None:
        """Make sure that a `launch` of elements that the host lists needs no memory."""
        self._lists.reserve(stream)

    def launch(
        self,
        entry: str,
        given: Batch,
        which: Chosen = None,
        *,
        mixed: MixedBatch = _NOT_MIXED,
        out_counts: int = 0,
        count_probes: bool = False,
    ) -> None:
        """Run kernel ``entry`` over the elements of a batch, or those of ``which``, and count in the ledger.

        For operations that change the table, whose callers hold its lock alone: they share the batch and the ledger.

        Parameters
        ----------
        mixed
            Of a mixed batch, what it has besides.
        out_counts
            Address of a uint32 for each element; 0 for none.
        """
        if self.reuses:
            self._note_erased(entry, given.stream)
        width, keys, values, flags = self.spec.word_bytes, given.keys, given.values, given.flags
        operations, out_values = mixed.operations, mixed.out_values
        batch = self._batch
        batch.report, batch.default_value = self.ledger.report, mixed.default
        batch.op, batch.kind, batch.count_probes = given.op, given.kind, count_probes
        self.ledger.open()
        for at, count, indices, length in self._pieces_of(given.n, which, given.stream):
            batch.n, batch.indices, batch.count = count, indices, length
            batch.keys, batch.values = keys + at * width, values and values + at * width
            batch.operations = operations and operations + at
            batch.out_values = out_values and out_values + at * width
            batch.out_counts = out_counts and out_counts + 4 * at
            batch.out_flags = flags and flags + at
            self.program.run(entry, self.table, batch, count, given.stream)

    # ---- launches
    def _note_erased(self, entry: str, stream: Any) -> None:
        """Forget the tails before inserts that have to meet erased slots, and note who erases some."""
        if entry in self.entries and self._erased_behind_tails:
            self._forget_tails(stream)
            self._erased_behind_tails = False
        if entry not in (self.entries.insert, "append_runs"):
            self._erased_behind_tails = True

    def _pieces_of(self, n: int, which: Chosen, stream: Any) -> Iterable[Piece]:
        if isinstance(which, FlaggedElements):
            return which.pieces
        if isinstance(which, np.ndarray):
            return self._lists.pieces(which, stream)
        return pieces(self.engine, n, LAUNCH_ELEMENTS, which, stream)

    def _run_over_lists(
        self, entry: str, batch: ChainBatch, stream: Any, first: int = 0, lists: int | None = None
    ) -> None:
        for at, count, *_ in all_pieces(self.lists if lists is None else lists, LAUNCH_ELEMENTS):
            batch.n, batch.first_list = count, first + at
            self.program.run(entry, self.table, batch, count, stream)


def _entries(repeats: bool, reuses: bool) -> Entries:
    if reuses:
        return Entries("append_reusing", "execute_reusing")
    return Entries("append", "execute_pairs") if repeats else Entries("place", "execute")
