"""What a table is, and stays: its class, its design and its options.

All of it is checked, and what follows from it is computed, for the first table of a kind. The next tables take it as it
is. A table then has its seed, its capacity and its arrays for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from ..arrays.row_type import Column
from ..designs import registry
from ..designs.base import GROUP_VERBS, Design
from ..errors import ParameterError, UnsupportedVerb
from ..storage.bounded.bound import RANKED_ROWS, Bound
from ..storage.make import StorageKind
from .options import choices_of

__all__ = ["Facts", "Widths", "facts_of"]


class Widths(NamedTuple):
    """What the storage of a table has to know of the rows of keys and values."""

    key_bytes: int
    value_bytes: int
    any_length: bool
    string_values: bool


@dataclass(frozen=True, eq=False)
class Facts:
    """What a table is, and stays. Tables with the same types and options share one, and nobody changes it.

    Attributes
    ----------
    kind, name
        The public class that says what the table is, and the class that the caller made, which may be derived from it.
    is_multi
        Whether the table keeps every pair, also of equal keys.
    parameters
        All parameters of the design.
    bound, score
        Of the number of keys, and the type of the scores that rank them; None for none.
    load_factor, load_bounds
        What the table is made for.
    memory
        Where the slots lie: ``"device"``, ``"host"``, or the path of a file, behind all links.
    options
        The other options, by their names.
    storage
        What the storage is made of.
    known
        What compiled code knows of arrays that tables with these facts were given (`known_batches`). A hint, which
        tables add to.
    """

    kind: str
    name: str
    is_multi: bool
    design: Design
    parameters: dict[str, Any]
    bound: Bound | None
    score: Column | None
    load_factor: float
    load_bounds: tuple[float, float] | None
    memory: str | Path
    options: Mapping[str, Any]
    storage: StorageKind
    known: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def verbs(self) -> frozenset[str]:
        """The verbs of the table: those of its design; of a `MultiMap` in groups, those of groups."""
        return GROUP_VERBS if self.is_grouped else self.design.capabilities

    @property
    def is_grouped(self) -> bool:
        """Whether keys repeat, and the values of a key are a group behind a table of the design."""
        return self.is_multi and not self.design.layout.keeps_duplicates

    @property
    def keeps_ranks(self) -> bool:
        """Whether a rank lies beside each pair."""
        return self.bound is not None and self.bound.evict in RANKED_ROWS

    @property
    def rules(self) -> dict[str, Any]:
        """The options that say when two keys are one: a table with these takes the same keys."""
        return {name: self.options[name] for name in ("nulls", "floats")}

    def check_bound(self) -> None:
        """Raise unless the design can have the bound.

        Raises
        ------
        UnsupportedVerb
            If the design does not erase.
        ParameterError
            If there would be ranks beside pairs that are not on the device.
        """
        if self.bound is None:
            return
        self.need("erase")
        if self.memory != "device" and self.keeps_ranks:
            raise ParameterError(
                f"evict={self.bound.evict!r} keeps a rank beside each pair on the device, and the pairs of this "
                f"table are in {str(self.memory)!r}: give evict='lfu' or 'random'"
            )

    def check_groups(self) -> None:
        """Raise `ParameterError` if values in groups would lie in a file, or have bounds of the load factor."""
        if self.is_grouped and isinstance(self.memory, Path):
            raise ParameterError(
                f"the values of a MultiMap lie in memory, got memory={str(self.memory)!r}: leave it out, and save the "
                "table"
            )
        if self.is_grouped and self.load_bounds is not None:
            raise ParameterError(
                f"load_bounds={self.load_bounds} is for slots, and values in groups lie without gaps: leave it out, or "
                "make the MultiMap with design='slab'"
            )

    def need(self, verb: str) -> None:
        """Raise `UnsupportedVerb` if the design does not have a verb."""
        if verb not in self.verbs:
            self.refuse(verb)

    def refuse(self, verb: str) -> NoReturn:
        """Raise `UnsupportedVerb` for a verb that the design does not have."""
        designs = [registry.get(name) for name in registry.names()]
        of_kind = [one for one in designs if one.layout.keeps_duplicates] if self.is_grouped else designs
        have = ", ".join(one.name for one in of_kind if verb in one.capabilities)
        mend = f"these have: {have}" if have else "no other design has"
        raise UnsupportedVerb(f"design {self.design.name!r} has no {verb}; {mend}")


def facts_of(
    kind: str,
    name: str,
    is_multi: bool,
    device: str,
    rows: Widths,
    nulls: str,
    floats: str | None,
    parameters: Mapping[str, Any],
    memory: Any,
    *options: Any,
) -> Facts:
    """What the types and options of a table come to, checked.

    The checks take the host as long as three calls of a driver, so the facts are kept for tables with the same options.

    Parameters
    ----------
    kind, name, is_multi
        As of `Facts`.
    device
        Name of the engine.
    nulls, floats
        As for `HashMap`.
    parameters, memory, *options
        As for `options.choices_of`.
    """
    if not parameters and memory is None:  # a file may be there or not
        with suppress(TypeError):  # of an option without a hash, or of a check, which raises it again
            kept = _find_once(kind, name, is_multi, device, rows, nulls, floats, *options)
            if registry.get(kept.design.name) is kept.design:
                return kept
    return _find(kind, name, is_multi, device, rows, nulls, floats, *options, parameters=parameters, memory=memory)


def _find(
    kind: str,
    name: str,
    is_multi: bool,
    device: str,
    rows: Widths,
    nulls: str,
    floats: str | None,
    *options: Any,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    memory: Any = None,
) -> Facts:
    """As `facts_of`."""
    design, resolved, bound, score, hash, store = choices_of(kind, device, parameters, memory, *options)
    lengths = {"any_length": rows.any_length, "string_values": rows.string_values, "drops_nulls": nulls == "drop"}
    widths = rows.key_bytes, rows.value_bytes
    facts = Facts(
        kind=kind,
        name=name,
        is_multi=is_multi,
        design=design,
        parameters=resolved,
        bound=bound,
        score=score,
        load_factor=store.load_factor,
        load_bounds=store.bounds,
        memory=store.memory,
        options={
            "hash": hash,
            "on_full": "grow" if store.grows else "raise",
            "attempts": store.attempts,
            "count_probes": store.counts_probes,
            "nulls": nulls,
            "floats": floats,
        },
        storage=StorageKind(design, resolved, *widths, hash, store, is_multi, bound, **lengths),
    )
    facts.check_bound()
    facts.check_groups()
    return facts


_find_once = lru_cache(256, typed=True)(_find)  # typed: True is no number of attempts, though it equals 1
