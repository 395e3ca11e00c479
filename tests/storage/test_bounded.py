"""The parts of bounded tables: the sketch of frequencies, ranks of numbers, and the search of the least ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from support.types import Array
from warphash import DtypeError
from warphash.runtime.abi import Comparison, Ranks, ScoreBatch, kind_of
from warphash.runtime.devices import engine_for
from warphash.runtime.engine import Buffer, Engine
from warphash.runtime.source import BOUNDED
from warphash.storage.bounded.least import Numbers, keys_of_least_rank, keys_that_compare
from warphash.storage.bounded.numbers import COMPARISONS, bounded_by
from warphash.storage.bounded.ranks import rank_of
from warphash.storage.bounded.sketch import Sketch

engines = pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))

NUMBERS: dict[str, list[Any]] = {
    "f8": [0.0, -0.0, 1.5, -1.5, 5e-324, -5e-324, 1e308, -1e308, np.inf, -np.inf, np.nan, -np.nan, 3.0],
    "f4": [0.0, -0.0, 0.1, -0.1, 1e-45, -1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan, 2.0],
    "f2": [0.0, -0.0, 0.5, -0.5, 6e-8, -6e-8, 65504, -65504, np.inf, -np.inf, np.nan, 2.0],
    "i8": [0, 1, -1, 2**63 - 1, -(2**63), 5, -5],
    "i4": [0, 1, -1, 2**31 - 1, -(2**31), 5, -5],
    "i2": [0, 1, -1, 2**15 - 1, -(2**15), 5],
    "i1": [0, 1, -1, 127, -128, 5],
    "u8": [0, 1, 2**64 - 1, 2**63, 2**63 - 1, 5],
    "u4": [0, 1, 2**32 - 1, 2**31, 5],
    "u2": [0, 1, 65535, 5],
    "u1": [0, 1, 255, 128, 5],
    "?": [False, True],
}
"""The extremes of each type of numbers, and some between."""

BOUNDS = [0, 1, -1, 5, 2.5, -2.5, 0.1, 127, 255, 256, 2**31, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 1e300]
BOUNDS += [float("inf"), float("-inf"), float("nan"), -0.0, True, 10**400]


def as_ids(buffer: Buffer, n: int, engine: Engine) -> Array:
    return engine.to_host(buffer.ptr, np.uint64, n)


# ---- ranks of numbers
@engines
@pytest.mark.parametrize("dtype", NUMBERS)
def test_ranks_are_in_the_order_of_numbers(device: str, dtype: str) -> None:
    engine, numbers = engine_for(device), np.array(NUMBERS[dtype], dtype)
    rows, out = engine.from_host(numbers), engine.allocate(8 * len(numbers))
    batch = ScoreBatch(n=len(numbers), rows=rows.ptr, row_bytes=numbers.itemsize, kind=kind_of(numbers.dtype))
    engine.program(BOUNDED).run("order", Ranks(ranks=out.ptr), batch, len(numbers), None)
    ranks = as_ids(out, len(numbers), engine)
    assert ranks.tolist() == [rank_of(number) for number in numbers]
    for number, rank in zip(numbers, ranks, strict=True):
        less = numbers < number if not np.isnan(number) else np.zeros(len(numbers), bool)
        assert ((ranks < rank) == (less | (np.isnan(numbers) & ~np.isnan(number)))).all()
        assert ((ranks == rank) == (numbers == number)).all() or np.isnan(number)


# ---- comparisons
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_a_bound_of_any_size_compares_as_in_numpy(dtype: str, comparison: str) -> None:
    numbers = np.array(NUMBERS[dtype], dtype)
    for bound in BOUNDS:
        how = bounded_by(numbers.dtype, comparison, bound)
        assert _compared(numbers, how).tolist() == _by_numpy(numbers, comparison, bound).tolist(), (bound, how)


class Quantity(np.ndarray):
    """Numbers that can have a unit."""

    unit = "km"


@pytest.mark.parametrize(
    "bound",
    [
        *(np.ma.masked, np.ma.array(1, mask=True), np.ma.array([1], mask=[True]), np.array(1).view(Quantity)),
        *(np.array([1]), np.timedelta64(1, "ns"), np.datetime64(1, "ns"), np.array(1, "m8[ns]"), None, "1", 1j),
    ],
    ids=repr,
)
def test_what_is_no_bound(bound: Any) -> None:
    for dtype in ("i8", "f8"):
        with pytest.raises(DtypeError):
            bounded_by(np.dtype(dtype), ">", bound)
    assert bounded_by(np.dtype("i8"), ">", np.array(1)) == bounded_by(np.dtype("i8"), ">", np.int16(1))


@engines
@pytest.mark.parametrize("dtype", NUMBERS)
def test_keys_beside_numbers_that_compare(device: str, dtype: str) -> None:
    engine, numbers = engine_for(device), np.array(NUMBERS[dtype], dtype)
    keys = np.arange(100, 100 + len(numbers), dtype=np.uint64)
    held, rows = engine.from_host(keys), engine.from_host(numbers)
    for comparison in COMPARISONS:
        for bound in numbers.tolist():
            how = bounded_by(numbers.dtype, comparison, bound)
            assert not isinstance(how, bool) or np.isnan(bound)
            if isinstance(how, bool):
                continue
            asked = Numbers(rows.ptr, numbers.itemsize, kind_of(numbers.dtype), False, *how)
            chosen, n = keys_that_compare(engine, held, 8, asked, len(keys), None)
            found = np.sort(as_ids(chosen, n, engine)) if chosen else keys[:0]
            assert found.tolist() == keys[_by_numpy(numbers, comparison, bound)].tolist(), (comparison, bound)


def _by_numpy(numbers: Array, comparison: str, bound: Any) -> Array:
    """Exact comparisons of integers; those of floats with the bound rounded to their type."""
    if numbers.dtype.kind == "f":
        with np.errstate(over="ignore"):
            try:
                bound = numbers.dtype.type(bound)
            except OverflowError:
                bound = numbers.dtype.type(np.inf if bound > 0 else -np.inf)
        with np.errstate(invalid="ignore"):
            return _operator(comparison)(numbers, bound)
    return np.array([_operator(comparison)(number, bound) for number in numbers.tolist()], bool)


def _operator(comparison: str) -> Any:
    names = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">=": "ge", ">": "gt"}
    return getattr(__import__("operator"), names[comparison])


def _compared(numbers: Array, how: tuple[Comparison, int] | bool) -> Array:
    """What the kernel answers: a comparison of ranks, in which NaN is unequal to everything."""
    if isinstance(how, bool):
        return np.full(len(numbers), how)
    comparison, bound = how
    text = next(name for name, it in COMPARISONS.items() if it == comparison)
    ranks = [rank_of(number) for number in numbers]
    is_float = numbers.dtype.kind == "f"
    return np.array(
        [
            comparison == Comparison.UNEQUAL if is_float and 0 in (rank, bound) else _operator(text)(rank, bound)
            for rank in ranks
        ]
    )


# ---- the least ranks
def some_ranks(kind: str, n: int) -> Array:
    random = np.random.default_rng(n)
    if kind == "equal":
        return np.full(n, 7, np.uint64)
    if kind == "few":
        return random.integers(0, 3, n).astype(np.uint64)
    if kind == "clock":
        return random.integers(1, 5000, n).astype(np.uint64)
    if kind == "greatest":
        return np.uint64(2**64 - 1) - random.integers(0, 2, n).astype(np.uint64)
    return random.integers(0, 2**64, n, dtype=np.uint64)


@engines
@pytest.mark.parametrize("kind", ["equal", "few", "clock", "greatest", "random"])
def test_exactly_the_least_are_chosen(device: str, kind: str) -> None:
    engine = engine_for(device)
    for n in (2, 64, 65, 1000, *([100_000] if device != "emulated" else [])):
        ranks, keys = some_ranks(kind, n), np.arange(n, dtype=np.uint64)
        held, ranked = engine.from_host(keys), engine.from_host(ranks)
        for k in {1, n // 3 or 1, n // 2, n - 1}:
            buffer, most = keys_of_least_rank(engine, held, 8, ranked, n, k, None)
            chosen = as_ids(buffer, k, engine)
            assert len(set(chosen.tolist())) == k
            assert np.sort(ranks[chosen]).tolist() == np.sort(ranks)[:k].tolist()
            assert np.sort(ranks)[k - 1] <= most <= np.sort(ranks)[k], "it parts those who leave from the others"


@engines
def test_chosen_keys_of_any_width_are_copied_whole(device: str) -> None:
    engine, keys = engine_for(device), np.repeat(np.arange(250, dtype="u1"), 3)
    held, ranked = engine.from_host(keys), engine.from_host(np.arange(250, dtype="u8")[::-1].copy())
    buffer, _ = keys_of_least_rank(engine, held, 3, ranked, 250, 100, None)
    chosen = engine.to_host(buffer.ptr, "u1", 300).reshape(-1, 3)
    assert sorted(chosen[:, 0].tolist()) == list(range(150, 250)) and (chosen == chosen[:, :1]).all()


# ---- frequencies
def frequencies(sketch: Sketch, keys: Array, engine: Engine) -> Array:
    held, out = engine.from_host(keys), engine.allocate(8 * len(keys))
    sketch.rank(held.ptr, len(keys), out.ptr, None)
    return as_ids(out, len(keys), engine) >> np.uint64(56)


def record(sketch: Sketch, keys: Array, engine: Engine, flags: Array | None = None) -> None:
    held = engine.from_host(keys)
    flagged = None if flags is None else engine.from_host(flags)
    sketch.record(held.ptr, len(keys), None, 0 if flagged is None else flagged.ptr)


@engines
def test_a_frequency_is_never_too_low(device: str) -> None:
    """Counts of other keys may be added, as long as the keys of one batch differ."""
    engine, keys = engine_for(device), np.arange(400, dtype="u8")
    sketch = Sketch(engine, 400, 8, seed=5)
    for turn in range(1, 13):
        record(sketch, keys[: 400 // turn], engine)
    exact = np.array([sum(key < 400 // turn for turn in range(1, 13)) for key in range(400)])
    estimated = frequencies(sketch, keys, engine)
    assert (estimated >= exact).all() and np.mean(estimated == exact) > 0.97
    assert np.mean(frequencies(sketch, np.arange(10_000, 11_000, dtype="u8"), engine) == 0) > 0.97


@engines
def test_counts_are_full_at_255_and_halved_after_a_sample(device: str) -> None:
    engine, key = engine_for(device), np.array([9], "u8")
    sketch = Sketch(engine, 100, 8, seed=5)
    for turn in range(300):
        record(sketch, key, engine)
        assert frequencies(sketch, key, engine)[0] == min(turn + 1, 255)
    record(sketch, np.arange(1000, 1000 + 128 * 100 - 301, dtype="u8"), engine)
    assert frequencies(sketch, key, engine)[0] == 255
    record(sketch, np.array([5000], "u8"), engine)
    assert frequencies(sketch, key, engine)[0] == 127


@engines
def test_only_keys_with_a_flag_are_recorded(device: str) -> None:
    engine, keys = engine_for(device), np.arange(100, dtype="u8")
    sketch = Sketch(engine, 1000, 8, seed=5)
    record(sketch, keys, engine, (keys % 3 == 0).astype("u1"))
    assert (frequencies(sketch, keys, engine) == (keys % 3 == 0)).all()


@engines
def test_a_copy_of_a_sketch_counts_for_itself(device: str) -> None:
    engine, keys = engine_for(device), np.arange(50, dtype="u8")
    sketch = Sketch(engine, 1000, 8, seed=5)
    record(sketch, keys, engine)
    twin = sketch.copy(None)
    record(twin, keys, engine)
    assert (frequencies(sketch, keys, engine) == 1).all() and (frequencies(twin, keys, engine) == 2).all()
    sketch.clear()
    assert (frequencies(sketch, keys, engine) == 0).all() and (frequencies(twin, keys, engine) == 2).all()


@engines
@pytest.mark.parametrize("width", [1, 3, 4, 8, 24])
def test_keys_of_any_width_are_counted(device: str, width: int) -> None:
    engine = engine_for(device)
    sketch = Sketch(engine, 1000, width, seed=5)
    keys = np.zeros((40, width), "u1")
    keys[:, -1] = np.arange(40)
    record(sketch, keys, engine)
    held, out = engine.from_host(keys), engine.allocate(8 * 40)
    sketch.rank(held.ptr, 40, out.ptr, None)
    assert (as_ids(out, 40, engine) >> np.uint64(56) == 1).all() and len(set(as_ids(out, 40, engine).tolist())) == 40
