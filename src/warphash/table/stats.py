"""The figures of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from ..storage.slots import SubtableFigures, TierFigures
from .facts import Facts
from .front import Front
from .guarded import Guarded

__all__ = ["Figures", "Stats"]


@dataclass(frozen=True)
class Stats:
    """Figures of a table at one moment.

    Attributes
    ----------
    size, slots, load_factor
        Keys held, slots to hold them, and their ratio.
    nbytes, bytes_per_pair
        Memory of the table, and memory over ``size``.
    memory_utilisation
        Bytes of live pairs over bytes of buckets and nodes in use, and of the rows of wide keys: A Dynamic Hash Table
        for the GPU, section III-C.
    reserve_nbytes
        The part of ``nbytes`` that is held in reserve: free nodes of a table whose buckets are lists, and free rows of
        wide keys. 0 for other tables.
    design, parameters
        Name and parameters of the table's design.
    rebuilds
        How often the table moved all its keys, to grow or to use other hash constants.
    resizes, peak_nbytes
        How often a subtable was doubled or halved; and the most device memory that the table and a resize held at one
        time. None for a table without subtables. A resize holds both copies of a subtable (of all subtables, if the
        table is rebuilt), and working memory: lists, flags, and copies of the pairs that move. The working memory of
        other calls is not counted.
    subtables
        Slots and keys of each subtable; None for a table without subtables. Up to three keys that equal a mark of the
        slots lie in none of them.
    nodes
        Number of nodes in use, such as slabs, of a table whose buckets are lists; None for other tables.
    insert_probes
        Mean number of buckets that an insert has read for a key, if the table was made with ``count_probes=True``.
    max_size, evicted
        The bound on keys, and how many keys have left because of it or by `evict`; None for a table without a bound.
    tiers
        What is in the two tiers of a tiered table, the rate of hits, and the traffic between the tiers; None for other
        tables.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> stats = warphash.HashSet.from_arrays(np.arange(1_000), device="cpu").stats()
    >>> stats.size, stats.rebuilds, stats.max_size
    (1000, 0, None)
    """

    size: int
    slots: int
    load_factor: float
    nbytes: int
    bytes_per_pair: float
    memory_utilisation: float
    reserve_nbytes: int
    design: str
    parameters: dict[str, Any]
    rebuilds: int
    resizes: int | None
    peak_nbytes: int | None
    nodes: int | None
    insert_probes: float | None
    max_size: int | None
    evicted: int | None
    tiers: TierFigures | None = None
    subtables: tuple[SubtableFigures, ...] | None = None


class Figures:
    """Reads the figures of a table, and no slot."""

    __slots__ = ("_facts", "_front", "_guarded")

    def __init__(self, facts: Facts, front: Front, guarded: Guarded) -> None:
        self._facts, self._front, self._guarded = facts, front, guarded

    def repr_locked(self) -> str:
        """The table in one line."""
        facts, front, store = self._facts, self._front, self._guarded.storage.store
        value = "" if front.value is None else f", value={front.value.name}"
        return (
            f"<{facts.name} key={front.key.name}{value}: {store.size:,} keys in "
            f"{store.slots:,} slots, {facts.design.name} on {front.device}>"
        )

    def stats_locked(self) -> Stats:
        """All figures."""
        facts, storage = self._facts, self._guarded.storage
        store, nbytes, use = storage.store, storage.nbytes, storage.memory_use()
        size, bounded = store.size, cast(Any, storage)
        pair = sum(column.nbytes for column in self._front.stored)
        return Stats(
            size=size,
            slots=store.slots,
            load_factor=size / store.slots,
            nbytes=nbytes,
            bytes_per_pair=nbytes / size if size else float("inf"),
            memory_utilisation=size * pair / use.in_use,
            reserve_nbytes=use.reserve,
            design=facts.design.name,
            parameters=dict(facts.parameters),
            rebuilds=store.rebuilds,
            resizes=store.resizes,
            peak_nbytes=store.peak_nbytes,
            nodes=use.nodes,
            insert_probes=store.insert_probes,
            max_size=facts.bound and facts.bound.max_size,
            evicted=facts.bound and bounded.evicted,
            tiers=use.tiers,
            subtables=use.subtables,
        )
