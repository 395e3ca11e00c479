"""Dense numbers in the order of first appearance, beside a walk by a dict of Python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warphash
from support.changing import changed_meanwhile
from support.engines import one_of_each
from support.refusals import refusing
from warphash.runtime.abi import NumberBatch
from warphash.runtime.devices import engine_for
from warphash.settings import ORDER_VARIABLE
from warphash.storage.groups import first_elements, word_numbers, word_parts
from warphash.storage.groups.cells import WORD_CELLS
from warphash.storage.groups.numbering import number
from warphash.storage.groups.ways import FEWEST_SAMPLED, Way

Array = npt.NDArray[Any]
ENGINES = one_of_each("cpu", "emulated", "cuda")


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """That many threads."""
    warphash.set_num_threads(request.param)
    yield request.param
    warphash.set_num_threads(None)


def rows_of(ids: Array, width: int) -> Array:
    """A row of so many bytes for each number: rows of equal numbers are equal, and others differ while they can."""
    scattered = (ids.astype("u8") + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    head = scattered.view("u1").reshape(-1, 8)[:, : min(8, width)]
    return np.ascontiguousarray(np.pad(head, ((0, 0), (width - head.shape[1], 0))))


def numbered(device: str, rows: Array, *, number_bytes: int = 8, counts: bool = True) -> tuple[Array, Array, Array]:
    """First elements, numbers and counts, in host memory."""
    engine = engine_for(device)
    n, width = rows.shape
    held, numbers = engine.from_host(rows), engine.allocate(max(1, number_bytes * n))
    made = number(engine, held.ptr, width, n, numbers=numbers.ptr, number_bytes=number_bytes, counts=counts)
    counted = np.empty(0, "u4") if made.counts is None else engine.to_host(made.counts.ptr, np.uint32, made.size)
    firsts = engine.to_host(made.firsts.ptr, np.uint32, made.size)
    return firsts, engine.to_host(numbers.ptr, f"u{number_bytes}", n), counted


def walked(rows: Array) -> tuple[list[int], list[int], list[int]]:
    """The same by a walk from the front."""
    number_of: dict[bytes, int] = {}
    firsts, numbers, counts = [], [], []
    for element, row in enumerate(map(bytes, rows)):
        if row not in number_of:
            number_of[row] = len(number_of)
            firsts.append(element)
            counts.append(0)
        numbers.append(number_of[row])
        counts[numbers[-1]] += 1
    return firsts, numbers, counts


def check(device: str, rows: Array, **options: Any) -> None:
    for made, expected in zip(numbered(device, rows, **options), walked(rows), strict=True):
        np.testing.assert_array_equal(made, expected)


def keys_like(kind: str, n: int) -> Array:
    """Numbers of keys: of few or many keys, or in an order that misleads a sample or a thread."""
    random = np.random.default_rng(n)
    match kind:
        case "equal":
            return np.zeros(n, "i8")
        case "different":
            return random.permutation(n)
        case "few":
            return random.integers(0, 7, n)
        case "many":
            return random.integers(0, n // 2 + 1, n)
        case "skewed":
            return np.minimum(random.zipf(1.3, n), n).astype("i8")
        case "sorted":
            return np.sort(random.integers(0, n // 3 + 1, n))
    return np.where(np.arange(n) < n - n // 8, 0, np.arange(n))  # "late": most keys come behind long repeats


KINDS = ("equal", "different", "few", "many", "skewed", "sorted", "late")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 9, 16, 24])
@pytest.mark.parametrize("device", ENGINES)
def test_numbers_are_those_of_a_walk(device: str, width: int, kind: str) -> None:
    for n in (0, 1, 2, 63, 64, 65, 1000):
        check(device, rows_of(keys_like(kind, n), width))


@pytest.mark.parametrize("width", [4, 8, 12])
@pytest.mark.parametrize("device", ENGINES)
def test_frequent_and_rare_keys_and_one_of_all_ones_are_counted(device: str, width: int) -> None:
    """More keys than a block of a GPU counts in its own memory, of which the first and the last ones repeat."""
    ids = np.concatenate([np.arange(13_000), np.zeros(700, "i8"), np.full(40, 12_999), np.arange(100, 200)])
    rows = rows_of(np.random.default_rng(3).permutation(ids), width)
    rows[::97] = 0xFF
    check(device, rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [4, 8])
def test_any_number_of_threads_gives_the_same_numbers(threads: int, width: int, kind: str) -> None:
    for n in (FEWEST_SAMPLED, 70_001):
        check("cpu", rows_of(keys_like(kind, n), width))


@pytest.mark.parametrize("way", [Way(1), Way(3), Way(1, 1), Way(3, 4), Way(5, 11)], ids=str)
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_all_ways_give_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch, threads: int, way: Way, width: int, kind: str
) -> None:
    """Also a way that does not suit the batch."""
    monkeypatch.setattr(word_numbers, "way_of", lambda *_: way)
    check("cpu", rows_of(keys_like(kind, 50_003), width))


@pytest.mark.parametrize("way", [Way(1, 1), Way(3, 4), Way(5, 11)], ids=str)
@pytest.mark.parametrize(("width", "row_bytes"), [(4, 4), (4, 8), (8, 4), (8, 8), (3, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_grouped_by_the_parts_of_their_keys(
    monkeypatch: pytest.MonkeyPatch, threads: int, way: Way, width: int, row_bytes: int, kind: str
) -> None:
    monkeypatch.setattr(word_numbers, "way_of", lambda *_: way)
    n, engine = 50_003, engine_for("cpu")
    keys, rows = rows_of(keys_like(kind, n), width), np.random.default_rng(1).permutation(n).astype(f"u{row_bytes}")
    held, given, out = engine.from_host(keys), engine.from_host(rows), engine.allocate(row_bytes * n)
    made = number(engine, held.ptr, width, n, counts=True, grouped=True)
    offsets = engine.allocate(8 * made.size)
    assert made.group_rows is not None and made.counts is not None
    made.group_rows(given.ptr, row_bytes, out.ptr, offsets.ptr)
    expected: dict[bytes, list[int]] = {}
    for key, row in zip(map(bytes, keys), rows.tolist(), strict=True):
        expected.setdefault(key, []).append(row)
    begins = engine.to_host(offsets.ptr, np.uint64, made.size).tolist()
    counts = engine.to_host(made.counts.ptr, np.uint32, made.size).tolist()
    grouped = engine.to_host(out.ptr, rows.dtype, n).tolist()
    assert [grouped[at : at + count] for at, count in zip(begins, counts, strict=True)] == list(expected.values())


def test_rows_are_grouped_only_in_parts_and_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_for("cpu")
    held = engine.from_host(np.arange(50_000))
    for way, grouped in ((Way(2), True), (Way(2, 3), False)):
        monkeypatch.setattr(word_numbers, "way_of", lambda *_, way=way: way)
        assert number(engine, held.ptr, 8, 50_000, counts=True, grouped=grouped).group_rows is None


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("low", ["least", "zero", "greatest"])
def test_keys_of_a_small_range(threads: int, dtype: str, low: str) -> None:
    """A key is its own place, wherever the range lies."""
    n, span = 40_000, 5_000
    limits = np.iinfo(dtype)
    first = {"least": limits.min, "zero": 0, "greatest": limits.max - span + 1}[low]
    keys = (np.random.default_rng(3).integers(0, span, n).astype(dtype) + np.array(first, dtype)).astype(dtype)
    check("cpu", keys.view("u1").reshape(n, -1))


def test_a_range_across_the_sign() -> None:
    """Signed keys around zero are few as signed integers, and unsigned keys around the middle as unsigned ones."""
    keys = np.random.default_rng(4).integers(-100, 100, 20_000)
    check("cpu", keys.view("u1").reshape(len(keys), 8))
    check("cpu", (keys.view("u8") + np.uint64(1 << 63)).view("u1").reshape(len(keys), 8))


@pytest.mark.parametrize("device", ENGINES)
def test_numbers_of_four_bytes_and_none(device: str) -> None:
    rows = rows_of(keys_like("many", 500), 8)
    check(device, rows, number_bytes=4)
    engine = engine_for(device)
    held = engine.from_host(rows)
    made = number(engine, held.ptr, 8, len(rows))
    assert made.counts is None
    assert engine.to_host(made.firsts.ptr, np.uint32, made.size).tolist() == walked(rows)[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number_bytes", [4, 8])
@pytest.mark.parametrize("width", [3, 4, 8])
@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_words_are_numbered_part_by_part(
    device: str, width: int, number_bytes: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one element, of a part of a tile, and of more than a tile."""
    monkeypatch.setenv(ORDER_VARIABLE, "parts")
    for n in (1, 300, 5_000):
        check(device, rows_of(keys_like(kind, n), width), number_bytes=number_bytes)


@pytest.mark.parametrize("device", one_of_each("emulated", "cuda"))
def test_words_move_if_their_cells_are_much_larger_than_the_cache(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_for(device)
    keys = engine.from_host(np.arange(300, dtype="u8"))
    monkeypatch.setattr(word_parts, "FEWEST_PARTITIONED", 300)
    monkeypatch.setattr(engine, "window_bytes", 64)
    for n, cell_bytes, expected in ((299, 1 << 20, False), (300, 1 << 20, True), (300, 1 << 9, False)):
        batch = NumberBatch(n=n, keys=keys.ptr, key_bytes=8)
        assert (word_parts.moved(engine, batch, 1, cell_bytes, None) is not None) == expected
        assert (batch.keys != keys.ptr) == expected
    with refusing(engine, 1):
        batch = NumberBatch(n=300, keys=keys.ptr, key_bytes=8)
        assert word_parts.moved(engine, batch, 1, 1 << 20, None) is None


@pytest.mark.parametrize("device", one_of_each("emulated"))
@pytest.mark.parametrize("sketched", [False, True])
def test_distinct_words_are_estimated_if_cells_for_all_leave_the_cache(
    device: str, sketched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimated, estimate = list[int](), first_elements.estimate_distinct
    monkeypatch.setattr(first_elements, "estimate_distinct", lambda *args: (estimated.append(1), estimate(*args))[1])
    n = 10_000
    monkeypatch.setattr(engine_for(device), "window_bytes", WORD_CELLS[8].nbytes(n) - sketched)
    check(device, rows_of(keys_like("few", n), 8))
    assert len(estimated) == sketched


@pytest.mark.parametrize("device", ENGINES)
@pytest.mark.parametrize("width", [8, 12])
def test_too_few_cells_are_enlarged(device: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_elements, "estimate_distinct", lambda *_: 1)
    monkeypatch.setattr(first_elements, "FEWEST_SKETCHED", 0)
    monkeypatch.setattr(engine_for(device), "window_bytes", 0)
    check(device, rows_of(keys_like("different", 3_000), width))


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("width", [2, 8, 12])
@pytest.mark.parametrize("kind", ["few", "different"])
def test_refused_memory_is_an_error(device: str, width: int, kind: str, once: bool) -> None:
    rows = rows_of(keys_like(kind, 20_000 if device == "cpu" else 300), width)
    engine = engine_for(device)
    held, numbers = engine.from_host(rows), engine.allocate(8 * len(rows))
    for first in range(1, 100):
        with refusing(engine, first, once=once) as refusals:
            try:
                number(engine, held.ptr, width, len(rows), numbers=numbers.ptr, counts=True)
            except MemoryError:
                assert refusals.refused
                continue
        assert not refusals.refused
        return
    raise AssertionError("the call still asks for memory")


def test_a_thread_without_memory_for_its_table_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(keys_like("different", 20_000), 8)
    monkeypatch.setattr(word_numbers, "way_of", lambda *_: Way(1))
    monkeypatch.setattr(word_numbers, "distinct_of_sample", lambda *_: 1 << 50)
    monkeypatch.setattr(word_numbers, "min", lambda *given: max(given), raising=False)
    with pytest.raises(MemoryError, match="table of the distinct keys"):
        numbered("cpu", rows)


@pytest.mark.parametrize("way", [None, Way(2), Way(2, 6), Way(2, by_place=True)], ids=str)
@pytest.mark.parametrize("width", [4, 8])
def test_a_batch_that_changes_meanwhile_breaks_no_memory(
    monkeypatch: pytest.MonkeyPatch, way: Way | None, width: int
) -> None:
    """Numbers may be any, but each is that of a key, and each first element is one."""
    if way is not None:
        monkeypatch.setattr(word_numbers, "way_of", lambda *_: way)
    n, engine = 200_000, engine_for("cpu")
    keys = np.random.default_rng(5).integers(0, n // 2, n).astype(f"u{width}")
    numbers = np.empty(n, "u8")

    def change(random: np.random.Generator) -> None:
        keys[random.integers(0, n, 1000)] = random.integers(0, 1 << 31, 1000)

    with changed_meanwhile(change):
        for _ in range(5):
            at = keys.ctypes.data
            made = number(engine, at, width, n, numbers=numbers.ctypes.data, counts=True)
            assert made.counts is not None
            assert 1 <= made.size <= n and numbers.max() < made.size
            assert engine.to_host(made.firsts.ptr, np.uint32, made.size).max() < n
            assert engine.to_host(made.counts.ptr, np.uint32, made.size).sum() == n


def test_a_planted_bug_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks that are not merged in their order give other numbers."""
    warphash.set_num_threads(2)
    try:
        launch = word_numbers.Words.launch

        def without_renumbering(self: Any, entry: str, *rest: Any) -> None:
            if entry != "renumber":
                launch(self, entry, *rest)

        monkeypatch.setattr(word_numbers.Words, "launch", without_renumbering)
        with pytest.raises(AssertionError):
            check("cpu", rows_of(keys_like("few", 70_001), 8))
    finally:
        warphash.set_num_threads(None)
