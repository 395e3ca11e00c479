"""The parts that a table has, made in the order in which one needs another."""

from __future__ import annotations

from ..storage.make import make_storage
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

    Attributes
    ----------
    facts
        What the table is, and stays.
    seed
        Of the hash constants.
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

    __slots__ = ("copies", "facts", "figures", "front", "guarded", "lookups", "scans", "seed", "updates")

    def __init__(self, facts: Facts, front: Front, capacity: int, seed: int) -> None:
        self.facts, self.front, self.seed = facts, front, seed
        storage = make_storage(facts.storage, front.engine, capacity, seed)
        self.guarded = guarded = Guarded(storage, front.engine.lost_in_child)
        self.lookups = Lookups(facts, front, guarded)
        self.updates = Updates(facts, front, guarded)
        self.figures = Figures(facts, front, guarded)
        self.scans = Scans(facts, front, guarded, self.figures)
        self.copies = Copies(facts, seed, front, guarded, self.scans)
