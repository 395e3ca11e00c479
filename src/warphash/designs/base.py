"""What every design declares. A design is data: the algorithm is in the header of the same stem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Number, Real
from typing import Any

from ..errors import ParameterError
from ..near_names import did_you_mean
from .auto import chosen_slots
from .layout import BUCKETS, Layout, Reads, SlotTypes

__all__ = ["ALL_VERBS", "GROUP_VERBS", "LIST_VERBS", "USEFUL_LOAD", "Design", "Parameter", "chain_limit", "class_name"]

ALL_VERBS = frozenset(
    {"insert", "assign", "upsert", "find", "find_or_insert", "contains", "erase", "keys", "values", "items"}
    | {"number", "to_arrays", "clear", "copy", "reserve", "shrink", "save", "probe_counts"}
)
"""The public verbs of every design."""

GROUP_VERBS = ALL_VERBS | {"count", "find_all", "erase_all", "flush"}
"""Those of a `MultiMap` that keeps the values of a key in a group, behind a table of any design."""

LIST_VERBS = GROUP_VERBS | {"execute"}
"""Those of a design whose buckets are lists. A `MultiMap` of the design keeps its pairs there."""


USEFUL_LOAD = 0.7
"""Load factor that buckets of a size must reach to be measured by the standard benchmark. If a lower load factor is
requested, reaching that is enough."""


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
    of_paper
        Only a paper needs it: to set what its authors set, or to measure what they compare. A parameter of several
        designs has the same mark in all.
    """

    name: str
    default: Any
    doc: str
    choices: tuple[Any, ...] | None = None
    bounds: tuple[float, float] | None = None
    of_paper: bool = False

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


@dataclass(frozen=True, eq=False)
class Design:
    """One table design. There is one object for each, which the registry has.

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
    layout
        How it lays pairs out, and so the family that it belongs to.
    moves_keys
        An insert may move other keys, so a place in the table is not stable, and a build can fail with a pair in hand.
    fills_first_bucket
        Parameters to whether most keys go to the first of their buckets.
    has_two_rounds
        Parameters to whether a large batch first takes all keys to their first buckets that have room there, and then
        the others to the emptiest of theirs. In one round, the order of the batch would decide how many keys there are
        of each kind (``kernels/buckets/insert.cuh``).
    probes_in_a_row
        The next bucket of a key lies behind the one before.
    searches_until_unused
        A search for an absent key ends where a slot was never used, however far away that is.
    settles
        An insert may begin with the kernel ``settle`` (core/insert.cuh); otherwise every element is claimed first.
    chain_limit
        Slots of a table to the evictions that one insert may cause.
    own_bounds
        Parameters to the bounds of the load factor that the design itself keeps; None if it has none.
    check
        Raises `ParameterError` for parameters that do not go together.
    capabilities
        Verbs it has.
    memories
        Where the slots of its tables may lie: ``"device"``, ``"host"``, ``"file"``.
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
    has_two_rounds: Callable[[Mapping[str, Any]], bool] = lambda _: False
    probes_in_a_row: bool = False
    searches_until_unused: bool = False
    chain_limit: Callable[[int], int] = chain_limit
    layout: Layout = BUCKETS
    own_bounds: Callable[[Mapping[str, Any]], tuple[float, float] | None] = lambda _: None
    check: Callable[[Mapping[str, Any]], None] = lambda _: None
    capabilities: frozenset[str] = field(default=ALL_VERBS)
    memories: tuple[str, ...] = ("device",)

    @property
    def class_name(self) -> str:
        """The class that the header defines."""
        return class_name(self.name)

    @property
    def parameter_names(self) -> str:
        """Names of the parameters, in one line: those that only papers need come last, and are marked."""
        usual = ", ".join(p.name for p in self.parameters if not p.of_paper)
        of_papers = ", ".join(p.name for p in self.parameters if p.of_paper)
        return "; ".join(filter(None, (usual, of_papers and f"of papers alone: {of_papers}"))) or "none"

    @property
    def claims_first(self) -> bool:
        """Every element of an insert first claims its key (core/insert.cuh): elements with one key are a queue."""
        return self.layout is BUCKETS and not self.settles

    @property
    def _bucket_sizes(self) -> Parameter | None:
        """The parameter of the slots of a bucket, if there is one."""
        return next((p for p in self.parameters if p.name == "slots_per_bucket"), None)

    def slot_types(self) -> Iterator[SlotTypes]:
        """Yield the slots that its tables may have. They serve keys and values of all widths."""
        sizes = self._bucket_sizes
        return self.layout.slot_types(sizes.choices or () if sizes else ())

    def compiled(self) -> Iterator[SlotTypes]:
        """Yield the slots that the CPU engine has ahead of time: all of the default, and of what ``auto`` may choose.

        Of other sizes of buckets, it has the maps that the standard benchmark measures. The rest is compiled when it is
        first used (`runtime.cpu`).
        """
        sizes = self._bucket_sizes
        usual = {sizes.default, *chosen_slots(self.name)} if sizes else set()
        for slots in self.slot_types():
            size = slots.slots_per_bucket
            if not sizes or size in usual or (slots.value_bytes and self._is_measured(size)):
                yield slots

    def _is_measured(self, slots_per_bucket: int) -> bool:
        return self.safe_load_factor(self.resolve({"slots_per_bucket": slots_per_bucket})) >= USEFUL_LOAD

    def keeps_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        """Keys and values of a bucket lie apart (``kernels/buckets/columns.cuh``): a look at keys reads half of it."""
        return not self.moves_keys and self.layout.may_have_columns(slots_per_bucket, slot_bytes)

    def splits(self, parameters: Mapping[str, Any], slots_per_bucket: int, slot_bytes: int) -> bool:
        """Columns are built of whole pairs (``buckets/gpu/split.cuh``): no order of a batch gathers its writes."""
        columns = self.keeps_columns(slots_per_bucket, slot_bytes) and not self.fills_first_bucket(parameters)
        return columns and slots_per_bucket * slot_bytes <= 256  # whole pairs of larger buckets take longer to look at

    def reads(self, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int) -> Reads:
        """What a find of keys and values of such widths reads; the widths as kernels take them."""
        slots = self.layout.slots_per_bucket(parameters, key_bytes, value_bytes)
        slot_bytes = self.layout.slot_bytes(key_bytes, value_bytes)
        if self.keeps_columns(slots, slot_bytes):
            return Reads(slots * slot_bytes // 2, slot_bytes // 2, self.probes_in_a_row)
        return replace(self.layout.reads(slots, key_bytes, value_bytes), in_a_row=self.probes_in_a_row)

    def resolve(self, given: Mapping[str, Any], keywords: Iterable[str] = ()) -> dict[str, Any]:
        """Defaults overlaid with ``given``, checked.

        Parameters
        ----------
        keywords
            What the caller takes beside the parameters: an error names the nearest of both.

        Raises
        ------
        ParameterError
            For a name that the design does not have, a value out of range, or values that do not go together.
        """
        known = {p.name: p for p in self.parameters}
        for name in given:
            if name not in known:
                near = did_you_mean(name, dict.fromkeys((*known, *keywords)))
                raise ParameterError(
                    f"design {self.name!r} has no parameter {name!r}; it has: {self.parameter_names}"
                    f"{near and f'; {near}'}"
                )
        made = {p.name: p.check(self.name, given[p.name]) if p.name in given else p.default for p in self.parameters}
        self.check(made)
        return made
