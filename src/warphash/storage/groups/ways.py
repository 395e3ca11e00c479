"""How a CPU numbers the words of a batch: numbers in, a way out.

The figures are of two threads of an AMD EPYC (Zen 4) with 1 MB of second-level cache each: 10 M words of 8 bytes with
so many distinct keys, in millions of words a second, by one table for each thread and by 128 parts:

======== ===== ====== ==== ==== ====
distinct 0.2 M 0.5 M  1 M  2 M  4 M
======== ===== ====== ==== ==== ====
tables     273    161  103   75   55
parts      130    121  110   95   81
======== ===== ====== ==== ==== ====
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...runtime.abi import MOST_PART_BITS

__all__ = [
    "FEWEST_SAMPLED",
    "Way",
    "chunks_of",
    "expected_in_part",
    "may_be_marks",
    "may_be_places",
    "room_of",
    "sampled_words",
    "stretches_of",
    "way_of",
]

FEWEST_SAMPLED = 1 << 13
"""Words from which on a sample tells how many keys to expect. A table for fewer words costs less than the sample."""

_MOST_SAMPLED = 1 << 14
_FEWEST_IN_CHUNK = 1 << 14

_KEY_BYTES = 26
"""Of a table that is half full (``groups/cpu/lines.cuh``)."""

_TABLE_BYTES = 12 << 20
"""Largest table that a thread reads line by line faster than it brings words to parts."""

_PART_BYTES = 512 << 10
"""Of the table of a part: half of the second-level cache."""

_PLACES_BYTES = 24 << 20
"""Largest memory with a place for each key that can be, 4 bytes each."""

_MARKS_BYTES = 32 << 20
"""Largest memory with a byte for each word that can be a member."""

_MARKS_OF_ELEMENT = 8
"""To clear so many bytes takes less time than to look up one element in a table."""

_WORDS_OF_MERGED = 4
"""Words for each key that one thread merges."""

_FEWEST_IN_STRETCH = 1 << 20
_MOST_STRETCHES = 64
_MOST_MERGED = 1 << 18
"""Groups whose records are merged, at most: those of a stretch take at most 2 MB a word."""

_ELEMENTS_OF_MERGED = 16
"""Elements for each group whose records are merged."""

_FEWEST_RECORDS = 1 << 10


class Way(NamedTuple):
    """How to number the words of a batch.

    Attributes
    ----------
    chunks
        Parts of the batch that threads number by themselves.
    part_bits
        Logarithm of the number of parts to bring the words to; 0 to number them where they are.
    by_place
        A key is its own place.
    """

    chunks: int
    part_bits: int = 0
    by_place: bool = False


def sampled_words(n: int) -> int:
    """Words of a sample of ``n`` words."""
    return min(_MOST_SAMPLED, n // 32)


def chunks_of(n: int, threads: int) -> int:
    """Chunks that ``threads`` threads number."""
    return max(1, min(threads, n // _FEWEST_IN_CHUNK))


def way_of(n: int, distinct: int, span: int | None, threads: int, record_bytes: int = 0) -> Way:
    """Choose how to number ``n`` words.

    Parameters
    ----------
    distinct
        How many keys to expect.
    span
        How many keys can be, as far as the least and the greatest tell; None if that is not known, or too many.
    threads
        That may work.
    record_bytes
        What else is kept for each key (`records`).
    """
    chunks, table_bytes = chunks_of(n, threads), distinct * (_KEY_BYTES + record_bytes)
    worth_merging = 1 + n // (_WORDS_OF_MERGED * max(1, distinct))  # chunks: of each but the first, keys are merged
    if span is not None and may_be_places(n, span):
        return Way(min(chunks, worth_merging), by_place=True)
    if table_bytes <= _TABLE_BYTES and (chunks == 1 or chunks <= worth_merging):
        return Way(chunks)
    if n < FEWEST_SAMPLED:
        return Way(1)
    bits = math.ceil(math.log2(max(2, table_bytes / _PART_BYTES)))
    return Way(chunks, min(MOST_PART_BITS, max(bits, (chunks - 1).bit_length() + 2)))


def stretches_of(n: int, groups: int) -> int:
    """In how many stretches floating-point numbers of ``n`` elements are added; the sums of stretches are added then.

    A power of two, and 1 for many groups. Threads and estimates have no part in this: sums do not depend on them.
    """
    if groups > _MOST_MERGED or groups * _ELEMENTS_OF_MERGED > n:
        return 1
    return min(_MOST_STRETCHES, 1 << max(1, n // _FEWEST_IN_STRETCH).bit_length() - 1)


def room_of(n: int, expected: int) -> int:
    """For how many keys a stretch of ``n`` elements has records, if so many are expected."""
    return min(n, 2 * expected + _FEWEST_RECORDS)


def may_be_places(n: int, span: int) -> bool:
    """Whether a place for each of ``span`` keys costs less than a table of the keys of ``n`` words."""
    return span <= 4 * n and 4 * span <= _PLACES_BYTES


def may_be_marks(elements: int, span: int) -> bool:
    """Whether a byte for each of ``span`` words costs less than a table, of a call with so many elements in all."""
    return span <= _MARKS_OF_ELEMENT * elements and span <= _MARKS_BYTES


def expected_in_part(distinct: int, part_bits: int) -> int:
    """Keys to expect in the fullest parts: four standard deviations above the mean."""
    mean = distinct / (1 << part_bits)
    return math.ceil(mean + 4 * math.sqrt(mean))
