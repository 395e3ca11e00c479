"""The launches of a find, which are the same in every family; and how a large batch is cut."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from ..runtime.abi import Batch, Table
from ..runtime.engine import KernelSpec, Program

__all__ = ["LAUNCH_ELEMENTS", "Searchable", "launch_find"]

LAUNCH_ELEMENTS = 1 << 30
"""Most elements of one launch: elements are numbered in 32 bits."""


class Searchable(Protocol):
    """The memory of a table, and the kernels that run over it."""

    program: Program
    spec: KernelSpec

    @property
    def table(self) -> Table:
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
    fields: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """As `Store.find`; ``fields``: further ones of the batch."""
    key_bytes, value_bytes = array.spec.word_bytes, array.spec.value_word_bytes
    for at in range(0, n, LAUNCH_ELEMENTS):
        batch = Batch(
            n=min(LAUNCH_ELEMENTS, n - at),
            keys=keys + at * key_bytes,
            out_values=values and values + at * value_bytes,
            out_flags=flags and flags + at,
            out_counts=counts and counts + at * 4,
            default_value=default,
            **fields,
        )
        array.program.run(entry, array.table, batch, batch.n, stream)
