"""Makes the storage of a table: a store of its design's family, behind `WordRows` or `WideRows`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..designs import auto, registry
from ..designs.base import Design
from ..runtime.engine import Engine, KernelSpec
from ..runtime.source import AGGREGATES, BOUNDED, GROUPS, ROWS, SCANS, SKETCH, VALUE_LISTS, partition
from .bounded.bound import RANKED_ROWS, Bound
from .rows import Rows
from .slots import Slots, StoreOptions, TableKind
from .stores import lies_in_rows, spec_of, store_maker
from .word_rows import WordRows

if TYPE_CHECKING:
    from .bounded.policies import Policy

__all__ = ["StorageKind", "make_storage", "programs"]


@dataclass(frozen=True, eq=False)
class StorageKind:
    """What storages of a kind have in common. Tables with the same options share one, which keeps what follows.

    Attributes
    ----------
    parameters
        All parameters of the design.
    key_bytes, value_bytes
        Width of a row.
    family
        Of hash functions: one of `hash_constants.HASHES`.
    options
        What the store may do.
    multi
        Keys repeat: in the lists of a design that has lists, or in groups of values behind a table of any other.
    bound
        Of the number of keys; None for no bound.
    any_length
        Keys are strings of any length; ``key_bytes`` is the width of their rows.
    drops_nulls
        Nulls among such keys are left out.
    string_values
        Values are strings of any length; ``value_bytes`` is the width of their rows.
    """

    design: Design
    parameters: Mapping[str, Any]
    key_bytes: int
    value_bytes: int
    family: str
    options: StoreOptions
    multi: bool = False
    bound: Bound | None = None
    any_length: bool = False
    drops_nulls: bool = False
    string_values: bool = False

    @property
    def is_ranked(self) -> bool:
        """Whether a rank lies beside each pair."""
        return self.bound is not None and self.bound.evict in RANKED_ROWS

    @property
    def plain(self) -> StorageKind:
        """A kind without a bound, whose keys do not repeat; keys and values of any length are numbers already."""
        return replace(self, multi=False, bound=None, any_length=False, drops_nulls=False, string_values=False)

    @cached_property
    def stored(self) -> Stored:
        """How the pairs lie in slots, of a design with one store."""
        design = self.design
        in_rows, *stored = _stored_widths(design, self.key_bytes, self.value_bytes, self.is_ranked)
        spec = spec_of(design, tuple(self.parameters.items()), *stored, self.family)
        options = self.options._replace(leaves=False) if in_rows else self.options
        return Stored(in_rows, spec, options, store_maker(design.layout.family))


class Stored(NamedTuple):
    """How the pairs of a storage lie in slots.

    Attributes
    ----------
    in_rows
        They lie in rows behind the slots.
    options
        What the store may do.
    make
        ``make_store`` of the design's family.
    """

    in_rows: bool
    spec: KernelSpec
    options: StoreOptions
    make: Callable[..., Slots]


@cache
def _import_for_verbs() -> None:
    """Import what a verb may need for the work of one call: `BaseTable.check` makes a table of buckets, for instance.

    A verb imports nothing. An import takes memory, and may fail with an ImportError where there is little.
    """
    store_maker("buckets")
    for name in ("wide_rows", "combine_rows"):
        import_module(f".{name}", __package__)
    import_module("numpy.ma")  # the set functions of NumPy ask it whether an array is masked


def _stored_widths(design: Design, key_bytes: int, value_bytes: int, ranked: bool) -> tuple[bool, int, int]:
    """Whether pairs lie in rows behind the slots, and the widths of what the slots hold."""
    in_rows = ranked or lies_in_rows(design, key_bytes, value_bytes)
    return (True, 8, 8) if in_rows else (False, key_bytes, value_bytes)


def programs(
    design: Design,
    parameters: Mapping[str, Any],
    *,
    key_bytes: int,
    value_bytes: int,
    family: str,
    bound: Bound | None = None,
    multi: bool = False,
) -> Iterator[KernelSpec]:
    """The kernels that a table of a kind may launch on a GPU; see `make_storage`."""
    if bound is not None:
        yield BOUNDED
    if multi and not design.layout.keeps_duplicates:
        yield from (GROUPS, SCANS, VALUE_LISTS)
        value_bytes = 4  # a number of a group
    if design.layout.composed:  # the tier on the device
        name, choices = auto.choose()
        chosen, bound = registry.get(name), Bound(1, "lfu")
        widths: dict[str, Any] = {"key_bytes": key_bytes, "value_bytes": value_bytes}
        yield from programs(chosen, chosen.resolve(choices), family=family, bound=bound, **widths)
        return
    ranked = bound is not None and bound.evict in RANKED_ROWS
    _, *stored = _stored_widths(design, key_bytes, value_bytes, ranked)
    spec = spec_of(design, tuple(parameters.items()), *stored, family)
    yield spec
    yield from (ROWS, SKETCH, AGGREGATES)
    yield from map(partition, filter(None, (design.layout.partition, design.layout.lookup_partition)))
    module = import_module(f".{design.layout.family}.store", __package__)
    yield from getattr(module, "more_programs", lambda spec, parameters: ())(spec, parameters)


def make_storage(kind: StorageKind, engine: Engine, capacity: int, seed: int) -> Rows:
    """Make an empty storage for ``capacity`` keys: a store of the design's family, behind the rows that are asked for.

    Parameters
    ----------
    seed
        Of the hash constants.
    """
    _import_for_verbs()
    policy: Policy | None = None
    bound, any_length, string_values = kind.bound, kind.any_length, kind.string_values
    if string_values:
        from .strings.string_table import NUMBER_BYTES, StringTable
        from .strings.string_values import ABSENT, BoundedStringValues, StringValues

        kind, texts = replace(kind, value_bytes=NUMBER_BYTES), StringTable(engine, seed, capacity)
    if any_length:
        from .bounded.policies import make_policy
        from .strings.bounded_strings import HASH_BYTES, BoundedStrings, ByHash
        from .strings.string_rows import StringRows
        from .strings.string_table import NUMBER_BYTES, StringTable

        kind, strings = replace(kind, key_bytes=NUMBER_BYTES), StringTable(engine, seed, capacity)
        if bound is not None and bound.evict == "lfu":
            policy = ByHash(engine, make_policy("lfu", engine, bound.max_size, HASH_BYTES, seed), strings)
    if (any_length or string_values) and isinstance(kind.options.memory, Path):
        from .strings.string_log import StringLog

        tables = [*([strings] if any_length else []), *([texts] if string_values else [])]
        kind = replace(kind, options=kind.options._replace(log=StringLog(engine, tables)))
    rows: Any
    layout = kind.design.layout
    if kind.multi and not layout.keeps_duplicates:
        rows = _grouped(kind, engine, capacity, seed)
    elif layout.composed:
        rows = import_module(f".{layout.family}.rows", __package__).make_storage(kind, engine, capacity, seed)
    else:
        rows = _of_one_store(kind, engine, capacity, seed)
    if bound is not None:
        from .bounded.bounded_rows import BoundedRows
        from .bounded.policies import make_policy

        widths = kind.key_bytes, kind.value_bytes
        policy = policy or make_policy(bound.evict, engine, bound.max_size, kind.key_bytes, seed)
        rows = BoundedRows(rows, bound.max_size, policy, *widths, grows=kind.options.grows)
    if any_length:
        made, left_out = StringRows if bound is None else BoundedStrings, ABSENT if string_values else None
        rows = made(strings, rows, kind.value_bytes, drops_nulls=kind.drops_nulls, left_out=left_out)
    if string_values:
        rows = StringValues(texts, rows) if bound is None else BoundedStringValues(texts, rows)
    return cast(Rows, rows)


def _of_one_store(kind: StorageKind, engine: Engine, capacity: int, seed: int) -> Rows:
    """A store of the design's family, behind `WordRows` or `WideRows`."""
    in_rows, spec, options, make = kind.stored
    of_table = TableKind(engine, kind.design, kind.parameters, spec)
    store = make(of_table, capacity, seed, kind.family, options, kind.multi)
    if not in_rows:
        return WordRows(store, kind.key_bytes, kind.value_bytes, kind.multi)
    from .wide_rows import WideRows

    rows: Any = WideRows(store, kind.key_bytes, kind.value_bytes, ranked=kind.is_ranked)
    return cast(Rows, rows)


def _grouped(kind: StorageKind, engine: Engine, capacity: int, seed: int) -> Rows:
    """Pairs of keys that repeat: a table of the design from keys to groups, and the values of the groups."""
    from .groups.grouped_rows import GroupedRows
    from .groups.key_groups import NUMBER_BYTES

    options = kind.options._replace(grows=True, leaves=False)
    of_groups = replace(kind.plain, value_bytes=NUMBER_BYTES, options=options)

    def make_index(groups: int) -> Rows:
        return make_storage(of_groups, engine, groups, seed)

    widths, grows = (kind.key_bytes, kind.value_bytes), kind.options.grows
    rows: Any = GroupedRows(engine, make_index, *widths, capacity, grows=grows)
    return cast(Rows, rows)
