"""What a function under ``torch.compile`` holds instead of a table."""

from __future__ import annotations

from typing import Any

import torch

from ..arrays.adapters.torch import torch_type
from ..errors import ShapeError, UnsupportedVerb
from ..table.base import BaseTable
from ..table.keywords import Operator
from ..table.multimap import MultiMap
from . import operators

__all__ = ["TableHandle"]


class TableHandle:
    """A table for functions under ``torch.compile``: its verbs are operators, which a graph keeps whole and in order.

    Lookups and updates through handles of one table happen in the order in which the function calls them, however the
    compiler changes the graph. Without ``torch.compile``, the verbs do the same at once.

    Keys are a tensor of any shape: of shape ``s`` if a key is one number, and ``(*s, d)`` if a key is a row of ``d``
    numbers. Answers have the shape ``s``. Results are on the device of the keys.

    Parameters
    ----------
    table
        A `HashMap` or a `HashSet`, on any device. The handle keeps it alive.

    Attributes
    ----------
    table
        The table. Its verbs may be called beside those of the handle, outside of compiled functions.

    Raises
    ------
    DtypeError
        If PyTorch has no such type as the table's keys or values.
    UnsupportedVerb
        For a `MultiMap`.

    Notes
    -----
    No gradient flows through a table: values that `find` gives are constants.
    """

    def __init__(self, table: Any) -> None:
        if not isinstance(table, BaseTable) or isinstance(table, MultiMap):
            raise UnsupportedVerb(f"expected a HashMap or a HashSet, got {type(table).__name__}")
        self.table = table
        self._registered = operators.register(table)
        self._number, self._state = self._registered.number, self._registered.state
        key, value = table.key_dtype, getattr(table, "value_dtype", None)
        torch_type(key.base)
        self._key_shape = tuple(key.shape)
        self._value_shape = () if value is None else tuple(value.shape)
        self._value_dtype: torch.dtype | None = None if value is None else torch_type(value.base)

    def __repr__(self) -> str:
        return f"<TableHandle of {self.table!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return TableHandle, (self.table,)

    # ---- lookups
    def find(self, keys: torch.Tensor, default: float = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Values and presence of keys, as `HashMap.find`.

        Parameters
        ----------
        keys
            A tensor of the shape ``s``, or ``(*s, d)`` if a key is a row of ``d`` numbers.
        default
            A number, which absent keys get.

        Returns
        -------
        values, found
            Tensors of the shape ``(*s, *row)``, where ``row`` is the shape of a value, and of bool of the shape ``s``.
        """
        dtype = self._need_values()
        shape, batch = self._flat(keys)
        values, found = operators.find(self._number, self._state, batch, default, dtype, self._value_shape)
        return values.reshape(shape + self._value_shape), found.reshape(shape)

    def contains(self, keys: torch.Tensor) -> torch.Tensor:
        """Which keys are there, as `HashMap.contains`.

        Parameters
        ----------
        keys
            A tensor of the shape ``s``, or ``(*s, d)`` if a key is a row of ``d`` numbers.

        Returns
        -------
        tensor
            bool of the shape ``s``.
        """
        shape, batch = self._flat(keys)
        return self._shaped(operators.contains(self._number, self._state, batch), shape)

    # ---- updates
    def insert(self, keys: torch.Tensor, values: torch.Tensor | float | None = None) -> torch.Tensor:
        """Add the keys that are absent, as `HashMap.insert`.

        Parameters
        ----------
        keys
            A tensor of the shape ``s``, or ``(*s, d)`` if a key is a row of ``d`` numbers.
        values
            A value for each key, or a number for all keys.
            None for a `HashSet`.

        Returns
        -------
        tensor
            bool of the shape ``s``, True where an element added its key.
        """
        shape, batch = self._flat(keys)
        rows = None if values is None and self._value_dtype is None else self._rows(values, shape, keys.device)
        return self._shaped(operators.insert(self._number, self._state, batch, rows), shape)

    def assign(self, keys: torch.Tensor, values: torch.Tensor | float) -> torch.Tensor:
        """Insert or overwrite, as `HashMap.assign`.

        Parameters
        ----------
        keys
            A tensor of the shape ``s``, or ``(*s, d)`` if a key is a row of ``d`` numbers.
        values
            A value for each key, or a number for all keys.

        Returns
        -------
        tensor
            bool of the shape ``s``, True where the key is new.
        """
        shape, batch = self._flat(keys)
        rows = self._rows(values, shape, keys.device)
        return self._shaped(operators.assign(self._number, self._state, batch, rows), shape)

    def upsert(self, keys: torch.Tensor, values: torch.Tensor | float, op: Operator) -> torch.Tensor:
        """Insert, or combine with the value that is there, as `HashMap.upsert`.

        Parameters
        ----------
        keys
            A tensor of the shape ``s``, or ``(*s, d)`` if a key is a row of ``d`` numbers.
        values
            A value for each key, or a number for all keys.
        op
            As of `HashMap.upsert`.

        Returns
        -------
        tensor
            bool of the shape ``s``, True where the key is new.
        """
        shape, batch = self._flat(keys)
        rows = self._rows(values, shape, keys.device)
        return self._shaped(operators.upsert(self._number, self._state, batch, rows, op), shape)

    def erase(self, keys: torch.Tensor) -> torch.Tensor:
        """Erase keys, as `HashMap.erase`.

        Parameters
        ----------
        keys
            A tensor of the shape ``s``, or ``(*s, d)`` if a key is a row of ``d`` numbers.

        Returns
        -------
        tensor
            bool of the shape ``s``, True where an element erased its key.
        """
        shape, batch = self._flat(keys)
        return self._shaped(operators.erase(self._number, self._state, batch), shape)

    # ---- shapes: operators take batches of one dimension
    def _flat(self, keys: torch.Tensor) -> tuple[tuple[int, ...], torch.Tensor]:
        """The shape of the answers, and the keys as a batch."""
        operators.need_tensor(keys, "keys")
        axes = keys.ndim - len(self._key_shape)
        if axes < 0 or tuple(keys.shape[axes:]) != self._key_shape:
            raise ShapeError(
                f"keys must have shape (*s, {', '.join(map(str, self._key_shape))}), got {tuple(keys.shape)}: give a "
                "row for each key"
            )
        shape = tuple(keys.shape[:axes])
        return shape, keys.detach().reshape((-1, *self._key_shape))

    @staticmethod
    def _shaped(flags: Any, shape: tuple[int, ...]) -> torch.Tensor:
        shaped: torch.Tensor = flags.reshape(shape)
        return shaped

    def _need_values(self) -> torch.dtype:
        if self._value_dtype is None:
            raise UnsupportedVerb("a HashSet has no values: ask contains(keys), or make a HashMap")
        return self._value_dtype

    def _rows(self, values: torch.Tensor | float | None, shape: tuple[int, ...], device: torch.device) -> torch.Tensor:
        """A row for each key of a batch."""
        dtype = self._need_values()
        if values is None:
            raise ShapeError("a HashMap needs a value for each key: give insert(keys, values)")
        given = (
            values.detach() if isinstance(values, torch.Tensor) else torch.full((), values, dtype=dtype, device=device)
        )
        whole = shape + self._value_shape
        if tuple(given.shape) not in (whole, self._value_shape, ()):
            raise ShapeError(
                f"values must have shape {whole}, one for each key, or {self._value_shape}, one for all, got "
                f"{tuple(given.shape)}"
            )
        return given.expand(whole).reshape((-1, *self._value_shape))
