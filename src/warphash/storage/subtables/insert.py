"""One insert into subtables: launches the kernels that ``kernels/subtables/insert.cuh`` has, one behind the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.abi import HOMELESS_CAPACITY, LEFTOVER, WINNERS, Batch
from ...runtime.engine import Buffer
from ..buckets.store import Outcome
from ..scratch import Allocate, Scratch, pieces

if TYPE_CHECKING:
    from .store import SubtableStore

__all__ = ["Insert", "Piece", "Strays"]


class Piece(NamedTuple):
    """Elements of an update that go through its kernels together: addresses, and how many."""

    keys: int
    values: int
    flags: int
    n: int


class Strays(NamedTuple):
    """Pairs that were thrown out of their buckets and have no other: rows of bytes on the host."""

    keys: npt.NDArray[np.uint8]
    values: npt.NDArray[np.uint8]

    @classmethod
    def none(cls, key_bytes: int, value_bytes: int) -> Strays:
        """Of these widths."""
        return cls(np.empty((0, key_bytes), np.uint8), np.empty((0, value_bytes), np.uint8))

    def with_others(self, others: Strays) -> Strays:
        """Both."""
        return Strays(*(np.concatenate(rows) for rows in zip(self, others, strict=True)))


class Insert:
    """Kernels of one insert, their scratch memory and what they counted.

    Parameters
    ----------
    allocate
        Where working memory beside ``scratch`` comes from.

    Attributes
    ----------
    batch
        What the next kernel is given.
    left
        How many elements the last of `claim` and `settle` listed, once `outcome` was asked for.
    """

    def __init__(
        self,
        store: SubtableStore,
        piece: Piece,
        scratch: Scratch,
        count_probes: bool,
        allocate: Allocate,
        stream: Any = None,
    ) -> None:
        self._store, self._piece, self._scratch, self._stream = store, piece, scratch, stream
        self._allocate = allocate
        self.batch = batch = Batch.from_buffer_copy(scratch.batch)
        batch.report = store.report.ptr
        batch.n, batch.keys, batch.values, batch.out_flags = piece.n, piece.keys, piece.values, piece.flags
        batch.count_probes, batch.random = count_probes, store.random_word()
        spec, room = store.spec, min(scratch.purpose[0], HOMELESS_CAPACITY)
        # Homeless keys and values have a place each, the wider first.
        if spec.word_bytes >= 8:
            batch.homeless_values = batch.homeless + room * spec.word_bytes
        else:
            batch.homeless_values = batch.homeless
            batch.homeless += room * spec.value_bytes
        self.left = 0
        self._asked = False
        self._leftovers: list[Buffer] = []
        self._spare: Buffer | None = None
        self._before = (0, 0, (0,) * len(store.hashed))

    def claim(self) -> None:
        """List one element of each key."""
        self._run("claim", self._piece.n)
        self.batch.indices, self.batch.count = self.batch.winners, self.batch.report + WINNERS

    def settle_rest(self) -> None:
        """As `settle`, once more, of the elements that `outcome` found `left`: the table has more room now."""
        self.batch.n, self.batch.count = self.left, 0
        self._list_leftover()
        self._store.engine.fill(self.batch.report + LEFTOVER, 0, 8, self._stream)
        self._run("settle", self.left)
        self.batch.indices, self.batch.count = self.batch.leftover, self.batch.report + LEFTOVER

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

    def _list_leftover(self) -> None:
        """Room for the list of a `settle` of distinct keys."""
        self.batch.unique = 1
        self._leftovers.append(self._allocate(4 * self._piece.n, self._stream))
        self.batch.leftover = self._leftovers[-1].ptr

    def _prepare_to_place(self) -> None:
        """Room for the values, if they are rows, of the pairs that `place` throws out of their slots."""
        spec = self._store.spec
        if spec.value_is_row and self._spare is None:
            self._spare = self._allocate(self._piece.n * spec.value_bytes, self._stream)
            self.batch.spare_values = self._spare.ptr

    def place(self, only: npt.NDArray[np.int64] | None = None) -> None:
        """Add the keys of the listed elements, of those in ``only``, or of all: distinct, and none of them there."""
        batch, engine = self.batch, self._store.engine
        self._prepare_to_place()
        if only is None:
            return self._run("place", self._piece.n)
        for _, n, batch.indices, batch.count in pieces(engine, self._piece.n, self._piece.n, only, self._stream):
            self._run("place", n)

    def place_or_adopt(self) -> None:
        """As `place`, of an insert that nobody waits for: pairs without a place are left homeless, in `strays`."""
        self.batch.adopts = 1
        self.place()
        self.ask(last=True)

    @property
    def homeless(self) -> dict[str, int]:
        """Where a find learns of pairs that are left without a home: fields of its batch."""
        batch = self.batch
        return {"report": batch.report, "homeless": batch.homeless, "homeless_values": batch.homeless_values}

    @property
    def may_adopt(self) -> bool:
        """Whether there is room for all pairs that may be left."""
        return self._piece.n <= min(self._scratch.purpose[0], HOMELESS_CAPACITY)

    def ask(self, last: bool) -> None:
        """Ask for what `outcome` will tell; ``last``: no kernel of this insert follows."""
        self._store.ask(self._scratch, last, self._stream)
        self._asked = True

    def outcome(self, last: bool = True) -> Outcome:
        """What the kernels since the last call did; `Outcome.homeless` and `Outcome.unplaced` of all. Waits.

        ``last``: as of `ask`, unless that was called.
        """
        if not self._asked:
            self.ask(last)
        self._asked = False
        report = self._store.answer()
        changed, probes, placed = self._before
        self._before = report.changed, report.probes, report.placed
        self.left = report.leftover if self.batch.unique else report.winners
        self._store.add(now - before for now, before in zip(report.placed, placed, strict=False))
        return Outcome(report.changed - changed, report.homeless, report.unplaced, report.probes - probes)

    def strays(self, homeless: int) -> Strays:
        """The pairs that were left without a home."""
        spec, batch = self._store.spec, self.batch
        return Strays(
            *(
                self._store.engine.to_host(at, np.uint8, homeless * width, self._stream).reshape(homeless, width)
                for at, width in ((batch.homeless, spec.word_bytes), (batch.homeless_values, spec.value_bytes))
            )
        )

    def _run(self, entry: str, n: int) -> None:
        self._store.run(entry, self.batch, n, self._stream)
