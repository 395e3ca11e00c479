"""Libraries of C++ that are compiled when they are first used, by the compiler of the system, and kept on disk.

A library is named after its source, its options and its compiler. So a change of any of these compiles another one, and
nothing that is kept is ever out of date.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ..errors import EngineUnavailable
from ..settings import cache_directory
from .cuda.nvrtc import CompileError

__all__ = ["KERNEL_OPTIONS", "compiled", "compiler"]

KERNEL_OPTIONS = (
    *("-x", "c++", "-std=gnu++20", "-w", "-fPIC", "-shared", "-fno-exceptions"),  # gnu: integers of 128 bits
    # Each library has its own copy of what the headers define: the dynamic linker must not merge two of them.
    *("-fvisibility=hidden", "-fno-gnu-unique"),
)
"""For a library of kernels, whatever engine it is for."""

_log = logging.getLogger(__name__)


def compiled(source: str, options: Sequence[str], folder: str) -> Path:
    """The file of the library of ``source``, in a folder of the cache; compiled unless it is there.

    Raises
    ------
    EngineUnavailable
        Where there is no compiler.
    CompileError
        Where it refuses the source.
    """
    command = compiler()
    key = hashlib.sha256("\0".join([source, *command, _version(command), *options]).encode()).hexdigest()
    directory = cache_directory() / folder
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        directory = Path(tempfile.mkdtemp(prefix="warphash-"))
    library = directory / f"{key}.so"
    if not library.exists():
        start = time.perf_counter()
        _compile([*command, *options], source, library)
        _log.info("compiled a library for %s in %.1f s", folder, time.perf_counter() - start)
    return library


def compiler() -> tuple[str, ...]:
    """The C++20 compiler: ``CXX``, or the system's."""
    candidates = [words for name in (os.environ.get("CXX", ""), "g++", "c++") if (words := name.split())]
    for words in candidates:
        if shutil.which(words[0]):
            return tuple(words)
    raise EngineUnavailable(
        "a C++20 compiler is needed for kernels that are compiled when they are first used, and found was none of "
        f"{', '.join(words[0] for words in candidates)}: install g++ 11 or later, or name one in CXX"
    )


def _compile(command: Sequence[str], source: str, library: Path) -> None:
    """Write ``library`` whole or not at all; a process that races to the same one writes the same code."""
    handle, temporary = tempfile.mkstemp(suffix=".so", prefix=".writing-", dir=library.parent)
    os.close(handle)
    try:
        run = subprocess.run(
            [*command, "-o", temporary, "-"], input=source, capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise CompileError(f"{command[0]} refused the source:\n{run.stderr}")
        Path(temporary).replace(library)
    finally:
        Path(temporary).unlink(missing_ok=True)


@functools.cache
def _version(command: tuple[str, ...]) -> str:
    """Its first line about itself, and the machine it compiles for."""
    run = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    return f"{run.stdout.splitlines()[0]} {os.uname().machine}"
