"""Memory of a GPU from the allocator of another library. `test_fake_driver` runs this file with no GPU as well."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import warphash
from warphash.errors import DeviceError, ParameterError
from warphash.runtime.cuda import engine as cuda
from warphash.runtime.cuda.small_memory import LARGEST_BYTES

from . import toy

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not cuda.available(), reason=str(cuda.reason_unavailable())),
]

NEEDED = LARGEST_BYTES + 1


@pytest.fixture
def engine() -> Iterator[cuda.CudaEngine]:
    """An engine that takes its memory from its own pool again after the test."""
    engine = cuda.engine(0)
    yield engine
    warphash.set_memory_resource(None)


class Resource:
    """As RMM's: pieces of one block, each with the streams that it was taken and given back on."""

    def __init__(self, engine: cuda.CudaEngine, pieces: int = 4, offset: int = 0) -> None:
        self.block = engine.allocate(pieces << 20)
        self.free = [self.block.ptr + offset + (at << 20) for at in range(pieces)]
        self.taken: list[tuple[int, int]] = []
        self.given_back: list[tuple[int, int, int]] = []

    def allocate(self, nbytes: int, stream: Any) -> int:
        if not self.free:
            raise MemoryError("no piece is left")
        self.taken.append((nbytes, stream.__cuda_stream__()[1]))
        return self.free.pop()

    def deallocate(self, ptr: int, nbytes: int, stream: Any) -> None:
        self.given_back.append((ptr, nbytes, stream.__cuda_stream__()[1]))
        self.free.append(ptr)


class Buffer:
    """As cuda.core's."""

    def __init__(self, handle: int, closed: list[Any]) -> None:
        self.handle, self.closed = handle, closed

    def close(self, stream: Any) -> None:
        self.closed.append(stream)


@pytest.mark.parametrize("stream", [None, cuda.LEGACY_STREAM, "foreign"])
def test_memory_comes_from_the_resource_and_goes_back(engine: cuda.CudaEngine, stream: Any) -> None:
    resource = Resource(engine)
    if stream == "foreign":
        from cuda.bindings import driver

        stream = int(engine.call(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING)[1])
    handle = engine.join(stream)
    assert warphash.set_memory_resource(resource) is None
    buffer = engine.allocate(NEEDED, stream)
    assert resource.taken == [(NEEDED, handle)] and len(resource.free) == 3
    engine.fill(buffer.ptr, 7, NEEDED, stream)
    assert (engine.to_host(buffer.ptr, np.uint8, NEEDED, stream) == 7).all()
    ptr = buffer.ptr
    del buffer
    own, legacy = int(engine.stream), cuda.LEGACY_STREAM
    assert resource.given_back[0][:2] == (ptr, NEEDED)
    assert resource.given_back[0][2] in (own, legacy), "a stream of the caller's may be gone"


def test_small_memory_stays_with_the_engine(engine: cuda.CudaEngine) -> None:
    resource = Resource(engine)
    warphash.set_memory_resource(resource)
    engine.allocate(LARGEST_BYTES)
    assert resource.taken == []


def test_memory_goes_back_to_where_it_came_from(engine: cuda.CudaEngine) -> None:
    first, second = Resource(engine), Resource(engine)
    warphash.set_memory_resource(first)
    held = engine.allocate(NEEDED)
    assert warphash.set_memory_resource(second, device="cuda:0") is first
    own = engine.allocate(NEEDED)
    assert warphash.set_memory_resource(None) is second
    del held, own
    assert [len(each.given_back) for each in (first, second)] == [1, 1]
    assert warphash.set_memory_resource(None) is None


def test_a_buffer_of_cuda_core_is_closed_on_a_stream(engine: cuda.CudaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []
    block = engine.allocate(1 << 20)
    core = ModuleType("cuda.core")
    core.Stream = SimpleNamespace(from_handle=lambda handle: ("stream", handle))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda.core", core)

    class Pool:
        __module__ = "cuda.core._memory"

        def allocate(self, nbytes: int, *, stream: Any) -> Buffer:
            assert stream == ("stream", int(engine.stream))
            return Buffer(block.ptr, closed)

        def deallocate(self, ptr: int, nbytes: int, *, stream: Any) -> None:
            raise AssertionError("the buffer is closed instead")

    warphash.set_memory_resource(Pool())
    assert engine.allocate(NEEDED).ptr == block.ptr
    gc.collect()
    assert [name for name, _ in closed] == ["stream"]


def test_streams_of_rmm_are_of_its_own_class(engine: cuda.CudaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[Any] = []

    class Stream:
        def __init__(self, like: Any) -> None:
            self.handle = like.__cuda_stream__()[1]

        def __cuda_stream__(self) -> tuple[int, int]:
            streams.append(self)
            return 0, self.handle

    module = ModuleType("rmm.pylibrmm.stream")
    module.Stream = Stream  # type: ignore[attr-defined]
    for name in ("rmm", "rmm.pylibrmm"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "rmm.pylibrmm.stream", module)
    kind = type("PoolMemoryResource", (Resource,), {"__module__": "rmm.mr"})
    resource = kind(engine)
    warphash.set_memory_resource(resource)
    engine.allocate(NEEDED)
    assert len(streams) == 2 and resource.given_back[0][2] == streams[1].handle


def test_the_next_operation_is_behind_what_the_allocator_gave_a_stream(engine: cuda.CudaEngine) -> None:
    """Who had the memory before may still use it, on the stream that the allocator was asked for."""
    if not toy.FAKE_DRIVER:
        pytest.skip("a GPU does not tell which stream is behind which")
    driver = ctypes.CDLL("libcuda.so.1")
    resource = Resource(engine)
    warphash.set_memory_resource(resource)
    theirs, ours = 77, 78
    allocate = resource.allocate

    def busy(nbytes: int, stream: Any) -> int:
        driver.give(stream)
        return allocate(nbytes, stream)

    resource.allocate = busy  # type: ignore[method-assign]
    buffer = engine.allocate(NEEDED, theirs)
    engine.fill(buffer.ptr, 1, NEEDED, ours)
    assert driver.is_behind(ours, theirs)
    given_back = resource.deallocate

    def deallocate(ptr: int, nbytes: int, stream: Any) -> None:
        assert driver.is_behind(stream, ours)
        given_back(ptr, nbytes, stream)

    resource.deallocate = deallocate  # type: ignore[method-assign]
    engine.order(ours, driver.give)
    del buffer
    assert len(resource.given_back) == 1


def test_a_resource_without_memory_is_a_memory_error(engine: cuda.CudaEngine) -> None:
    warphash.set_memory_resource(Resource(engine, pieces=1))
    held = engine.allocate(NEEDED)
    with pytest.raises(MemoryError, match=r"memory resource of cuda:0 has no 16,385 bytes.*no piece is left"):
        engine.allocate(NEEDED)
    del held
    engine.allocate(NEEDED)


def test_an_error_of_cuda_core_is_a_memory_error(engine: cuda.CudaEngine) -> None:
    class Refusing:
        text = "CUDA_ERROR_OUT_OF_MEMORY: no"

        def allocate(self, nbytes: int, *, stream: Any) -> int:
            raise RuntimeError(self.text)

        def deallocate(self, ptr: int, nbytes: int, *, stream: Any) -> None: ...

    resource = Refusing()
    warphash.set_memory_resource(resource)
    with pytest.raises(MemoryError, match="OUT_OF_MEMORY"):
        engine.allocate(NEEDED)
    resource.text = "another fault"
    with pytest.raises(RuntimeError, match="another fault"):
        engine.allocate(NEEDED)


def test_an_address_that_kernels_cannot_take_is_refused_and_given_back(engine: cuda.CudaEngine) -> None:
    resource = Resource(engine, offset=8)
    warphash.set_memory_resource(resource)
    with pytest.raises(DeviceError, match=r"multiple of 256 bytes.*give another to warphash.set_memory_resource"):
        engine.allocate(NEEDED)
    assert len(resource.given_back) == 1


def test_what_is_no_resource_is_refused(engine: cuda.CudaEngine) -> None:
    for wrong in ("numba", 7, SimpleNamespace(allocate=int)):
        with pytest.raises(ParameterError, match="allocate\\(nbytes, stream=\\)"):
            warphash.set_memory_resource(wrong)
    for device in ("cpu", None, "cuda:x"):
        with pytest.raises(DeviceError, match="which a memory resource is for"):
            warphash.set_memory_resource(None, device=device)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_a_library_that_is_missing_is_named(
    engine: cuda.CudaEngine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ParameterError, match=f"resource '{name}' needs that library"):
        warphash.set_memory_resource(name)


# ---- libraries, on a GPU
def filled_table(keys: Any) -> warphash.HashMap[Any, Any]:
    """A table that has grown, so that it has taken memory and given some back."""
    table: Any = warphash.HashMap("int64", "int64", device="cuda")
    for part in np.array_split(keys, 4):
        table.insert(part, 2 * part)
    return table


KEYS = np.arange(1_000_000) * 7


@pytest.mark.skipif(toy.FAKE_DRIVER, reason="no library takes the fake driver")
@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_a_table_in_the_memory_of_a_library(engine: cuda.CudaEngine, name: str) -> None:
    library = pytest.importorskip(name)

    def used() -> int:
        if name == "torch":
            return int(library.cuda.memory_allocated())
        return int(library.get_default_memory_pool().used_bytes())

    warphash.set_memory_resource(name)
    before = used()
    table = filled_table(KEYS)
    assert used() - before > 16 * len(KEYS)
    values, found = table.find(KEYS)
    assert found.all() and (values == 2 * KEYS).all()
    table.check()
    del table, values, found
    gc.collect()
    assert used() == before


@pytest.mark.skipif(toy.FAKE_DRIVER, reason="no library takes the fake driver")
def test_a_table_in_the_memory_of_rmm(engine: cuda.CudaEngine) -> None:
    rmm = pytest.importorskip("rmm")
    resource = rmm.mr.StatisticsResourceAdaptor(rmm.mr.CudaAsyncMemoryResource())
    warphash.set_memory_resource(resource)
    table = filled_table(KEYS)
    assert resource.allocation_counts.current_bytes > 16 * len(KEYS)
    assert (table.find(KEYS)[0] == 2 * KEYS).all()
    del table
    gc.collect()
    assert resource.allocation_counts.current_bytes == 0


@pytest.mark.skipif(toy.FAKE_DRIVER, reason="no library takes the fake driver")
def test_a_table_in_the_memory_of_cuda_core(engine: cuda.CudaEngine) -> None:
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    warphash.set_memory_resource(core.DeviceMemoryResource(device))
    table = filled_table(KEYS)
    assert (table.find(KEYS)[0] == 2 * KEYS).all()
    table.check()
