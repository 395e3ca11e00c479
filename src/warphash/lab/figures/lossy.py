"""Build tables that drop the pairs without a slot, as the cuckoo tables of Dynamic Hash Tables on GPUs do.

No public table loses a pair: it grows, or refuses the batch. The paper's MegaKV and CUDPP lose some, and its Figure 9
and Tables 4 to 8 show them at load factors where ours would grow. So the laboratory has an insert of its own
(``lab/kernels/lossy.cuh``), for distinct keys and values of 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...designs import registry
from ...errors import ParameterError
from ...runtime.abi import BucketBatch
from ...runtime.devices import engine_for
from ...runtime.engine import Buffer, Engine, KernelSpec
from ...storage.scratch import ReportBuffer
from ..bench import turns
from ..data.workloads import first_of_each
from .arrays import array_of

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting
    from ..data.workloads import Workload

__all__ = ["DROPPING", "LOSSY", "Lossy", "distinct_pairs", "measure_lossy"]

LOSSY = KernelSpec("lossy", 0, 0, 0, header="lossy.cuh", package="warphash.lab")
"""The kernels of the inserts that drop pairs."""

DROPPING = {"megakv": "drop_megakv", "cuckoo": "drop_cuckoo"}
"""Their names, by design."""

_STREAM = 0
"""The stream on which the clock records its events."""


@dataclass(frozen=True)
class Lossy:
    """What a build that drops pairs has made.

    Attributes
    ----------
    keys, dropped
        Distinct keys of the workload, and how many of them are not in the table.
    build_per_s, find_per_s
        Pairs per second of the build, and keys per second of a find of all keys.
    mismatches
        Wrong values; keys that are neither found nor dropped; and pairs of the table that were not found, or are there
        twice.
    """

    keys: int
    dropped: int
    build_per_s: float
    find_per_s: float
    mismatches: int


def distinct_pairs(workload: Workload, lab: Lab) -> tuple[Any, Any]:
    """One pair of each key of a workload, in the order of the workload: keys and values, of `Lab.arrays`."""
    assert workload.values is not None
    arrays = lab.arrays
    keys, values = arrays.asarray(workload.keys), arrays.asarray(workload.values)
    order = lab.argsort(keys)
    with turns.away_with(arrays):
        kept = arrays.zeros(len(keys), bool)
        kept[order[first_of_each(keys[order], arrays)]] = True
        return keys[kept], values[kept]


def measure_lossy(lab: Lab, workload: Workload, setting: Setting, load_factor: float | None, seed: int = 1) -> Lossy:
    """Build a table of a workload's distinct keys in one batch, and find all of them.

    The table has as many slots as give ``load_factor`` with all keys.

    Raises
    ------
    ParameterError
        If the design has no insert that drops pairs, or keys or values do not have 32 bits.
    """
    design = registry.get(setting.design).name
    if design not in DROPPING or workload.pair_bytes != 8:
        raise ParameterError(f"{', '.join(DROPPING)} drop pairs of 4 + 4 bytes; {setting.design!r} has no such insert")
    keys, values = distinct_pairs(workload, lab)
    n, engine = len(keys), engine_for(lab.device)
    table: Any = lab.empty(workload, setting, load_factor, capacity=n, on_full="raise", seed=seed)
    array: Any = array_of(table)
    words = [_copied(lab, engine, column) for column in (keys, values)]
    report, program = ReportBuffer(engine, _STREAM), engine.program(LOSSY)

    def clear() -> None:
        array.clear(_STREAM)
        report.reset(_STREAM)

    def build() -> None:
        batch = BucketBatch(n=n, keys=words[0].ptr, values=words[1].ptr, report=report.ptr, random=seed)
        program.run(DROPPING[design], array.table, batch, n, _STREAM)

    build_s = float(np.median(lab.timed(build, clear)))
    dropped = report.read(_STREAM).displaced
    out, flags = engine.allocate(4 * n, _STREAM), engine.allocate(n, _STREAM)
    batch = BucketBatch(n=n, keys=words[0].ptr, out_values=out.ptr, out_flags=flags.ptr)
    find_s = float(np.median(lab.timed(lambda: array.program.run("find", array.table, batch, n, _STREAM))))
    found = _array_of(lab, engine, flags, n, np.uint8).astype(bool)
    answers = _array_of(lab, engine, out, n, values.dtype)
    wrong = abs(n - dropped - int(found.sum())) + int((found & (answers != values)).sum())
    held_keys, held_values = words[0], out  # their memory is free now
    held = min(n, array.scan(n, held_keys.ptr, held_values.ptr, _STREAM))
    there = _array_of(lab, engine, held_keys, held, keys.dtype)
    theirs = _array_of(lab, engine, held_values, held, values.dtype)
    wrong += lab.oracle(keys[found], values[found]).check_items(there, theirs)
    return Lossy(n, dropped, n / build_s, n / find_s, wrong)


def _copied(lab: Lab, engine: Engine, column: Any) -> Buffer:
    """A copy of an array of `Lab.arrays` in memory of the engine."""
    if lab.arrays is np:
        return engine.from_host(column, _STREAM)
    held = engine.allocate(column.nbytes, _STREAM)
    engine.copy(held.ptr, lab.address_of(column), column.nbytes, _STREAM)
    return held


def _array_of(lab: Lab, engine: Engine, held: Buffer, n: int, dtype: Any) -> Any:
    """The first ``n`` items in memory of the engine, as an array of `Lab.arrays`."""
    if lab.arrays is np:
        return engine.to_host(held.ptr, dtype, n, _STREAM)
    made = lab.arrays.empty(n, dtype)
    engine.copy(lab.address_of(made), held.ptr, made.nbytes, _STREAM)
    return made
