"""The GPU engine: memory, streams and launches, over the CUDA driver. Nothing else here talks to the driver.

Streams
-------
A stream is the driver's own handle as an ``int``, or an object whose ``__cuda_stream__()`` answers ``(0, handle)``, as
streams of CuPy, PyTorch and cuda.core do. 0 is CUDA's legacy default stream and None is the engine's own, which is
ordered with the legacy one as CUDA orders any blocking stream. Work on one engine is ordered across streams: an
operation on another stream than the last one waits, on the device, for that one. So a table may be built on one stream
and asked on another, and memory is freed behind its last use, with no synchronisation of the host.

An event is recorded behind every operation on a stream of the caller's, since that stream may be gone when the next
operation needs to wait for it (0.5 us). The legacy stream and the engine's own are for ever: there the event waits
until it is wanted, and between the two none is needed.
`CudaEngine.order` keeps this order. It is compiled (``src/extension/streams.hpp``), as it is a part of every launch.

An operation on a stream that a CUDA graph captures takes no part in this order: it runs whenever the graph does. Only
launches, fills and copies between addresses can be captured; `CudaEngine.allocate` refuses.

The caller's current context is left as it is. It mostly is the engine's own, the one that all libraries share, which
takes less to see than to push.

Processes
---------
CUDA does not survive a fork. Once this process has started the driver, a forked child has no GPU: tables and engines
that the child inherits refuse every call, with `FORK_MEND`. To give their memory back does nothing there, since the
memory is the parent's. A child that uses a GPU has to be spawned, or forked before the parent uses a GPU.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...errors import EXTENSION_MEND, CaptureError, DeviceError, EngineUnavailable
from ...settings import kept_fraction
from .. import program_log
from ..engine import KernelSpec, WindowBody
from ..memory import DeviceBuffer, PinnedBuffer
from . import nvrtc
from .cache import NUMBERS_SUFFIX, CubinCache
from .driver import DriverError, bindings, check, error, outside_of_captures
from .events import CudaAnswer, CudaMark
from .handles import LEGACY_STREAM, PER_THREAD_STREAM, StreamHandle
from .kept_memory import COUNTED_BYTES, KeptMemory
from .machine_code import MachineCode
from .pinned import PinnedPages
from .program import CudaProgram
from .resource import ALIGNMENT_BYTES, MemorySource, Taken, source_of
from .small_memory import LARGEST_BYTES, SmallMemory
from .staging import Staging
from .sweep import Sweeper

__all__ = [
    "LEGACY_STREAM",
    "PER_THREAD_STREAM",
    "CudaEngine",
    "CudaProgram",
    "DriverError",
    "StreamHandle",
    "available",
    "device_count",
    "driver_version",
    "engine",
    "gpu_of",
    "reason_unavailable",
]

_LIBRARY = "libcuda.so.1"

_STREAM_FUNCTIONS = (
    *("cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"),
    *("cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernelEx", "cuStreamIsCapturing"),
    *("cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemsetD8Async", "cuMemcpyAsync", "cuEventSynchronize"),
)
"""Of the driver, in the order in which ``Streams`` takes their addresses (``src/extension/streams.hpp``)."""

_LEAST_HEAP_BYTES = 256 << 20

CACHED_FRACTION = 0.6
"""Of the second-level cache: for the part of a table that a large batch is going to."""


REACH_BYTES = 60 << 30
"""Of memory, where random reads keep their rate. On an H200, 38.9 G/s from 64 GB, 27 from 72 GB and 8.3 from 96 GB."""


def available() -> bool:
    """Whether a GPU can be used here and now. Never raises, and without a driver never touches the bindings."""
    return reason_unavailable() is None


FORK_MEND = (
    "start the process with multiprocessing's method 'spawn' or 'forkserver', or use no GPU before the fork and make "
    "the table in the child"
)

_NOT_INITIALIZED = 3
"""What the driver's ``cuInit`` answers in the child of a process that has started the driver."""

_lost = False
"""Whether this process was forked from a process that had started the driver."""


def reason_unavailable() -> str | None:
    """Why no GPU can be used, with the mend; None where one can."""
    if _lost:
        return (
            f"CUDA does not survive a fork, and the process that this one was forked from had used a GPU: {FORK_MEND}"
        )
    return _reason_unavailable()


@functools.cache
def _reason_unavailable() -> str | None:
    # The driver first, by hand: with none, cuda-bindings raise here and cuda-core can hang after that.
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return "no NVIDIA driver is installed (libcuda.so.1 is missing)"
    if status := library.cuInit(0):
        if status == _NOT_INITIALIZED:
            child = "the child of a process that used CUDA"
            return f"the NVIDIA driver does not start (cuInit answered {status}), as in {child}: {FORK_MEND}"
        return f"the NVIDIA driver does not start (cuInit answered {status}); nvidia-smi may say more"
    count = ctypes.c_int()
    if library.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return "the NVIDIA driver shows no GPU (see CUDA_VISIBLE_DEVICES)"
    try:
        from cuda.bindings import driver  # noqa: F401
    except ImportError as error:
        return f"the CUDA bindings are not installed ({error}): {nvrtc.MEND}"
    try:
        from . import _streams  # type: ignore[attr-defined]  # noqa: F401
    except ImportError as error:
        return f"the compiled extension is missing ({error}): {EXTENSION_MEND}"
    return None if nvrtc.installed() else f"NVRTC, the run-time compiler, is not installed: {nvrtc.MEND}"


def device_count() -> int:
    """How many GPUs `engine` can be asked for."""
    return 0 if reason_unavailable() else int(check(bindings().cuDeviceGetCount(), "counting the GPUs"))


def gpu_of(address: int) -> int | None:
    """The index of the GPU that an address is on; None for memory of no GPU."""
    if reason_unavailable():
        return None
    driver = bindings()
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    status, index = driver.cuPointerGetAttribute(attribute, address)
    return None if status else int(index)


def driver_version() -> str:
    """The CUDA version of the driver, ``"13.0"``."""
    version = int(check(bindings().cuDriverGetVersion(), "asking for the driver's version"))
    return f"{version // 1000}.{version % 1000 // 10}"


_engines: dict[int, CudaEngine] = {}
_engines_lock = threading.Lock()


def engine(index: int = 0) -> CudaEngine:
    """The engine of a GPU, one a process.

    Raises
    ------
    EngineUnavailable
        Where no GPU is usable, with the mend.
    DeviceError
        For an index that this machine does not have.
    """
    if reason := reason_unavailable():
        raise EngineUnavailable(
            f"device 'cuda:{index}' cannot be used: {reason}. Run `warphash doctor`, or use device='cpu'"
        )
    with _engines_lock:
        if index not in _engines:
            if not 0 <= index < (count := device_count()):
                raise DeviceError(f"device 'cuda:{index}' does not exist: this machine has cuda:0 to cuda:{count - 1}")
            _engines[index] = CudaEngine(index)
        return _engines[index]


def _after_fork_in_child() -> None:
    """Give up the GPUs, if the driver was started."""
    global _lost, _engines_lock
    _lost = _lost or (_reason_unavailable.cache_info().currsize == 1 and _reason_unavailable() is None)
    _engines_lock = threading.Lock()
    for made in _engines.values():
        made.lose()


os.register_at_fork(after_in_child=_after_fork_in_child)


class CudaEngine:
    """One GPU. Make it with `engine`; safe from several threads.

    Attributes
    ----------
    name, arch
        ``"NVIDIA H200"``, ``"sm_90"``.
    total_bytes
        The device's memory.
    clocks_mhz
        The highest clock rates of its multiprocessors (``"sm"``) and of its memory (``"memory"``), by the driver.
    processors
        Its multiprocessors.
    overlaps_kernels
        The blocks of a kernel may come before the one before it in its stream has ended (compute capability 9.0).
    staging
        Copies of whole host arrays, and pipelines over them (`staging`).
    call
        ``call(function, *arguments)`` answers what the driver's ``function(*arguments)`` does, with the engine's lock
        and context, on no stream.
    order
        ``order(stream, function, *arguments)`` answers what ``function(*arguments, handle)`` does, an operation on
        ``stream``, behind the one before it.
    join
        ``join(stream)`` answers the handle of ``stream``, once it is behind the last operation: a host that waits for
        the stream waits for the operation, too.
    wait_for
        ``wait_for(event)`` returns the driver's status when the device has passed an event, given by its handle.
    is_captured
        ``is_captured(stream)`` tells whether a CUDA graph captures what the stream is given.
    compiled
        The extension module ``_streams``.
    kernel
        ``kernel(function, threads, most_blocks)`` makes a ``Kernel`` (``src/extension/kernel.hpp``).
    """

    asynchronous: bool = True
    reach_bytes: int = REACH_BYTES
    stage_bytes: int = 0
    pool_blocks: int = 64  # 8 MiB of slabs
    shares_host_memory: bool = False

    def __init__(self, index: int) -> None:
        self._driver = driver = bindings()
        self.device = f"cuda:{index}"
        self.lost_in_child: str | None = (
            f"{self.device} cannot be used in a forked process, because CUDA does not survive a fork: {FORK_MEND}"
        )
        self._is_lost = False
        what = f"starting {self.device}"
        self._handle = handle = check(driver.cuDeviceGet(index), what)
        major, minor = self._attributes(what, "COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR")
        has_pools, cache_bytes = self._attributes(what, "MEMORY_POOLS_SUPPORTED", "L2_CACHE_SIZE")
        self.processors, lanes = self._attributes(what, "MULTIPROCESSOR_COUNT", "MAX_THREADS_PER_MULTIPROCESSOR")
        self.window_bytes, self.lanes = int(cache_bytes * CACHED_FRACTION), lanes * self.processors
        self.arch, self.overlaps_kernels = f"sm_{major}{minor}", major >= 9
        self.name = check(driver.cuDeviceGetName(256, handle), what).split(b"\0")[0].decode()
        self.total_bytes = int(check(driver.cuDeviceTotalMem(handle), what))
        self._context = check(driver.cuDevicePrimaryCtxRetain(handle), what)  # the one that every library shares
        self.compiled = _compiled()
        self._streams = self._make_streams(what)
        self.kernel: Callable[..., Any] = partial(self.compiled.Kernel, self._streams)
        self.call, self.order, self.join = self._streams.call, self._streams.order, self._streams.join
        self.is_captured, self.wait_for = self._streams.is_captured, self._streams.wait
        self._pinned = PinnedPages(self)
        self._small = SmallMemory(self._take)
        self._source: MemorySource | None = None
        self._programs: dict[KernelSpec, CudaProgram] = {}
        self._codes: dict[KernelSpec, MachineCode] = {}
        self._numbers: dict[KernelSpec, float | None] = {}
        self._making = threading.Lock()
        self._pool = self.call(self._make_pool, index) if has_pools else None
        self._pool_handle = 0 if self._pool is None else int(self._pool)
        kept_bytes = int(self.total_bytes * kept_fraction())
        self._kept = KeptMemory(kept_bytes, partial(self.call, self._set_threshold)) if has_pools else None
        self.staging = Staging(self)

    @functools.cached_property
    def clocks_mhz(self) -> dict[str, int]:
        what = f"asking for the clocks of {self.device}"
        sm_khz, memory_khz = self._attributes(what, "CLOCK_RATE", "MEMORY_CLOCK_RATE")
        return {"sm": sm_khz // 1000, "memory": memory_khz // 1000}

    def _attributes(self, what: str, *names: str) -> list[int]:
        """Attributes of the device, by their names without the prefix of all."""
        driver, known = self._driver, self._driver.CUdevice_attribute
        asked = (getattr(known, f"CU_DEVICE_ATTRIBUTE_{name}") for name in names)
        return [int(check(driver.cuDeviceGetAttribute(one, self._handle), what)) for one in asked]

    def __repr__(self) -> str:
        return f"<CudaEngine {self.device}: {self.name}, {self.arch}>"

    @property
    def stream(self) -> StreamHandle:
        """The engine's own stream."""
        return StreamHandle(self._own)

    def program(self, spec: KernelSpec) -> CudaProgram:
        """The kernels of ``spec``. A kernel comes from the cache on disk, or is compiled, when it is first launched."""
        program_log.note(self.device, spec)
        if made := self._programs.get(spec):
            return made
        with self._making:
            if spec not in self._programs:
                companions = {} if spec.header else spec.layout.companions
                self._codes[spec] = code = MachineCode(spec, self.arch)
                load = partial(self._modules, code)
                begins = code.begin, code.is_begun
                self._programs[spec] = CudaProgram(self, load, *begins, spec.layout.refilling, companions)
            return self._programs[spec]

    def _modules(self, code: MachineCode, names: Sequence[str]) -> list[Any]:
        """A module for each of some kernels."""
        return [self._module(cubin) for cubin in code.of(names)]

    def recall(self, spec: KernelSpec) -> float | None:
        """As `Engine.recall`; from memory, else from the folder of the compile cache."""
        if spec not in self._numbers:
            content = CubinCache(suffix=NUMBERS_SUFFIX).get(self._number_key(spec))
            self._numbers[spec] = None if content is None else float(content)
        return self._numbers[spec]

    def remember(self, spec: KernelSpec, number: float) -> None:
        """As `Engine.remember`; in the folder of the compile cache."""
        self._numbers[spec] = number
        CubinCache(suffix=NUMBERS_SUFFIX).put(self._number_key(spec), repr(number).encode())

    def _number_key(self, spec: KernelSpec) -> str:
        """Name of a measured number: a digest of the kernels and of the name of the device."""
        self.program(spec)
        return hashlib.sha256(f"{self._codes[spec].key} {self.name}".encode()).hexdigest()

    def load(self, cubin: bytes, refilling: frozenset[str] = frozenset()) -> CudaProgram:
        """Kernels from machine code, and those of which a grid need not have a thread for each element.

        Each has to begin with PTX's ``griddepcontrol.wait`` (``wait_for_turn`` in ``platform/cuda.cuh``).
        """
        module = self._module(cubin)
        return CudaProgram(
            self, lambda names: [module] * len(names), lambda names: None, lambda name: True, refilling, {}
        )

    def _module(self, cubin: bytes) -> Any:
        """A module.

        Raises
        ------
        DriverError
            Also if the device has no memory for the code. `MemoryError` would tell a verb that none of its kernels has
            been launched, but kernels are loaded when they are first launched, one behind another.
        """
        program_log.note_load()
        with outside_of_captures():
            answer = self.call(self._load_module, cubin)
        if answer[0] == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise DriverError(
                f"{self.device} has {self.free_bytes():,} bytes free, and no room for the code of a kernel; "
                "free arrays or tables, and call again"
            )
        return check(answer, "loading kernels")

    def _load_module(self, cubin: bytes) -> Any:
        answer = self._driver.cuModuleLoadData(cubin)
        if answer[0] == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            self._reclaim(self._streams.lasting())
            answer = self._driver.cuModuleLoadData(cubin)
        return answer

    def refuse_launch(self, status: int) -> NoReturn:
        """Raise the exception for the status of a launch."""
        raise error(status, f"launching a kernel on {self.device}")

    def allocate(self, nbytes: int, stream: Any = None) -> DeviceBuffer:
        """Uninitialised device memory, aligned to 256 bytes, ready in the order of ``stream``.

        Raises
        ------
        MemoryError
            With what was asked for and what is free.
        CaptureError
            If a CUDA graph captures the stream: the memory would be used again when the buffer is freed.
        """
        if self.is_captured(stream):
            raise CaptureError(f"a CUDA graph cannot own the {nbytes:,} bytes of working memory that this call needs")
        if nbytes <= LARGEST_BYTES:
            return self._small.allocate(nbytes)
        if (source := self._source) is not None:
            taken = self._take_from(source, nbytes, stream)
            return DeviceBuffer(taken.ptr, nbytes, partial(self._give_back, source, taken))
        kept = self._kept
        if kept is None or nbytes < COUNTED_BYTES:
            return DeviceBuffer(self._take(nbytes, stream), nbytes, self._release)
        kept.count(nbytes)
        try:
            ptr = self._take(nbytes, stream)
        except BaseException:
            kept.count(-nbytes)
            raise
        return DeviceBuffer(ptr, nbytes, partial(self._release_counted, kept, nbytes))

    def _take(self, nbytes: int, stream: Any = None) -> int:
        """Address of memory of the driver, ready in the order of ``stream``."""
        status: Any = self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
        if nbytes <= self.total_bytes:  # the driver need not be asked for more
            if self._pool is not None:
                at: int = self._streams.allocate(stream, nbytes, self._pool_handle)
                if at > 0:
                    return at
            status, ptr = self.order(stream, self._allocate, nbytes)
        if status == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise MemoryError(f"{self.device} has {self.free_bytes():,} bytes free, and {nbytes:,} are needed")
        if status:
            raise error(status, f"allocating {nbytes:,} bytes on {self.device}")
        return int(ptr)

    def use_memory_of(self, resource: Any) -> Any:
        """Take memory from another allocator (`resource`) from here on; the one before."""
        before, self._source = self._source, source_of(resource, int(self._handle))
        return None if before is None else before.given

    def _take_from(self, source: MemorySource, nbytes: int, stream: Any) -> Taken:
        """Memory of another allocator, ready in the order of ``stream``."""
        stream = stream if source.stream is None else source.stream
        handle = self.order(stream, int)
        try:
            taken: Taken = self._in_context(source.take, nbytes, handle)
        except MemoryError as error:
            raise MemoryError(
                f"the memory resource of {self.device} has no {nbytes:,} bytes, which are needed: {error}"
            ) from None
        if not taken.ptr or taken.ptr % ALIGNMENT_BYTES:
            self._give_back(source, taken, taken.ptr)
            raise DeviceError(
                f"expected memory at a multiple of {ALIGNMENT_BYTES} bytes from the memory resource of {self.device}, "
                f"got the address {taken.ptr:#x}: give another to warphash.set_memory_resource"
            )
        self.order(stream, int)  # behind what the allocator, and who had the memory before, gave the stream
        return taken

    def _give_back(self, source: MemorySource, taken: Taken, _ptr: int) -> None:
        """Return memory to the allocator it is of, behind the last operation there was."""
        if not self._is_lost:
            self._in_context(source.give_back, taken, self.call(self._streams.lasting))

    def _in_context(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function answers in the engine's context, without its lock."""
        check(self._driver.cuCtxPushCurrent(self._context), f"using {self.device}")
        try:
            return function(*arguments)
        finally:
            self._driver.cuCtxPopCurrent()

    def allocate_pinned(self, nbytes: int) -> PinnedBuffer:
        """Page-locked host memory (`pinned`)."""
        return self._pinned.allocate(nbytes)

    def fill(self, target: int, byte: int, nbytes: int, stream: Any = None) -> None:
        if nbytes:
            status = self._streams.fill(stream, target, byte, nbytes)
            if status:
                raise error(status, f"filling {nbytes:,} bytes on {self.device}")

    def copy(self, target: int, source: int, nbytes: int, stream: Any = None, *, mark: CudaMark | None = None) -> None:
        """Copy from address to address, on the device or between it and pinned memory; set ``mark`` behind that."""
        if nbytes:
            status = self._streams.copy(stream, target, source, nbytes, 0 if mark is None else mark.handle)
            if status:
                raise error(status, f"copying {nbytes:,} bytes on {self.device}")

    def to_host(self, ptr: int, dtype: npt.DTypeLike, count: int, stream: Any = None) -> npt.NDArray[Any]:
        array = np.empty(count, dtype)
        self.staging.download(ptr, array, stream)
        return array

    def from_host(self, array: npt.NDArray[Any], stream: Any = None) -> DeviceBuffer:
        """Copy a contiguous host array into new device memory; returns when ``array`` has been read."""
        buffer = self.allocate(array.nbytes, stream)
        self.upload(buffer.ptr, array, stream)
        return buffer

    def upload(self, target: int, array: npt.NDArray[Any], stream: Any = None) -> None:
        """Copy a contiguous host array to device memory; returns when ``array`` has been read."""
        self.staging.upload(target, array, stream)

    def answer(self, words: int) -> CudaAnswer:
        return CudaAnswer(self, words)

    def mark(self) -> CudaMark:
        """A place in a stream, not yet recorded."""
        return CudaMark(self)

    def wait(self, consumer: int) -> None:
        """Make a stream of somebody else's wait, on the device, for all that the engine was given so far."""
        self.join(consumer)

    def synchronize(self, stream: Any = None) -> None:
        """Return when all work on ``stream`` is done. Errors of earlier kernels come out here."""
        handle = self.join(stream)
        # Without the lock: other threads go on. The legacy stream is the current context's, so that is set again.
        check(self._driver.cuCtxPushCurrent(self._context), f"using {self.device}")
        try:
            (status,) = self._driver.cuStreamSynchronize(handle)
        finally:
            self._driver.cuCtxPopCurrent()
        if status:
            raise error(status, f"running kernels on {self.device}")

    def sweep(self, memory: int, nbytes: int, window_bytes: int, body: WindowBody, writes: bool, stream: Any) -> None:
        self._sweeper.run(memory, nbytes, window_bytes, body, writes, stream)

    @functools.cached_property
    def _sweeper(self) -> Sweeper:
        return Sweeper(self)

    def reserve_heap(self, nbytes: int) -> None:
        """Make the heap of device-side ``malloc`` at least so large; it is mapped when kernels that use it are loaded.

        The driver sizes the heap once a context. So the first call takes `_LEAST_HEAP_BYTES` at least, and later calls
        for less than that find the heap large enough.

        Raises
        ------
        DriverError
            If such kernels ran before and the heap is smaller.
        """
        limit = self._driver.CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE
        what = f"reserving {nbytes:,} bytes for malloc on {self.device}"
        if int(check(self.call(self._driver.cuCtxGetLimit, limit), what)) < nbytes:
            (status,) = self.call(self._driver.cuCtxSetLimit, limit, max(nbytes, _LEAST_HEAP_BYTES))
            if status:
                raise error(status, what)

    def free_bytes(self) -> int:
        """Device memory that nobody holds, and what the engine's pool keeps."""
        driver, what = self._driver, "asking for the free memory"
        free = int(check(self.call(driver.cuMemGetInfo), what)[0])
        if self._pool is None:
            return free
        name, ask = driver.CUmemPool_attribute, partial(self.call, driver.cuMemPoolGetAttribute, self._pool)
        mapped, used = (
            int(check(ask(attribute), what))
            for attribute in (name.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, name.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        )
        return free + mapped - used

    def _make_streams(self, what: str) -> Any:
        """The engine's stream and event, with the functions of the driver that a launch calls."""
        driver = self._driver
        check(driver.cuCtxPushCurrent(self._context), what)
        try:
            self._own = int(check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_DEFAULT), what))
            self._behind_last = check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING), what)
        finally:
            driver.cuCtxPopCurrent()
        library = ctypes.CDLL(_LIBRARY)
        addresses = tuple(ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _STREAM_FUNCTIONS)
        handles = int(self._context), self._own, int(self._behind_last)
        return self.compiled.Streams(
            addresses, *handles, self.overlaps_kernels, partial(_refuse, f"using {self.device}")
        )

    def _make_pool(self, index: int) -> Any:
        driver = self._driver
        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = index
        return check(driver.cuMemPoolCreate(properties), f"making a memory pool on {self.device}")

    def _set_threshold(self, nbytes: int) -> None:
        driver = self._driver
        threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        answer = driver.cuMemPoolSetAttribute(self._pool, threshold, driver.cuuint64_t(nbytes))
        check(answer, "setting up the memory pool")

    def _allocate(self, nbytes: int, handle: int) -> Any:
        driver = self._driver
        answer = self._try_to_allocate(nbytes, handle)
        if answer[0] == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            self._reclaim(handle)
            answer = self._try_to_allocate(nbytes, handle)
        return answer

    def _reclaim(self, handle: int) -> None:
        """Give the driver all memory that is freed. What the device has not reached yet counts as used: wait for it."""
        self._driver.cuStreamSynchronize(self.join(handle))
        if self._pool is not None:
            self._driver.cuMemPoolTrimTo(self._pool, 0)

    def _try_to_allocate(self, nbytes: int, handle: int) -> Any:
        if self._pool is None:  # some virtual GPUs: plain memory, whose release waits for the device
            return self._driver.cuMemAlloc(nbytes)
        return self._driver.cuMemAllocFromPoolAsync(nbytes, self._pool, handle)

    def lose(self) -> None:
        """Refuse every call from here on. Memory that is given back stays with the parent."""
        refuse = partial(_refuse_in_child, self.lost_in_child)
        self._is_lost = True
        self._streams = _LostStreams(refuse)
        self.kernel = self.call = self.order = self.join = self.is_captured = self.wait_for = refuse

    def discard(self, function: Any, handle: Any) -> None:
        """Have the driver destroy something, unless that is the parent's."""
        if not self._is_lost:
            self.call(function, handle)

    def _release_counted(self, kept: KeptMemory, nbytes: int, ptr: int) -> None:
        self._release(ptr)
        if not self._is_lost:
            kept.count(-nbytes)

    def _release(self, ptr: int) -> None:
        if self._pool is None:
            self.discard(self._driver.cuMemFree, ptr)
        elif (
            not self._is_lost
        ):  # behind the last operation there was, but never on a caller's stream, which may be gone by now
            self._streams.free(ptr)


def _compiled() -> Any:
    """The extension module, imported when a GPU is first asked for."""
    from . import _streams  # type: ignore[attr-defined]

    return _streams


class _LostStreams:
    """In place of ``Streams`` in a forked child."""

    def __init__(self, refuse: Callable[..., NoReturn]) -> None:
        self._refuse = refuse

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        return self._refuse


def _refuse_in_child(reason: str | None, *_: object, **__: object) -> NoReturn:
    raise DeviceError(reason)


def _refuse(what: str, status: int) -> NoReturn:
    raise error(status, what)
