"""Tables say in the log when they grow, shrink, or are rebuilt."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import warphash
from warphash.storage.resize_log import Cause

FAMILIES = ["bucketed_cuckoo", "slab", "dynamic_cuckoo", "stadium", "two_level_cuckoo", "quotient_cuckoo"]
KEYS = np.arange(40_000, dtype="u8")


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The messages since the last call."""
    messages = [record.getMessage() for record in caplog.records if record.name == "warphash"]
    caplog.clear()
    return messages


def text(design: str, verb: str, before: int, after: int, keys: int, cause: Cause) -> str:
    return f"{design} table {verb} from {before:,} to {after:,} slots with {keys:,} keys: {cause}"


@pytest.mark.parametrize("design", FAMILIES)
def test_a_table_says_that_it_grows_and_shrinks(design: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "warphash")
    table: Any = warphash.HashMap("u8", "u8", device="cpu", design=design, capacity=1000)
    first = table.stats().slots
    assert table.insert(KEYS[:900], KEYS[:900]).all()
    assert not logged(caplog), "the table is large enough"
    assert table.insert(KEYS[900:], KEYS[900:]).all()
    grown = table.stats().slots
    messages = logged(caplog)
    assert all(" grew from " in message for message in messages)
    assert f"from {first:,} to " in messages[0] and f" to {grown:,} slots" in messages[-1]
    assert any(message.endswith(Cause.BATCH) or message.endswith(Cause.BOUNDS) for message in messages)
    table.erase(KEYS[100:])
    erased = table.stats().slots
    assert [message for message in logged(caplog) if " shrank " in message] == (
        [text(design, "shrank", grown, erased, 100, Cause.BOUNDS)] if erased < grown else []
    )
    table.shrink()
    assert logged(caplog)[-1] == text(design, "shrank", erased, table.stats().slots, 100, Cause.ASKED)


@pytest.mark.parametrize("design", FAMILIES)
def test_a_table_says_nothing_if_nobody_listens(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a record was made")

    monkeypatch.setattr(logging.getLogger("warphash"), "handle", refuse)
    table: Any = warphash.HashSet("u8", device="cpu", design=design, capacity=1000)
    assert table.insert(KEYS).all()


def test_pairs_without_a_slot_are_a_cause(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "warphash")
    table: Any = warphash.HashMap(
        "u8", "u8", device="cpu", design="megakv", capacity=20_000, load_factor=0.99, attempts=1
    )
    assert table.insert(KEYS[:20_000], KEYS[:20_000]).all()
    messages = logged(caplog)
    assert messages and all(message.endswith(Cause.NO_SLOT) for message in messages)
