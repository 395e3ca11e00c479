"""What an operation of the comparison is: its inputs, the calls of each library, and the oracle of its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Call", "Input", "Op", "OpsConfig", "Shape", "Spread", "Table", "Wrong"]

Array = npt.NDArray[Any]
Spread = Literal["scattered", "dense"]
Table = Mapping[str, Array]
"""Columns of one length by their names. Strings are Python's, in an array of objects."""
Wrong = Callable[..., int]
"""Counts the wrong answers, given the columns of an answer as NumPy arrays."""


@dataclass(frozen=True)
class OpsConfig:
    """What all operations of a run share.

    Attributes
    ----------
    rows
        Rows of the largest input.
    key
        NumPy's type of the keys, an integer of 4 or 8 bytes.
    seed
        Of the keys.
    """

    rows: int
    key: str = "int64"
    seed: int = 1


@dataclass(frozen=True)
class Shape:
    """What an input looks like.

    Attributes
    ----------
    rows
        Elements of the largest input, by which rates are counted.
    distinct
        Distinct keys; of an operation that looks keys up, those of the table.
    spread
        ``"dense"``: the keys are 0 to ``distinct`` - 1. ``"scattered"``: they are anywhere among the values of their
        type.
    hit_share
        Share of the looked-up keys that are in the table. None if nothing is looked up.
    """

    rows: int
    distinct: int
    spread: Spread = "scattered"
    hit_share: float | None = None


Input = Callable[[Shape, OpsConfig], tuple[Table, ...]]
"""Draws the tables of an input."""


@dataclass(frozen=True)
class Call:
    """How users of a library do an operation.

    Attributes
    ----------
    run
        The timed call. It takes the library's module, a connection of DuckDB, or for warphash the `Library` whose
        columns it is given; then each table as that library holds it (`Library.held`).
    read
        Brings the answer into the columns that the oracle takes, from the same first argument and the answer. It is
        not timed. By default, the answer has these columns.
    """

    run: Callable[..., Any]
    read: Callable[[Any, Any], Any] = lambda lib, answer: answer


@dataclass(frozen=True)
class Op:
    """An operation that several libraries do. One call builds whatever table it needs.

    Attributes
    ----------
    name, title
        On the command line, and in a report.
    draw
        Draws the tables that the calls take.
    oracle
        Given these tables, the function that counts wrong answers. It shares no code with a hash table.
    ours
        The call of warphash.
    rivals
        Those of other libraries. A name begins with that of the library (`LIBRARIES`).
    ours_on
        The libraries whose columns our call takes on a CPU.
    hit_shares, spreads
        The shapes of the input that are measured, each with each number of distinct keys.
    most_rows
        Most rows of the input.
    on_gpu
        Whether arrays on a GPU have such input: they have no strings.
    """

    name: str
    title: str
    draw: Input
    oracle: Callable[..., Wrong]
    ours: Call
    rivals: Mapping[str, Call]
    ours_on: tuple[str, ...] = ("numpy",)
    hit_shares: tuple[float | None, ...] = (None,)
    spreads: tuple[Spread, ...] = ("scattered", "dense")
    most_rows: int = np.iinfo(np.int64).max
    on_gpu: bool = True
