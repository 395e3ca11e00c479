"""A module that numbers identifiers, for an embedding whose rows they are."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ParameterError, WarphashError
from ..table.options import integer
from . import operators
from .row_numbers import RowNumbers

__all__ = ["IdMap"]


class IdMap(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # of PyTorch, which need not be installed
    """Identifiers to dense rows: a tensor of any integers in, a tensor of rows of the same shape out.

    In training mode, an identifier that was never seen gets the next row. Rows are given in the order in which
    identifiers first appear, on every device. In evaluation mode, the map does not change, and
    unknown identifiers share a row, which no known identifier has.

    The module works under ``torch.compile``. Its ``state_dict`` has two entries: ``ids``, the identifiers in the order
    of their rows, and ``first_row``. A map with the same first row loads the state, whatever the number of identifiers.

    Only the process that made or loaded the map gives rows. A copy in a worker of a ``DataLoader``, or in another child
    process, finds the rows of known identifiers, and refuses new ones in training mode. So does a copy or pickle of
    such a copy, in whatever process. With ``load_state_dict``, a process becomes the one that gives rows.

    Parameters
    ----------
    dtype
        Integer type of the identifiers. Tensors of narrower integers are taken, too.
    first_row
        The first row that is given. Rows before it are free for other uses, such as ``unknown`` and padding. By
        default, the row behind ``unknown``.
    unknown
        The row of unknown identifiers in evaluation mode, less than ``first_row``. By default, the row before
        ``first_row``; 0, if that is not given either. A negative number is no row of an embedding.
    capacity
        Identifiers to make room for. The map grows beyond that.
    device
        As of every module; None for PyTorch's default. ``module.to(device)`` moves the map. The map is on the CPU if
        the device is neither the CPU nor an NVIDIA GPU.

    Raises
    ------
    DtypeError
        If ``dtype`` is no type of integers.
    ParameterError
        If a known identifier could get the row ``unknown``, or there is no row before ``first_row``.

    Notes
    -----
    A batch of known identifiers is one find; new ones are numbered and inserted behind it (`HashMap.number`). No
    gradient flows through the rows.
    """

    _place: torch.Tensor
    _version = 2
    """Of the state. Version 1 does not tell the first row: a map that was made without ``first_row`` began with row 0,
    and its ``unknown`` was -1. In early states of version 2, the first row is in the metadata, and not an entry."""

    def __init__(
        self,
        dtype: torch.dtype = torch.int64,
        *,
        first_row: int | None = None,
        unknown: int | None = None,
        capacity: int = 1024,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self._has_given_first_row = first_row is not None
        self.first_row, self.unknown = first_row, unknown = _rows_of(first_row, unknown)
        place = torch.get_default_device() if device is None else torch.device(device)
        # Follows the module from device to device, and the map follows it.
        self.register_buffer("_place", torch.empty(0, dtype=torch.uint8, device=place), persistent=False)
        self._rows = RowNumbers(dtype, first_row, capacity, _table_device(self._place.device))
        self._register()

    def _register(self) -> None:
        self._registered = operators.register(self._rows)
        self._number, self._state = self._registered.number, self._registered.state

    def extra_repr(self) -> str:
        """What ``repr`` says inside the brackets.

        Returns
        -------
        str
            For people.
        """
        return f"{self.num_rows} rows, first_row={self.first_row}, unknown={self.unknown}"

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of identifiers.

        Parameters
        ----------
        ids
            A tensor of identifiers, of any shape.

        Returns
        -------
        tensor
            int64, of the shape and on the device of ``ids``.

        Raises
        ------
        DtypeError, ShapeError
            If ``ids`` is no dense tensor of identifiers.
        ProcessError
            In training mode, for new identifiers in another process than the one that made or loaded the map.
        """
        operators.need_tensor(ids, "identifiers")
        batch = ids.reshape(-1)
        if self.training:
            rows = operators.find_or_number(self._number, self._state, batch)
        else:
            rows = operators.find_row(self._number, self._state, batch, self.unknown)
        shaped: torch.Tensor = rows.reshape(ids.shape)
        return shaped

    @property
    def num_rows(self) -> int:
        """Rows that an embedding needs: one more than the last row that was given. ``unknown`` is among them."""
        return self._rows.end

    def ids(self) -> torch.Tensor:
        """All identifiers, in the order of their rows, on the device of the map.

        Returns
        -------
        tensor
            Of the type ``dtype``, one for each known identifier.
        """
        return self._rows.ids()

    # ---- what PyTorch asks of a module
    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move the module: PyTorch calls this for ``to``, ``cuda``, ``cpu`` and their like."""
        base: Any = super()
        base._apply(fn, recurse)
        device = _table_device(self._place.device)
        if device != self._rows.device:
            self._rows.to(device)
            self._register()
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "ids"] = self.ids()
        destination[prefix + "first_row"] = torch.tensor(self.first_row, dtype=torch.int64, device="cpu")

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        name = prefix + "ids"
        others = {key: value for key, value in state_dict.items() if key not in (name, prefix + "first_row")}
        super()._load_from_state_dict(others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        if name not in state_dict:
            missing_keys.append(name)
            return
        try:
            self._need_first_row(state_dict, prefix, local_metadata)
        except WarphashError as error:
            error_msgs.append(f"{prefix}first_row: {error}")
            return
        try:
            self._rows.replace(state_dict[name])
        except WarphashError as error:
            error_msgs.append(f"{name}: {error}")

    def _need_first_row(self, state_dict: Any, prefix: str, metadata: Any) -> None:
        """Raise `ParameterError` unless the rows of a saved map begin where those of this map do."""
        entry = prefix + "first_row"
        if entry in state_dict:
            first = _row_of_entry(state_dict[entry])
        elif "first_row" in metadata:
            first = metadata["first_row"]
        elif metadata.get("version") == 1:  # before the first row was saved
            first = self.first_row if self._has_given_first_row else 0
        else:
            raise ParameterError(
                f"the state does not tell the first row of the saved map, and that of this map is {self.first_row}: "
                f"make IdMap(first_row=row) with the row of the saved map, and set state_dict[{entry!r}] = "
                "torch.tensor(row)"
            )
        if first != self.first_row:
            raise ParameterError(
                f"the rows of the saved map begin at {first}, and those of this map at {self.first_row}: make "
                f"IdMap(first_row={first}, unknown={first - 1})"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Without the registration, which is only good for this object."""
        return {name: value for name, value in vars(self).items() if name not in ("_registered", "_number", "_state")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        base: Any = super()
        base.__setstate__({"_has_given_first_row": True, **state})
        self._register()


def _rows_of(first_row: int | None, unknown: int | None) -> tuple[int, int]:
    """The first row of known identifiers, and the row of unknown ones."""
    if first_row is None:
        unknown = 0 if unknown is None else integer("unknown", unknown, -(1 << 63))
        return max(0, unknown + 1), unknown
    if isinstance(first_row, int) and first_row < 0:
        raise ParameterError(f"first_row must be at least 0, got {first_row}")
    first_row = integer("first_row", first_row, 0)
    if unknown is None:
        if first_row == 0:
            raise ParameterError(
                "first_row=0 leaves no row for unknown identifiers: give first_row=1, or unknown=-1, which is no row "
                "of an embedding"
            )
        return first_row, first_row - 1
    unknown = integer("unknown", unknown, -(1 << 63))
    if unknown >= first_row:
        raise ParameterError(
            f"unknown must be less than first_row={first_row}, because known identifiers get the rows from there on, "
            f"got {unknown}: give first_row={unknown + 1}"
        )
    return first_row, unknown


def _row_of_entry(entry: Any) -> int:
    """The first row that the entry of a state says: a tensor of one integer, or an integer."""
    has_number = isinstance(entry, torch.Tensor) and entry.numel() == 1 and not entry.is_meta
    row = entry.item() if has_number else entry
    if isinstance(row, bool) or not isinstance(row, int) or row < 0:
        raise ParameterError(f"expected a tensor of one integer, which is at least 0, got {entry!r}")
    return row


def _table_device(device: torch.device) -> str:
    """The name by which a table knows a device."""
    return f"cuda:{device.index}" if device.type == "cuda" else "cpu"
