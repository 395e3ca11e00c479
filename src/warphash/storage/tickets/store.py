"""The store of slots with a ticket board: that of buckets, and mixed batches.

A mixed batch uses no slot twice (``kernels/tickets/execute.cuh``). Inserts that find no unused slot are launched again
after a rebuild, in which emptied slots become free, or which makes the table larger. Each operation is done at one
moment, so an interrupted batch leaves nothing to undo: the keys are counted anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import TableFull
from ...runtime.abi import Flag
from .. import policies
from ..buckets.array import Listed
from ..buckets.store import BucketStore
from ..scratch import flags_at
from ..storage import StoreOptions, TableKind
from .array import TicketArray

__all__ = ["TicketStore"]


def make_store(kind: TableKind, capacity: int, seed: int, hash: str, options: StoreOptions, multi: bool) -> TicketStore:
    """Make an empty store for ``capacity`` keys; see `make_storage`."""
    slots = policies.slots_for(capacity, options.load_factor)
    return TicketStore(TicketArray(*kind, slots, seed, hash), options)


class TicketStore(BucketStore):
    """As `BucketStore`, of one `TicketArray`."""

    def execute(
        self,
        operations: int,
        keys: int,
        values: int,
        n: int,
        out_values: int,
        flags: int,
        default: int,
        stream: Any = None,
    ) -> None:
        """Do a mixed batch. Waits.

        Raises
        ------
        TableFull
            If there is no slot for some keys. All other operations are done; ``keys`` are the numbers of the elements
            that are not.
        MemoryError
            If there is no memory. Nothing is done.
        """
        if n == 0:
            return
        self.finish(stream)
        flags, _own_flags = flags_at(self.engine, flags, n, stream)
        self._tickets().open_access(stream)
        self.recovery.step = self._recover
        listed: Listed | None = None
        while True:
            changed, erased, unplaced = self._tickets().execute(
                operations, keys, values, n, out_values, flags, default, listed, stream
            )
            size, tombstones = self.state.size + changed - erased, self.state.tombstones + erased
            self.state = self.state._replace(size=size, tombstones=tombstones)
            if not unplaced:
                break
            try:
                listed = self._with_room_for(unplaced, flags, n, stream)
            except (TableFull, MemoryError) as error:
                self.recovery.step = None
                done = self.engine.to_host(flags, np.uint8, n, stream)
                raise TableFull(
                    f"{error}; all other operations are done", np.flatnonzero(done == Flag.UNPLACED)
                ) from error
        self.recovery.step = None
        self._keep_in_bounds(stream, erased=True)

    def _tickets(self) -> TicketArray:
        array = self.state.array
        assert isinstance(array, TicketArray)
        return array

    def _with_room_for(self, missing: int, flags: int, n: int, stream: Any) -> Listed:
        """Rebuild the table, with room for the elements of a mixed batch that found no slot; these elements.

        Raises
        ------
        TableFull, MemoryError
            If there is no room, or no memory. The table is as it was.
        """
        array, size, *_ = self.state
        listed = array.list_unplaced(flags, n, stream)
        slots = array.slots
        if self.grows and size + missing > policies.capacity_of(slots, self.load_factor):
            slots = policies.slots_after_failure(size, missing, slots, self.load_factor)
            self._check_slots(slots, missing)
        elif size >= slots:
            raise TableFull(
                f"{size + missing:,} keys do not fit into {slots:,} slots of design {self.design.name!r}; "
                "allow on_full='grow', or give a larger capacity"
            )
        self._replace(slots, stream)
        self._tickets().open_access(stream)
        return listed
