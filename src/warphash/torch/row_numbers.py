"""Identifiers and the dense row numbers that they have, in one hash map."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.context import get_spawning_popen
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from ..arrays.adapters.torch import LIBRARY, torch_type
from ..errors import DtypeError, ParameterError, ProcessError, ShapeError
from ..table.locks import ReadWriteLock
from ..table.maps import HashMap
from .operators import need_tensor

__all__ = ["RowNumbers"]


class RowNumbers:
    """The rows of identifiers: ``first``, ``first + 1`` and so on, in the order of first appearance.

    A call that fails or is interrupted leaves all new identifiers of its batch in the map or none, so rows stay dense
    (`HashMap.number`). Safe from several threads.

    One process numbers: the process that made or loaded the object. A copy in a child of that process, or in a worker
    of a ``DataLoader``, finds rows and gives none. Two processes would give one row to two identifiers. A copy of such
    a copy gives none either, in whatever process, until `replace`.

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
        self._first = first
        self._process: int | None = os.getpid()  # that numbers; None if no process does
        self._lock = ReadWriteLock()

    def __getstate__(self) -> dict[str, Any]:
        return self._lock.write(self._state_locked)

    def _state_locked(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_lock"}
        is_for_child = get_spawning_popen() is not None  # a child that is spawned learns its parent after it loads this
        return state if self._numbers and not is_for_child else state | {"_process": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=ReadWriteLock())
        maker, parent = state.get("_process", 0), multiprocessing.parent_process()
        if maker is not None and (parent is None or parent.pid != maker):  # else this is a copy for a child, or of one
            self._process = os.getpid()

    @property
    def _numbers(self) -> bool:
        """Whether this process is the one that numbers."""
        return self._process == os.getpid()

    @property
    def device(self) -> str:
        """Where the map is."""
        return self._table.device

    @property
    def end(self) -> int:
        """One more than the last row."""
        return self._first + len(self._table)

    def to(self, device: str) -> None:
        """Move the map to a device."""
        self._lock.write(self._move_locked, device)

    def _move_locked(self, device: str) -> None:
        self._table = self._table.to(device)

    def find(self, ids: torch.Tensor, unknown: int) -> torch.Tensor:
        """The rows of a batch of identifiers, ``unknown`` for those that have none: int64[n]."""
        rows: torch.Tensor = self._table.find(ids, unknown)[0]
        return rows

    def find_or_number(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of a batch of identifiers, of which new ones get the next rows: int64[n].

        Waits for the device, as every update of a table does.

        Raises
        ------
        ProcessError
            If there are new identifiers, and another process numbers. The map is as it was.
        """
        return self._lock.write(self._find_or_number_locked, ids)

    def _find_or_number_locked(self, ids: torch.Tensor) -> torch.Tensor:
        in_loader = get_worker_info() is not None
        if in_loader or not self._numbers:
            return self._find_known_locked(ids, in_loader)
        rows: torch.Tensor = self._table.number(ids, first=self._first)[0]
        return rows

    def _find_known_locked(self, ids: torch.Tensor, in_loader: bool) -> torch.Tensor:
        """The rows of identifiers that must be known, because another process numbers."""
        rows, found = self._table.find(ids)
        if not found.all():
            new = int((~found).sum())
            if in_loader:
                where = "a worker of a DataLoader"
                mend = "call the map on the batches that the loader gives, and not in the dataset"
            else:
                where = "a process that has a copy of the map"
                mend = "number where the map was made, or let this process number by load_state_dict(state_dict())"
            raise ProcessError(
                f"{new:,} new identifiers came up in {where}, and rows that are given there are unknown elsewhere: "
                f"{mend}. After eval(), the map gives new identifiers the row of unknown ones"
            )
        known: torch.Tensor = rows
        return known

    def ids(self) -> torch.Tensor:
        """All identifiers, in the order of their rows."""
        keys, rows = self._table.to_arrays(like="torch")
        ordered = torch.empty_like(keys)
        signed = torch_type(np.dtype(f"i{keys.element_size()}"))  # PyTorch does less with unsigned integers
        ordered.view(signed)[rows - self._first] = keys.view(signed)
        return ordered

    def replace(self, ids: torch.Tensor) -> None:
        """Forget all identifiers, and number others from the first row on, in their order. This process numbers then.

        Raises
        ------
        DtypeError, ShapeError, DeviceError, ParameterError
            If they are no vector of identifiers of the type, or not all different. The map is as it was.
        """
        need_tensor(ids, "identifiers")
        if ids.ndim != 1:
            raise ShapeError(f"expected a vector of identifiers, got shape {tuple(ids.shape)}")
        given = ids.detach()
        if not given.is_meta:  # which the table refuses
            given = given.to(self._table.device if self.device.startswith("cuda") else "cpu")
        n = len(given)
        rows = torch.arange(self._first, self._first + n, device=given.device)
        made = HashMap(self._dtype, "int64", capacity=max(n, self._table.capacity), device=self.device)
        made.insert(given, rows)
        if len(made) != n:
            raise ParameterError(f"expected identifiers that are all different, got {n - len(made):,} repeated ones")

        def put() -> None:
            self._table = made
            self._process = os.getpid()

        self._lock.write(put)
