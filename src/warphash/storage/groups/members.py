"""Which words of a batch are among others whose span is small, on a CPU: a byte for each word that can be."""

from __future__ import annotations

from functools import partial

from ...runtime.abi import MemberBatch, Members
from ...runtime.engine import Engine
from ...runtime.source import GROUPS
from ..batch_order.sample import sample_rows
from ..new_memory import filled
from .spans import small_span
from .ways import FEWEST_SAMPLED, may_be_marks, sampled_words

__all__ = ["mark_codes", "mark_members"]

_WORD_WIDTHS = (1, 2, 4, 8)


def mark_members(engine: Engine, words: int, n: int, others: int, count: int, width: int, flags: int) -> bool:
    """Flag those of ``n`` words that are among ``count`` others, if the span of the others is small.

    Parameters
    ----------
    words, others
        Addresses of packed words of ``width`` bytes.
    flags
        Address of room for a byte, 0 or 1, for each word.

    Returns
    -------
    bool
        False if the span is not small, or not known on this engine: nothing is flagged then.

    Raises
    ------
    MemoryError
        If there is no memory for the marks.
    """
    if engine.lanes != 1 or width not in _WORD_WIDTHS or not count:
        return False
    sample = None
    if count >= FEWEST_SAMPLED and width > 2:
        sample = sample_rows(engine, others, width, count, sampled_words(count))
    span = small_span(engine, others, width, count, partial(may_be_marks, n + count), sample)
    if span is None:
        return False
    marks = filled(engine, span.size + 1)
    members = Members(marks=marks.ptr, low=span.low, range=span.size, word_bytes=width)
    program = engine.program(GROUPS)
    program.run("add_members", members, MemberBatch(n=count, words=others), count, None)
    program.run("mark_members", members, MemberBatch(n=n, words=words, flags=flags), n, None)
    return True


def mark_codes(engine: Engine, codes: int, width: int, n: int, marks: int, size: int) -> None:
    """Write 1 to the mark of each code, a byte. Codes are integers of ``width`` bytes; ``size`` or more has no mark."""
    members = Members(marks=marks, range=size, word_bytes=width)
    engine.program(GROUPS).run("add_members", members, MemberBatch(n=n, words=codes), n, None)
