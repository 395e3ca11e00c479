"""Items that a thread of their own makes while the caller works on the last one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ahead"]

Item = TypeVar("Item")


def ahead(items: Generator[Item, None, None]) -> Iterator[Item]:
    """Give the items of a generator in their order. A thread makes the next item while the caller has the last one.

    Two items exist at a time, beside what the caller keeps. An error of the generator is raised where its item would
    be. If the caller stops early, the thread finishes the item that it has begun, and the generator is closed.
    """
    try:
        with ThreadPoolExecutor(1, "warphash-ahead") as thread:
            following = thread.submit(next, items, None)
            while (item := following.result()) is not None:
                following = thread.submit(next, items, None)
                yield item
                del item
    finally:
        items.close()
