"""Tables of decisions: what each rule about sizes and batches answers on both sides of its thresholds.

All from numbers, without an engine. The thresholds stand here as numbers, and not by their names: a changed threshold
is to be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warphash import TableFull
from warphash.storage import estimate, policies
from warphash.storage.batch import Batch
from warphash.storage.batch_order import ordering, parts, sample
from warphash.storage.giving_up import slots_to_try
from warphash.storage.tickets.lanes import Lanes
from warphash.storage.update.array_slots import ArraySlots
from warphash.storage.update.sizes import Growth
from warphash.storage.update.transaction import ArrayState, is_risky

Decision = tuple[tuple[Any, ...], Any]
"""What a rule is given, and what it answers."""

BOUNDS = (0.2, 0.8)


SIZES: dict[str, tuple[Callable[..., Any], list[Decision]]] = {
    "slots_for a capacity and a load factor": (
        policies.slots_for,
        [((1000, 0.8), 1250), ((1001, 0.8), 1252), ((1, 0.8), 2), ((0, 0.8), 1)],
    ),
    "capacity_of slots": (
        policies.capacity_of,
        [((1250, 0.8), 1000), ((1251, 0.8), 1000), ((1252, 0.8), 1001), ((90, 0.7), 63)],
    ),
    "slots_before_insert: size, tombstones, slots, safe load factor": (
        policies.slots_before_insert,
        [
            ((799, 0, 1000, 0.8), None),
            ((800, 0, 1000, 0.8), 2000),
            ((0, 500, 1000, 0.8), None),
            ((0, 501, 1000, 0.8), 1000),
            ((800, 501, 1000, 0.8), 2000),
        ],
    ),
    "slots_after_failure: size, missing, slots, load factor": (
        policies.slots_after_failure,
        [
            ((0, 100, 1000, 0.8), 2000),
            ((1500, 200, 1000, 0.8), 2125),
            ((800, 5599, 1000, 0.8), 7999),
            ((800, 5600, 1000, 0.8), 8000),
            ((0, 9999, 1000, 0.8), 8000),
        ],
    ),
    "easy_keys": (policies.easy_keys, [((1000, 0.8), 720), ((1000, 0.9), 810)]),
    "most_keys: slots, load factor, safe load factor, bounds": (
        policies.most_keys,
        [((1000, 0.8, 0.9, None), 810), ((1000, 0.85, 0.9, None), 850), ((1000, 0.8, 0.9, BOUNDS), 1000)],
    ),
    "slots_ahead: keys, slots, load factor, bounds": (
        policies.slots_ahead,
        [
            ((1000, 1000, 0.8, None), 2000),  # at least double
            ((2000, 1000, 0.8, None), 2588),  # 1.035 * 2000 keys
            ((1545, 1000, 0.8, BOUNDS), 2000),  # 1600 keys
            ((1546, 1000, 0.8, BOUNDS), 4000),  # 1601 keys
            ((500, 1000, 0.8, BOUNDS), 2000),
        ],
    ),
    "slots_in_bounds: size, slots, bounds": (
        policies.slots_in_bounds,
        [
            ((800, 1000, BOUNDS), None),
            ((801, 1000, BOUNDS), 2000),
            ((1601, 1000, BOUNDS), 4000),
            ((200, 1000, BOUNDS), None),
            ((199, 1000, BOUNDS), 500),
            ((99, 1000, BOUNDS), 250),
            ((0, 64, BOUNDS), None),
            ((0, 65, BOUNDS), 33),
            ((0, 128, BOUNDS), 64),
        ],
    ),
    "slots_between_enlargements: keys, subtables, most": (
        policies.slots_between_enlargements,
        [((1000, 3, 0.8), 1429)],
    ),
    "slots_between_halvings: keys, subtables, least": (policies.slots_between_halvings, [((1000, 3, 0.2), 4546)]),
    "subtable_sizes: buckets, subtables": (
        policies.subtable_sizes,
        [((508, 4), [127] * 4), ((513, 4), [130] * 4), ((1000, 4), [250] * 4), ((1001, 4), [252] * 4)],
    ),
    "subtable_to_enlarge": (policies.subtable_to_enlarge, [(([4, 2, 2],), 1)]),
    "subtable_to_halve": (policies.subtable_to_halve, [(([2, 4, 4],), 1), (([2, 5, 4],), None), (([2, 6],), 1)]),
    "subtable_shares: routing, sizes, counts": (
        policies.subtable_shares,
        [
            (("even", [3, 1], [9, 9]), [0.5, 0.5]),
            (("equal_loads", [3, 1], [9, 9]), [0.75, 0.25]),
            (("theorem", [6, 1], [4, 1]), [0.5, 0.5]),  # 6 / C(4, 2), and 1 / 1
        ],
    ),
    "expected_nodes: keys, buckets, pairs per node": (
        lambda *given: round(policies.expected_nodes(*given), 9),
        [
            ((0, 7, 3), 7),
            ((1, 1, 1), 1.367879441),  # 1 + 1 / e
            ((150_000, 100, 15), 10_046.666666667),
        ],
    ),
    "may_halve: size, slots, slots and keys of the last failure": (
        policies.may_halve,
        [
            ((1000, 65, (64, 1000)), True),
            ((1000, 64, (64, 1000)), False),
            ((938, 64, (64, 1000)), False),
            ((937, 64, (64, 1000)), True),
        ],
    ),
    "load_surely_placed: slots per bucket, subtables": (
        policies.load_surely_placed,
        [((1, 2), 0.0), ((1, 3), 0.75), ((1, 4), 0.75), ((1, 5), 1.0)],
    ),
    "most_tombstones": (policies.most_tombstones, [((0,), 1024), ((1024,), 1024), ((1025,), 1025)]),
    "moves_instead_of_packing: size, lists, nodes, capacity": (
        policies.moves_instead_of_packing,
        [((74, 100, 50, 100), True), ((75, 100, 50, 100), False)],
    ),
    "nodes_for_batch: elements, pairs per node": (policies.nodes_for_batch, [((100, 15), 106), ((0, 15), 0)]),
    "nodes_to_add: capacity, pairs, pairs per node, spares": (
        policies.nodes_to_add,
        [
            ((1024, 15 * 1024, 15, 0), 1024),
            ((1024, 30 * 1024, 15, 0), 1152),
            ((1024, 30 * 1024, 15, 9), 1161),
            ((0, 1, 15, 0), 1),
        ],
    ),
    "nodes_to_hold: elements, lists": (
        policies.nodes_to_hold,
        [
            ((1 << 15, 1), 1 << 19),
            ((1 << 17, 1), 1 << 19),
            (((1 << 17) + 1, 1), 0),
            ((1 << 20, 1 << 21), 1 << 22),
            ((1 << 20, (1 << 21) - 1), 0),
            ((1 << 20, 1 << 30), 1 << 24),
        ],
    ),
    "pool_nodes: keys, buckets, pairs per node": (
        policies.pool_nodes,
        [((150_000, 100, 15), 10_968)],  # 9946.7 nodes beyond the first, a sixteenth more, and four roots of them
    ),
    "range_slots_for: slots, range slots, hashes": (
        policies.range_slots_for,
        [
            ((1000, 64, 3), (17, 60)),
            ((10, 64, 3), (1, 24)),
            ((2048, 2048, 2), (1, 2048)),
            ((2049, 2048, 2), (2, 1028)),
        ],
    ),
    "slots_after, of bounds (0.2, 0.8): size, slots, erased": (
        Growth(0.8, 0.9, BOUNDS).slots_after,
        [((800, 1000, False), None), ((801, 1000, False), 2000), ((199, 1000, True), 500), ((199, 1000, False), None)],
    ),
    "slots_after, of bounds that halve too far": (
        Growth(0.8, 0.9, (0.6, 1.0)).slots_after,
        [((100, 200, True), 100), ((101, 200, True), None)],
    ),
    "is_risky: size, incoming, slots, safe load factor, overwrites": (
        is_risky,
        [
            ((220, 500, 1000, 0.8, False), False),  # 0.9 of 800 keys
            ((221, 500, 1000, 0.8, False), True),
            ((73, 500, 1000, 0.8, True), False),  # 800 keys less eight roots of 800
            ((74, 500, 1000, 0.8, True), True),
            ((0, 720, 1000, 0.8, True), False),
            ((0, 721, 1000, 0.8, True), True),
            ((1, 719_999, 1_000_000, 0.8, True), False),
            ((1, 720_000, 1_000_000, 0.8, True), True),
        ],
    ),
    "elements_below a threshold of 0.5: size, slots, share of new keys": (
        Lanes(None, None, 0.5).elements_below,  # type: ignore[arg-type]
        [((100, 1000, 0.5), 800), ((500, 1000, 0.5), 0), ((499, 1000, 0.0), 1 << 62), ((500, 1000, 0.0), 0)],
    ),
    "for_keys, of a threshold of 0.5: size, slots": (
        Lanes("below", "above", 0.5).for_keys,  # type: ignore[arg-type]
        [((499, 1000), "below"), ((500, 1000), "above")],
    ),
}

PARTS: dict[str, tuple[Callable[..., Any], list[Decision]]] = {
    "parts_of: buckets, bucket bytes, window bytes, lanes, elements": (
        parts.parts_of,
        [
            ((1000, 8, 4000, 99, 1000), (4, 8)),
            ((1000, 8, 4001, 99, 1000), None),  # half of the table lies in the cache
            ((1001, 8, 2000, 9, 1000), (32, 5)),  # 36 buckets for nine lanes
            ((1001, 8, 2000, 255, 1000), (8, 7)),
            ((1001, 8, 2000, 256, 1000), None),  # two lanes for each bucket
            ((768, 8, 2048, 99, 1000), None),
            ((769, 8, 2048, 99, 1000), (4, 8)),
            ((1 << 20, 64, 1 << 10, 9, (1 << 20) - 1), None),
            ((1 << 20, 64, 1 << 10, 9, 1 << 20), (256, 12)),
            ((1000, 8, 7, 99, 1000), None),
        ],
    ),
    "cached_parts_of: buckets, bucket bytes, window bytes": (
        parts.cached_parts_of,
        [
            ((256, 8, 2048), None),
            ((257, 8, 2048), (2, 8)),
            ((128 << 8, 8, 2048), (128, 8)),
            (((128 << 8) + 1, 8, 2048), (65, 9)),
            ((256 << 9, 8, 2048), (256, 9)),
            (((256 << 9) + 1, 8, 2048), (129, 10)),
            ((1000, 8, 7), None),
            ((5, 8, 8), (5, 0)),
        ],
    ),
    "lookup_parts_of, for the cache: ... reach bytes, lanes, elements, fewest parts, window bytes": (
        lambda buckets, n, window, *fewest: parts.lookup_parts_of(buckets, 8, 0, 9, n, *fewest, window_bytes=window),
        [
            (((17 << 8) + 1, 1 << 25, 2048), (18, 8)),
            (((17 << 8) + 1, (1 << 25) - 1, 2048), None),
            ((17 << 8, 1 << 25, 2048), None),
            ((17 << 8, 1 << 25, 2048, 17), (17, 8)),
            ((1 << 24, 3 << 24, 1 << 22), (32, 19)),
            ((1 << 24, (3 << 24) - 1, 1 << 22), None),
            ((256 << 10, 1 << 25, 2048), (256, 10)),
            (((256 << 10) + 1, 1 << 25, 2048), None),  # each of eight windows
        ],
    ),
    "lookup_parts_of, beyond reach: buckets, bucket bytes, reach bytes, lanes, elements": (
        parts.lookup_parts_of,
        [
            ((1000, 8, 8000, 10, 80), None),
            ((1001, 8, 8000, 10, 80), (8, 7)),
            ((1001, 8, 8000, 10, 79), None),
            ((1024, 8, 8192, 10, 50), None),
            ((1025, 8, 8192, 10, 50), (5, 8)),  # each of a quarter of the reach
            ((1025, 8, 8192, 10, 49), None),
            ((1001, 8, 0, 10, 80), None),
        ],
    ),
    "is_built_whole: elements, slots, table bytes, window bytes": (
        parts.is_built_whole,
        [
            ((1000, 3000, 2000, 1000), True),
            ((1000, 3001, 2000, 1000), False),
            ((1000, 3000, 1999, 1000), False),
            ((1000, 3000, 2000, 0), False),
        ],
    ),
    "build_parts_of: buckets, bucket bytes, slots, stage bytes, elements": (
        parts.build_parts_of,
        [
            ((1024, 8, 8000, 2048, 8000), None),
            ((1025, 8, 8000, 2048, 8000), (5, 8)),
            ((1025, 8, 8000, 2048, 8001), None),
            ((1025, 8, 8000, 2048, 1000), (5, 8)),
            ((1025, 8, 8000, 2048, 999), None),
            ((1024 << 8, 8, 8000, 2048, 8000), (1024, 8)),
            (((1024 << 8) + 1, 8, 8000, 2048, 8000), (513, 9)),
            ((1025, 8, 8000, 7, 8000), None),
            ((5, 8, 40, 8, 40), (5, 0)),
        ],
    ),
}

RULES = SIZES | PARTS


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_answers(rule: str) -> None:
    function, decisions = RULES[rule]
    assert [(given, function(*given)) for given, _ in decisions] == decisions


# ---- a batch before its first kernel
@pytest.mark.parametrize(
    ("bounds", "size", "n", "new_share", "room"),
    [
        (None, 310, 500, 1.0, None),  # 810 keys are easy
        (None, 311, 500, 1.0, 499),
        (None, 410, 1000, 0.1, None),  # four times as many new keys as of the last batch would fit
        (None, 411, 1000, 0.1, 399),
        (BOUNDS, 600, 400, 1.0, None),
        (BOUNDS, 600, 401, 1.0, 400),
    ],
)
def test_a_batch_is_measured_if_it_could_fill_the_table(
    bounds: tuple[float, float] | None, size: int, n: int, new_share: float, room: int | None
) -> None:
    rooms: list[int] = []

    def measured(room: int) -> int:
        rooms.append(room)
        return room

    assert Growth(0.8, 0.9, bounds).slots_ahead(size, 1000, 0, n, new_share, measured) is None
    assert rooms == ([] if room is None else [room])


def test_a_table_grows_for_one_key_more_than_it_has_room_for() -> None:
    growth = Growth(0.8, 0.9, None)
    assert growth.slots_ahead(311, 1000, 0, 500, 1.0, lambda room: room) is None
    assert growth.slots_ahead(311, 1000, 0, 500, 1.0, lambda room: room + 1) == 2000
    assert growth.slots_ahead(900, 1000, 0, 0, 1.0, lambda room: 0) == 2000


@pytest.mark.parametrize(
    ("size", "left", "keys", "tombstones", "share", "fit"),
    [
        (150, 0, 250, 0, 0.5, True),
        (150, 0, 251, 0, 0.5, False),
        (100, 50, 250, 0, 0.5, True),
        (100, 51, 250, 0, 0.5, False),
        (150, 0, 570, 0, 0.9, True),
        (150, 0, 571, 0, 0.9, False),
        (0, 0, 1, 500, 0.5, True),
        (0, 0, 1, 501, 0.5, False),
    ],
)
def test_a_batch_that_surely_fits(size: int, left: int, keys: int, tombstones: int, share: float, fit: bool) -> None:
    """A table of 1000 slots, of which 800 are safe, is filled up to a share of these, and has half never used."""
    state: Any = ArrayState(SimpleNamespace(slots=1000), size, tombstones, awaited=left)
    slots: Any = SimpleNamespace(state=state, safe_load_factor=0.8, remedy=SimpleNamespace(leaves_up_to=share))
    assert ArraySlots.surely_fit(slots, keys) == fit


# ---- a batch that fails
@pytest.mark.parametrize(
    ("wanted", "keys", "tried", "slots"),
    [
        (256 * 1024, 1, 9, 256 * 1024),
        (256 * 1024 + 1, 1, 7, 500),
        (256 * 1024 + 1, 1, 8, None),
        (256 * 1024 + 1, 1024, 7, 500),
        (256 * 1025, 1025, 9, 256 * 1025),
        (256 * 1025 + 1, 1025, 8, None),
    ],
)
def test_slots_to_try_are_256_for_each_key_at_most(wanted: int, keys: int, tried: int, slots: int | None) -> None:
    def decide() -> int:
        return slots_to_try(wanted, 500, keys, "toy", tried=tried, attempts=8, vouched=False)

    if slots is None:
        with pytest.raises(TableFull):
            decide()
    else:
        assert decide() == slots


# ---- samples and sketches
@pytest.mark.parametrize(("absent", "sketched"), [(8192, False), (8193, True)])
def test_a_batch_is_sketched_if_more_than_8192_keys_are_absent(
    absent: int, sketched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = np.zeros(1 << 13, np.uint32)
    monkeypatch.setattr(estimate, "absent_share", lambda *_: absent / 20_000)
    monkeypatch.setattr(estimate, "seem_distinct", lambda *_: False)
    monkeypatch.setattr(estimate, "_sketch", lambda *_: empty)  # of no key
    store: Any = SimpleNamespace(size=1, engine=None, spec=SimpleNamespace(word_bytes=8))
    assert estimate.estimate_new_keys(store, Batch(0, 0, 20_000)) == (0 if sketched else absent)
    assert estimate.estimate_new_keys(store, Batch(0, 0, 20_000), room=absent) == absent


@pytest.mark.parametrize(
    ("n", "width", "sampled"), [(3, 4, None), (8, 4, 4), (10_000, 4, 200), (10_000, 8, 200), (10_000, 16, None)]
)
def test_a_sample_of_twice_the_root_of_a_batch_and_its_neighbours(
    n: int, width: int, sampled: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def no_randomness(count: int, seed: int) -> Any:
        asked.append(count)
        return np.full(count, 49, np.uint64)  # the last key of a step of 50 has no neighbour there

    monkeypatch.setattr(sample, "random_words", no_randomness)
    engine = SimpleNamespace(shares_host_memory=True)
    store: Any = SimpleNamespace(spec=SimpleNamespace(word_bytes=width), engine=engine)
    keys = np.arange(n * max(1, width // 8), dtype=f"u{min(8, width)}")
    assert sample.seem_distinct(store, keys.ctypes.data, n) == (sampled is not None)
    assert asked == ([] if sampled is None else [sampled])


@pytest.mark.parametrize(("repeated", "often"), [((0, 255), False), ((256, 0), True), ((0, 256), True)])
def test_keys_repeat_often_if_a_quarter_of_1024_do(repeated: tuple[int, int], often: bool) -> None:
    answer = SimpleNamespace(ptr=0, words=repeated, follow=lambda stream: None, wait=lambda: None)
    program = SimpleNamespace(run=lambda *_: None)
    engine = SimpleNamespace(answer={2: answer}.__getitem__, program=lambda spec: program)
    store: Any = SimpleNamespace(engine=engine, spec=SimpleNamespace(word_bytes=4), seed=1)
    assert sample.Samples().repeat_often(store, 0, 5000, None) == often


# ---- the order of an insert
def parts_of_an_insert(
    n: int, buckets: int = 1001, lanes: int = 36, word: int = 4, value: int = 4, apart: bool = False
) -> tuple[int, int] | None:
    """Parts of a table of buckets of 8 bytes, of which 250 lie in the cache."""
    layout = SimpleNamespace(keys_apart=apart)
    spec = SimpleNamespace(slots_per_bucket=1, slot_bytes=8, word_bytes=word, value_word_bytes=value, layout=layout)
    design = SimpleNamespace(keeps_columns=lambda *_: False, fills_first_bucket=lambda _: True)
    engine = SimpleNamespace(lanes=lanes, window_bytes=2000, reach_bytes=0)
    store = SimpleNamespace(engine=engine, spec=spec, design=design, parameters={}, buckets=buckets)
    return ordering.parts_for(store, n)


@pytest.mark.parametrize(
    ("apart", "lanes", "answer"), [(False, 36, (8, 7)), (True, 36, (32, 5)), (True, 63, (32, 5)), (True, 64, (16, 6))]
)
def test_columns_have_a_quarter_of_the_lanes(apart: bool, lanes: int, answer: tuple[int, int]) -> None:
    assert parts_of_an_insert(1000, lanes=lanes, apart=apart) == answer


@pytest.mark.parametrize(
    ("word", "value", "orders"),
    [(4, 4, True), (4, 0, True), (8, 8, True), (8, 0, True), (4, 8, False), (8, 4, False), (16, 16, False)],
)
def test_words_of_one_width_are_ordered(word: int, value: int, orders: bool) -> None:
    assert (parts_of_an_insert(1000, word=word, value=value) is not None) == orders


@pytest.mark.parametrize(
    ("buckets", "n", "answer"), [(1000, 125, (8, 7)), (1000, 124, None), (1001, 126, (8, 7)), (1001, 125, None)]
)
def test_a_batch_that_is_to_be_ordered_has_64_bytes_of_the_table_for_each_element(
    buckets: int, n: int, answer: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most. Then it goes in the order of the parts for the cache, however few lanes there are."""
    monkeypatch.setattr(ordering, "batch_order", lambda: "parts")
    assert parts_of_an_insert(n, buckets, lanes=9) == answer
