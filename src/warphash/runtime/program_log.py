"""Which kernels a run used: engines note the programs that they hand out, and a measurement reads the notes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .engine import KernelSpec
from .source import KernelSource, source_of

__all__ = ["ProgramLog", "note", "note_source", "recorded"]


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
