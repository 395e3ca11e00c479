"""Limits: what the memory and a launch allow of a measured operation, from figures of the same run.

Two limits bound the rate of an operation.

The *random* limit holds for a table that takes each key to its places by itself. A find reads its key, reads a bucket
at a random place and writes its answer, which is the ceiling of a lookup. Each further probe reads a further random
place. An update reads a place and swaps a word in it, once for each probe. A table that first sorts its batch by the
parts of the table can pass this limit.

The *stream* limit holds for all tables. The batch is read once, its answers are written once, and the lines of the
table that the batch touches are moved once, in order, at the rate of a copy.

Both limits include one launch for each call, which bounds small batches.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .ceilings import Ceiling, Ceilings, reads_of
from .runner import Measurement

__all__ = ["LINE_BYTES", "Accesses", "Limit", "Limits"]

LINE_BYTES = 64
"""What memory moves at once, on a GPU's device memory and on a CPU."""

_STREAMS_BYTES = {"cpu": (1 << 18, 1 << 28), "cuda": (1 << 26, 1 << 30)}
"""Least and most bytes of a copy. Smaller copies on a GPU would measure the launch; larger ones are no faster."""

_MOST_PLACES = 1 << 32
"""The kernels number places by 32 bits."""


@dataclass(frozen=True)
class Accesses:
    """Random accesses to places of ``bucket_bytes`` in a region of ``region_bytes``, beside those of `Ceiling`.

    Attributes
    ----------
    lookups_per_s
        Lookups per second: each reads a key of ``key_bytes`` and a place, and writes an answer.
    writes_per_s
        Reads per second that are each followed by an exchange of a word of the place, which always succeeds.
    """

    bucket_bytes: int
    region_bytes: int
    key_bytes: int
    lookups_per_s: float
    writes_per_s: float


@dataclass(frozen=True)
class Limit:
    """The limits of one measurement.

    Attributes
    ----------
    lines_per_key
        Lines of 64 bytes that an operation touches at random places. If no probes were counted, one bucket.
    random_per_s, stream_per_s
        The limits in keys per second.
    random_share, stream_share
        The measured rate over these limits.
    """

    lines_per_key: float
    random_per_s: float
    stream_per_s: float
    random_share: float
    stream_share: float


class Limits:
    """Finds the limits of measurements on one device. Each figure is measured when it is first needed.

    Parameters
    ----------
    memory
        Of the laboratory that measured.
    """

    def __init__(self, memory: Ceilings) -> None:
        self._memory = memory
        self._accesses: dict[tuple[int, int, int], Accesses] = {}
        self._streams: dict[int, float] = {}
        self._launch_s: float | None = None

    @property
    def launch_s(self) -> float:
        """Seconds of a launch among launches that nobody waits for."""
        if self._launch_s is None:
            self._launch_s = self._memory.launch_s()
        return self._launch_s

    @property
    def accesses(self) -> list[Accesses]:
        """Those that were measured so far."""
        return list(self._accesses.values())

    @property
    def streams(self) -> dict[int, float]:
        """Bytes per second that copies read and write, by their sizes in bytes."""
        return dict(self._streams)

    def content(self) -> dict[str, Any]:
        """What a results file says of them (`lab.report.results`)."""
        streams = [{"bytes": nbytes, "bytes_per_s": rate} for nbytes, rate in self._streams.items()]
        return {"launch_s": self.launch_s, "streams": streams, "accesses": [asdict(a) for a in self.accesses]}

    def of(self, m: Measurement) -> Limit | None:
        """The limits of a measurement, whose table is best freed before.

        None if the memory has no room for them, or if the table has more buckets than the kernels can draw places.
        """
        if m.table_bytes // reads_of(*_widths(m), m.design, m.parameters).bucket_bytes >= _MOST_PLACES:
            return None
        try:
            found = self._limit(m)
            return found if found.random_share <= 1 else self._limit(m, again=True)
        except MemoryError:
            return None

    def _limit(self, m: Measurement, again: bool = False) -> Limit:
        key_bytes, value_bytes = _widths(m)
        reads = reads_of(key_bytes, value_bytes, m.design, m.parameters)
        finds = m.operation.startswith("find")
        memory, words = self._memory, m.words_per_key or 0.0
        places = 1.0 if m.probes_per_key is None else memory.places_per_key(reads, m.probes_per_key)
        ceiling = memory.of(reads.bucket_bytes, m.table_bytes)
        if again:  # other processes may have slowed the measurement of the ceiling
            ceiling = memory.again(ceiling)
        if finds:
            lookups = self._accesses_of(ceiling, 4 if key_bytes <= 4 else 8, again).lookups_per_s
            random_s = 1 / lookups + (places - 1) / ceiling.reads_per_s
            random_s += memory.seconds_beside(reads, m.table_bytes, m.operation, words)
        else:
            random_s = places / ceiling.swaps_per_s
        lines = places * max(1.0, reads.bucket_bytes / LINE_BYTES) + words
        if finds and reads.value_bytes:
            lines += float(m.operation.split()[1]) / 100
        table = _passes(m.operation) * min(m.table_bytes / m.batch, LINE_BYTES * lines)
        moved = _batch_bytes(m.operation, key_bytes, value_bytes) + table
        call_s = self.launch_s / m.batch
        random_per_s = 1 / (random_s + call_s)
        stream_per_s = 1 / (moved / self._stream(m.batch * moved) + call_s)
        return Limit(lines, random_per_s, stream_per_s, m.rate_per_s / random_per_s, m.rate_per_s / stream_per_s)

    def _accesses_of(self, ceiling: Ceiling, key_bytes: int, again: bool) -> Accesses:
        key = ceiling.bucket_bytes, ceiling.region_bytes, key_bytes
        known = self._accesses.get(key)
        if known is None or again:
            new = Accesses(
                *key,
                self._memory.lookups_per_s(*key),
                self._memory.rates(["read_and_exchange"], ceiling.bucket_bytes, ceiling.region_bytes)[0],
            )
            if known is not None and known.lookups_per_s > new.lookups_per_s:
                new = known
            self._accesses[key] = new
        return self._accesses[key]

    def _stream(self, nbytes: float) -> float:
        least, most = _STREAMS_BYTES["cuda" if self._memory.on_gpu else "cpu"]
        rounded = min(most, max(least, 1 << int(nbytes).bit_length()))
        if rounded not in self._streams:
            self._streams[rounded] = self._memory.copied_per_s(rounded)
        return self._streams[rounded]


def _widths(m: Measurement) -> tuple[int, int]:
    """Bytes of a key and of a value; of a set, 0 for the value."""
    return np.dtype(m.key_dtype).itemsize, 0 if m.value_dtype is None else np.dtype(m.value_dtype).itemsize


def _batch_bytes(operation: str, key_bytes: int, value_bytes: int) -> int:
    """Bytes that a batch has for each key: keys, values and flags, given or answered."""
    values = 0 if operation.startswith("erase") else value_bytes
    flags = 0 if operation.startswith("build") else 1
    return key_bytes + values + flags


def _passes(operation: str) -> int:
    """How often an operation moves the lines of the table: a find reads them, a build writes them, others do both."""
    return 1 if operation.startswith(("find", "build")) else 2
