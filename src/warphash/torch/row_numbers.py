"""Identifiers and the dense row numbers that they have, in one hash map."""

from __future__ import annotations

import threading
from typing import Any

import torch

from ..arrays.adapters.torch import LIBRARY
from ..errors import DtypeError, ParameterError, ShapeError
from ..table.maps import HashMap

__all__ = ["RowNumbers"]

_WITHOUT_ROW = -1
"""The value of an identifier that is in the map and has no row yet."""


class RowNumbers:
    """The rows of identifiers: ``first``, ``first + 1`` and so on, in the order in which batches bring identifiers.

    An identifier is inserted before its row is known. A call that fails in between leaves identifiers of its batch
    without a row, or with rows that others lack. The next call erases these identifiers first, so rows stay dense. Safe
    from several threads.

    Parameters
    ----------
    dtype
        Integer type of an identifier.
    first
        The first row.
    capacity
        Identifiers to make room for.
    device
        ``"cpu"``, or ``"cuda:0"``.
    """

    def __init__(self, dtype: Any, first: int, capacity: int, device: str) -> None:
        try:
            self._dtype = LIBRARY.see(torch.empty(0, dtype=dtype)).dtype
        except (TypeError, AttributeError):
            raise DtypeError(f"expected an integer type of PyTorch's, such as torch.int64, got {dtype!r}") from None
        if self._dtype.kind not in "iu":
            raise DtypeError(f"identifiers are integers, got {dtype}")
        self._table = HashMap(self._dtype, "int64", capacity=capacity, device=device)
        self._first, self._count = first, 0
        self._stopped_half_way = False
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self._make_whole()
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @property
    def device(self) -> str:
        """Where the map is."""
        return self._table.device

    @property
    def end(self) -> int:
        """One more than the last row."""
        return self._first + self._count

    def to(self, device: str) -> None:
        """Move the map to a device."""
        with self._lock:
            self._make_whole()
            self._table = self._table.to(device)

    def find(self, ids: torch.Tensor, unknown: int) -> torch.Tensor:
        """The rows of a batch of identifiers, ``unknown`` for those that have none: int64[n]."""
        if self._stopped_half_way:
            with self._lock:
                self._make_whole()
        rows: torch.Tensor = self._table.find(ids, unknown)[0]
        return rows

    def find_or_number(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of a batch of identifiers, of which new ones get the next rows: int64[n].

        Waits for the device, as every update of a table does.
        """
        with self._lock:
            self._make_whole()
            table = self._table
            without = torch.full_like(ids, _WITHOUT_ROW, dtype=torch.int64)
            self._stopped_half_way = True
            added = table.insert(ids, without)
            numbers = added.cumsum(0, dtype=torch.int64) + (self.end - 1)
            table.upsert(ids, torch.where(added, numbers, without), "max")  # equal ones: one of them has the number
            self._count = len(table)
            self._stopped_half_way = False
            rows: torch.Tensor = table.find(ids)[0]
            return rows

    def _make_whole(self) -> None:
        """Erase the identifiers of a batch that stopped half way. The caller holds the lock."""
        if self._stopped_half_way:
            self._table.erase_if("values", ">=", self.end)
            self._table.erase_if("values", "<", self._first)
            self._stopped_half_way = False

    def ids(self) -> torch.Tensor:
        """All identifiers, in the order of their rows."""
        with self._lock:
            self._make_whole()
            keys, rows = self._table.to_arrays(like="torch")
        ordered = torch.empty_like(keys)
        ordered[rows - self._first] = keys
        return ordered

    def replace(self, ids: torch.Tensor) -> None:
        """Forget all identifiers, and number others from the first row on, in their order.

        Raises
        ------
        DtypeError, ShapeError, ParameterError
            If they are no vector of identifiers of the type, or not all different. The map is as it was.
        """
        if ids.ndim != 1:
            raise ShapeError(f"expected a vector of identifiers, got shape {tuple(ids.shape)}")
        given = ids.detach().to(self._table.device if self.device.startswith("cuda") else "cpu")
        n = len(given)
        rows = torch.arange(self._first, self._first + n, device=given.device)
        made = HashMap(self._dtype, "int64", capacity=max(n, self._table.capacity), device=self.device)
        made.insert(given, rows)
        if len(made) != n:
            raise ParameterError(f"expected identifiers that are all different, got {n - len(made):,} repeated ones")
        with self._lock:
            self._table, self._count, self._stopped_half_way = made, n, False
