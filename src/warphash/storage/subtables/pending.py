"""A batch that was launched, and that no call has waited for yet.

If the table has room even when every key of a batch is new, and the table may grow, `SubtableSlots.update` launches
the batch and returns. Pairs whose evictions find no slot then stay in the insert's scratch memory: they are the
table's from that moment on, and `SubtableSlots.finish` gives them slots. An erase is not waited for either; `finish`
then halves subtables if that is due.

Work behind such a batch is launched before its end is waited for, so that the device is not idle. An insert settles,
and an erase erases; the kernels of both do nothing if pairs were displaced, and are launched again. A find is told
where the displaced pairs are, and waits for nobody. (Of 390 us for a million inserts, a million finds and 0.4 million
erases the device had been idle for 90: docs/performance/subtables.md.)
"""

from __future__ import annotations

from typing import NamedTuple

from .insert import Insert

__all__ = ["PendingBatch"]


class PendingBatch(NamedTuple):
    """A batch that no call has waited for.

    Attributes
    ----------
    insert
        The insert; None of an erase.
    updates_wait
        An update ends the batch before it launches a kernel: a subtable may have to be halved.
    """

    insert: Insert | None
    updates_wait: bool
