"""Between a caller's arrays and the memory that a table's engine works in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import CaptureError, DeviceError
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
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._device: str = engine.device
        self._staging: Any = getattr(engine, "staging", None)

    def refuse(self, view: ArrayView, what: str) -> NoReturn:
        """Raise `DeviceError` for an array on another GPU."""
        raise DeviceError(
            f"the table is on {self._device} and {what} are on {view.device}: move them, "
            f"or make the table with device={view.device!r}"
        )

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
