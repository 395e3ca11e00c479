"""The adapters of PyTorch, CuPy, Numba and JAX on a GPU, against stand-ins that have the few functions they call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.empty_like import empty_like
from warphash.arrays import library as contract
from warphash.arrays.adapters import torch as torch_adapter
from warphash.arrays.dlpack import LEGACY_STREAM, DeviceArray
from warphash.arrays.form import Form
from warphash.arrays.row_type import Column
from warphash.arrays.view import library_like, view
from warphash.errors import DeviceError, DtypeError, ShapeError

I8, BOOL = np.dtype("i8"), np.dtype("?")


def module(name: str, **contents: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(contents)
    return made


# ---- CuPy


class Current:
    """The current device of a fake CuPy, and who has changed it."""

    device = 0
    entered: tuple[int, ...] = ()


class FakeDevice:
    def __init__(self, index: int) -> None:
        self.id = index

    def __enter__(self) -> None:
        self._before, Current.device = Current.device, self.id
        Current.entered += (self.id,)

    def __exit__(self, *_: Any) -> None:
        Current.device = self._before


class CupyArray:
    """A ``cupy.ndarray`` on the current device, in host memory."""

    __module__ = "cupy"
    __cuda_array_interface__: Any = None

    def __init__(self, shape: Any, dtype: Any, memory: Any = None) -> None:
        self.memory = np.zeros(shape, dtype) if memory is None else memory
        self.device = FakeDevice(Current.device)
        self.data = SimpleNamespace(device_id=Current.device, ptr=self.memory.ctypes.data)
        self.shape, self.dtype, self.flags = self.memory.shape, self.memory.dtype, self.memory.flags

    def reshape(self, shape: Any) -> CupyArray:
        return CupyArray(None, None, self.memory.reshape(shape))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    stream = SimpleNamespace(ptr=0)
    fake = module(
        "cupy",
        ndarray=CupyArray,
        ascontiguousarray=lambda array: CupyArray(None, None, np.ascontiguousarray(array.memory)),
        cuda=SimpleNamespace(
            Device=FakeDevice,
            runtime=SimpleNamespace(getDevice=lambda: Current.device),
            get_current_stream=lambda: stream,
        ),
        stream=stream,
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    Current.device, Current.entered = 0, ()
    yield fake


def test_cupy(cupy: Any) -> None:
    array = CupyArray((4, 2), "i8")
    seen = view(array)
    assert (seen.kind, seen.device, seen.shape, seen.dtype, seen.host) == ("cupy", "cuda:0", (4, 2), I8, None)
    assert seen.ptr == array.data.ptr and seen.stream == LEGACY_STREAM and seen.owner is array
    cupy.stream.ptr = 77
    assert view(array).stream == 77
    out = empty_like(seen, (4,), "?")
    assert type(out.export()) is CupyArray and out.export().dtype == BOOL and out.ptr == out.export().data.ptr
    assert Current.entered == ()
    turned = view(CupyArray(None, None, np.arange(6).reshape(2, 3).T))
    assert turned.shape == (3, 2) and turned.owner.memory.flags.c_contiguous
    with pytest.raises(DtypeError, match="CuPy has no type"):
        empty_like(seen, (4,), "M8[s]")


def test_cupy_on_another_device_than_the_current_one(cupy: Any) -> None:
    with FakeDevice(3):
        array = CupyArray((4,), "i8")
    Current.entered = ()
    seen = view(array)
    out = empty_like(seen, (4,), "?")
    assert seen.device == out.device == "cuda:3" and out.export().data.device_id == 3
    assert Current.entered == (3, 3) and Current.device == 0


def test_addresses_of_cupy(cupy: Any) -> None:
    """Of arrays of one form; None for all others, and where the current device is another one."""
    array = CupyArray((4, 2), "i8")
    seen = view(array)
    address, stream = seen.library.addresses(seen, (4, 2), I8, False), seen.library.current_stream(seen)
    assert address(array) == array.data.ptr and stream() == LEGACY_STREAM
    cupy.stream.ptr = 77
    assert stream() == 77
    turned = CupyArray(None, None, np.zeros((2, 4), "i8").T)
    sub = type("Sub", (CupyArray,), {"__module__": "cupy"})
    with FakeDevice(3):
        elsewhere = CupyArray((4, 2), "i8")
        assert stream() == contract.ELSEWHERE
    others = CupyArray((4,), "i8"), CupyArray((2, 4), "i8"), CupyArray((4, 2), "u8"), sub((4, 2), "i8")
    for other in (*others, turned, elsewhere, array.memory, None, [1]):
        assert address(other) is None
    form = Form(seen, (4, 2), I8, "keys")
    assert form.see(turned).owner.memory.flags.c_contiguous
    with pytest.raises(
        DeviceError, match=r"keys must be on cuda:0, .*, got an array on cuda:3: make a plan with like=keys"
    ):
        form.see(elsewhere)


def test_an_example_of_cupy(cupy: Any) -> None:
    adapter = library_like("cupy")
    assert view(adapter.example("cuda:2")).device == "cuda:2" and Current.device == 0
    with pytest.raises(DeviceError, match="like='numpy'"):
        adapter.example("cpu")


# ---- PyTorch


class TorchType:
    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"


TORCH_TYPES = {name: TorchType(name, np.dtype(name).itemsize) for name in ("int64", "bool", "float32")}


class Tensor:
    """A ``torch.Tensor`` on ``cuda:1``, or on the CPU, in host memory."""

    __module__ = "torch"
    __slots__ = ("__dict__", "conjugate", "device", "dtype", "is_cuda", "layout", "memory", "requires_grad", "shape")
    # so that its __dict__ has what a caller sets, as that of a tensor
    is_nested = False

    def __init__(self, memory: Any, device: str = "cuda", **changes: Any) -> None:
        self.memory, self.shape = memory, memory.shape
        self.layout, self.dtype = "strided", TORCH_TYPES[memory.dtype.name]
        self.device = SimpleNamespace(type=device, index=1 if device == "cuda" else None)
        self.is_cuda, self.conjugate, self.requires_grad = device == "cuda", False, False
        for name, value in changes.items():
            setattr(self, name, value)

    def __dlpack__(self) -> Any:
        raise AssertionError("a tensor is seen by its own attributes")

    def is_contiguous(self) -> bool:
        return bool(self.memory.flags.c_contiguous)

    def is_conj(self) -> bool:
        return self.conjugate

    def is_neg(self) -> bool:
        return False

    def detach(self) -> Tensor:
        return self

    resolve_conj = resolve_neg = detach

    def contiguous(self) -> Tensor:
        return Tensor(np.ascontiguousarray(self.memory), self.device.type)

    def data_ptr(self) -> int:
        return int(self.memory.ctypes.data)

    def numpy(self) -> Any:
        assert not self.is_cuda
        return self.memory


@pytest.fixture(params=["raw stream", "public stream"])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    stream = SimpleNamespace(cuda_stream=0)
    raw = {"_cuda_getCurrentRawStream": lambda index: stream.cuda_stream} if request.param == "raw stream" else {}
    fake = module(
        "torch",
        **TORCH_TYPES,
        Tensor=Tensor,
        dtype=TorchType,
        strided="strided",
        __version__="0",
        empty=lambda shape, *, dtype=TORCH_TYPES["float32"], device: Tensor(
            np.zeros(shape, dtype.name), getattr(device, "type", str(device).partition(":")[0])
        ),
        cuda=SimpleNamespace(current_stream=lambda index: stream),
        _C=SimpleNamespace(**raw),
        stream=stream,
    )
    caches = (torch_adapter._device_and_stream, torch_adapter._numpy_type, torch_adapter.torch_type)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", fake)
    yield fake
    for cache in caches:
        cache.cache_clear()


def test_torch_on_a_gpu(torch: Any) -> None:
    tensor = Tensor(np.arange(6).reshape(3, 2))
    seen = view(tensor)
    assert (seen.kind, seen.device, seen.shape, seen.dtype, seen.host) == ("torch", "cuda:1", (3, 2), I8, None)
    assert seen.ptr == tensor.data_ptr() and seen.stream == LEGACY_STREAM and seen.owner is tensor
    torch.stream.cuda_stream = 99
    assert view(tensor).stream == 99
    out = empty_like(seen, (3,), "?")
    assert type(out.export()) is Tensor and out.export().is_cuda and out.ptr == out.export().data_ptr()
    assert (out.device, out.stream) == ("cuda:1", seen.stream)
    for other in (Tensor(np.arange(6).reshape(3, 2).T), Tensor(np.arange(3), conjugate=True)):
        copied = view(other)
        assert copied.shape == other.shape and copied.owner is not other and copied.owner.is_contiguous()


def test_addresses_of_torch(torch: Any) -> None:
    """Of tensors of one form; None for all others."""
    tensor = Tensor(np.arange(6).reshape(3, 2))
    seen = view(tensor)
    address = seen.library.addresses(seen, (3, 2), I8, False)
    written, stream = seen.library.addresses(seen, (3, 2), I8, True), seen.library.current_stream(seen)
    for each in (address, written):
        assert each(Tensor(tensor.memory, unit="km")) is None  # and seen, which refuses the unit
        assert each(Tensor(tensor.memory, requires_grad=False)) == tensor.data_ptr() and stream() == LEGACY_STREAM
    torch.stream.cuda_stream = 99
    assert stream() == 99
    sub = type("Sub", (Tensor,), {"__module__": "torch"})
    others = [Tensor(tensor.memory.T), Tensor(tensor.memory.T.copy())]
    others += [Tensor(tensor.memory, "cpu"), sub(tensor.memory), Tensor(tensor.memory, conjugate=True)]
    others += [Tensor(tensor.memory, layout="sparse"), Tensor(tensor.memory == 1)]
    for other in (*others, tensor.memory, None):
        assert address(other) is None
    graded = Tensor(tensor.memory, requires_grad=True)
    assert address(graded) is not None and written(graded) is None
    at = view(Tensor(np.arange(3), "cpu"))
    assert at.library.current_stream(at)() is None


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("has_fast", [True, False])
def test_what_compiled_code_calls_of_torch(torch: Any, devices: int, has_fast: bool) -> None:
    """A function that takes the current device alone serves where there is no other one."""
    made: list[Any] = []
    current = lambda shape, strides, dtype: made.append(("current", shape, strides, dtype.name))  # noqa: E731
    torch._C._dynamo = SimpleNamespace(guards=SimpleNamespace(**({"_empty_strided_cuda": current} if has_fast else {})))
    torch.empty_strided = lambda shape, strides, *, dtype, device: made.append(
        (device.index, shape, strides, dtype.name)
    )
    torch.cuda.device_count = lambda: devices
    seen = view(Tensor(np.arange(6)))
    library: Any = seen.library
    function, *behind = library.maker(seen, np.dtype("?"))
    function((5,), *behind)
    assert made == [("current" if has_fast and devices == 1 else 1, (5,), (1,), "bool")]
    known = library.known(seen, I8)
    assert known.stream() in (0, LEGACY_STREAM) and known.kind is Tensor and (("is_conj()",), False) not in known.rules
    torch.stream.cuda_stream = 99
    assert known.stream() == 99
    torch.complex64 = TorchType("complex64", 8)
    assert (("is_conj()",), False) in library.known(seen, np.dtype("c8")).rules


def test_a_batch_of_two_axes_on_a_gpu(torch: Any) -> None:
    """The rows of the tensor's own memory; and results that the library makes in the batch's shape."""
    tensor = Tensor(np.arange(6).reshape(3, 2))
    rows = Column.of_keys("i8").view(tensor, "keys")
    assert (rows.ptr, rows.shape, rows.batch, rows.host) == (tensor.data_ptr(), (6,), (3, 2), None)
    assert rows.kind == "torch" and rows.stream == LEGACY_STREAM and rows.owner is tensor
    out = rows.library.empty(rows, (6, 4), np.dtype("f4"), None)
    assert out.shape == (6, 4) and out.device == "cuda:1" and out.export().shape == (3, 2, 4)
    assert out.ptr == out.export().data_ptr()


def test_torch_refusals(torch: Any) -> None:
    with pytest.raises(ShapeError, match="to_dense"):
        view(Tensor(np.arange(3), layout="sparse"))
    for name in ("bfloat16", "float6"):  # of the first, NumPy knows once JAX is imported
        with pytest.raises(DtypeError, match=rf"{name}.*torch\.int16"):
            view(Tensor(np.arange(3), dtype=TorchType(name, 2)))
    with pytest.raises(DeviceError, match="expected a tensor on cpu or cuda"):
        view(Tensor(np.arange(3), "meta"))
    with pytest.raises(DtypeError, match="PyTorch 0 has no type"):
        empty_like(view(Tensor(np.arange(3))), (3,), "M8[s]")


def test_torch_on_the_cpu(torch: Any) -> None:
    seen = view(Tensor(np.arange(3), "cpu"))
    out = empty_like(seen, (3,), "?")
    assert seen.device == out.device == "cpu" and out.host is out.export().memory
    assert view(library_like("torch").example("cpu")).device == "cpu"
    assert view(library_like("torch").example("cuda:1")).device == "cuda:1"


# ---- libraries that take over memory of the engine


class Engine:
    """Host memory that stands for a GPU's."""

    def __init__(self) -> None:
        self.streams: list[Any] = []

    def allocate(self, nbytes: int, stream: Any = None) -> Any:
        self.streams.append(stream)
        memory = np.zeros(max(1, nbytes), np.uint8)
        return SimpleNamespace(ptr=memory.ctypes.data, keep=memory)

    def wait(self, consumer: int) -> None:
        """Nothing is ever under way."""


def test_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    class NumbaArray:
        __module__ = "numba.cuda.cudadrv.devicearray"

        def __init__(self, memory: Any) -> None:
            self.memory = memory

        @property
        def __cuda_array_interface__(self) -> Any:
            return {
                "shape": self.memory.shape,
                "typestr": self.memory.dtype.str,
                "data": (self.memory.ctypes.data, False),
                "strides": None,
                "stream": 5,
                "version": 3,
            }

    monkeypatch.setitem(sys.modules, "numba", module("numba"))
    monkeypatch.setitem(sys.modules, "numba.cuda", module("numba.cuda", as_cuda_array=lambda made: ("taken", made)))
    engine = Engine()
    seen = view(NumbaArray(np.arange(4)))
    assert (seen.kind, seen.device, seen.stream) == ("numba", "cuda:0", 5)
    taken, made = empty_like(seen, (4,), "i4", engine).export()
    assert taken == "taken" and isinstance(made, DeviceArray) and engine.streams == [5]
    assert library_like("numba").kind == "numba"


def test_jax_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class JaxArray:
        __module__ = "jaxlib._jax"

        def __init__(self, memory: Any, devices: int = 1) -> None:
            self.memory, self.shape, self.dtype = memory, memory.shape, memory.dtype
            self._devices = {SimpleNamespaceHashable(number) for number in range(devices)}

        def devices(self) -> Any:
            return self._devices

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, *, stream: int) -> Any:
            memory = self.memory
            return DeviceArray(memory, memory.ctypes.data, memory.shape, memory.dtype, 0, lambda _: None).__dlpack__()

    class SimpleNamespaceHashable:
        platform = "gpu"

        def __init__(self, number: int) -> None:
            self.number = number

    fake = module(
        "jax",
        config=SimpleNamespace(jax_enable_x64=True),
        numpy=SimpleNamespace(from_dlpack=lambda made: ("taken", made)),
    )
    monkeypatch.setitem(sys.modules, "jax", fake)
    monkeypatch.setitem(sys.modules, "jaxlib", module("jaxlib"))
    seen = view(JaxArray(np.arange(4)))
    assert (seen.kind, seen.device, seen.stream, seen.host) == ("jax", "cuda:0", LEGACY_STREAM, None)
    taken, made = empty_like(seen, (4,), "i8", Engine()).export()
    assert taken == "taken" and isinstance(made, DeviceArray)
    with pytest.raises(DeviceError, match="one device, got one on 2"):
        view(JaxArray(np.arange(4), devices=2))


def test_a_batch_of_too_many_rows_is_refused_before_it_is_copied(
    monkeypatch: pytest.MonkeyPatch, cupy: Any, torch: Any
) -> None:
    monkeypatch.setattr("warphash.arrays.adapters.cupy.MAX_ROWS", 3)
    monkeypatch.setattr("warphash.arrays.adapters.torch.MAX_ROWS", 3)
    for array in (CupyArray((4,), "i8"), Tensor(np.arange(4))):
        with pytest.raises(ShapeError, match=r"at most 2\*\*31 rows, got 4"):
            view(array)
    assert contract.MAX_ROWS == 2**31
