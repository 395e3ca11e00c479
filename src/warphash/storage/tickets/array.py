"""An array of slots with a ticket board, in the memory of one engine, and the kernels that run over it.

The memory has the slots first, then the board (``kernels/tickets/``). Slots that were emptied are marked on a second
board, which the first erase allocates. Mixed batches have a third, of access bits, which is written anew if other
updates came between. Free slots may hold anything, so only the boards are cleared.

An insert never fails while a slot is free, so no pair is ever displaced. The sequence of kernels of an update, and why,
tells the head of ``kernels/tickets/insert.cuh``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ...designs.base import Design
from ...runtime.abi import LEFTOVER, LISTS_BYTES, LOSERS, REPORT_WORDS, WINNERS, Op, TicketBatch, TicketTable
from ...runtime.engine import Buffer, Engine, KernelSpec, Program
from .. import snapshots
from ..hash_constants import buckets_for, draw_constants
from ..listed import Listed
from ..lookup import LAUNCH_ELEMENTS, NO_FIELDS
from ..reports import read_report, zeroed_report
from ..scratch import CLAIMED_ELEMENTS, Elements, Workbench, pieces
from ..snapshots import Snapshot
from ..storage import MemoryUse, MixedBatch, Outcome
from .lanes import lanes_of
from .primes import next_prime

__all__ = ["TicketArray"]

_ALIGNMENT_BYTES = 256
"""Of the board behind the slots."""

_BOARD_WORD_BYTES = 4

_PIECE_SLOTS = LAUNCH_ELEMENTS
"""Slots that a scan or a move walks over in one launch: whole words of every board."""


class TicketArray:
    """A prime number of slots, at least ``slots``, with a ticket each. All slots are free when it is made.

    Parameters
    ----------
    seed
        Of the hash constants.
    family
        Of the hash functions: one of `HASHES`.

    Attributes
    ----------
    slots
        Slots, each of one pair.
    table
        What kernels are given.
    program
        The kernels of all operations but inserts.
    """

    batch_type, find_fields = TicketBatch, NO_FIELDS
    _emptied: Buffer | None
    _access: Buffer | None

    def __init__(
        self,
        engine: Engine,
        design: Design,
        parameters: Mapping[str, Any],
        spec: KernelSpec,
        slots: int,
        seed: int,
        family: str,
        stream: Any = None,
    ) -> None:
        self.engine, self.design, self.parameters, self.spec = engine, design, parameters, spec
        self.seed, self.family = seed, family
        self.slots = buckets_for(next_prime(slots), 1)
        self._lanes = lanes_of(engine, spec, parameters["lanes"])
        self.program = self._lanes.below
        self._ticket_bits = int(parameters["ticket_bits"])
        self._board_at = -(-self.slots * spec.slot_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        self._memory = engine.allocate(self._board_at + self._board_bytes(self._ticket_bits), stream)
        self._report = engine.allocate(8 * REPORT_WORDS, stream)  # of operations whose caller holds the lock alone
        self._workbench = Workbench(engine, TicketBatch, 0)
        self._random = random.Random(seed)
        self.table = TicketTable(
            slots=self._memory.ptr,
            buckets=self.slots,
            board=self._memory.ptr + self._board_at,
            **draw_constants(self._random, family, spec.word_bytes),
            **dict(spec.constants),
        )
        self.clear(stream)

    def sibling(self, slots: int, seed: int, stream: Any = None) -> Self:
        """An array of the same kind with other hash constants, all of whose slots are free."""
        like = (self.engine, self.design, self.parameters, self.spec)
        return type(self)(*like, slots, seed, self.family, stream)

    def like(self, lanes: str, slots: int) -> Self:
        """An array of the same kind, but for its lanes."""
        parameters = {**self.parameters, "lanes": lanes}
        return type(self)(self.engine, self.design, parameters, self.spec, slots, self.seed, self.family)

    def copy(self, stream: Any = None) -> Self:
        """An array with the same hash constants and pairs, in memory of its own."""
        twin = self.sibling(self.slots, self.seed, stream)
        self.engine.copy(twin._memory.ptr, self._memory.ptr, self._memory.nbytes, stream)
        if self._emptied is not None:
            twin._mark_emptied(stream)
            self.engine.copy(twin.table.emptied, self._emptied.ptr, self._board_bytes(1), stream)
        return twin

    # ---- memory
    def _board_bytes(self, bits: int) -> int:
        """Of a board with so many bits for each slot."""
        return -(-self.slots * bits // (8 * _BOARD_WORD_BYTES)) * _BOARD_WORD_BYTES

    @property
    def nbytes(self) -> int:
        boards = [board.nbytes for board in (self._emptied, self._access) if board is not None]
        return self._memory.nbytes + sum(boards)

    def memory_use(self) -> MemoryUse:
        """The slots and the boards."""
        return MemoryUse(self.nbytes)

    def clear(self, stream: Any = None) -> None:
        """Forget all pairs. To be repeated if it was interrupted."""
        self.engine.fill(self.table.board, 0xFF, self._board_bytes(self._ticket_bits), stream)
        self.table.emptied = 0
        self._emptied = None
        self._close_access()

    def snapshot(self, stream: Any = None) -> Snapshot:
        """A copy of the slots and tickets; on the host, if the device has no memory for one."""
        return snapshots.take(self.engine, self._memory, stream)

    def restore(self, snapshot: Snapshot, stream: Any = None) -> None:
        """Put the slots and tickets of a `snapshot` back. Allocates nothing on the device."""
        snapshots.put_back(self.engine, self._memory, snapshot, stream)
        self._close_access()

    def _mark_emptied(self, stream: Any) -> None:
        """Have the board of emptied slots.

        Raises
        ------
        MemoryError
            If there is no memory for the board.
        """
        if self.table.emptied:
            return
        nbytes = self._board_bytes(1)
        board = self.engine.allocate(nbytes, stream)
        self.engine.fill(board.ptr, 0, nbytes, stream)
        self._emptied = board
        self.table.emptied = board.ptr

    def open_access(self, stream: Any) -> None:
        """Have the boards that a mixed batch needs: of emptied slots, and of access bits.

        Raises
        ------
        MemoryError
            If there is no memory for a board.
        """
        self._mark_emptied(stream)
        if self.table.access:
            return
        board = self.engine.allocate(self._board_bytes(1), stream)
        table = TicketTable.from_buffer_copy(self.table)
        table.access = board.ptr
        words = board.nbytes // _BOARD_WORD_BYTES
        self.program.run("open_access", table, TicketBatch(n=words), words, stream)
        self._access = board
        self.table.access = board.ptr

    def _close_access(self) -> None:
        """Forget the access bits, before other kernels than those of mixed batches change tickets."""
        self.table.access = 0
        self._access = None

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """As `Store.scan`."""
        report = zeroed_report(self.engine, stream)
        for at in range(0, self.slots, _PIECE_SLOTS):
            rest = TicketTable.from_buffer_copy(self.table)
            rest.slots, rest.board = self._addresses_of(at)
            rest.buckets = n = min(_PIECE_SLOTS, self.slots - at)
            batch = TicketBatch(n=n, out_keys=out_keys, out_values=out_values, report=report.ptr, room=room)
            self.program.run("scan", rest, batch, n, stream)
        return read_report(self.engine, report.ptr, stream).winners

    def _addresses_of(self, slot: int) -> tuple[int, int]:
        """Addresses of a slot and of its ticket, which is the first of a word."""
        return self.table.slots + slot * self.spec.slot_bytes, self.table.board + slot * self._ticket_bits // 8

    def broken_buckets(self, stream: Any = None) -> int:
        """As `Store.broken_buckets`: tickets that disagree with their slots."""
        report = zeroed_report(self.engine, stream)
        self.program.run("audit", self.table, TicketBatch(n=self.slots, report=report.ptr), self.slots, stream)
        return read_report(self.engine, report.ptr, stream).mismatches

    # ---- operations that change pairs
    def update(
        self,
        keys: int,
        values: int,
        n: int,
        *,
        size: int,
        new_share: float = 1.0,
        op: Op = Op.KEEP,
        kind: int = 0,
        flags: int = 0,
        unique: bool = False,
        count_probes: bool = False,
        listed: Listed | None = None,
        stream: Any = None,
    ) -> Outcome:
        """Add the keys that are absent; apply ``op`` to the values of the others. Waits.

        Parameters
        ----------
        keys, values, flags
            Addresses of ``n`` words, words and bytes; ``flags`` (`abi.Flag`) may be 0.
        size, new_share
            Keys in the table, and how many of the elements are likely to bring new ones. A batch that crosses the
            threshold of `Lanes` has launches for each side of it.
        unique
            The caller vouches that the keys differ from each other and from those in the table.
        listed
            Elements to take part; all of them if None.

        Raises
        ------
        MemoryError
            Before a kernel is launched.
        """
        self._close_access()
        walked = listed.n if listed else n
        if not walked:
            return Outcome(0, 0, 0, 0)
        piece = min(walked, LAUNCH_ELEMENTS if unique else CLAIMED_ELEMENTS)
        scratch = self._workbench.of(piece, op not in (Op.KEEP, Op.REPLACE) and not unique, unique, stream)
        self._workbench.restart(scratch, stream)
        batch = scratch.batch
        batch.op, batch.kind, batch.count_probes = op, kind, count_probes
        spec = self.spec
        below = self._lanes.elements_below(size, self.slots, new_share)
        at = 0
        while at < walked:
            first = 0 if listed else at  # element numbers count from here
            program = self._lanes.below if at < below else self._lanes.above
            batch.n, batch.count = min(piece, (below if at < below < walked else walked) - at), 0
            batch.indices = listed.numbers.ptr + 4 * at if listed else 0
            batch.keys = keys + first * spec.word_bytes
            batch.values = values and values + first * spec.value_word_bytes
            batch.out_flags = flags and flags + first
            batch.random = self._random.getrandbits(32)
            if unique:
                program.run("place", self.table, batch, batch.n, stream)
            else:
                if at:
                    self._workbench.restart(scratch, stream, LISTS_BYTES)
                self._place_distinct(program, batch, stream)
            at += batch.n
        report = read_report(self.engine, scratch.report.ptr, stream)
        return Outcome(report.changed, 0, report.unplaced, report.probes)

    def _place_distinct(self, program: Program, batch: TicketBatch, stream: Any) -> None:
        """Launch the kernels of a piece in which keys may repeat."""
        report, n, run, table = batch.report, batch.n, program.run, self.table
        if batch.op == Op.REPLACE and self.spec.value_is_row:  # one element of each key writes the value whole
            run("claim", table, batch, n, stream)
            batch.indices, batch.count = batch.winners, report + WINNERS
            run("settle", table, batch, n, stream)
            batch.indices, batch.count = batch.leftover, report + LEFTOVER
            run("place", table, batch, n, stream)
            return
        run("settle", table, batch, n, stream)
        batch.indices, batch.count = batch.leftover, report + LEFTOVER
        run("claim", table, batch, n, stream)
        batch.indices, batch.count = batch.winners, report + WINNERS
        run("place", table, batch, n, stream)
        if batch.losers:
            batch.indices, batch.count = batch.losers, report + LOSERS
            run("combine", table, batch, n, stream)

    def take_over(self, other: TicketArray, size: int, stream: Any = None) -> Outcome:
        """Place all pairs of ``other``, about ``size`` of them, none of which is here. Waits."""
        program = self._lanes.for_keys(size, self.slots)
        report = self._reset_report(stream)
        for at in range(0, other.slots, _PIECE_SLOTS):
            batch = TicketBatch(n=min(_PIECE_SLOTS, other.slots - at), report=report)
            batch.source_slots, batch.source_board = other._addresses_of(at)
            program.run("relocate", self.table, batch, batch.n, stream)
        counts = read_report(self.engine, report, stream)
        return Outcome(counts.changed, 0, counts.unplaced, 0)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> int:
        """Erase keys; how many were there. Waits.

        Raises
        ------
        MemoryError
            Before a kernel is launched.
        """
        if n == 0 or (isinstance(only, np.ndarray) and not len(only)):
            return 0
        self._close_access()
        self._mark_emptied(stream)
        report = self._reset_report(stream)
        for at, count, indices, length in pieces(self.engine, n, min(n, LAUNCH_ELEMENTS), only, stream):
            batch = TicketBatch(n=count, indices=indices, count=length, report=report)
            batch.keys, batch.out_flags = keys + at * self.spec.word_bytes, flags and flags + at
            self.program.run("erase", self.table, batch, count, stream)
        return read_report(self.engine, report, stream).changed

    def execute(self, batch: MixedBatch, listed: Listed | None, stream: Any = None) -> tuple[int, int, int]:
        """Do a mixed batch, or the elements in a list: keys added, keys erased, elements without a slot. Waits.

        `open_access` goes before it.
        """
        report, spec = self._reset_report(stream), self.spec
        walked = listed.n if listed else batch.n
        for at in range(0, walked, LAUNCH_ELEMENTS):
            first = 0 if listed else at  # element numbers count from here
            launch = TicketBatch(
                n=min(LAUNCH_ELEMENTS, walked - at),
                indices=listed.numbers.ptr + 4 * at if listed else 0,
                operations=batch.operations + first,
                keys=batch.keys + first * spec.word_bytes,
                values=batch.values and batch.values + first * spec.value_word_bytes,
                out_values=batch.out_values and batch.out_values + first * spec.value_word_bytes,
                out_flags=batch.flags + first,
                default_value=batch.default,
                random=self._random.getrandbits(32),
                report=report,
            )
            self.program.run("execute", self.table, launch, launch.n, stream)
        counts = read_report(self.engine, report, stream)
        return counts.changed, counts.erased, counts.unplaced

    def _reset_report(self, stream: Any) -> int:
        """Address of the array's own report, all of whose counts are 0 now."""
        self.engine.fill(self._report.ptr, 0, self._report.nbytes, stream)
        return self._report.ptr
