"""Compilation to machine code; needs NVRTC's wheel, no GPU."""

from __future__ import annotations

import pytest

from warphash.errors import EngineUnavailable
from warphash.runtime.cuda import nvrtc

pytestmark = pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC is not installed")

TOY = """#line 7 "designs/toy.cuh"
struct Table { unsigned long long words[16]; };
extern "C" __global__ void fill(const Table table) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    reinterpret_cast<unsigned*>(table.words[0])[i] = static_cast<unsigned>(table.words[1]);
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_toy_kernel_becomes_a_cubin(arch: str) -> None:
    module = nvrtc.compile(TOY, arch)
    assert module.cubin.startswith(b"\x7fELF")
    assert module.usage()["fill"].registers > 0
    assert module.usage()["fill"].spill_bytes == 0


def test_failure_names_header_and_line() -> None:
    with pytest.raises(nvrtc.CompileError, match=r"^designs/toy\.cuh\(9\): error") as caught:
        nvrtc.compile(TOY.replace("threadIdx.x", "thread_idx.x"))
    assert "thread_idx" in str(caught.value)


def test_unknown_architecture_is_no_compile_error() -> None:
    with pytest.raises(EngineUnavailable, match="sm_90"):
        nvrtc.compile(TOY, "sm_12345")


def test_key_changes_with_source_and_architecture() -> None:
    keys = {nvrtc.cache_key(TOY, "sm_90"), nvrtc.cache_key(TOY + " ", "sm_90"), nvrtc.cache_key(TOY, "sm_80")}
    assert len(keys) == 3
    assert nvrtc.cache_key(TOY, "sm_90") in keys
