"""What a warp does while the lock of a bucket is taken: `voter` goes on with other keys, `spin` waits."""

from __future__ import annotations

import numpy as np
import pytest

from emulated.planted import PATIENCE
from emulated.scenarios import emulation
from support.engines import missing
from support.planting import planted
from support.subtables import store_of, table_of
from warphash import WarphashError
from warphash.storage.subtables.array import SubtableArray
from warphash.storage.subtables.insert import Piece

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

WARP = 32


def impatient(source: str) -> str:
    """Kernels on a device that gives up a launch after some hundred rounds of a warp."""
    return planted(source, PATIENCE, "kMaxSwitchPoints = 1ull << 17;")


def lines_of(array: SubtableArray) -> list[np.ndarray]:
    """The keys of each subtable, line by line."""
    return [
        array.engine.to_host(memory.ptr, np.uint32, WARP * buckets).reshape(buckets, WARP)
        for memory, buckets in array.current.subtables[:-1]
    ]


def take_lock(array: SubtableArray, key: np.uint32) -> None:
    """Take the lock of the bucket that holds a key."""
    for number, lines in enumerate(lines_of(array)):
        for bucket in np.nonzero((lines == key).any(axis=1))[0]:
            array.engine.upload(array.table.bucket_words[number] + 4 * int(bucket), np.ones(1, np.uint32))


@pytest.mark.parametrize(("coordination", "least", "most"), [("voter", 24, WARP), ("spin", 1, 1)])
def test_a_warp_whose_first_key_finds_its_bucket_locked(coordination: str, least: int, most: int) -> None:
    """The lock is never released, so the launch is given up. The keys that are there then were put meanwhile.

    docs/fidelity.md#dyhash-voter
    """
    with emulation(impatient, seed=1):
        table = table_of("emulated", "u4", "u4", coordination=coordination, capacity=1000)
        keys, flags = np.arange(1, 1 + WARP, dtype=np.uint32), np.zeros(WARP, np.uint8)
        table.insert(keys[:1], keys[:1])
        array = store_of(table)
        take_lock(array, keys[0])
        insert = array.begin_move(Piece(keys.ctypes.data, keys.ctypes.data, flags.ctypes.data, WARP))
        with pytest.raises(WarphashError, match="settle"):
            insert.settle(unique=True)
        there = np.isin(keys, np.concatenate(lines_of(array)))
    assert there[0] and least <= there.sum() <= most
