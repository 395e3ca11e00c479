"""Machine code of kernels: from the cache on disk, else compiled and kept there. Needs no GPU.

Each kernel is a unit of its own. Of the kernels of a design a table needs a few at first, and of NVRTC's time nearly
all goes into the code of the kernels: 0.05 s for the headers, 0.1 to 0.6 s for a kernel. So kernels are compiled when
they are first asked for, and those that are asked for together are compiled side by side. A caller that will ask for
several kernels, one after another, can have all of them begun before.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from ..engine import KernelSpec
from ..source import kernel_names, single_kernel, translation_unit
from . import nvrtc
from .cache import CubinCache

__all__ = ["MachineCode"]

_log = logging.getLogger(__name__)


class MachineCode:
    """The machine code of a set of kernels for one architecture.

    Attributes
    ----------
    key
        A digest of all that could change the code. The cache has each kernel under a digest of this one and its name.
    """

    def __init__(self, spec: KernelSpec, arch: str) -> None:
        self._spec, self._arch = spec, arch
        self._source = translation_unit(spec, "cuda")
        self.key = nvrtc.cache_key(self._source, arch)
        self._under_way: dict[str, Future[bytes]] = {}
        self._beginning = threading.Lock()

    def begin(self, entries: Iterable[str]) -> None:
        """Compile some kernels in the background, unless the cache has them. `of` waits, and raises their errors."""
        cache = CubinCache()
        self._submit([name for name in entries if cache.get(self._key_of(name)) is None], cache)

    def is_begun(self, entry: str) -> bool:
        """Whether the cache has a kernel, or its compilation has begun."""
        return entry in self._under_way or CubinCache().get(self._key_of(entry)) is not None

    def of(self, entries: Iterable[str]) -> list[bytes]:
        """The machine code of some kernels, each by itself. Those that are not in the cache are compiled side by side.

        Says in the log, at level INFO, that it compiles. The slowest kernel takes about 0.6 s.

        Raises
        ------
        CompileError, EngineUnavailable
            As `nvrtc.compile`.
        """
        names, cache = list(entries), CubinCache()
        found = {name: cache.get(self._key_of(name)) for name in names}
        missing = [name for name, code in found.items() if code is None]
        if missing:
            self._announce(", ".join(missing), cache)
            start = time.perf_counter()
            try:
                for name, compilation in self._submit(missing, cache).items():
                    found[name] = compilation.result()
            finally:
                self._forget(missing)
            _log.info("compiled the kernels of %s in %.1f s", self._what, time.perf_counter() - start)
        return [found[name] or b"" for name in names]

    def compile_all(self) -> bool:
        """Have all kernels in the cache; whether any was compiled."""
        cache = CubinCache()
        names = cache.get(self.key)
        if names is None:
            self._announce("all", cache)
            listed = nvrtc.compile(kernel_names(self._source), self._arch).usage()
            names = " ".join(sorted(listed)).encode()
            cache.put(self.key, names)
            self.of(names.decode().split())
            return True
        absent = [name for name in names.decode().split() if cache.get(self._key_of(name)) is None]
        self.of(absent)
        return bool(absent)

    def _submit(self, names: list[str], cache: CubinCache) -> dict[str, Future[bytes]]:
        """The compilations of some kernels; those that are not under way begin, in the order of the names."""
        with self._beginning:
            new = [name for name in names if name not in self._under_way]
            if new:
                pool = ThreadPoolExecutor(min(len(new), os.cpu_count() or 1), "warphash-compile")
                self._under_way |= {name: pool.submit(self._compiled, name, cache) for name in new}
                pool.shutdown(wait=False)  # its threads end with their work
            return {name: self._under_way[name] for name in names}

    def _forget(self, names: list[str]) -> None:
        """Forget the compilations of some kernels, as far as they are over."""
        with self._beginning:
            over = [name for name in names if name in self._under_way and self._under_way[name].done()]
            for name in over:
                del self._under_way[name]

    def _compiled(self, name: str, cache: CubinCache) -> bytes:
        """Compile a kernel, and keep it, though nobody may ask for it in this process."""
        code = nvrtc.compile(single_kernel(self._source, name), self._arch).cubin
        cache.put(self._key_of(name), code)
        return code

    def _key_of(self, name: str) -> str:
        return hashlib.sha256(f"{self.key} {name}".encode()).hexdigest()

    @property
    def _what(self) -> str:
        spec = self._spec
        return f"{spec.design} for {spec.key_bytes} + {spec.value_bytes} bytes" if spec.key_bytes else spec.design

    def _announce(self, names: str, cache: CubinCache) -> None:
        _log.info(
            "compiling the kernels of %s for %s, to be kept in %s: %s", self._what, self._arch, cache.directory, names
        )
