"""Makes the storage of a table: a store of its design's family, behind `WordRows` or `WideRows`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
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

__all__ = ["StorageSpec", "make_storage", "programs"]


class StorageSpec(NamedTuple):
    """What a storage is made of, and for.

    Attributes
    ----------
    parameters
        All parameters of the design.
    key_bytes, value_bytes
        Width of a row.
    capacity
        Keys to have room for.
    family
        Of hash functions: one of `hash_constants.HASHES`.
    options
        What the store may do.
    """

    engine: Engine
    design: Design
    parameters: Mapping[str, Any]
    key_bytes: int
    value_bytes: int
    capacity: int
    seed: int
    family: str
    options: StoreOptions


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


def make_storage(
    wanted: StorageSpec,
    *,
    multi: bool = False,
    bound: Bound | None = None,
    any_length: bool = False,
    drops_nulls: bool = False,
    string_values: bool = False,
) -> Rows:
    """Make an empty storage: a store of the design's family, behind the rows that are asked for.

    Parameters
    ----------
    multi
        Keys repeat: in the lists of a design that has lists, or in groups of values behind a table of any other.
    bound
        Of the number of keys; None for no bound.
    any_length
        Keys are strings of any length; ``wanted.key_bytes`` is the width of their rows.
    drops_nulls
        Nulls among such keys are left out.
    string_values
        Values are strings of any length; ``wanted.value_bytes`` is the width of their rows.
    """
    _import_for_verbs()
    policy: Policy | None = None
    engine, design, options, seed = wanted.engine, wanted.design, wanted.options, wanted.seed
    ranked = bound is not None and bound.evict in RANKED_ROWS
    if string_values:
        from .strings.string_table import NUMBER_BYTES, StringTable
        from .strings.string_values import ABSENT, BoundedStringValues, StringValues

        wanted, texts = wanted._replace(value_bytes=NUMBER_BYTES), StringTable(engine, seed, wanted.capacity)
    if any_length:
        from .bounded.policies import make_policy
        from .strings.bounded_strings import HASH_BYTES, BoundedStrings, ByHash
        from .strings.string_rows import StringRows
        from .strings.string_table import NUMBER_BYTES, StringTable

        wanted, strings = wanted._replace(key_bytes=NUMBER_BYTES), StringTable(engine, seed, wanted.capacity)
        if bound is not None and bound.evict == "lfu":
            policy = ByHash(engine, make_policy("lfu", engine, bound.max_size, HASH_BYTES, seed), strings)
    if isinstance(options.memory, Path) and (any_length or string_values):
        from .strings.string_log import StringLog

        tables = [*([strings] if any_length else []), *([texts] if string_values else [])]
        options = options._replace(log=StringLog(engine, tables))
        wanted = wanted._replace(options=options)
    key_bytes, value_bytes = wanted.key_bytes, wanted.value_bytes
    rows: Any
    if multi and not design.layout.keeps_duplicates:
        rows = _grouped(wanted)
    elif design.layout.composed:
        rows = import_module(f".{design.layout.family}.rows", __package__).make_storage(wanted)
    else:
        in_rows, *stored = _stored_widths(design, key_bytes, value_bytes, ranked)
        spec = spec_of(design, tuple(wanted.parameters.items()), *stored, wanted.family)
        kind = TableKind(engine, design, wanted.parameters, spec)
        if in_rows and options.leaves:
            options = options._replace(leaves=False)
        make_store = store_maker(design.layout.family)
        store: Slots = make_store(kind, wanted.capacity, seed, wanted.family, options, multi)
        if in_rows:
            from .wide_rows import WideRows

            rows = WideRows(store, key_bytes, value_bytes, ranked=ranked)
        else:
            rows = WordRows(store, key_bytes, value_bytes, multi)
    if bound is not None:
        from .bounded.bounded_rows import BoundedRows
        from .bounded.policies import make_policy

        policy = policy or make_policy(bound.evict, engine, bound.max_size, key_bytes, seed)
        rows = BoundedRows(rows, bound.max_size, policy, key_bytes, value_bytes, grows=options.grows)
    if any_length:
        made = StringRows if bound is None else BoundedStrings
        rows = made(strings, rows, value_bytes, drops_nulls=drops_nulls, left_out=ABSENT if string_values else None)
    if string_values:
        rows = StringValues(texts, rows) if bound is None else BoundedStringValues(texts, rows)
    return cast(Rows, rows)


def _grouped(wanted: StorageSpec) -> Rows:
    """Pairs of keys that repeat: a table of the design from keys to groups, and the values of the groups."""
    from .groups.grouped_rows import GroupedRows
    from .groups.key_groups import NUMBER_BYTES

    options = wanted.options._replace(grows=True, leaves=False)

    def make_index(groups: int) -> Rows:
        return make_storage(wanted._replace(value_bytes=NUMBER_BYTES, capacity=groups, options=options))

    widths, grows = (wanted.key_bytes, wanted.value_bytes), wanted.options.grows
    rows: Any = GroupedRows(wanted.engine, make_index, *widths, wanted.capacity, grows=grows)
    return cast(Rows, rows)
