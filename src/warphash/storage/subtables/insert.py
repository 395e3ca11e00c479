"""One insert into subtables: launches the kernels that ``kernels/subtables/insert.cuh`` has, one behind the other.

The scratch memory and the report are those of all inserts (`Workspace`): only one insert of an array is under way.
"""

from __future__ import annotations

from operator import add, sub
from random import Random
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...runtime.abi import (
    COUNT_WORDS,
    DISPLACED_CAPACITY,
    LEFTOVER,
    WINNERS,
    SubtableBatch,
    SubtableTable,
)
from ...runtime.engine import Buffer, Engine, KernelSpec, Program
from ..elements import pieces
from ..scratch import Allocate, Outcome, Report, ReportBuffer, Scratch, Workbench, read_report
from ..update.pairs import Pairs

__all__ = ["Insert", "Piece", "Workspace"]


class Piece(NamedTuple):
    """Elements of an update that go through its kernels together: addresses, and how many."""

    keys: int
    values: int
    flags: int
    n: int


class Workspace:
    """What the updates of one array share: scratch memory, and the report with its way to the host.

    Attributes
    ----------
    report
        What the kernels of updates count.
    workbench
        Has the scratch memory of the last insert, if that is small.
    """

    def __init__(self, engine: Engine, program: Program, slot_bytes: int, stream: Any = None) -> None:
        self._engine, self._program = engine, program
        self.report = ReportBuffer(engine, stream)
        self._answer = engine.answer(COUNT_WORDS)
        self.workbench = Workbench(engine, SubtableBatch, slot_bytes)
        self._counted = True  # the report is not zero
        self._claiming: Scratch | None = None  # whose claims the last insert may have made
        self._unclaimed: Scratch | None = None  # whose claims are as an insert wants them

    def scratch(self, piece: int, unique: bool, kept_bytes: int, stream: Any) -> Scratch:
        """What an insert of so many elements needs; kept, if it is not larger than ``kept_bytes``."""
        self.workbench.kept_bytes = max(1 << 20, kept_bytes)
        return self.workbench.of(piece, False, unique, stream)

    def prepare(self, scratch: Scratch, stream: Any) -> None:
        """Zero the report, and forget the claims of ``scratch``, as far as that is not done."""
        self.zero_report(stream)
        if self._unclaimed is not scratch and scratch.claims_bytes:
            self.workbench.forget_claims(scratch, stream)
        self._unclaimed = self._claiming = None

    def zero_report(self, stream: Any) -> None:
        """Zero the report, if it is not zero. The caller launches a kernel that counts."""
        if self._counted:
            self.report.reset(stream)
        self._counted = True

    def expect_the_worst(self) -> None:
        """Kernels of an update that was interrupted have used the report and the claims."""
        self._counted = True
        self._claiming = self._unclaimed = None

    def ask(self, table: SubtableTable, scratch: Scratch | None, last: bool, stream: Any) -> None:
        """Ask what was counted into the report.

        After the ``last`` time the report is ready for the next operation. Its signals and the number of displaced
        pairs stay: while a signal is set, the next `settle` does nothing. If it turns out that nobody made any claims
        of ``scratch``, these are ready, too.
        """
        batch = SubtableBatch(n=COUNT_WORDS, report=self.report.ptr, answer=self._answer.ptr, restarts=last)
        self._program.run("hand_over", table, batch, COUNT_WORDS, stream)
        if self._engine.asynchronous:
            self._answer.follow(stream)
        if last:
            self._counted = False
            self._claiming = scratch if scratch is self.workbench.kept else None

    def answer(self) -> Report:
        """What was asked for. Waits."""
        if self._engine.asynchronous:
            self._answer.wait()
        report = Report.of(self._answer.words)
        self._counted |= report.displaced > 0  # its signals are set
        if not report.winners:
            self._unclaimed = self._claiming or self._unclaimed
        self._claiming = None
        return report


class Current(Protocol):
    """The subtables of a time."""

    @property
    def table(self) -> SubtableTable: ...


class Target(Protocol):
    """What an insert needs of a `SubtableArray`."""

    engine: Engine
    spec: KernelSpec
    program: Program
    workspace: Workspace
    random: Random
    keys: tuple[int, ...]

    @property
    def current(self) -> Current: ...


class Insert:
    """Kernels of one insert, their scratch memory and what they counted.

    Parameters
    ----------
    allocate
        Where working memory beside ``scratch`` comes from.
    chain_limit
        Evictions of one chain; None for those that the table allows.

    Attributes
    ----------
    batch
        What the next kernel is given.
    left
        How many elements the last `claim` or `settle` listed; known after `outcome`.
    """

    def __init__(
        self,
        array: Target,
        piece: Piece,
        scratch: Scratch,
        count_probes: bool,
        allocate: Allocate,
        stream: Any = None,
        chain_limit: int | None = None,
    ) -> None:
        self._array, self._piece, self._scratch, self._stream = array, piece, scratch, stream
        self._allocate, self._chain_limit = allocate, chain_limit
        self.batch = batch = SubtableBatch.from_buffer_copy(scratch.batch)
        array.workspace.prepare(scratch, stream)
        batch.report = array.workspace.report.ptr
        batch.n, batch.keys, batch.values, batch.out_flags = piece.n, piece.keys, piece.values, piece.flags
        batch.count_probes, batch.random = count_probes, array.random.getrandbits(32)
        spec, room = array.spec, min(scratch.purpose[0], DISPLACED_CAPACITY)
        # The keys and the values of displaced pairs lie in two arrays, the wider first.
        if spec.word_bytes >= 8:
            batch.displaced_values = batch.displaced + room * spec.word_bytes
        else:
            batch.displaced_values = batch.displaced
            batch.displaced += room * spec.value_bytes
        self.left = 0
        self._asked = False
        self._leftovers: list[Buffer] = []
        self._spare: Buffer | None = None
        self._before = (0, 0, (0,) * len(array.keys))

    def claim(self) -> None:
        """List one element of each key."""
        self._run("claim", self._piece.n)
        self.batch.indices, self.batch.count = self.batch.winners, self.batch.report + WINNERS

    def settle(self, unique: bool) -> None:
        """Add the keys that fit without moving another; list one element of each other new key.

        ``unique``: the caller vouches that keys do not repeat, and are not in the table.

        Raises
        ------
        MemoryError
            If there is no room for the lists of `settle` or the values of `place`. Nothing is launched.
        """
        self._prepare_to_place()
        if unique:
            self._list_leftover()
        self._run("settle", self._piece.n)
        self.batch.indices, self.batch.count = self.batch.leftover, self.batch.report + LEFTOVER
        if not unique:
            self.claim()

    def settle_rest(self) -> None:
        """Settle once more the elements that `outcome` found `left`: the table has more room now."""
        self.batch.n, self.batch.count = self.left, 0
        self._list_leftover()
        self._array.engine.fill(self.batch.report + LEFTOVER, 0, 8, self._stream)
        self._run("settle", self.left)
        self.batch.indices, self.batch.count = self.batch.leftover, self.batch.report + LEFTOVER

    def _list_leftover(self) -> None:
        """Make room for the list of a `settle` of distinct keys."""
        self._leftovers.append(self._allocate(4 * self._piece.n, self._stream))
        self.batch.unique, self.batch.leftover = 1, self._leftovers[-1].ptr

    def _prepare_to_place(self) -> None:
        """Make room for the values of the pairs that `place` evicts, if values are rows."""
        spec = self._array.spec
        if spec.value_is_row and self._spare is None:
            self._spare = self._allocate(self._piece.n * spec.value_bytes, self._stream)
            self.batch.spare_values = self._spare.ptr

    def place(self, only: npt.NDArray[np.int64] | None = None) -> None:
        """Add the keys of the listed elements, of those in ``only``, or of all: distinct, and none of them there."""
        batch, engine = self.batch, self._array.engine
        self._prepare_to_place()
        if only is None:
            return self._run("place", self._piece.n)
        for _, n, batch.indices, batch.count in pieces(engine, self._piece.n, self._piece.n, only, self._stream):
            self._run("place", n)

    def place_or_displace(self) -> None:
        """Place all keys of an insert that no call waits for: those that find no slot become displaced pairs."""
        self.batch.adopts = 1
        self.place()
        self.ask(last=True)

    @property
    def displaced_fields(self) -> dict[str, int]:
        """Fields that tell a find's batch where displaced pairs are."""
        batch = self.batch
        return {"report": batch.report, "displaced": batch.displaced, "displaced_values": batch.displaced_values}

    @property
    def may_displace_all(self) -> bool:
        """Whether the scratch memory has room for every pair that `place_or_displace` may displace."""
        return self._piece.n <= min(self._scratch.purpose[0], DISPLACED_CAPACITY)

    def ask(self, last: bool) -> None:
        """Ask for what `outcome` will tell; ``last``: no kernel of this insert follows."""
        self._array.workspace.ask(self._array.current.table, self._scratch, last, self._stream)
        self._asked = True

    def outcome(self, last: bool = True) -> Outcome:
        """What the kernels since the last call did; `Outcome.displaced` and `Outcome.unplaced` of all. Waits.

        ``last``: as of `ask`, unless that was called.
        """
        if not self._asked:
            self.ask(last)
        self._asked = False
        array, report = self._array, self._array.workspace.answer()
        changed, probes, placed = self._before
        self._before = report.changed, report.probes, report.placed
        self.left = report.leftover if self.batch.unique else report.winners
        array.keys = tuple(map(sub, map(add, array.keys, report.placed), placed))
        return Outcome(report.changed - changed, report.displaced, report.unplaced, report.probes - probes)

    def displaced(self, n: int | None = None) -> Pairs:
        """The ``n`` pairs that this insert has displaced; None: as many as the report counts. Waits."""
        engine, spec, batch = self._array.engine, self._array.spec, self.batch
        if n is None:
            n = read_report(engine, batch.report, self._stream).displaced
        return Pairs.at(engine, spec, batch.displaced, batch.displaced_values, n, self._stream)

    def _run(self, entry: str, n: int) -> None:
        table = self._array.current.table
        if self._chain_limit is not None:
            table = SubtableTable.from_buffer_copy(table)
            table.chain_limit = self._chain_limit
        self._array.program.run(entry, table, self.batch, n, self._stream)
