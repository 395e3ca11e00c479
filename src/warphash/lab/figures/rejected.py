"""Measure the two variants that the authors of HH Hash tried and gave up.

- A random order of functions. In each round, a pair without a slot draws which of its functions it tries. The authors
  expected that more rounds would end in a layout, and report that the rounds stalled. `measure_orders` counts the
  buckets that have a layout after a number of rounds, under the first seeds, in both orders. In rounds, all displaced
  pairs go to the next subtable. In a random order, a share 1 / m of the displaced pairs goes back to the slot that they
  have just lost, and displaces its new owner. The count does not depend on the device.
- A sort by buckets. A batch is sorted by the bucket of each key, so that the buckets are worked upon one after another.
  The authors report that the merge sort took 80 per cent of the time. `measure_sorted` times the steps of such a build.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ParameterError
from ...runtime.abi import TwoLevelBatch
from ...runtime.devices import engine_for
from ...runtime.engine import KernelSpec
from ...storage.batch import Batch
from ...storage.scratch import ReportBuffer
from ..data.workloads import Workload
from .arrays import array_of
from .traces import pairs

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["REJECTED", "Orders", "Sorted", "measure_orders", "measure_sorted"]

REJECTED = KernelSpec("rejected", 0, 0, 0, header="gpu/rejected.cuh", package="warphash.lab")
"""The kernels of the variants."""

_STREAM = 0
"""The stream on which the clock records its events."""

_BLOCK_ELEMENTS = 256
"""Elements that a launch counts for a bucket: ``kPlacingThreads``."""


@dataclass(frozen=True)
class Orders:
    """Shares of the buckets that have a layout, in two orders of functions; and wrong answers."""

    in_rounds: float
    random: float
    mismatches: int


@dataclass(frozen=True)
class Sorted:
    """Pairs built per second, with and without a sort by buckets; and wrong answers.

    Attributes
    ----------
    sort_share
        Of the time of a build with a sort, the share of the sort itself.
    """

    with_sort: float
    without_sort: float
    sort_share: float
    mismatches: int


def measure_orders(lab: Lab, setting: Setting, load_factor: float, n: int, rounds: int, seed: int = 1) -> Orders:
    """Count the buckets that find a layout in so many rounds, of the trace's first ``n`` pairs."""
    setting = replace(setting, parameters={**setting.parameters, "rounds": rounds})
    engine, array = engine_for(lab.device), _array(lab, setting, load_factor, n, seed)
    keys, values = (engine.from_host(column, _STREAM) for column in pairs(n))
    report = ReportBuffer(engine, _STREAM)
    engine.fill(array.table.counters, 0, 4 * array.buckets, _STREAM)
    batch = TwoLevelBatch(n=n, keys=keys.ptr, values=values.ptr, report=report.reset(_STREAM))
    array.program.run("scatter", array.table, batch, n, _STREAM)
    wrong = report.read(_STREAM).unplaced
    shares = []
    for entry in ("layout_rounds", "layout_random"):
        batch = TwoLevelBatch(n=array.buckets, report=report.reset(_STREAM), random=seed)
        engine.program(REJECTED).run(entry, array.table, batch, array.buckets * _BLOCK_ELEMENTS, _STREAM)
        counts = report.read(_STREAM)
        wrong += int(counts.changed + counts.unplaced != array.buckets)
        shares.append(counts.changed / array.buckets)
    in_rounds, random = shares
    return Orders(in_rounds, random, wrong)


def measure_sorted(lab: Lab, setting: Setting, load_factor: float, n: int, seed: int = 1) -> Sorted:
    """Time a build of the trace's first ``n`` pairs, and a build that first sorts them by their buckets.

    Raises
    ------
    ParameterError
        On a GPU without CuPy.
    """
    if lab.device.startswith("cuda") and lab.arrays is np:
        raise ParameterError("a sort by buckets on a GPU is CuPy's: install CuPy")
    engine, array, arrays = engine_for(lab.device), _array(lab, setting, load_factor, n, seed), lab.arrays
    keys, values = map(arrays.asarray, pairs(n))
    ids, program = arrays.empty(n, "uint32"), engine.program(REJECTED)
    batch = TwoLevelBatch(n=n, keys=lab.address_of(keys), out_counts=lab.address_of(ids))
    made: dict[str, Any] = {}

    def sort() -> None:
        made["order"] = arrays.argsort(ids, kind="stable")

    def gather() -> None:
        made["columns"] = [keys[made["order"]], values[made["order"]]]

    def build(columns: Any) -> None:
        keys, values = map(lab.address_of, columns)
        made["outcome"] = array.build(Batch(keys, values, n, stream=_STREAM))

    without_s = min(lab.timed(partial(build, (keys, values))))
    wrong = n - made["outcome"].changed
    steps_s = [
        min(lab.timed(partial(program.run, "bucket_ids", array.table, batch, n, _STREAM))),
        min(lab.timed(sort)),
        min(lab.timed(gather)),
        min(lab.timed(lambda: build(made["columns"]))),
    ]
    wrong += n - made["outcome"].changed
    wrong += int((ids[made["order"]][1:] < ids[made["order"]][:-1]).sum())
    return Sorted(n / sum(steps_s), n / without_s, steps_s[1] / sum(steps_s), wrong)


def _array(lab: Lab, setting: Setting, load_factor: float, n: int, seed: int) -> Any:
    """The memory of an empty table with room for ``n`` pairs, and its kernels."""
    keys, values = pairs(1)
    table = lab.empty(Workload("trace", keys, values, keys[:0]), setting, load_factor, capacity=n, seed=seed)
    return array_of(table)
