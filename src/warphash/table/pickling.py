"""Pickled tables: what a pickle holds, and on which device the table is made again.

A pickle holds the options of a table and its pairs, as a file of `archive` does, and not its slots. Keys and values are
two arrays of bytes: NumPy passes arrays of bytes out of band in protocol 5, and does not do so with datetimes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.strings import StringArray
from ..errors import DeviceError, EngineUnavailable
from ..runtime.devices import engine_for
from .copies import TableContents
from .key_columns import stored_type

__all__ = ["as_bytes", "rebuild", "unpickle_to"]

_chosen: ContextVar[tuple[str | None] | None] = ContextVar("warphash.unpickle_to", default=None)
"""The device of the innermost `unpickle_to`, in a tuple, since None is a device, too."""


@contextmanager
def unpickle_to(device: str | None) -> Iterator[None]:
    """Choose the device of the tables that are unpickled inside a ``with`` block.

    Without it, a table comes back on the device where it was pickled. The choice holds for the thread, or the task of
    `asyncio`, that runs the block.

    Parameters
    ----------
    device
        As for `HashMap`: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; None takes a GPU if one is usable.

    Returns
    -------
    context manager
        For a ``with`` block.

    Examples
    --------
    >>> import pickle, numpy as np, warphash
    >>> data = pickle.dumps(warphash.HashSet.from_arrays(np.arange(3), device="cpu"))
    >>> with warphash.unpickle_to("cpu"):
    ...     table = pickle.loads(data)
    >>> table.device
    'cpu'
    """
    token = _chosen.set((device,))
    try:
        yield
    finally:
        _chosen.reset(token)


def rebuild(
    kind: Any,
    device: str,
    description: dict[str, Any],
    keys: npt.NDArray[np.uint8] | StringArray,
    values: npt.NDArray[np.uint8] | None,
    ranks: npt.NDArray[np.uint8] | None = None,
) -> Any:
    """Make a table of what was pickled. A pickle calls this function by its name.

    Parameters
    ----------
    kind
        Class of the table.
    device
        Where the table was.
    description
        Its options, and the types of its keys and values.
    keys, values
        The bytes of its pairs, possibly read-only or not aligned; ``values`` is None for a set.
    ranks
        The bytes of the ranks of its keys, of a bounded table that keeps ranks.

    Raises
    ------
    EngineUnavailable, DeviceError
        If the device cannot be used here; the message says how to load the table on another device.
    """
    types = stored_type(description["key"]), description["value"], np.dtype(np.uint64)
    columns = [
        None if raw is None else _rows(raw, dtype) for dtype, raw in zip(types, (keys, values, ranks), strict=True)
    ]
    return kind._rebuilt(TableContents(description, *columns), _device(device))


def as_bytes(rows: npt.NDArray[Any] | StringArray) -> npt.NDArray[np.uint8] | StringArray:
    """The bytes of a C-contiguous array, as one array of bytes. Strings are arrays of bytes already."""
    if isinstance(rows, StringArray):
        return rows
    return rows.reshape(-1).view(np.uint8)


def _rows(raw: Any, dtype: np.dtype[Any]) -> Any:
    """The array whose bytes `as_bytes` gave."""
    if isinstance(raw, StringArray):
        return raw
    rows = raw.view(dtype.base).reshape(-1, *dtype.shape)
    # A copy of bytes, since a copy of rows leaves out the padding between their fields.
    return rows if rows.flags.aligned else _rows(raw.copy(), dtype)


def _device(pickled_on: str) -> str | None:
    """The device for a table that was pickled on a device."""
    if chosen := _chosen.get():
        return chosen[0]
    try:
        engine_for(pickled_on)
    except (DeviceError, EngineUnavailable) as error:
        raise type(error)(
            f"the table was pickled on {pickled_on!r}, which is not usable here: {error}. To load it on another "
            f'device, choose one:\nwith warphash.unpickle_to("cpu"): table = pickle.loads(data)'
        ) from None
    return pickled_on
