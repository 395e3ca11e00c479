"""Which kernels a run used: engines note the programs that they hand out, and a measurement reads the notes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .engine import KernelSpec
from .source import KernelSource, source_of

__all__ = ["ProgramLog", "note", "recorded"]


class ProgramLog:
    """The programs that engines handed out during a recording."""

    def __init__(self) -> None:
        self._noted: set[tuple[str, KernelSpec]] = set()

    def add(self, platform: str, spec: KernelSpec) -> None:
        """Note the kernels of ``spec`` on the engine of ``platform``."""
        self._noted.add((platform, spec))

    def sources(self) -> list[KernelSource]:
        """Where the programs come from: each source once, by platform and name. Widths make no difference."""
        found = {source_of(spec, platform) for platform, spec in self._noted}
        return sorted(found, key=lambda source: (source.platform, source.program, source.headers))


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
    for log in _open:
        log.add(device.partition(":")[0], spec)
