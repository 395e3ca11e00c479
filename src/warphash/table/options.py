"""What a table can be made with: checks of the options that all designs share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from ..arrays.nullable_column import NullableColumn
from ..arrays.row_type import MAX_KEY_BYTES, Column
from ..designs import auto, registry
from ..designs.base import Design
from ..errors import DeviceError, ParameterError, PathError
from ..storage.bounded.bound import EVICT, Bound
from ..storage.hash_constants import HASHES
from ..storage.slots import StoreOptions
from .keywords import DesignParameters, TableOptionsWithCapacity

__all__ = [
    "Choices",
    "ExistingFile",
    "bound_of",
    "buckets_of",
    "capacity_for",
    "capacity_of",
    "check_string_options",
    "choices_of",
    "chosen",
    "integer",
    "refuse_arrays",
]

LEAST_LOAD_FACTOR = 1e-9
"""With a lower load factor, the slots of one key would exceed the memory of any computer."""


_KEYWORDS = tuple(
    name for name in TableOptionsWithCapacity.__annotations__ if name not in DesignParameters.__annotations__
)
"""What every table takes, whatever its design is."""


class Choices(NamedTuple):
    """What the options of a table come to, checked.

    Attributes
    ----------
    parameters
        All parameters of the design.
    bound, score
        Of the number of keys, and the type of the scores that rank them; None for none.
    hash
        The family of hash functions.
    store
        What the store may do. Its memory is an absolute path without links, if the slots lie in a file.
    """

    design: Design
    parameters: dict[str, Any]
    bound: Bound | None
    score: Column | None
    hash: str
    store: StoreOptions


def choices_of(
    kind: str,
    device: str,
    parameters: Mapping[str, Any],
    memory: Any,
    name: str,
    load_factor: float | None,
    load_bounds: Any,
    hash: str,
    on_full: str,
    attempts: Any,
    count_probes: bool,
    max_size: Any,
    evict: Any,
    score: Any,
) -> Choices:
    """What the options of a table come to.

    Parameters
    ----------
    kind
        Name of the class of the table.
    device
        Name of the engine.
    parameters
        Of the design, those that were given.
    name
        Of the design.
    """
    plain = load_factor is None and load_bounds is None and max_size is None
    given = dict(parameters)
    if name == "auto" and kind == "MultiMap":
        given.setdefault("priorities", ("query",))  # each verb looks keys up, and a build enters each key once
    design, resolved = chosen(name, given, on_gpu=plain and device.startswith("cuda"))
    load_factor = _load_factor_of(load_factor, design, resolved)
    bound = bound_of(max_size, evict, kind)
    column = _score_of(score, bound)
    _check(hash, on_full, attempts)
    bounds = _bounds_of(load_bounds, on_full, design, resolved)
    lies_in = _memory_of(memory, design)
    opens = isinstance(memory, ExistingFile)
    leaves = bound is None  # keys of a bounded table are counted after each batch
    store = StoreOptions(
        on_full == "grow", int(attempts), load_factor, bounds, bool(count_probes), lies_in, opens, leaves
    )
    return Choices(design, resolved, bound, column, hash, store)


def chosen(name: str, parameters: dict[str, Any], *, on_gpu: bool = False) -> tuple[Design, dict[str, Any]]:
    """The design that a name stands for, also of ``"auto"``, and all parameters of the design.

    Parameters
    ----------
    on_gpu
        The table is on a GPU, and has neither a load factor nor bounds that the caller gave (`auto.choose`).
    """
    if name == "auto":
        given = dict(parameters)
        priorities = given.pop("priorities", ())
        name, chosen = auto.choose(priorities, on_gpu=on_gpu and not given)
        parameters = {**chosen, **given}
    design = registry.get(name)
    return design, design.resolve(parameters, _KEYWORDS)


def _load_factor_of(given: float | None, design: Design, parameters: dict[str, Any]) -> float:
    """The given load factor, checked; by default, the default of the design."""
    if given is None:
        return design.default_load_factor(parameters)
    is_number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
    if not is_number or not LEAST_LOAD_FACTOR <= given <= 1:
        raise ParameterError(f"load_factor must be in [{LEAST_LOAD_FACTOR:g}, 1], got {given!r}")
    return float(given)


def _bounds_of(given: Any, on_full: str, design: Design, parameters: dict[str, Any]) -> tuple[float, float] | None:
    """The given bounds of the load factor, checked; None for no bounds."""
    own = design.own_bounds(parameters)
    if given is None:
        return None
    if own:
        raise ParameterError(
            f"design {design.name!r} has bounds of its own: give alpha and beta, not load_bounds={given!r}"
        )
    expected = (
        f"load_bounds must be two numbers (least, most), 0 <= least <= most / 2, {LEAST_LOAD_FACTOR:g} <= most <= 1"
    )
    try:
        least, most = (float(bound) for bound in given)
    except (TypeError, ValueError):
        raise ParameterError(f"{expected}, got {given!r}") from None
    if not (
        LEAST_LOAD_FACTOR <= most <= 1 and 0 <= least <= most / 2
    ):  # a table that was halved or doubled has to be within them
        raise ParameterError(f"{expected}, got {given!r}")
    if on_full != "grow" or not parameters.get("rebucket", True):
        kept = "on_full='raise'" if on_full != "grow" else "rebucket=False"
        raise ParameterError(f"{kept} keeps the size of the table: leave load_bounds out, got {given!r}")
    return least, most


def bound_of(max_size: Any, evict: Any, kind: str) -> Bound | None:
    """The given bound on keys, checked; None for no bound."""
    if max_size is None:
        if evict is not None:
            raise ParameterError(f"evict={evict!r} says which keys leave a bounded table: give max_size, too")
        return None
    if kind == "MultiMap":
        raise ParameterError("max_size bounds the keys of a HashMap or a HashSet: leave it out")
    if evict is not None and evict not in EVICT:
        raise ParameterError(f"evict must be one of {EVICT}, got {evict!r}")
    return Bound(integer("max_size", max_size, 1), evict or "lru")


def _score_of(given: Any, bound: Bound | None) -> Column | None:
    """The type of the scores of a table, checked; None for a table without scores."""
    if bound is None or bound.evict != "score":
        if given is not None:
            raise ParameterError(f"score={given!r} is the type of the scores for evict='score': leave it out")
        return None
    column = Column.of_values("float64" if given is None else given)
    if column.shape or column.dtype.kind not in "iuf" or column.dtype.itemsize > 8:
        raise ParameterError(f"score must be a type of integers or floats of at most 64 bits, got {given!r}")
    return column


def capacity_of(given: Any, bound: Bound | None) -> int:
    """The given capacity, checked; by default 1024, or the bound and a quarter: room for a piece of a batch."""
    if given is not None:
        return integer("capacity", given, 0)
    return 1024 if bound is None else bound.max_size + bound.max_size // 4


def capacity_for(rows: int, given: int | None, options: Mapping[str, object]) -> int | None:
    """The capacity for so many keys, of a table with other ``options``; None for the default of a bounded table."""
    most = options.get("max_size")
    return rows if given is None and (not isinstance(most, int) or rows <= most) else given


class ExistingFile(PurePosixPath):
    """The path of a file that holds the table which is to be made."""


def _memory_of(given: Any, design: Design) -> str | Path:
    """Where the slots of a table are to lie: ``"device"``, ``"host"``, or an absolute path.

    By default, the first of the memories that the design has.

    Raises
    ------
    ParameterError
        If it is none of them, or the design has no such memory.
    PathError
        If a file is there already, and ``given`` does not say so.
    """
    if given is None:
        given = design.memories[0]
    if given in ("device", "host"):
        wanted = given
    elif isinstance(given, os.PathLike):
        wanted = "file"
    else:
        raise ParameterError(f"memory must be 'device', 'host' or a pathlib.Path, got {given!r}")
    if wanted not in design.memories:
        have = [name for name in registry.names() if wanted in registry.get(name).memories]
        raise ParameterError(
            f"design {design.name!r} has its slots in the memory of the device, got memory={given!r}: "
            f"give design={', '.join(map(repr, have))}"
        )
    if wanted != "file":
        return str(given)
    path = Path(os.path.realpath(given))  # once: a file beside it is beside the target of a link
    if not isinstance(given, ExistingFile) and os.path.lexists(path):
        raise PathError(f"{path} is there already: open(path) opens the table in it, and a new table needs a new path")
    return path


def check_string_options(what: str, column: Column, device: str | None, memory: Any) -> None:
    """Raise unless a table whose keys or values are strings of any length, or whose keys may be null, can have these.

    Parameters
    ----------
    what, column
        ``"keys"`` or ``"values"``, and what they are.
    device
        As for `HashMap`.
    memory
        As for `HashMap`, if the keys are several columns, or are of a fixed width and may be null.

    Raises
    ------
    DeviceError
        For another device than the CPU.
    ParameterError
        For slots in a file.
    """
    kind, fixed = column.name, _of_fixed_width(what, column)
    if device not in (None, "cpu"):
        raise DeviceError(
            f"{what} of type {kind} live on the CPU alone, got device={device!r}: give device='cpu', or {fixed}, or "
            f"number the {what} by a table on the CPU (docs/keys.md) and give the numbers to a table on {device!r}"
        )
    if isinstance(memory, os.PathLike):
        raise ParameterError(f"a table in a file has no {what} of type {kind}: {fixed}, or save the table")


def _of_fixed_width(what: str, column: Column) -> str:
    """What a caller may give instead, of a type that lies in every memory and on every device."""
    if column.is_of_columns:
        types: tuple[np.dtype[Any], ...] = column.spec.types
        fields = [(f"f{n}", str(dtype) if dtype.itemsize else f"{dtype.kind}16") for n, dtype in enumerate(types)]
        most = f", of {MAX_KEY_BYTES} bytes at most" if column.spec.nbytes > MAX_KEY_BYTES else ""
        mend = f"give {what} as records of one type{most}, such as {fields}"
    elif isinstance(column, NullableColumn):
        return "make the table without nulls="
    else:
        mend = f"give {what} of a fixed width, such as {column.numpy.kind}16"
    return f"{mend}, without nulls=" if "nulls=" in column.name else mend


def integer(name: str, value: Any, least: int) -> int:
    """``value`` as an ``int``. Raises `ParameterError` unless it is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} must be an integer of at least {least}, got {value!r}")
    if value >= 1 << 63:
        raise ParameterError(f"{name} must be less than 2**63, got a number of {int(value).bit_length():,} bits")
    return int(value)


def buckets_of(given: Any, buckets: int, lists: int) -> tuple[int, int]:
    """The first bucket that ``given`` names, and how many; None means all, with the buckets behind the hashed ones."""
    if given is None:
        return 0, lists
    if isinstance(given, slice):
        first, stop, step = given.indices(buckets)
        if step != 1:
            raise ParameterError(f"a slice of buckets has no step, got {given!r}")
        return first, max(0, stop - first)
    number = integer("buckets", given, 0)
    if number >= buckets:
        raise ParameterError(f"there are {buckets:,} buckets, and none of number {number:,}")
    return number, 1


def _check(hash: str, on_full: str, attempts: Any) -> None:
    """Raise `ParameterError` for options that no table can have."""
    integer("attempts", attempts, 1)
    if hash not in HASHES:
        raise ParameterError(f"hash must be one of {HASHES}, got {hash!r}")
    if on_full not in ("grow", "raise"):
        raise ParameterError(f"on_full must be 'grow' or 'raise', got {on_full!r}")


def refuse_arrays(order: str, **given: Any) -> None:
    """Raise `ParameterError` if there are arrays for answers whose order the table chooses."""
    for name, array in given.items():
        if array is not None:
            raise ParameterError(f'{name}= goes with order="given", got order={order!r}: leave one of them out')
