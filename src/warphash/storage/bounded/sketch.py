"""How often keys were accessed, estimated: the count-min sketch with ageing of TinyLFU, in the engine's memory.

`kernels/bounded/bounded.cuh` draws the counters, and has the kernels. A sketch knows keys by their fingerprints, so it
also remembers keys that are in no table.

Two numbers decide how well the most frequent keys are told from the others. Both were measured on a CPU with streams of
Zipf 1.0 over 10,000 keys, 400,000 accesses long, for sets of at most 1,000 keys: the share of the most frequent keys of
the stream that are in the set at the end. With 16 bytes of counters for each key of the bound and a sample of 10
accesses for each key, as in the paper, the share is 0.70; with 64 accesses 0.91, with 128 accesses 0.94. A key at the
edge of the bound is accessed once in 10 accesses for each key, and a count of one tells little. With 32 bytes of
counters and 128 accesses the share is 0.96. A larger sample follows a change of the stream more slowly.
"""

from __future__ import annotations

from typing import Any

from ...runtime.abi import AccessBatch, FrequencySketch
from ...runtime.engine import Buffer, Engine
from ...runtime.source import BOUNDED
from ..lookup import LAUNCH_ELEMENTS

__all__ = ["Sketch"]

LINE_BYTES = 64
"""Counters of a line, a byte each."""

_COUNTERS = 16
"""For each key of the bound."""

_SAMPLE = 128
"""Accesses for each key of the bound, after which all counters are halved."""


class Sketch:
    """Estimates how often each key was accessed, among the last accesses.

    Parameters
    ----------
    keys
        Number of most frequent keys that the sketch is to tell from the others.
    key_bytes
        Width of a key.
    seed
        Of the fingerprints.

    Attributes
    ----------
    ages
        How often all counters were halved.
    """

    def __init__(self, engine: Engine, keys: int, key_bytes: int, seed: int) -> None:
        self._engine, self._keys, self._key_bytes, self._seed = engine, keys, key_bytes, seed
        self._program = engine.program(BOUNDED)
        self._lines = max(1, -(-keys * _COUNTERS // LINE_BYTES))
        self._sample = _SAMPLE * max(1, keys)
        self._recorded = self.ages = 0
        self._counters: Buffer = engine.allocate(LINE_BYTES * self._lines)
        self.clear()

    @property
    def nbytes(self) -> int:
        return self._counters.nbytes

    def clear(self, stream: Any = None) -> None:
        """Forget all accesses."""
        self._engine.fill(self._counters.ptr, 0, self.nbytes, stream)
        self._recorded = 0

    def record(self, keys: int, n: int, stream: Any, flags: int = 0) -> None:
        """Count an access of each of ``n`` keys, or of those whose flag is set. Allocates nothing.

        Several threads may record at one time. Then a count of accesses, or an ageing, may be lost or doubled: this
        changes estimates a little, and nothing else.
        """
        if n == 0:
            return
        self._run("record", AccessBatch(n=n, keys=keys, key_bytes=self._key_bytes, flags=flags), n, stream)
        self._recorded += n
        if self._recorded >= self._sample:
            self._recorded = 0
            self._age(stream)

    def rank(self, keys: int, n: int, out: int, stream: Any) -> None:
        """Write the rank of each key to ``out``, uint64: first by frequency."""
        self._run("by_frequency", AccessBatch(n=n, keys=keys, key_bytes=self._key_bytes, out_ranks=out), n, stream)

    def copy(self, stream: Any) -> Sketch:
        """Another sketch of the same accesses."""
        twin = Sketch(self._engine, self._keys, self._key_bytes, self._seed)
        self._engine.copy(twin._counters.ptr, self._counters.ptr, self.nbytes, stream)
        twin._recorded = self._recorded
        return twin

    def _age(self, stream: Any) -> None:
        """Halve all counters."""
        self.ages += 1
        words = self.nbytes // 4
        for at in range(0, words, LAUNCH_ELEMENTS):
            n = min(LAUNCH_ELEMENTS, words - at)
            sketch = FrequencySketch(counters=self._counters.ptr + 4 * at, lines=self._lines, seed=self._seed)
            self._program.run("age", sketch, AccessBatch(n=n), n, stream)

    def _run(self, entry: str, batch: AccessBatch, n: int, stream: Any) -> None:
        sketch = FrequencySketch(counters=self._counters.ptr, lines=self._lines, seed=self._seed)
        self._program.run(entry, sketch, batch, n, stream)
