"""Between a caller's arrays and the memory that a table's engine works in; nothing to do where these are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DeviceError
from .array_view import ArrayView

__all__ = ["Transfer"]


class Transfer:
    """The way to one engine and back.

    Parameters
    ----------
    engine
        A `runtime.engine.Engine`.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._device: str = engine.device

    def here(self, view: ArrayView, what: str) -> ArrayView:
        """``view``, if the engine can take it.

        Raises
        ------
        DeviceError
            For an array on another GPU.
        """
        if view.device not in ("cpu", self._device):
            raise DeviceError(
                f"the table is on {self._device} and {what} are on {view.device}: move them, "
                f"or make the table with device={view.device!r}"
            )
        return view

    def to_read(self, view: ArrayView, stream: Any) -> tuple[int, Any]:
        """Address of an array's rows where the engine can read them, and what keeps that memory."""
        if view.device == self._device:
            return view.ptr, None
        held = self._engine.from_host(view.host, stream)
        return held.ptr, held

    def to_write(self, view: ArrayView, stream: Any) -> tuple[int, Any]:
        """Where the engine can write a result, and the memory there if `deliver` has to take it from it."""
        if view.device == self._device:
            return view.ptr, None
        held = self._engine.allocate(max(1, view.nbytes), stream)
        return held.ptr, held

    def deliver(self, held: Any, view: ArrayView, stream: Any) -> None:
        """Copy a result to where it belongs, if it is not there."""
        if held is not None and view.host is not None:
            raw = self._engine.to_host(held.ptr, np.uint8, view.nbytes, stream)
            view.host.reshape(-1).view(np.uint8)[:] = raw

    def on_host(self, view: ArrayView, stream: Any) -> npt.NDArray[Any]:
        """An array's rows as a NumPy array. Waits, where they are on a GPU."""
        if view.host is not None:
            return view.host
        raw: npt.NDArray[Any] = self._engine.to_host(view.ptr, np.uint8, view.nbytes, stream)
        return raw.view(view.dtype).reshape(view.shape)
