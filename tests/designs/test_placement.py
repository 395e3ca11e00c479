"""Placement rules, against a sequential simulation that shares no code (tests/designs/oracle.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from designs import oracle
from designs.conftest import Keys, build
from designs.published import PROBES, PROBES_OF_THE_TEXT, Probes
from support.engines import one_of_each
from support.hashing import buckets_under
from support.inside import storage_of
from warphash import HashMap, HashSet, TableFull

N = 500_000


def measured(
    design: str, load_factor: float, keys: Keys, absent: Keys, **parameters: object
) -> tuple[float, float, float]:
    table = build(keys, design, load_factor, **parameters)
    return (
        float(table.stats().insert_probes or 0),
        float(table.probe_counts(keys).mean()),
        float(table.probe_counts(absent).mean()),
    )


@dataclass(frozen=True)
class Reading:
    """One way to read the paper's iceberg rule."""

    region: int
    second_wins_ties: bool


@pytest.mark.parametrize("row", PROBES_OF_THE_TEXT, ids=str)
def test_the_figures_of_the_text_belong_to_another_reading(row: Probes) -> None:
    """They are those of floor(t b) primaries and ties to the first, which the authors' measurements are not."""
    b, n = row.parameters["slots_per_bucket"], 200_000
    simulated = oracle.iceberg(
        int(np.ceil(n / row.load_factor / b)),
        b,
        n,
        int(row.parameters["threshold"] * b),
        False,
        np.random.default_rng(1),
    )
    assert simulated.insert == pytest.approx(row.insert, rel=0.01)
    assert simulated.present == pytest.approx(row.present, rel=0.01)


@pytest.mark.parametrize(("b", "region"), [(16, 13), (32, 26)])
@pytest.mark.slow
def test_iceberg_threshold_and_ties(b: int, region: int, present: Keys, absent: Keys) -> None:
    """load >= floor(t b) + 1 goes to a secondary, and ties to the second: of six readings, this one is nearest."""
    keys = present[:N]
    insert, find, _ = measured(
        "iceberg", 0.8, keys, absent[:N], slots_per_bucket=b, threshold=0.8, early_exit=False, seed=9
    )
    buckets = -(-N * 5 // (4 * b))

    def distance(reading: Reading) -> float:
        simulated = oracle.iceberg(
            buckets, b, N, reading.region, reading.second_wins_ties, np.random.default_rng(reading.region)
        )
        return abs(simulated.insert - insert) + abs(simulated.present - find)

    readings = [Reading(region + offset, ties) for offset in (-1, 0, 1) for ties in (False, True)]
    assert min(readings, key=distance) == Reading(region, True)
    assert distance(Reading(region, True)) < 0.02


@pytest.mark.parametrize(
    ("threshold", "in_parts"),
    [
        (0.8, 1.254),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((0.2, 2.542), (0.4, 2.269), (0.6, 1.767))),
    ],
)
def test_keys_that_come_part_by_part_read_more_of_iceberg(threshold: float, in_parts: float) -> None:
    """So a large batch fills all primary buckets first (docs/fidelity.md#bght-probes-iht).

    A late part is still empty when keys of an early part are sent to its buckets. An H200 read as much before.
    """
    row = next(row for row in PROBES if str(row) == f"iceberg-slots_per_bucket=16-threshold={threshold}-load=0.8")
    n, region = 300_000, int(threshold * 16) + 1
    for parts, expected in ((1, row.present), (16, in_parts)):
        simulated = oracle.iceberg(-(-n * 5 // 64), 16, n, region, True, np.random.default_rng(8), parts=parts)
        assert simulated.present == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_iceberg_goes_back_to_the_primary_only_if_both_secondaries_are_full(device: str) -> None:
    """The text of section V-D. Listing 6 goes back if one of them is (docs/fidelity.md#bght-erratum-fall-back)."""
    table = HashSet(
        "u4",
        design="iceberg",
        slots_per_bucket=8,
        capacity=32,
        load_factor=1.0,
        on_full="raise",
        attempts=1,
        early_exit=False,
        device=device,
    )
    keys = np.random.default_rng(6).permutation(np.arange(10_000, dtype=np.uint32))
    array = storage_of(table).store.array  # type: ignore[attr-defined]
    places = np.stack([buckets_under(array, keys, function) for function in range(3)], axis=1)
    assert array.buckets == 4
    primary, full, empty = 0, 1, 2

    def add(count: int, first: int, second: int, third: int) -> list[int]:
        """Insert absent keys of these three buckets, one after the other. Return the buckets that a find reads."""
        fits = (places == (first, second, third)).all(axis=1) & ~table.contains(keys)
        for key in keys[fits][:count]:
            assert table.insert(np.array([key])).all()
        return table.probe_counts(keys[fits][:count]).tolist()

    assert add(7, primary, full, full) == [1] * 7  # the primary region has 7 slots
    assert add(8, primary, full, full) == [2] * 8  # one bucket is both secondaries
    assert add(1, primary, full, empty) == [3]
    assert add(1, primary, empty, full) == [2]
    assert add(1, primary, full, full) == [1]
    with pytest.raises(TableFull):
        add(1, primary, full, full)
    table.check()


@pytest.mark.parametrize("early_exit", [False, True])
def test_iceberg_with_three_secondaries_takes_the_emptiest(early_exit: bool, present: Keys, absent: Keys) -> None:
    """Which the paper leaves as future work (docs/fidelity.md#bght-future-load)."""
    keys, options = present[:N], {"hashes": 4, "threshold": 0.85, "early_exit": early_exit}
    insert, find, missing = measured("iceberg", 0.9, keys, absent[:N], **options)
    buckets = int(np.ceil(N / 0.9 / 16))
    first, last = (
        oracle.iceberg(buckets, 16, N, 14, last_wins_ties, np.random.default_rng(7), early_exit, hashes=4)
        for last_wins_ties in (False, True)
    )
    assert (insert, find, missing) == pytest.approx((last.insert, last.present, last.absent), rel=0.01)
    assert abs(find - first.present) > 0.02


@pytest.mark.parametrize("load_factor", [0.8, 0.9])
def test_a_threshold_above_the_mean_load_reads_less(load_factor: float, present: Keys, absent: Keys) -> None:
    """Section III-C: t a little larger than the mean load of a bucket, which is 26 or 29 of 32 slots here."""
    n = len(present)  # what an absent key reads depends on the hash constants and on the order of the keys
    below = measured("iceberg", load_factor, present, absent, slots_per_bucket=32, threshold=0.8)
    above = measured("iceberg", load_factor, present, absent, slots_per_bucket=32, threshold=0.9)
    buckets = int(np.ceil(n / load_factor / 32))
    simulated = oracle.iceberg(buckets, 32, n, 29, True, np.random.default_rng(4), early_exit=True)
    assert above == pytest.approx((simulated.insert, simulated.present, simulated.absent), rel=0.01)
    assert all(more > less for more, less in zip(below, above, strict=True))


@pytest.mark.parametrize("hashes", [2, 3, 4])
def test_power_of_two_ties_go_to_the_first(hashes: int, present: Keys, absent: Keys) -> None:
    """With more choices, too, of which the paper measured none."""
    keys = present[:N]
    insert, find, missing = measured("power_of_two", 0.8, keys, absent[:N], hashes=hashes)
    buckets = -(-N * 5 // (4 * 16))
    first, last = (
        oracle.power_of_two(buckets, 16, N, np.random.default_rng(1), last_wins_ties, hashes)
        for last_wins_ties in (False, True)
    )
    assert find == pytest.approx(first.present, rel=0.01)
    assert abs(find - last.present) > 0.2
    assert missing == hashes and insert == pytest.approx(hashes, rel=0.01)


@pytest.mark.parametrize(("b", "load_factor"), [(8, 0.9), (16, 0.95)])
def test_cuckoo_victims_go_to_the_next_function(b: int, load_factor: float, present: Keys, absent: Keys) -> None:
    keys = present[:N]
    insert, find, missing = measured("bucketed_cuckoo", load_factor, keys, absent[:N], slots_per_bucket=b)
    buckets = int(np.ceil(N / load_factor / b))
    simulated = oracle.bucketed_cuckoo(buckets, b, 3, N, 200, np.random.default_rng(2))
    assert simulated.unplaced == 0
    assert find == pytest.approx(simulated.present, rel=0.01)
    assert missing == pytest.approx(simulated.absent, rel=0.015)
    assert insert == pytest.approx(simulated.insert, rel=0.02)


@pytest.mark.slow
def test_keys_under_way_at_once_leave_more_pairs_without_a_slot() -> None:
    """All of them are at their evictions when the table is fullest (docs/fidelity.md#bght-success).

    Chains end early here, so that few builds have many such pairs.
    """
    buckets, b, chain_limit, seeds = int(np.ceil(N / 0.99 / 16)), 16, 60, range(3)
    alone = [oracle.bucketed_cuckoo(buckets, b, 3, N, chain_limit, np.random.default_rng(seed)) for seed in seeds]
    few, many = (
        [
            oracle.bucketed_cuckoo_at_once(buckets, b, 3, N, chain_limit, at_once, np.random.default_rng(seed))
            for seed in seeds
        ]
        for at_once in (32, 2000)
    )
    left = [sum(one.unplaced for one in alone), *(sum(unplaced for _, unplaced in builds) for builds in (few, many))]
    assert 0 < 2 * max(left[:2]) < left[2]
    assert np.mean([read for read, _ in few]) == pytest.approx(np.mean([one.insert for one in alone]), rel=0.01)


def test_early_exit_reads_less_and_answers_the_same(present: Keys, absent: Keys) -> None:
    buckets = int(np.ceil(N / 0.6 / 16))
    simulated = {
        "bucketed_cuckoo": oracle.bucketed_cuckoo(buckets, 16, 3, N, 200, np.random.default_rng(3)).absent,
        "iceberg": oracle.iceberg(buckets, 16, N, 13, True, np.random.default_rng(3), early_exit=True).absent,
    }
    for design, expected in simulated.items():
        early, full = (build(present[:N], design, 0.6, early_exit=early_exit) for early_exit in (True, False))
        assert early.probe_counts(absent[:N]).mean() == pytest.approx(expected, rel=0.015)
        assert (full.probe_counts(absent[:N]) == 3).all()
        for table in (early, full):
            assert table.contains(present[:N]).all() and not table.contains(absent[:N]).any()


@pytest.mark.parametrize("design", ["cuckoo", "bucketed_cuckoo", "power_of_two", "iceberg"])
def test_erase_keeps_the_early_exit_right(design: str, present: Keys, absent: Keys) -> None:
    """Every key that was pushed past a bucket is still found after keys of that bucket went."""
    keys = present[:N]
    load_factor = 0.86 if design == "cuckoo" else 0.8
    table = build(keys, design, load_factor)
    absent_before = table.probe_counts(absent[:N]).mean()
    assert table.erase(keys[::2]).all()
    assert not table.contains(keys[::2]).any() and table.contains(keys[1::2]).all()
    assert table.probe_counts(absent[:N]).mean() <= absent_before
    table.insert(absent[: N // 2], absent[: N // 2])
    assert table.contains(keys[1::2]).all() and table.contains(absent[: N // 2]).all()
    table.check()


def test_least_loaded_placement_holds_more_with_two_functions(present: Keys) -> None:
    """The variant that the paper describes for query rate: two functions, the emptier bucket first."""
    table = build(present, "bucketed_cuckoo", 0.97, placement="least_loaded", hashes=2)
    assert table.contains(present).all()
    assert table.probe_counts(present).max() == 2


@pytest.mark.parametrize("design", ["power_of_two", "iceberg"])
def test_stable_designs_never_move_a_key(design: str, present: Keys) -> None:
    """The number of buckets that find reads for a key is fixed once it is placed."""
    table = HashMap("u4", "u4", capacity=N, design=design, load_factor=0.7, device="cpu", seed=2)
    first, rest = present[: N // 2], present[N // 2 : N]
    table.insert(first, first)
    before = table.probe_counts(first)
    table.insert(rest, rest)
    np.testing.assert_array_equal(table.probe_counts(first), before)
    assert table.stats().rebuilds == 0
