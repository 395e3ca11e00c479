"""Tests of the finds that a CPU does in passes over a batch: blocks, lists that fill up, reserved keys."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from warphash import HashMap, HashSet, set_num_threads

KEYS = 20_000
DESIGNS = {
    "bucketed_cuckoo": {"slots_per_bucket": 8, "load_factor": 0.95},
    "cuckoo": {"load_factor": 0.9},
    "power_of_two": {"slots_per_bucket": 16, "load_factor": 0.8},
    "iceberg": {"slots_per_bucket": 16, "load_factor": 0.9},
    "linear_probing": {"slots_per_bucket": 8, "load_factor": 0.9},
    "dynamic_cuckoo": {"load_factor": 0.9},
    "quotient_cuckoo": {"load_factor": 0.9},
}
RESERVED = (-1, -2, -3)
"""Keys of the three marks of slots."""


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("key", "value"), [("int32", "int32"), ("int64", "int64"), ("int64", None)])
@pytest.mark.parametrize("grown", [False, True])
def test_every_element_is_answered(design: str, key: str, value: str | None, grown: bool) -> None:
    """Present, absent and reserved keys in one order, in batches that end before, at and behind a block."""
    rng = np.random.default_rng(1)
    drawn = rng.choice(1 << 30, 2 * KEYS, replace=False).astype(key)
    held, absent = np.append(drawn[:KEYS], RESERVED[:2]).astype(key), np.append(drawn[KEYS:], RESERVED[2]).astype(key)
    options = {"design": design, "device": "cpu", "capacity": 16 if grown else KEYS, **DESIGNS[design]}
    table = HashMap(key, value, **options) if value else HashSet(key, **options)
    for part in np.array_split(held, 4 if grown else 1):
        table.insert(part, part ^ 5) if value else table.insert(part)
    keys = rng.permutation(np.concatenate([held, absent, np.full(500, -1, key), np.full(500, -3, key)]))
    expected = np.isin(keys, held)
    for n in (1, 63, 64, 65, 128, 1_100, len(keys)):
        assert np.array_equal(table.contains(keys[:n]), expected[:n])
        if value:
            found_values, found = table.find(keys[:n], default=77)
            assert np.array_equal(found, expected[:n])
            assert np.array_equal(found_values, np.where(found, keys[:n] ^ 5, 77))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("of_keys", [0, 1])
def test_a_batch_of_one_kind_fills_the_list(design: str, of_keys: int) -> None:
    """All absent, in a table as full as it gets, or all reserved: every element may go on."""
    drawn = np.random.default_rng(2).choice(1 << 30, 2 * KEYS, replace=False).astype("int32")
    table = HashMap.from_arrays(drawn[:KEYS], drawn[:KEYS], design=design, device="cpu", **DESIGNS[design])
    asked = (drawn[KEYS:], np.full(KEYS, -1, "int32"))[of_keys]
    assert not table.find(asked)[1].any()
    table.insert(asked[:1], asked[:1])
    assert table.find(asked)[1].sum() == (KEYS if of_keys else 1)


@pytest.fixture(params=[1, 3], ids=lambda threads: f"{threads} threads")
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    set_num_threads(request.param)
    yield request.param
    set_num_threads(None)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("key", ["uint32", "uint64"])
@pytest.mark.parametrize("design", ["bucketed_cuckoo", "dynamic_cuckoo", "quotient_cuckoo"])
def test_a_table_that_is_larger_than_the_caches(design: str, key: str) -> None:
    """Its lines are asked for in another cache. Its batches are built, scattered and flagged by lines of memory."""
    n, kind = 2_500_000, np.dtype(key)
    drawn = np.random.default_rng(3).permutation(np.arange(2 * n, dtype=kind) * kind.type(2_654_435_761))
    held, absent = drawn[:n], drawn[n:]
    repeated = np.concatenate([held, held[: n // 2]])
    table = HashMap(key, key, design=design, device="cpu", capacity=n)
    added = table.insert(repeated, ~repeated)
    assert np.count_nonzero(added) == len(table) == n and added[n // 2 : n].all() and table.nbytes > 1 << 24
    asked = np.concatenate([absent, held[: n - 37]])
    values, found = table.find(asked, default=7)
    assert not found[:n].any() and (values[:n] == 7).all()
    assert found[n:].all() and (values[n:] == ~asked[n:]).all() and np.array_equal(table.contains(asked), found)
    assert not table.upsert(held, np.ones_like(held), "add").any()
    assert (table.find(held)[0] == ~held + kind.type(1)).all()
    erased = table.erase(np.concatenate([held[::2], absent]))
    assert np.count_nonzero(erased) == len(held[::2]) and not table.contains(held[::2]).any()
    assert table.contains(held[1::2]).all() and len(table) == len(held[1::2])
    table.check()
