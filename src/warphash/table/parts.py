"""The parts that a table has, made in the order in which one needs another."""

from __future__ import annotations

from ..storage.make import StorageSpec, make_storage
from ..storage.slots import StoreOptions
from .copies import Copies
from .facts import Facts
from .front import Front
from .guarded import Guarded
from .lookups import Lookups
from .scans import Scans
from .stats import Figures
from .updates import Updates

__all__ = ["Parts"]


class Parts:
    """What a table consists of. Its verbs, and whoever works on a table from outside of its class, take these parts.

    Parameters
    ----------
    capacity
        Keys that the table has room for.
    store
        What the store of the table may do.

    Attributes
    ----------
    facts
        What the table is, and stays.
    front
        The caller's arrays, seen and checked.
    guarded
        The storage, and the lock.
    lookups, updates, scans
        The one path of each sort of verbs.
    figures
        Of ``stats`` and ``repr``.
    copies
        What other tables, pickles and files are made of.
    """

    __slots__ = ("copies", "facts", "figures", "front", "guarded", "lookups", "scans", "updates")

    def __init__(self, facts: Facts, front: Front, capacity: int, store: StoreOptions) -> None:
        self.facts, self.front = facts, front
        wanted = StorageSpec(
            front.engine,
            facts.design,
            facts.parameters,
            key_bytes=front.key.nbytes,
            value_bytes=front.value.nbytes if front.value else 0,
            capacity=capacity,
            seed=facts.seed,
            family=facts.options["hash"],
            options=store,
        )
        storage = make_storage(
            wanted,
            multi=facts.is_multi,
            bound=facts.bound,
            any_length=front.key.has_any_length,
            drops_nulls=facts.options["nulls"] == "drop",
            string_values=front.value is not None and front.value.has_any_length,
        )
        self.guarded = guarded = Guarded(storage, front.engine.lost_in_child)
        self.lookups = Lookups(facts, front, guarded)
        self.updates = Updates(facts, front, guarded)
        self.figures = Figures(facts, front, guarded)
        self.scans = Scans(facts, front, guarded, self.figures)
        self.copies = Copies(facts, front, guarded, self.scans)
