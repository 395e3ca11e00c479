"""The first batch of a table, with repeated keys and without flags: a build, of families that have one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.engines import missing
from support.faults import FAMILIES, VERBS, Family, FirstBatch, check_harmless, interrupts, refusals

DEVICES = [device for device in ("cpu", "emulated") if not missing(device)]
ONE_ARRAY = ("buckets", "rows", "two-level", "quotients", "tickets", "tickets-in-a-file")
BUILT = [(FAMILIES[name], device) for name in ONE_ARRAY for device in DEVICES]
EVERY = {"cpu": 5, "emulated": 29}


@pytest.mark.parametrize(("family", "device"), BUILT, ids=str)
@pytest.mark.parametrize("once", [True, False])
def test_refused_memory_leaves_a_table_without_keys(family: Family, device: str, once: bool) -> None:
    check_harmless(refusals(FirstBatch(family, VERBS["__setitem__"], device), once=once))


@pytest.mark.parametrize("lines", ["some", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("family", "device"), BUILT, ids=str)
def test_an_interrupt_leaves_each_key_in_or_out(family: Family, device: str, lines: str) -> None:
    every = EVERY[device] if lines == "some" else 1 if device == "cpu" else 5
    check_harmless(interrupts(FirstBatch(family, VERBS["__setitem__"], device), every=every))


@pytest.mark.parametrize(("family", "device"), BUILT, ids=str)
def test_a_table_that_was_cleared_takes_a_first_batch_again(family: Family, device: str) -> None:
    scenario: Any = FirstBatch(family, VERBS["__setitem__"], device)
    table = scenario.make()
    table[family.keys(np.arange(100))] = family.values(np.arange(100))
    table.clear()
    assert not len(table) and not table.contains(family.keys(np.arange(100))).any()
    scenario.call(table)
    assert family.state(table) == scenario.after
    table.check()
