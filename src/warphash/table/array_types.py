"""Arrays as a type checker sees them: what the verbs take, and what they answer with.

A table is generic in the NumPy types of its keys and values, so `HashMap.find` of a NumPy array is known to be an array
of the values' type and one of bools. Another library's array is answered with arrays of the same class. A checker knows
the types that are given as classes or ``numpy.dtype``, or that `from_arrays` reads from NumPy arrays; a type that is
given by name, such as ``"int64"``, is ``Any`` to it. For keys or values that are rows, the type is that of an item.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # defaults are new in Python 3.13, and checkers bring typing_extensions along
    from typing_extensions import TypeVar as TypeVarWithDefault

    K = TypeVarWithDefault("K", bound=np.generic, default=Any)
    V = TypeVarWithDefault("V", bound=np.generic, default=Any)
    KeyT = TypeVarWithDefault("KeyT", bound=np.generic, default=Any)
    ValueT = TypeVarWithDefault("ValueT", bound=np.generic, default=Any)
else:
    K, V, KeyT, ValueT = map(TypeVar, ("K", "V", "KeyT", "ValueT"))

__all__ = [
    "A",
    "Batch",
    "Bools",
    "Counts",
    "D",
    "Foreign",
    "K",
    "KeySpec",
    "KeyT",
    "Keys",
    "Like",
    "OneKey",
    "Order",
    "Stream",
    "TypeSpec",
    "V",
    "ValueT",
]

Bools: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.uint32]

OneKey: TypeAlias = np.generic | complex | str | bytes | datetime.date | datetime.timedelta
"""A single key that is no row."""

Batch: TypeAlias = npt.NDArray[Any] | list[Any] | tuple[Any, ...] | range
"""What NumPy arrays answer for."""

Keys: TypeAlias = Batch | OneKey
Like: TypeAlias = Literal["numpy"] | Batch | None
"""What ``like`` is where the results are NumPy arrays.

With None they are of the kind that the table was first given, which a checker takes for NumPy if it knows the types of
the table, and else for ``Any``.
"""

Order: TypeAlias = Literal["given", "any"]
"""The order of answers: that of the keys of the call, or an order of the table's choice."""

TypeSpec: TypeAlias = str | tuple[Any, Any] | list[Any] | type[int]
"""A type of keys or values from which a checker learns no NumPy type.

Python's ``float`` is left out: `numpy.float64` is a subclass, and a checker would learn nothing of that, either.
"""


KeySpec: TypeAlias = TypeSpec | tuple[Any, ...] | dict[str, Any]
"""As `TypeSpec`, of keys: a list, a tuple or a mapping of types is one of several columns."""


class CudaStream(Protocol):
    """A stream of CuPy, PyTorch, Numba, RMM or cuda.core."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


Stream: TypeAlias = int | CudaStream
"""A CUDA stream: the driver's handle, or an object that has it."""


class CudaArray(Protocol):
    """An array of CuPy, PyTorch or Numba."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


class JaxArray(Protocol):
    """An array of JAX."""

    def devices(self) -> Any:
        """The devices that have a part of the array."""


class PandasSeries(Protocol):
    """A Series of pandas."""

    @property
    def index(self) -> Any:
        """The labels."""

    def to_frame(self) -> Any:
        """A frame of the one column."""


class PolarsSeries(Protocol):
    """A Series of Polars."""

    def to_arrow(self) -> Any:
        """An array of PyArrow."""

    def to_frame(self) -> Any:
        """A frame of the one column."""


class DLPackArray(Protocol):
    """An array of any library that exports DLPack."""

    def __dlpack__(self) -> Any: ...


Foreign: TypeAlias = CudaArray | JaxArray | PandasSeries | PolarsSeries
"""Arrays of other libraries. DLPack is left out: NumPy arrays have it, too, and a checker would mix them up."""

A = TypeVar("A", bound=Foreign | DLPackArray)
D = TypeVar("D")
