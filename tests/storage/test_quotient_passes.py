"""Large batches come to the ranges of a quotient table in passes: all elements, in order, and their flags back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import numpy as np
import pytest

from support.engines import missing, one_of_each
from support.faults import FAMILIES, VERBS, Repeating, all_faults, check_harmless, interrupts, scenarios
from support.hashing import permuted
from support.inside import storage_of
from support.passes import in_passes
from support.planting import planted_among
from support.quotients import SLOTS, made, value_of
from support.refusals import refusing
from warphash import TableFull
from warphash.runtime.abi import LISTS_BYTES, QuotientBatch
from warphash.runtime.emulated import engine as emulated
from warphash.runtime.emulated.engine import EmulatedEngine, EmulationError
from warphash.storage.batch import Batch
from warphash.storage.quotient import passes as module
from warphash.storage.quotient import route
from warphash.storage.quotient.passes import Passes
from warphash.storage.quotient.route import MOST_BINS, MOST_COUNTED_BINS, MOST_RANGES, Facts, pass_plan_for
from warphash.storage.scratch import zeroed_report

DEVICES = one_of_each("emulated", "cuda")
TYPES = [*SLOTS]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def with_ranges(key: str, value: str | None, ranges: int, device: str) -> Any:
    """The array of a table of so many ranges of four buckets."""
    small = SLOTS[key, value]
    each = small if ranges < 256 else {("u4", "u4"): 9, ("u4", None): 20, ("u4", "u8"): 5}.get((key, value), small)
    array = storage_of(made(key, value, each * 4 * ranges, device)).store.array
    assert array.ranges == ranges
    return array


def ranges_of(array: Any, hashed: Any) -> Any:
    return np.array([int(h) * array.ranges >> (8 * hashed.itemsize) for h in hashed.tolist()])


class Brought:
    """What passes leave of a batch: hashes and values, and the ranges that they were brought to."""

    def __init__(self, array: Any, keys: Any, values: Any, flagged: bool) -> None:
        engine, n, self.array = array.engine, len(keys), array
        plan = pass_plan_for(array._facts, n)
        assert plan is not None and plan.parts <= MOST_BINS and 1 << plan.shift <= MOST_RANGES
        self.held = [engine.from_host(column) for column in (keys, values) if column is not None]
        self.passes = Passes(engine, array.spec, plan, flagged)
        report = zeroed_report(engine, None)
        engine.fill(report.ptr, 0, LISTS_BYTES)
        batch = QuotientBatch(n=n, report=report.ptr, keys=self.held[0].ptr)
        batch.values = 0 if values is None else self.held[1].ptr
        self.passes.bring(array.table, batch, None)
        width = max(array.spec.word_bytes, array.spec.value_word_bytes)
        words = engine.to_host(batch.brought, f"u{width}", n * array.spec.slot_bytes // width)
        hashes, self.values = (words, None) if array.spec.value_bytes == 0 else (words[::2], words[1::2])
        self.hashes = hashes.astype(keys.dtype)
        self.starts = engine.to_host(array.table.starts, np.uint32, array.ranges)
        self.counts = engine.to_host(array.table.counters, np.uint32, array.ranges)
        self.listed = engine.to_host(batch.touched, np.uint32, report.read(None).winners)
        array.forget_elements()

    def check(self, keys: Any, values: Any) -> None:
        wanted = permuted(self.array, keys)
        assert (np.sort(self.hashes) == np.sort(wanted)).all()
        assert (self.counts == np.bincount(ranges_of(self.array, wanted), minlength=self.array.ranges)).all()
        assert sorted(self.listed.tolist()) == np.flatnonzero(self.counts).tolist()
        found = ranges_of(self.array, self.hashes)
        for r in self.listed.tolist():
            assert (found[self.starts[r] : self.starts[r] + self.counts[r]] == r).all()
        if self.values is not None:  # those of the batch are numbers of elements, or none
            assert (self.hashes == wanted[self.values]).all() if values is not None else not self.values.any()


def batches(array: Any, dtype: str, n: int) -> Iterator[Any]:
    """Keys in no order; sorted ones; ones of one range; ones of the first and the last part; and one key n times."""
    keys = np.random.default_rng(n).integers(0, np.iinfo(dtype).max, 4 * n, dtype, endpoint=True)
    yield keys[:n]
    yield np.sort(keys[:n])
    hashes, most = permuted(array, keys), np.iinfo(dtype).max
    first = keys[hashes < most // array.ranges]
    yield np.resize(first if len(first) else keys[:1], n)
    outer = keys[(hashes < most // array.ranges) | (hashes > most - most // array.ranges)]
    yield np.resize(outer if len(outer) else keys[:1], n)
    yield np.full(n, 5, dtype)


def check_batches(array: Any, key: str, value: str | None, n: int) -> None:
    """Bring batches of ``n`` elements, with values and without, and check what is left of each."""
    for keys in batches(array, key, n):
        for values in (None, np.arange(n, dtype=value)) if value else (None,):
            Brought(array, keys, values, flagged=False).check(keys, values)


@pytest.mark.parametrize(("key", "value"), TYPES)
@pytest.mark.parametrize(
    ("ranges", "one_pass", "counted", "n"),
    [
        (1, 2, 5, 1),
        (1, 2, 5, 9001),
        (2, 2, 5, 4097),
        (3, 2, 5, 77),
        (3, 2, 2, 77),
        (13, 2, 13, 9001),
        (13, 2, 12, 9001),
        (13, 512, 5, 4096),
        (257, 2, 257, 20_000),
        (257, 2, 256, 20_000),
        (257, 512, 5, 8193),
    ],
)
def test_all_elements_come_to_their_ranges(
    device: str, key: str, value: str | None, ranges: int, one_pass: int, counted: int, n: int
) -> None:
    with in_passes(one_pass_ranges=one_pass, counted_bins=counted):
        check_batches(with_ranges(key, value, ranges, device), key, value, n)


@pytest.mark.parametrize(
    ("key", "value", "ranges"),
    [
        *(("u4", "u4", MOST_COUNTED_BINS[4] + k) for k in (0, 1)),
        *(("u8", "u8", MOST_COUNTED_BINS[4] + k) for k in (0, 1)),
        *(("u8", "u8", MOST_COUNTED_BINS[8] + k) for k in (0, 1)),
    ],
)
def test_as_many_ranges_as_a_block_counts_and_one_more(device: str, key: str, value: str, ranges: int) -> None:
    """With 8 bits for each range, the counts of batches that repeat keys overflow, and the block counts again."""
    most = MOST_COUNTED_BINS[int(key[1])]
    with in_passes(counted_bins=most):
        array = with_ranges(key, value, ranges, device)
        plan = pass_plan_for(array._facts._replace(ranges=ranges), 4000)
        assert plan and plan.counts_parts == (ranges > most)
        check_batches(array, key, value, 4000)


@pytest.mark.parametrize(("key", "value"), TYPES)
@pytest.mark.parametrize(("ranges", "n"), [(5, 1), (5, 9001), (16, 4097), (17, 9001), (32, 20_000)])
@pytest.mark.parametrize("counted", [2, 32])
def test_all_elements_are_scattered_to_their_ranges(
    device: str, key: str, value: str | None, ranges: int, n: int, counted: int
) -> None:
    with in_passes(counted_bins=counted, scatter=True):
        check_batches(with_ranges(key, value, ranges, device), key, value, n)


@pytest.mark.parametrize(("key", "value"), TYPES)
@pytest.mark.parametrize(
    ("ranges", "n", "scatter"),
    [
        (1, 1, False),
        (1, 4099, False),
        (5, 2047, False),
        (5, 9001, False),
        (257, 6002, False),
        (5, 2047, True),
        (17, 9001, True),
    ],
)
def test_flags_come_back_to_their_elements(
    device: str, key: str, value: str | None, ranges: int, n: int, scatter: bool
) -> None:
    """At addresses of all remainders, and not a byte beyond."""
    with in_passes(scatter=scatter):
        array = with_ranges(key, value, ranges, device)
        engine, keys = array.engine, next(batches(array, key, n))
        for shift in range(4):
            brought = Brought(array, keys, np.arange(n, dtype=value) if value else None, flagged=True)
            engine.upload(brought.passes.flags, (brought.hashes % 251).astype(np.uint8))
            room = engine.from_host(np.full(n + 8, 255, np.uint8))
            brought.passes.restore_flags(array.table, n, room.ptr + shift, None)
            flags = engine.to_host(room.ptr, np.uint8, n + 8)
            assert (flags[shift : shift + n] == permuted(array, keys) % 251).all()
            assert (flags[:shift] == 255).all() and (flags[shift + n :] == 255).all()


@pytest.mark.parametrize(("key", "value"), TYPES)
@pytest.mark.parametrize(
    ("one_pass", "counted", "scatter"), [(2, 5, False), (2, 512, False), (512, 5, False), (2, 5, True)]
)
def test_verbs_whose_batches_go_in_passes(
    device: str, key: str, value: str | None, one_pass: int, counted: int, scatter: bool
) -> None:
    with in_passes(64, one_pass, counted, scatter=scatter):
        table = made(key, value, SLOTS[key, value] * 900, device, load_factor=0.7)
        keys = np.random.default_rng(3).permutation(np.arange(5000) % 3000).astype(key)
        pairs = [keys, value_of(keys, value)] if value else [keys]
        added = table.insert(*pairs)
        assert added.sum() == len(table) == 3000 and len(np.unique(keys[added])) == 3000
        assert not table.insert(*pairs).any() and table.contains(keys).all()
        if value:
            assert (table.find(keys)[0] == value_of(keys, value)).all()
            assert not table.upsert(keys, np.ones(len(keys), value), "add").any()
            times = np.bincount(keys.astype(np.int64)).astype(value)
            assert (table[np.arange(3000, dtype=key)] == value_of(np.arange(3000, dtype=key), value) + times).all()
            table.assign(keys, keys.astype(value))
            assert (table[keys] == keys).all()
        table.check()
        gone = np.concatenate([keys[:2000], keys[:500], keys + keys.dtype.type(3000)])
        erased = table.erase(gone)
        assert erased.sum() == len(np.unique(keys[:2000])) == 3000 - len(table)
        assert not erased[2500:].any() and not table.contains(keys[:2000]).any()
        table.check()


@pytest.mark.parametrize(("key", "value"), TYPES)
@pytest.mark.parametrize("one_pass", [2, 512])
def test_a_batch_with_flags_builds_a_new_table(device: str, key: str, value: str | None, one_pass: int) -> None:
    keys = np.random.default_rng(5).permutation(np.arange(4000) % 2500).astype(key)
    pairs = [keys, np.arange(4000, dtype=value)] if value else [keys]
    with in_passes(64, one_pass):
        table = made(key, value, SLOTS[key, value] * 900, device, load_factor=0.7)
        program, launched = storage_of(table).store.array.program, list[str]()
        run = program.run
        noted = lambda entry, *rest: (launched.append(entry), run(entry, *rest))  # noqa: E731
        with mock.patch.object(program, "run", noted):
            added = table.insert(*pairs)
        assert launched == ["build"]
        assert added.sum() == len(table) == 2500 and len(np.unique(keys[added])) == 2500
        table.check()
        if value:
            assert (table[keys[added]] == pairs[1][added]).all()
            table = made(key, value, SLOTS[key, value] * 900, device, load_factor=0.7)
            assert table.upsert(keys, np.ones(len(keys), value), "add").sum() == 2500
            assert (table[np.arange(2500, dtype=key)] == np.bincount(keys.astype(np.int64))).all()
            table.check()
        full = made(key, value, SLOTS[key, value] * 100, device, on_full="raise")
        with pytest.raises(TableFull):
            full.insert(*pairs)
        assert len(full) == 0 and not full.contains(keys).any()
        full.check()


def test_a_batch_in_passes_grows_a_table_or_is_taken_back(device: str) -> None:
    keys = np.random.default_rng(4).permutation(5000).astype(np.uint64)
    with in_passes(64):
        table = made("u8", "u8", 600, device, load_factor=0.7)
        assert table.insert(keys, ~keys).all() and (table.find(keys)[0] == ~keys).all()
        table.check()
        table = made("u8", "u8", 3000, device, on_full="raise")
        table.insert(keys[:500], keys[:500])
        with pytest.raises(TableFull) as raised:
            table.upsert(keys, np.ones_like(keys), "add")
        assert len(raised.value.keys) and len(table) == 500
        assert (table.find(keys[:500])[0] == keys[:500]).all() and not table.contains(keys[500:]).any()
        table.check()


def test_a_batch_in_passes_of_several_launches(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "MOST_ELEMENTS", 1100)
    keys = np.random.default_rng(3).permutation(np.arange(5000, dtype=np.uint32) % np.uint32(3000))
    with in_passes(64):
        table = made("u4", "u4", 7, device, load_factor=0.7)
        added = table.upsert(keys, np.ones_like(keys), "add")
        assert added.sum() == len(table) == 3000 and len(np.unique(keys[added])) == 3000
        assert (table[np.arange(3000, dtype=np.uint32)] == np.bincount(keys)).all()
        assert table.erase(keys).sum() == 3000
        table.check()


def test_the_share_of_a_block_that_counts() -> None:
    spec = storage_of(made("u4", "u4", 100, "cpu")).store.array.spec
    engine = mock.Mock(window_bytes=1, lanes=132 * 2048)

    def share(n: int) -> int:
        plan = pass_plan_for(Facts(True, 32_000, 1000, 4, 8), n)
        assert plan
        return Passes(engine, spec, plan, False)._share(n)

    engine.allocate.return_value.ptr = 256
    assert share(50_000_000) == -(-50_000_000 // (3 * 264)) and share(1 << 26) <= module.MOST_COUNTED
    assert share(1 << 20) == 1 << 13  # few blocks: each adds to the counters of all ranges


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestEmulated:
    def test_without_memory_for_passes_elements_go_one_by_one(self) -> None:
        launched: list[str] = []
        with in_passes(64):
            table = made("u4", "u4", 7000, "emulated")
            array = storage_of(table).store.array
            keys = np.arange(3000, dtype=np.uint32)
            rows = array.engine.from_host(keys)
            run = array.program.run
            noted = lambda entry, *rest: (launched.append(entry), run(entry, *rest))  # noqa: E731
            with mock.patch.object(array.program, "run", noted), refusing(array.engine, 1, once=True) as refused:
                outcome = array.update(Batch(rows.ptr, rows.ptr, 3000))
            assert refused.refused and outcome.changed == 3000
            assert launched == ["count", "reserve", "scatter", "build"]

    @pytest.mark.parametrize(
        ("refused", "passes"),
        [(0, [3000]), (1, [1500, 1500]), (2, [750] * 4), (3, [])],
        ids=["all at once", "halves", "quarters", "one by one"],
    )
    def test_where_memory_is_short_fewer_elements_go_in_a_launch(
        self, refused: int, passes: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(route, "LAUNCH_ELEMENTS", 1000)
        made_passes, bring, asked, went = Passes.__init__, Passes.bring, list[int](), list[int]()

        def refuse(self: Passes, engine: Any, *rest: Any) -> None:
            asked.append(1)
            with refusing(engine, 1) if len(asked) <= refused else nullcontext():
                made_passes(self, engine, *rest)

        def noted(self: Passes, table: Any, batch: QuotientBatch, stream: Any) -> None:
            went.append(batch.n)
            bring(self, table, batch, stream)

        monkeypatch.setattr(Passes, "__init__", refuse)
        monkeypatch.setattr(Passes, "bring", noted)
        keys = np.random.default_rng(3).permutation(np.arange(3000) % 2000).astype(np.uint32)
        with in_passes(64):
            table = made("u4", "u4", 7000, "emulated")
            added = table.upsert(keys, np.ones_like(keys), "add")
            assert added.sum() == len(table) == 2000 and len(np.unique(keys[added])) == 2000
            assert (table[np.arange(2000, dtype=np.uint32)] == np.bincount(keys)).all()
            table.check()
            asked.clear()
            erased = table.erase(keys)
            assert erased.sum() == len(np.unique(keys[erased])) == 2000 and len(table) == 0
            table.check()
        assert went == 2 * passes

    def test_without_any_memory_nothing_is_launched(self) -> None:
        with in_passes(64), mock.patch.object(route, "LAUNCH_ELEMENTS", 1000):
            table = made("u4", "u4", 7000, "emulated")
            array = storage_of(table).store.array
            rows = array.engine.from_host(np.arange(3000, dtype=np.uint32))
            with (
                mock.patch.object(array.program, "run") as run,
                refusing(array.engine, 1, once=False) as refusals,
                pytest.raises(MemoryError),
            ):
                array.update(Batch(rows.ptr, rows.ptr, 3000))
        assert refusals.refused == 4 and not run.called

    @pytest.mark.parametrize("lines", ["some", pytest.param("more", marks=pytest.mark.slow)])
    def test_an_interrupted_upsert_adds_all_values_of_a_key_or_none(self, lines: str) -> None:
        scenario = Repeating(FAMILIES["quotients"], VERBS["upsert"], "emulated")
        with in_passes(), mock.patch.object(route, "MOST_ELEMENTS", 64):
            check_harmless(interrupts(scenario, every=31 if lines == "some" else 5))

    @pytest.mark.parametrize("lines", ["some", pytest.param("more", marks=pytest.mark.slow)])
    @pytest.mark.parametrize("verb", ["insert", "assign", "erase", "reserve", "shrink"])
    def test_a_fault_leaves_the_table_whole(self, verb: str, lines: str) -> None:
        with in_passes(), mock.patch.object(route, "LAUNCH_ELEMENTS", 32):
            for scenario in scenarios("emulated", ["quotients"], [verb]):
                check_harmless(all_faults(scenario, every=31 if lines == "some" else 5))


def disorder(engine: EmulatedEngine, seed: int, monkeypatch: pytest.MonkeyPatch, *, scatter: bool = False) -> bool:
    """Whether elements were lost, or torn from their values or flags, in one schedule."""
    monkeypatch.setattr(emulated, "schedule_seed", seed)
    monkeypatch.setattr(emulated, "engine", lambda: engine)
    keys = np.random.default_rng(seed).integers(0, 1 << 32, 15_000, np.uint32)
    values = np.arange(len(keys), dtype=np.uint32)
    ranges = 20 if scatter else 3  # two parts, of several tiles each
    with in_passes(counted_bins=2 + seed % 2 * ranges, scatter=scatter):  # parts are counted first, or ranges alone
        array = with_ranges("u4", "u4", ranges, "emulated")
        try:
            brought = Brought(array, keys, values, flagged=True)
            brought.check(keys, values)
            engine.upload(brought.passes.flags, (brought.hashes % 251).astype(np.uint8))
            room = engine.allocate(len(keys))
            brought.passes.restore_flags(array.table, len(keys), room.ptr, None)
        except (AssertionError, EmulationError, IndexError):
            return True
        return bool((engine.to_host(room.ptr, np.uint8, len(keys)) != permuted(array, keys) % 251).any())


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
class TestSchedules:
    def test_all_of_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine()
        assert not any(disorder(engine, seed, monkeypatch) for seed in range(30))
        assert not any(disorder(engine, seed, monkeypatch, scatter=True) for seed in range(10))

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            (
                "atomic_add(counts + bin / kInWord, ",
                "store_relaxed(counts + bin / kInWord, load_relaxed(counts + bin / kInWord) + ",
            ),
            ("atomic_add(source.counters() + first_bin + bin, ", "store_relaxed(source.counters() + first_bin + bin, "),
            ("return counter_of(t, first_range);", "return counter_of(t, 0);"),
            ("start = pointer<const u32>(t.starts)[first];", "start = 0;"),
            ("if (b.bin_ranges > 1) pointer<u32>(b.given)[part] = 0;", ""),
            ("fetch_add(in_global(pointer<u32>(b.given)) + bin, count)", "pointer<u32>(b.given)[bin]"),
            ("fetch_add(counter_of(t, first_range + bin), count)", "*counter_of(t, first_range + bin)"),
            ("      start += count;\n    }\n    block_barrier();\n", "      start += count;\n    }\n"),
            ("tile = fetch_add(pointer<u32>(b.given) + b.parts, tiles)", "tile = pointer<u32>(b.given)[b.parts]"),
            ("bins[bin] = tile.reserve(bin, count);\n    block_barrier();", "bins[bin] = tile.reserve(bin, count);"),
            (
                "u32 place = bins[tile.bin(elements.item[k])] + elements.rank(k)",
                "u32 place = bins[tile.bin(elements.item[k])]",
            ),
        ],
        ids=[
            "two count one element",
            "a block forgets what others have counted",
            "ranges of another part are counted",
            "parts begin in one place",
            "a part keeps its counter",
            "two tiles have one place in a part",
            "two tiles have one place in a range",
            "places are taken before they are known",
            "two parts have one tile",
            "an element is scattered before its place is known",
            "the elements of a range are scattered to one place",
        ],
    )
    def test_a_planted_bug_shows(self, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = EmulatedEngine(planted_among("struct PassTile", right, wrong))
        scatter = "bins[" in right
        assert any(disorder(engine, seed, monkeypatch, scatter=scatter) for seed in range(30))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value"), TYPES)
def test_flags_that_are_alike_need_no_way_back(device: str, key: str, value: str | None) -> None:
    keys = np.random.default_rng(3).permutation(np.arange(900, dtype=key))
    with (
        in_passes(),
        mock.patch.object(Passes, "restore_flags", autospec=True, side_effect=Passes.restore_flags) as back,
    ):
        table = made(key, value, 4000, device)

        def add(keys: Any) -> Any:
            return table.insert(keys, value_of(keys, value)) if value else table.insert(keys)

        assert add(keys[:500]).all() and table.erase(keys[:500]).all() and not table.erase(keys[:500]).any()
        assert add(keys[:500]).all() and not add(keys[:500]).any() and back.call_count == 0
        assert (add(keys) == (np.arange(900) >= 500)).all() and back.call_count == 1
        twice = np.concatenate([keys[:600], keys[:600]])
        assert np.count_nonzero(table.erase(twice)) == 600 and back.call_count == 2
        assert np.array_equal(table.contains(keys), np.arange(900) >= 600)
        assert add(keys[:150]).all() and back.call_count == 3  # too few to ask
        table.check()
