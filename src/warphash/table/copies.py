"""Tables made of other tables: a description, and the pairs that go with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence, Sized
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..arrays.row_type import known_names
from ..errors import CorruptFile, DtypeError, ParameterError, ShapeError, TableFull
from .facts import Facts
from .front import Front
from .guarded import Guarded
from .options import integer
from .scans import Scans

__all__ = ["Copies", "TableContents", "loaded", "names_in", "with_options", "with_room"]

T = TypeVar("T")
S = TypeVar("S", bound=Sized)


class TableContents(NamedTuple):
    """What a table holds at one moment.

    Attributes
    ----------
    description
        The options of the table; the types of its keys and values, except in a file.
    keys, values, ranks
        All keys; all values, None for a set; and all ranks, uint64, None for a table that keeps no ranks. Of any
        library, or views of the engine's memory.
    """

    description: dict[str, Any]
    keys: Any
    values: Any
    ranks: npt.NDArray[np.uint64] | None = None


_HOPELESS = 16
"""A table with this many times the room that its keys need is not too small, whatever is wrong."""


class Copies:
    """What copies, pickles and files of a table are made of."""

    __slots__ = ("_facts", "_front", "_guarded", "_scans", "_seed")

    def __init__(self, facts: Facts, seed: int, front: Front, guarded: Guarded, scans: Scans) -> None:
        self._facts, self._seed, self._front, self._guarded, self._scans = facts, seed, front, guarded, scans

    @property
    def names(self) -> list[list[Any] | None] | None:
        """The names of the items of rows of keys, and of values, as far as the table knows any."""
        return names_in(known_names((self._front.key, self._front.value)))

    def description_locked(self) -> dict[str, Any]:
        """The options of the table."""
        facts, score = self._facts, self._front.score
        return {
            "kind": facts.kind,
            "capacity": self._guarded.storage.store.capacity,
            "design": facts.design.name,
            "parameters": facts.parameters,
            "load_factor": facts.load_factor,
            "load_bounds": facts.load_bounds,
            "seed": self._seed,
            "max_size": facts.bound and facts.bound.max_size,
            "evict": facts.bound and facts.bound.evict,
            "score": score and score.dtype.name,
            "memory": None if isinstance(facts.memory, Path) else facts.memory,  # a copy does not lie in the file
            "names": self.names,
            **facts.options,
        }

    def typed_description_locked(self) -> dict[str, Any]:
        """The options of the table, and its types: all that a table like this one is made of."""
        key, value = self._front.key, self._front.value
        return {**self.description_locked(), "key": key.spec, "value": value and value.numpy}

    def contents(self) -> TableContents:
        """The description and all pairs, of one moment."""
        return self._guarded.settled(self._contents_locked, self.typed_description_locked)

    def contents_for_file(self) -> TableContents:
        """As `contents`; a file has the types of the arrays."""
        held = self._guarded.settled(self._contents_locked, self.description_locked)
        return held._replace(keys=self._front.key.for_file(held.keys))

    def _contents_locked(self, describe: Callable[[], dict[str, Any]]) -> TableContents:
        return TableContents(describe(), *self._scans.on_host_locked(ranks=True))


def names_in(known: Sequence[Sequence[Any] | None]) -> list[list[Any] | None] | None:
    """Names of items of rows of keys, and of values, as a description has them; None if there are none."""
    return None if not any(known) else [None if names is None else list(names) for names in known]


def with_room(make: Callable[[int], T], held: TableContents) -> T:
    """The table that ``make`` makes of the contents, for a capacity.

    Larger than described if the pairs do not fit: a table that raises when it is full can hold more keys than its
    capacity, if its hash constants and the order of its batches happened to allow that. Smaller if there is no memory
    for the capacity, and the table may grow.
    """
    n, capacity = held.keys.shape[0], max(1, held.description["capacity"])
    while True:
        try:
            return make(capacity)
        except MemoryError:
            if capacity <= max(1, n) or held.description["on_full"] != "grow":
                raise
            capacity = max(1, n)
        except TableFull:
            if capacity > _HOPELESS * n:
                raise
            capacity = max(n, capacity + capacity // 8 + 1)


def with_options(held: TableContents, changes: dict[str, Any]) -> TableContents:
    """The same pairs, and a description with other options.

    Keys keep their ranks if the same policy says which keys leave, and the scores are of the same type.
    """
    description, keys, values, ranks = held
    if fixed := changes.keys() & {"key", "value"}:
        raise ParameterError(
            f"a table with other options has the same keys and values, and {' and '.join(sorted(fixed))} would be "
            "another type: convert the arrays, and make a table with from_arrays"
        )
    if isinstance(changes.get("memory"), os.PathLike):
        raise ParameterError(
            f"a table with other options lies in memory, got memory={changes['memory']!r}: make a table in a file with "
            "from_arrays(*table.to_arrays(), design=..., memory=path)"
        )
    ranked_by = description["evict"], description["score"]
    if changes.get("max_size", description["max_size"]) is None:
        description |= {"evict": None, "score": None}
    if changes.get("evict", description["evict"]) != "score":
        description["score"] = None
    if "design" in changes:
        description |= {"parameters": {}, "load_factor": None, "memory": None}
    if "capacity" in changes:
        changes["capacity"] = integer("capacity", changes["capacity"], 0)
    options = {
        name: changes.pop(name) for name in description.keys() - {"kind", "parameters", "names"} if name in changes
    }
    description |= {**options, "parameters": {**description["parameters"], **changes}}
    if ranked_by != (description["evict"], description["score"]):
        if description["evict"] == "score":
            raise ParameterError(
                "the keys have no scores of this type: make a table with from_arrays, and give scores="
            )
        ranks = None
    return TableContents(description, keys, values, ranks)


def loaded(path: str | os.PathLike[str], held: TableContents, make: Callable[[], S]) -> S:
    """The table that a file describes, and ``make`` makes.

    Raises
    ------
    CorruptFile
        If no table could have been saved so.
    """
    try:
        table = make()
    except (DtypeError, ParameterError, ShapeError, TableFull) as error:
        raise CorruptFile(f"{os.fspath(path)} describes no table that could be saved: {error}") from None
    most = held.description.get("max_size") or len(held.keys)
    if len(table) != min(most, n := len(held.keys)):
        raise CorruptFile(f"{os.fspath(path)} repeats {n - len(table):,} of its {n:,} keys")
    return table
