"""Ctrl-C at any line of a verb: no key is lost or changed halfway, the lock is free, and the table works on.

A key of the batch is wholly in or wholly out afterwards. `support.faults` says what is compared, and prints where an
interrupt does harm: ``python -m support.faults``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from zlib import crc32

import pytest

from support.engines import missing
from support.faults import FAMILIES, LOCKS, SOME, Fault, Scenario, interrupts, scenarios

UNAWAITED = ("insert", "upsert", "erase", "reserve", "clear", "find", "__len__")
"""Verbs that leave a batch under way, or find one, on an engine that works beside the host."""

UNAWAITED_FAMILIES = ("buckets", "lists", "subtables")

VARIANTS_OF_TIERS = {
    *("tiers-of-rows", "tiers-through", "tiers-over-a-file"),
    *("tiers-of-string-values", "tiers-of-strings-over-a-file"),
}
"""Of the family ``tiers``: a verb has many lines there, and most of them are those of that family."""

STEP, LONG_STEP = 5, 10
"""Every how many-th line the slow tests interrupt; the longer step is for ``tiers``, and for families whose lines are
mostly those of a family in `SOME`. Scenarios begin at different lines. ``python -m support.faults`` takes each line."""

SWEEPS = re.compile(r"storage/tickets/sweep\.py")

STRIDE = 29
"""Every how many-th line of a call is interrupted on any day; the slow tests take more."""


def harms(faults: Iterable[Fault], most: int = 5, patience: float = 30) -> list[str]:
    """What the first faults that do harm break."""
    said = []
    for fault in faults:
        if harm := fault.harm(patience):
            said.append(f"{fault.scenario} at line {fault.number}, {fault.place}: {harm}")
        if len(said) == most:
            break
    return said


def families_on(device: str, families: Iterable[str]) -> list[Any]:
    """Families on a device, as far as it can run here."""
    return [pytest.param(device, family, id=f"{device}-{family}") for family in families if not missing(device)]


@pytest.mark.parametrize(("device", "family"), families_on("cpu", SOME))
def test_an_interrupt_loses_no_key(device: str, family: str) -> None:
    said = harms(fault for scenario in scenarios(device, [family]) for fault in interrupts(scenario, every=STRIDE))
    assert not said, "\n".join(said)


@pytest.mark.parametrize("stride", [STRIDE, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("device", "family"), families_on("emulated", UNAWAITED_FAMILIES))
def test_an_interrupt_loses_no_key_of_a_batch_under_way(device: str, family: str, stride: int) -> None:
    crossed = [scenario for scenario in scenarios(device, [family], UNAWAITED) if not scenario.grows]
    said = harms(fault for scenario in crossed for fault in interrupts(scenario, every=stride))
    assert not said, "\n".join(said)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", scenarios("cpu"), ids=str)
def test_an_interrupt_at_more_lines_loses_no_key(scenario: Scenario) -> None:
    family = scenario.family.name
    every = STRIDE if family in VARIANTS_OF_TIERS else STEP if family in SOME and family != "tiers" else LONG_STEP
    said = harms(interrupts(scenario, every=every, start=1 + crc32(str(scenario).encode()) % every), 1)
    assert not said, said[0]


@pytest.mark.slow
@pytest.mark.parametrize(("device", "family"), families_on("emulated", sorted(set(FAMILIES) - VARIANTS_OF_TIERS)))
def test_an_interrupt_at_many_lines_loses_no_key_of_a_batch_under_way(device: str, family: str) -> None:
    every = 211 if family == "tiers" else 97 if family.startswith("bounded") else 43
    said = harms(fault for scenario in scenarios(device, [family]) for fault in interrupts(scenario, every=every))
    assert not said, "\n".join(said)


@pytest.mark.parametrize(("device", "family"), families_on("emulated", ["tickets-behind-a-bus"]))
@pytest.mark.slow
def test_an_interrupted_sweep_leaves_no_memory_to_the_next_one(device: str, family: str) -> None:
    crossed = scenarios(device, [family], ("insert", "erase", "find"))
    said = harms(fault for scenario in crossed for fault in interrupts(scenario, files=SWEEPS))
    assert not said, "\n".join(said)


@pytest.mark.parametrize("verb", ["insert", "find", "__len__"])
def test_an_interrupt_leaves_the_lock_free(verb: str) -> None:
    """The lock is one class: one family shows it."""
    crossed = scenarios("cpu", ["buckets"], [verb])
    said = harms((fault for scenario in crossed for fault in interrupts(scenario, files=LOCKS)), 1, patience=5)
    assert not said, said[0]
