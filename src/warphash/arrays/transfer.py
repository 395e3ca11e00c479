"""Between a caller's arrays and the memory that a table's engine works in."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CaptureError, DeviceError
from .adapters.numpy import address_of
from .library import ArrayView

__all__ = ["Body", "Transfer"]

Body = Callable[[int, list[int], list[int]], None]
"""Work on arrays by their addresses: number of rows, addresses to read, addresses to write."""


class Transfer:
    """The way from the host to one engine and back. Arrays in the engine's own memory need none.

    Parameters
    ----------
    engine
        A `runtime.engine.Engine`.

    Attributes
    ----------
    shares_memory
        Kernels can read the caller's arrays in host memory. Other threads may write to these arrays during a call, so
        what is read more than once is copied first (`private`).
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._device: str = engine.device
        self.shares_memory = self._device == "cpu"
        self._staging: Any = getattr(engine, "staging", None)

    def need_way(self, view: ArrayView, what: str) -> None:
        """Raise `DeviceError` for an array on another GPU."""
        if view.device in ("cpu", self._device):
            return
        raise DeviceError(
            f"the table is on {self._device} and {what} are on {view.device}: move them, "
            f"or make the table with device={view.device!r}"
        )

    def private(self, at: int, nbytes: int) -> tuple[int, Any]:
        """Copy bytes of host memory to memory that nobody else writes to: its address, and what keeps that memory.

        Each aligned word of up to 8 bytes is copied whole, so the copy of an element of that width is a value that the
        element had.

        Raises
        ------
        MemoryError
            If there is no memory for the copy.
        """
        made = np.empty(nbytes, np.uint8)
        address = address_of(made)
        if self.shares_memory:
            self._engine.copy(address, at, nbytes)
        else:
            ctypes.memmove(address, at, nbytes)
        return address, made

    def private_view(self, view: ArrayView) -> ArrayView:
        """The array, if it is on a GPU; otherwise a view of a `private` copy, for verbs that launch several kernels."""
        if view.host is None:
            return view
        address, made = self.private(view.ptr, view.nbytes)
        return view._replace(ptr=address, host=made.view(view.dtype).reshape(view.shape), capsule=made)

    def addresses(self, views: Sequence[ArrayView]) -> tuple[list[int], list[Any]]:
        """Addresses of arrays that the engine reaches, of copies if it shares memory; and what keeps the copies."""
        at, held = [], []
        for view in views:
            address, copy = view.ptr, None
            if self.shares_memory and view.host is not None:
                address, copy = self.private(view.ptr, view.nbytes)
            at.append(address)
            held.append(copy)
        return at, held

    def run(
        self,
        body: Body,
        ins: Sequence[ArrayView],
        outs: Sequence[ArrayView],
        stream: Any,
        *,
        in_pieces: bool = False,
    ) -> None:
        """Run ``body`` on arrays of which some are in host memory.

        Those of ``ins`` are copied to the engine first, and those of ``outs`` to the host after.

        Parameters
        ----------
        ins, outs
            Arrays to read, the first of which has as many rows as the batch; and arrays to write.
        in_pieces
            ``body`` may be run on one part of the batch after the other. Copies of one part then run beside the work
            on another.
        """
        n = ins[0].rows if ins else 0
        hosts = [view.host for view in (*ins, *outs)]
        if in_pieces and n and self._staging is not None and all(host is not None for host in hosts):
            self._staging.pipeline(hosts[: len(ins)], hosts[len(ins) :], body)
            return
        held = [None if view.device == self._device else self._engine.from_host(view.host, stream) for view in ins]
        room = [
            None if view.device == self._device else self._engine.allocate(max(1, view.nbytes), stream) for view in outs
        ]
        at = [view.ptr if copy is None else copy.ptr for view, copy in zip(ins, held, strict=True)]
        to = [view.ptr if copy is None else copy.ptr for view, copy in zip(outs, room, strict=True)]
        body(n, at, to)
        for view, copy in zip(outs, room, strict=True):
            if copy is not None and view.host is not None:
                self._deliver(copy, view, stream)

    def _deliver(self, copy: Any, view: ArrayView, stream: Any) -> None:
        """Copy a result to an array in host memory."""
        if self._staging is not None:
            self._staging.download(copy.ptr, view.host, stream)
            return
        assert view.host is not None
        raw = self._engine.to_host(copy.ptr, np.uint8, view.nbytes, stream)
        view.host.reshape(-1).view(np.uint8)[:] = raw

    def on_host(self, view: ArrayView) -> npt.NDArray[Any]:
        """An array's rows as a NumPy array. Waits if they are on a GPU.

        Raises
        ------
        CaptureError
            If a CUDA graph captures the work that makes the array.
        """
        if view.host is not None:
            return view.host
        if self._engine.is_captured(view.stream):
            raise CaptureError(
                "the host cannot read an array while a CUDA graph captures the work that makes it: only find and "
                "contains, whose answers stay on the device, can be captured"
            )
        raw: npt.NDArray[Any] = self._engine.to_host(view.ptr, np.uint8, view.nbytes, view.stream)
        return raw.view(view.dtype).reshape(view.shape)
