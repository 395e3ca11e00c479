"""Whether all keys fit if each may be in ``b`` slots of any of its ``h`` buckets (docs/fidelity.md#bght-orientability).

A simulation without a table: Better GPU Hash Tables quotes these facts, and no table has five functions, or buckets of
five or six slots. A key that meets full buckets takes the shortest way on which other keys can make room. If there is
no way, there is no placement of the keys at all, so neither luck nor a limit of evictions decides.
"""

from __future__ import annotations

import numpy as np
import pytest

SLOTS = 30_000
"""The threshold of so many slots differs from that of infinitely many by less than the margins below."""


def all_fit(keys: int, h: int, b: int, seed: int = 1) -> bool:
    """Whether some placement has all keys, in `SLOTS` slots."""
    choices = np.random.default_rng(seed).integers(0, SLOTS // b, (keys, h)).tolist()
    held: list[list[int]] = [[] for _ in range(SLOTS // b)]
    for key, buckets in enumerate(choices):
        # Breadth first. Of each bucket: the key that would move there, and the bucket that it would leave.
        came: dict[int, tuple[int, int | None]] = dict.fromkeys(buckets, (key, None))
        queue = list(came)
        at: int | None = None
        for bucket in queue:
            if len(held[bucket]) < b:
                at = bucket
                break
            for other in held[bucket]:
                for its in choices[other]:
                    if its not in came:
                        came[its] = (other, bucket)
                        queue.append(its)
        if at is None:
            return False
        while at is not None:
            moved, left = came[at]
            held[at].append(moved)
            if left is not None:
                held[left].remove(moved)
            at = left
    assert sorted(key for bucket in held for key in bucket) == list(range(keys))
    assert all(len(bucket) <= b for bucket in held)
    return True


@pytest.mark.parametrize(
    ("h", "holds", "fails"), [(2, 0.48, 0.55), (3, 0.91, 0.925), (4, 0.97, 0.985), (5, 0.99, 0.995)]
)
def test_one_slot_holds_more_with_more_functions(h: int, holds: float, fails: float) -> None:
    """The thresholds are 0.5, 0.918, 0.977 and 0.992."""
    assert all_fit(round(holds * SLOTS), h, 1)
    assert not all_fit(round(fails * SLOTS), h, 1)


@pytest.mark.parametrize(("h", "b"), [(5, 5), (4, 6)])
def test_all_slots_are_filled(h: int, b: int) -> None:
    assert all_fit(SLOTS, h, b)


@pytest.mark.parametrize(("h", "b"), [(3, 5), (5, 2)])
def test_fewer_functions_or_slots_leave_some_empty(h: int, b: int) -> None:
    assert not all_fit(SLOTS, h, b)
