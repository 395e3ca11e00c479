"""What every design declares. A design is data: the algorithm is in the header of the same stem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Number, Real
from typing import Any

from ..errors import ParameterError

__all__ = ["ALL_VERBS", "LIST_VERBS", "SLAB_BYTES", "Design", "Layout", "Parameter", "chain_limit", "class_name"]

SLAB_BYTES = 128

ALL_VERBS = frozenset(
    {"insert", "assign", "upsert", "find", "find_or_insert", "contains", "erase", "keys", "values", "items"}
    | {"to_arrays", "clear", "copy", "reserve", "shrink", "save", "probe_counts"}
)
"""The public verbs of every design."""

LIST_VERBS = ALL_VERBS | {"execute", "flush", "count", "find_all", "erase_all"}
"""And those of one whose buckets are lists, which also makes a `MultiMap`."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a design.

    Attributes
    ----------
    name, default, doc
        Its name in Python, C++, command line and documents; its default; what it does.
    choices
        The values it takes, or None where ``bounds`` says it.
    bounds
        Closed interval of a number, or None; of an integer, if its ends are such. A default of None is legal too.
    """

    name: str
    default: Any
    doc: str
    choices: tuple[Any, ...] | None = None
    bounds: tuple[float, float] | None = None

    def check(self, design: str, value: Any) -> Any:
        """Return ``value`` as an object of Python's own, or raise `ParameterError`.

        An integer of NumPy's has few bits, which the size of a table may exceed, and no file takes it.
        """
        if self.choices:
            expected = f"one of {self.choices}"
            if isinstance(value, str | Number):  # of an array, == is no bool
                for choice in self.choices:
                    if value == choice and isinstance(value, bool) == isinstance(choice, bool):
                        return choice
        else:
            least, most = self.bounds or (0, 0)
            whole = isinstance(least, int)
            number: type[Any] = Integral if whole else Real
            expected = f"{'an integer' if whole else 'a number'} in {self.bounds}"
            if isinstance(value, number) and not isinstance(value, bool) and least <= value <= most:
                return int(value) if whole else float(value)
            if value is None and self.default is None:
                return None
        raise ParameterError(f"design {design!r}: {self.name} must be {expected}, got {value!r}")


def chain_limit(slots: int) -> int:
    """Evictions that one insert may cause: 7 log2(slots), as in the authors' code of Better GPU Hash Tables."""
    return 7 * max(4, math.ceil(math.log2(max(2, slots))))


def class_name(design: str) -> str:
    """``"bucketed_cuckoo"`` -> ``"BucketedCuckoo"``: the class that a design's header defines."""
    return "".join(part.capitalize() for part in design.split("_"))


@dataclass(frozen=True)
class Layout:
    """The slots of a design as kernels are compiled for them.

    Attributes
    ----------
    word_bytes
        Width of a key as kernels take it.
    value_bytes
        Width of a value beside it; 0 for none.
    slots_per_bucket
        Of a line of subtables, the keys that it has.
    in_place
        Keys and values have any width, and each has its own: in lines of keys (``kernels/subtables/lines.cuh``), and
        beside tickets (``kernels/tickets/pairs.cuh``).
    """

    word_bytes: int
    value_bytes: int
    slots_per_bucket: int
    in_place: bool = False

    @property
    def value_is_row(self) -> bool:
        """Kernels carry the address of a value, and not the value itself."""
        return self.in_place and (self.word_bytes > 8 or self.value_bytes not in (0, 4, 8))

    @property
    def word(self) -> str:
        """The type of a key in C++."""
        return f"warphash::u{8 * self.word_bytes}" if self.word_bytes <= 8 else f"warphash::Wide<{self.word_bytes}>"

    @property
    def value(self) -> str:
        """What the templates in C++ take of a value: its width if it has its own, otherwise whether there is one."""
        if self.value_is_row:
            return "warphash::kRow"
        return str(self.value_bytes) if self.in_place else str(self.value_bytes > 0).lower()


_ROW_BYTES = 12
"""Stands for all widths of a value that is no word."""


@dataclass(frozen=True)
class Design:
    """One table design.

    Attributes
    ----------
    name, aliases
        What ``design=`` takes. ``name`` is also the stem of the header.
    title, citation
        For people, and where it comes from.
    parameters
        What it can be given.
    fields
        Maps parameters to fields of the table that the family's kernels take (`runtime.abi`).
    default_load_factor, safe_load_factor
        Parameters to the load factor that ``capacity`` is sized for, and to the highest at which builds of random keys
        do not fail in practice (Better GPU Hash Tables, section VII-C).
    moves_keys
        An insert may move other keys, so a place in the table is not stable, and a build can fail with a pair in hand.
    fills_first_bucket
        Parameters to whether most keys go to the first of their buckets.
    probes_in_a_row
        The next bucket of a key lies behind the one before.
    settles
        An insert may begin with the kernel ``settle`` (core/insert.cuh); otherwise every element is claimed first.
    chain_limit
        Slots of a table to the evictions that one insert may cause.
    node_slots
        Of a design whose bucket is a list (``kernels/chains/slab_slots.cuh``): bytes of a slot to the slots of a node,
        those that hold no pair included. There an insert is the one kernel ``place``.
    line_bytes
        Of a design with subtables (``kernels/subtables/lines.cuh``): bytes of keys in a bucket, whatever their width.
    has_tickets
        A slot is a pair, and what is known of it is on a ticket board (``kernels/tickets/ticket_board.cuh``).
    own_bounds
        Parameters to the bounds of the load factor that the design itself keeps; None if it has none.
    capabilities
        Verbs it has.
    """

    name: str
    aliases: tuple[str, ...]
    title: str
    citation: str
    parameters: tuple[Parameter, ...]
    fields: Callable[[Mapping[str, Any]], Mapping[str, int]]
    default_load_factor: Callable[[Mapping[str, Any]], float]
    safe_load_factor: Callable[[Mapping[str, Any]], float]
    moves_keys: bool
    settles: bool
    fills_first_bucket: Callable[[Mapping[str, Any]], bool] = lambda _: False
    probes_in_a_row: bool = False
    chain_limit: Callable[[int], int] = chain_limit
    node_slots: Callable[[int], int] | None = None
    line_bytes: int | None = None
    has_tickets: bool = False
    own_bounds: Callable[[Mapping[str, Any]], tuple[float, float] | None] = lambda _: None
    capabilities: frozenset[str] = field(default=ALL_VERBS)

    def slots_per_bucket(self, parameters: Mapping[str, Any], slot_bytes: int) -> int:
        """Slots that a bucket has in memory, those that hold no pair included; a slot of a line is a key's."""
        if self.line_bytes:
            return self.line_bytes // slot_bytes
        return self.node_slots(slot_bytes) if self.node_slots else int(parameters.get("slots_per_bucket", 1))

    @property
    def class_name(self) -> str:
        """The class that the header defines."""
        return class_name(self.name)

    @property
    def family(self) -> str:
        """The folder of ``kernels`` and ``storage`` that it belongs to."""
        if self.has_tickets:
            return "tickets"
        return "subtables" if self.line_bytes else "chains" if self.node_slots else "buckets"

    @property
    def searches_until_unused(self) -> bool:
        """A search for an absent key ends where a slot was never used, however far away that is."""
        return self.has_tickets or self.probes_in_a_row

    def layouts(self) -> Iterator[Layout]:
        """Yield the layouts that an engine compiles ahead of time: they serve keys and values of all widths."""
        if self.line_bytes or self.has_tickets:
            for word in (4, 8, 16, 32, 64, 128):
                for value in (0, 4, 8, _ROW_BYTES) if word <= 8 else (_ROW_BYTES,):
                    yield Layout(word, value, (self.line_bytes or word) // word, in_place=True)
            return
        choices = next((p.choices for p in self.parameters if p.name == "slots_per_bucket"), None)
        for slots_per_bucket in choices or (1,):
            for word in (4, 8):
                for value in (0, word):
                    given = {"slots_per_bucket": slots_per_bucket}
                    yield Layout(word, value, self.slots_per_bucket(given, word + value))

    def pairs_per_bucket(self, slots_per_bucket: int, slot_bytes: int) -> int:
        """Slots of a bucket that hold pairs: a node ends in its pointer, a slab of 4-byte keys in two words."""
        if not self.node_slots:
            return slots_per_bucket
        return slots_per_bucket - (2 if slot_bytes == 4 and slots_per_bucket > 2 else 1)

    def keeps_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        """Keys and values of a bucket lie apart (``kernels/buckets/columns.cuh``): a look at keys reads half of it."""
        in_slots = self.has_tickets or self.moves_keys or self.node_slots is not None or self.line_bytes is not None
        return not in_slots and slot_bytes == 16 and slots_per_bucket >= 16

    def splits(self, parameters: Mapping[str, Any], slot_bytes: int) -> bool:
        """Columns are built of whole pairs (``buckets/gpu/split.cuh``): no order of a batch gathers its writes."""
        slots = self.slots_per_bucket(parameters, slot_bytes)
        columns = self.keeps_columns(slots, slot_bytes) and not self.fills_first_bucket(parameters)
        return columns and slots * slot_bytes <= 256  # whole pairs of larger buckets take longer to look at

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Defaults overlaid with ``given``, checked.

        Raises
        ------
        ParameterError
            For a name that the design does not have, or a value out of range.
        """
        known = {p.name: p for p in self.parameters}
        for name in given:
            if name not in known:
                have = ", ".join(known) or "none"
                raise ParameterError(f"design {self.name!r} has no parameter {name!r}; it has: {have}")
        return {p.name: p.check(self.name, given.get(p.name, p.default)) for p in self.parameters}
