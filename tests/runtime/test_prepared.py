"""Launches that compiled code prepares: which words of a batch they set, and what the driver is given."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import pytest

from warphash.runtime.abi import QuotientBatch, QuotientTable
from warphash.runtime.cuda import _streams  # type: ignore[attr-defined]

FUNCTION, OWN = 0x77, 0x88


class Driver:
    """A driver of Python functions, which notes its launches."""

    def __init__(self) -> None:
        self.launches: list[tuple[int, int, int, bytes, bytes]] = []
        self.status = 0
        pointer, word = ctypes.c_void_p, ctypes.c_size_t
        nothing = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
        launch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint), word, ctypes.POINTER(pointer), pointer)
        self._functions = [*[nothing] * 5, launch(self._launch), *[nothing] * 6]
        addresses = tuple(ctypes.cast(function, pointer).value for function in self._functions)
        self.streams = _streams.Streams(addresses, 0, OWN, 0, False, lambda status: None)

    def _launch(self, config: Any, function: int, arguments: Any, extra: Any) -> int:
        stream = ctypes.cast(config, ctypes.POINTER(ctypes.c_size_t))[4]
        sizes = ctypes.sizeof(QuotientTable), ctypes.sizeof(QuotientBatch)
        given = [ctypes.string_at(arguments[i], size) for i, size in enumerate(sizes)]
        self.launches.append((function, config[0] * config[3], stream, *given))
        return self.status


def test_a_prepared_launch_sets_its_words_and_leaves_the_others() -> None:
    driver = Driver()
    table, batch = QuotientTable(buckets=5), QuotientBatch(report=7, n=1, keys=2, values=3)
    places = QuotientBatch.n.offset, QuotientBatch.values.offset
    prepared = _streams.Prepared(_streams.Kernel(driver.streams, FUNCTION, 64, 10), table, batch, places)
    for n, values in ((9, 1 << 63), (8, 4)):
        assert prepared.run(64, None, n, values) == 0
        expected = bytes(QuotientBatch(report=7, n=n, keys=2, values=values))
        assert driver.launches.pop() == (FUNCTION, 64, OWN, bytes(table), expected)
    driver.status = 700
    assert prepared.run(64, 99, 1, 1) == 700 and driver.launches[0][2] == 99


@pytest.mark.parametrize("words", [(), (1,), (1, 2, 3)])
def test_a_word_for_each_place(words: tuple[int, ...]) -> None:
    driver, batch = Driver(), QuotientBatch()
    prepared = _streams.Prepared(_streams.Kernel(driver.streams, FUNCTION, 64, 10), QuotientTable(), batch, (0, 8))
    with pytest.raises(TypeError, match="a word for each place"):
        prepared.run(64, None, *words)
    assert not driver.launches


def test_a_process_ends_beside_a_wait() -> None:
    """Before 3.14, Python unwinds daemon threads that ask for its lock when it ends."""
    code = """
import ctypes, threading, time
from warphash.runtime.cuda import _streams
libc = ctypes.CDLL(None)
getpid, usleep = (ctypes.cast(getattr(libc, name), ctypes.c_void_p).value for name in ("getpid", "usleep"))
streams = _streams.Streams((getpid,) * 11 + (usleep,), 0, 88, 0, False, lambda status: None)
def wait():
    while True:
        streams.wait(2000)
for _ in range(4):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
