"""Interrupts while pairs are displaced, a subtable is halved, a batch is taken back, or all subtables are replaced."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing
from support.faults import FAMILIES, VERBS, Scenario, Verb, interrupts, refusals
from support.inside import storage_of
from support.types import Array
from warphash import HashMap, TableFull
from warphash.designs.base import Design
from warphash.storage.subtables.store import SubtableSlots


def _upsert_too_many(family: Any, table: Any, ids: Array) -> None:
    with contextlib.suppress(TableFull):
        table.upsert(family.keys(ids), family.values(3 * ids.astype("u8") + np.uint64(1)), "add")


TOO_MANY = Verb("too_many", _upsert_too_many, lambda family, model, ids: dict(model))


@dataclass(frozen=True)
class Crowded(Scenario):
    """A table whose evictions lead nowhere, and a call that comes to what `reaches` names.

    Attributes
    ----------
    options
        Of the table.
    held, batch
        The keys in it, and those of the call.
    reaches
        A method of the store that the call has to run.
    chain_limit
        Of evictions during the call; None for the design's own.
    """

    options: dict[str, Any] = field(default_factory=dict)
    held: Array = field(default_factory=lambda: np.arange(0))
    batch: Array = field(default_factory=lambda: np.arange(0))
    reaches: str = ""
    chain_limit: int | None = 0

    def __str__(self) -> str:
        return f"{self.device}-{self.family}-{self.verb}-{self.reaches}"

    @property
    def ids(self) -> Array:
        return self.batch

    @property
    def before(self) -> dict[int, tuple[int, ...]]:
        return {int(key): (int(key),) for key in self.held}

    def make(self) -> Any:
        family = self.family
        table = HashMap(family.key, family.value, design=family.design, device=self.device, seed=3, **self.options)
        for part in np.array_split(self.held, 8):
            table.insert(family.keys(part), family.values(part))
        len(table)  # waits
        return table

    def call(self, table: Any) -> Any:
        if self.chain_limit is None:
            return self._called(table)
        array = storage_of(table).store.array
        usual, array.table.chain_limit = array.table.chain_limit, self.chain_limit
        try:
            with mock.patch.object(Design, "chain_limit", lambda design, slots: self.chain_limit):
                return self._called(table)
        finally:
            storage_of(table).store.array.table.chain_limit = usual

    def _called(self, table: Any) -> Any:
        answer = super().call(table)
        len(table)  # waits
        return answer


WORDS, WIDE = FAMILIES["subtables"], FAMILIES["wide-subtables"]
TWO = {"subtables": 2, "load_factor": 0.9, "beta": 0.97}


def crowded(device: str) -> list[Crowded]:
    old, some = np.arange(11, 250), np.arange(1000, 1038)
    even = np.arange(11, 296)
    again = np.concatenate([some, old[::7], some[::4]])
    full = TWO | {"capacity": 240}
    fixed = full | {"on_full": "raise"}
    shrinks = {"subtables": 3, "alpha": 0.7, "beta": 0.97, "load_factor": 0.75, "capacity": 288}
    return [
        Crowded(WORDS, VERBS["insert"], device, True, full, old, some, "_left_of"),
        Crowded(WORDS, VERBS["upsert"], device, True, full, old, again, "_left_of"),
        Crowded(WIDE, VERBS["insert"], device, True, full, old[:220], some, "_left_of"),
        Crowded(WORDS, TOO_MANY, device, True, fixed, old, np.arange(1000, 1090), "_take_back"),
        Crowded(WORDS, TOO_MANY, device, True, fixed, old, np.arange(1000, 1047), "_take_back"),
        Crowded(WORDS, VERBS["erase"], device, True, shrinks, even, even[::6], "_halve_subtable", None),
        Crowded(WIDE, VERBS["erase"], device, True, shrinks, even, even[::6], "_halve_subtable", None),
        Crowded(
            WORDS,
            VERBS["erase"],
            device,
            True,
            {"capacity": 64},
            np.arange(11, 600),
            np.arange(14, 600),
            "_replace",
            None,
        ),
        Crowded(
            WORDS, VERBS["insert"], device, True, {"capacity": 64}, old[:20], np.arange(1000, 1900), "_replace", None
        ),
    ]


def here(rare: str = "") -> list[Any]:
    """Every scenario on each device; those on a ``rare`` one in the slow tests alone."""
    devices = [device for device in ("cpu", "emulated") if not missing(device)]
    return [
        pytest.param(scenario, id=f"{scenario}-{len(scenario.batch)}", marks=[pytest.mark.slow] * (device == rare))
        for device in devices
        for scenario in crowded(device)
    ]


def reached(scenario: Crowded) -> bool:
    """Whether the call runs the method that the scenario is about."""
    calls: list[str] = []
    method: Callable[..., Any] = getattr(SubtableSlots, scenario.reaches)

    def noted(self: SubtableSlots, *given: Any) -> Any:
        calls.append(scenario.reaches)
        return method(self, *given)

    table = scenario.make()
    with mock.patch.object(SubtableSlots, scenario.reaches, noted):
        scenario.call(table)
    return bool(calls) and not scenario.problem(table, done=True, whole=True)


@pytest.mark.parametrize("scenario", here())
def test_an_interrupt_loses_no_displaced_pair(scenario: Crowded) -> None:
    assert reached(scenario)
    for fault in interrupts(scenario, every=17 if scenario.device == "cpu" else 101):
        assert not fault.harm(), fault


@pytest.mark.slow
@pytest.mark.parametrize("scenario", here())
def test_an_interrupt_at_any_line_loses_no_displaced_pair(scenario: Crowded) -> None:
    for fault in interrupts(scenario, every=1 if scenario.device == "cpu" else 7):
        assert not fault.harm(), fault


@pytest.mark.parametrize("once", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["once", "for_good"])
@pytest.mark.parametrize("scenario", here(rare="emulated"))
def test_refused_memory_loses_no_displaced_pair(scenario: Crowded, once: bool) -> None:
    for fault in refusals(scenario, once=once):
        assert not fault.harm(), fault
