"""The custom operators, ``torch.ops.warphash.*``: the verbs of tables with schemas that ``torch.compile`` understands.

An operator takes numbers and tensors, and a table is neither. So each table has a number (`register`), and a tensor
``state`` that stands for its content. The schema of an update says that the update mutates ``state``; a lookup takes
``state`` as an input. The compiler therefore neither drops an update nor moves a lookup across one. Nobody reads or
writes the elements of ``state``.

A number is only good for this process. What a compiled graph must know of a table besides, the type of its values, is
an argument of the operator. So a graph that a compile cache kept is never used for a table of another type.

A call imports nothing, so it does not need the memory that the compiler's modules take. Therefore this module does not
use ``torch.library.custom_op``, whose operators import the compiler when they are called.

The compiler leaves the operators out of the CUDA graphs that it captures by itself (``mode="reduce-overhead"``): an
update cannot be captured, and the graph of a lookup is stale once the table has grown (``table/captured.py``).

Keys are a batch, of shape (n,) or (n, d); `TableHandle` takes keys of any shape.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import torch

from ..arrays.adapters.torch import refuse_layout
from ..errors import DtypeError, ParameterError

__all__ = [
    "Registered",
    "assign",
    "contains",
    "erase",
    "find",
    "find_or_number",
    "find_row",
    "insert",
    "need_tensor",
    "register",
    "upsert",
]

_numbers = itertools.count(1)


class Registered:
    """A table that operators can name. Alive as long as a handle of the table is.

    Attributes
    ----------
    table
        A table, or the `RowNumbers` of an `IdMap`.
    number
        Names the table.
    state
        Stands for the content of the table; on the table's device.
    """

    def __init__(self, table: Any) -> None:
        self.table = table
        self.number = next(_numbers)
        place = table.device if table.device[:4] == "cuda" else "cpu"
        with torch.inference_mode(False):  # all handles share the state, and operators write to it in any mode
            self.state = torch.zeros(1, dtype=torch.uint8, device=place)


_by_number: WeakValueDictionary[int, Registered] = WeakValueDictionary()
_by_table: WeakValueDictionary[int, Registered] = WeakValueDictionary()  # by the id of a table that is alive


def register(table: Any) -> Registered:
    """The registration of a table: one for all handles, so that they share the state that orders their calls."""
    made = _by_table.get(id(table))
    if made is None:
        made = Registered(table)
        _by_table[id(table)] = _by_number[made.number] = made
    return made


def _table(number: int) -> Any:
    """The table of a number.

    Raises
    ------
    ParameterError
        If this process has no such table, or nobody holds a handle of the table any more.
    """
    made = _by_number.get(number)
    if made is None:
        raise ParameterError(
            f"expected the number of a table of this process, got {number}: keep the handle of a table as long as the "
            "compiled code that uses it"
        )
    return made.table


def need_tensor(given: Any, what: str) -> None:
    """Raise `DtypeError` or `ShapeError` unless ``given`` is a dense tensor."""
    if not isinstance(given, torch.Tensor):
        raise DtypeError(
            f"expected a tensor of {what}, got {type(given).__name__}: give a tensor, such as torch.as_tensor([7, 8])"
        )
    if given.is_nested or given.layout != torch.strided:
        refuse_layout(given)


_new_library: Any = torch.library.Library  # this name and the next one have no types in PyTorch
_disable_compiler: Any = torch.compiler.disable
_namespace: Any = torch.ops.warphash

# Operators live as long as their library. An import that stopped half way leaves a library, which has to go before the
# next import defines the operators. A global would not go: PyTorch keeps the kernels, and these keep their globals.
_namespace._library = None
_namespace._library = _new_library("warphash", "FRAGMENT")


def _operator(name: str, schema: str, run: Callable[..., Any], fake: Callable[..., Any]) -> Callable[..., Any]:
    """Define one operator for all devices.

    Parameters
    ----------
    schema
        Types of the arguments and results, in PyTorch's notation. ``Tensor(a!)`` is a tensor that is mutated.
    run
        What the operator does.
    fake
        Makes results of the right shape, type and device from tensors without data.
    """
    untraced: Callable[..., Any] | None = None

    def kernel(*args: Any) -> Any:
        """Run the operator. If the compiler is loaded, it must not trace the frames of the table."""
        nonlocal untraced
        if untraced is None:
            if "torch._dynamo" not in sys.modules:
                return run(*args)
            untraced = _disable_compiler(run)
        return untraced(*args)

    library = _namespace._library
    library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.cudagraph_unsafe))
    library.impl(name, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"warphash::{name}", fake, lib=library)
    call: Callable[..., Any] = getattr(_namespace, name)
    return call


def _find(
    number: int,
    state: torch.Tensor,
    keys: torch.Tensor,
    default: int | float | bool,
    dtype: torch.dtype,
    row: Sequence[int],
) -> Any:
    return _table(number).find(keys, default)


def _find_fake(
    number: int,
    state: torch.Tensor,
    keys: torch.Tensor,
    default: int | float | bool,
    dtype: torch.dtype,
    row: Sequence[int],
) -> Any:
    return keys.new_empty((keys.shape[0], *row), dtype=dtype), _flags_fake(number, state, keys)


def _contains(number: int, state: torch.Tensor, keys: torch.Tensor) -> Any:
    return _table(number).contains(keys)


def _insert(number: int, state: torch.Tensor, keys: torch.Tensor, values: torch.Tensor | None) -> Any:
    table = _table(number)
    return table.insert(keys) if values is None else table.insert(keys, values)


def _assign(number: int, state: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Any:
    return _table(number).assign(keys, values)


def _upsert(number: int, state: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, op: str) -> Any:
    return _table(number).upsert(keys, values, op)


def _erase(number: int, state: torch.Tensor, keys: torch.Tensor) -> Any:
    return _table(number).erase(keys)


def _find_row(number: int, state: torch.Tensor, keys: torch.Tensor, unknown: int) -> Any:
    return _table(number).find(keys, unknown)


def _find_or_number(number: int, state: torch.Tensor, keys: torch.Tensor) -> Any:
    return _table(number).find_or_number(keys)


def _rows_fake(number: int, state: torch.Tensor, keys: torch.Tensor, *_: Any) -> torch.Tensor:
    return keys.new_empty((keys.shape[0],), dtype=torch.int64)


def _flags_fake(number: int, state: torch.Tensor, keys: torch.Tensor, *_: Any) -> torch.Tensor:
    """A flag for each key, in the memory where the keys are."""
    return keys.new_empty((keys.shape[0],), dtype=torch.bool)


_LOOKUP = "SymInt number, Tensor state, Tensor keys"
_UPDATE = "SymInt number, Tensor(a!) state, Tensor keys"

find = _operator(
    "find", f"({_LOOKUP}, Scalar default, ScalarType dtype, SymInt[] row) -> (Tensor, Tensor)", _find, _find_fake
)
contains = _operator("contains", f"({_LOOKUP}) -> Tensor", _contains, _flags_fake)
insert = _operator("insert", f"({_UPDATE}, Tensor? values) -> Tensor", _insert, _flags_fake)
assign = _operator("assign", f"({_UPDATE}, Tensor values) -> Tensor", _assign, _flags_fake)
upsert = _operator("upsert", f"({_UPDATE}, Tensor values, str op) -> Tensor", _upsert, _flags_fake)
erase = _operator("erase", f"({_UPDATE}) -> Tensor", _erase, _flags_fake)

# ---- of the rows of identifiers (`row_numbers`)
find_row = _operator("find_row", f"({_LOOKUP}, int unknown) -> Tensor", _find_row, _rows_fake)
find_or_number = _operator("find_or_number", f"({_UPDATE}) -> Tensor", _find_or_number, _rows_fake)
