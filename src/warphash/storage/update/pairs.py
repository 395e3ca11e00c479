"""Pairs of a table that are on the host, and have no slot at the moment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...runtime.engine import Buffer, Engine, KernelSpec
from ..batch import Batch

__all__ = ["Pairs"]


class Pairs(NamedTuple):
    """Words of keys, and of values, or None without values."""

    keys: npt.NDArray[Any]
    values: npt.NDArray[Any] | None

    @classmethod
    def none(cls, spec: KernelSpec) -> Pairs:
        """No pairs of a layout."""
        keys, values = _types(spec)
        return cls(np.empty(0, keys), None if values is None else np.empty(0, values))

    @classmethod
    def at(cls, engine: Engine, spec: KernelSpec, keys: int, values: int, n: int, stream: Any) -> Pairs:
        """Copies of ``n`` pairs, whose keys and values lie in two arrays in the engine's memory. Waits."""
        of_keys, of_values = _types(spec)
        held = None if of_values is None else engine.to_host(values, of_values, n, stream)
        return cls(engine.to_host(keys, of_keys, n, stream), held)

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return len(self.keys)

    def where(self, which: Any) -> Pairs:
        """The pairs that a mask, a slice or an array of numbers takes."""
        return Pairs(self.keys[which], None if self.values is None else self.values[which])

    def with_others(self, others: Pairs | None) -> Pairs:
        """These pairs and others of the same type, if there are any."""
        if others is None:
            return self
        values = None
        if self.values is not None and others.values is not None:
            values = np.concatenate([self.values, others.values])
        return Pairs(np.concatenate([self.keys, others.keys]), values)

    def batch(self, engine: Engine, stream: Any) -> tuple[Batch, list[Buffer]]:
        """An update that adds the pairs, with room for its flags; and the memory that it lies in.

        Raises
        ------
        MemoryError
            If there is no memory for it.
        """
        n = len(self.keys)
        flags, keys = engine.allocate(n, stream), engine.from_host(self.keys, stream)
        memory, values = [flags, keys], 0
        if self.values is not None:
            memory.append(engine.from_host(self.values, stream))
            values = memory[-1].ptr
        return Batch(keys.ptr, values, n, flags=flags.ptr, stream=stream), memory


def _types(spec: KernelSpec) -> tuple[str, str | None]:
    """Of the words of keys, and of values."""
    kind = "V" if spec.in_place else "u"
    return f"{kind}{spec.word_bytes}", f"{kind}{spec.value_word_bytes}" if spec.value_word_bytes else None
