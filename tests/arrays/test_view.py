"""Any array in, the same kind out: NumPy, lists and the two protocols always; a library where it is installed."""

from __future__ import annotations

import ctypes
import datetime
import gc
import subprocess
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.empty_like import empty_like
from warphash import HashMap, HashSet
from warphash.arrays.dlpack import DeviceArray, read_capsule
from warphash.arrays.key_column import key_column
from warphash.arrays.row_type import Column, view_pair
from warphash.arrays.view import ArrayView, view
from warphash.errors import DeviceError, DtypeError, ShapeError


def contents(seen: ArrayView) -> np.ndarray:
    """What lies at the address."""
    memory = (ctypes.c_uint8 * max(1, seen.nbytes)).from_address(seen.ptr or ctypes.addressof(ctypes.c_uint8()))
    return np.frombuffer(memory, seen.dtype, seen.size).reshape(seen.shape)


NUMPY_ARRAYS = {
    "plain": np.arange(12, dtype=np.uint32),
    "rows": np.arange(12, dtype=np.int64).reshape(4, 3),
    "every other": np.arange(12)[::2],
    "backwards": np.arange(12)[::-1],
    "column major": np.asfortranarray(np.arange(12).reshape(4, 3)),
    "big endian": np.arange(5, dtype=">u4"),
    "dates": np.array(["2026-11-21", "NaT"], "M8[ns]"),
    "bytes": np.array([b"ab", b"c"], "S5"),
    "structured": np.array([(1, 2.0), (3, 4.0)], [("a", "i4"), ("b", "f8")]),
    "booleans": np.array([True, False]),
    "empty": np.empty(0, np.uint64),
    "scalar array": np.array(7),
}


@pytest.mark.parametrize("name", NUMPY_ARRAYS)
def test_numpy(name: str) -> None:
    array = NUMPY_ARRAYS[name]
    seen = view(array)
    assert (seen.device, seen.kind, seen.stream, seen.shape) == ("cpu", "numpy", None, array.shape)
    assert seen.dtype == array.dtype.newbyteorder("=") and seen.dtype.isnative
    np.testing.assert_array_equal(seen.host, array)
    assert seen.nbytes == array.nbytes and seen.ptr == seen.host.ctypes.data
    assert seen.host.flags.c_contiguous


def test_contiguous_array_is_not_copied_even_if_read_only() -> None:
    array = np.arange(5)
    array.flags.writeable = False
    assert view(array).ptr == array.ctypes.data
    assert view(array).export().ctypes.data == array.ctypes.data


def test_subclasses_of_numpy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(5))
    assert view(np.load(tmp_path / "a.npy", mmap_mode="r")).host.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ShapeError, match="mask"):
        view(np.ma.masked_equal(np.arange(3), 1))


def test_results_of_numpy() -> None:
    out = empty_like(view(np.arange(5)), (5, 2), "M8[s]")
    assert out.dtype == np.dtype("M8[s]") and out.shape == (5, 2)
    assert isinstance(out.export(), np.ndarray) and out.export().ctypes.data == out.ptr


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([1, 2, 3], "u4", np.array([1, 2, 3], "u4")),
        (range(3), "i8", np.arange(3)),
        ((2**64 - 1, 0), "u8", np.array([2**64 - 1, 0], "u8")),
        ([-1], "i1", np.array([-1], "i1")),
        ([[1, 2], [3, 4]], "u2", np.array([[1, 2], [3, 4]], "u2")),
        (7, "u8", np.array(7, "u8")),
        (np.int64(7), "u4", np.array(7, "u4")),
        ([np.uint64(3), np.int8(4)], "i4", np.array([3, 4], "i4")),
        ([], "u4", np.empty(0, "u4")),
        ([1, 2.5], "f8", np.array([1, 2.5])),
        (b"abc", "S4", np.array(b"abc", "S4")),
        (["abc", "d"], "S3", np.array([b"abc", b"d"], "S3")),
        ([(1, 2.0)], [("a", "i4"), ("b", "f8")], np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")])),
        ("2026-11-21", "M8[D]", np.array("2026-11-21", "M8[D]")),
        ([1, 2], None, np.array([1, 2])),
    ],
)
def test_lists_and_scalars(value: Any, dtype: Any, expected: np.ndarray) -> None:
    seen = view(value, dtype)
    assert seen.dtype == expected.dtype and seen.kind == "numpy"
    np.testing.assert_array_equal(seen.host, expected)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([-1], "u4"),
        ([2**32], "u4"),
        (2**64, "u8"),
        (np.int64(-1), "u8"),
        (np.int64(300), "u1"),
        ([1.5], "i4"),
        ([float("nan")], "u8"),
        (["x"], "u4"),
        ([None], "i8"),
        (["abcd"], "S3"),
        ([b"abcd"], "S3"),
        ([object()], None),
    ],
)
def test_values_that_the_type_does_not_hold(value: Any, dtype: Any) -> None:
    with pytest.raises(DtypeError):
        view(value, dtype)


def test_ragged_list_is_a_shape_error() -> None:
    with pytest.raises(ShapeError):
        view([[1, 2], [3]], "u4")


def test_python_objects_are_seen_as_those_of_a_list() -> None:
    for items in (
        [1, 2],
        [1.5, 2],
        [b"a", b"bc"],
        ["a", "bc"],
        [datetime.date(2026, 1, 2)] * 2,
        [uuid.UUID(int=7)] * 2,
    ):
        array = np.empty(2, object)
        array[:] = items
        seen = view(array)
        assert seen.dtype == view(items).dtype and seen.host is not None
        assert seen.host.tobytes() == view(items).host.tobytes()  # type: ignore[union-attr]
    assert view(np.array([[1, 2]], object)).shape == (1, 2)
    for wrong, words in (([1, "a"], "one kind, got int, str"), ([1, None], "Python objects"), ([], "has no type")):
        with pytest.raises(DtypeError, match=words):
            view(np.array(wrong, dtype=object))
    with pytest.raises(DtypeError, match="fixed-width type"):
        view(np.zeros(2, [("a", "O")]))


class FakeCuda:
    """Says that host memory is a GPU's."""

    def __init__(self, array: np.ndarray, **changes: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "strides": None,
            "version": 3,
        } | changes


class HostAllocator:
    """An engine whose GPU is the host; notes who waited."""

    def __init__(self) -> None:
        self.waited: list[int] = []

    def allocate(self, nbytes: int, stream: Any = None) -> Any:
        array = np.zeros(max(1, nbytes), np.uint8)

        class Buffer:
            ptr = array.ctypes.data
            keep = array

        return Buffer()

    def wait(self, consumer: int) -> None:
        self.waited.append(consumer)


def test_cuda_array_interface_in() -> None:
    array = np.arange(6, dtype=np.uint32).reshape(2, 3)
    seen = view(FakeCuda(array))
    assert (seen.device, seen.kind, seen.stream, seen.shape) == ("cuda:0", "interface", 1, (2, 3))
    assert seen.ptr == array.ctypes.data and seen.dtype == np.uint32 and seen.host is None
    assert view(FakeCuda(array, stream=77)).stream == 77
    assert view(FakeCuda(array, strides=(12, 4))).shape == (2, 3)
    assert view(FakeCuda(array[:1], strides=(99, 4))).shape == (1, 3)


def test_the_gpu_of_a_cuda_array_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver knows it. An array that names its device itself is not asked for."""
    from warphash import HashSet
    from warphash.arrays import gpu_memory

    array, asked = np.arange(6), []
    monkeypatch.setattr(gpu_memory, "_ask", lambda address: asked.append(address) or 1)
    assert view(FakeCuda(array)).device == "cuda:1" and asked == [array.ctypes.data]
    with pytest.raises(DeviceError, match=r"on cpu and keys are on cuda:1"):
        HashSet("int64", device="cpu").insert(FakeCuda(array))
    asked.clear()
    assert view(FakeCuda(array, data=(0, False), shape=(0,))).device == "cuda:0"
    named = FakeCuda(array)
    named.__dlpack_device__ = lambda: (2, 3)  # type: ignore[attr-defined]
    assert view(named).device == "cuda:3" and not asked
    monkeypatch.setattr(gpu_memory, "_ask", lambda address: None)
    assert view(FakeCuda(array)).device == "cuda:0"


def test_who_knows_the_gpu_of_an_address() -> None:
    from warphash.arrays import gpu_memory
    from warphash.runtime import devices

    assert gpu_memory._ask is devices._gpu_of
    assert gpu_memory.gpu_of(np.arange(6).ctypes.data) == 0  # of the host


def test_cuda_array_interface_that_is_strided_or_masked() -> None:
    array = np.arange(6, dtype=np.uint32).reshape(2, 3)
    with pytest.raises(ShapeError, match=r"C-contiguous.*\(4, 8\)"):
        view(FakeCuda(array, strides=(4, 8)))
    with pytest.raises(ShapeError, match="mask"):
        view(FakeCuda(array, mask=FakeCuda(array)))


def test_results_for_an_unknown_gpu_library_speak_both_protocols() -> None:
    allocator = HostAllocator()
    out = empty_like(view(FakeCuda(np.arange(4))), (2, 2), np.int16, allocator)
    result = out.export()
    assert isinstance(result, DeviceArray) and len(result) == 2 and "cuda:0" in repr(result)
    interface = result.__cuda_array_interface__
    assert interface["shape"] == (2, 2) and interface["data"] == (out.ptr, False) and interface["typestr"] == "<i2"
    assert result.__dlpack_device__() == (2, 0)
    assert allocator.waited == [1]
    capsule = result.__dlpack__(stream=55)
    assert allocator.waited == [1, 55]
    result.__dlpack__(stream=-1)
    assert allocator.waited == [1, 55]
    tensor = read_capsule(capsule)
    assert (tensor.ptr, tensor.shape, tensor.dtype, tensor.device) == (out.ptr, (2, 2), np.int16, (2, 0))
    assert tensor.contiguous
    again = view(result)
    assert again.ptr == out.ptr and again.kind == "interface"


def test_results_on_a_gpu_need_the_engine() -> None:
    with pytest.raises(DeviceError, match="engine"):
        empty_like(view(FakeCuda(np.arange(4))), (4,), np.int16)


def test_capsules_keep_their_memory_and_let_it_go() -> None:
    from warphash.arrays import dlpack

    before = len(dlpack._lent)
    array = DeviceArray("owner", 256, (3,), np.dtype("u4"), 0, lambda stream: None)
    capsules = [array.__dlpack__(stream=-1) for _ in range(3)]
    assert len(dlpack._lent) == before + 3
    del capsules
    assert len(dlpack._lent) == before
    with pytest.raises(BufferError, match="datetime64"):
        DeviceArray("owner", 256, (3,), np.dtype("M8[s]"), 0, lambda stream: None).__dlpack__()


def test_a_consumer_of_the_capsule_frees_it_once() -> None:
    from warphash.arrays import dlpack

    class OnHost(DeviceArray):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    before = len(dlpack._lent)
    memory = np.arange(6, dtype=np.int32)
    taken = np.from_dlpack(OnHost(memory, memory.ctypes.data, (2, 3), memory.dtype, 0, lambda stream: None))
    np.testing.assert_array_equal(taken, memory.reshape(2, 3))
    assert len(dlpack._lent) == before + 1
    del taken
    assert len(dlpack._lent) == before


class FakeDlpackCuda:
    """A GPU library that speaks DLPack only."""

    def __init__(self, array: np.ndarray, device: tuple[int, int] = (2, 1)) -> None:
        self.array = array
        self.device = device
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.streams.append(stream)
        return DeviceArray(
            self.array, self.array.ctypes.data, self.array.shape, self.array.dtype, 1, lambda stream: None
        ).__dlpack__()


class OnHost(DeviceArray):
    """A `DeviceArray` whose memory the host can read."""

    def __init__(self, memory: Any) -> None:
        super().__init__(memory, memory.ctypes.data, memory.shape, memory.dtype, 0, lambda stream: None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize(
    ("max_version", "name"),
    [(None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"), ((1, 3), "dltensor_versioned")],
)
def test_versions_of_dlpack_out(max_version: Any, name: str) -> None:
    """The capsule that a consumer asks for; memory is given back whether the capsule was taken or not."""
    from warphash.arrays import dlpack

    memory, before = np.arange(24, dtype=np.int16).reshape(2, 3, 4), len(dlpack._lent)
    capsule = OnHost(memory).__dlpack__(max_version=max_version)
    assert f'"{name}"' in repr(capsule)
    seen, capsules = read_capsule(capsule), [capsule]
    assert (seen.ptr, seen.shape, seen.dtype, seen.contiguous) == (memory.ctypes.data, (2, 3, 4), memory.dtype, True)

    taken = np.from_dlpack(SimpleNamespace(__dlpack__=lambda **_: capsules.pop(), __dlpack_device__=lambda: (1, 0)))
    assert taken.ctypes.data == memory.ctypes.data and (taken == memory).all()
    assert taken.flags.writeable == (name == "dltensor_versioned"), "NumPy trusts no capsule without flags"
    del capsule
    gc.collect()
    assert len(dlpack._lent) == before + 1
    del taken
    gc.collect()
    assert len(dlpack._lent) == before
    unused = OnHost(memory).__dlpack__(max_version=max_version)
    del unused
    gc.collect()
    assert len(dlpack._lent) == before


def test_what_dlpack_asks_for_and_a_device_array_is_not() -> None:
    array = OnHost(np.arange(3))
    assert array.__dlpack__(dl_device=(1, 0), copy=False) is not None
    for asked in ({"dl_device": (2, 0)}, {"copy": True}):
        with pytest.raises(BufferError, match="takes the memory where it is"):
            array.__dlpack__(**asked)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_versions_of_dlpack_in(max_version: Any) -> None:
    memory = np.arange(24, dtype=np.uint32).reshape(2, 3, 4)
    for array in (memory, memory[:, ::2], memory[1]):
        seen = read_capsule(array.__dlpack__(max_version=max_version))
        assert (seen.ptr, seen.shape, seen.dtype) == (array.ctypes.data, array.shape, array.dtype)
        assert seen.contiguous == array.flags.c_contiguous
    memory.flags.writeable = False
    if max_version is not None:  # the others cannot say that nobody may write
        assert read_capsule(memory.__dlpack__(max_version=max_version)).ptr == memory.ctypes.data


def test_a_version_of_dlpack_that_is_not_known() -> None:
    from warphash.arrays import dlpack

    capsule = OnHost(np.arange(3)).__dlpack__(max_version=(1, 0))
    dlpack._Versioned.from_address(dlpack._capsule_pointer(capsule, b"dltensor_versioned")).major = 2
    with pytest.raises(DtypeError, match=r"version 1 of DLPack, got version 2\.0"):
        read_capsule(capsule)


@pytest.mark.parametrize("knows_versions", [True, False])
def test_a_producer_is_asked_for_a_version(knows_versions: bool) -> None:
    memory, asked = np.arange(5), []

    class New:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 3

        def __dlpack__(self, *, stream: int, max_version: Any = None) -> Any:
            asked.append((stream, max_version))
            return OnHost(memory).__dlpack__(max_version=max_version)

    class Old(New):
        def __dlpack__(self, *, stream: int) -> Any:
            return super().__dlpack__(stream=stream)

    seen = view((New if knows_versions else Old)())
    assert (seen.device, seen.ptr) == ("cuda:3", memory.ctypes.data)
    assert asked == [(1, (1, 0) if knows_versions else None)]
    assert f'"{"dltensor_versioned" if knows_versions else "dltensor"}"' in repr(seen.capsule)


def test_dlpack_in() -> None:
    array = FakeDlpackCuda(np.arange(6, dtype=np.float32).reshape(3, 2))
    seen = view(array)
    assert (seen.device, seen.kind, seen.stream, seen.shape) == ("cuda:1", "interface", 1, (3, 2))
    assert seen.ptr == array.array.ctypes.data and array.streams == [1]
    np.testing.assert_array_equal(contents(seen), array.array)


def test_other_devices_are_refused() -> None:
    with pytest.raises(DeviceError, match="type 10"):
        view(FakeDlpackCuda(np.arange(3), device=(10, 0)))


class RefusedByDlpack(FakeDlpackCuda):
    """An array of a type that DLPack lacks, such as PyArrow's times with a zone: each library raises its own error."""

    def __init__(self, device: tuple[int, int] | None, *, like_numpy: bool = False) -> None:
        super().__init__(np.arange(3), device or (0, 0))
        self.refused = device is None
        if like_numpy:
            self.__class__ = type("LikeNumpy", (RefusedByDlpack,), {"__array__": lambda self: self.array})

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.refused:
            raise LookupError("timestamp[us, tz=UTC] is not a type of DLPack's")
        return self.device

    def __dlpack__(self, stream: int | None = None, **_: Any) -> Any:
        raise LookupError("timestamp[us, tz=UTC] is not a type of DLPack's")


@pytest.mark.parametrize("device", [None, (1, 0), (2, 0)])
def test_a_library_that_raises_an_error_of_its_own(device: tuple[int, int] | None) -> None:
    with pytest.raises(DtypeError, match=r"got RefusedByDlpack.*LookupError.*tz=UTC.*give list\(array\)"):
        view(RefusedByDlpack(device))
    with pytest.raises(DtypeError, match=r"got RefusedByDlpack.*tz=UTC"):
        HashMap("int64", "S3", device="cpu").insert([0], RefusedByDlpack(device))


def test_the_mend_of_such_an_error_is_right() -> None:
    refused = RefusedByDlpack((2, 0), like_numpy=True)
    with pytest.raises(DtypeError, match=r"give numpy\.asarray\(array\)"):
        view(refused)
    assert view(np.asarray(refused)).shape == (3,)
    assert view(RefusedByDlpack(None, like_numpy=True)).shape == (3,), "it cannot be on a GPU"


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    six = torch.arange(6)
    for tensor in (six, six[::2], six.reshape(2, 3).T, torch.empty(0), torch.tensor(3)):
        seen = view(tensor)
        assert (seen.kind, seen.device) == ("torch", "cpu") and seen.shape == tuple(tensor.shape)
        np.testing.assert_array_equal(seen.host, tensor.numpy())
    assert view(torch.arange(6).to(torch.uint32)).dtype == np.uint32
    assert view(torch.ones(3, requires_grad=True)).dtype == np.float32
    out = empty_like(view(torch.arange(3)), (3,), np.uint64)
    out.host[:] = [1, 2, 2**64 - 1]
    assert isinstance(out.export(), torch.Tensor) and out.export().tolist() == [1, 2, 2**64 - 1]
    with pytest.raises(DtypeError, match=r"torch\.int16"):
        view(torch.ones(3, dtype=torch.bfloat16))
    with pytest.raises(DtypeError, match="PyTorch"):
        empty_like(view(torch.arange(3)), (3,), "M8[s]")
    with pytest.raises(DeviceError, match="meta"):
        view(torch.empty(3, device="meta"))
    with pytest.raises(ShapeError, match="to_dense"):
        view(torch.eye(3).to_sparse())
    assert view(torch.Size([1, 2]), "i8").kind == "numpy"


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    seen = view(jax.numpy.arange(6, dtype="uint32").reshape(2, 3)[:, ::2])
    assert (seen.kind, seen.device, seen.shape, seen.dtype) == ("jax", "cpu", (2, 2), np.uint32)
    np.testing.assert_array_equal(seen.host, [[0, 2], [3, 5]])
    out = empty_like(seen, (4,), np.bool_)
    out.host[:] = [True, False, True, True]
    assert isinstance(out.export(), jax.Array) and out.export().tolist() == [True, False, True, True]
    with pytest.raises(DtypeError, match="jax_enable_x64"):
        empty_like(seen, (4,), np.uint64)
    jax.config.update("jax_enable_x64", True)
    try:
        out = empty_like(seen, (1,), np.uint64)
        out.host[:] = 2**64 - 1
        assert int(out.export()[0]) == 2**64 - 1
    finally:
        jax.config.update("jax_enable_x64", False)


def test_frames_and_arrow() -> None:
    pandas, pyarrow, polars = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "polars"))
    for make in (pandas.Series, pandas.Index, pyarrow.array, polars.Series):
        seen = view(make([1, 2, 3]))
        assert seen.kind == "numpy" and seen.dtype == np.int64
        np.testing.assert_array_equal(seen.host, [1, 2, 3])
    assert view(pyarrow.chunked_array([[1], [2, 3]])).shape == (3,)
    assert view(pandas.Series(["a", "bc"]).astype(object)).dtype == np.dtype("U2")


def test_no_library_is_imported() -> None:
    script = """
import sys
import numpy as np
from warphash.arrays.key_column import key_column
from warphash.arrays.row_type import Column, view_pair
from warphash.arrays.view import view
view(np.arange(3)), view([1, 2], "u4")
print([name for name in ("torch", "cupy", "jax", "numba", "pandas", "cuda") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_an_array_whose_type_dlpack_does_not_know_goes_by_numpy() -> None:
    """PyArrow answers for an array of dates that DLPack has no such type."""

    class Dates:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return np.array(["2020-01-02"], "M8[D]")

        def __dlpack__(self, **_: Any) -> Any:
            raise TypeError("DataType is not compatible with DLPack")

        def __dlpack_device__(self) -> tuple[int, int]:
            raise TypeError("DataType is not compatible with DLPack")

    table = HashMap("M8[D]", "i4", device="cpu")
    table.insert(Dates(), [5])
    assert table[Dates()].tolist() == [5] and table.find(np.array(["2020-01-02"], "M8[D]"))[0].tolist() == [5]


def test_an_object_with_the_array_interface_alone_is_a_batch() -> None:
    class Held:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        @property
        def __array_interface__(self) -> Any:
            return self.array.__array_interface__

    keys = Held(np.array([2, 3, 400]))
    assert view(keys).shape == (3,)
    table = HashSet("uint8", device="cpu")
    table.insert(np.array([1, 2], np.uint8))
    assert table.contains(keys).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (np.arange(3), np.arange(3.0)),
        (np.arange(3, dtype="i4"), np.arange(3)),
        (np.arange(6)[::2], np.arange(3, dtype=">f8")),
        (np.arange(6).reshape(3, 2), np.arange(6.0).reshape(3, 2)),
        ([1, 2, 3], np.arange(3.0)),
        (np.arange(3), [1, 2, 3]),
        (np.arange(3), 7),
        (5, 7.5),
    ],
)
def test_keys_and_values_are_seen_as_each_alone(keys: Any, values: Any) -> None:
    key, value = Column.of_keys("i8"), Column.of_values("f8")
    both = view_pair(key, value, keys, values)
    for seen, alone in zip(both, (key.view(keys, "keys"), value.view(values, "values")), strict=True):
        assert (seen.shape, seen.dtype, seen.batch, seen.library.kind) == (
            *(alone.shape, alone.dtype, alone.batch, alone.library.kind),
        )
        assert seen.host is not None and alone.host is not None and (seen.host == alone.host).all()


@pytest.mark.parametrize(("keys", "values"), [(np.arange(3) + 0.5, np.arange(3)), (np.arange(3), np.arange(3) + 1j)])
def test_a_column_that_does_not_fit_is_refused_beside_one_that_does(keys: Any, values: Any) -> None:
    with pytest.raises(DtypeError):
        view_pair(Column.of_keys("i8"), Column.of_values("f8"), keys, values)


def test_floats_that_are_keys_are_made_alike_beside_their_values() -> None:
    zeros = np.array([-0.0, 0.0])
    seen, _ = view_pair(key_column("f8", floats="value"), Column.of_values("f8"), zeros, zeros)
    assert seen.host is not None and not np.signbit(seen.host).any() and np.signbit(zeros[0])
