"""Bugs planted in the schedules, and in designs whose buckets are neighbours in one array."""

from __future__ import annotations

from emulated.planted import Bug
from emulated.scenarios import (
    copies_of_new_keys,
    erased_and_inserted_again,
    evictions,
    hot_keys,
    small_batches,
    sums_of_new_keys,
)

__all__ = ["BUGS"]

BUGS = [
    Bug(
        "a slot is taken in two steps",
        "const Item old = compare_exchange(slot, empty(), item);",
        "const Item old = load_slot<false>(slot); if (old.key == kEmpty) exchange(slot, item);",
        copies_of_new_keys,
    ),
    Bug(
        "a tombstone is taken in two steps",
        "compare_exchange(slot, tombstone(), item).key == kTombstone;",
        "load_slot<false>(slot).key == kTombstone && (exchange(slot, item), true);",
        erased_and_inserted_again,
    ),
    Bug(
        "settle fills other buckets than the first",
        "if (!first) {",
        "if (!first && (s.element % 2 || seen.vacant == S::kSlots)) {",
        copies_of_new_keys,
        parameters={"early_exit": False},
    ),
    Bug(
        "settle does not look for copies that were faster",
        "return S::occupy(S::at(t, s.probe.bucket) + seen.vacant, pair, combined) && end(s, Outcome::kInserted);",
        "if (!S::occupy(S::at(t, s.probe.bucket) + seen.vacant, pair, combined)) s.outcome = Outcome::kLeftover;"
        " else s.outcome = Outcome::kInserted; return true;",
        copies_of_new_keys,
    ),
    Bug(
        "two elements of one key win their claim",
        "const u32 owner = compare_exchange_word(claim, kNowhere, s.element);",
        "const u32 owner = load_relaxed(claim); if (owner == kNowhere) store_relaxed(claim, s.element);",
        copies_of_new_keys,
        design="cuckoo",
        parameters={},
    ),
    Bug(
        "a victim is taken in two steps",
        "p.hand = exchange(S::at(t, p.bucket) + victim, p.hand);",
        "const Item out = load_slot<false>(S::at(t, p.bucket) + victim);"
        " exchange(S::at(t, p.bucket) + victim, p.hand); p.hand = out;",
        evictions,
    ),
    Bug(
        "a sum is read, added to and written",
        "return atomic_add(at, operand);",
        "return store_relaxed(at, static_cast<Word>(load_relaxed(at) + operand));",
        hot_keys,
    ),
    Bug(
        "a minimum is written unseen",
        "const Word seen = compare_exchange_word(at, old, wanted);",
        "store_relaxed(at, wanted); const Word seen = old;",
        hot_keys,
    ),
    Bug(
        "a key is erased twice",
        "return compare_exchange(slot, seen, tombstone()).key == seen.key;",
        "exchange(slot, tombstone()); return true;",
        erased_and_inserted_again,
    ),
    Bug(
        "a key is in its column before its value is",
        "const Word first = combined ? Base::kBusy : pair.key;",
        "const Word first = pair.key;",
        sums_of_new_keys,
        design="iceberg",
        word="u8",
        parameters={"slots_per_bucket": 16},
    ),
    Bug(
        "a busy slot of a column is let go before its value is there",
        "store_relaxed(value_of(slot), pair.value);\n    if (combined) store_release(&slot->key, pair.key);",
        "if (combined) store_release(&slot->key, pair.key);\n    store_relaxed(value_of(slot), pair.value);",
        sums_of_new_keys,
        design="linear_probing",
        word="u8",
        parameters={"slots_per_bucket": 16},
    ),
    Bug(
        "a busy slot of a column is passed by",
        "static constexpr Word kVacantFrom = Base::kBusy;",
        "static constexpr Word kVacantFrom = Base::kTombstone;",
        sums_of_new_keys,
        design="iceberg",
        word="u8",
        parameters={"slots_per_bucket": 16},
    ),
    Bug(
        "two erase one key of a column",
        "return compare_exchange(slot, seen, tombstone()).key == seen.key;",
        "store_relaxed(&slot->key, kTombstone); return true;",
        erased_and_inserted_again,
        design="power_of_two",
        word="u8",
        parameters={"slots_per_bucket": 32},
    ),
    Bug(
        "places are handed out before the counts are there",
        "if (lane() == 0) counts[warp] = bit_count(votes);\n  block_barrier();",
        "if (lane() == 0) counts[warp] = bit_count(votes);",
        copies_of_new_keys,
    ),
    Bug(
        "places are read before they are reserved",
        "if (thread_in_block() == 0 && total) base = fetch_add(length, static_cast<u64>(total));\n  block_barrier();",
        "if (thread_in_block() == 0 && total) base = fetch_add(length, static_cast<u64>(total));",
        copies_of_new_keys,
    ),
    Bug(
        "what a block shares is shared by all",
        'static __attribute__((section("warphash_shared")))',
        "static",
        copies_of_new_keys,
    ),
    Bug("lanes leave their warp when they are done", "while (any(pending)) {", "while (pending) {", copies_of_new_keys),
    Bug(
        "lanes take a collective apart",
        "const u32 votes = ballot(wanted);",
        "const u32 votes = lane() ? ballot(wanted) : shuffle(0u, 0, 32);",
        copies_of_new_keys,
    ),
    Bug(
        "the buckets begin a bucket late",
        "return bucket_of(reinterpret_cast<void*>(t.slots), bucket);",
        "return bucket_of(reinterpret_cast<void*>(t.slots), bucket + 1);",
        copies_of_new_keys,
    ),
    Bug(
        "a small batch is begun before its claims are",
        "claims[c] = kNowhere;\n  block_barrier();",
        "claims[c] = kNowhere;",
        small_batches,
    ),
    Bug(
        "a bucket's second part is left out",
        "seen.ends || part + 1 == Reader::kParts;",
        "true;",
        copies_of_new_keys,
        parameters={"slots_per_bucket": 32},
        word="u8",
    ),
    Bug(
        "slots are counted from the part that they are in",
        "mine.hit = before + seen.hit",
        "mine.hit = seen.hit",
        erased_and_inserted_again,
        parameters={"slots_per_bucket": 32},
        word="u8",
    ),
    Bug(
        "a slot is released before it is written",
        "store_relaxed(&p->high, desired.high);\n  store_release(&p->low, desired.low);",
        "store_release(&p->low, desired.low);\n  store_relaxed(&p->high, desired.high);",
        hot_keys,
        design="cuckoo",
        word="u8",
        parameters={},
        locks=True,
    ),
    Bug(
        "an eviction does not wait for a busy slot",
        "const u64 seen = exchange_word(&p->low, kBusyKey);\n    if (seen == kBusyKey) continue;",
        "const u64 seen = exchange_word(&p->low, kBusyKey);",
        evictions,
        word="u8",
        locks=True,
    ),
    Bug(
        "a reader passes a busy slot by",
        "if (__builtin_bit_cast(Halves, slot).low != kBusyKey) return slot;",
        "return slot;",
        copies_of_new_keys,
        word="u8",
        locks=True,
    ),
]
