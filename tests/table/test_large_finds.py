"""Finds on a CPU whose tables and answers are larger than a cache: answers are held before they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warphash import HashMap, set_num_threads

N = (16 << 20) // 8 + 70_001
"""Keys: the answers, of 8 bytes each, take more than ``kNearBytes``."""


@pytest.mark.parametrize(
    "options",
    [
        {"design": "quotient_cuckoo"},
        {"design": "quotient_cuckoo", "load_factor": 0.9},
        {"design": "bucketed_cuckoo", "slots_per_bucket": 8},
        {"design": "iceberg", "load_factor": 0.8},
    ],
)
def test_answers_that_are_held_are_all_written(options: dict[str, Any]) -> None:
    keys = np.random.default_rng(1).permutation(np.arange(2 * N, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    keys[5], keys[N + 5] = 2**64 - 1, 2**64 - 2  # words that some designs reserve
    present, absent = keys[:N], keys[N:]
    asked = np.where(np.arange(N) % 3 == 1, absent, present[::-1])
    there = np.arange(N) % 3 != 1
    table = HashMap.from_arrays(present, ~present, device="cpu", **options)
    room, flags = np.zeros(N + 9, np.uint64), np.full(N + 9, 2, np.uint8)
    set_num_threads(3)
    try:
        for shift in (0, 3):
            out, found = room[shift : N + shift], flags[shift : N + shift].view(bool)
            table.plan(N).find(asked, default=7, out=out, found=found)
            assert (found == there).all() and (out == np.where(there, ~asked, np.uint64(7))).all()
            assert (room[N + shift :] == 0).all() and (flags[N + shift :] == 2).all()
        assert (table.contains(asked) == there).all()
        assert (table.find(absent, default=9)[0] == 9).all()
    finally:
        set_num_threads(None)
