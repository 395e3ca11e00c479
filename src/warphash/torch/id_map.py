"""A module that numbers identifiers, for an embedding whose rows they are."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ParameterError, WarphashError
from . import operators
from .row_numbers import RowNumbers

__all__ = ["IdMap"]


class IdMap(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # of PyTorch, which need not be installed
    """Identifiers to dense rows: a tensor of any integers in, a tensor of rows of the same shape out.

    In training mode, an identifier that was never seen gets the next row. Rows are given in the order of batches; which
    of the new identifiers of one batch gets which row is not defined. In evaluation mode, the map does not change.

    The module works under ``torch.compile``. Its ``state_dict`` has one entry, ``ids``: the identifiers in the order of
    their rows. It loads whatever the number of identifiers is.

    Parameters
    ----------
    dtype
        Integer type of the identifiers. Tensors of narrower integers are taken, too.
    first_row
        The first row that is given. Rows before it are free for other uses, such as ``unknown``.
    unknown
        The row of unknown identifiers in evaluation mode.
    capacity
        Identifiers to make room for. The map grows beyond that.
    device
        As of every module; None for PyTorch's default. ``module.to(device)`` moves the map. The map is on the CPU if
        the device is neither the CPU nor an NVIDIA GPU.

    Raises
    ------
    DtypeError
        If ``dtype`` is no type of integers.

    Notes
    -----
    A batch of new identifiers is one insert, one upsert and one find. No gradient flows through the rows. Copies of the
    module in several processes number their identifiers each for itself.
    """

    _place: torch.Tensor

    def __init__(
        self,
        dtype: torch.dtype = torch.int64,
        *,
        first_row: int = 0,
        unknown: int = -1,
        capacity: int = 1024,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        if first_row < 0:
            raise ParameterError(f"first_row must be at least 0, got {first_row}")
        self.first_row, self.unknown = first_row, unknown
        place = torch.get_default_device() if device is None else torch.device(device)
        # Follows the module from device to device, and the map follows it.
        self.register_buffer("_place", torch.empty(0, dtype=torch.uint8, device=place), persistent=False)
        self._rows = RowNumbers(dtype, first_row, capacity, _table_device(self._place.device))
        self._register()

    def _register(self) -> None:
        self._registered = operators.register(self._rows)
        self._number, self._state = self._registered.number, self._registered.state

    def extra_repr(self) -> str:
        """What ``repr`` says inside the brackets."""
        return f"{self.num_rows} rows, first_row={self.first_row}, unknown={self.unknown}"

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of identifiers: int64, of the shape and on the device of ``ids``."""
        batch = ids.reshape(-1)
        if self.training:
            rows = operators.find_or_number(self._number, self._state, batch)
        else:
            rows = operators.find_row(self._number, self._state, batch, self.unknown)
        shaped: torch.Tensor = rows.reshape(ids.shape)
        return shaped

    @property
    def num_rows(self) -> int:
        """Rows that an embedding needs: one more than the last row that was given."""
        return self._rows.end

    def ids(self) -> torch.Tensor:
        """All identifiers, in the order of their rows, on the device of the map."""
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
        others = {key: value for key, value in state_dict.items() if key != name}
        super()._load_from_state_dict(others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        if name not in state_dict:
            missing_keys.append(name)
            return
        try:
            self._rows.replace(state_dict[name])
        except WarphashError as error:
            error_msgs.append(f"{name}: {error}")

    def __getstate__(self) -> dict[str, Any]:
        """Without the registration, which is only good for this object."""
        return {name: value for name, value in vars(self).items() if name not in ("_registered", "_number", "_state")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        base: Any = super()
        base.__setstate__(state)
        self._register()


def _table_device(device: torch.device) -> str:
    """The name by which a table knows a device."""
    return f"cuda:{device.index}" if device.type == "cuda" else "cpu"
