"""Ceilings: how fast a device's memory could serve a hash table, measured by kernels that share no code with a table.

A find reads one bucket at a random place for each probe. Where values lie apart from keys, a find of a present key also
reads the value. Where a design keeps words that tell which buckets to skip, a find also reads such words.

The ceiling of a find is the number of random reads per second of as many contiguous bytes, over a region as large as
the table (or as large as the words). The ceiling of a build is the number of such reads per second when a 64-bit
compare-and-swap follows each read (32-bit in places of 4 bytes). ``lab/kernels/places.cuh`` has the kernels.

Three more figures bound whole calls (`limits`): lookups, which also read a key and write an answer for each random
read (``lab/kernels/lookup_ceiling.cuh``); a copy of memory; and a launch that does nothing.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...designs import registry
from ...designs.layout import Reads
from ...runtime.abi import Batch, Launch
from ...runtime.devices import engine_for
from ...runtime.engine import KernelSpec
from ...storage.stores import widths_of
from .clocks import HostClock, clock_of

__all__ = ["CEILING", "LOOKUPS", "Ceiling", "Ceilings", "Reads", "free_host_bytes", "reads_of"]

CEILING = KernelSpec("ceiling", 0, 0, 0, header="gpu/ceiling.cuh", package="warphash.lab")
"""The kernels of random reads, without a table."""

LOOKUPS = KernelSpec("lookups", 0, 0, 0, header="gpu/lookups.cuh", package="warphash.lab")
"""The kernels of lookups, without a table."""

_ENOUGH_S = 0.1
"""Seconds of runs for one ceiling, or more if `_FEWEST` runs take longer. A standard run measures eight ceilings in
about one second."""

_FEWEST = 3
"""Least number of runs of each kernel."""

_LINES = {"cpu": 1 << 21, "cuda": 1 << 27}
"""Lines of 64 bytes that one run reads, at least one for each place. A run takes some 10 ms."""

_LOOKUPS = {"cpu": 1 << 21, "cuda": 1 << 25}
"""Keys of one run of lookups."""

_LAUNCHES = 64
"""Launches that are timed together."""

_REFERENCE_BYTES = {"cpu": 64 << 20, "cuda": 512 << 20}
"""Region of the ceiling that tells chips of one name apart (`Ceilings.reference`)."""

_CHECKED = 1 << 12
"""Accesses, and places, of a launch whose result is looked at."""

_GATHERS_PER_GROUP = 16
"""Places that one group of lanes reads (``gpu/ceiling.cuh``)."""


_FETCHED_BYTES = {"cpu": 64, "cuda": 32}
"""Smallest number of bytes that the memory transfers."""


class Region(ctypes.Structure):
    """Memory that the kernels read at random places (``lab/kernels/abi.cuh``)."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("address", "places", "place_bytes")]


@dataclass(frozen=True)
class Ceiling:
    """Highest rate of random accesses to places of ``bucket_bytes`` in a region of ``region_bytes``.

    Attributes
    ----------
    reads_per_s
        Reads of a place, per second.
    swaps_per_s
        Reads that are each followed by a compare-and-swap into the same place, per second.
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
            As `runner.Measurement` names it. Finds read; all other operations read and swap.
        probes_per_key
            None where probes were not counted. The ratio then assumes one probe, the least possible.
        """
        most = self.reads_per_s if operation.startswith("find") else self.swaps_per_s
        return rate_per_s * (probes_per_key or 1) / most


class Ceilings:
    """Measures the ceilings of one device. Each ceiling is measured when it is first needed.

    Parameters
    ----------
    device
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``. On the CPU, a ceiling uses as many threads as the engine.
    """

    def __init__(self, device: str) -> None:
        self._engine, self._clock = engine_for(device), clock_of(device)
        self._on_cpu = device == "cpu"
        self._found: dict[tuple[int, int], Ceiling] = {}

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return not self._on_cpu

    @property
    def measured(self) -> list[Ceiling]:
        """All ceilings measured so far, in the order of their first use."""
        return list(self._found.values())

    def of(self, bucket_bytes: int, table_bytes: int) -> Ceiling:
        """The ceiling for a table of ``table_bytes``. Tables whose sizes differ by less than a sixteenth share one.

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

    def reference(self) -> Ceiling:
        """The ceiling of 64 bytes in 512 MiB on a GPU, or in 64 MiB on a CPU. Chips of one name differ in it."""
        return self.of(64, _REFERENCE_BYTES["cpu" if self._on_cpu else "cuda"])

    def again(self, known: Ceiling) -> Ceiling:
        """Measure a ceiling once more and keep the higher rates.

        A table's rate above the ceiling shows that other processes slowed the measurement of the ceiling.
        """
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
        """Share of the ceiling, as `Ceiling.ratio`, counting also the values and words that a find reads."""
        probes = None if probes_per_key is None else self.places_per_key(reads, probes_per_key)
        beside = self.seconds_beside(reads, table_bytes, operation, words_per_key)

        def share(ceiling: Ceiling) -> float:
            return ceiling.ratio(operation, rate_per_s, probes) + rate_per_s * beside

        ceiling = self.of(reads.bucket_bytes, table_bytes)
        return share(ceiling if share(ceiling) <= 1 else self.again(ceiling))

    def places_per_key(self, reads: Reads, probes_per_key: float) -> float:
        """Random places that a key's probes read. Adjacent small buckets are one place."""
        if not reads.in_a_row:
            return probes_per_key
        return 1 + (probes_per_key - 1) * min(1.0, reads.bucket_bytes / self._fetched)

    def seconds_beside(self, reads: Reads, table_bytes: int, operation: str, words_per_key: float) -> float:
        """Seconds a key of the random reads beside its buckets: of a value that lies apart, and of words."""
        beside = 0.0
        if reads.value_bytes and operation.startswith("find"):
            value = self.of(max(reads.value_bytes, self._fetched), table_bytes)
            beside += float(operation.split()[1]) / 100 / value.reads_per_s
        if words_per_key:
            beside += words_per_key / self.of(self._fetched, int(table_bytes * reads.words_share)).reads_per_s
        return beside

    @property
    def _fetched(self) -> int:
        return _FETCHED_BYTES["cpu" if self._on_cpu else "cuda"]

    def _measure(self, bucket_bytes: int, region_bytes: int) -> Ceiling:
        # A read without a swap cannot be slower than a read with a swap, so noise that says so is corrected.
        reads, swaps = self.rates(["read", "read_and_swap"], bucket_bytes, region_bytes)
        return Ceiling(bucket_bytes, region_bytes, max(swaps, reads), swaps)

    def rates(self, entries: Sequence[str], bucket_bytes: int, region_bytes: int) -> list[float]:
        """Accesses per second of kernels of ``ceiling.cuh``, each in its fastest run: a disturbed run is no ceiling."""
        region = self._engine.allocate(region_bytes, 0)
        self._engine.fill(region.ptr, 0, region_bytes, 0)
        n = _LINES["cpu" if self._on_cpu else "cuda"] // max(1, bucket_bytes // 64)
        return self._rates(entries, region.ptr, region_bytes, bucket_bytes, n)

    def wrong_places(self, entry: str, place_bytes: int) -> int:
        """Launch a kernel of ``ceiling.cuh`` over a small region, and count the places that it did not access right.

        A read changes nothing. Other accesses write to each place that was drawn, and to no other place. They add 1 at
        most for each time that the place was drawn; an access that lost a race adds nothing.
        """
        words = self._engine.allocate(_CHECKED * place_bytes, 0)
        self._engine.fill(words.ptr, 0, words.nbytes, 0)
        self._run(entry, Region(address=words.ptr, places=_CHECKED, place_bytes=place_bytes), _CHECKED, 0)
        added = self._engine.to_host(words.ptr, np.uint32, words.nbytes // 4, 0).reshape(_CHECKED, -1).sum(axis=1)
        drawn = np.bincount(_drawn(np.arange(_CHECKED), _CHECKED), minlength=_CHECKED)
        if entry == "read":
            drawn[:] = 0
        return int((((added > 0) != (drawn > 0)) | (added > drawn)).sum())

    def lookups_per_s(self, place_bytes: int, region_bytes: int, key_bytes: int) -> float:
        """Lookups per second: each reads a key of 4 or 8 bytes and a random place, and writes as long an answer.

        Raises
        ------
        MemoryError
            If there is no room for the region, the keys and the answers.
        """
        n = _LOOKUPS["cpu" if self._on_cpu else "cuda"]
        region = self._engine.allocate(region_bytes, 0)
        self._engine.fill(region.ptr, 0, region_bytes, 0)
        keys = self._engine.from_host(np.arange(n, dtype=f"u{key_bytes}"), 0)
        answers = self._engine.allocate(n * key_bytes, 0)
        places = Region(address=region.ptr, places=region_bytes // place_bytes, place_bytes=place_bytes)
        first = itertools.count(step=n)
        self._engine.program(LOOKUPS)  # nobody times its compilation

        def run() -> None:
            batch = Batch(n=n, keys=keys.ptr, out_values=answers.ptr, random=next(first) % (1 << 32))
            self._launch(LOOKUPS, f"look_up_{key_bytes}", places, batch)

        (seconds,) = _least_seconds(self._clock, [run])
        return n / seconds

    def wrong_lookups(self, place_bytes: int, key_bytes: int) -> int:
        """Launch lookups over a small region, and count the answers that are wrong.

        Each word of a place has the number of the place. So an answer is right if it was made of its own key, and of a
        word of the place to which that key leads.
        """
        of_places = np.repeat(np.arange(_CHECKED, dtype=np.uint32), place_bytes // 4)
        keys = np.arange(_CHECKED, dtype=f"u{key_bytes}") * 5
        region, given = self._engine.from_host(of_places, 0), self._engine.from_host(keys, 0)
        answers = self._engine.allocate(keys.nbytes, 0)
        batch = Batch(n=_CHECKED, keys=given.ptr, out_values=answers.ptr, random=7)
        places = Region(address=region.ptr, places=_CHECKED, place_bytes=place_bytes)
        self._launch(LOOKUPS, f"look_up_{key_bytes}", places, batch)
        got = self._engine.to_host(answers.ptr, keys.dtype, _CHECKED, 0)
        return int(((got ^ keys).astype(np.uint32) != _drawn(keys + 7, _CHECKED)).sum())

    def copied_per_s(self, nbytes: int) -> float:
        """Bytes per second that a copy reads and writes, if it reads and writes ``nbytes`` in all."""
        half = nbytes // 2
        memory = self._engine.allocate(2 * half, 0)
        self._engine.fill(memory.ptr, 0, 2 * half, 0)
        (seconds,) = _least_seconds(self._clock, [lambda: self._engine.copy(memory.ptr + half, memory.ptr, half, 0)])
        return 2 * half / seconds

    def launch_s(self) -> float:
        """Seconds of a launch of a kernel that does next to nothing, among launches that nobody waits for."""
        region = self._engine.allocate(4096, 0)
        self._engine.fill(region.ptr, 0, 4096, 0)
        places = Region(address=region.ptr, places=1, place_bytes=4)
        self._engine.program(CEILING)

        def run() -> None:
            for _ in range(_LAUNCHES):
                self._run("read", places, _GATHERS_PER_GROUP, 0)

        (seconds,) = _least_seconds(self._clock, [run])
        return seconds / _LAUNCHES

    def free_bytes(self) -> int:
        """Memory of the device that is free."""
        engine: Any = self._engine
        return free_host_bytes() if self._on_cpu else int(engine.free_bytes())

    def reads_per_s(self, address: int, nbytes: int, place_bytes: int, n: int) -> float:
        """Random reads per second of places in memory that is there, ``n`` of them in a run."""
        return self._rates(["read"], address, nbytes, place_bytes, n)[0]

    def _rates(self, entries: Sequence[str], address: int, nbytes: int, place_bytes: int, n: int) -> list[float]:
        places = Region(address=address, places=nbytes // place_bytes, place_bytes=place_bytes)
        first = itertools.count(step=n)  # other places in every run
        self._engine.program(CEILING)  # nobody times its compilation
        runs = [lambda entry=entry: self._run(entry, places, n, next(first)) for entry in entries]
        return [n / seconds for seconds in _least_seconds(self._clock, runs)]

    def _run(self, entry: str, places: Region, n: int, first: int) -> None:
        """Launch ``n`` accesses, of the draws from number ``first`` on. The clock records its events on stream 0."""
        self._launch(CEILING, entry, places, Launch(n=n, random=first))

    def _launch(self, spec: KernelSpec, entry: str, places: Region, batch: Launch) -> None:
        lanes = max(1, places.place_bytes // 16)
        launched = batch.n if self._on_cpu else batch.n * lanes // _GATHERS_PER_GROUP
        self._engine.program(spec).run(entry, places, batch, launched, 0)


def _least_seconds(clock: HostClock, runs: Sequence[Callable[[], None]]) -> list[float]:
    """Seconds of each run in its fastest repetition: a disturbed repetition is no ceiling."""
    seconds: list[list[float]] = [[] for _ in runs]
    while len(seconds[0]) < _FEWEST or sum(map(sum, seconds)) < _ENOUGH_S:
        for run, its in zip(runs, seconds, strict=True):  # the runs alternate, so a disturbance slows all of them alike
            its.append(clock.time(run))
    return [min(its) for its in seconds]


def free_host_bytes() -> int:
    """Memory of this machine that a process can have."""
    info = Path("/proc/meminfo")
    lines = info.read_text().splitlines() if info.exists() else []
    free = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    return free[0] if free else 1 << 30


def _drawn(numbers: npt.NDArray[Any], places: int) -> npt.NDArray[np.uint64]:
    """The places of these draws: ``place_of`` in ``lab/kernels/places.cuh``."""
    x = numbers.astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    x ^= x >> np.uint32(16)
    return x.astype(np.uint64) * np.uint64(places) >> np.uint64(32)


def reads_of(key_bytes: int, value_bytes: int, design: str, parameters: Mapping[str, Any]) -> Reads:
    """What a find reads in a table of keys and values of these widths (``value_bytes`` 0: a set)."""
    made = registry.get(design)
    return made.reads(parameters, *widths_of(made, key_bytes, value_bytes))
