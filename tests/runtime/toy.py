"""The one kernel of the engine's tests; ``fake_driver.c`` has its twin in C."""

from __future__ import annotations

import ctypes
import os

from warphash.runtime.abi import Batch, Launch, Table
from warphash.runtime.cuda import nvrtc

FAKE_DRIVER = "WARPHASH_TEST_FAKE_DRIVER" in os.environ
"""The engine runs on ``fake_driver.c``, which knows the kernel by its name (and where NVRTC itself would crash)."""

NAMES = [name for base in (Launch, Batch) for name, _ in base._fields_]

SOURCE = f"""
using u64 = unsigned long long;
struct Table {{ u64 words[{ctypes.sizeof(Table) // 8}]; }};
struct Batch {{ u64 {", ".join(NAMES)}; }};
extern "C" __global__ void __launch_bounds__(256) scale_add(const Table table, const Batch batch) {{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < batch.n)
    reinterpret_cast<u64*>(batch.out_values)[i] =
        reinterpret_cast<const u64*>(batch.keys)[i] * table.words[1] + batch.default_value;
}}
"""


def cubin(arch: str) -> bytes:
    """``scale_add``: out_values[i] = keys[i] * table.buckets + batch.default_value."""
    return b"\x7fELF" if FAKE_DRIVER else nvrtc.compile(SOURCE, arch).cubin


def table(factor: int) -> Table:
    made = Table()
    made.buckets = factor
    return made
