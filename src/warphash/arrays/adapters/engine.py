"""Memory of an engine itself: arrays that a table works with and gives to nobody."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..library import MAX_ROWS, Allocator, ArrayView, Dtype, Shape, refuse_rows

if TYPE_CHECKING:
    from ..strings import StringArray

__all__ = ["ENGINE_MEMORY", "EngineMemory"]


class EngineMemory:
    """Arrays on an engine's device, in the order of the engine's own stream. A view is its own array."""

    kind = "engine"

    def see(self, array: ArrayView) -> ArrayView:
        """The view."""
        return array

    def empty(self, like: ArrayView, shape: Shape, dtype: Dtype, allocator: Allocator | None) -> ArrayView:
        """Memory of ``allocator``, which is the engine."""
        assert allocator is not None
        if shape[0] > MAX_ROWS:
            refuse_rows(shape[0])
        buffer = allocator.allocate(max(1, math.prod(shape) * dtype.itemsize))
        return self.of(buffer, shape, dtype, like.device)

    def of(self, buffer: Any, shape: Shape, dtype: Dtype, device: str) -> ArrayView:
        """A view of a buffer that an engine has allocated."""
        return ArrayView(buffer.ptr, shape, dtype, device, None, buffer, None, self)

    def export(self, made: ArrayView) -> ArrayView:
        """The view."""
        return made

    def strings(self, made: StringArray) -> StringArray:
        """The strings, in memory of their own."""
        return made

    def example(self, device: str) -> ArrayView:
        """A view of no memory, on the device of that name."""
        return ArrayView(0, (0,), np.dtype(np.uint8), device, None, None, None, self)


ENGINE_MEMORY = EngineMemory()
