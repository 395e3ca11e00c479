"""What the pairs of keys that repeat have in common with the slots of other tables."""

from __future__ import annotations

from typing import Any, Protocol

from ...designs.base import Design
from ...runtime.engine import Engine
from ..rows import Rows
from ..slots import Recovery, Slots
from .value_memory import Lists

__all__ = ["GroupedSlots"]


class _Pairs(Protocol):
    """The rows whose figures these are (`grouped_rows.GroupedRows`)."""

    engine: Engine
    recovery: Recovery
    rebuilds: int

    @property
    def index(self) -> Rows: ...
    @property
    def lists(self) -> Lists: ...
    @property
    def slots(self) -> int: ...
    def counted(self, stream: Any) -> int: ...
    def pack(self, stream: Any) -> int: ...


class GroupedSlots:
    """The part of `slots.Slots` that a table asks for. A slot is room for a value. The table resizes as a whole."""

    resizes: int | None = None
    peak_nbytes: int | None = None

    def __init__(self, rows: _Pairs) -> None:
        self._rows = rows
        self.engine: Engine = rows.engine
        self.design: Design = self._keys.design
        self.seed: int = self._keys.seed

    @property
    def _keys(self) -> Slots:
        return self._rows.index.store

    @property
    def recovery(self) -> Recovery:
        """That of the table of keys, which may have put off its clearing; or that of the pairs."""
        keys = self._keys.recovery
        return self._rows.recovery if keys.step is None else keys

    @property
    def size(self) -> int:
        return self._rows.lists.size

    @property
    def slots(self) -> int:
        return self._rows.slots

    @property
    def capacity(self) -> int:
        return self._rows.slots

    @property
    def rebuilds(self) -> int:
        return self._rows.rebuilds

    @property
    def insert_probes(self) -> float | None:
        return self._keys.insert_probes

    @property
    def pending(self) -> bool:
        return self._rows.recovery.step is not None or self._keys.pending

    def finish(self, stream: Any = None) -> None:
        self._rows.recovery.run(self.engine, stream)
        self._keys.finish(stream)

    def pack(self, stream: Any = None) -> int:
        """Bring the values of each key together, and drop erased ones; how many segments fewer there are."""
        return self._rows.pack(stream)

    def broken_buckets(self, stream: Any = None) -> int:
        """Broken buckets of the table of keys; one more if the lists have other values than are counted."""
        return self._keys.broken_buckets(stream) + (self._rows.counted(stream) != self.size)
