"""An array of slots with a ticket board, in the memory of one engine, and the kernels that run over it.

The memory has the slots first, then the board (``kernels/tickets/``). Slots that were emptied are marked on a second
board, which the first erase allocates. Mixed batches have a third, of access bits, which is written anew if other
updates came between. Free slots may hold anything, so only the boards are cleared.

An insert never fails while a slot is free, so no pair is ever displaced. The sequence of kernels of an update, and why,
tells the head of ``kernels/tickets/insert.cuh``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...runtime.abi import LEFTOVER, WINNERS, InsertBatch, Op, Table, TicketBatch, TicketTable
from ...runtime.engine import Buffer
from ..buckets.array import BucketArray, Listed
from ..lookup import LAUNCH_ELEMENTS
from ..reports import read_report
from ..scratch import Elements
from ..storage import MemoryUse, Outcome
from .primes import next_prime

__all__ = ["TicketArray"]

_ALIGNMENT_BYTES = 256
"""Of the board behind the slots."""

_BOARD_WORD_BYTES = 4


class TicketArray(BucketArray):
    """A prime number of slots, at least ``slots``, with a ticket each; as `BucketArray`, with buckets of one slot."""

    table_type = TicketTable
    batch_type = TicketBatch

    _emptied: Buffer | None = None
    _access: Buffer | None = None

    @property
    def _ticket_bits(self) -> int:
        return int(self.parameters["ticket_bits"])

    # ---- memory
    def _buckets_for(self, slots: int) -> int:
        return super()._buckets_for(next_prime(slots))

    def _reserved_buckets(self) -> int:
        return 0

    def _board_bytes(self, bits: int) -> int:
        """Of a board with so many bits for each slot."""
        return -(-self.slots * bits // (8 * _BOARD_WORD_BYTES)) * _BOARD_WORD_BYTES

    def _board_at(self) -> int:
        """Where the ticket board begins in the memory."""
        return -(-self.slots * self.spec.slot_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES

    def _memory_bytes(self) -> int:
        return self._board_at() + self._board_bytes(self._ticket_bits)

    def memory_use(self) -> MemoryUse:
        """The slots and the boards."""
        return MemoryUse(self.nbytes)

    def _fields(self) -> dict[str, int]:
        return {"board": self._memory.ptr + self._board_at(), "early_exit": 1}

    def _wipe(self, stream: Any) -> None:
        self.engine.fill(self.table.board, 0xFF, self._board_bytes(self._ticket_bits), stream)
        self.table.emptied, self.table.early_exit = 0, 1
        self._emptied = None
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
        self._count_memory()
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
        self._count_memory()
        self.table.access = board.ptr

    def _close_access(self) -> None:
        """Forget the access bits, before other kernels than those of mixed batches change tickets."""
        self.table.access, self._access = 0, None
        self._count_memory()

    def _count_memory(self) -> None:
        boards = [board for board in (self._emptied, self._access) if board is not None]
        self.nbytes = self._memory.nbytes + sum(board.nbytes for board in boards)

    def copy(self, stream: Any = None) -> Self:
        twin = super().copy(stream)
        table = twin.table
        table.board, table.emptied, table.access = twin._memory.ptr + twin._board_at(), 0, 0
        if self._emptied is not None:
            twin._mark_emptied(stream)
            self.engine.copy(table.emptied, self._emptied.ptr, self._board_bytes(1), stream)
        return twin

    def restore(self, table: Table, snapshot: Buffer | npt.NDArray[np.uint8], stream: Any = None) -> None:
        super().restore(table, snapshot, stream)
        self._close_access()

    # ---- operations
    def execute(
        self,
        operations: int,
        keys: int,
        values: int,
        n: int,
        out_values: int,
        flags: int,
        default: int,
        listed: Listed | None,
        stream: Any = None,
    ) -> tuple[int, int, int]:
        """Do a mixed batch, or the elements in a list: keys added, keys erased, elements without a slot. Waits.

        `open_access` goes before it.
        """
        report, spec = self._reset_report(stream), self.spec
        walked = listed.n if listed else n
        for at in range(0, walked, LAUNCH_ELEMENTS):
            first = 0 if listed else at  # element numbers count from here
            batch = TicketBatch(
                n=min(LAUNCH_ELEMENTS, walked - at),
                indices=listed.numbers.ptr + 4 * at if listed else 0,
                operations=operations + first,
                keys=keys + first * spec.word_bytes,
                values=values and values + first * spec.value_word_bytes,
                out_values=out_values and out_values + first * spec.value_word_bytes,
                out_flags=flags + first,
                default_value=default,
                random=self._random.getrandbits(32),
                report=report,
            )
            self.program.run("execute", self.table, batch, batch.n, stream)
        counts = read_report(self.engine, report, stream)
        return counts.changed, counts.erased, counts.unplaced

    def update(self, *batch: Any, **options: Any) -> Outcome:
        self._close_access()
        return super().update(*batch, **options)

    def _from_slot(self, table: Table, first: int) -> Table:
        rest = super()._from_slot(table, first)
        rest.board = table.board + first * self._ticket_bits // 8
        return rest

    def is_one_launch(self, n: int) -> bool:
        """Never: there is no kernel of one block."""
        return False

    def _place_distinct(self, table: Table, batch: InsertBatch, place: str, settles: bool, stream: Any) -> None:
        if not (batch.op == Op.REPLACE and self.spec.value_is_row):
            return super()._place_distinct(table, batch, place, settles, stream)
        report, n, run = batch.report, batch.n, self.program.run
        run("claim", table, batch, n, stream)
        batch.indices, batch.count = batch.winners, report + WINNERS
        run("settle", table, batch, n, stream)
        batch.indices, batch.count = batch.leftover, report + LEFTOVER
        run(place, table, batch, n, stream)

    def take_over(self, other: BucketArray, stream: Any = None) -> Outcome:
        report, source = self._reset_report(stream), other.table
        for at in range(0, other.slots, LAUNCH_ELEMENTS):
            batch = TicketBatch(
                n=min(LAUNCH_ELEMENTS, other.slots - at),
                source_slots=source.slots + at * self.spec.slot_bytes,
                source_board=source.board + at * self._ticket_bits // 8,
                report=report,
            )
            self.program.run("relocate", self.table, batch, batch.n, stream)
        counts = read_report(self.engine, report, stream)
        return Outcome(counts.changed, 0, counts.unplaced, 0)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> int:
        if n:
            self._close_access()
            self._mark_emptied(stream)
        return super().erase(keys, n, flags, only, stream)

    def erase_listed(self, keys: int, numbers: int, n: int, stream: Any = None) -> int:
        """As `BucketArray.erase_listed`. Without a board of emptied slots, no search will stop at a free slot."""
        self._close_access()
        if not self.table.emptied:
            self.table.early_exit = 0
        return super().erase_listed(keys, numbers, n, stream)
