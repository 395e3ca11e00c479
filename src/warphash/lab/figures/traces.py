"""Measure a table with the trace of HH Hash: pair i is (i + 1, 3 i + 5), keys and values of 4 bytes.

Keys and values lie on the device, except in `measure_contest`: there they lie on the host, as in the authors' own
comparison with a table on a CPU, so the time has the transfer and the allocation of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ... import HashMap
from ...designs import registry
from ..rivals import Rival, available
from ..rivals.contest import timed

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["Trace", "measure_contest", "measure_trace", "pairs"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Trace:
    """Pairs per second, and wrong answers.

    Attributes
    ----------
    build
        A table of all pairs.
    insert
        The second half of the pairs, in one batch, into a table that has the first half and room for all.
    lookup
        All keys, in one batch.
    erase
        All keys, in one batch.
    """

    build: float
    insert: float
    lookup: float
    erase: float
    mismatches: int


def pairs(n: int) -> tuple[Array, Array]:
    """The keys and the values of the trace."""
    ids = np.arange(n, dtype=np.uint32)
    return ids + np.uint32(1), np.uint32(3) * ids + np.uint32(5)


def measure_trace(lab: Lab, setting: Setting, load_factor: float | None, n: int) -> Trace:
    """Build a table of the trace, insert into one, look all keys up and erase all keys."""
    keys, values = map(lab.here, pairs(n))
    half = n // 2
    tables: list[Any] = []

    def build(count: int) -> None:
        tables.append(lab.built([keys[:count], values[:count]], setting, load_factor, capacity=n))

    def begin(count: int) -> None:
        tables.clear()
        build(count)

    build_s = min(lab.timed(partial(build, n), tables.clear))
    wrong = lab.wrong_pairs(tables[0], [keys, values])
    insert_s = min(
        lab.timed(lambda: tables[0].insert(keys[half:], values[half:], assume_unique=True), partial(begin, half))
    )
    wrong += lab.wrong_pairs(tables[0], [keys, values])
    lookup_s = min(lab.timed(lambda: tables[0].find(keys)))
    erase_s = min(lab.timed(lambda: tables[0].erase(keys), partial(begin, n)))
    wrong += len(tables[0]) + int(lab.back(tables[0].contains(keys)).sum())
    return Trace(n / build_s, (n - half) / insert_s, n / lookup_s, n / erase_s, wrong)


def measure_contest(lab: Lab, name: str, parameters: dict[str, Any], n: int) -> tuple[float, int] | None:
    """Build a table of the trace from arrays of the host: pairs per second, and wrong answers.

    Parameters
    ----------
    name
        A design, or a rival; None is returned for a rival that is not installed, or does not take so many keys.
    parameters
        Of the table: those of the design, ``load_factor``, and ``device``, which is the laboratory's by default.
    """
    rivals = {rival.name: rival for rival in available()}
    contestant = _table(lab, name, parameters) if name in registry.names() else rivals.get(name)
    if contestant is None or n > contestant.most_keys:
        return None
    keys, values = pairs(n)
    seconds, table = timed(contestant.build, keys, values)
    absent = keys + np.uint32(n)
    wrong = int((~contestant.find(table, keys)).sum() + contestant.find(table, absent).sum())
    return n / min(seconds), wrong


def _table(lab: Lab, name: str, parameters: dict[str, Any]) -> Rival:
    options = {"design": name, "device": lab.device, "assume_unique": True, **parameters}

    def build(keys: Array, values: Array) -> Any:
        table = HashMap.from_arrays(keys, values, **options)
        len(table)  # waits for the device
        return table

    return Rival(name, build, lambda table, keys: table.find(keys)[1])
