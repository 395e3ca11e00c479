"""The kernels of the GPU under many schedules: no lane order may change what a verb promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emulated.scenarios import (
    MIXED_SCENARIOS,
    SCENARIOS,
    Races,
    Scenario,
    adopted_pairs,
    adopted_pairs_are_erased,
    adopted_pairs_that_come_again,
    assert_no_failure,
    batches_as_large_as_the_pool,
    batches_of_many_rows,
    by_ranges,
    churned_and_left,
    copies_of_lists,
    copies_under_locks,
    crowds_of_few,
    crowds_of_one_home,
    crowds_under_locks,
    erased_alone,
    erased_slots_used_again,
    evictions_from_lines_of_one_key,
    left_by_the_locks,
    many_behind_adopted_pairs,
    moves,
    moves_to_one_slot,
    pairs_that_repeat,
    puts_without_locks,
    subtables_that_grow_and_shrink,
    sums_of_rows,
    values_under_shared_locks,
    without_cas128,
)
from support.engines import missing

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")


def schedules(seeds: range) -> pytest.MarkDecorator:
    """The seeds of the schedules of a test: a few for every day, and the others."""
    few, others = seeds[:3], seeds[3:]
    return pytest.mark.parametrize(
        "seeds", [pytest.param(few, id="few"), pytest.param(others, id="others", marks=pytest.mark.slow)]
    )


def crossed(every: list[Races]) -> list[Any]:
    """Kinds of tables; each is compiled for itself. Of a design, all are slow but the first of words and of rows."""
    kinds: set[tuple[str, bool, bool, bool]] = set()
    marked = []
    for races in every:
        kind = races.design, races.is_wide, races.multi, "reuse_erased" in races.parameters
        first = kind not in kinds or (races.design, races.word, races.parameters) in COLUMNS
        marked.append(pytest.param(races, id=str(races), marks=[pytest.mark.slow] * (not first)))
        kinds.add(kind)
    return marked


SCHEDULES = range(1, 17)
"""Of each scenario and kind of table: more than a thousand in all."""

IN_ORDER_FIRST = range(11)
"""The first has the lanes in order."""

TABLES = [
    ("cuckoo", {}),
    ("bucketed_cuckoo", {"slots_per_bucket": 8}),
    ("bucketed_cuckoo", {"early_exit": False}),
    ("bucketed_cuckoo", {"placement": "least_loaded"}),
    ("power_of_two", {"slots_per_bucket": 8}),
    ("iceberg", {"slots_per_bucket": 8}),
    ("slab", {"rebucket": False}),
    ("linear_probing", {"slots_per_bucket": 8}),
    ("linear_probing", {"slots_per_bucket": 1}),
    ("megakv", {}),
    ("dynamic_cuckoo", {}),
    ("dynamic_cuckoo", {"coordination": "voter"}),
    ("dynamic_cuckoo", {"subtables": 2, "coordination": "spin"}),
    ("stadium", {}),
    ("stadium", {"ticket_bits": 1}),
    ("two_level_cuckoo", {"range_slots": 64}),
    ("two_level_cuckoo", {"hashes": 3}),
    ("quotient_cuckoo", {}),
]
RACES = [
    Races(design, word, parameters, rewrite)
    for design, parameters in TABLES
    for word, rewrite in (("u4", str), ("u8", str), ("u8", without_cas128))
]
COLUMNS = [
    (design, "u8", {"slots_per_bucket": slots})
    for design, slots in (("power_of_two", 32), ("iceberg", 16), ("linear_probing", 16))
]
"""Tables whose keys and values lie in columns."""
RACES += [Races(*columns) for columns in COLUMNS]
RACES += [
    Races("dynamic_cuckoo", "V12", {"coordination": coordination}, value="u8") for coordination in ("voter", "spin")
]
RACES += [Races("lock_free_chaining", word, {"rebucket": False}) for word in ("u4", "u8")]

LISTS = [
    ("slab", {}),
    ("slab", {"buckets": 1}),
    ("slab", {"allocator": "slab_light", "buckets": 1}),
    ("lock_free_chaining", {"rebucket": False}),
    ("lock_free_chaining", {"buckets": 1}),
]
MIXED_RACES = [
    Races(design, word, parameters, rewrite, value)
    for design, parameters in LISTS
    for word, rewrite, value in (
        ("u4", str, ""),
        ("u8", str, ""),
        ("u8", without_cas128, ""),
        ("u4", str, "none"),
        ("u8", str, "none"),
    )
]
MULTI_RACES = [replace(races, multi=True) for races in MIXED_RACES if races.value != "none"]
MULTI_RACES += [Races("slab", word, {"buckets": 1, "reuse_erased": True}, multi=True) for word in ("u4", "u8")]
"""Mixed batches on a `MultiMap`."""

TICKET_RACES = [
    Races("stadium", word, parameters, rewrite, value)
    for parameters in ({}, {"ticket_bits": 1}, {"in_flight": "wait", "ticket_bits": 2})
    for word, rewrite, value in (
        ("u4", str, ""),
        ("u8", str, ""),
        ("u8", without_cas128, ""),
        ("u4", str, "none"),
        ("rows", str, ""),
        ("V12", str, "V48"),
        ("u8", str, "V88"),
        ("V12", str, "none"),
    )
]
"""Mixed batches on a ticket board."""


@schedules(SCHEDULES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("races", crossed(RACES))
def test_no_schedule_breaks_it(races: Races, scenario: Scenario, seeds: range) -> None:
    assert_no_failure(scenario, races, seeds)


@schedules(IN_ORDER_FIRST)
@pytest.mark.parametrize("word", ["u4", "u8"])
@pytest.mark.parametrize("lanes", ["clstash", "hybrid"])
def test_no_schedule_breaks_collaborating_lanes(lanes: str, word: str, seeds: range) -> None:
    assert_no_failure(batches_of_many_rows, Races("stadium", word, {"lanes": lanes}), seeds)


@pytest.mark.slow
@pytest.mark.parametrize("races", RACES[::4], ids=str)
def test_lanes_in_order(races: Races) -> None:
    for scenario in SCENARIOS:
        assert_no_failure(scenario, races, range(1))


@schedules(IN_ORDER_FIRST)
@pytest.mark.parametrize("scenario", MIXED_SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("races", crossed(MIXED_RACES + MULTI_RACES + TICKET_RACES))
def test_every_schedule_has_an_order(races: Races, scenario: Scenario, seeds: range) -> None:
    """Thousands of mixed batches: each key's answers are those of some order of its operations."""
    assert_no_failure(scenario, races, seeds)


@schedules(IN_ORDER_FIRST)
@pytest.mark.parametrize("races", crossed([races for races in TICKET_RACES if races.is_wide and races.value != "none"]))
def test_no_schedule_tears_a_value(races: Races, seeds: range) -> None:
    assert_no_failure(values_under_shared_locks, races, seeds)


@schedules(IN_ORDER_FIRST)
@pytest.mark.parametrize("races", crossed([races for races in MIXED_RACES if races.value != "none"]))
def test_no_schedule_loses_a_pair(races: Races, seeds: range) -> None:
    for scenario in (pairs_that_repeat, copies_of_lists):
        assert_no_failure(scenario, races, seeds)


@schedules(IN_ORDER_FIRST)
@pytest.mark.parametrize("races", crossed([Races("slab", word, {"buckets": 3}) for word in ("u4", "u8")]))
def test_no_schedule_loses_a_pair_in_an_erased_slot(races: Races, seeds: range) -> None:
    assert_no_failure(erased_slots_used_again, races, seeds)


@schedules(range(16))
@pytest.mark.parametrize("races", [races for races in MIXED_RACES if races.design == "lock_free_chaining"], ids=str)
def test_no_batch_takes_more_nodes_than_it_is_held_for(races: Races, seeds: range) -> None:
    """Nodes of one key: where ends of lists are fought for most."""
    assert_no_failure(batches_as_large_as_the_pool, races, seeds)


@schedules(range(16))
@pytest.mark.parametrize(
    "races", [races for races in RACES if races.design == "dynamic_cuckoo" and races.word == "u4"], ids=str
)
def test_no_schedule_loses_a_pair_between_lines(races: Races, seeds: range) -> None:
    assert_no_failure(evictions_from_lines_of_one_key, races, seeds)


@pytest.mark.parametrize(
    "races", [races for races in RACES if races.design == "dynamic_cuckoo" and races.word == "u4"], ids=str
)
def test_no_schedule_loses_a_pair_of_a_subtable(races: Races) -> None:
    assert_no_failure(subtables_that_grow_and_shrink, races, range(2))


@schedules(IN_ORDER_FIRST)
def test_no_schedule_loses_a_number_of_a_row(seeds: range) -> None:
    assert_no_failure(sums_of_rows, Races("bucketed_cuckoo", "u8", {}), seeds)


@schedules(SCHEDULES)
@pytest.mark.parametrize("races", crossed([Races("quotient_cuckoo", word, {}) for word in ("u4", "u8")]))
def test_no_schedule_loses_a_pair_that_moves(races: Races, seeds: range) -> None:
    assert_no_failure(moves, races, seeds)


@schedules(SCHEDULES)
@pytest.mark.parametrize(
    "scenario",
    [
        copies_under_locks,
        crowds_under_locks,
        erased_alone,
        crowds_of_few,
        crowds_of_one_home,
        adopted_pairs,
        adopted_pairs_that_come_again,
        adopted_pairs_are_erased,
        churned_and_left,
        many_behind_adopted_pairs,
        left_by_the_locks,
        by_ranges,
    ],
)
@pytest.mark.parametrize("races", crossed([Races("quotient_cuckoo", word, {}) for word in ("u4", "u8")]))
def test_no_schedule_loses_a_key_in_one_launch(races: Races, scenario: Scenario, seeds: range) -> None:
    assert_no_failure(scenario, races, seeds)


@schedules(SCHEDULES)
@pytest.mark.parametrize("value", ["u4", "u8"])
@pytest.mark.parametrize("scenario", [puts_without_locks, moves_to_one_slot])
def test_no_schedule_of_slots_that_one_store_fills_loses_a_key(scenario: Scenario, value: str, seeds: range) -> None:
    assert_no_failure(scenario, Races("quotient_cuckoo", "u4", {}, value=value), seeds)
