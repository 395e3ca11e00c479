"""An array of several subtables, one of which at a time is made twice or half as large: its memory and its kernels.

The kernels are those of ``kernels/subtables/``: ``bulk.cuh``, ``insert.cuh`` and ``resize.cuh``. The head of
``lines.cuh`` tells what a subtable is, and which one a key goes to first.

Memory, sizes and what kernels are told of them lie in one `SubtableSet`. A resize makes another set, launches its
kernel with that, and makes it the array's by one assignment. The kernels of a resize only read the old copy of the
subtable, so until that assignment the array is as it was. How many keys each subtable has is counted from the reports
of kernels, and from the slots if an update was interrupted (`SubtableArray.count_slots`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...designs.layout import BUCKET_WORDS_BYTES
from ...errors import ParameterError
from ...runtime.abi import (
    DISPLACED_CAPACITY,
    LEFTOVER,
    MOST_SUBTABLES,
    RESERVED_KEYS,
    RESERVED_SUBTABLE,
    Flag,
    SubtableBatch,
    SubtableTable,
)
from ...runtime.engine import Buffer
from ...runtime.memory import bytes_at
from .. import policies
from ..batch import Batch
from ..elements import Elements, pieces
from ..hash_constants import draw_constants, range_of
from ..lookup import LAUNCH_ELEMENTS, NO_FIELDS, launch_find
from ..scratch import Allocate, Scratch, zeroed_report
from ..slots import MemoryUse, SubtableFigures, TableKind
from ..update.pairs import Pairs
from .account import Account
from .arena import Arena
from .coordination import program_of
from .insert import Insert, Piece, Workspace
from .routing import route_empty, route_resized

__all__ = ["Halving", "Subtable", "SubtableArray", "SubtableSet"]

MOST_SUBTABLE_BUCKETS = 1 << 27
"""Buckets of a subtable are numbered in 28 bits, and the slots of one that is halved in 32."""

SETTLED, SETTLED_UNIQUE = 1 << 22, 1 << 24
"""Elements that go through the kernels of an insert together: so that claims stay in a GPU's cache; without claims."""

RESERVE_BYTES = 1 << 12
"""Of host memory to undo a batch with where the device has no memory left; more for pairs so wide that not
`_RESERVED_PAIRS` can be placed in it. An engine has such pieces at hand (``runtime/cuda/pinned.py``)."""

_RESERVED_PAIRS = 8
"""Displaced pairs, however wide, that there is always room to place."""

_RESERVED_ALIGNMENT_BYTES = 6 * 256
"""Of an insert in the reserve: six arrays, each aligned."""

_WARP = 32


class Subtable(NamedTuple):
    """Memory and buckets of one subtable."""

    memory: Buffer
    buckets: int


@dataclass(frozen=True)
class SubtableSet:
    """The subtables and what kernels are told of them.

    Attributes
    ----------
    subtables
        Each at most twice as large as another (Dynamic Hash Tables on GPUs, section V-A); the reserved buckets last.
    """

    subtables: tuple[Subtable, ...]
    table: SubtableTable
    slots_per_bucket: int

    @cached_property
    def sizes(self) -> list[int]:
        """Buckets of each subtable."""
        return [subtable.buckets for subtable in self.subtables[:-1]]

    @cached_property
    def slots(self) -> int:
        """Slots for keys, those of the reserved buckets not included."""
        return sum(self.sizes) * self.slots_per_bucket

    @cached_property
    def nbytes(self) -> int:
        """Bytes of all subtables."""
        return sum(subtable.memory.nbytes for subtable in self.subtables)

    @property
    def numbered(self) -> list[tuple[int, Subtable]]:
        """All subtables, with the numbers that kernels know them by."""
        return _numbered(self.subtables)


def _numbered(subtables: tuple[Subtable, ...]) -> list[tuple[int, Subtable]]:
    return [*enumerate(subtables[:-1]), (RESERVED_SUBTABLE, subtables[-1])]


class Halving(NamedTuple):
    """A subtable that is made half as large.

    Attributes
    ----------
    number, old
        Which one, and its copy of before: it holds all its pairs until the halving ends.
    resized
        What the array's subtables become.
    insert
        Places the residuals, which found no slot in the half, in other subtables.
    residuals, flags
        The elements of the old copy that these are, and what became of each.
    """

    number: int
    old: Subtable
    resized: SubtableSet
    insert: Insert
    residuals: Buffer
    flags: Buffer


class SubtableArray:
    """Subtables in the memory of one engine.

    Parameters
    ----------
    sizes
        Buckets of each subtable.
    seed
        Of the hash constants and the victims of evictions.
    family
        One of `hash_constants.HASHES`.

    Attributes
    ----------
    current
        The subtables, and what kernels are told of them. A resize replaces it by one assignment.
    keys
        Of each subtable, those of the reserved buckets not included.
    random
        For the hash constants, and the victims of each launch.
    workspace
        What updates need beside the subtables.
    account
        Allocates the subtables, and the working memory of the operations that resize them.
    """

    batch_type = SubtableBatch

    def __init__(self, kind: TableKind, sizes: Sequence[int], seed: int, family: str, stream: Any = None) -> None:
        self.engine, self.design, self.parameters, self.spec = self.kind = kind
        engine, design, parameters, spec = kind
        if max(sizes) > MOST_SUBTABLE_BUCKETS:
            raise ParameterError(
                f"a subtable has at most {MOST_SUBTABLE_BUCKETS:,} buckets, and {sum(sizes) * spec.slots_per_bucket:,} "
                f"slots in {len(sizes)} subtables make {max(sizes):,}: use more subtables"
            )
        self.seed, self.family = seed, family
        self.random = random.Random(seed)
        self.program = program_of(engine, spec, parameters["coordination"])
        self.workspace = Workspace(engine, self.program, spec.slot_bytes, stream)
        self._reserve = engine.allocate_pinned(
            max(RESERVE_BYTES, _RESERVED_ALIGNMENT_BYTES + _RESERVED_PAIRS * self._reserved_bytes_per_pair)
        )
        self.account = Account(engine)
        reserved = 1 if spec.slots_per_bucket >= 3 else 3
        subtables = tuple(Subtable(self._memory_of(buckets, stream), buckets) for buckets in (*sizes, reserved))
        table = self._describe()
        table.chain_limit = design.chain_limit(sum(sizes) * spec.slots_per_bucket)
        self._enter(table, *_numbered(subtables))
        route_empty(table, parameters["routing"], sizes)
        self.current = SubtableSet(subtables, table, spec.slots_per_bucket)
        self.find_fields = NO_FIELDS
        self.keys: tuple[int, ...] = (0,) * len(sizes)
        self._empty(stream)

    def _describe(self) -> SubtableTable:
        """Hash constants, and what the parameters say."""
        end = range_of(self.family, self.spec.word_bytes)
        *salts, routing_salt = (self.random.randrange(1, end) for _ in range(MOST_SUBTABLES + 1))
        drawn = draw_constants(self.random, self.family, self.spec.word_bytes)
        return SubtableTable(
            digest_point=drawn["multiplier"][0],
            salts=tuple(salts),
            addend=drawn["addend"],
            routing_salt=routing_salt,
            **dict(self.spec.constants),
        )

    def _enter(self, table: SubtableTable, *subtables: tuple[int, Subtable]) -> None:
        """Write to ``table`` where subtables of these numbers are."""
        for number, (memory, buckets) in subtables:
            table.bases[number], table.sizes[number] = memory.ptr, buckets
            table.bucket_words[number] = memory.ptr + buckets * self._line_bytes

    def sibling(self, sizes: Sequence[int], seed: int, stream: Any = None) -> SubtableArray:
        """An empty array with other hash constants."""
        return SubtableArray(self.kind, sizes, seed, self.family, stream)

    def copy(self, stream: Any = None) -> SubtableArray:
        """An array with the same pairs and hash constants in memory of its own."""
        other = self.sibling(self.sizes, self.seed, stream)
        for ours, its in zip(self.current.subtables, other.current.subtables, strict=True):
            self.engine.copy(its.memory.ptr, ours.memory.ptr, ours.memory.nbytes, stream)
        table = SubtableTable.from_buffer_copy(self.table)
        other._enter(table, *other.current.numbered)
        other.current = replace(other.current, table=table)
        other.keys = self.keys
        return other

    # ---- memory
    def _memory_of(self, buckets: int, stream: Any) -> Buffer:
        return self.account.allocate(self._bytes_of(buckets), stream)

    def _bytes_of(self, buckets: int) -> int:
        return buckets * (self._line_bytes + BUCKET_WORDS_BYTES)

    @property
    def _line_bytes(self) -> int:
        """Of the keys and values of a bucket."""
        return self.spec.slots_per_bucket * self.spec.slot_bytes

    @property
    def table(self) -> SubtableTable:
        """What kernels are told."""
        return self.current.table

    @property
    def sizes(self) -> list[int]:
        """Buckets of each subtable."""
        return self.current.sizes

    @property
    def buckets(self) -> int:
        """Buckets of all subtables, the reserved ones not included."""
        return sum(self.sizes)

    @property
    def slots(self) -> int:
        """Slots for keys, those of the reserved buckets not included."""
        return self.current.slots

    @property
    def nbytes(self) -> int:
        """Bytes of all subtables."""
        return self.current.nbytes

    @property
    def peak_nbytes(self) -> int:
        """Most bytes held at one time: by the subtables, and as working memory of the operations that resize them."""
        return self.account.peak_bytes

    def memory_use(self) -> MemoryUse:
        """What the memory is used for."""
        figures = tuple(
            SubtableFigures(buckets * self.spec.slots_per_bucket, keys)
            for buckets, keys in zip(self.sizes, self.keys, strict=True)
        )
        return MemoryUse(sum(map(self._bytes_of, self.sizes)), subtables=figures)

    def clear(self, stream: Any = None) -> None:
        """Forget all keys, and the routing that they had. May be run again if it was interrupted."""
        self._empty(stream)
        table = SubtableTable.from_buffer_copy(self.table)
        route_empty(table, self.parameters["routing"], self.sizes)
        self.current = replace(self.current, table=table)
        self.keys = (0,) * len(self.sizes)

    def _empty(self, stream: Any) -> None:
        for memory, buckets in self.current.subtables:
            self.engine.fill(memory.ptr, 0xFF, buckets * self.spec.slots_per_bucket * self.spec.word_bytes, stream)
            self._clear_words(memory, buckets, stream)

    def _clear_words(self, memory: Buffer, buckets: int, stream: Any) -> None:
        """Free the locks of a subtable, and empty its overflow filter."""
        self.engine.fill(memory.ptr + buckets * self._line_bytes, 0, buckets * BUCKET_WORDS_BYTES, stream)

    # ---- operations that change nothing
    def scan(self, room: int, out_keys: int, out_values: int, stream: Any = None) -> int:
        """Copy up to ``room`` pairs out, in no particular order; how many there are. Waits."""
        report = zeroed_report(self.engine, stream)
        batch = SubtableBatch(out_keys=out_keys, out_values=out_values)
        for number, subtable in self.current.numbered:
            self._scan(number, subtable, batch, room, report.ptr, stream)
        return report.read(stream).winners

    def _scan(self, number: int, subtable: Subtable, batch: SubtableBatch, room: int, report: int, stream: Any) -> None:
        batch.n, batch.subtable = subtable.buckets * self.spec.slots_per_bucket, number
        batch.report, batch.room = report, room
        self.program.run("scan", self.table, batch, batch.n, stream)

    def count_slots(self, stream: Any = None) -> int:
        """Count the keys of each subtable from its slots; how many all hold. Allocates nothing. Waits."""
        keys = []
        for number, subtable in self.current.numbered:
            self.workspace.zero_report(stream)
            self._scan(number, subtable, SubtableBatch(), 0, self.workspace.report.ptr, stream)
            keys.append(self.workspace.report.read(stream).winners)
        self.keys = tuple(keys[:-1])
        return sum(keys)

    def broken_buckets(self, stream: Any = None) -> int:
        """Buckets that break the rules of their layout; 0 is right. Waits."""
        report = zeroed_report(self.engine, stream)
        for number, subtable in self.current.numbered:
            batch = SubtableBatch(n=subtable.buckets, report=report.ptr, subtable=number)
            self.program.run("audit", self.table, batch, batch.n, stream)
        return report.read(stream).mismatches

    # ---- keys come and go
    def begin_move(
        self, piece: Piece, stream: Any = None, allocate: Allocate | None = None, chain_limit: int | None = None
    ) -> Insert:
        """An insert of distinct pairs that a resize moves. The working memory is counted in `account`."""
        allocate = allocate or self.account.allocate
        memory = allocate(min(piece.n, DISPLACED_CAPACITY) * self.spec.slot_bytes, stream)
        scratch = Scratch((piece.n, False, True), memory, self.workspace.report, SubtableBatch(displaced=memory.ptr), 0)
        return Insert(self, piece, scratch, False, allocate, stream, chain_limit)

    def combinations(self, given: Batch) -> list[SubtableBatch]:
        """What `combine` launches: the operation, for the values of the keys whose elements are not flagged as new."""
        spec = self.spec
        return [
            SubtableBatch(
                n=min(LAUNCH_ELEMENTS, given.n - at),
                keys=given.keys + at * spec.word_bytes,
                values=given.values + at * spec.value_bytes,
                out_flags=given.flags + at,
                op=given.op,
                kind=given.kind,
                report=self.workspace.report.ptr,
            )
            for at in range(0, given.n, LAUNCH_ELEMENTS)
        ]

    def combine(self, batches: list[SubtableBatch], stream: Any = None) -> None:
        """Launch the batches that are left of `combinations`, and take each from the list. Allocates nothing."""
        self.workspace.zero_report(stream)
        run, table = self.program.run, self.table
        while batches:
            run("combine", table, batch := batches.pop(), batch.n, stream)

    def begin_erase(self, keys: int, n: int, flags: int, only: Elements, stream: Any = None) -> None:
        """Erase keys; nothing, if the insert before has displaced pairs."""
        self.workspace.zero_report(stream)
        for at, count, indices, length in pieces(self.engine, n, min(n, LAUNCH_ELEMENTS), only, stream):
            batch = SubtableBatch(
                n=count,
                keys=keys + at * self.spec.word_bytes,
                indices=indices,
                count=length,
                out_flags=flags and flags + at,
                report=self.workspace.report.ptr,
            )
            self.program.run("erase", self.table, batch, count, stream)

    def erased(self) -> int:
        """How many keys the last erase found, which was asked for. Waits."""
        erased = self.workspace.answer()
        self.count(-placed for placed in erased.placed)
        return erased.changed

    def count(self, placed: Iterable[int]) -> None:
        """Count keys that came into each subtable; fewer than none have left it."""
        self.keys = tuple(keys + more for keys, more in zip(self.keys, placed, strict=False))

    # ---- where the device has no memory left: in host memory, a few at a time
    def erase_listed(self, keys: int, which: npt.NDArray[np.int64], stream: Any = None) -> None:
        """Erase the keys of ``which`` elements. Allocates nothing. Waits."""
        words = self._reserved_bytes().view(np.uint32)  # the length, in 64 bits, then the list
        for at in range(0, len(which), len(words) - 2):
            some = which[at : at + len(words) - 2]
            words[:2], words[2 : 2 + len(some)] = (len(some), 0), some
            self.workspace.zero_report(stream)
            batch = SubtableBatch(n=len(some), keys=keys, indices=self._reserve.ptr + 8, count=self._reserve.ptr)
            batch.report = self.workspace.report.ptr
            self.program.run("erase", self.table, batch, batch.n, stream)
            self.workspace.ask(self.table, None, True, stream)
            self.erased()

    def absent(self, pairs: Pairs, stream: Any = None) -> Pairs:
        """The pairs whose keys are not in the table, each key once. Allocates nothing. Waits."""
        pairs = pairs.where(np.unique(pairs.keys, return_index=True)[1])
        memory, width, there = self._reserved_bytes(), self.spec.word_bytes, np.zeros(pairs.n, np.bool_)
        most = len(memory) // (width + 1)
        for at in range(0, pairs.n, most):
            keys = pairs.keys[at : at + most]
            memory[: keys.nbytes] = keys.view(np.uint8)
            launch_find(self, self._reserve.ptr, len(keys), 0, self._reserve.ptr + keys.nbytes, 0, stream)
            self.engine.synchronize(stream)
            there[at : at + most] = memory[keys.nbytes : keys.nbytes + len(keys)]
        return pairs.where(~there)

    @property
    def reserved_pairs(self) -> int:
        """Pairs that `begin_move` can work on in a `reserved_arena`."""
        return (self._reserve.nbytes - _RESERVED_ALIGNMENT_BYTES) // self._reserved_bytes_per_pair

    def reserved_arena(self) -> Arena:
        """The memory that is kept for the worst case. One insert at a time uses it."""
        return Arena(self._reserve)

    @property
    def _reserved_bytes_per_pair(self) -> int:
        """Of a pair, where it comes from and where it may be displaced to; a spare value, a flag and an element."""
        return 2 * self.spec.slot_bytes + self.spec.value_bytes + 1 + 4

    def _reserved_bytes(self) -> npt.NDArray[np.uint8]:
        return bytes_at(self._reserve.ptr, self._reserve.nbytes)

    # ---- sizes
    def take_over(self, other: SubtableArray, stream: Any = None) -> bool:
        """Place all pairs of another array in this empty one; whether all found slots. Waits."""
        n = sum(other.keys) + RESERVED_KEYS  # the keys of the reserved buckets are not counted
        keys = self.account.allocate(n * self.spec.word_bytes, stream)
        values = self.account.allocate(max(1, n * self.spec.value_bytes), stream)
        flags = self.account.allocate(n, stream)
        n = other.scan(n, keys.ptr, values.ptr if self.spec.value_bytes else 0, stream)
        for at in range(0, n, SETTLED_UNIQUE):
            piece = Piece(
                keys.ptr + at * self.spec.word_bytes,
                values.ptr + at * self.spec.value_bytes,
                flags.ptr + at,
                min(SETTLED_UNIQUE, n - at),
            )
            insert = self.begin_move(piece, stream)
            insert.settle(unique=True)
            insert.place()
            if not insert.outcome().complete:
                return False
        return True

    def enlarge(self, number: int, stream: Any = None, memory: Buffer | None = None) -> None:
        """Make one subtable twice as large, in one kernel (Dynamic Hash Tables on GPUs, section V-C).

        ``memory``, if it was taken, of `memory_to_enlarge`.

        Raises
        ------
        MemoryError
            If there is none for the new copy beside the old one, or more buckets than can be numbered; the array is as
            it was.
        """
        old = self.current.subtables[number]
        memory = memory or self.memory_to_enlarge(number, stream)
        resized = self._resized(number, Subtable(memory, 2 * old.buckets))
        batch = SubtableBatch(
            n=old.buckets * self.spec.slots_per_bucket, source_lines=old.memory.ptr, source_buckets=old.buckets
        )
        batch.subtable = number
        self.program.run("enlarge", resized.table, batch, batch.n, stream)
        self.current = resized

    def memory_to_enlarge(self, number: int, stream: Any = None) -> Buffer:
        """What `enlarge` will take for the new copy."""
        buckets = 2 * self.sizes[number]
        if buckets > MOST_SUBTABLE_BUCKETS:
            raise MemoryError(f"a subtable has at most {MOST_SUBTABLE_BUCKETS:,} buckets: use more subtables")
        return self._memory_to_resize(buckets, stream)

    def memory_to_undo(self, memory: Buffer, number: int, stream: Any = None) -> Buffer | None:
        """The old copy of a subtable that was halved, as memory to `enlarge` with; None if the size is another."""
        buckets = 2 * self.sizes[number]
        if memory.nbytes != self._bytes_of(buckets):
            return None
        self._clear_words(memory, buckets, stream)
        return memory

    def begin_halving(self, number: int, stream: Any = None) -> Halving:
        """Take the memory to make one subtable half as large. Nothing of the array changes.

        Raises
        ------
        MemoryError
            As `enlarge`.
        """
        old = self.current.subtables[number]
        assert old.buckets % 2 == 0
        slots = old.buckets // 2 * self.spec.slots_per_bucket
        # A bucket has no more residuals than half of its keys.
        residuals = self.account.allocate(4 * (self.keys[number] // 2 + 1), stream)
        flags = self.account.allocate(2 * slots, stream)
        # The residuals are elements of the old copy, which also has room for the values that they evict.
        piece = Piece(old.memory.ptr, self._values_of(old), flags.ptr, min(slots, DISPLACED_CAPACITY))
        insert = self.begin_move(piece, stream)
        half = Subtable(self._memory_to_resize(old.buckets // 2, stream), old.buckets // 2)
        return Halving(number, old, self._resized(number, half), insert, residuals, flags)

    def halve(self, halving: Halving, stream: Any = None) -> None:
        """Launch the kernels that make a subtable half as large (Dynamic Hash Tables on GPUs, section V-C).

        The second kernel changes other subtables, and comes behind the assignment of `current`. From there on the
        residuals are in the old copy alone until they are placed.
        """
        number, old, batch = halving.number, halving.old, halving.insert.batch
        slots = old.buckets // 2 * self.spec.slots_per_bucket
        batch.leftover, batch.subtable = halving.residuals.ptr, number
        batch.source_lines, batch.source_buckets = old.memory.ptr, old.buckets
        batch.n = -(-slots // _WARP) * _WARP
        self.program.run("halve", halving.resized.table, batch, batch.n, stream)
        self.current = halving.resized
        batch.indices, batch.count = batch.leftover, batch.report + LEFTOVER
        batch.closed, batch.spare_values, batch.unique = number + 1, self._values_of(old), 1
        self.program.run("place", self.table, batch, slots, stream)

    def end_halving(self, halving: Halving, stream: Any = None) -> Pairs:
        """Count what `halve` did; the pairs that have no slot now. Waits.

        The report keeps its counts, as `residuals` needs them.
        """
        outcome = halving.insert.outcome(last=False)
        left = outcome.changed + outcome.unplaced
        self.count(-left if number == halving.number else 0 for number in range(len(self.keys)))
        displaced = halving.insert.displaced(outcome.displaced)
        if not outcome.unplaced:
            return displaced
        listed = self.engine.to_host(halving.residuals.ptr, np.uint32, halving.insert.left, stream)
        flags = self.engine.to_host(halving.flags.ptr, np.uint8, self._slots_of(halving.old), stream)
        return displaced.with_others(self._rows(halving.old, listed[flags[listed] == Flag.UNPLACED], stream))

    def residuals(self, halving: Halving, stream: Any = None) -> Pairs:
        """All residuals of a halving that was interrupted, also those that `halve` has placed; none before `halve`."""
        if any(subtable.memory is halving.old.memory for subtable in self.current.subtables):
            return Pairs.none(self.spec)
        n = self.workspace.report.read(stream).leftover
        listed = self.engine.to_host(halving.residuals.ptr, np.uint32, n, stream)
        return self._rows(halving.old, listed, stream)

    def _rows(self, subtable: Subtable, slots: npt.NDArray[Any], stream: Any) -> Pairs:
        """The pairs in some slots of a subtable."""
        keys, values, total = subtable.memory.ptr, self._values_of(subtable), self._slots_of(subtable)
        return Pairs.at(self.engine, self.spec, keys, values, total, stream).where(slots)

    def _slots_of(self, subtable: Subtable) -> int:
        return subtable.buckets * self.spec.slots_per_bucket

    def _values_of(self, subtable: Subtable) -> int:
        """Address of the values of a subtable."""
        return subtable.memory.ptr + self._slots_of(subtable) * self.spec.word_bytes

    def _memory_to_resize(self, buckets: int, stream: Any) -> Buffer:
        """For a copy of a subtable, whose kernel fills its lines and its overflow filter."""
        memory = self._memory_of(buckets, stream)
        self._clear_words(memory, buckets, stream)
        return memory

    def _resized(self, number: int, subtable: Subtable) -> SubtableSet:
        """The subtables, one of them replaced by another copy."""
        subtables = (*self.current.subtables[:number], subtable, *self.current.subtables[number + 1 :])
        table = SubtableTable.from_buffer_copy(self.table)
        self._enter(table, (number, subtable))
        sizes = [subtable.buckets for subtable in subtables[:-1]]
        table.chain_limit = self.design.chain_limit(sum(sizes) * self.spec.slots_per_bucket)
        route_resized(table, self.parameters["routing"], number, sizes, self.keys)
        return SubtableSet(subtables, table, self.spec.slots_per_bucket)


def sizes_for(slots: int, slots_per_bucket: int, subtables: int) -> list[int]:
    """Buckets of equal subtables that have at least so many slots between them."""
    return policies.subtable_sizes(max(1, -(-slots // slots_per_bucket)), subtables)
