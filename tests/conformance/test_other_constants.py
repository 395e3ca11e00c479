"""Keys that share their buckets under some sets of hash constants: a table of any size tries others before it gives up.

A table with far more slots than keys cannot mend this by growing. Here, a lower limit makes small tables such ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import design_names
from support.engines import one_of_each
from support.hashing import unmixed
from support.types import Array
from warphash.storage import giving_up
from warphash.storage.buckets import array as bucket_array
from warphash.storage.hash_constants import draw_constants
from warphash.storage.quotient import array as quotient_array
from warphash.storage.subtables.array import SubtableArray
from warphash.storage.two_level import array as two_level_array

HERE = one_of_each("cpu", "emulated", "cuda")
ATTEMPTS = 3
PARAMETERS: dict[str, dict[str, Any]] = {"linear_probing": {"slots_per_bucket": 1, "probe_limit": 32}}
"""Of designs that would have a place for `N` keys in one bucket."""

WITH_RANGES = ("quotient_cuckoo", "two_level_cuckoo")
"""Designs that have a place for thousands of keys of one range."""

NEVER_FULL = ("slab", "lock_free_chaining", "stadium", "tiered")
"""Designs in which a key always has a place."""

N, N_OF_A_RANGE = 300, 4500
"""Keys that one bucket, or one range, has no place for."""

Blind = Callable[[int], list[int]]


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> Blind:
    """Make the next so many sets of hash constants such that all keys share their buckets; the list of sets drawn."""
    monkeypatch.setattr(giving_up, "_MOST_SLOTS_PER_KEY", 2)
    monkeypatch.setattr(giving_up, "_FEWEST_KEYS", 1)
    drawn: list[int] = []
    most = 0

    def drawing(source: random.Random, family: str, word_bytes: int) -> dict[str, Any]:
        constants = draw_constants(source, family, word_bytes)
        drawn.append(1)
        return {**constants, "multiplier": (0,) * len(constants["multiplier"])} if len(drawn) <= most else constants

    describe = SubtableArray._describe

    def describing(self: SubtableArray) -> Any:
        table = describe(self)
        drawn.append(1)
        if len(drawn) <= most:
            table.salts[:] = [0] * len(table.salts)
        return table

    for module in (bucket_array, quotient_array, two_level_array):
        monkeypatch.setattr(module, "draw_constants", drawing)
    monkeypatch.setattr(SubtableArray, "_describe", describing)

    def begin(sets: int) -> list[int]:
        nonlocal most
        drawn.clear()
        most = sets
        return drawn

    return begin


def made(design: str, device: str, key: str, on_full: str) -> tuple[Any, Array]:
    """A table with some keys, of which the constants are the first set; and more keys."""
    n = N_OF_A_RANGE if design in WITH_RANGES else N
    options: dict[str, Any] = {"design": design, "device": device, "on_full": on_full, **PARAMETERS.get(design, {})}
    table = warphash.HashMap(
        key, "u4", capacity=8 * n, seed=5, hash="universal", attempts=ATTEMPTS, load_factor=0.5, **options
    )
    keys = np.arange(10, n + 10).astype(key)
    table.insert(keys[:3], np.arange(3, dtype="u4"))
    return table, keys[3:]


def crossed() -> list[Any]:
    """The designs whose tables can be full, on every engine that can run here; the emulated one takes few keys."""
    return [
        pytest.param(
            design,
            *device.values,
            id=f"{device.values[0]}-{design}",
            marks=[*device.marks, *[pytest.mark.slow] * (device.values[0] == "emulated" and design != "power_of_two")],
        )
        for device in HERE
        for design in design_names()
        if design not in NEVER_FULL and (device.values[0] != "emulated" or design not in WITH_RANGES)
    ]


@pytest.mark.parametrize("on_full", ["grow", "raise"])
@pytest.mark.parametrize("key", ["u4", "u8"])
@pytest.mark.parametrize(("design", "device"), crossed())
def test_a_set_of_constants_that_will_do_is_found(
    design: str, device: str, key: str, on_full: str, blind: Blind
) -> None:
    drawn = blind(ATTEMPTS - 1)
    table, keys = made(design, device, key, on_full)
    slots = table.stats().slots
    assert len(drawn) == 1
    assert table.insert(keys, np.arange(len(keys), dtype="u4")).all()
    assert (table.find(keys)[0] == np.arange(len(keys))).all() and len(table) == len(keys) + 3
    assert len(drawn) >= ATTEMPTS and table.stats().slots == slots
    table.check()


@pytest.mark.parametrize("on_full", ["grow", "raise"])
@pytest.mark.parametrize(("design", "device"), crossed())
def test_a_table_gives_up_after_as_many_sets_as_it_may_try(
    design: str, device: str, on_full: str, blind: Blind
) -> None:
    drawn = blind(1 << 20)
    table, keys = made(design, device, "u4", on_full)
    with pytest.raises(warphash.TableFull, match=r"3 sets of hash constants"):
        table.insert(keys, np.arange(len(keys), dtype="u4"))
        table.stats()  # where nobody waits for an insert, the next call does
    assert ATTEMPTS <= len(drawn) <= 3 * ATTEMPTS
    if device == "cpu":  # an insert that nobody waited for is not taken back
        assert len(table) == 3 and not table.contains(keys).any()
        table.check()


@pytest.mark.parametrize("on_full", ["grow", "raise"])
@pytest.mark.parametrize("key", ["u4", "u8"])
@pytest.mark.parametrize("design", WITH_RANGES)
def test_keys_made_for_a_known_seed_are_taken(design: str, key: str, on_full: str) -> None:
    """Under the seed, all lie in one range of a table that is large enough for thousands of such ranges."""
    options: dict[str, Any] = {"design": design, "device": "cpu", "seed": 1, "capacity": 1_000_000, "on_full": on_full}
    constant = random.Random(1).getrandbits(64) + 1
    keys = unmixed(np.arange(8000).astype(key)) ^ np.dtype(key).type(constant % (1 << 8 * np.dtype(key).itemsize))
    table = warphash.HashSet(key, **options)
    assert table.insert(keys).all() and table.stats().rebuilds
    assert table.contains(keys).all() and len(table) == 8000
    table.check()
