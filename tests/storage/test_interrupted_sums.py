"""Ctrl-C in an upsert that adds, and that takes several launches: of each key all values are added, or none."""

from __future__ import annotations

import _thread
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from support.engines import missing
from support.faults import FAMILIES, VERBS, Family, Repeating, check_harmless, interrupts
from warphash.storage.buckets import array as bucket_array
from warphash.storage.quotient import route
from warphash.storage.subtables.store import SubtableSlots
from warphash.storage.tickets import array as ticket_array
from warphash.storage.two_level import array as two_level_array
from warphash.storage.update.transaction import Transaction

MAPS = [family for family in FAMILIES.values() if family.sums and not family.multi]
DESIGNS = [*MAPS, *(Family(design, design) for design in ("cuckoo", "linear_probing", "iceberg", "lock_free_chaining"))]

ON_DEVICES = [
    (device, family)
    for device in ("cpu", "emulated")
    for family in DESIGNS
    if not missing(device) and family.runs_on(device)
]


@contextmanager
def in_small_pieces() -> Iterator[None]:
    """Batches of several launches."""
    with (
        mock.patch.object(bucket_array, "CLAIMED_ELEMENTS", 64),
        mock.patch.object(ticket_array, "CLAIMED_ELEMENTS", 64),
        mock.patch.object(two_level_array, "CLAIMED_ELEMENTS", 64),
    ):
        yield


ENDS = [
    *((family, Transaction, "_end_sums") for family in ("buckets", "quotients", "tickets", "two-level")),
    ("subtables", SubtableSlots, "_end_accumulation"),
]
"""Tables whose interrupted sums are finished before the interrupt comes out, and what finishes them."""

STRIDES = {"some": {"cpu": 19, "emulated": 97}, "all": {"cpu": 1, "emulated": 5}}
"""Every how many-th line is interrupted: on any day, and in the slow tests."""


@pytest.mark.parametrize("lines", ["some", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("device", "family"), ON_DEVICES, ids=str)
def test_an_interrupted_upsert_adds_all_values_of_a_key_or_none(family: Family, device: str, lines: str) -> None:
    scenario = Repeating(family, VERBS["upsert"], device)
    with in_small_pieces():
        check_harmless(interrupts(scenario, every=STRIDES[lines][device]))


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("device", [device for device in ("cpu", "emulated") if not missing(device)])
@pytest.mark.parametrize(("family", "store", "end"), ENDS)
def test_a_second_interrupt_at_the_end_of_an_interrupted_batch(family: str, store: Any, end: str, device: str) -> None:
    """It comes while the batch is finished, or taken back."""
    scenario, whole, ends = Repeating(FAMILIES[family], VERBS["upsert"], device), getattr(store, end), 0

    def interrupted(*arguments: Any) -> Any:
        nonlocal ends
        ends += 1
        _thread.interrupt_main()
        return whole(*arguments)

    several = mock.patch.object(route, "SPARE_ELEMENTS", 64)  # of a quotient table
    with in_small_pieces(), several, mock.patch.object(store, end, interrupted):
        check_harmless(interrupts(scenario, every=7 if device == "cpu" else 37))
    assert ends, "no interrupted batch was finished"
