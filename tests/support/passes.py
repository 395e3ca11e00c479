"""Batches of a few elements that a GPU does in passes through the ranges of a quotient table, or in one launch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from warphash.storage.quotient import array, passes, route
from warphash.storage.update import transaction

__all__ = ["in_one_launch", "in_passes"]


@contextmanager
def in_passes(
    range_buckets: int = 4,
    one_pass_ranges: int = 2,
    counted_bins: int = 5,
    *,
    scatter: bool = False,
) -> Iterator[None]:
    """Make all batches but the smallest go in passes, through ranges of a few buckets.

    Blocks count few elements. Of more than ``counted_bins`` ranges, the parts are counted first. With
    ``scatter``, elements are scattered to 5 to 32 ranges, from parts of 16. Tables have to be made inside.
    """
    of_a_part = {"MOST_BINS": 2, "MOST_RANGES": 16} if scatter else {}
    with (
        mock.patch.multiple(
            route,
            SPARE_ELEMENTS=8,
            FEW_FOR_A_BUCKET=0,
            MOST_FOR_A_BUCKET=0,
            FEWEST_ELEMENTS=1,
            FEWEST_PER_RANGE=0,
            FEWEST_PER_SCATTERED_RANGE=0,
            ONE_PASS_RANGES=one_pass_ranges,
            MOST_COUNTED_BINS=dict.fromkeys((4, 8), counted_bins),
            **of_a_part,
        ),
        mock.patch.multiple(array, MOST_RANGE_BUCKETS=range_buckets, _FEWEST_ALIKE=200),
        mock.patch.object(passes, "_FEWEST_COUNTED", 300),
        mock.patch.object(transaction, "LISTED_BYTES", 4 * 8),
    ):
        yield


@contextmanager
def in_one_launch(spare: int = 8) -> Iterator[None]:
    """Make all batches for a quotient table that is not blank begin with one launch, however many elements there are.

    No update is one launch to its end. An array always has memory for ``spare`` elements. Tables have to be made
    inside.
    """
    limits = {"FEW_FOR_A_BUCKET": 1000, "MOST_FOR_A_BUCKET": 0, "FEWEST_ALONE": 0}
    with (
        mock.patch.multiple(route, SPARE_ELEMENTS=spare, **limits),
        mock.patch.object(transaction, "LISTED_BYTES", 4 * spare),
    ):
        yield
