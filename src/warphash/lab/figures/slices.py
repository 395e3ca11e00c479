"""Measure inserts and finds that come interleaved, slice by slice: Stadium Hashing, section IV-A, Figures 14 to 17.

Keys and values have 4 bytes each. A slice has as many inserts as finds, in groups of 32 of one kind. A slice asks for
the keys that the slice before it has inserted; or for half of these, and for as many absent keys. So the first slice
has inserts alone, and one more slice at the end has finds alone. All slices are launched in a row. The host waits for
the last one only.

- ``stadium`` launches one kernel for each slice (``lab/kernels/interleaved.cuh``). Its lanes are those of the table: a
  lane for each operation (Stash), collaborating lanes (clStash), or by the load factor before the slice (hybrid).
- A design that moves keys launches two kernels for each slice, the inserts and then the finds, as in the paper: a find
  beside inserts could miss a key that is on the move. Each kernel is given its own elements without gaps.

The same operations are also measured apart: first all inserts, then all finds. All inserts are one launch, as in the
paper's section II ("all insertions are performed before lookups"); or one launch for each slice, which leaves the
mixing as the only difference. Inserts vouch that their keys are new, as the inserts of the paper do.

The slots of any design may lie in the memory of the host (Figures 16 and 17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...designs import registry
from ...designs.layout import Tickets
from ...errors import ParameterError
from ...runtime.abi import DISPLACED_CAPACITY, REPORT_WORDS, Flag, Operation, TicketBatch
from ...runtime.devices import engine_for
from ...runtime.engine import KernelSpec, Program
from ..data.workloads import Workload
from .arrays import array_of

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["GROUP", "Operations", "Slices", "draw_operations", "interleaved", "measure_slices"]

_COLLABORATING = Tickets(refilling=frozenset(["interleaved"]))

GROUP = 32
"""Inserts, or finds, in a row."""

_STREAM = 0
"""The stream on which the clock records its events."""
_UNWRITTEN = 0xEE
"""Byte of an answer that no kernel has written."""

Array = npt.NDArray[Any]


def interleaved(spec: KernelSpec, collaborating: bool = False) -> KernelSpec:
    """The kernel of inserts and finds beside each other, for the tables of ``spec``."""
    made = KernelSpec("interleaved", 0, 0, 0, spec.constants, header="interleaved.cuh", package="warphash.lab")
    return replace(made, header="gpu/interleaved.cuh", layout=_COLLABORATING) if collaborating else made


@dataclass(frozen=True)
class Slices:
    """The rate of interleaved slices, and how it compares with the same operations apart.

    Attributes
    ----------
    rate
        Operations per second, inserts and finds together.
    concurrency
        Per cent: the time of all inserts in one launch and of all finds in one launch, over that of the slices.
    mixing
        Per cent: the time of the slices' inserts and then of the slices' finds, over that of the slices.
    insert, find
        Inserts, and finds, per second: all of them in one launch.
    mismatches
        Wrong answers, and pairs that are not in the table at the end, of all these runs.
    """

    rate: float
    concurrency: float
    mixing: float
    insert: float
    find: float
    mismatches: int


class Operations(NamedTuple):
    """The operations of all slices, in columns: inserts, and the finds that ask for the keys of the same slice.

    Attributes
    ----------
    each
        Inserts of a slice, and finds of a slice.
    there, answers
        Whether the keys asked for are present, and their values, or 0.
    """

    each: int
    keys: Array
    values: Array
    asked: Array
    there: npt.NDArray[np.bool_]
    answers: Array

    @property
    def slices(self) -> int:
        """Number of slices that insert."""
        return len(self.keys) // self.each

    def woven(self, inserts: Array, finds: Array) -> Array:
        """A column of inserts and one of finds as the interleaved slices have them.

        A slice has the inserts of its own keys, and the finds that ask for the keys of the slice before it.
        """
        shape = (self.slices - 1, self.each // GROUP, GROUP)
        between = np.stack([inserts[self.each :].reshape(shape), finds[: -self.each].reshape(shape)], axis=2)
        return np.concatenate([inserts[: self.each], between.ravel(), finds[-self.each :]])


def draw_operations(workload: Workload, operations: int, present_share: float, seed: int) -> Operations:
    """Cut a workload into slices of about so many operations each, and draw the keys that are asked for.

    If there are too few keys for two slices of this size, the slices are smaller. A few keys may be left out.

    Parameters
    ----------
    workload
        Distinct keys of 4 bytes with values of 4 bytes.
    present_share
        Share of the keys asked for that are present.

    Raises
    ------
    ParameterError
        If there are too few keys for two groups of inserts.
    """
    assert workload.values is not None
    each = min(operations, len(workload.keys)) // 2 // GROUP * GROUP
    if not each:
        raise ParameterError(f"slices take at least {2 * GROUP} keys and operations, got {len(workload.keys)}")
    slices = len(workload.keys) // each
    n = slices * each
    keys, values, absent = workload.keys[:n], workload.values[:n], workload.absent[:n]
    rng = np.random.default_rng(seed)
    which = rng.permuted(np.arange(n).reshape(slices, each), axis=1).ravel()
    there = np.tile(np.arange(each) < round(present_share * each), (slices, 1))
    there = rng.permuted(there, axis=1).ravel() if present_share < 1 else there.ravel()
    asked = np.where(there, keys[which], absent)
    return Operations(each, keys, values, asked, there, np.where(there, values[which], 0).astype(values.dtype))


def measure_slices(lab: Lab, drawn: Operations, setting: Setting, load_factor: float | None, seed: int = 1) -> Slices:
    """Fill a table by interleaved slices, and by the same operations apart."""
    pairs = Workload("random", drawn.keys, drawn.values, drawn.keys[:0])
    course = _Course(lab, _array(lab, pairs, setting, load_factor, seed), drawn, seed)
    n = len(drawn.keys)
    together_s, wrong = course.run(course.together(), course.check_together)
    apart_s: list[tuple[float, float]] = []
    for pieces in (1, drawn.slices):
        inserts_s, _ = course.run(course.inserts(pieces), None)
        finds_s, missed = course.run(course.finds(pieces), course.check_apart, empties=False)
        apart_s.append((inserts_s, finds_s))
        wrong += missed
    concurrency, mixing = (100 * sum(seconds) / together_s for seconds in apart_s)
    insert, find = (n / seconds for seconds in apart_s[0])
    return Slices(2 * n / together_s, concurrency, mixing, insert, find, wrong)


def _array(lab: Lab, pairs: Workload, setting: Setting, load_factor: float | None, seed: int) -> Any:
    """Empty slots and their kernels. Slots of a design that has no choice of memory are moved to the host."""
    memory = setting.parameters.get("memory", "device")
    chooses = memory in registry.get(setting.design).memories
    parameters = {name: value for name, value in setting.parameters.items() if chooses or name != "memory"}
    table = lab.empty(pairs, replace(setting, parameters=parameters), load_factor, on_full="raise", seed=seed)
    array = array_of(table)
    if not chooses:
        array._memory = array.engine.allocate_pinned(array.nbytes)
        array.table.slots = array._memory.ptr
    return array


Launch = Callable[[], None]


class _Course:
    """The operations on a device, and the launches that do them on a table.

    Parameters
    ----------
    array
        The memory of the table, and its kernels.
    """

    def __init__(self, lab: Lab, array: Any, drawn: Operations, seed: int) -> None:
        self._lab, self._array, self._drawn, self._seed = lab, array, drawn, seed
        self._engine = engine = engine_for(lab.device)
        n = len(drawn.keys)
        self._moves_keys = array.design.moves_keys
        self._lanes = None if self._moves_keys else array._lanes
        self._keys, self._values, self._asked = (self._here(c) for c in (drawn.keys, drawn.values, drawn.asked))
        self._out, self._flags = engine.allocate(4 * n, _STREAM), engine.allocate(2 * n, _STREAM)
        self._report = engine.allocate(8 * REPORT_WORDS, _STREAM)
        self._fields = {"report": self._report.ptr, "random": seed}
        if self._moves_keys:
            self._displaced = engine.allocate(array.spec.slot_bytes * min(n, DISPLACED_CAPACITY), _STREAM)
            self._fields["displaced"] = self._displaced.ptr
            return
        nobody = (byte for byte in range(255, -1, -1) if not (drawn.asked == byte * 0x01010101).any())
        self._free_byte = next(nobody)
        finds = np.zeros(n, np.uint32)
        operations = np.repeat(np.array([Operation.INSERT, Operation.FIND], np.uint8), n)
        self._woven_keys = self._here(drawn.woven(drawn.keys, drawn.asked))
        self._woven_values = self._here(drawn.woven(drawn.values, finds))
        self._operations = self._here(drawn.woven(operations[:n], operations[n:]))
        self._woven_out, self._woven_flags = engine.allocate(8 * n, _STREAM), engine.allocate(2 * n, _STREAM)

    def _here(self, column: Array) -> Any:
        return self._engine.from_host(np.ascontiguousarray(column), _STREAM)

    # ---- launches
    def inserts(self, pieces: int) -> list[Launch]:
        """All inserts, in so many launches. One that crosses the threshold of the lanes is two, as of a table."""
        launches = []
        for first, count in self._cut(pieces):
            below = min(count, self._lanes.elements_below(first, self._array.slots, 1.0)) if self._lanes else count
            ends = first + below, first + count
            launches += [self._inserts(at, end - at) for at, end in pairwise((first, *ends)) if end > at]
        return launches

    def finds(self, pieces: int) -> list[Launch]:
        """All finds, in so many launches."""
        return [self._finds(first, count) for first, count in self._cut(pieces)]

    def together(self) -> list[Launch]:
        """All slices."""
        slices, each = self._drawn.slices, self._drawn.each
        inserts, finds = self.inserts(slices), self.finds(slices)
        if self._moves_keys:
            pairs = zip(inserts[1:], finds, strict=False)
            return [inserts[0], *(launch for pair in pairs for launch in pair), finds[-1]]
        edges = [0, *range(each, 2 * slices * each, 2 * each), 2 * slices * each]
        launches: list[Launch] = []
        for number, (first, end) in enumerate(pairwise(edges)):
            batch = TicketBatch(
                n=end - first,
                operations=self._operations.ptr + first,
                keys=self._woven_keys.ptr + 4 * first,
                values=self._woven_values.ptr + 4 * first,
                out_values=self._woven_out.ptr + 4 * first,
                out_flags=self._woven_flags.ptr + first,
                **self._fields,
            )
            run = self._interleaved(number * each).run
            launches.append(partial(run, "interleaved", self._array.table, batch, batch.n, _STREAM))
        return launches

    def _interleaved(self, size: int) -> Program:
        """The kernel of a slice, in a table of so many keys."""
        array, lanes = self._array, self._array.parameters["lanes"]
        late = lanes == "clstash" or (lanes == "hybrid" and size >= array._lanes.threshold * array.slots)
        return self._engine.program(interleaved(array.spec, collaborating=late and self._engine.lanes > 1))

    def _cut(self, pieces: int) -> Iterable[tuple[int, int]]:
        each = len(self._drawn.keys) // pieces
        return ((piece * each, each) for piece in range(pieces))

    def _inserts(self, first: int, count: int) -> Launch:
        batch = self._array.batch_type(
            n=count,
            keys=self._keys.ptr + 4 * first,
            values=self._values.ptr + 4 * first,
            out_flags=self._flags.ptr + first,
            **self._fields,
        )
        program = self._lanes.for_keys(first, self._array.slots) if self._lanes else self._array.program
        return partial(program.run, "place", self._array.table, batch, count, _STREAM)

    def _finds(self, first: int, count: int) -> Launch:
        batch = self._array.batch_type(
            n=count,
            keys=self._asked.ptr + 4 * first,
            out_values=self._out.ptr + 4 * first,
            out_flags=self._flags.ptr + len(self._drawn.keys) + first,
        )
        return partial(self._array.program.run, "find", self._array.table, batch, count, _STREAM)

    # ---- runs
    def run(
        self, launches: list[Launch], check: Callable[[], int] | None, *, empties: bool = True
    ) -> tuple[float, int]:
        """Time launches in a row: least seconds, and the wrong answers of the last run.

        The table is empty before each run, unless the launches search only.
        """

        def all_in_a_row() -> None:
            for launch in launches:
                launch()

        seconds = min(self._lab.timed(all_in_a_row, self._empty if empties else lambda: None))
        return seconds, check() if check else 0

    def _empty(self) -> None:
        """Empty the table, and forget all answers."""
        engine, array = self._engine, self._array
        array.clear(_STREAM)
        engine.fill(self._report.ptr, 0, self._report.nbytes, _STREAM)
        answers = [self._out, self._flags]
        if not self._moves_keys:
            engine.fill(array.table.slots, self._free_byte, array.slots * array.spec.slot_bytes, _STREAM)
            answers += [self._woven_out, self._woven_flags]
        for memory in answers:
            engine.fill(memory.ptr, _UNWRITTEN, memory.nbytes, _STREAM)

    # ---- answers
    def check_together(self) -> int:
        """Wrong answers of the slices, and wrong pairs of the table."""
        if self._moves_keys:
            return self.check_apart()
        drawn, n = self._drawn, len(self._drawn.keys)
        flags = self._back(self._woven_flags.ptr, np.uint8, 2 * n)
        answers = self._back(self._woven_out.ptr, np.uint32, 2 * n)
        inserted = np.full(n, Flag.CHANGED, np.uint8)
        finds = drawn.woven(np.zeros(n, bool), np.ones(n, bool))
        wrong = flags != drawn.woven(inserted, drawn.there.astype(np.uint8))
        wrong |= finds & (answers != drawn.woven(drawn.values, drawn.answers))
        return int(wrong.sum()) + self._wrong_pairs()

    def check_apart(self) -> int:
        """Wrong answers of inserts and finds that ran apart, and wrong pairs of the table."""
        drawn, n = self._drawn, len(self._drawn.keys)
        flags = self._back(self._flags.ptr, np.uint8, 2 * n)
        wrong = int((flags[:n] != Flag.CHANGED).sum())
        answers = self._back(self._out.ptr, np.uint32, n)
        wrong += int(((flags[n:] != drawn.there) | (answers != drawn.answers)).sum())
        return wrong + self._wrong_pairs()

    def _wrong_pairs(self) -> int:
        """Lost, doubled and invented pairs. Each key is found once, and there are no more pairs than keys."""
        drawn, array, n = self._drawn, self._array, len(self._drawn.keys)
        batch = array.batch_type(n=n, keys=self._keys.ptr, out_values=self._out.ptr, out_flags=self._flags.ptr)
        array.program.run("find", array.table, batch, n, _STREAM)
        found = self._back(self._flags.ptr, np.uint8, n)
        values = self._back(self._out.ptr, np.uint32, n)
        pairs: int = array.scan(0, 0, 0, _STREAM)
        return int(((found != 1) | (values != drawn.values)).sum()) + abs(pairs - n)

    def _back(self, ptr: int, dtype: npt.DTypeLike, count: int) -> Array:
        return self._engine.to_host(ptr, dtype, count, _STREAM)
