"""Measure how much the ticket board and collaborating lanes gain: Stadium Hashing, section IV-B and Figure 18.

Keys and values have 8 bytes each. One batch fills the table. Then finds look up as many keys, or `MOST_ASKED` of them.
All of these keys or half of them are present. The finds search the same table with its ticket board and without it
(``lab/kernels/boardless.cuh``).
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
from ...runtime.engine import KernelSpec, Program
from ...storage.batch import Batch
from .arrays import array_of

if TYPE_CHECKING:
    from ..bench.runner import Lab, Setting

__all__ = ["BOARDLESS", "MOST_ASKED", "Boards", "Drawn", "Questions", "draw_boards", "measure_boards"]

Array = npt.NDArray[np.uint64]

BOARDLESS = KernelSpec("boardless", 0, 0, 0, header="boardless.cuh", package="warphash.lab")
"""The kernel of a find that reads no ticket."""

MOST_ASKED = 1 << 26
"""Keys of a find. So many have the rate of more, and the finds of 320 million keys over the bus would take minutes."""

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
    """Draw ``n`` keys of a table, and finds of as many keys, or of `MOST_ASKED` keys."""
    asked_n = min(n, MOST_ASKED)
    drawn = np.random.default_rng(seed).integers(0, (1 << 64) - 1, n + asked_n // 2, np.uint64)  # never all ones
    order = np.random.default_rng(seed).permutation(asked_n)

    def questions(present: int) -> Questions:
        asked, there = np.concatenate([drawn[:present], drawn[n:][: asked_n - present]])[order], order < present
        return Questions(asked, there, np.where(there, ~asked, np.uint64(0)))

    return Drawn(drawn[:n], questions(asked_n), questions(asked_n - asked_n // 2))


def measure_boards(lab: Lab, drawn: Drawn, setting: Setting, load_factor: float, seed: int = 1) -> Boards:
    """Fill a table in one batch, and find the drawn keys with and without the ticket board."""
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

    def insert(count: int) -> None:
        array.update(Batch(keys.ptr, values.ptr, count, unique=True, stream=_STREAM), size=0)

    insert_s = min(lab.timed(partial(insert, n), empty, partial(insert, min(n, lab.most_warming))))
    asked_n = len(drawn.present.asked)
    out, flags = engine.allocate(8 * asked_n, _STREAM), engine.allocate(asked_n, _STREAM)
    rates: list[float] = []
    wrong = 0
    for finds in (drawn.present, drawn.half):
        questions = engine.from_host(finds.asked, _STREAM)

        def find(program: Program, entry: str, count: int, asked: int = questions.ptr) -> None:
            batch = TicketBatch(n=count, keys=asked, out_values=out.ptr, out_flags=flags.ptr)
            program.run(entry, array.table, batch, count, _STREAM)

        for program, entry in ((array.program, "find"), (engine.program(BOARDLESS), "find_unaided")):
            whole, few = (partial(find, program, entry, count) for count in (asked_n, min(asked_n, lab.most_warming)))
            rates.append(asked_n / min(lab.timed(whole, warm=few)))
            answers = engine.to_host(out.ptr, np.uint64, asked_n, _STREAM)
            found = engine.to_host(flags.ptr, np.uint8, asked_n, _STREAM)
            wrong += int(((found != finds.there) | (answers != finds.answers)).sum())
    present, unaided_present, half, unaided_half = rates
    return Boards(n / insert_s, present, half, unaided_present, unaided_half, wrong)
