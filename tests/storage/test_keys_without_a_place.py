"""What is said of a batch for which no size of the table is enough, and what becomes of keys that repeat unawares."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import one_of_each
from support.small import KEYS, VALUES, unchanged
from warphash import HashMap, HashSet, TableFull
from warphash.runtime.abi import Table
from warphash.storage.buckets.array import BucketArray
from warphash.storage.subtables.array import SubtableArray

HERE = one_of_each("cpu", "emulated", "cuda")
KEEPS_COPIES = ["cuckoo", "bucketed_cuckoo", "megakv"]
"""Designs that store each copy of a key that the caller vouches for, until the buckets of the key are full."""


def blind(description: Any) -> Any:
    """``description`` with constants under which all keys but the reserved ones have the same buckets."""

    def describe(store: Any) -> Table:
        table: Table = description(store)
        for constants in (getattr(table, name, None) for name in ("multiplier", "salts")):
            if constants is not None:
                constants[:] = [0] * len(constants)
        return table

    return describe


@pytest.mark.parametrize("device", one_of_each("cpu", "cuda"))
@pytest.mark.parametrize("design", KEEPS_COPIES)
def test_keys_that_repeat_unawares_are_named_as_the_cause(design: str, device: str) -> None:
    table = HashMap("u4", "u4", design=design, device=device, seed=1, capacity=100)
    table.insert(KEYS, VALUES)
    with pytest.raises(TableFull, match=r"assume_unique=True repeat.* table is as it was"):
        table.insert(np.full(300, 1, "u4"), np.arange(300, dtype="u4"), assume_unique=True)
    unchanged(table)
    assert table.insert(np.full(300, 1, "u4"), np.arange(300, dtype="u4")).sum() == 1  # as the message says


@pytest.mark.parametrize("vouched_before", [False, True])
@pytest.mark.parametrize("design", ["cuckoo", "power_of_two", "dynamic_cuckoo"])
def test_who_vouched_for_nothing_is_not_blamed(design: str, vouched_before: bool) -> None:
    """A batch with ``assume_unique`` that was refused, or forgotten, is none that the table holds."""
    keys = np.arange(1000, 1600, dtype="u4")
    describes = [mock.patch.object(kind, "_describe", blind(kind._describe)) for kind in (BucketArray, SubtableArray)]
    with describes[0], describes[1]:
        table = HashMap("u4", "u4", design=design, device="cpu", seed=1, capacity=100, hash="universal")
        if vouched_before:
            with pytest.raises(TableFull, match="assume_unique=True"):
                table.insert(keys, keys, assume_unique=True)
            table.insert(keys[:1], keys[:1], assume_unique=True)
            table.clear()
        table.insert(KEYS[:2], VALUES[:2])
        with pytest.raises(
            TableFull, match=r"found no place in [\d,]+ slots.* sets of hash constants.*design='slab'.* as it was"
        ) as full:
            table.insert(keys, keys)
        assert "assume_unique" not in str(full.value)
        assert len(table) == 2 and table.contains(KEYS[:2]).all() and not table.contains(keys).any()
        table.check()
        lists = HashMap("u4", "u4", design="slab", device="cpu", seed=1, capacity=100, hash="universal")
        assert lists.insert(keys, keys).all()


@pytest.mark.parametrize("device", HERE)
def test_rows_that_repeat_unawares_become_one(device: str) -> None:
    """No salt of their fingerprints tells equal keys apart: they are claimed, whatever the caller says."""
    table = HashSet("S40", design="cuckoo", device=device, seed=1, capacity=100)
    keys = np.arange(20).astype("S40")
    table.insert(keys)
    for turn in range(2):
        assert table.insert(np.full(2, b"again", "S40"), assume_unique=True).sum() == (turn == 0)
        table.check()
    assert len(table) == 21
    table.shrink()
    assert len(table) == 21
    assert table.contains(np.array([b"again", *keys], "S40")).all() and not table.contains(b"other")
    assert sorted(table.keys().tolist()) == sorted([b"again", *keys.tolist()])
    assert table.erase(np.full(1, b"again", "S40")).all() and not table.contains(b"again")
    table.check()


def unmixed(x: int) -> int:
    """The key of 8 bytes that the mixer takes to ``x``."""
    inverse = pow(0xD6E8FEB86659FD93, -1, 1 << 64)
    for _ in range(2):
        x = (x ^ x >> 32) * inverse % (1 << 64)
    return x ^ x >> 32


@pytest.mark.parametrize("device", one_of_each("cpu", "cuda"))
def test_keys_made_for_one_claim_are_claimed_in_linear_time(device: str) -> None:
    """Keys whose claims all began at one word took a minute: each went by all that came before."""
    golden = 0x9E3779B97F4A7C15
    keys = np.array([unmixed(number << 40) ^ golden for number in range(1 << 17)], "u8")
    table = HashSet("u8", design="power_of_two", device=device, seed=1, capacity=len(keys))
    added = table.insert(np.concatenate([keys, keys]))
    assert added.sum() == len(table) == len(keys)
    table.check()
