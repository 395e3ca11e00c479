"""Measure how much the ticket board and collaborating lanes gain: Stadium Hashing, section IV-B and Figure 18.

Keys and values have 8 bytes each. One batch fills the table. Then finds look up as many keys, of which all or half are
present. The finds search the same table with its ticket board and without it (``lab/kernels/boardless.cuh``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ... import HashMap
from ...runtime.abi import TicketBatch
from ...runtime.devices import engine_for
from ...runtime.engine import KernelSpec
from ...storage.batch import Batch
from .arrays import array_of

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["BOARDLESS", "Boards", "Drawn", "Questions", "draw_boards", "measure_boards"]

Array = npt.NDArray[np.uint64]

BOARDLESS = KernelSpec("boardless", 0, 0, 0, header="boardless.cuh", package="warphash.lab")
"""The kernel of a find that reads no ticket."""

_STREAM = 0
"""The stream on which the clock records its events."""


@dataclass(frozen=True)
class Boards:
    """Rates per second of inserts and finds, and wrong answers.

    Attributes
    ----------
    present, half
        Finds of keys of which all, or half, are present.
    unaided_present, unaided_half
        The same finds without the ticket board.
    """

    insert: float
    present: float
    half: float
    unaided_present: float
    unaided_half: float
    mismatches: int


@dataclass(frozen=True)
class Questions:
    """Keys to look up, in random order: whether each is present, and its value, or 0."""

    asked: Array
    there: npt.NDArray[np.bool_]
    answers: Array


@dataclass(frozen=True)
class Drawn:
    """The keys of a table, whose values are their complements; and finds of which all, or half, are present."""

    keys: Array
    present: Questions
    half: Questions


def draw_boards(n: int, seed: int = 1) -> Drawn:
    """Draw ``n`` keys of a table, and finds of as many keys."""
    drawn = np.random.default_rng(seed).integers(0, (1 << 64) - 1, n + n // 2, np.uint64)  # never all ones
    order = np.random.default_rng(seed).permutation(n)

    def questions(present: int) -> Questions:
        asked, there = np.concatenate([drawn[:present], drawn[n:][: n - present]])[order], order < present
        return Questions(asked, there, np.where(there, ~asked, np.uint64(0)))

    return Drawn(drawn[:n], questions(n), questions(n - n // 2))


def measure_boards(lab: Lab, drawn: Drawn, setting: Setting, load_factor: float, seed: int = 1) -> Boards:
    """Fill a table in one batch, and find as many keys with and without the ticket board."""
    engine, n = engine_for(lab.device), len(drawn.keys)
    keys, values = engine.from_host(drawn.keys, _STREAM), engine.from_host(~drawn.keys, _STREAM)
    table: Any = HashMap(
        "uint64",
        "uint64",
        device=lab.device,
        capacity=n,
        load_factor=load_factor,
        on_full="raise",
        seed=seed,
        **setting.keywords,
    )
    array: Any = array_of(table)

    def empty() -> None:
        array.clear(_STREAM)
        engine.fill(array.table.slots, 0xFF, array.slots * array.spec.slot_bytes, _STREAM)

    def insert() -> None:
        array.update(Batch(keys.ptr, values.ptr, n, unique=True, stream=_STREAM), size=0)

    insert_s = min(lab.timed(insert, empty))
    out, flags = engine.allocate(8 * n, _STREAM), engine.allocate(n, _STREAM)
    seconds: list[float] = []
    wrong = 0
    for finds in (drawn.present, drawn.half):
        questions = engine.from_host(finds.asked, _STREAM)
        batch = TicketBatch(n=n, keys=questions.ptr, out_values=out.ptr, out_flags=flags.ptr)
        for program, entry in ((array.program, "find"), (engine.program(BOARDLESS), "find_unaided")):
            find = partial(program.run, entry, array.table, batch, n, _STREAM)
            seconds.append(min(lab.timed(find)))
            answers = engine.to_host(out.ptr, np.uint64, n, _STREAM)
            found = engine.to_host(flags.ptr, np.uint8, n, _STREAM)
            wrong += int(((found != finds.there) | (answers != finds.answers)).sum())
    present_s, unaided_present_s, half_s, unaided_half_s = seconds
    return Boards(n / insert_s, n / present_s, n / half_s, n / unaided_present_s, n / unaided_half_s, wrong)
