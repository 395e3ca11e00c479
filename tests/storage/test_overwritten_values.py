"""A batch changes values, finds no slot for a key, and is refused the memory to grow: the old values come back.

The tables have so few slots that keys lack one long before the table is full.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import islice
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import one_of_each
from support.inside import storage_of
from support.passes import in_passes
from support.refusals import refusing
from support.types import Array
from warphash import HashMap, TableFull
from warphash.runtime.devices import engine_for
from warphash.storage.quotient import route
from warphash.storage.update.transaction import is_risky

VERBS: dict[str, Callable[[Any, Array], Any]] = {
    "insert": lambda table, keys: table.insert(keys, keys + 1000),
    "assign": lambda table, keys: table.assign(keys, keys + 1000),
    "add": lambda table, keys: table.upsert(keys, keys, "add"),
    "min": lambda table, keys: table.upsert(keys, keys - keys, "min"),
    "max": lambda table, keys: table.upsert(keys, keys + 1000, "max"),
}


def filled(make: Callable[[], Any], held: int) -> Any:
    """A table of so many keys; None if already these found no slot."""
    table, old = make(), np.arange(1, held + 1, dtype=np.uint64)
    table.insert(old, old)
    return table if len(table) == held and not storage_of(table).store.rebuilds else None


def finds_no_slot(make: Callable[[], Any], held: int, batch: Array, verb: str) -> bool:
    """Whether a table needs another array for a batch."""
    table = filled(make, held)
    if table is None:
        return False
    VERBS[verb](table, batch)
    return len(table) > held and storage_of(table).store.rebuilds > 0


def check_refusals(make: Callable[[], Any], held: int, batch: Array, verb: str) -> None:
    """Refuse each allocation and all behind it: the batch is done, or the table is as it was."""
    for first in range(1, 50):
        table, raised = filled(make, held), False
        with refusing(engine_for(table.device), first, once=False) as refusals:
            try:
                VERBS[verb](table, batch)
                len(table)  # ends a batch that is under way
            except (TableFull, MemoryError):
                raised = True
        keys, values = table.to_arrays()
        if raised:
            assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {k: k for k in range(1, held + 1)}
        else:  # it can do without that memory
            assert set(keys.tolist()) == {*range(1, held + 1), *batch.tolist()}
        assert len(keys) == len(table) and (refusals.refused or not raised)
        table.check()
        if not refusals.refused:
            return
    raise AssertionError("still asks for memory after 50 allocations")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize(
    ("design", "capacity", "held", "n"),
    [("quotient_cuckoo", 70, 53, 27), ("quotient_cuckoo", 70, 40, 20), ("cuckoo", 15, 9, 5)],
)
def test_old_values_come_back(design: str, capacity: int, held: int, n: int, device: str, verb: str) -> None:
    options: dict[str, Any] = {"design": design, "capacity": capacity, "device": device}
    batch = np.arange(held - n // 2, held - n // 2 + n, dtype=np.uint64)  # half of it is there
    with (
        in_passes() if design == "quotient_cuckoo" else nullcontext(),
        mock.patch.object(route, "LAUNCH_ELEMENTS", 32),
    ):
        makes = (partial(HashMap, "u8", "u8", seed=seed, **options) for seed in range(1000))
        found = list(islice((make for make in makes if finds_no_slot(make, held, batch, verb)), 3))
        assert found
        for make in found:
            check_refusals(make, held, batch, verb)


def test_which_batches_need_a_way_back() -> None:
    assert not is_risky(50, 10, 100, 0.8, False) and is_risky(50, 30, 100, 0.8, False)
    assert is_risky(50, 10, 100, 0.8, True) and not is_risky(0, 60, 100, 0.8, True)  # there are no values to change
    for slots in (1 << 14, 1 << 20, 1 << 30):  # of a large table, as many keys fit
        most = int(0.72 * slots)
        assert not is_risky(most - 1, 1, slots, 0.8, True) and is_risky(most, 1, slots, 0.8, True)
    assert not is_risky(1000, 600, 1 << 12, 0.8, True)  # surely fits
