"""Updates of few elements of a quotient table, each one launch (``kernels/quotient/gpu/few.cuh``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.abi import FEW_REPORT_WORDS, FewBatch
from ...runtime.engine import Engine, KernelSpec
from ..batch import Batch
from ..listed import Listed
from ..result_slot import ResultSlot
from ..scratch import Outcome, starts_of
from ..update.pairs import Pairs

__all__ = ["ADOPTED", "FewUpdates"]

ADOPTED = FEW_REPORT_WORDS - 1
"""Word of the report: the number of adopted pairs."""


class FewUpdates:
    """The memory and the batch of such updates. Its caller holds the lock of the table.

    Parameters
    ----------
    most
        Elements that may be under way.
    left_out
        Address of a uint32 for each element of a launch.

    Raises
    ------
    MemoryError
    """

    def __init__(self, engine: Engine, spec: KernelSpec, most: int, left_out: int, stream: Any) -> None:
        self._engine, self._spec = engine, spec
        report, keys, values, end = starts_of(
            (8 * FEW_REPORT_WORDS, most * spec.word_bytes, most * spec.value_word_bytes)
        )
        self._memory = engine.allocate(end, stream)
        self._result_slot = ResultSlot(engine)
        self._keys, at = self._memory.ptr + keys, self._memory.ptr
        self._batch = FewBatch(report=at + report, left_out=left_out, adopted_values=at + values)
        self.forget(stream)

    def batch_of(
        self, given: Batch, listed: Listed | None, *, count_probes: bool, adopts: bool, goes_on: bool
    ) -> FewBatch:
        """The batch of a launch. Its outcome will be in the result slot.

        Parameters
        ----------
        listed
            Elements to take part; all of them if None.
        adopts
            Pairs that find no slot become the table's. Every element has a flag, and no values are combined.
        goes_on
            The outcome will be that of the batch before, too.
        """
        batch = self._batch
        batch.n, batch.indices = (given.n, 0) if listed is None else (listed.n, listed.numbers.ptr)
        batch.keys, batch.values, batch.out_flags = given.keys, given.values, given.flags
        batch.op, batch.kind, batch.count_probes = given.op, given.kind, count_probes
        batch.adopted_keys, batch.goes_on = self._keys if adopts else 0, goes_on
        self._result_slot.address(batch)
        return batch

    def outcome(self, stream: Any) -> Outcome:
        """The outcome of the last launch, and of those before it that it goes on from. Waits.

        Adopted pairs count as displaced ones.
        """
        adopted, unplaced, changed, probes = self._result_slot.outcome(stream)
        return Outcome(changed, adopted, unplaced, probes)

    def adopted(self, stream: Any) -> Pairs:
        """Copies of the pairs that the table has adopted, until they are forgotten. Waits."""
        engine, spec, batch = self._engine, self._spec, self._batch
        n = int(engine.to_host(batch.report + 8 * ADOPTED, np.uint64, 1, stream)[0])
        return Pairs.at(engine, spec, self._keys, batch.adopted_values, n, stream)

    def forget(self, stream: Any) -> None:
        """Forget the adopted pairs."""
        self._engine.fill(self._batch.report, 0, 8 * FEW_REPORT_WORDS, stream)
