"""Hot keys of an update or erase: combined ahead of the table (``kernels/aggregates/aggregates.cuh``).

All elements of a key write one word, or wait for one. On a GPU such accesses are a queue, so a batch with a hot key
takes as long as its queue. A sample tells whether a batch repeats its keys often enough, and few of them often enough:
of 2^10 keys from all over the batch, and of as many neighbours. Different keys cost the sample alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...runtime.abi import AggregateBatch, Aggregation, Flag, Op, SpreadBatch
from ...runtime.engine import Answer, Buffer, Engine
from ...runtime.source import AGGREGATES
from ..batch import Batch
from ..new_memory import filled
from ..scratch import starts_of
from ..slots import Slots
from .sample import Samples, seed_of

__all__ = ["FEWEST_AGGREGATED", "Aggregated", "Aggregator"]

FEWEST_AGGREGATED = 1 << 17
"""Elements from which on a batch is sampled. Equal keys then take a third of the time, and different ones a fifteenth
longer (docs/performance/insert.md)."""

_NO_VALUE_BYTES = 4
"""What the kernel writes for each element of a batch without values."""

_LANES_OF_BLOCK, _BLOCK_THREADS = 512, 256
"""A block for so many lanes of the device, and its threads."""


@dataclass(frozen=True)
class Aggregated:
    """What is left of a batch: its hot keys few times each.

    Attributes
    ----------
    batch
        The update that is left to do. It has room for flags if the whole batch asks for flags.
    elements
        Address of the number, uint32, of one element of the batch that has the key.
    memory
        What all these are in.
    """

    engine: Engine
    batch: Batch
    elements: int
    memory: Buffer

    def spread(self, whole: Batch) -> None:
        """Flag the elements of the whole batch: of those with one key, one has the flag of what was left."""
        self.engine.fill(whole.flags, Flag.PRESENT, whole.n, whole.stream)
        n, flags = self.batch.n, self.batch.flags
        batch = SpreadBatch(n=n, elements=self.elements, flags=flags, out_flags=whole.flags)
        self.engine.program(AGGREGATES).run("spread", Aggregation(), batch, n, whole.stream)

    def originals(self, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Numbers of elements of the batch that have the keys of some that were left."""
        elements = self.engine.to_host(self.elements, np.uint32, self.batch.n, self.batch.stream)
        return elements[left].astype(np.int64)


class Aggregator:
    """Combines the batches of one table. Its caller holds the table's lock alone."""

    def __init__(self) -> None:
        self._samples = Samples()
        self._answer: Answer | None = None  # a word

    def left_of(self, store: Slots, given: Batch) -> Aggregated | None:
        """Combine what repeats in a batch of words, at least `FEWEST_AGGREGATED`. Waits.

        With `Op.KEEP` and `Op.REPLACE`, the first value that a block sees of a key stays.

        Returns
        -------
        Aggregated or None
            None where that would not help, or where there is no memory for it.
        """
        engine, spec, n, stream = store.engine, store.spec, given.n, given.stream
        widths = spec.word_bytes, spec.value_word_bytes if given.values else _NO_VALUE_BYTES
        if engine.lanes == 1 or not set(widths) <= {4, 8}:
            return None
        try:
            if not self._samples.repeat_often(store, given.keys, n, stream):
                return None
            answer = self._answer = self._answer or engine.answer(1)
            *starts, end = starts_of(width * n for width in (*widths, 4, int(given.flags != 0)))
            memory = engine.allocate(end, stream)  # once: an allocation takes a GPU's host 30 us
            length = filled(engine, 16, stream)
        except MemoryError:
            return None
        out_keys, out_values, elements, out_flags = (memory.ptr + start for start in starts)
        batch = AggregateBatch(n=n, keys=given.keys, values=given.values, kind=given.kind, length=length.ptr)
        batch.op = Op.REPLACE if given.op == Op.KEEP else given.op
        batch.out_keys, batch.out_values, batch.elements = out_keys, out_values, elements
        threads = max(2, engine.lanes // _LANES_OF_BLOCK) * _BLOCK_THREADS
        entry = "aggregate" + "".join(map(str, widths))
        engine.program(AGGREGATES).run(entry, seed_of(store), batch, threads, stream)
        answer.ask(length.ptr, stream)
        answer.wait()
        values, flags = out_values if given.values else 0, out_flags if given.flags else 0
        left = given._replace(keys=out_keys, values=values, n=int(answer.words[0]), flags=flags)
        return Aggregated(engine, left, elements, memory)
