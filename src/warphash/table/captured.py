"""Lookups in CUDA graphs: what can be captured, and for how long a graph reads the table.

A graph repeats kernels with the arguments that they had. A find is one kernel over memory of the table, so a graph can
repeat it, and sees what the table holds then. An update is more than kernels: the host reads how many keys found no
slot, and may enlarge the table. A graph would leave that out.

A captured kernel has the addresses, sizes and hash constants of the table. An update that rebuilds the table changes
them. The table keeps the memory that graphs may read, so that a stale graph answers wrong and does no other harm.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from ..arrays.dlpack import LEGACY_STREAM
from ..errors import CaptureError
from ..storage.rows import Rows
from .facts import Facts

__all__ = ["NEVER", "Capture", "Captures", "refuse"]

NEVER = (None, LEGACY_STREAM)
"""Streams that CUDA does not capture, and of which the driver need not be asked: that of arrays in host memory, and the
one that most callers use."""


class Capture(NamedTuple):
    """What captured kernels read.

    Attributes
    ----------
    memory
        Keeps the memory.
    arguments
        What the kernels were told of the table.
    """

    memory: Any
    arguments: bytes


def refuse(engine: Any, stream: int) -> None:
    """Raise `CaptureError` if a CUDA graph captures the stream."""
    if engine.is_captured(stream):
        raise CaptureError(
            "only find and contains can be captured in a CUDA graph: for every other verb the host reads what its "
            "kernels report, and decides what follows, which a graph does not repeat. Call the verb outside of the "
            "capture; the table is as it was"
        )


class Captures:
    """The lookups of a table that CUDA graphs have captured. Its caller holds the table's lock.

    Parameters
    ----------
    facts
        Of the table.

    Attributes
    ----------
    kept
        One capture for each state of the table that graphs read. The caller empties it when the table is closed.
    """

    __slots__ = ("_facts", "kept")

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.kept: list[Capture] = []

    def look_up(
        self, storage: Rows, keys: int, n: int, values: int, found: int, absent: bytes, stream: int | None
    ) -> None:
        """Launch the kernel of a lookup into a graph, with arguments as of `Rows.find`.

        Raises
        ------
        CaptureError
            If a graph cannot repeat a find of this table.
        """
        if reason := self._reason_against(storage):
            raise CaptureError(f"a find of this table cannot be captured in a CUDA graph: {reason}")
        try:
            storage.find(keys, n, values, found, absent, stream)
        except CaptureError as error:
            raise CaptureError(
                f"{error}: only keys and values that lie in the slots as they are can be captured, such as those of 4 "
                "or 8 bytes"
            ) from None
        made = _capture_of(storage)
        if all(made.arguments != known.arguments for known in self.kept):
            self.kept.append(made)

    def are_current(self, storage: Rows) -> bool:
        """Whether all graphs read what a find would read now."""
        return all(known.arguments == _capture_of(storage).arguments for known in self.kept)

    def _reason_against(self, storage: Rows) -> str | None:
        """Why a graph cannot repeat a find of the table, with the mend."""
        facts = self._facts
        if facts.bound is not None:
            return "it counts as a use of its keys, which decides who leaves. Make the table without max_size"
        if facts.memory != "device":
            return f"the host takes part, as pairs lie in {str(facts.memory)!r}. Make the table with memory='device'"
        if facts.is_grouped:
            return "it takes several kernels and memory of its own. Make the table with design='slab', on_full='raise'"
        if facts.design.layout.keeps_duplicates and facts.options["on_full"] == "grow":
            return "its lists may grow into memory that the graph does not know. Make the table with on_full='raise'"
        if storage.store.pending:
            return "an update is under way. Call len(table) before the capture"
        return None


def _capture_of(storage: Rows) -> Capture:
    array: Any = storage.store.state.array
    return Capture(copy.copy(array), bytes(array.table))
