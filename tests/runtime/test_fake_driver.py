"""The CUDA engine's calls, on a driver that keeps device memory on the host: runs where there is no GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warphash.runtime.cuda import nvrtc

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or not nvrtc.installed(), reason="needs Linux and NVRTC"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
]

WAITS = """
import ctypes
from warphash.runtime.cuda import engine as cuda
engine, waits = cuda.engine(0), ctypes.c_longlong.in_dll(ctypes.CDLL("libcuda.so.1"), "waits")
seen = []
for stream in (0, None, 0, 77, 77, 0, cuda.PER_THREAD_STREAM, cuda.PER_THREAD_STREAM, None):
    before = waits.value
    engine.order(stream, lambda handle: None)
    seen.append(waits.value - before)
print(*seen)
"""


FOLLOWS = """
import ctypes, itertools
from warphash.runtime.cuda import engine as cuda
engine, driver = cuda.engine(0), ctypes.CDLL("libcuda.so.1")
streams = (cuda.LEGACY_STREAM, int(engine.stream), 77, 78)
for theirs, tables in itertools.permutations(streams, 2):
    for before in streams:
        engine.order(before, driver.give)
        driver.give(theirs)  # by another library
        engine.wait(theirs)
        engine.order(tables, driver.give)
        print(driver.is_behind(tables, theirs), driver.is_behind(tables, before))
"""


KEEPS = """
import ctypes
from warphash.runtime.cuda import engine as cuda
engine, threshold = cuda.engine(0), ctypes.c_ulonglong.in_dll(ctypes.CDLL("libcuda.so.1"), "threshold")
kept = engine.total_bytes // 16
held = []
for mebibytes in (0, 8, 64, 100):
    held.append(engine.allocate(mebibytes << 20))
    print((threshold.value - kept) >> 20)
while held:
    held.pop(0)
    print((threshold.value - kept) >> 20)
try:
    engine.allocate(engine.total_bytes)
except MemoryError:
    print(threshold.value - kept)
"""


REFUSES = """
import ctypes
import numpy as np
from warphash.runtime.cuda import engine as cuda
engine, next_wait = cuda.engine(0), ctypes.c_int.in_dll(ctypes.CDLL("libcuda.so.1"), "next_wait")
memory = engine.allocate(1 << 20)
def failing_wait():
    next_wait.value = 700
    engine.to_host(memory.ptr, np.uint8, 8)
for refused in (
    lambda: engine.fill(0, 1, 8, 77),
    lambda: engine.copy(memory.ptr, 0, 8),
    lambda: engine.to_host(0, np.uint8, 8),
    failing_wait,
):
    try:
        refused()
    except cuda.DriverError as error:
        print(str(error).partition(":")[0])
engine.fill(memory.ptr, 7, 8, 77)
print(engine.to_host(memory.ptr, np.uint8, 8).tolist() == [7] * 8)
"""


JOINS = WAITS.replace("engine.order(stream, lambda handle: None)", "engine.synchronize(stream)")


FORKS = """
import ctypes, gc, os
import numpy as np
from warphash import DeviceError, EngineUnavailable, HashMap
from warphash.runtime.cuda import engine as cuda
from warphash.runtime.devices import engine_for
from warphash.table.locks import ReadWriteLock
engine, driver = cuda.engine(0), ctypes.CDLL("libcuda.so.1")
calls = ctypes.c_longlong.in_dll(driver, "calls")
held = [engine.allocate(100), engine.allocate(1 << 20), engine.allocate(64 << 20)]
held += [engine.allocate_pinned(1 << 20), engine.mark()]
answer = engine.answer(4)
lock = ReadWriteLock(engine.lost_in_child)
assert engine_for("cuda") is engine
said = []
def refuses(kind, call):
    try:
        call()
        said.append("went on")
    except kind as error:
        said.append("spawn" in str(error))
if os.fork():
    print(os.waitstatus_to_exitcode(os.wait()[1]))
    before = calls.value
    held.clear()
    assert calls.value > before and lock.write(lambda: 7) == 7
    engine.fill(engine.allocate(1 << 20).ptr, 1, 8)
else:
    before = calls.value
    for kind, call in (
        (DeviceError, lambda: lock.read(int)),
        (DeviceError, lambda: lock.write(int)),
        (DeviceError, lambda: engine.allocate(1 << 20)),
        (DeviceError, lambda: engine.fill(held[0].ptr, 0, 8)),
        (DeviceError, lambda: engine.to_host(held[1].ptr, np.uint8, 8)),
        (DeviceError, lambda: engine.synchronize()),
        (DeviceError, lambda: engine.from_host(np.arange(5))),
        (DeviceError, lambda: engine.allocate_pinned(1 << 20)),
        (DeviceError, lambda: answer.ask(held[1].ptr)),
        (EngineUnavailable, lambda: HashMap("int64", "int64", device="cuda")),
        (EngineUnavailable, lambda: HashMap("int64", "int64", device="cuda:0")),
        (EngineUnavailable, lambda: cuda.engine(0)),
    ):
        refuses(kind, call)
    assert not cuda.available() and cuda.device_count() == 0 and cuda.gpu_of(held[1].ptr) is None
    assert HashMap("int64", "int64").device == "cpu"
    held.clear()
    del answer
    gc.collect()
    if calls.value != before:
        said.append(f"{calls.value - before} calls of the driver")
    os._exit(said != [True] * 12)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of a process that finds the fake driver."""
    library = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, HERE / "fake_driver.c", "-ldl"], check=True)
    return os.environ | {"LD_LIBRARY_PATH": str(library.parent), "WARPHASH_TEST_FAKE_DRIVER": "1"}


@pytest.mark.parametrize("file", ["test_cuda.py", "test_memory_resource.py"])
def test_engine_on_a_fake_driver(environment: dict[str, str], file: str) -> None:
    command = [sys.executable, "-m", "pytest", "-x", "-n0", "-p", "no:cacheprovider", str(HERE / file)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE.parents[1], check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout


def test_streams_wait_where_the_driver_does_not_order_them(environment: dict[str, str]) -> None:
    """The legacy stream and the engine's own are in order. Any other may be gone, and a new one have its number."""
    run = subprocess.run([sys.executable, "-c", WAITS], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "0", "0", "1", "1", "1", "1", "1", "1"]


def test_an_operation_is_behind_what_another_library_gave_a_stream_that_is_waited_for(
    environment: dict[str, str],
) -> None:
    """Whatever three streams these are: that of the operation before, that of the library, and that of the table."""
    run = subprocess.run([sys.executable, "-c", FOLLOWS], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1"] * (12 * 4 * 2)


def test_a_host_that_waits_for_a_stream_waits_for_the_operation_before(environment: dict[str, str]) -> None:
    """Also where the driver would order the two streams by itself: it does so once a stream is given something."""
    run = subprocess.run([sys.executable, "-c", JOINS], env=environment, capture_output=True, text=True, check=True)
    legacy, own, again, foreign, *_ = map(int, run.stdout.split())
    assert legacy and own and again and foreign == 1


def test_the_pool_keeps_freed_memory_however_much_is_live(environment: dict[str, str]) -> None:
    given = environment | {"WARPHASH_KEPT_FRACTION": "0.0625"}
    run = subprocess.run([sys.executable, "-c", KEEPS], env=given, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["16", "16", "80", "180", "180", "180", "116", "16", str(16 << 20)]


def test_what_the_driver_refuses_is_named(environment: dict[str, str]) -> None:
    """The engine goes on after that: the next operations are done."""
    run = subprocess.run([sys.executable, "-c", REFUSES], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "filling 8 bytes on cuda",
        "copying 8 bytes on cuda",
        "copying 8 bytes on cuda",
        "running kernels on cuda",
        "True",
    ]


def test_a_missing_extension_is_named_with_its_mend(environment: dict[str, str]) -> None:
    """Beside a GPU, an installation without the compiled module says what is missing, and tables go to the CPU."""
    code = """
import sys
sys.modules["warphash.runtime.cuda._streams"] = None
from warphash.runtime.cuda import engine as cuda
print(cuda.available(), cuda.reason_unavailable())
"""
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("False the compiled extension is missing")
    assert "pip install --force-reinstall --no-deps warphash" in run.stdout


def test_a_forked_child_refuses_every_call_and_touches_nothing(environment: dict[str, str]) -> None:
    """Memory that is given back there belongs to the parent, which goes on."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], env=environment, capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.stderr) == ("0\n", "")
