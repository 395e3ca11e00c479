"""Each race that a kernel guards against, without the guard: the scenarios must notice, or they prove nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from emulated.scenarios import (
    Races,
    Scenario,
    batches_that_grow,
    copies_of_new_keys,
    erased_and_inserted_again,
    evictions,
    evictions_from_lines_of_one_key,
    failure,
    hot_keys,
    mixed_batches,
    mixed_batches_until_full,
    pairs_that_repeat,
    small_batches,
    subtables_that_grow_and_shrink,
    sums_of_new_keys,
    without_cas128,
)
from support.engines import missing
from support.planting import planted

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

SCHEDULES = 30
"""To find a bug in; most show in the first three."""


@dataclass(frozen=True)
class Bug:
    """A text of the kernels and what a careless hand might have written."""

    name: str
    right: str
    wrong: str
    scenario: Scenario
    design: str = "bucketed_cuckoo"
    word: str = "u4"
    parameters: dict[str, Any] = field(default_factory=lambda: {"slots_per_bucket": 8})
    locks: bool = False

    def __str__(self) -> str:
        return self.name

    def plant(self, source: str) -> str:
        """The source with the bug; the kernels of rows, which have none of this, as they are."""
        if "// bulk.cuh" not in source and '"bulk.cuh"' not in source:
            return source
        wrong = planted(source, self.right, self.wrong)
        return without_cas128(wrong) if self.locks else wrong


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
        "the end of a list is written and not swapped",
        "const u32 next = compare_exchange_word(S::next_of(S::at(t, p.bucket)), kNoSlab, slab);",
        "const u32 next = kNoSlab; store_relaxed(S::next_of(S::at(t, p.bucket)), slab);",
        copies_of_new_keys,
        design="slab",
        parameters={"rebucket": False},
    ),
    Bug(
        "the slab that lost is given back though it is kept",
        "p.spare = next == kNoSlab ? kNoSlab : slab;",
        "p.spare = slab;",
        batches_that_grow,
        design="slab",
        parameters={"rebucket": False},
    ),
    Bug(
        "an erased slot of a list is used again",
        "using S = SlabSlots<S_>;",
        "struct S : SlabSlots<S_> {"
        " static bool is_vacant(const typename S_::Item& s) { return S_::is_vacant(s); }"
        " static bool occupy(typename S_::Item* slot, const typename S_::Item& item) { return S_::occupy(slot, item); }"
        " };",
        batches_that_grow,
        design="slab",
        parameters={"rebucket": False},
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
    Bug(
        "a bucket is unlocked before the pair is stored",
        "    if (full) {\n      evict(t, p);",
        "    unlock(lock);\n    if (full) {\n      evict(t, p);",
        evictions_from_lines_of_one_key,
        "dynamic_cuckoo",
        parameters={},
    ),
    Bug(
        "a slot is not looked at again under the lock",
        "} else if (is_vacant(t, p.bucket, seen.vacant)) {",
        "} else {",
        evictions_from_lines_of_one_key,
        "dynamic_cuckoo",
        parameters={},
    ),
    Bug(
        "a lock is taken by two",
        "if (compare_exchange_acquire(lock, 0u, 1u) == 0) return true;",
        "if (load_relaxed(lock) == 0) return store_relaxed(lock, 1u), true;",
        evictions_from_lines_of_one_key,
        "dynamic_cuckoo",
        parameters={},
    ),
    Bug(
        "a key of a word is put in two steps",
        "const Word old = compare_exchange_word(slot, expected, key);",
        "const Word old = load_relaxed(slot); if (old == expected) store_relaxed(slot, key);",
        copies_of_new_keys,
        "dynamic_cuckoo",
        parameters={},
    ),
    Bug(
        "a key that is put elsewhere than first is no guest there",
        "if (s.is_guest) Guests::of<S>(t, subtable_of(s.goes_to), key).add();",
        "",
        batches_that_grow,
        "dynamic_cuckoo",
        parameters={},
    ),
    Bug(
        "a victim is no guest where it goes",
        "if (!p.reserved) receive<S>(t, p.bucket, digest(p.key));",
        "",
        evictions_from_lines_of_one_key,
        "dynamic_cuckoo",
        parameters={},
    ),
    Bug(
        "guests of a subtable that grows are forgotten",
        "receive<S>(t, halves + goes_to, digest(key));",
        "",
        batches_that_grow,
        "dynamic_cuckoo",
        parameters={},
    ),
    Bug(
        "guests of a subtable that is halved are forgotten",
        "S::at(t, to)[to_slot].key = key;\n      receive<S>(t, to, digest(key));",
        "S::at(t, to)[to_slot].key = key;",
        subtables_that_grow_and_shrink,
        "dynamic_cuckoo",
        parameters={},
    ),
    Bug(
        "a copy that was faster is passed by",
        "s.probe.bucket = s.goes_to;\n    return s.outcome != Outcome::kOpen;",
        "if (s.outcome == Outcome::kOpen) return s.walked = false, s.goes_to = kNowhere, !s.probe.advance(t, seen);\n"
        "    return true;",
        copies_of_new_keys,
        "dynamic_cuckoo",
        parameters={},
    ),
    Bug(
        "a key of a word is erased in two steps",
        "s.found = compare_exchange_word(slot, s.probe.named.key, S::kTombstone) == s.probe.named.key;",
        "s.found = load_relaxed(slot) == s.probe.named.key; store_relaxed(slot, S::kTombstone);",
        erased_and_inserted_again,
        "dynamic_cuckoo",
        parameters={},
    ),
]


def mixed(name: str, right: str, wrong: str, scenario: Scenario = mixed_batches, **fields: Any) -> Bug:
    """A bug that finds, inserts, assigns and erases of one launch must show."""
    return Bug(name, right, wrong, scenario, "slab", **{"parameters": {"buckets": 1}, **fields})


SWAP = "const typename S::Item old = compare_exchange(slot, was, writes ? s.placement.hand : S::tombstone());"
SWAPPED = "s.flag = swapped && !(there && writes);"

BUGS += [
    mixed(
        "an assign writes where it should swap",
        SWAP,
        "const typename S::Item old = there && writes ? (exchange(slot, s.placement.hand), was)"
        " : compare_exchange(slot, was, writes ? s.placement.hand : S::tombstone());",
    ),
    mixed(
        "an erase writes where it should swap",
        SWAP,
        "const typename S::Item old = writes ? compare_exchange(slot, was, s.placement.hand)"
        " : (exchange(slot, S::tombstone()), was);",
    ),
    mixed(
        "a swap has succeeded if the key was the one that was read",
        "const bool swapped = old.key == was.key && old.payload() == was.payload();",
        "const bool swapped = old.key == was.key;",
    ),
    mixed("an operation gives up when its swap is lost", "return swapped;\n", "return true;\n"),
    mixed(
        "a value is swapped for an empty pair, S3-38",
        SWAP,
        # As printed it tries without end, which the emulated device would find out after half a minute.
        "typename S::Item old = compare_exchange(slot, writes ? S::empty() : was,"
        " writes ? s.placement.hand : S::tombstone()); if (there && writes) old = was;",
    ),
    mixed(
        "an erase writes to the slot of another lane, S3-39",
        SWAP,
        "const typename S::Item old = writes ? compare_exchange(slot, was, s.placement.hand)"
        " : (exchange(slot - seen.hit + lane() % S::kDataSlots, S::tombstone()), was);",
    ),
    mixed(
        "an erased slot is empty, S3-40",
        "writes ? s.placement.hand : S::tombstone()",
        "writes ? s.placement.hand : S::empty()",
    ),
    mixed(
        "an erased slot is used again",
        "using S = SlabSlots<S_>;",
        next(bug.wrong for bug in BUGS if bug.name == "an erased slot of a list is used again"),
    ),
    mixed(
        "a find reads the value when it has seen the key",
        "s.placement.hand = seen.item;",
        "s.placement.hand = load_slot<false>(S::at(t, s.placement.bucket) + seen.hit);",
    ),
    mixed(
        "an insert that lost its slot takes the next without a look at the winner",
        SWAPPED,
        SWAPPED + " for (int next = seen.vacant + 1; !there && !s.flag && next < S::kDataSlots; ++next)"
        " s.flag = S::occupy(S::at(t, s.placement.bucket) + next, s.placement.hand); if (s.flag) return true;",
    ),
    mixed(
        "an insert takes the slot that it saw empty in two steps",
        SWAP,
        "const typename S::Item old = there ? compare_exchange(slot, was, writes ? s.placement.hand : S::tombstone())"
        " : load_slot<false>(slot); if (!there && old.key == S::kEmpty) exchange(slot, s.placement.hand);",
    ),
    mixed(
        "an operation without room says that its key was there",
        "s.flag = kUnplaced;\n    return slab == kNoSlab;",
        "s.flag = kPresent;\n    return slab == kNoSlab;",
        mixed_batches_until_full,
    ),
    mixed(
        "one that finds no room at its list writes to the first node",
        "s.flag = kUnplaced;\n    return slab == kNoSlab;",
        "s.flag = kUnplaced, exchange(S::at(t, 0), s.placement.hand);\n    return slab == kNoSlab;",
        mixed_batches_until_full,
    ),
    mixed(
        "a new end of a list is written and not swapped",
        "const u32 next = compare_exchange_word(S::next_of(S::at(t, p.bucket)), kNoSlab, slab);",
        "const u32 next = kNoSlab; store_relaxed(S::next_of(S::at(t, p.bucket)), slab);",
    ),
    mixed(
        "a find passes a busy slot by",
        "if (__builtin_bit_cast(Halves, slot).low != kBusyKey) return slot;",
        "return slot;",
        word="u8",
        locks=True,
    ),
    mixed(
        "the value of a pair comes behind its key",
        "store_relaxed(&p->high, desired.high);\n  store_release(&p->low, desired.low);",
        "store_release(&p->low, desired.low);\n  store_relaxed(&p->high, desired.high);",
        word="u8",
        locks=True,
    ),
]

BUGS += [
    mixed(
        "two elements erase one pair",
        "return compare_exchange(slot, seen, tombstone()).key == seen.key;",
        "exchange(slot, tombstone()); return true;",
        pairs_that_repeat,
    ),
    mixed(
        "an erase whose pair went to another finds no other",
        "return s.found || !S::kLinked;",
        "return true;",
        pairs_that_repeat,
    ),
    mixed(
        "pairs that all are erased are counted by two",
        "compare_exchange(node + first_bit(hits), item, S::tombstone()).key == item.key;",
        "(exchange(node + first_bit(hits), S::tombstone()), true);",
        pairs_that_repeat,
    ),
    Bug(
        "two lists share a tail",
        "pointer<u32>(t.tails) + list;",
        "pointer<u32>(t.tails) + list / 2;",
        pairs_that_repeat,
        "lock_free_chaining",
        parameters={"buckets": 2},
    ),
    mixed(
        "an append that lost its slot is done",
        "s.way.go_on(t, s.placement.bucket);\n    return s.outcome == Placed::kInserted;",
        "s.way.go_on(t, s.placement.bucket);\n"
        "    return s.outcome == Placed::kInserted || (s.outcome == Placed::kGoesOn && seen.vacant < S::kDataSlots);",
        pairs_that_repeat,
    ),
    mixed(
        "the first slot with a pair is taken back",
        "if (item.key == s.key() && item.payload() == s.value_) s.last",
        "if (!s.last && item.key == s.key() && item.payload() == s.value_) s.last",
        pairs_that_repeat,
    ),
    mixed(
        "a pair that another took back is not looked for again",
        "s.last = nullptr;  // another element with this pair was faster",
        "return true;",
        pairs_that_repeat,
    ),
    mixed(
        "the second half of a node is not looked at",
        "for (u32 hits = seen.hits; hits; hits &= hits - 1)\n      store_once",
        "for (u32 hits = seen.hits & 255; hits; hits &= hits - 1)\n      store_once",
        pairs_that_repeat,
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_is_noticed(bug: Bug) -> None:
    races = Races(bug.design, bug.word, bug.parameters, bug.plant)
    found = next((said for seed in range(1, 1 + SCHEDULES) if (said := failure(bug.scenario, races, seed))), None)
    assert found, f"{SCHEDULES} schedules, and nobody noticed that {bug.name}"
