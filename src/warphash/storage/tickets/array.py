"""An array of slots with a ticket board, and the kernels that run over it.

The slots lie in memory of their own (`slot_memory`). The ticket board lies in the memory of the device, as do the two
boards that a table may get later: the first erase allocates the board of emptied slots; mixed batches have a board of
access bits, which is written anew if other updates came between, and sequence locks for values that are no words. Free
slots may hold anything, so only the boards are cleared.

An insert never fails while a slot is free, so no pair is ever displaced. The sequence of kernels of an update, and why,
tells the head of ``kernels/tickets/insert.cuh``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ...errors import UnsupportedVerb
from ...runtime.abi import LEFTOVER, LISTS_BYTES, LOSERS, WINNERS, Op, TicketBatch, TicketTable
from ...runtime.engine import Buffer, Program
from ...runtime.memory import bytes_at
from .. import snapshots
from ..batch import COMBINING, Batch, MixedBatch
from ..elements import CLAIMED_ELEMENTS, Elements, pieces
from ..hash_constants import buckets_for, draw_constants
from ..listed import Listed
from ..lookup import LAUNCH_ELEMENTS, NO_FIELDS
from ..new_memory import filled
from ..scratch import Outcome, ReportBuffer, Workbench, zeroed_report
from ..slots import MemoryUse, TableKind
from ..snapshots import Snapshot
from .lanes import Lanes, lanes_of
from .primes import next_prime
from .slot_memory import SlotMemory
from .sweep import SWEPT_ELEMENTS, sweep_of
from .table_file import Sizes

__all__ = ["Images", "Saved", "TicketArray"]

_BOARD_WORD_BYTES = 4

_NO_SLOT = (1 << 32) - 1
"""What ``locate`` writes for a key that is in no slot."""

_LOCATED_ELEMENTS = 1 << 20
"""Whose slots are asked for at a time."""

_FEWEST_MOVED = 1 << 16
"""Slots that are moved at a time where there is hardly any memory."""

_MOST_VERSIONS = 1 << 20
"""Words of sequence locks, which slots share (``kernels/tickets/value_version.cuh``)."""

_PIECE_SLOTS = LAUNCH_ELEMENTS
"""Slots that a scan or a move walks over in one launch: whole words of every board."""


class Images(NamedTuple):
    """What some slots hold: their numbers, and the bytes of each."""

    slots: npt.NDArray[np.uint32]
    contents: npt.NDArray[np.uint8]


class Saved(NamedTuple):
    """Copies of the ticket board and, if an update may change values in place, of the slots.

    Attributes
    ----------
    images
        Of slots in a file, those whose values the update may change.
    """

    board: Snapshot
    slots: Snapshot | None
    images: Sequence[Images] = ()


class TicketArray:
    """The `SlotArray` of a prime number of slots, at least ``slots``, with a ticket each. All are free when it is made.

    If its memory is a file that holds a table, the array is what the file holds.

    Parameters
    ----------
    memory
        Where the slots lie.
    seed
        Of the hash constants.
    family
        Of the hash functions: one of `HASHES`.

    Attributes
    ----------
    slots
        Slots, each of one pair.
    program
        The kernels of all operations but inserts.
    """

    batch_type, find_fields = TicketBatch, NO_FIELDS
    cleared = True  # the slots may hold anything
    _emptied: Buffer | None
    _access: Buffer | None
    _versions: Buffer | None = None

    def __init__(
        self,
        kind: TableKind,
        memory: SlotMemory,
        slots: int,
        seed: int,
        family: str,
        stream: Any = None,
    ) -> None:
        self.engine, self.design, self.parameters, self.spec = self.kind = kind
        engine, parameters, spec = kind.engine, kind.parameters, kind.spec
        self.memory, self.seed, self.family = memory, seed, family
        self.slots = buckets_for(next_prime(slots), 1)
        self._lanes = lanes_of(engine, spec, parameters["lanes"])
        self._ticket_bits = int(parameters["ticket_bits"])
        sizes = Sizes(self.slots, spec.slot_bytes, self._board_bytes(self._ticket_bits) + self._board_bytes(1))
        self._slots = memory.allocate(engine, sizes, stream)
        self._board = engine.allocate(self._board_bytes(self._ticket_bits), stream)
        self._sweep = sweep_of(engine, spec, self._lanes.below, self._slots, parameters["access"])
        if self._sweep:
            self._lanes = Lanes(self._sweep, self._sweep, 0.0)
        self.program = self._lanes.below
        self._report = ReportBuffer(engine, stream)
        self._workbench = Workbench(engine, TicketBatch, 0)
        self._random = random.Random(seed)
        self.table = TicketTable(
            slots=self._slots.memory.ptr,
            buckets=self.slots,
            board=self._board.ptr,
            keeps_emptied=self.is_mapped,
            **draw_constants(self._random, family, spec.word_bytes),
            **dict(spec.constants),
        )
        self.clear(stream)
        if self._slots.keeper and self._slots.keeper.file.description:
            self._load_boards(self._slots.keeper.file.boards(), stream)

    def sibling(self, slots: int, seed: int, stream: Any = None) -> Self:
        """An array of the same kind with other hash constants, all of whose slots are free."""
        self.check_process()
        return self._of_kind(self.memory, slots, seed, stream)

    def _of_kind(self, memory: SlotMemory, slots: int, seed: int, stream: Any) -> Self:
        return type(self)(self.kind, memory, slots, seed, self.family, stream)

    def like(self, lanes: str, slots: int) -> Self:
        """An array of the same kind, but for its lanes."""
        kind = self.kind._replace(parameters={**self.parameters, "lanes": lanes})
        return type(self)(kind, self.memory, slots, self.seed, self.family)

    def beside(self, slots: int, seed: int, stream: Any = None) -> Self:
        """As `sibling`, for another table."""
        return self._of_kind(self.memory.beside, slots, seed, stream)

    def copy(self, stream: Any = None) -> Self:
        """An array with the same hash constants and pairs, in memory of its own."""
        twin = self.beside(self.slots, self.seed, stream)
        if self.is_mapped:  # which is no memory of the engine
            self.engine.upload(twin._slots.memory.ptr, self._mapped_bytes(), stream)
        else:
            self.engine.copy(twin._slots.memory.ptr, self._slots.memory.ptr, self._slots.memory.nbytes, stream)
        self.engine.copy(twin._board.ptr, self._board.ptr, self._board.nbytes, stream)
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
        boards = (self._board, self._emptied, self._access, self._versions)
        return self._slots.memory.nbytes + sum(board.nbytes for board in boards if board is not None)

    @property
    def is_mapped(self) -> bool:
        """The slots are those of a file. What the last commit had there stays until the next one (`table_file`)."""
        return self._slots.keeper is not None and self._slots.keeper.mapped

    def memory_use(self) -> MemoryUse:
        """The slots and the boards."""
        return MemoryUse(self.nbytes)

    def clear(self, stream: Any = None) -> None:
        """Forget all pairs. To be repeated if it was interrupted."""
        self.engine.fill(self.table.board, 0xFF, self._board_bytes(self._ticket_bits), stream)
        self.table.emptied = 0
        self._emptied = None
        self._close_access()

    forget = clear

    def snapshot(self, changes_values: bool, stream: Any = None) -> Saved:
        """Copy what an update may change; to the host, if the device has no memory for it.

        An update that adds keys writes to free slots alone, and these may hold anything. The slots of a file are not
        copied: there may be no memory for them. If an update changes values there, it has their `images`.
        """
        slots = changes_values and not self.is_mapped
        return Saved(
            snapshots.take(self.engine, self._board, stream),
            snapshots.take(self.engine, self._slots.memory, stream) if slots else None,
        )

    def restore(self, saved: Saved, stream: Any = None) -> None:
        """Put back what `snapshot` and `images` gave. Allocates nothing on the device."""
        if saved.slots is not None:
            snapshots.put_back(self.engine, self._slots.memory, saved.slots, stream)
        if saved.images:
            self.check_process()  # the slots are shared with the process that this one was forked from
        for slots, contents in saved.images:
            self._mapped_bytes()[slots] = contents
        snapshots.put_back(self.engine, self._board, saved.board, stream)
        self._close_access()

    # ---- slots in a file
    @property
    def is_inherited(self) -> bool:
        """Whether the slots are in a file that the process which this one was forked from has open."""
        return self._slots.keeper is not None and self._slots.keeper.file.is_inherited

    def check_process(self) -> None:
        """Raise `PathError` if the slots are in a file that only another process may change."""
        if self._slots.keeper is not None:
            self._slots.keeper.file.check_process()

    def images(self, keys: int, n: int, stream: Any = None) -> list[Images]:
        """What the slots of these keys hold; and have the file note it, before an update changes values in place.

        Raises
        ------
        MemoryError
            If there is no memory for it.
        """
        keeper = self._slots.keeper
        assert keeper is not None
        keeper.file.check_process()
        found = self.engine.allocate(4 * min(n, _LOCATED_ELEMENTS), stream)
        images = []
        for at in range(0, n, _LOCATED_ELEMENTS):
            count = min(_LOCATED_ELEMENTS, n - at)
            batch = TicketBatch(n=count, keys=keys + at * self.spec.word_bytes, out_counts=found.ptr)
            self.program.run("locate", self.table, batch, count, stream)
            slots = np.sort(self.engine.to_host(found.ptr, np.uint32, count, stream))
            slots = slots[slots != _NO_SLOT]
            slots = slots[np.append(True, slots[1:] != slots[:-1])[: len(slots)]]  # np.unique imports a module
            keeper.preserve(slots)
            images.append(Images(slots, self._mapped_bytes()[slots]))
        return images

    def _mapped_bytes(self) -> npt.NDArray[np.uint8]:
        """The slots of a mapped file, each as its bytes."""
        memory = self._slots.memory
        return bytes_at(memory.ptr, memory.nbytes).reshape(self.slots, self.spec.slot_bytes)

    def commit(self, table: Mapping[str, Any], stream: Any = None) -> None:
        """Have the file hold the array as it is.

        Parameters
        ----------
        table
            What the table is, beside what the array knows.

        Raises
        ------
        UnsupportedVerb
            If there is no file.
        """
        if self._slots.keeper is None:
            raise UnsupportedVerb("this table lies in no file, so nothing is written: use save(path), or memory=path")
        boards = [board for board in (self._board, self._emptied) if board is not None]
        copies = [self.engine.to_host(board.ptr, np.uint8, board.nbytes, stream) for board in boards]
        self._slots.keeper.commit({**table, "slots_seed": self.seed}, copies)

    def _load_boards(self, boards: npt.NDArray[np.uint8], stream: Any) -> None:
        """Take over what `commit` wrote."""
        self.engine.upload(self._board.ptr, boards[: self._board.nbytes], stream)
        if len(boards) > self._board.nbytes:
            self._mark_emptied(stream)
            self.engine.upload(self.table.emptied, boards[self._board.nbytes :], stream)

    def _mark_emptied(self, stream: Any) -> None:
        """Have the board of emptied slots.

        Raises
        ------
        MemoryError
            If there is no memory for the board.
        """
        if self.table.emptied:
            return
        self._emptied = board = filled(self.engine, self._board_bytes(1), stream)
        self.table.emptied = board.ptr

    def open_access(self, stream: Any) -> None:
        """Have what a mixed batch needs: boards of emptied slots and of access bits, and the locks of wide values.

        Raises
        ------
        MemoryError
            If there is no memory for it.
        """
        self._mark_emptied(stream)
        self._make_versions(stream)
        if self.table.access:
            return
        board = self.engine.allocate(self._board_bytes(1), stream)
        table = TicketTable.from_buffer_copy(self.table)
        table.access = board.ptr
        words = board.nbytes // _BOARD_WORD_BYTES
        self.program.run("open_access", table, TicketBatch(n=words), words, stream)
        self._access = board
        self.table.access = board.ptr

    def _make_versions(self, stream: Any) -> None:
        """Have the sequence locks of values that are no words. They stay, as nobody writes between two launches.

        Raises
        ------
        MemoryError
            If there is no memory for them.
        """
        if self.table.versions or not self.spec.value_is_row or not self.spec.value_word_bytes:
            return
        count = min(_MOST_VERSIONS, 1 << (self.slots - 1).bit_length())
        self._versions = versions = filled(self.engine, 8 * count, stream)
        self.table.version_mask = count - 1
        self.table.versions = versions.ptr

    def _close_access(self) -> None:
        """Forget the access bits, before other kernels than those of mixed batches change tickets."""
        self.table.access = 0
        self._access = None

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """As `Slots.scan`."""
        report = zeroed_report(self.engine, stream)
        for at in range(0, self.slots, _PIECE_SLOTS):
            n = min(_PIECE_SLOTS, self.slots - at)
            self._scan_piece(at, n, room, out_keys, out_values, report.ptr, stream)
        return report.read(stream).winners

    def _scan_piece(self, at: int, n: int, room: int, out_keys: int, out_values: int, report: int, stream: Any) -> None:
        """Copy the pairs of ``n`` slots out, behind those that the report counts. ``at`` begins words of the boards."""
        rest = TicketTable.from_buffer_copy(self.table)
        rest.slots, rest.board = self._addresses_of(at)
        rest.buckets = n
        batch = TicketBatch(n=n, out_keys=out_keys, out_values=out_values, report=report, room=room)
        self.program.run("scan", rest, batch, n, stream)

    def _addresses_of(self, slot: int) -> tuple[int, int]:
        """Addresses of a slot and of its ticket, which is the first of a word."""
        return self.table.slots + slot * self.spec.slot_bytes, self.table.board + slot * self._ticket_bits // 8

    def broken_buckets(self, stream: Any = None) -> int:
        """As `Slots.broken_buckets`: tickets that disagree with their slots."""
        report = zeroed_report(self.engine, stream)
        self.program.run("audit", self.table, TicketBatch(n=self.slots, report=report.ptr), self.slots, stream)
        return report.read(stream).mismatches

    # ---- operations that change pairs
    def is_one_launch(self, n: int) -> bool:
        """No update of tables with a ticket board is a single launch."""
        return False

    def update(
        self,
        given: Batch,
        *,
        size: int = 0,
        new_share: float = 1.0,
        count_probes: bool = False,
        listed: Listed | None = None,
    ) -> Outcome:
        """As `SlotArray.update`.

        Parameters
        ----------
        size, new_share
            Keys in the table, and how many of the elements are likely to bring new ones. A batch that crosses the
            threshold of `Lanes` has launches for each side of it.
        """
        self.check_process()
        self._close_access()
        walked, unique, stream = listed.n if listed else given.n, given.unique, given.stream
        if not walked:
            return Outcome(0, 0, 0, 0)
        most = SWEPT_ELEMENTS if self._sweep else LAUNCH_ELEMENTS if unique else CLAIMED_ELEMENTS
        piece = min(walked, most)
        scratch = self._workbench.of(piece, given.op in COMBINING and not unique, unique, stream)
        self._workbench.restart(scratch, stream)
        batch = scratch.batch
        batch.op, batch.kind, batch.count_probes = given.op, given.kind, count_probes
        spec = self.spec
        below = self._lanes.elements_below(size, self.slots, new_share)
        at = 0
        with self._prepared(piece, stream):
            while at < walked:
                first = 0 if listed else at  # element numbers count from here
                program = self._lanes.below if at < below else self._lanes.above
                batch.n, batch.count = min(piece, (below if at < below < walked else walked) - at), 0
                batch.indices = listed.numbers.ptr + 4 * at if listed else 0
                batch.keys = given.keys + first * spec.word_bytes
                batch.values = given.values and given.values + first * spec.value_word_bytes
                batch.out_flags = given.flags and given.flags + first
                batch.random = self._random.getrandbits(32)
                if unique:
                    program.run("place", self.table, batch, batch.n, stream)
                else:
                    if at:
                        self._workbench.restart(scratch, stream, LISTS_BYTES)
                    self._place_distinct(program, batch, stream)
                at += batch.n
        return self._workbench.outcome(scratch, stream)

    def _prepared(self, n: int, stream: Any) -> AbstractContextManager[None]:
        """The memory that launches of up to ``n`` elements of an update need."""
        return self._sweep.prepared(n, stream) if self._sweep else nullcontext()

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
        if self._sweep:
            return self._take_over_in_batches(other, stream)
        program = self._lanes.for_keys(size, self.slots)
        report = self._report.reset(stream)
        for at in range(0, other.slots, _PIECE_SLOTS):
            batch = TicketBatch(n=min(_PIECE_SLOTS, other.slots - at), report=report)
            batch.source_slots, batch.source_board = other._addresses_of(at)
            program.run("relocate", self.table, batch, batch.n, stream)
        counts = self._report.read(stream)
        return Outcome(counts.changed, 0, counts.unplaced, 0)

    def _take_over_in_batches(self, other: TicketArray, stream: Any) -> Outcome:
        """As `take_over`: relocated one by one, pairs would cross the bus one by one."""
        engine, spec, piece = self.engine, self.spec, min(other.slots, SWEPT_ELEMENTS)
        while True:
            try:
                keys = engine.allocate(piece * spec.word_bytes, stream)
                values = engine.allocate(max(1, piece * spec.value_word_bytes), stream)
                break
            except MemoryError:
                if piece <= _FEWEST_MOVED:
                    raise
                piece = max(_FEWEST_MOVED, piece // 64 * 32)  # whole words of every board
        placed = unplaced = 0
        for at in range(0, other.slots, piece):
            report = zeroed_report(engine, stream)
            other._scan_piece(at, min(piece, other.slots - at), piece, keys.ptr, values.ptr, report.ptr, stream)
            found = report.read(stream).winners
            outcome = self.update(Batch(keys.ptr, values.ptr, found, unique=True, stream=stream), size=placed)
            placed, unplaced = placed + outcome.changed, unplaced + outcome.unplaced
        return Outcome(placed, 0, unplaced, 0)

    def erase(self, keys: int, n: int, flags: int = 0, only: Elements = None, stream: Any = None) -> int:
        """Erase keys; how many were there. Waits.

        Raises
        ------
        MemoryError
            Before a kernel is launched.
        """
        self.check_process()
        self._close_access()
        self._mark_emptied(stream)
        report = self._report.reset(stream)
        piece = min(n, SWEPT_ELEMENTS if self._sweep else LAUNCH_ELEMENTS)
        with self._prepared(piece, stream):
            for at, count, indices, length in pieces(self.engine, n, piece, only, stream):
                batch = TicketBatch(n=count, indices=indices, count=length, report=report)
                batch.keys, batch.out_flags = keys + at * self.spec.word_bytes, flags and flags + at
                self.program.run("erase", self.table, batch, count, stream)
        return self._report.read(stream).changed

    def execute(self, batch: MixedBatch, listed: Listed | None, stream: Any = None) -> tuple[int, int, int]:
        """Do a mixed batch, or the elements in a list: keys added, keys erased, elements without a slot. Waits.

        `open_access` goes before it.
        """
        report, spec = self._report.reset(stream), self.spec
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
        counts = self._report.read(stream)
        return counts.changed, counts.erased, counts.unplaced
