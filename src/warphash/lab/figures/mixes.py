"""Batches that mix inserts, erases and finds, drawn so that each operation has one right result.

A mix gives four shares: new keys to insert, present keys to erase, present keys to find, and absent keys to find. It is
Γ = (a, b, c, d) of A Dynamic Hash Table for the GPU, section VI-C.

The device chooses the order of the operations, so the right results must not depend on it. Each inserted key is new and
occurs once. Each erased key is present and occurs once. No key that a find expects is erased, and no key that a find
must miss is inserted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ... import Operation
from ...errors import ParameterError
from ..bench import turns
from ..data.workloads import Workload

if TYPE_CHECKING:
    from ..bench.runner import Lab, Measurement, Setting

__all__ = ["Mix", "MixedBatch", "draw", "measure_mix"]

Array = npt.NDArray[Any]

_IN_A_ROW = 16
"""Batches of a run. If one table has too few keys for so many, several tables with the same keys have some each."""

_MOST_KEYS = 1 << 24
"""Of all tables of a run."""


@dataclass(frozen=True)
class Mix:
    """Shares of the four kinds of operations. The shares add up to one."""

    inserts: float
    erases: float
    present: float
    absent: float

    @classmethod
    def of(cls, operation: str) -> Mix:
        """Parse an operation such as ``"mix 50 50 0 0"``, whose shares are in per cent.

        Raises
        ------
        ParameterError
            If ``operation`` is no mix.
        """
        name, *shares = operation.split()
        if name != "mix" or len(shares) != 4 or sum(map(int, shares)) != 100 or min(map(int, shares)) < 0:
            raise ParameterError(f"a mix is 'mix' and four shares that make 100, got {operation!r}")
        return cls(*(int(share) / 100 for share in shares))


@dataclass(frozen=True)
class MixedBatch:
    """Operations in random order on a table of a workload's keys, with the right results.

    Attributes
    ----------
    operations, keys, values
        Arguments of `HashMap.execute`.
    right_values, right_flags
        The results that `HashMap.execute` must return, with a default value of 0.
    kept_keys, kept_values
        The pairs that the table must hold afterwards.
    """

    operations: npt.NDArray[np.uint8]
    keys: Array
    values: Array
    right_values: Array
    right_flags: npt.NDArray[np.bool_]
    kept_keys: Array
    kept_values: Array

    def mismatches(self, values: Array, flags: Array) -> int:
        """How many results are wrong."""
        if len(values) != len(self.keys) or len(flags) != len(self.keys):
            return max(len(self.keys), len(values), len(flags))
        return int(((values != self.right_values) | (flags.astype(bool) != self.right_flags)).sum())


def draw(workload: Workload, n: int, mix: Mix, seed: int) -> MixedBatch:
    """Draw ``n`` operations on a table of all keys of a workload.

    Raises
    ------
    ParameterError
        If the workload has too few keys for so many operations.
    """
    assert workload.values is not None
    rng = np.random.default_rng(seed)
    inserts, erases, present = (round(share * n) for share in (mix.inserts, mix.erases, mix.present))
    absent = n - inserts - erases - present
    new, strange = workload.absent[:inserts], workload.absent[inserts:]
    if len(new) < inserts or erases > len(workload.keys) or (present and erases == len(workload.keys)):
        raise ParameterError(f"{n:,} operations are too many for {len(workload.keys):,} keys")
    if absent and not len(strange):
        raise ParameterError(f"{n:,} operations leave none of {len(workload.absent):,} absent keys to look up")
    places = rng.permutation(len(workload.keys))
    erased, kept = places[:erases], places[erases:]
    found = kept[rng.integers(0, len(kept), present)] if present else kept[:0]
    sought = strange[rng.integers(0, len(strange), absent)] if absent else strange[:0]
    new_values = rng.integers(1, 1 << 31, inserts).astype(workload.values.dtype)

    kinds = np.array([Operation.INSERT, Operation.ERASE, Operation.FIND, Operation.FIND], np.uint8)
    operations = np.repeat(kinds, [inserts, erases, present, absent])
    flags = np.arange(n) < n - absent
    keys = np.concatenate([new, workload.keys[erased], workload.keys[found], sought])
    values, right_values = np.zeros((2, n), workload.values.dtype)
    values[:inserts] = new_values
    right_values[inserts + erases : n - absent] = workload.values[found]
    order = rng.permutation(n)
    return MixedBatch(
        operations[order],
        keys[order],
        values[order],
        right_values[order],
        flags[order],
        np.concatenate([workload.keys[kept], new]),
        np.concatenate([workload.values[kept], new_values]),
    )


def measure_mix(
    lab: Lab,
    workload: Workload,
    setting: Setting,
    load_factor: float | None,
    operation: str,
    n: int,
    *,
    seed: int = 1,
    tables: int | None = None,
) -> Measurement:
    """Measure the operations of a mix per second, ``n`` in a batch, on a table of all keys of a workload.

    The host does not wait between the batches of a run. Every run begins with the same tables, because the erased slots
    that one run leaves would slow the next run.

    Parameters
    ----------
    tables
        How many tables share a run, each with the same batches. None for as many as `_IN_A_ROW` batches need on a GPU,
        where a run of one batch would measure the calls of the host, and for one table on a CPU.
    """
    mix = Mix.of(operation)
    new = round(mix.inserts * n) + (mix.absent > 0)  # number of absent keys that a batch needs
    in_a_row = max(1, min(_IN_A_ROW, len(workload.absent) // max(1, new), len(workload.keys) // n))
    with turns.away():
        batch = draw(workload, n * in_a_row, mix, seed)
    capacity = len(workload.keys)
    if "buckets" in setting.parameters:  # these fix how full the table is, so the capacity can include the batch
        capacity += int((batch.operations == Operation.INSERT).sum())
    if tables is None:
        most = max(1, _MOST_KEYS // len(workload.keys))
        tables = 1 if lab.device == "cpu" else min(most, _IN_A_ROW // in_a_row)
    filled = [lab.empty(workload, setting, load_factor, capacity=capacity, seed=seed) for _ in range(tables)]
    kept = lab.columns(workload)
    columns = [np.array_split(column, in_a_row) for column in (batch.operations, batch.keys, batch.values)]
    given = [[lab.here(part) for part in parts] for parts in zip(*columns, strict=True)]
    results: list[Any] = []

    def restore() -> None:
        for table in filled:
            table.clear()
            table.insert(*kept, assume_unique=True)

    def run() -> None:
        results.extend([table.execute(*part) for part in given] for table in filled)

    seconds = lab.timed(run, restore)
    answers = (
        [np.concatenate([lab.back(part) for part in parts]) for parts in zip(*row, strict=True)] for row in results
    )
    wrong = sum(batch.mismatches(*answer) for answer in answers)
    oracle = lab.oracle(batch.kept_keys, batch.kept_values)
    wrong += sum(oracle.check_items(*lab.items(table)) for table in filled)
    return lab.record(workload, filled[0], operation, n * in_a_row * tables, seconds, None, wrong)
