"""Stadium hashing: the places of keys and tickets, and the device-independent figures of the paper (section III)."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from emulated.scenarios import emulation
from support.engines import missing, one_of_each
from support.inside import storage_of
from support.planting import planted_among
from warphash import HashMap, HashSet, TableFull
from warphash.storage.tickets.primes import next_prime

TICKET_BITS = (1, 2, 4, 8)
DEVICES = one_of_each("cpu", "emulated")
FIRST, STEP, INFO = 0xE9D58A6B, 0x6E5B9D8A, 0xB5297A4D


def made(key: str, value: str | None, **options: Any) -> Any:
    options = {"design": "stadium", "seed": 5, **options}
    return HashSet(key, **options) if value is None else HashMap(key, value, **options)


def some_keys(n: int, dtype: str, seed: int = 1) -> Any:
    """Distinct random keys."""
    bits = 8 * np.dtype(dtype).itemsize
    drawn = np.random.default_rng(seed).integers(0, 1 << bits, n + n // 4 + 64, np.uint64, endpoint=False).astype(dtype)
    distinct = np.unique(drawn)
    assert len(distinct) >= n
    return np.random.default_rng(seed + 1).permutation(distinct)[:n]


# ---- where keys and tickets are
def hash_of(key: int, key_bytes: int, multiplier: int) -> int:
    """Figure 5, lines 1 to 6."""
    mask = (1 << 8 * key_bytes) - 1
    for j in range(key_bytes, 0, -1):
        key = (((key >> 8) ^ key) * multiplier + j) & mask
    return key & 0xFFFFFFFF


class Walk:
    """The slots of a key, in order: Figure 5, lines 7 to 15."""

    def __init__(self, key: int, key_bytes: int, slots: int) -> None:
        self.slots = slots
        self.at = hash_of(key, key_bytes, FIRST) * slots >> 32
        self.step = 1 + (hash_of(key, key_bytes, STEP) * (slots - 1) >> 32)
        self.info = hash_of(key, key_bytes, INFO)

    def __iter__(self) -> Walk:
        return self

    def __next__(self) -> int:
        at, self.at = self.at, (self.at + self.step) % self.slots
        return at


def memory_of(table: Any) -> tuple[Any, Any, int]:
    """The bytes of each slot, the ticket of each slot, and the constant that keys are mixed with."""
    array = storage_of(table).store.array
    bits = array.parameters["ticket_bits"]
    slots = array.engine.to_host(array.table.slots, np.uint8, array.slots * array.spec.slot_bytes)
    words = array.engine.to_host(array.table.board, np.uint32, -(-array.slots * bits // 32))
    tickets = (words[:, None] >> np.arange(0, 32, bits, dtype=np.uint32)).ravel() & ((1 << bits) - 1)
    return slots.reshape(array.slots, -1), tickets[: array.slots], array.table.multiplier[1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ticket_bits", TICKET_BITS)
@pytest.mark.parametrize("key", ["u4", "u8"])
def test_keys_lie_on_their_walks_and_tickets_show_their_info_bits(device: str, ticket_bits: int, key: str) -> None:
    table = made(key, "u4", device=device, capacity=250, load_factor=0.9, ticket_bits=ticket_bits)
    keys = some_keys(250, key)
    table.insert(keys, np.arange(250, dtype="u4"), assume_unique=True)
    slots, tickets, constant = memory_of(table)
    booked = tickets & 1 == 0
    assert booked.sum() == 250 and (tickets[~booked] == (1 << ticket_bits) - 1).all()
    width = np.dtype(key).itemsize
    held = slots[:, :width].copy().view(key).ravel()
    assert set(held[booked].tolist()) == set(keys.tolist())
    for number in np.flatnonzero(booked).tolist():
        walk = Walk(int(held[number]) ^ constant & (1 << 8 * width) - 1, width, len(tickets))
        assert tickets[number] >> 1 == walk.info & ((1 << ticket_bits - 1) - 1)
        for at in walk:
            assert booked[at], "a free slot was passed"
            if at == number:
                break


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ticket_bits", TICKET_BITS)
def test_the_board_has_as_many_bits_for_a_slot_as_a_ticket(device: str, ticket_bits: int) -> None:
    for key, value, pair_bytes in (("u4", "u4", 8), ("u8", "u8", 16), ("V24", "V40", 80), ("u4", "V12", 16)):
        table = made(key, value, device=device, capacity=5000, ticket_bits=ticket_bits)
        slots, nbytes = table.stats().slots, table.nbytes
        assert nbytes == pytest.approx(slots * (pair_bytes + ticket_bits / 8), abs=256 + 4)


def test_the_number_of_slots_is_prime() -> None:
    sieve = [n for n in range(2, 2000) if all(n % d for d in range(2, math.isqrt(n) + 1))]
    assert [n for n in range(2, 2000) if next_prime(n) == n] == sieve
    assert next_prime(0) == next_prime(2) == 2 and next_prime(1 << 31) == 2147483659
    assert next_prime(3215031751) == 3215031767, "a number that deceives the test with bases 2, 3, 5 and 7"


# ---- what tables hold
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ticket_bits", TICKET_BITS)
@pytest.mark.parametrize("capacity", [1, 2, 3, 100])
def test_every_slot_can_be_filled(device: str, ticket_bits: int, capacity: int) -> None:
    options = {"capacity": capacity, "load_factor": 1.0, "on_full": "raise", "ticket_bits": ticket_bits}
    table = made("u8", "u8", device=device, **options)
    keys = some_keys(table.stats().slots + 1, "u8")
    assert table.insert(keys[:-1], keys[:-1], assume_unique=True).all() and table.load_factor == 1.0
    with pytest.raises(TableFull) as caught:
        table.insert(keys[-3:], keys[-3:])
    assert caught.value.keys.tolist() == keys[-1:].tolist() and len(table) == len(keys) - 1
    values, found = table.find(keys)
    assert found[:-1].all() and not found[-1] and (values[:-1] == keys[:-1]).all()
    assert table.probe_counts(keys[-1:])[0] == table.stats().slots, "an absent key is looked for in every slot"
    table.check()
    assert table.erase(keys[:1]).all() and table.insert(keys[-1:], keys[-1:]).all()
    assert table.contains(keys[1:]).all() and not table.contains(keys[:1])[0]
    table.check()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ticket_bits", TICKET_BITS)
def test_searches_go_on_behind_emptied_slots_and_stop_at_others(device: str, ticket_bits: int) -> None:
    table = made("u4", None, device=device, capacity=450, load_factor=0.9, ticket_bits=ticket_bits)
    keys = some_keys(900, "u4")
    keys, absent = keys[:450], keys[450:]
    before = table.nbytes
    table.insert(keys)
    probes = table.probe_counts(np.concatenate([keys[200:], absent]))
    table.erase(keys[:200])
    assert table.contains(keys[200:]).all() and not table.contains(keys[:200]).any()
    assert (table.probe_counts(np.concatenate([keys[200:], absent])) == probes).all(), "no walk has changed"
    assert table.nbytes - before == pytest.approx(table.stats().slots / 8, abs=4), "a bit for each slot"
    table.check()
    twin = table.copy()
    assert twin.contains(keys[200:]).all() and not twin.insert(keys[200:]).any()
    twin.check()
    table.clear()
    assert table.nbytes == before and table.probe_counts(keys).max() == 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "value"), [("V24", "V40"), ("u4", "V12"), ("S5", "i2"), ("u8", "f4"), ("V100", None)])
def test_keys_and_values_of_any_width_lie_in_place(device: str, key: str, value: str | None) -> None:
    table = made(key, value, device=device, capacity=300)
    ids = np.arange(400)
    width = np.dtype(key).itemsize
    keys = np.frombuffer(b"".join(str(number).encode().rjust(width, b"k") for number in ids), key)
    if key[0] not in "SV":
        keys = ids.astype(key)
    array = storage_of(table).store.array
    assert storage_of(table).nbytes == array.nbytes, "there are no rows beside the table"
    if value is None:
        assert table.insert(keys[:300]).all()
    else:
        values = ids.astype(value) if value[0] != "V" else ids.astype(f"S{value[1:]}").view(value)
        table.assign(np.repeat(keys[:300], 2), np.repeat(values[:300], 2))
        found_values, _ = table.find(keys)
        assert (found_values[:300] == values[:300]).all()
    assert (table.contains(keys) == (ids < 300)).all()
    table.check()


# ---- the paper's figures
KEYS = 2_000_000


@cache
def present_and_absent() -> tuple[Any, Any]:
    """Keys of 64 random bits, which do not repeat, and as many others."""
    keys = np.random.default_rng(1).integers(0, 1 << 64, 2 * KEYS, np.uint64)
    return keys[:KEYS], keys[KEYS:]


def filled(load_factor: float, ticket_bits: int, functions: str = "rounds") -> tuple[Any, Any, Any]:
    """A table with the load factor, its keys, and as many absent ones."""
    keys, absent = present_and_absent()
    options = {"load_factor": load_factor, "ticket_bits": ticket_bits, "functions": functions}
    table = made("u8", None, device="cpu", capacity=KEYS, count_probes=True, on_full="raise", **options)
    table.insert(keys, assume_unique=True)
    assert table.load_factor == pytest.approx(load_factor, rel=1e-4)
    return table, keys, absent


def reads(table: Any, keys: Any) -> Any:
    """Slots that `find` reads for each key."""
    counts = np.empty(len(keys), np.uint32)
    storage_of(table).counts(keys.ctypes.data, len(keys), counts.ctypes.data, None, entry="read_counts")
    return counts


@pytest.mark.parametrize("ticket_bits", TICKET_BITS)
@pytest.mark.parametrize("alpha", [0.8, *(pytest.param(alpha, marks=pytest.mark.slow) for alpha in (0.85, 0.9, 0.95))])
@pytest.mark.parametrize("functions", ["rounds", pytest.param("family", marks=pytest.mark.slow)])
def test_probes_and_reads_are_those_of_double_hashing(alpha: float, ticket_bits: int, functions: str) -> None:
    """Info bits rule out all but one in 2^(w - 1) slots with another key; tickets are probed as by uniform hashing."""
    table, keys, absent = filled(alpha, ticket_bits, functions)
    build, miss, info = math.log(1 / (1 - alpha)) / alpha, 1 / (1 - alpha), 2.0 ** (1 - ticket_bits)
    within = {"rel": 0.01}
    assert table.stats().insert_probes == pytest.approx(build, **within)
    assert table.probe_counts(keys).mean() == pytest.approx(build, **within)
    assert table.probe_counts(absent).mean() == pytest.approx(miss, **within)
    assert reads(table, keys).mean() == pytest.approx(1 + (build - 1) * info, **within)
    assert reads(table, absent).mean() == pytest.approx((miss - 1) * info, **within)


def test_the_paper_s_own_sizes_of_the_board() -> None:
    """Section III-B: 32 / w tickets in a word, so the board is w / 64 and w / 128 of pairs of 8 and of 16 bytes."""
    shares = {
        width: [made(width, width, device="cpu", capacity=1 << 20, ticket_bits=bits) for bits in TICKET_BITS]
        for width in ("u4", "u8")
    }
    for width, tables in shares.items():
        pair = 2 * np.dtype(width).itemsize
        share = [table.nbytes / (table.stats().slots * pair) - 1 for table in tables]
        assert share == pytest.approx([bits / 8 / pair for bits in TICKET_BITS], rel=0.01)


@pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")
@pytest.mark.parametrize("ticket_bits", TICKET_BITS)
def test_an_insert_of_unique_keys_reads_no_slot_and_writes_one(ticket_bits: int) -> None:
    """Section III, Efficient Out-of-core Performance: the expensive write to the table happens only once."""

    no_look = planted_among(
        "WARPHASH_ENTRIES(Stadium, ", "++reads;", 'WARPHASH_ASSERT(false && "a slot is read"); ++reads;'
    )
    keys = some_keys(300, "u8")
    with emulation(no_look, seed=1):
        table = made("u8", "u8", device="emulated", capacity=300, load_factor=0.95, ticket_bits=ticket_bits)
        before, _, _ = memory_of(table)
        table.insert(keys, keys, assume_unique=True)
        after, tickets, _ = memory_of(table)
    written = (before != after).any(axis=1)
    assert (written == (tickets & 1 == 0)).all() and written.sum() == 300


@pytest.mark.parametrize("functions", ["rounds", "family"])
@pytest.mark.parametrize("dtype", ["u4", "u8"])
def test_consecutive_keys_are_spread(dtype: str, functions: str) -> None:
    table = made(dtype, None, device="cpu", capacity=200_000, load_factor=0.9, functions=functions)
    keys = np.arange(200_000, dtype=dtype)
    table.insert(keys, assume_unique=True)
    assert table.probe_counts(keys).mean() < 1.05 * math.log(10) / 0.9
    assert table.probe_counts(keys + np.array(200_000, dtype)).mean() < 1.1 * 10


@pytest.mark.parametrize("on_full", ["raise", "grow"])
@pytest.mark.parametrize("design", ["stadium", "linear_probing"])
def test_keys_that_come_and_go_leave_no_long_searches(design: str, on_full: str) -> None:
    """Every slot is emptied several times; a search that no unused slot ends would read all of them."""
    table = made("u4", "u4", device="cpu", design=design, capacity=4000, load_factor=0.8, on_full=on_full)
    keys = np.random.default_rng(3).permutation(np.arange(1 << 17, dtype="u4"))
    for batch in np.split(keys[:96_000], 24):
        table.insert(batch, batch)
        assert len(table) == 4000 and table.stats().slots < 8000
        assert table.probe_counts(keys[96_000:]).mean() < 20
        table.erase(batch)
    table.check()
