"""What this machine can run, and what it lacks, each with the command that mends it.

Needs the standard library alone: each look imports what it looks at, and a module that is missing is a finding.
"""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata, util

from ..errors import EXTENSION_MEND, EngineUnavailable, WarphashError
from ..settings import CACHE_VARIABLE, get_num_threads

__all__ = ["Finding", "examine", "report"]

LIBRARIES = ("cuda-bindings", "cupy", "torch", "jax", "pyarrow", "polars", "pandas")
"""Distributions whose arrays are taken, or that the GPU engine uses. CuPy's wheels are named after a CUDA version."""

EXTRAS = ("typer", "rich", "matplotlib", "pyarrow")
"""Modules that ``warphash bench`` and ``warphash figure`` need."""

NUMPY_MEND = "pip install --force-reinstall 'numpy>=1.26'"

SIMD_LEVELS = {"wide": "AVX-512", "fast": "AVX2", "base": "the processor family's baseline"}
"""The extension's builds (``CMakeLists.txt``), by what they need."""


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes
    ----------
    subject, state
        What was looked at, and how it is.
    mend
        A command or a piece of advice where something is missing; else empty.
    """

    subject: str
    state: str
    mend: str = ""


def report() -> str:
    """The findings as text, one a line, the mends beneath."""
    findings = examine()
    width = max(len(finding.subject) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.subject:<{width}}  {finding.state}")
        if finding.mend:
            lines.append(f"{'':<{width}}  mend: {finding.mend}")
    return "\n".join(lines)


def examine() -> list[Finding]:
    """Look at everything; what cannot be looked at is a finding too, never an error."""
    findings = []
    for subject, look in _LOOKS.items():
        try:
            findings += look()
        except ImportError as error:
            if error.name != "numpy":
                findings.append(Finding(subject, f"cannot be examined: {error}"))
            else:  # whose mend stands beside it
                findings.append(Finding(subject, "cannot be examined without NumPy"))
        except Exception as error:  # a doctor that falls ill helps nobody
            findings.append(Finding(subject, f"cannot be examined: {type(error).__name__}: {error}"))
    return findings


def _versions() -> list[Finding]:
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return [Finding("warphash", f"{_version('warphash') or 'not installed'} ({python})")]


def _numpy() -> list[Finding]:
    try:
        return [Finding("NumPy", importlib.import_module("numpy").__version__)]
    except ImportError as error:
        first_line = str(error).strip().partition("\n")[0]  # of NumPy's page of advice
        return [Finding("NumPy", f"missing ({first_line})", NUMPY_MEND)]


def _cpu() -> list[Finding]:
    try:
        importlib.import_module("warphash.runtime._cpu")
    except ImportError as error:
        return [Finding("CPU engine", f"missing ({error})", EXTENSION_MEND)]
    engine = importlib.import_module("warphash.runtime.cpu")  # which also needs NumPy
    try:
        level = engine.best_level()
    except EngineUnavailable as error:
        what, _, mend = str(error).partition(": ")
        return [Finding("CPU engine", f"not usable: {what}", mend)]
    return [Finding("CPU engine", f"ready: {SIMD_LEVELS[level]}, {get_num_threads()} threads")]


def _gpu() -> list[Finding]:
    from .cuda import engine as cuda
    from .cuda import nvrtc

    reason = cuda.reason_unavailable()
    if reason is not None:
        what, _, mend = reason.partition(": ") if nvrtc.MEND in reason else (reason, "", "")
        return [Finding("GPU engine", f"not usable: {what}", mend)]
    findings = [Finding("GPU engine", f"ready: driver for CUDA {cuda.driver_version()}")]
    for index in range(cuda.device_count()):
        engine = cuda.engine(index)
        memory = f"{engine.free_bytes() / 2**30:.1f} of {engine.total_bytes / 2**30:.1f} GiB free"
        findings.append(Finding(f"  {engine.device}", f"{engine.name} ({engine.arch}), {memory}"))
    return findings


def _compiler() -> list[Finding]:
    from .cuda import nvrtc

    try:
        major, minor = nvrtc.version()
    except WarphashError:
        return [Finding("NVRTC", "missing: no kernel can be compiled for a GPU", nvrtc.MEND)]
    return [Finding("NVRTC", f"{major}.{minor}")]


def _cache() -> list[Finding]:
    from .cuda.cache import CubinCache

    cache = CubinCache()
    use = cache.use()
    state = f"{cache.directory}: {use.entries} kernels, {use.nbytes / 1e6:.1f} of {cache.limit_bytes / 1e6:.0f} MB"
    if cache.writable():
        return [Finding("compile cache", state)]
    return [Finding("compile cache", f"{state}; read only", f"export {CACHE_VARIABLE}=<a folder that takes files>")]


def _libraries() -> list[Finding]:
    names = [*LIBRARIES, *(f"cupy-cuda{major}x" for major in (12, 13))]
    found = [f"{name} {version}" for name in names if (version := _version(name))]
    return [Finding("array libraries", ", ".join(found) or "none but NumPy")]


def _extras() -> list[Finding]:
    missing = [name for name in EXTRAS if not util.find_spec(name)]
    if not missing:
        return [Finding("laboratory", "ready: " + ", ".join(f"{name} {_version(name)}" for name in EXTRAS))]
    state = f"warphash bench and warphash figure lack {', '.join(missing)}"
    return [Finding("laboratory", state, "pip install 'warphash[bench]'")]


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


_LOOKS: dict[str, Callable[[], list[Finding]]] = {
    "warphash": _versions,
    "NumPy": _numpy,
    "CPU engine": _cpu,
    "GPU engine": _gpu,
    "NVRTC": _compiler,
    "compile cache": _cache,
    "array libraries": _libraries,
    "laboratory": _extras,
}

if __name__ == "__main__":
    sys.stdout.write(report() + "\n")
