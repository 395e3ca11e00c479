"""Compile one translation unit to machine code (cubin) with NVRTC; needs neither a GPU nor a driver.

A cubin, never PTX: NVRTC 13.5 writes PTX 9.5, which a CUDA 13.0 driver does not take, while a cubin for the device's
own compute capability loads on every driver that knows the device.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ...errors import EngineUnavailable, WarphashError

__all__ = ["OPTIONS", "CompileError", "CompiledModule", "Usage", "cache_key", "compile", "installed", "version"]

OPTIONS = ("--std=c++20", "--ptxas-options=-v")
"""Passed to every compilation. ptxas's ``-v`` costs nothing and tells registers and spills (`CompiledModule.usage`)."""

MEND = "pip install 'warphash[cuda13]'  (or warphash[cuda12] for a CUDA 12 driver)"

_FUNCTION = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")


class CompileError(WarphashError, RuntimeError):
    """The compiler refused a kernel; the message opens with the first complaint's header and line."""


@dataclass(frozen=True)
class Usage:
    """What one kernel takes of a multiprocessor."""

    registers: int
    spill_bytes: int


@dataclass(frozen=True)
class CompiledModule:
    """Machine code for one architecture, and what the compiler said."""

    cubin: bytes
    log: str

    def usage(self) -> dict[str, Usage]:
        """Registers and spilled bytes of each kernel, from the log."""
        usages: dict[str, Usage] = {}
        entry, spill_bytes = "", 0
        for line in self.log.splitlines():
            if found := _FUNCTION.search(line):
                entry, spill_bytes = found[1], 0
            elif found := _SPILLS.search(line):
                spill_bytes = int(found[1]) + int(found[2])
            if entry and (found := _REGISTERS.search(line)):
                usages[entry] = Usage(int(found[1]), spill_bytes)
        return usages


def compile(source: str, arch: str = "sm_90") -> CompiledModule:
    """Compile a self-contained source.

    Parameters
    ----------
    source
        One translation unit, as `runtime.source` writes it.
    arch
        ``"sm_80"``, ``"sm_90"``, ``"sm_100"``, ...: the device's own compute capability.

    Raises
    ------
    CompileError
        With header, line and the whole log.
    EngineUnavailable
        Where NVRTC is not installed, or does not know ``arch``.

    Notes
    -----
    0.1 to 0.6 s for a kernel. Safe from several threads; the interpreter's lock is free meanwhile.
    """
    nvrtc = _bindings()
    program = _check(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), b"unit.cu", 0, None, None))
    try:
        options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={arch}")]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _text(nvrtc, program, "ProgramLog")
        if status == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
            known = ", ".join(f"sm_{number}" for number in _check(nvrtc, nvrtc.nvrtcGetSupportedArchs()))
            major, minor = version()
            raise EngineUnavailable(
                f"NVRTC {major}.{minor} cannot compile for {arch} (it knows {known}); a newer one: {MEND}\n{log}"
            )
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"{_first_error(log)}\ncompiling a kernel for {arch} failed:\n{log}")
        return CompiledModule(_bytes(nvrtc, program, "CUBIN"), log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def cache_key(source: str, arch: str) -> str:
    """Name of the binary: a digest of all that could change it."""
    major, minor = version()
    digest = hashlib.sha256()
    for part in (source, arch, f"nvrtc {major}.{minor}", *OPTIONS):
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return digest.hexdigest()


def version() -> tuple[int, int]:
    """NVRTC's version, ``(13, 4)``. Raises `EngineUnavailable` where it is not installed."""
    nvrtc = _bindings()
    major, minor = _check(nvrtc, nvrtc.nvrtcVersion())
    return int(major), int(minor)


def installed() -> bool:
    """Whether kernels can be compiled here."""
    try:
        version()
    except EngineUnavailable:
        return False
    return True


def _bindings() -> ModuleType:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # loads the library: the bindings may be there without it
    # cuda-bindings raises RuntimeError or its own error, by version, where the library is missing.
    except Exception as error:
        raise EngineUnavailable(f"NVRTC, the run-time compiler, is not installed ({error}): {MEND}") from error
    return nvrtc  # type: ignore[no-any-return,unused-ignore]


def _check(nvrtc: ModuleType, answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC answered {status.name}")
    return values[0] if len(values) == 1 else values


def _text(nvrtc: ModuleType, program: Any, what: str) -> str:
    return _bytes(nvrtc, program, what).rstrip(b"\0").decode(errors="replace")


def _bytes(nvrtc: ModuleType, program: Any, what: str) -> bytes:
    size = _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program))
    content = bytearray(size)  # the bindings write into its memory
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, content))
    return bytes(content)


def _first_error(log: str) -> str:
    return next((line for line in log.splitlines() if "error" in line), "no message")
