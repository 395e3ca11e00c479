"""The memory that resizes hold, counted."""

from __future__ import annotations

import pytest

from support.refusals import refusing
from warphash.runtime.cpu import engine
from warphash.storage.subtables.account import Account


def test_bytes_are_held_until_the_last_reference_goes() -> None:
    account = Account(engine())
    first = account.allocate(1000)
    second = account.allocate(800)
    assert (first.nbytes, second.nbytes) == (1000, 800)
    assert account.held_bytes == account.peak_bytes == 1800
    again = first
    del first
    assert account.held_bytes == 1800
    del again
    assert account.held_bytes == 800 and account.peak_bytes == 1800
    third = account.allocate(900)
    assert account.held_bytes == 1700 and account.peak_bytes == 1800
    del second, third
    assert account.held_bytes == 0 and account.peak_bytes == 1800


def test_what_is_refused_is_not_held() -> None:
    account = Account(engine())
    with refusing(engine(), 1), pytest.raises(MemoryError):
        account.allocate(1000)
    assert account.held_bytes == account.peak_bytes == 0
