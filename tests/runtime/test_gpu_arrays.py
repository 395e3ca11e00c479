"""GPU arrays of the libraries: the caller's stream, the caller's kind, the caller's device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.empty_like import empty_like
from warphash import DeviceError, HashMap, HashSet
from warphash.arrays.dlpack import DeviceArray
from warphash.arrays.view import ArrayView, view
from warphash.runtime.abi import Batch
from warphash.runtime.cuda import engine as cuda

from . import toy

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not cuda.available(), reason=str(cuda.reason_unavailable())),
    pytest.mark.skipif(toy.FAKE_DRIVER, reason="no library takes the fake driver"),
]

N = 1_000_003
EXPECTED = np.arange(N, dtype=np.uint64) * np.uint64(3) + np.uint64(5)


@pytest.fixture(scope="module")
def engine() -> cuda.CudaEngine:
    return cuda.engine(0)


@pytest.fixture(scope="module")
def program(engine: cuda.CudaEngine) -> cuda.CudaProgram:
    return engine.load(toy.cubin(engine.arch))


def scale_add(
    engine: cuda.CudaEngine, program: cuda.CudaProgram, keys: Any, dtype: Any = np.uint64
) -> tuple[ArrayView, Any]:
    """3 * keys + 5 in the caller's kind, with no synchronisation."""
    seen = view(keys)
    assert seen.device == "cuda:0" and seen.shape == (N,) and seen.dtype.itemsize == 8
    out = empty_like(seen, seen.shape, dtype, engine)
    batch = Batch(n=N, keys=seen.ptr, out_values=out.ptr, default_value=5)
    program.run("scale_add", toy.table(3), batch, N, seen.stream)
    return seen, out.export()


def test_torch(engine: cuda.CudaEngine, program: cuda.CudaProgram) -> None:
    torch = pytest.importorskip("torch")
    keys = torch.arange(N, device="cuda")
    seen, out = scale_add(engine, program, keys, np.int64)
    assert seen.kind == "torch" and seen.stream == cuda.LEGACY_STREAM and seen.ptr == keys.data_ptr()
    assert isinstance(out, torch.Tensor) and out.device == keys.device
    np.testing.assert_array_equal(out.cpu().numpy(), EXPECTED.astype(np.int64))
    assert view(keys[::2]).size == -(-N // 2)


def test_torch_on_a_side_stream_that_is_busy(engine: cuda.CudaEngine, program: cuda.CudaProgram) -> None:
    torch = pytest.importorskip("torch")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        busy = torch.ones(4096, 4096, device="cuda")
        for _ in range(20):  # the keys are ready milliseconds after the call
            busy = busy @ busy * 1e-4
        keys = torch.arange(N, device="cuda") + (busy[0, 0] * 0).long()
        seen, out = scale_add(engine, program, keys, np.int64)
        assert seen.stream == side.cuda_stream
        total = out.sum()
    torch.cuda.synchronize()
    assert int(total) == int(EXPECTED.astype(np.int64).sum())


@pytest.mark.parametrize("library", ["torch", "cupy", "interface"])
def test_a_verb_on_a_stream_that_is_named_and_busy(library: str) -> None:
    """Keys are ready milliseconds after the call, on a stream that is not the current one."""
    torch = pytest.importorskip("torch")
    side = torch.cuda.Stream()
    table = HashMap("int64", "int64", capacity=N, device="cuda")
    with torch.cuda.stream(side):
        busy = torch.ones(4096, 4096, device="cuda")
        for _ in range(20):
            busy = busy @ busy * 1e-4
        keys: Any = torch.arange(N, device="cuda") + (busy[0, 0] * 0).long()
        values = 3 * keys
    if library == "cupy":
        keys, values = map(pytest.importorskip("cupy").asarray, (keys, values))
    if library == "interface":
        keys, values = (ArrayOfNoLibrary(tensor) for tensor in (keys, values))
    added = table.insert(keys, values, stream=side)
    found, there = table.find(keys, stream=side)
    with torch.cuda.stream(side):
        added, found, there = (torch.as_tensor(made, device="cuda").cpu() for made in (added, found, there))
    assert added.all() and there.all()
    np.testing.assert_array_equal(found.numpy(), 3 * np.arange(N))


class ArrayOfNoLibrary:
    """An array of a library without a current stream."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


def test_values_that_another_library_makes_ready_on_a_stream_of_its_own(engine: cuda.CudaEngine) -> None:
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")
    keys = cupy.arange(N)
    table = HashMap("int64", "int64", capacity=N, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        busy = torch.ones(4096, 4096, device="cuda")
        for _ in range(20):  # the values are ready milliseconds after the call
            busy = busy @ busy * 1e-4
        table.insert(keys, torch.arange(N, device="cuda") + (busy[0, 0] * 0).long())
    np.testing.assert_array_equal(cupy.asnumpy(table.find(keys)[0]), np.arange(N))


def test_torch_keeps_its_current_device(engine: cuda.CudaEngine, program: cuda.CudaProgram) -> None:
    torch = pytest.importorskip("torch")
    before = torch.cuda.current_device()
    scale_add(engine, program, torch.arange(N, device="cuda"), np.int64)
    assert torch.cuda.current_device() == before


def test_cupy(engine: cuda.CudaEngine, program: cuda.CudaProgram) -> None:
    cupy = pytest.importorskip("cupy")
    keys = cupy.arange(N, dtype=cupy.uint64)
    seen, out = scale_add(engine, program, keys)
    assert seen.kind == "cupy" and seen.stream == cuda.LEGACY_STREAM and isinstance(out, cupy.ndarray)
    np.testing.assert_array_equal(cupy.asnumpy(out), EXPECTED)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        seen, out = scale_add(engine, program, cupy.arange(N, dtype=cupy.uint64))
        assert seen.stream == stream.ptr
        np.testing.assert_array_equal(cupy.asnumpy(out), EXPECTED)
    assert view(cupy.arange(12).reshape(3, 4).T).shape == (4, 3)


def test_jax(engine: cuda.CudaEngine, program: cuda.CudaProgram) -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX without its GPU")
    jax.config.update("jax_enable_x64", True)
    try:
        keys = jax.numpy.arange(N, dtype="uint64")
        seen, out = scale_add(engine, program, keys)
        assert seen.kind == "jax" and isinstance(out, jax.Array) and out.devices() == keys.devices()
        np.testing.assert_array_equal(np.asarray(out + 1), EXPECTED + np.uint64(1))
    finally:
        jax.config.update("jax_enable_x64", False)


class Other:
    """An array of a library that knows ``__cuda_array_interface__`` and no DLPack."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


@pytest.mark.skipif(not cuda.available() or cuda.device_count() < 2, reason="needs two GPUs")
def test_an_interface_without_a_device_on_the_second_gpu() -> None:
    torch = pytest.importorskip("torch")
    keys = torch.arange(1000, device="cuda:1")
    assert view(Other(keys)).device == "cuda:1"
    table = HashSet.from_arrays(Other(keys))
    assert table.device == "cuda:1" and table.contains(keys).all()
    with pytest.raises(DeviceError, match=r"table is on cuda:0 and keys are on cuda:1"):
        HashSet("int64", device="cuda:0").insert(Other(keys))


def test_streams_of_libraries(engine: cuda.CudaEngine) -> None:
    torch = pytest.importorskip("torch")
    stream = torch.cuda.Stream()
    made = HashSet.from_arrays(Other(torch.arange(1000, device="cuda"))).keys()
    assert isinstance(made, DeviceArray)
    with torch.cuda.stream(stream):
        taken = torch.utils.dlpack.from_dlpack(made.__dlpack__(stream=stream, max_version=(1, 0)))
        assert torch.equal(taken.sort().values, torch.arange(1000, device="cuda"))
    assert engine.order(stream, lambda handle: handle) == stream.cuda_stream


def test_any_other_library_takes_the_result(engine: cuda.CudaEngine, program: cuda.CudaProgram) -> None:
    torch = pytest.importorskip("torch")
    seen, out = scale_add(engine, program, Other(torch.arange(N, device="cuda")), np.int64)
    assert seen.kind == "interface" and isinstance(out, DeviceArray)
    expected = EXPECTED.astype(np.int64)
    np.testing.assert_array_equal(torch.from_dlpack(out).cpu().numpy(), expected)
    np.testing.assert_array_equal(torch.as_tensor(out, device="cuda").cpu().numpy(), expected)
    cupy = pytest.importorskip("cupy")
    np.testing.assert_array_equal(cupy.asnumpy(cupy.asarray(out)), expected)
    np.testing.assert_array_equal(cupy.asnumpy(cupy.from_dlpack(out)), expected)
