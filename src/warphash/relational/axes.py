"""The axis of an array along which its elements lie."""

from __future__ import annotations

from typing import SupportsIndex

from ..errors import ParameterError

__all__ = ["checked_axis"]


def checked_axis(axis: int | None, axes: int) -> int | None:
    """An axis of an array with so many; None if elements are the items.

    Raises
    ------
    ParameterError
        If there is no such axis.
    """
    if axis is None:
        return None
    if not (isinstance(axis, SupportsIndex) and -axes <= int(axis) < axes):
        raise ParameterError(f"axis must be one of the {axes} axes of the array, got {axis!r}: give 0 or None")
    return None if axes == 1 else int(axis) % axes
