"""Small device memory is handed out in pieces that nobody else has, and comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from warphash.runtime.cuda.pinned import PAGE_BYTES, PinnedPages
from warphash.runtime.cuda.small_memory import LARGEST_BYTES, SmallMemory
from warphash.runtime.memory import DeviceBuffer

SIZES = (0, 1, 255, 256, 257, 1024, 1025, 4096, 4097, LARGEST_BYTES)


class Device:
    """Memory of which chunks are taken, up to some number."""

    def __init__(self, chunks: int) -> None:
        self.left, self.end = chunks, 1 << 20

    def take(self, nbytes: int) -> int:
        if not self.left:
            raise MemoryError("the device is full")
        self.left -= 1
        self.end += nbytes
        return self.end - nbytes


def assert_apart(buffers: list[DeviceBuffer]) -> None:
    places = sorted((buffer.ptr, buffer.ptr + max(1, buffer.nbytes)) for buffer in buffers)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    assert all(buffer.ptr % 256 == 0 for buffer in buffers)


def test_pieces_lie_apart() -> None:
    memory = SmallMemory(Device(1000).take)
    assert_apart([memory.allocate(nbytes) for nbytes in SIZES * 100])


def test_what_comes_back_is_handed_out_again() -> None:
    device = Device(len({256, 1024, 4096, LARGEST_BYTES}))
    memory = SmallMemory(device.take)
    for _ in range(1000):
        assert_apart([memory.allocate(nbytes) for nbytes in SIZES])
    assert device.left == 0


def test_a_device_that_is_full() -> None:
    device = Device(0)
    memory = SmallMemory(device.take)
    for _ in range(2):
        with pytest.raises(MemoryError, match="is full"):
            memory.allocate(100)
    device.left = 1
    assert memory.allocate(100).nbytes == 100


class Host:
    """The part of an engine that pins memory. Nobody reads the memory."""

    _driver = SimpleNamespace(cuMemHostAlloc=None)

    def __init__(self) -> None:
        self.device = Device(10_000)

    def call(self, function: Any, nbytes: int, flags: int) -> tuple[int, int]:
        return 0, self.device.take(nbytes)


@pytest.mark.parametrize(
    "make", [lambda: SmallMemory(Device(10_000).take), lambda: PinnedPages(Host())], ids=["device", "host"]
)
def test_threads_get_different_pieces(make: Callable[[], Any]) -> None:
    memory = make()
    most = PAGE_BYTES if isinstance(memory, PinnedPages) else LARGEST_BYTES
    held: list[list[DeviceBuffer]] = [[] for _ in range(4)]

    def work(mine: list[DeviceBuffer]) -> None:
        for n in range(3000):
            mine.append(memory.allocate(1 + n % most))
            if n % 3 == 0:
                del mine[n // 7 % len(mine)]

    threads = [threading.Thread(target=work, args=(mine,)) for mine in held]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_apart([buffer for mine in held for buffer in mine])
