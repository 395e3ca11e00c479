"""Lookups in CUDA graphs: what can be captured, and for how long a graph reads the table.

A graph repeats kernels with the arguments that they had. A find is one kernel over memory of the table, so a graph can
repeat it, and sees what the table holds then. An update is more than kernels: the host reads how many keys found no
slot, and may enlarge the table. A graph would leave that out.

A captured kernel has the addresses, sizes and hash constants of the table. An update that rebuilds the table changes
them. The table keeps the memory that graphs may read, so that a stale graph answers wrong and does no other harm.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from ..arrays.dlpack import LEGACY_STREAM
from ..errors import CaptureError

if TYPE_CHECKING:
    from .base import BaseTable

__all__ = ["NEVER", "Capture", "are_current", "look_up", "refuse"]

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


def look_up(table: BaseTable, keys: int, n: int, values: int, found: int, absent: bytes, stream: int | None) -> None:
    """Launch the kernel of a lookup into a graph, with arguments as of `Rows.find`. The caller holds the lock.

    Raises
    ------
    CaptureError
        If a graph cannot repeat a find of this table.
    """
    if reason := _reason_against(table):
        raise CaptureError(f"a find of this table cannot be captured in a CUDA graph: {reason}")
    try:
        table._storage.find(keys, n, values, found, absent, stream)
    except CaptureError as error:
        raise CaptureError(
            f"{error}: only keys and values that lie in the slots as they are can be captured, such as those of 4 or "
            "8 bytes"
        ) from None
    made = _capture_of(table)
    if all(made.arguments != known.arguments for known in table._captures):
        table._captures.append(made)


def are_current(table: BaseTable) -> bool:
    """Whether all graphs read what a find would read now. The caller holds the table's lock."""
    return all(known.arguments == _capture_of(table).arguments for known in table._captures)


def _capture_of(table: BaseTable) -> Capture:
    array = table._storage.store.state.array
    return Capture(copy.copy(array), bytes(array.table))


def _reason_against(table: BaseTable) -> str | None:
    """Why a graph cannot repeat a find of a table, with the mend."""
    if table._bound is not None:
        return "it counts as a use of its keys, which decides who leaves. Make the table without max_size"
    if table._memory != "device":
        return f"the host takes part, as pairs lie in {str(table._memory)!r}. Make the table with memory='device'"
    if table._design.layout.keeps_duplicates and table._options["on_full"] == "grow":
        return "its lists may grow into memory that the graph does not know. Make the table with on_full='raise'"
    if table._storage.store.pending:
        return "an update is under way. Call len(table) before the capture"
    return None
