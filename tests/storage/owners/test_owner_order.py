"""Owners of keys beside a Python implementation of the function, and batches in their order beside NumPy's sort."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import warphash
from support.engines import one_of_each
from support.faults import at_each_allocation, at_each_line
from support.owners import Held, check_order, random_rows, room, shard_of, shards
from support.refusals import held_memory
from warphash.errors import ParameterError, ShapeError
from warphash.runtime.devices import engine_for
from warphash.runtime.engine import Engine
from warphash.storage.owners.owner_order import SHARDS, OwnerOrder

DEVICES = one_of_each("cpu", "emulated", "cuda")
KNOWN_SHARDS = {
    1: (2506, 2188, 603),
    2: (2506, 1410, 4005),
    3: (2506, 3908, 3315),
    4: (2506, 3702, 3827),
    7: (2506, 3171, 2306),
    8: (2506, 973, 1575),
    12: (1593, 2980, 742),
    16: (1593, 2565, 3854),
    24: (869, 3585, 870),
    128: (2023, 1385, 1633),
}
"""By the width of a key: the shards of the bytes 0, 0, …; of 255, 255, …; and of 1, 2, …. They are part of the format
of checkpoints, and never change."""

WIDTHS = tuple(KNOWN_SHARDS)


@pytest.fixture(params=DEVICES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return engine_for(request.param)


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    warphash.set_num_threads(request.param)
    yield
    warphash.set_num_threads(None)


def some(engine: Engine, n: int) -> int:
    """So many elements, or a tenth of them where kernels are emulated."""
    return n // 10 if engine.device == "emulated" else n


# ---- which rank owns a key
@pytest.mark.parametrize("width", WIDTHS)
def test_known_shards(engine: Engine, width: int) -> None:
    keys = np.array([[0] * width, [255] * width, range(1, width + 1)], np.uint8)
    assert tuple(shards(engine, keys).tolist()) == KNOWN_SHARDS[width]


@pytest.mark.parametrize("skew", [0, 1, 2, 4])
@pytest.mark.parametrize("width", WIDTHS)
def test_shards_beside_python(engine: Engine, width: int, skew: int) -> None:
    keys = random_rows(70, width)
    assert shards(engine, keys, skew).tolist() == [shard_of(key.tobytes()) for key in keys]


def test_a_signed_key_is_its_bytes(engine: Engine) -> None:
    """Of an int32, the upper half of the word is 0, also if the key is negative."""
    keys = np.array([-1, -(2**31), 5], np.int32)
    expected = [shard_of(int(key).to_bytes(8, "little")) for key in keys.view(np.uint32)]
    assert shards(engine, keys.view(np.uint8).reshape(3, 4)).tolist() == expected


def test_ranks_own_even_shares() -> None:
    """Also keys that differ in few bits."""
    keys = np.arange(100_000, dtype=np.int64)
    found = shards(engine_for("cpu"), keys.view(np.uint8).reshape(-1, 8)).astype(np.int64)
    for ranks in (2, 7, 64):
        counts = np.bincount(found * ranks // SHARDS, minlength=ranks)
        shares = np.bincount(np.arange(SHARDS) * ranks // SHARDS) * len(keys) / SHARDS
        assert (abs(counts - shares) < 6 * np.sqrt(shares)).all()


# ---- the order of owners
@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 8, 9, 32, 33, 64, 256])
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("n", [1, 31, 4096, 8193, 100_003])
def test_batches_of_words(engine: Engine, n: int, width: int, ranks: int) -> None:
    n = n if n < 10_000 else some(engine, n)
    check_order(engine, random_rows(n, width), ranks, [random_rows(n, 4)])


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("skew", [0, 1, 4])
@pytest.mark.parametrize("width", WIDTHS)
def test_keys_of_any_width(engine: Engine, width: int, skew: int) -> None:
    n = some(engine, 41_003)
    check_order(engine, random_rows(n, width), 7, [random_rows(n, 8)], skew)


@pytest.mark.parametrize("skew", [0, 1, 2, 4, 8, 40])
@pytest.mark.parametrize("ranks", [3, 20, 100])
def test_columns_of_any_width(engine: Engine, ranks: int, skew: int) -> None:
    n = some(engine, 20_011)
    widths = (0, 1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32, 40, 66, 128)
    check_order(engine, random_rows(n, 8), ranks, [random_rows(n, width) for width in widths], skew)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("ranks", [2, 9, 256])
def test_all_keys_have_one_owner(engine: Engine, ranks: int) -> None:
    n = some(engine, 60_000)
    numbers = np.arange(n, dtype=np.uint64).view(np.uint8).reshape(n, 8)
    check_order(engine, np.resize(random_rows(1, 8), (n, 8)), ranks, [numbers])


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("run_rows", [2, 16, 64])
@pytest.mark.parametrize("ranks", [1, 3, 20, 256])
@pytest.mark.parametrize("n", [1, 37, 20_011])
def test_runs_begin_at_whole_lines(engine: Engine, n: int, ranks: int, run_rows: int) -> None:
    n = some(engine, n)
    check_order(engine, random_rows(n, 8), ranks, [random_rows(n, 4), random_rows(n, 5)], run_rows=run_rows)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("run_rows", [1, 16])
@pytest.mark.parametrize("number", [1, 3, 16])
@pytest.mark.parametrize("ranks", [1, 3, 7, 40, 240])
@pytest.mark.parametrize(("width", "skew"), [(8, 0), (4, 0), (8, 2), (3, 0), (1, 0)])
def test_keys_apart(engine: Engine, width: int, skew: int, ranks: int, number: int, run_rows: int) -> None:
    n, chance = some(engine, 20_011), np.random.default_rng(number)
    keys, hot = random_rows(n, width), random_rows(number, width)
    is_hot = chance.random(n) < 0.7
    keys[is_hot] = hot[chance.integers(0, number, is_hot.sum())]
    columns = [random_rows(n, each) for each in (1, 4, 8, 12, 16, 24)]
    check_order(engine, keys, ranks, columns, skew, run_rows, apart=np.unique(hot, axis=0))


@pytest.mark.parametrize("n", [1, 5_000])
def test_keys_apart_that_no_element_has_get_no_row(engine: Engine, n: int) -> None:
    keys = random_rows(n, 8)
    keys[n // 2 :] = keys[0]
    check_order(engine, keys, 3, [random_rows(n, 4)], apart=np.concatenate([random_rows(3, 8), keys[:1]]))


def test_all_elements_have_a_key_apart(engine: Engine) -> None:
    keys = np.resize(random_rows(2, 8), (5_000, 8))
    check_order(engine, keys, 5, [random_rows(5_000, 4)], apart=random_rows(2, 8))


@pytest.mark.parametrize(("ranks", "number"), [(2, 17), (250, 7)])
def test_too_many_keys_apart_are_refused(ranks: int, number: int) -> None:
    with pytest.raises(ParameterError, match=f"16 keys apart, .* not {number} and {ranks} ranks"):
        OwnerOrder(engine_for("cpu"), 0, 8, 1, ranks, 0, None, apart=np.arange(number, dtype=np.uint64))


@pytest.mark.parametrize("ranks", [1, 256])
def test_no_keys(engine: Engine, ranks: int) -> None:
    check_order(engine, random_rows(0, 8), ranks, [random_rows(0, 4)])


def test_keys_that_change_behind_the_count_move_by_their_first_owners(engine: Engine) -> None:
    """A caller's other thread may write to the keys: nothing is written outside of a rank's places."""
    n = 5_000
    before, after = random_rows(n, 8), ~random_rows(n, 8)
    held, moved, counts = Held(engine, before), room(engine, n, 8), room(engine, 7, 8)
    order = OwnerOrder(engine, held.ptr, 8, n, 7, counts.ptr, None)
    owners = shards(engine, before).astype(np.int64) * 7 // SHARDS
    replaced = engine.from_host(after)
    engine.copy(held.ptr, replaced.ptr, 8 * n)
    order.move([(held.ptr, moved.ptr, 8)], None)
    assert (moved.read() == after[np.argsort(owners, kind="stable")]).all()


@pytest.mark.parametrize("ranks", [0, 257])
def test_too_many_ranks_are_refused(ranks: int) -> None:
    with pytest.raises(ParameterError, match=f"1 to 256 owners, not {ranks}"):
        OwnerOrder(engine_for("cpu"), 0, 8, 1, ranks, 0, None)


@pytest.mark.parametrize(("width", "n", "message"), [(8, 2**32, "4,294,967,29. keys"), (0, 5, "at least one byte")])
def test_keys_that_no_order_has_are_refused(width: int, n: int, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        OwnerOrder(engine_for("cpu"), 0, width, n, 2, 0, None)


# ---- faults
def a_move(engine: Engine) -> Callable[[], None]:
    """A whole way there and back, of a batch that exists before."""
    n = 9_000
    given, moved, counts = Held(engine, random_rows(n, 8)), room(engine, n, 8), room(engine, 40, 8)

    def call() -> None:
        order = OwnerOrder(engine, given.ptr, 8, n, 40, counts.ptr, None)
        order.move([(given.ptr, moved.ptr, 8)], None)
        order.restore([(moved.ptr, given.ptr, 8)], None)

    return call


def test_refused_memory_is_an_error_and_nothing_stays(engine: Engine) -> None:
    call, said = a_move(engine), list[str]()
    with held_memory(engine) as held:
        for _, error, refused in at_each_allocation(lambda: None, lambda _: call(), once=True, device=engine.device):
            gc.collect()
            assert held.now == 0 and bool(error) == refused
            said.append(error)
    assert len(said) == 2


def test_an_interrupt_leaves_no_memory(engine: Engine) -> None:
    call, interrupts = a_move(engine), 0
    with held_memory(engine) as held:
        for _, place, done in at_each_line(lambda: None, lambda _: call()):
            gc.collect()
            assert held.now == 0 and done == (not place)
            interrupts += bool(place)
    assert interrupts > 20
