"""The CUDA engine on a GPU: memory, streams, launches. `test_fake_driver` runs this file with no GPU as well."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warphash.errors import CaptureError, DeviceError
from warphash.runtime import program_log
from warphash.runtime.abi import Batch, Table
from warphash.runtime.cuda import engine as cuda
from warphash.runtime.cuda.driver import check
from warphash.runtime.cuda.staging import FIRST_PIECE_BYTES, PIECE_BYTES, SMALL_BYTES
from warphash.runtime.engine import KernelSpec
from warphash.storage.lookup import NO_FIELDS
from warphash.storage.word_rows import WordRows

from . import toy

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not cuda.available(), reason=str(cuda.reason_unavailable())),
]


@pytest.fixture(scope="module")
def engine() -> cuda.CudaEngine:
    return cuda.engine(0)


@pytest.fixture(scope="module")
def program(engine: cuda.CudaEngine) -> cuda.CudaProgram:
    return engine.load(toy.cubin(engine.arch))


@pytest.fixture
def foreign(engine: cuda.CudaEngine) -> Any:
    """A non-blocking stream that somebody else made."""
    from cuda.bindings import driver

    driver.cuCtxPushCurrent(engine._context)
    _, stream = driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
    driver.cuCtxPopCurrent()
    yield int(stream)
    driver.cuStreamDestroy(stream)


SIZES = [0, 1, 255, SMALL_BYTES, SMALL_BYTES + 1, FIRST_PIECE_BYTES, FIRST_PIECE_BYTES + 1]
SIZES += [PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES + 7, 5 * PIECE_BYTES + 1]


def scale_add(engine: Any, program: Any, keys: np.ndarray, factor: int, term: int, stream: Any) -> np.ndarray:
    source = engine.from_host(keys, stream)
    target = engine.allocate(keys.nbytes, stream)
    batch = Batch(n=len(keys), keys=source.ptr, out_values=target.ptr, default_value=term)
    program.run("scale_add", toy.table(factor), batch, len(keys), stream)
    return engine.to_host(target.ptr, keys.dtype, len(keys), stream)


def test_a_compiled_find_launches_the_kernel_that_is_loaded(engine: cuda.CudaEngine, program: Any) -> None:
    """With the table and the words of the batch that it is given; not before the kernel is loaded."""

    class Store:
        recovery = SimpleNamespace(step=None)
        kernels: dict[str, Any] = {}  # noqa: RUF012
        array = SimpleNamespace(find_fields=NO_FIELDS, program=SimpleNamespace(kernels=kernels), table=toy.table(3))
        state = SimpleNamespace(array=array)

    class Rows:
        store = Store

    keys = engine.from_host(np.arange(9, dtype=np.uint64))
    out = engine.allocate(9 * 8)
    scale_add(engine, program, np.arange(9, dtype=np.uint64), 1, 0, None)  # which loads the kernel
    fields = Batch.n, Batch.keys, Batch.out_values, Batch.out_flags, Batch.default_value
    places = (*(field.offset for field in fields), ctypes.sizeof(Batch))
    find = engine.compiled.Find(Rows, WordRows.loaded_find, places)
    seen = None, None, 9, int(engine.stream), keys.ptr, out.ptr, 0
    assert find.launch(Rows(), 7, seen) == -1
    Store.kernels["find"] = program.kernels["scale_add"]
    assert find.launch(Rows(), 7, seen) == 0
    assert engine.to_host(out.ptr, np.uint64, 9, engine.stream).tolist() == [7 + 3 * key for key in range(9)]


def test_engine_is_one_a_process_and_says_what_it_is(engine: cuda.CudaEngine) -> None:
    assert cuda.engine(0) is engine
    assert engine.device == "cuda:0" and engine.arch.startswith("sm_") and engine.name
    assert set(engine.clocks_mhz) == {"sm", "memory"}
    assert all(100 < clock_mhz < 100_000 for clock_mhz in engine.clocks_mhz.values())
    assert "." in cuda.driver_version()


def test_a_program_is_noted_whenever_it_is_asked_for(engine: cuda.CudaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = KernelSpec("toy", 0, 0, 0, header="rows/rows.cuh")
    monkeypatch.setattr(cuda.nvrtc, "cache_key", lambda *_: "toy")
    for _ in range(2):
        with program_log.recorded() as log:
            engine.program(spec)
        (source,) = log.sources()
        assert (source.platform, source.program) == ("cuda", "toy")
        assert source.headers == ("core/gpu/schedule.cuh", "rows/rows.cuh")


def test_each_load_of_kernels_is_noted(engine: cuda.CudaEngine) -> None:
    before = program_log.loads()
    program = engine.load(toy.cubin(engine.arch))
    assert program_log.loads() == before + 1
    del program


def test_device_that_is_not_there(engine: cuda.CudaEngine) -> None:
    with pytest.raises(DeviceError, match="cuda:99"):
        cuda.engine(99)


@pytest.mark.parametrize("nbytes", SIZES)
def test_round_trip_of_every_size(engine: cuda.CudaEngine, nbytes: int) -> None:
    array = np.random.default_rng(nbytes).integers(0, 256, nbytes, dtype=np.uint8)
    buffer = engine.from_host(array)
    assert buffer.ptr % 256 == 0 and buffer.nbytes == nbytes
    np.testing.assert_array_equal(engine.to_host(buffer.ptr, np.uint8, nbytes), array)


def test_wide_types_make_the_trip(engine: cuda.CudaEngine) -> None:
    structured = np.zeros(3, [("a", "i4"), ("b", "f8")])
    for array in (np.array([b"abc", b"de"], "S7"), np.array(["2026-11-21"], "M8[s]"), structured):
        buffer = engine.from_host(array)
        assert (engine.to_host(buffer.ptr, array.dtype, len(array)) == array).all()


def test_fill_and_copy(engine: cuda.CudaEngine) -> None:
    a, b = engine.allocate(1000), engine.allocate(1000)
    engine.fill(a.ptr, 0xAB, 1000)
    engine.fill(b.ptr, 0, 1000)
    engine.copy(b.ptr + 100, a.ptr, 300)
    read = engine.to_host(b.ptr, np.uint8, 1000)
    assert (read[100:400] == 0xAB).all() and read.sum() == 300 * 0xAB


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1_000_003])
def test_launch_passes_both_structures_by_value(engine: cuda.CudaEngine, program: cuda.CudaProgram, n: int) -> None:
    keys = np.arange(n, dtype=np.uint64)
    np.testing.assert_array_equal(scale_add(engine, program, keys, 3, 5, None), keys * np.uint64(3) + np.uint64(5))


def test_launch_over_nothing_does_nothing(program: cuda.CudaProgram) -> None:
    program.run("scale_add", Table(), Batch(), 0)


def test_kernel_that_is_not_there(program: cuda.CudaProgram) -> None:
    with pytest.raises(cuda.DriverError, match="no_such_kernel"):
        program.run("no_such_kernel", Table(), Batch(), 1)


@pytest.mark.parametrize("refusals", [1, 2])
def test_code_for_which_there_is_no_memory(
    engine: cuda.CudaEngine, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    """Freed memory goes back to the driver, and the code is loaded; or there is an error that is no MemoryError."""
    driver = engine._driver
    load, trim, asked = driver.cuModuleLoadData, driver.cuMemPoolTrimTo, list[str]()

    def refuses(code: bytes) -> Any:
        asked.append("load")
        return (driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY, None) if asked.count("load") <= refusals else load(code)

    def trims(*arguments: Any) -> Any:
        asked.append("trim")
        return trim(*arguments)

    monkeypatch.setattr(driver, "cuModuleLoadData", refuses)
    monkeypatch.setattr(driver, "cuMemPoolTrimTo", trims)
    if refusals == 1:
        assert (
            scale_add(engine, engine.load(toy.cubin(engine.arch)), np.arange(9, dtype=np.uint64), 2, 0, None)[8] == 16
        )
    else:
        with pytest.raises(
            cuda.DriverError, match=r"cuda:0 has [\d,]+ bytes free, and no room for the code of a kernel"
        ):
            engine.load(toy.cubin(engine.arch))
    assert asked == ["load", "trim", "load"]


def test_memory_that_the_pool_keeps_counts_as_free(engine: cuda.CudaEngine) -> None:
    def free() -> int:
        engine.synchronize()
        return engine.free_bytes()

    before, nbytes = free(), 256 << 20
    held = engine.allocate(nbytes)
    assert before - 2 * nbytes < free() <= before - nbytes
    del held
    assert free() > before - nbytes // 2


@pytest.mark.parametrize("raw", [0, cuda.LEGACY_STREAM, cuda.PER_THREAD_STREAM])
def test_default_streams(engine: cuda.CudaEngine, program: cuda.CudaProgram, raw: int) -> None:
    keys = np.arange(1000, dtype=np.uint64)
    np.testing.assert_array_equal(scale_add(engine, program, keys, 7, 1, raw), keys * np.uint64(7) + np.uint64(1))


def test_work_is_ordered_across_streams(engine: cuda.CudaEngine, program: cuda.CudaProgram, foreign: int) -> None:
    n = 4_000_000
    keys = np.arange(n, dtype=np.uint64)
    buffer = engine.from_host(keys)
    expected = keys
    for step, stream in enumerate([None, foreign, 0, foreign, cuda.PER_THREAD_STREAM, None, foreign] * 3):
        batch = Batch(n=n, keys=buffer.ptr, out_values=buffer.ptr, default_value=step)
        program.run("scale_add", toy.table(3), batch, n, stream)
        expected = expected * np.uint64(3) + np.uint64(step)
    np.testing.assert_array_equal(engine.to_host(buffer.ptr, np.uint64, n), expected)


def test_stream_that_is_gone_does_not_matter(engine: cuda.CudaEngine, foreign: int) -> None:
    from cuda.bindings import driver

    driver.cuCtxPushCurrent(engine._context)
    _, stream = driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
    buffer = engine.allocate(1 << 20, int(stream))
    engine.fill(buffer.ptr, 7, 1 << 20, int(stream))
    driver.cuStreamDestroy(stream)
    driver.cuCtxPopCurrent()
    assert (engine.to_host(buffer.ptr, np.uint8, 1 << 20, foreign) == 7).all()
    del buffer
    engine.synchronize()


def test_the_gpu_of_an_address(engine: cuda.CudaEngine) -> None:
    buffer, array = engine.allocate(1 << 20), np.zeros(1 << 20, np.uint8)
    assert cuda.gpu_of(buffer.ptr) == 0
    assert cuda.gpu_of(array.ctypes.data | 1) is None


def test_memory_comes_back(engine: cuda.CudaEngine) -> None:
    gc.collect()
    for number in range(40):  # more in all than any device has
        engine.allocate(engine.total_bytes // 8)
        if number % 3 == 2:  # tests of other processes need memory, too
            engine.synchronize()


def test_too_much_memory_is_a_memory_error(engine: cuda.CudaEngine) -> None:
    with pytest.raises(MemoryError, match=r"cuda:0 has [\d,]+ bytes free, and [\d,]+ are needed"):
        engine.allocate(2 * engine.total_bytes)
    held = engine.from_host(np.arange(5))
    assert engine.to_host(held.ptr, np.int64, 5)[4] == 4


def test_callers_context_is_left_alone(engine: cuda.CudaEngine) -> None:
    from cuda.bindings import driver

    popped = []
    while int(driver.cuCtxGetCurrent()[1]):  # other libraries of this process leave theirs current
        popped.append(driver.cuCtxPopCurrent()[1])
    held = engine.allocate(100)
    engine.fill(held.ptr, 0, 100)
    engine.synchronize()
    assert int(driver.cuCtxGetCurrent()[1]) == 0
    for context in reversed(popped):
        driver.cuCtxPushCurrent(context)


def test_several_threads(engine: cuda.CudaEngine, program: cuda.CudaProgram) -> None:
    wrong = []

    def work(number: int) -> None:
        for i in range(20):
            keys = np.arange(10_000 + number, dtype=np.uint64)
            got = scale_add(engine, program, keys, number, i, [None, 0, cuda.PER_THREAD_STREAM][number % 3])
            if not np.array_equal(got, keys * np.uint64(number) + np.uint64(i)):
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_operations_of_several_threads_take_turns(engine: cuda.CudaEngine) -> None:
    """While an operation waits for something else, other threads run Python, but no operation of theirs begins."""
    log = []

    def operation(number: int, _handle: int) -> None:
        log.append(number)
        time.sleep(0.001)
        log.append(number)

    threads = [threading.Thread(target=engine.order, args=(None, operation, number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(log[::2]) == list(range(8)) and log[::2] == log[1::2]


def test_an_operation_may_begin_inside_another(engine: cuda.CudaEngine) -> None:
    assert engine.order(0, lambda outer: engine.order(None, lambda inner: (outer, inner))) == (1, engine.stream)
    assert engine.call(engine.order, None, lambda handle: handle) == engine.stream


@pytest.mark.parametrize("stream", [None, 0])
def test_an_operation_that_raises_ends(engine: cuda.CudaEngine, stream: int | None) -> None:
    with pytest.raises(ZeroDivisionError):
        engine.order(stream, lambda handle: handle // 0)
    held = engine.from_host(np.arange(5), stream)
    assert engine.to_host(held.ptr, np.int64, 5, stream)[4] == 4


def test_a_launch_that_is_refused(
    engine: cuda.CudaEngine, program: cuda.CudaProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = program._find("scale_add").function
    monkeypatch.setitem(
        program.kernels, "scale_add", engine.kernel(function, 1 << 20, 1)
    )  # no block has so many threads
    with pytest.raises(cuda.DriverError, match=r"launching a kernel on cuda:0: .* CUDA_ERROR_INVALID_VALUE \(\w+"):
        program.run("scale_add", toy.table(1), Batch(n=1 << 20), 1 << 20)


def test_a_captured_launch_is_outside_of_the_order(engine: cuda.CudaEngine, foreign: int) -> None:
    """Also if its kernel is loaded during the capture."""
    from cuda.bindings import driver

    keys, cubin = np.arange(1000, dtype=np.uint64), toy.cubin(engine.arch)
    source, target = engine.from_host(keys), engine.from_host(keys)
    batch = Batch(n=len(keys), keys=source.ptr, out_values=target.ptr, default_value=5)
    engine.synchronize()
    assert not any(map(engine.is_captured, (None, 0, cuda.LEGACY_STREAM, foreign)))
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    check(engine.call(driver.cuStreamBeginCapture, foreign, mode), "beginning")
    assert engine.is_captured(foreign) and not any(map(engine.is_captured, (None, 0)))
    engine.load(cubin).run("scale_add", toy.table(3), batch, len(keys), foreign)
    for nbytes in (8, 1 << 20):
        with pytest.raises(CaptureError, match=f"{nbytes:,} bytes of working memory"):
            engine.allocate(nbytes, foreign)
    graph = check(engine.call(driver.cuStreamEndCapture, foreign), "ending")
    np.testing.assert_array_equal(engine.to_host(target.ptr, np.uint64, len(keys)), keys)
    executable = check(engine.call(driver.cuGraphInstantiate, graph, 0), "instantiating")
    for _ in range(2):
        check(engine.order(foreign, lambda handle: driver.cuGraphLaunch(executable, handle)), "launching")
        expected = keys * np.uint64(3) + np.uint64(5)
        np.testing.assert_array_equal(engine.to_host(target.ptr, np.uint64, len(keys)), expected)
        keys = keys[::-1].copy()
        engine.upload(source.ptr, keys)


class Stream:
    """As streams of CuPy, PyTorch and cuda.core are."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def test_streams_by_the_protocol(engine: cuda.CudaEngine, program: cuda.CudaProgram, foreign: int) -> None:
    keys = np.arange(1000, dtype=np.uint64)
    for handle in (foreign, 0, cuda.PER_THREAD_STREAM):
        assert engine.order(Stream(handle), lambda got: got) == (handle or cuda.LEGACY_STREAM)
        made = scale_add(engine, program, keys, 3, 5, Stream(handle))
        np.testing.assert_array_equal(made, keys * np.uint64(3) + np.uint64(5))
        engine.synchronize(Stream(handle))
    assert engine.stream.__cuda_stream__() == (0, engine.stream)
    assert engine.order(Stream(engine.stream), lambda got: got) == engine.stream
    with pytest.raises(TypeError):
        engine.order(object(), lambda got: got)


@pytest.mark.parametrize("n", [0, 1, 1000, 3_000_001])
def test_pipeline_over_host_arrays(engine: cuda.CudaEngine, program: cuda.CudaProgram, n: int) -> None:
    keys = np.arange(n, dtype=np.uint64)
    out, echo = np.empty_like(keys), np.empty((n, 2), np.uint32)
    pieces = []

    def body(count: int, inputs: list[int], outputs: list[int]) -> None:
        pieces.append(count)
        program.run("scale_add", toy.table(9), Batch(n=count, keys=inputs[0], out_values=outputs[0]), count)
        engine.copy(outputs[1], inputs[0], 8 * count)

    engine.staging.pipeline([keys], [out, echo], body)
    np.testing.assert_array_equal(out, keys * np.uint64(9))
    np.testing.assert_array_equal(echo.view(np.uint64).ravel(), keys)
    assert sum(pieces) == n and len(pieces) == -(-n // max(pieces, default=1))


def test_pipeline_that_fails_leaves_the_engine_usable(engine: cuda.CudaEngine) -> None:
    def body(count: int, inputs: list[int], outputs: list[int]) -> None:
        raise KeyError("body")

    with pytest.raises(KeyError, match="body"):
        engine.staging.pipeline([np.arange(10)], [np.empty(10)], body)
    held = engine.from_host(np.arange(5))
    assert engine.to_host(held.ptr, np.int64, 5)[4] == 4


def test_the_heap_for_malloc_in_kernels_never_shrinks(engine: cuda.CudaEngine) -> None:
    for asked in (16 << 20, 1 << 20):
        engine.reserve_heap(asked)
        limit = engine._driver.CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE
        assert engine.call(engine._driver.cuCtxGetLimit, limit)[1] >= 16 << 20


def test_a_launch_allocates_nothing_and_waits_for_nothing(
    engine: cuda.CudaEngine, program: cuda.CudaProgram, foreign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one call of compiled code, which copies both structures: the next launch may change them."""
    launches, table = 2000, toy.table(1)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a launch is more than one call of compiled code")

    for stream in (None, 0, foreign):
        buffer = engine.from_host(np.zeros(1000, np.uint64), stream)
        batch = Batch(n=1000, keys=buffer.ptr, out_values=buffer.ptr)
        program.run("scale_add", table, batch, 1000, stream)  # finds the entry
        with monkeypatch.context() as patch:
            for name in ("allocate", "allocate_pinned", "synchronize", "call", "order"):
                patch.setattr(engine, name, refuse)
            for batch.default_value in range(launches):
                program.run("scale_add", table, batch, 1000, stream)
        assert (engine.to_host(buffer.ptr, np.uint64, 1000, stream) == sum(range(launches))).all()


def test_small_pinned_memory_is_taken_again(engine: cuda.CudaEngine) -> None:
    first, second = engine.allocate_pinned(64), engine.allocate_pinned(4096)
    assert abs(first.ptr - second.ptr) >= 4096
    at = second.ptr
    del second
    assert engine.allocate_pinned(8).ptr == at
    large = engine.allocate_pinned(4097)
    large.array[:] = 7
    assert first.nbytes == 64 and large.array.sum() == 7 * 4097
