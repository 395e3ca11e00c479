"""How words are numbered: both sides of each threshold, from numbers alone."""

from __future__ import annotations

import pytest

from warphash.storage.groups.cells import row_cells_for, word_cells_for
from warphash.storage.groups.ways import Way, chunks_of, expected_in_part, may_be_marks, sampled_words, way_of

M = 1_000_000


@pytest.mark.parametrize(
    ("given", "way"),
    [
        ((100, 100, None, 8), Way(1)),
        ((10 * M, 1_000, None, 2), Way(2)),
        ((10 * M, 483_958, None, 2), Way(2)),  # 12 MiB of tables
        ((10 * M, 483_959, None, 2), Way(2, 5)),
        ((10 * M, 10 * M, None, 2), Way(2, 9)),
        ((10 * M, 480_000, None, 6), Way(6)),  # one thread merges five times the keys
        ((10 * M, 480_000, None, 7), Way(7, 5)),
        ((10 * M, 480_000, None, 1), Way(1)),
        ((20_000, 20_000, None, 2), Way(1)),
        ((40_000, 40_000, None, 2), Way(2, 3)),
        ((2**31, 2**31, None, 16), Way(16, 11)),
        ((10 * M, 1_000, 6_291_456, 2), Way(2, by_place=True)),  # 24 MiB of places
        ((10 * M, 1_000, 6_291_457, 2), Way(2)),
        ((10 * M, 5 * M, 5 * M, 4), Way(1, by_place=True)),
        ((1_000, 10, 4_000, 1), Way(1, by_place=True)),
        ((1_000, 10, 4_001, 1), Way(1)),
    ],
)
def test_ways(given: tuple[int, int, int | None, int], way: Way) -> None:
    assert way_of(*given) == way


@pytest.mark.parametrize(("given", "chunks"), [((0, 4), 1), ((32_767, 4), 1), ((32_768, 4), 2), ((10 * M, 4), 4)])
def test_chunks(given: tuple[int, int], chunks: int) -> None:
    assert chunks_of(*given) == chunks


@pytest.mark.parametrize(("n", "sampled"), [(8_192, 256), (524_287, 16_383), (524_288, 16_384), (2**31, 16_384)])
def test_samples(n: int, sampled: int) -> None:
    assert sampled_words(n) == sampled


def test_parts_and_cells() -> None:
    assert expected_in_part(1 << 20, 4) == 65_536 + 1_024
    assert [row_cells_for(keys) for keys in (0, 128, 129, 1 << 20)] == [256, 256, 512, 1 << 21]
    assert [word_cells_for(keys) for keys in (0, 128, 129, 1_000_000)] == [256, 256, 260, 2_000_000]


@pytest.mark.parametrize(
    ("given", "may"),
    [((10, 80), True), ((10, 81), False), ((10 * M, 32 << 20), True), ((10 * M, (32 << 20) + 1), False)],
)
def test_marks(given: tuple[int, int], may: bool) -> None:
    assert may_be_marks(*given) == may
