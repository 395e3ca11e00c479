"""The launches of a find, which are the same in every family; and how a large batch is cut."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from ..runtime.abi import Batch
from ..runtime.engine import Engine, KernelSpec, Program
from .batch_order import lookups

__all__ = [
    "LAUNCH_ELEMENTS",
    "NO_FIELDS",
    "Searchable",
    "find_as_given",
    "find_by_parts",
    "find_in_any_order",
    "launch_find",
]

NO_FIELDS: Mapping[str, int] = MappingProxyType({})
"""Of a find while no insert is under way."""

LAUNCH_ELEMENTS = 1 << 30
"""Most elements of one launch: elements are numbered in 32 bits."""


class Searchable(Protocol):
    """The memory of a table, and the kernels that run over it.

    Attributes
    ----------
    batch_type
        What the kernels take beside the table.
    engine
        Whose memory it is.
    find_fields
        Fields that the batch of a find has besides: where displaced pairs are, while an insert is under way.
    """

    engine: Engine
    program: Program
    spec: KernelSpec

    @property
    def find_fields(self) -> Mapping[str, int]: ...
    @property
    def batch_type(self) -> type[Batch]: ...
    @property
    def table(self) -> ctypes.Structure:
        """What kernels are given."""


def launch_find(
    array: Searchable,
    keys: int,
    n: int,
    values: int,
    flags: int,
    default: int,
    stream: Any,
    counts: int = 0,
    entry: str = "find",
) -> None:
    """Values and presence of ``n`` keys; or what another ``entry`` of a find writes to ``counts`` for each.

    A large batch may go in the order of the parts of the table (`lookups`).

    Parameters
    ----------
    keys, values, flags, counts
        Addresses of words, words, bytes and uint32, one for each key; 0 for what is not asked for.
    default
        What an absent key gives.
    """
    spec = array.spec
    if n > LAUNCH_ELEMENTS:
        more = LAUNCH_ELEMENTS
        launch_find(array, keys, more, values, flags, default, stream, counts, entry)
        keys, values = keys + more * spec.word_bytes, values and values + more * spec.value_word_bytes
        flags, counts = flags and flags + more, counts and counts + more * 4
        return launch_find(array, keys, n - more, values, flags, default, stream, counts, entry)
    may_part = n >= lookups.FEWEST_PARTITIONED and not counts
    parts = lookups.parts_for(array, n) if may_part else None
    if parts is None or not find_by_parts(array, keys, n, values, flags, default, parts, stream):
        find_as_given(array, keys, n, values, flags, default, stream, counts, entry)


def find_by_parts(
    array: Searchable, keys: int, n: int, values: int, flags: int, default: int, parts: tuple[int, int], stream: Any
) -> bool:
    """As `launch_find`, of one launch, by way of copies of the keys in the order of the parts of the table.

    Returns
    -------
    bool
        False if there can be no copies: then nothing is answered.
    """
    parted = lookups.partition_keys(array, keys, n, parts, stream)
    if parted is None:
        return False
    out_values, out_flags = values and parted.keys, flags and parted.flags
    find_as_given(array, parted.keys, n, out_values, out_flags, default, stream)
    parted.restore(values, flags, stream)
    return True


def find_in_any_order(
    array: Searchable, keys: int, n: int, out_keys: int, values: int, flags: int, default: int, stream: Any
) -> bool:
    """As `launch_find`, with the keys copied to ``out_keys``, and answered, in the order of the parts of the table.

    Returns
    -------
    bool
        False if that order would not help: then nothing is answered.
    """
    spec = array.spec
    for at in range(0, n, LAUNCH_ELEMENTS):
        count, first = min(LAUNCH_ELEMENTS, n - at), at * spec.word_bytes
        copies = out_keys + first
        parts = lookups.parts_for(array, count)
        parted = parts and lookups.partition_keys(array, keys + first, count, parts, stream, out=copies)
        if parted is None:
            if not at:
                return False
            array.engine.copy(copies, keys + first, count * spec.word_bytes, stream)  # no memory, or a short last piece
        out = values and values + at * spec.value_word_bytes
        find_as_given(array, copies, count, out, flags and flags + at, default, stream)
    return True


def find_as_given(
    array: Searchable,
    keys: int,
    n: int,
    values: int,
    flags: int,
    default: int,
    stream: Any,
    counts: int = 0,
    entry: str = "find",
) -> None:
    """As `launch_find`, of one launch, in the order of the keys."""
    batch = array.batch_type()  # and then its fields: a third of the time that keywords take
    batch.n, batch.keys, batch.out_values, batch.out_flags = n, keys, values, flags
    batch.out_counts, batch.default_value = counts, default
    for name, value in array.find_fields.items():
        setattr(batch, name, value)
    array.program.run(entry, array.table, batch, n, stream)
