"""The threshold of a GPU's memory pool follows the live memory, whoever frees a buffer, and when."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from warphash.runtime.cuda.kept_memory import KeptMemory


def test_a_buffer_that_is_freed_while_the_driver_is_told_counts() -> None:
    told: list[int] = []

    def tell(nbytes: int) -> None:
        told.append(nbytes)
        if nbytes == 175:  # the collector runs, and frees a buffer
            kept.count(-60)

    kept = KeptMemory(100, tell)
    kept.count(50)
    assert told == [125, 175, 115]


def test_no_change_of_any_thread_is_lost() -> None:
    told: list[int] = []
    kept = KeptMemory(7, told.append)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(kept.count, [3, -2] * 5_000))
    assert 7 + 5_000 <= told[-1] <= 7 + 5_000 + 2


def test_the_driver_is_told_only_what_matters() -> None:
    """A threshold is never too low. It is never more than half of what is kept too high, and mostly stays."""
    told: list[int] = []
    kept, live = KeptMemory(100, told.append), 0
    for change in (*(25, -25) * 5, 26, *(30,) * 9, *(-30,) * 9, *(20, -20) * 5):
        live += change
        kept.count(change)
        assert 100 + live <= told[-1] <= 150 + live
    assert told[:2] == [125, 151] and len(told) <= 2 + 9 + 9
