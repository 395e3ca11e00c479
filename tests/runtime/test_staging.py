"""Copies of host arrays through pinned pieces, on a device that works as late as it may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warphash.runtime.cuda import staging
from warphash.runtime.cuda.staging import Staging
from warphash.runtime.devices import engine_for
from warphash.runtime.engine import Buffer
from warphash.runtime.memory import PinnedBuffer, bytes_at

FIRST, PIECE = 1024, 8192
SIZES = (0, 1, 100, FIRST, FIRST + 1, PIECE, PIECE + 1, 2 * PIECE + 7, 5 * PIECE + FIRST)


class LateMark:
    """The place behind some of the work of a device."""

    def __init__(self, device: LateDevice) -> None:
        self._device, self._place = device, 0

    def record(self, stream: Any = None) -> None:
        self._place = self._device.given

    def wait(self) -> None:
        self._device.run_to(self._place)


class LateDevice:
    """Memory of the host; work begins when the host waits for it.

    Attributes
    ----------
    given
        Pieces of work so far.
    pinned
        The sizes of all pinned memory so far, in bytes.
    """

    def __init__(self) -> None:
        self.given, self._done, self.pinned = 0, 0, list[int]()
        self._work: list[Callable[[], Any]] = []

    def give(self, work: Callable[[], Any]) -> None:
        self._work.append(work)
        self.given += 1

    def run_to(self, place: int) -> None:
        while self._done < place:
            self._work[self._done]()
            self._done += 1

    def allocate(self, nbytes: int, stream: Any = None) -> Buffer:
        return engine_for("cpu").allocate(nbytes)

    def allocate_pinned(self, nbytes: int) -> PinnedBuffer:
        memory = engine_for("cpu").allocate(nbytes)
        self.pinned.append(nbytes)

        def release(_: int) -> None:
            self.synchronize()  # as the driver does
            bytes_at(memory.ptr, nbytes)[:] = 0xEE

        return PinnedBuffer(memory.ptr, nbytes, release)

    def copy(self, target: int, source: int, nbytes: int, stream: Any = None, *, mark: Any = None) -> None:
        def work() -> None:
            bytes_at(target, nbytes)[:] = bytes_at(source, nbytes)

        self.give(work)
        if mark is not None:
            mark.record(stream)

    def mark(self) -> LateMark:
        return LateMark(self)

    def synchronize(self, stream: Any = None) -> None:
        self.run_to(self.given)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> LateDevice:
    monkeypatch.setattr(staging, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(staging, "FIRST_PIECE_BYTES", FIRST)
    monkeypatch.setattr(staging, "SMALL_BYTES", 64)
    return LateDevice()


def test_arrays_of_any_size_make_the_trip_one_after_another(device: LateDevice) -> None:
    copies = Staging(device)
    for seed, nbytes in enumerate((*SIZES, *reversed(SIZES))):
        array = np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)
        memory = device.allocate(max(1, nbytes))
        given = array.copy()
        copies.upload(memory.ptr, given)
        given[:] = 0  # the copy has been read
        back = np.empty_like(array)
        copies.download(memory.ptr, back)
        np.testing.assert_array_equal(back, array)


def test_small_arrays_pin_small_pieces(device: LateDevice) -> None:
    copies, small, large = Staging(device), np.zeros(FIRST, np.uint8), np.zeros(2 * PIECE, np.uint8)
    memory, page = device.allocate(large.nbytes), device.pinned.copy()
    copies.upload(memory.ptr, small)
    copies.download(memory.ptr, small)
    assert device.pinned == [*page, FIRST]
    copies.upload(memory.ptr, large)
    copies.upload(memory.ptr, large)
    copies.upload(memory.ptr, small)
    assert device.pinned == [*page, FIRST, PIECE, PIECE]


@pytest.mark.parametrize("n", [0, 1, 30, 60, 300, 480, 490, 5000])
@pytest.mark.parametrize("width", [1, 700])
def test_a_pipeline_gives_each_row_to_its_body(device: LateDevice, n: int, width: int) -> None:
    copies, rows = Staging(device), list[int]()

    def body(count: int, inputs: list[int], outputs: list[int]) -> None:
        rows.append(count)

        def work() -> None:
            given = bytes_at(inputs[0], 8 * count * width).view(np.int64)
            bytes_at(outputs[0], 8 * count * width).view(np.int64)[:] = 2 * given
            bytes_at(outputs[1], count)[:] = 1

        device.give(work)

    for turn in (1, 2):
        keys = np.random.default_rng(n + turn).integers(0, 1 << 60, (n, width))
        doubled, flags = np.zeros_like(keys), np.zeros(n, bool)
        copies.pipeline([keys], [doubled, flags], body)
        np.testing.assert_array_equal(doubled, 2 * keys)
        assert flags.all() and sum(rows) == turn * n
    if width == 1 and n:
        assert max(device.pinned) == (FIRST if n <= 30 else PIECE)


@pytest.mark.parametrize("way", ["upload", "small download", "large download", "pipeline"])
def test_a_handler_that_copies_while_its_thread_waits_for_a_copy(device: LateDevice, way: str) -> None:
    """The handler gets pieces of its own, and the copy that waits keeps its pieces."""
    copies, nested = Staging(device), list[bool]()
    nbytes = 60 if way == "small download" else 5 * PIECE
    array, memory = np.random.default_rng(1).integers(0, 256, nbytes, dtype=np.uint8), device.allocate(nbytes)
    bytes_at(memory.ptr, nbytes)[:] = array
    run_to = device.run_to

    def copied() -> np.ndarray:
        out = np.zeros_like(array)
        if way == "upload":
            copies.upload(memory.ptr, array)
            copies.download(memory.ptr, out)
        elif way == "pipeline":
            copies.pipeline([array], [out], lambda n, ins, outs: device.copy(outs[0], ins[0], n))
        else:
            copies.download(memory.ptr, out)
        return out

    def interrupted(place: int) -> None:
        if (depth := len(nested)) < 3:
            nested.append(False)
            nested[depth] = np.array_equal(copied(), array)
        run_to(place)

    device.run_to = interrupted  # type: ignore[method-assign]
    assert np.array_equal(copied(), array) and len(nested) == 3 and all(nested)
    device.run_to = run_to  # type: ignore[method-assign]
    before = len(device.pinned)
    assert np.array_equal(copied(), array) and len(device.pinned) == before  # the pair has its turns again
