"""What this machine can run, and what it lacks, each with the command that mends it.

Needs the standard library alone: each look imports what it looks at, and a module that is missing is a finding.
"""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata, util

from ..errors import EXTENSION_MEND, EngineUnavailable, ParameterError, WarphashError
from ..near_names import did_you_mean
from ..settings import CACHE_VARIABLE, get_num_threads

__all__ = ["ASKED", "Finding", "examine", "examined", "lacking", "report"]

LIBRARIES = ("cuda-bindings", "cupy", "torch", "jax", "pyarrow", "polars", "pandas")
"""Distributions whose arrays are taken, or that the GPU engine uses. CuPy's wheels are named after a CUDA version."""

EXTRAS = ("typer", "rich", "matplotlib", "pyarrow")
"""Modules that ``warphash bench`` and ``warphash figure`` need."""

NUMPY_MEND = "pip install --force-reinstall 'numpy>=2.2'"

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
    is_ready
        Whether nothing that belongs to the subject is missing.
    """

    subject: str
    state: str
    mend: str = ""
    is_ready: bool = True


def report(findings: Iterable[Finding] | None = None) -> str:
    """The findings as text, one a line, the mends beneath; by default of `examine`."""
    findings = list(examine() if findings is None else findings)
    width = max(len(finding.subject) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.subject:<{width}}  {finding.state}")
        if finding.mend:
            lines.append(f"{'':<{width}}  mend: {finding.mend}")
    return "\n".join(lines)


def examined(asked: Sequence[str]) -> int:
    """Print the report, and on standard error what is wrong with some names (`ASKED`): the exit code of the command."""
    findings = examine()
    try:
        missing = lacking(asked, findings)
    except ParameterError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(report(findings) + "\n")
    if missing:
        sys.stderr.write(f"missing: {', '.join(missing)}\n")
    return int(bool(missing))


def lacking(asked: Sequence[str], findings: Iterable[Finding]) -> list[str]:
    """Those of some names (`ASKED`) that are missing, or that cannot be used here.

    Raises
    ------
    ParameterError
        For another name.
    """
    ready = {finding.subject: finding.is_ready for finding in findings}
    for name in asked:
        if name not in ASKED:
            near = did_you_mean(name, ASKED) or f"there are {', '.join(ASKED)}"
            raise ParameterError(f"doctor examines no {name!r}: {near}")
    return [name for name in asked if not (ready[ASKED[name]] if ASKED[name] else _versions_of(name))]


def examine() -> list[Finding]:
    """Look at everything; what cannot be looked at is a finding too, never an error."""
    findings = []
    for subject, look in _LOOKS.items():
        try:
            findings += look()
        except ImportError as error:
            if error.name != "numpy":
                findings.append(Finding(subject, f"cannot be examined: {error}", is_ready=False))
            else:  # whose mend stands beside it
                findings.append(Finding(subject, "cannot be examined without NumPy", is_ready=False))
        except Exception as error:  # a doctor that falls ill helps nobody
            said = f"cannot be examined: {type(error).__name__}: {error}"
            findings.append(Finding(subject, said, is_ready=False))
    return findings


def _versions() -> list[Finding]:
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return [Finding("warphash", f"{_version('warphash') or 'not installed'} ({python})")]


def _numpy() -> list[Finding]:
    try:
        return [Finding("NumPy", importlib.import_module("numpy").__version__)]
    except ImportError as error:
        first_line = str(error).strip().partition("\n")[0]  # of NumPy's page of advice
        return [Finding("NumPy", f"missing ({first_line})", NUMPY_MEND, is_ready=False)]


def _cpu() -> list[Finding]:
    try:
        importlib.import_module("warphash.runtime._cpu")
    except ImportError as error:
        return [Finding("CPU engine", f"missing ({error})", EXTENSION_MEND, is_ready=False)]
    engine = importlib.import_module("warphash.runtime.cpu")  # which also needs NumPy
    try:
        level = engine.best_level()
    except EngineUnavailable as error:
        what, _, mend = str(error).partition(": ")
        return [Finding("CPU engine", f"not usable: {what}", mend, is_ready=False)]
    return [Finding("CPU engine", f"ready: {SIMD_LEVELS[level]}, {get_num_threads()} threads")]


def _gpu() -> list[Finding]:
    from .cuda import engine as cuda
    from .cuda import nvrtc

    reason = cuda.reason_unavailable()
    if reason is not None:
        what, _, mend = reason.partition(": ") if nvrtc.MEND in reason else (reason, "", "")
        return [Finding("GPU engine", f"not usable: {what}", mend, is_ready=False)]
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
        return [Finding("NVRTC", "missing: no kernel can be compiled for a GPU", nvrtc.MEND, is_ready=False)]
    return [Finding("NVRTC", f"{major}.{minor}")]


def _cache() -> list[Finding]:
    from .cuda.cache import CubinCache

    cache = CubinCache()
    use = cache.use()
    state = f"{cache.directory}: {use.entries} kernels, {use.nbytes / 1e6:.1f} of {cache.limit_bytes / 1e6:.0f} MB"
    if cache.writable():
        return [Finding("compile cache", state)]
    mend = f"export {CACHE_VARIABLE}=<a folder that takes files>"
    return [Finding("compile cache", f"{state}; read only", mend, is_ready=False)]


def _libraries() -> list[Finding]:
    found = [named for name in LIBRARIES for named in _versions_of(name)]
    return [Finding("array libraries", ", ".join(found) or "none but NumPy")]


def _extras() -> list[Finding]:
    missing = [name for name in EXTRAS if not util.find_spec(name)]
    if not missing:
        return [Finding("laboratory", "ready: " + ", ".join(f"{name} {_version(name)}" for name in EXTRAS))]
    state = f"warphash bench and warphash figure lack {', '.join(missing)}"
    return [Finding("laboratory", state, "pip install 'warphash[bench]'", is_ready=False)]


def _versions_of(library: str) -> list[str]:
    """The distributions of a library that are installed, each with its version."""
    names = [library, *(f"cupy-cuda{major}x" for major in (12, 13) if library == "cupy")]
    return [f"{name} {version}" for name in names if (version := _version(name))]


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

ASKED: dict[str, str] = {
    "numpy": "NumPy",
    "cpu": "CPU engine",
    "gpu": "GPU engine",
    "nvrtc": "NVRTC",
    "cache": "compile cache",
    "lab": "laboratory",
    **dict.fromkeys(LIBRARIES, ""),
}
"""What may be asked for, and the subject that tells of it; libraries are looked up by themselves."""

if __name__ == "__main__":
    sys.exit(examined(sys.argv[1:]))
