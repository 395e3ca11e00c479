"""The threshold of a GPU's memory pool follows the live memory, whoever frees a buffer, and when."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from warphash.runtime.cuda.kept_memory import KeptMemory


def test_a_buffer_that_is_freed_while_the_driver_is_told_counts() -> None:
    told: list[int] = []

    def tell(nbytes: int) -> None:
        told.append(nbytes)
        if nbytes == 150:  # the collector runs, and frees a buffer
            kept.count(-20)

    kept = KeptMemory(100, tell)
    kept.count(50)
    assert told == [100, 150, 130]


def test_no_change_of_any_thread_is_lost() -> None:
    told: list[int] = []
    kept = KeptMemory(7, told.append)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(kept.count, [3, -2] * 5_000))
    assert told[-1] == 7 + 5_000
