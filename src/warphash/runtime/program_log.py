"""Which kernels a run used, and whether it loaded any: engines note both, and a measurement reads the notes.

A kernel is compiled, or comes from a cache on disk, when it is first launched. So any run may load kernels: also the
tenth, if it is the first whose batch finds no slot. Its time says nothing of the rate (`loads`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .engine import KernelSpec
from .source import KernelSource, source_of

__all__ = ["ProgramLog", "loads", "note", "note_load", "note_source", "recorded"]


class ProgramLog:
    """The sources of the programs that engines handed out during a recording, each once."""

    def __init__(self) -> None:
        self._noted: set[KernelSource] = set()

    def add(self, source: KernelSource) -> None:
        """Note a source."""
        self._noted.add(source)

    def sources(self) -> list[KernelSource]:
        """All sources, by platform and name. The widths that kernels were compiled for make no difference."""
        return sorted(self._noted, key=lambda source: (source.platform, source.program, source.headers))


_open: list[ProgramLog] = []
"""Of the recordings that are under way."""


@contextmanager
def recorded() -> Iterator[ProgramLog]:
    """Record the programs that all engines of the process hand out, in any thread, until the block ends."""
    log = ProgramLog()
    _open.append(log)
    try:
        yield log
    finally:
        _open.remove(log)


def note(device: str, spec: KernelSpec) -> None:
    """Note that the engine of ``device`` hands out the kernels of ``spec``. Every `Engine.program` calls this."""
    if _open:
        note_source(source_of(spec, device.partition(":")[0]))


def note_source(source: KernelSource) -> None:
    """Note kernels that another process ran on behalf of this one."""
    for log in _open:
        log.add(source)


_loads = 0


def note_load() -> None:
    """Note that an engine loads kernels."""
    global _loads
    _loads += 1


def loads() -> int:
    """How often engines of this process loaded kernels so far."""
    return _loads
