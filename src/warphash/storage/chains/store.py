"""A store whose buckets are lists: its nodes, and what only lists can do.

The kernels are those of ``kernels/chains/``: ``lists.cuh``, ``append.cuh``, ``execute.cuh`` and ``multimap.cuh``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...runtime.abi import Batch, Op, Table
from .. import policies
from ..buckets.memory import MAX_BUCKETS, MemoryUse
from ..buckets.store import PIECE_UNIQUE, Outcome, Store
from ..scratch import pieces
from .ledger import Ledger
from .node_pool import BLOCK_UNITS, MAX_BLOCKS, MAX_SUPER_BLOCKS, SlabPool

__all__ = ["ListStore", "MultiListStore"]


class ListStore(Store):
    """A `Store` that has the first node of every list in its own memory, and the others from a pool.

    Attributes
    ----------
    pool
        Sized for ``keys`` keys; a small table has no super block before a list grows. Of a table that may not grow, as
        many nodes as buckets: so many keys as it has slots need no more, wherever they go.
    ledger
        What the kernels of batches have counted.
    """

    pool: SlabPool
    ledger: Ledger

    def _allocate(self, stream: Any) -> None:
        super()._allocate(stream)
        most = 1 if self.parameters.get("allocator") == "slab_light" else MAX_SUPER_BLOCKS
        nodes = policies.pool_nodes(self.keys, self.buckets, self._pairs_per_node)
        if self.fixed:
            nodes = max(nodes, self.buckets)
        blocks = max(1, -(-nodes // BLOCK_UNITS))
        super_blocks = -(-blocks // MAX_BLOCKS)
        if super_blocks > most:
            raise MemoryError(f"{nodes:,} nodes are more than a pool of {most} super blocks has")
        if self.buckets < BLOCK_UNITS and nodes < BLOCK_UNITS and not self.fixed and most > 1:
            super_blocks = 0
        if not self.fixed and most > 1 and self.engine.asynchronous:
            blocks = max(blocks, policies.FEWEST_BLOCKS, self.buckets // (8 * BLOCK_UNITS))
        units = nodes if self.fixed and super_blocks == 1 else None
        node_bytes = self.spec.slots_per_bucket * self.spec.slot_bytes
        self.pool = SlabPool(self.engine, min(blocks, MAX_BLOCKS), super_blocks, units, node_bytes, most, stream)
        self.ledger = Ledger(self.engine, stream)
        self._batch = Batch()

    @property
    def _pairs_per_node(self) -> int:
        return self.slots // self.buckets

    def nodes_for_batch(self, n: int) -> int:
        """Free nodes with which a batch of ``n`` elements cannot fail."""
        return policies.nodes_for_batch(n, self._pairs_per_node)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.pool.nbytes

    @property
    def regions(self) -> list[tuple[int, int]]:
        """Address and bytes of all memory that holds pairs."""
        return [*super().regions, *self.pool.regions]

    @property
    def lists(self) -> int:
        """Buckets, those of the annex included."""
        return self.total_slots // self.spec.slots_per_bucket

    def memory_use(self) -> MemoryUse:
        taken, free = self.pool.taken_and_free()
        node_bytes = self.spec.slots_per_bucket * self.spec.slot_bytes
        nodes = self.buckets + taken
        return MemoryUse(nodes * node_bytes, free * node_bytes, nodes)

    def _describe(self) -> Table:
        table = super()._describe()
        table.pool, table.pool_units = self.pool.descriptor, self.pool.only_units
        return table

    def _parts(self) -> list[tuple[int, int, int]]:
        per_node = self.spec.slots_per_bucket
        return [*super()._parts(), *((ptr, nodes * per_node, MAX_BUCKETS) for ptr, nodes in self.pool.units)]

    def clear(self, stream: Any = None) -> None:
        super().clear(stream)
        self.pool.clear(stream)
        self.ledger.restart(stream)

    def restore(self, snapshot: Any, stream: Any = None) -> None:
        """Put a copy back. Nodes that came later are free."""
        self.pool.clear(stream)
        super().restore(snapshot, stream)
        self.pool.lend(self.pool.capacity)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """As `Store.scan`; the pairs of one list follow each other, in its order."""
        report = self._zeroed_report(stream)
        for at in range(0, self.lists, PIECE_UNIQUE):
            count = min(PIECE_UNIQUE, self.lists - at)
            batch = Batch(
                n=count, keys=at, out_keys=out_keys, out_values=out_values, report=report.ptr, default_value=room
            )
            self._program.run("scan", self.table, batch, count, stream)
        return self._read(report, stream).winners

    def take_over(self, other: Store, homeless: int, stream: Any = None) -> Outcome:
        """Place all pairs of ``other``, those of one key in their order. Waits."""
        assert isinstance(other, ListStore)
        report = self._zeroed_report(stream)
        self.pool.lend(self.pool.capacity)
        for at in range(0, other.lists, PIECE_UNIQUE):
            count = min(PIECE_UNIQUE, other.lists - at)
            batch = Batch(
                n=count,
                keys=other.memory.ptr + at * self.spec.slots_per_bucket * self.spec.slot_bytes,
                source_buckets=max(0, other.buckets - at),
                source_pool=other.pool.descriptor,
                report=report.ptr,
            )
            self._program.run("relist", self.table, batch, count, stream)
        counts = self._read(report, stream)
        return Outcome(counts.changed, 0, counts.unplaced, 0)

    def reopen_pool(self, stream: Any = None) -> None:
        """Let those look for nodes again that found none."""
        self.pool.reopen(stream)
        self.table.pool = self.pool.descriptor

    def grow_pool(self, nodes: int, stream: Any = None) -> None:
        """At least ``nodes`` more, or what there is memory for; raises `MemoryError` if for none."""
        self.pool.grow_by(nodes, stream)
        self.table.pool, self.table.pool_units = self.pool.descriptor, self.pool.only_units

    def flush(self, first: int, buckets: int, stream: Any = None) -> tuple[int, int]:
        """Pack the lists of so many buckets: nodes that are free now, and erased slots that are gone. Waits."""
        report = self._zeroed_report(stream)
        for at in range(0, buckets, PIECE_UNIQUE):
            batch = Batch(n=min(PIECE_UNIQUE, buckets - at), keys=first + at, report=report.ptr)
            self._program.run("flush", self.table, batch, batch.n, stream)
        counts = self._read(report, stream)
        return counts.erased, counts.changed

    # ---- operations on the keys of a batch; nobody waits for them
    def launch(
        self,
        entry: str,
        n: int,
        *,
        keys: int,
        values: int = 0,
        operations: int = 0,
        out_values: int = 0,
        out_counts: int = 0,
        flags: int = 0,
        default: int = 0,
        op: Op = Op.KEEP,
        kind: int = 0,
        count_probes: bool = False,
        only: npt.NDArray[np.int64] | None = None,
        stream: Any = None,
    ) -> None:
        """Run kernel ``entry`` over ``n`` elements, or ``only`` some of them, and count in the ledger.

        Of operations that change the table, whose callers hold its lock alone: they share the batch and the ledger.

        Parameters
        ----------
        keys, values, operations, out_values, out_counts, flags
            Addresses of arrays with an item for each element; 0 for none.
        """
        width = self.spec.word_bytes
        batch = self._batch
        batch.report, batch.default_value = self.ledger.report, default
        batch.op, batch.kind, batch.count_probes = op, kind, count_probes
        for at, count, indices, length in pieces(self.engine, n, min(n, PIECE_UNIQUE), only, stream):
            batch.n, batch.indices, batch.count = count, indices, length
            batch.keys, batch.values = keys + at * width, values and values + at * width
            batch.operations = operations and operations + at
            batch.out_values = out_values and out_values + at * width
            batch.out_counts = out_counts and out_counts + 4 * at
            batch.out_flags = flags and flags + at
            self._program.run(entry, self.table, batch, count, stream)
        self.ledger.reopen()

    def find_all(self, keys: int, n: int, offsets: int, values: int, stream: Any = None) -> None:
        """Values of each key, from its offset (uint64, n + 1 of them) to the next."""
        width = self.spec.word_bytes
        for at in range(0, n, PIECE_UNIQUE):
            count = min(PIECE_UNIQUE, n - at)
            batch = Batch(n=count, keys=keys + at * width, out_counts=offsets + 8 * at, out_values=values)
            self._program.run("find_all", self.table, batch, count, stream)


class MultiListStore(ListStore):
    """Lists in which keys repeat, so that some are long: the end of each is kept (``kernels/chains/append.cuh``)."""

    def _allocate(self, stream: Any) -> None:
        super()._allocate(stream)
        self._tails = self.engine.allocate(4 * self.lists, stream)
        self._forget_tails(stream)

    def _forget_tails(self, stream: Any) -> None:
        self.engine.fill(self._tails.ptr, 0xFF, 4 * self.lists, stream)

    @property
    def nbytes(self) -> int:
        return super().nbytes + 4 * self.lists

    def _describe(self) -> Table:
        table = super()._describe()
        table.tails = self._tails.ptr
        return table

    def clear(self, stream: Any = None) -> None:
        super().clear(stream)
        self._forget_tails(stream)

    def restore(self, snapshot: Any, stream: Any = None) -> None:
        super().restore(snapshot, stream)
        self._forget_tails(stream)

    def flush(self, first: int, buckets: int, stream: Any = None) -> tuple[int, int]:
        reclaimed = super().flush(first, buckets, stream)
        self._forget_tails(stream)
        return reclaimed
