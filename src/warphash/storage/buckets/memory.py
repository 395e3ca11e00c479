"""The memory of a table on one engine, its hash constants, and what kernels are told of both."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...designs.base import Design
from ...errors import ParameterError
from ...runtime.abi import MAX_HASHES, Table
from ...runtime.engine import Buffer, Engine, KernelSpec
from ..hash_constants import HASHES, MAX_BUCKETS, PRIMES
from ..result_slot import Mailbox
from ..scratch import Scratch, Workbench
from ..storage import MemoryUse

__all__ = ["HASHES", "MAX_BUCKETS", "PRIMES", "MemoryUse", "SlotMemory"]


class SlotMemory:
    """What the operations of a `buckets.store.Store` work on.

    Parameters
    ----------
    slots
        At least so many, rounded up to whole buckets.
    seed
        Of the hash constants and the victims of evictions.
    family
        One of `HASHES`.
    keys
        How many are expected (`chains.chain_array.ChainArray`).
    fixed
        The memory is all there will be.
    """

    def __init__(
        self,
        engine: Engine,
        design: Design,
        parameters: Mapping[str, Any],
        spec: KernelSpec,
        slots: int,
        seed: int,
        family: str,
        keys: int = 0,
        fixed: bool = False,
        stream: Any = None,
    ) -> None:
        per_bucket = spec.slots_per_bucket
        data_slots = design.pairs_per_bucket(per_bucket, spec.slot_bytes)
        self._constants = {**design.fields(parameters), "family": HASHES.index(family)}
        if spec.subtables:
            self._constants["value_bytes"] = spec.value_bytes
        spec = replace(spec, constants=tuple(sorted(self._constants.items())))
        self.engine, self.design, self.parameters, self.spec = engine, design, parameters, spec
        self.seed, self.family, self.keys, self.fixed = seed, family, keys, fixed
        self.buckets = max(1, -(-slots // data_slots))
        if self.buckets > MAX_BUCKETS:
            raise ParameterError(
                f"a table has at most {MAX_BUCKETS:,} buckets, and {slots:,} slots of {per_bucket} a bucket "
                f"make {self.buckets:,}: use more slots_per_bucket, a smaller capacity or a greater load_factor"
            )
        self.slots = self.buckets * data_slots
        self.total_slots = (self.buckets + (1 if per_bucket >= 3 else 3)) * per_bucket
        self._clearing = threading.Lock()
        self._allocate(stream)
        self._program = engine.program(spec)
        self._random = random.Random(seed)
        self._table = self._describe()
        self._workbench = Workbench(engine, spec.slot_bytes if design.moves_keys else 0)
        self._mailbox: Mailbox | None = None
        self._homeless: Scratch | None = None  # with the pairs that the last update left
        self.clear(stream)

    @property
    def _base_bytes(self) -> int:
        return self.total_slots * self.spec.slot_bytes

    @property
    def nbytes(self) -> int:
        return self._base_bytes

    def memory_use(self) -> MemoryUse:
        """What the memory is used for. Waits, where kernels take nodes."""
        return MemoryUse(self.buckets * self.spec.slots_per_bucket * self.spec.slot_bytes)

    @property
    def table(self) -> Table:
        """What kernels are given, its memory cleared if that was put off."""
        self._clear_now()
        return self._table

    @property
    def memory(self) -> Buffer:
        """Of the slots, cleared if that was put off."""
        self._clear_now()
        return self._memory

    def _allocate(self, stream: Any) -> None:
        self._memory = self.engine.allocate(self._base_bytes, stream)

    def _describe(self) -> Table:
        universal = self.family == "universal"
        prime = PRIMES[self.spec.word_bytes] if universal else 1 << 64
        draw = self._random.randrange
        return Table(
            slots=self._memory.ptr,
            buckets=self.buckets,
            chain_limit=self.design.chain_limit(self.slots),
            multiplier=tuple(draw(1, prime) for _ in range(MAX_HASHES)),
            addend=tuple(draw(prime) for _ in range(MAX_HASHES)),
            **self._constants,
        )

    def sibling(self, slots: int, seed: int, keys: int = 0, stream: Any = None) -> Self:
        """An empty table of the same kind with other hash constants; ``keys`` as for the class."""
        like = (self.engine, self.design, self.parameters, self.spec)
        return type(self)(*like, slots, seed, self.family, keys, self.fixed, stream)

    def rehash(self, stream: Any = None) -> None:
        """Forget all keys and draw other hash constants, in the same memory."""
        self._table = self._describe()
        self.clear(stream)

    def put_back(self, table: Table, slots: npt.NDArray[np.uint8], stream: Any = None) -> None:
        """Restore the hash constants and the bytes of the slots from before a `rehash`."""
        self._table, self._cleared = table, True
        piece = 1 << 20
        for at in range(0, len(slots), piece):
            held = self.engine.from_host(slots[at : at + piece], stream)
            self.engine.copy(self._memory.ptr + at, held.ptr, held.nbytes, stream)

    def clear(self, stream: Any = None) -> None:
        """Forget all keys. Where a build may follow, which needs no cleared memory, that is put off."""
        self._cleared = False
        if not self._builds:
            self._clear_now(stream)

    def _clear_now(self, stream: Any = None) -> None:
        """Clear the memory if that was put off. Of several lookups that come at once, one does; the others wait."""
        if self._cleared:
            return
        with self._clearing:
            if not self._cleared:
                self.engine.fill(self._memory.ptr, 0xFF, self._base_bytes, stream)
                self._cleared = True

    @property
    def _builds(self) -> bool:
        """Whether the engine and the design have the kernels of `build`."""
        return self.engine.stage_bytes > 0 and self.design.fills_first_bucket(self.parameters)

    def snapshot(self, stream: Any = None) -> Buffer:
        """A copy of the slots."""
        copy = self.engine.allocate(sum(nbytes for _, nbytes in self.regions), stream)
        at = copy.ptr
        for region, nbytes in self.regions:
            self.engine.copy(at, region, nbytes, stream)
            at += nbytes
        return copy

    def restore(self, snapshot: Buffer, stream: Any = None) -> None:
        """Put a copy back."""
        at, end = snapshot.ptr, snapshot.ptr + snapshot.nbytes
        for region, nbytes in self.regions:
            if at + nbytes <= end:
                self.engine.copy(region, at, nbytes, stream)
            at += nbytes

    @property
    def regions(self) -> list[tuple[int, int]]:
        """Address and bytes of all memory that holds pairs."""
        return [(self.memory.ptr, self._base_bytes)]

    def _parts(self) -> list[tuple[int, int, int]]:
        """Address, slots and hashed buckets of each array of buckets."""
        return [(self.memory.ptr, self.total_slots, self.buckets)]
