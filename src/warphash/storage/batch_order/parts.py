"""Parts of a table that a batch is brought in the order of: sizes in, a number of parts out. Pure functions."""

from __future__ import annotations

__all__ = [
    "FEWEST_CACHED_PARTS",
    "build_parts_of",
    "cached_parts_of",
    "is_built_whole",
    "lookup_parts_of",
    "parts_of",
]

MOST_PARTS = 256
"""Parts of a table that a batch is brought in the order of."""


def parts_of(
    buckets: int, bucket_bytes: int, window_bytes: int, lanes: int, n: int, reach_bytes: int = 0
) -> tuple[int, int] | None:
    """Parts of a table that a batch of ``n`` is brought in the order of, and the logarithm of the buckets of each.

    A part has up to ``window_bytes``, and no more than four buckets for each of the ``lanes`` that run at once: more
    only take the place of the buckets that pairs are evicted to. None where the order would not help: where half of the
    table lies in the cache as it is, or it has fewer than four parts; where a part would have so few buckets that the
    lanes swap against each other; or where the batch is so small that most elements have a line of their own all the
    same. Such a batch has larger parts in a table beyond ``reach_bytes``, as `lookup_parts_of` says. (Measured:
    docs/performance/insert.md.)
    """
    table_bytes = buckets * bucket_bytes
    most = min(window_bytes // bucket_bytes, 4 * lanes)
    if not most or table_bytes < 2 * window_bytes:
        return None
    if 64 * n < table_bytes:
        return lookup_parts_of(buckets, bucket_bytes, reach_bytes, lanes, n)
    shift = most.bit_length() - 1
    if 2 << shift <= lanes or buckets <= 3 << shift:
        return None
    return _at_most(MOST_PARTS, buckets, shift)


_MANY_PARTS, _MOST_WINDOWS = 128, 4
"""Of parts for the cache: more than so many are made larger, and none is larger than so many times the cache."""

_FEWEST_CACHED_LOOKUPS, _FEWEST_FOR_A_BUCKET = 1 << 25, 3
"""Of lookups by parts that lie in the cache: elements, and elements for each bucket."""

FEWEST_CACHED_PARTS = 18
"""Parts of a table for such lookups, where nobody has measured the number on the device. An H200 has this number."""


def cached_parts_of(buckets: int, bucket_bytes: int, window_bytes: int) -> tuple[int, int] | None:
    """Parts of a table for a cache of ``window_bytes``, and the logarithm of the buckets of each.

    The parts are up to as large as the window. If there would be many, they are twice as large, and if there would be
    more than `MOST_PARTS`, larger still: the way there and back takes longer, the more parts there are. None without a
    window, or with less than two parts.
    """
    shift = (window_bytes // bucket_bytes).bit_length() - 1
    if shift < 0 or buckets <= 1 << shift:
        return None
    return _at_most(MOST_PARTS, buckets, shift + ((buckets - 1 >> shift) >= _MANY_PARTS))


def lookup_parts_of(
    buckets: int,
    bucket_bytes: int,
    reach_bytes: int,
    lanes: int,
    n: int,
    fewest_parts: float = FEWEST_CACHED_PARTS,
    window_bytes: int = 0,
) -> tuple[int, int] | None:
    """Parts of a table that ``n`` elements are brought in the order of, and the logarithm of the buckets of each.

    With parts for the cache (`cached_parts_of`), elements find their buckets there, if there are several elements for
    each bucket, and ``fewest_parts`` of the table or more. Beyond ``reach_bytes`` of memory, address translation slows
    each access down. Parts of a quarter of that at most keep all ``lanes`` within reach, if there are as many elements
    for each part as lanes that run at once. None otherwise: the way there and back takes longer than the cache saves.
    (Measured: docs/performance/find.md.)

    Parameters
    ----------
    window_bytes
        Of the cache; 0 if the elements do not gain by it.
    """
    if window_bytes and n >= max(_FEWEST_CACHED_LOOKUPS, _FEWEST_FOR_A_BUCKET * buckets):
        parts = cached_parts_of(buckets, bucket_bytes, window_bytes)
        if parts and parts[0] >= fewest_parts and bucket_bytes << parts[1] <= _MOST_WINDOWS * window_bytes:
            return parts
    if not 0 < reach_bytes < buckets * bucket_bytes:
        return None
    parts = _at_most(MOST_PARTS, buckets, (reach_bytes // 4 // bucket_bytes).bit_length() - 1)
    return parts if n >= lanes * parts[0] else None


def _at_most(parts: int, buckets: int, shift: int) -> tuple[int, int]:
    """Parts of ``1 << shift`` buckets, or of twice, four times … as many; and the logarithm of the buckets of each."""
    while (buckets - 1 >> shift) >= parts:
        shift += 1
    return (buckets - 1 >> shift) + 1, shift


def is_built_whole(n: int, slots: int, table_bytes: int, window_bytes: int) -> bool:
    """Whether a batch for an empty table is placed as whole pairs, which one more pass turns into columns.

    It pays where the batch is a third of the table, of which no more than half lies in the cache. (Measured:
    docs/performance/columns.md.)
    """
    return 0 < 2 * window_bytes <= table_bytes and 3 * n >= slots


MOST_BUILD_PARTS = 1024
"""Parts of a table that is built from a batch: a line of each stays in a processor's second-level cache."""


def build_parts_of(buckets: int, bucket_bytes: int, slots: int, stage_bytes: int, n: int) -> tuple[int, int] | None:
    """Parts in which a table is built from a batch of ``n``, and the logarithm of the buckets of each.

    A part has ``stage_bytes``, or more if there would be too many. None where the table lies in a processor's cache as
    it is; where the batch has more elements than the table slots, so that they do not fit into their parts; or where it
    fills so little of the table that writing all of it takes longer.
    """
    shift = (stage_bytes // bucket_bytes).bit_length() - 1
    if shift < 0 or buckets <= 4 << shift or n > slots or 8 * n < slots:
        return None
    return _at_most(MOST_BUILD_PARTS, buckets, shift)
