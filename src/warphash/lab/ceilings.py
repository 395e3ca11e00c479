"""What the memory of a device allows a hash table, measured by kernels that share nothing with one.

A find reads one bucket, at a random place, for each probe; the value of a key that it finds, where values lie apart
from keys; and words that tell it which buckets to leave out, where a design keeps such. Its ceiling is how many random
reads of as many contiguous bytes the device makes in a second, over a region as large as the table, or the words; that
of a build is how many of these reads it makes with a 64-bit compare-and-swap behind each (32-bit in places of 4 bytes).
``lab/kernels/places.cuh`` says how.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..designs import registry
from ..designs.layout import Reads
from ..runtime.abi import Launch
from ..runtime.devices import engine_for
from ..runtime.engine import KernelSpec
from ..storage.make import widths_of
from .clocks import clock_of

__all__ = ["CEILING", "Ceiling", "Ceilings", "Reads", "reads_of"]

CEILING = KernelSpec("ceiling", 0, 0, 0, header="gpu/ceiling.cuh", package="warphash.lab")
"""Random reads with no table around them."""

_ENOUGH_S = 0.1
"""Seconds of runs behind a ceiling, unless `_FEWEST` take longer: the eight ceilings of a standard run take one."""

_FEWEST = 3
"""Runs of reading, and as many of swapping."""

_LINES = {"cpu": 1 << 21, "cuda": 1 << 27}
"""Lines of 64 bytes that one run reads, at least one a place: some 10 ms."""

_GATHERS_PER_GROUP = 16
"""Of the lanes that read a place together (``gpu/ceiling.cuh``)."""


_FETCHED_BYTES = {"cpu": 64, "cuda": 32}
"""What memory gives at once."""


class Region(ctypes.Structure):
    """Memory of which random places are read (``lab/kernels/abi.cuh``)."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("address", "places", "place_bytes")]


@dataclass(frozen=True)
class Ceiling:
    """Most random accesses per second to places of ``bucket_bytes`` in a region, and what they were measured with.

    Attributes
    ----------
    reads_per_s, swaps_per_s
        Reads of a place, and reads with a compare-and-swap into the place behind.
    """

    bucket_bytes: int
    region_bytes: int
    reads_per_s: float
    swaps_per_s: float

    def ratio(self, operation: str, rate_per_s: float, probes_per_key: float | None) -> float:
        """Share of the ceiling that a rate of keys reaches.

        Parameters
        ----------
        operation
            As `lab.runner.Measurement` has it: finds read, everything else reads and swaps.
        probes_per_key
            None where they were not counted; one, the least there can be, is taken then.
        """
        most = self.reads_per_s if operation.startswith("find") else self.swaps_per_s
        return rate_per_s * (probes_per_key or 1) / most


class Ceilings:
    """Measures ceilings on one device, each when it is first asked for.

    Parameters
    ----------
    device
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``. On the CPU with as many threads as the engine takes.
    """

    def __init__(self, device: str) -> None:
        self._engine, self._clock = engine_for(device), clock_of(device)
        self._on_cpu = device == "cpu"
        self._found: dict[tuple[int, int], Ceiling] = {}

    @property
    def measured(self) -> list[Ceiling]:
        """All that were asked for, in that order."""
        return list(self._found.values())

    def of(self, bucket_bytes: int, table_bytes: int) -> Ceiling:
        """The ceiling for a table of so many bytes; tables that differ by less than a sixteenth share one.

        Raises
        ------
        MemoryError
            If there is no room for a second region as large as the table.
        """
        step = 1 << max(0, table_bytes.bit_length() - 5)
        region_bytes = max(bucket_bytes, -(-table_bytes // step) * step)
        key = bucket_bytes, region_bytes
        if key not in self._found:
            self._found[key] = self._measure(*key)
        return self._found[key]

    def again(self, known: Ceiling) -> Ceiling:
        """The better of a ceiling and one more measurement: a rate above it shows that others held it down."""
        key = known.bucket_bytes, known.region_bytes
        new = self._measure(*key)
        self._found[key] = replace(
            known,
            reads_per_s=max(known.reads_per_s, new.reads_per_s),
            swaps_per_s=max(known.swaps_per_s, new.swaps_per_s),
        )
        return self._found[key]

    def ratio(
        self,
        reads: Reads,
        table_bytes: int,
        operation: str,
        rate_per_s: float,
        probes_per_key: float | None,
        words_per_key: float = 0.0,
    ) -> float:
        """As `Ceiling.ratio`, with the values and words that a find reads beside the buckets of a table."""
        fetched = _FETCHED_BYTES["cpu" if self._on_cpu else "cuda"]
        if reads.in_a_row and probes_per_key is not None:
            probes_per_key = 1 + (probes_per_key - 1) * min(1.0, reads.bucket_bytes / fetched)
        beside = 0.0  # seconds a key
        if reads.value_bytes and operation.startswith("find"):
            value = self.of(max(reads.value_bytes, fetched), table_bytes)
            beside += float(operation.split()[1]) / 100 / value.reads_per_s
        if words_per_key:
            beside += words_per_key / self.of(fetched, int(table_bytes * reads.words_share)).reads_per_s

        def share(ceiling: Ceiling) -> float:
            return ceiling.ratio(operation, rate_per_s, probes_per_key) + rate_per_s * beside

        ceiling = self.of(reads.bucket_bytes, table_bytes)
        return share(ceiling if share(ceiling) <= 1 else self.again(ceiling))

    def _measure(self, bucket_bytes: int, region_bytes: int) -> Ceiling:
        # To read takes no longer than to read and swap.
        reads, swaps = self.rates(["read", "read_and_swap"], bucket_bytes, region_bytes)
        return Ceiling(bucket_bytes, region_bytes, max(swaps, reads), swaps)

    def rates(self, entries: Sequence[str], bucket_bytes: int, region_bytes: int) -> list[float]:
        """Accesses per second of some kernels of ``ceiling.cuh``: the best runs, as one held down is no ceiling."""
        region = self._engine.allocate(region_bytes, 0)
        self._engine.fill(region.ptr, 0, region_bytes, 0)
        places = Region(address=region.ptr, places=region_bytes // bucket_bytes, place_bytes=bucket_bytes)
        program = self._engine.program(CEILING)
        n = _LINES["cpu" if self._on_cpu else "cuda"] // max(1, bucket_bytes // 64)
        lanes = max(1, bucket_bytes // 16)
        launched = n if self._on_cpu else n * lanes // _GATHERS_PER_GROUP
        seconds: dict[str, list[float]] = {entry: [] for entry in entries}
        first = itertools.count(step=n)
        while len(seconds[entries[0]]) < _FEWEST or sum(map(sum, seconds.values())) < _ENOUGH_S:
            for entry, its in seconds.items():  # in turn, so that what disturbs one disturbs all
                batch = Launch(n=n, random=next(first))  # other places in every run
                # Stream 0 is the one whose events the clock takes.
                its.append(self._clock.time(partial(program.run, entry, places, batch, launched, 0)))
        return [n / min(its) for its in seconds.values()]


def reads_of(key_bytes: int, value_bytes: int, design: str, parameters: Mapping[str, Any]) -> Reads:
    """What a find reads of a table of such keys and values (``value_bytes`` 0: a set)."""
    made = registry.get(design)
    return made.reads(parameters, *widths_of(made, key_bytes, value_bytes))
