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
        words = np.empty(0, f"V{spec.word_bytes}" if spec.in_place else f"u{spec.word_bytes}")
        return cls(words, words if spec.value_word_bytes else None)

    def where(self, which: npt.NDArray[np.bool_]) -> Pairs:
        """Some of the pairs."""
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
