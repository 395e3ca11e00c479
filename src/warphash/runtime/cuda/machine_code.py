"""Machine code of kernels: from the cache on disk, else compiled and kept there. Needs no GPU."""

from __future__ import annotations

import logging
import time
from typing import NamedTuple

from ..engine import KernelSpec
from ..source import translation_unit
from . import nvrtc
from .cache import CubinCache

__all__ = ["MachineCode", "machine_code"]

_log = logging.getLogger(__name__)


class MachineCode(NamedTuple):
    """The machine code of a set of kernels for one architecture.

    Attributes
    ----------
    key
        Its name in the cache: a digest of all that could change it.
    compiled
        The code was not in the cache.
    """

    key: str
    cubin: bytes
    compiled: bool


def machine_code(spec: KernelSpec, arch: str) -> MachineCode:
    """The machine code of some kernels. Says in the log, at level INFO, that it compiles, which takes a second or two.

    Raises
    ------
    CompileError, EngineUnavailable
        As `nvrtc.compile`.
    """
    source, cache, compiled = translation_unit(spec, "cuda"), CubinCache(), False
    key = nvrtc.cache_key(source, arch)

    def make() -> bytes:
        nonlocal compiled
        compiled = True
        what = f"{spec.design} for {spec.key_bytes} + {spec.value_bytes} bytes" if spec.key_bytes else spec.design
        _log.info("compiling the kernels of %s for %s, to be kept in %s", what, arch, cache.directory)
        start = time.perf_counter()
        cubin = nvrtc.compile(source, arch).cubin
        _log.info("compiled the kernels of %s in %.1f s", what, time.perf_counter() - start)
        return cubin

    cubin = cache.get_or_make(key, make)
    return MachineCode(key, cubin, compiled)
