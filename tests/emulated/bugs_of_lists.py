"""Bugs planted in lists of slabs: bulk operations, mixed batches, multimaps."""

from __future__ import annotations

from typing import Any

from emulated.planted import Bug
from emulated.scenarios import (
    Scenario,
    batches_that_grow,
    copies_of_lists,
    copies_of_new_keys,
    erased_slots_used_again,
    finds_beside_first_inserts,
    mixed_batches,
    mixed_batches_until_full,
    pairs_that_repeat,
)

__all__ = ["BUGS"]


def mixed(name: str, right: str, wrong: str, scenario: Scenario = mixed_batches, **fields: Any) -> Bug:
    """A bug that finds, inserts, assigns and erases of one launch must show."""
    return Bug(name, right, wrong, scenario, "slab", **{"parameters": {"buckets": 1}, **fields})


SWAP = "const typename S::Item old = compare_exchange(slot, was, writes ? s.placement.hand : S::tombstone());"
SLOTS_USED_AGAIN = (
    "struct S : SlabSlots<S_> {"
    " static bool is_vacant(const typename S_::Item& s) { return S_::is_vacant(s); }"
    " static bool occupy(typename S_::Item* slot, const typename S_::Item& item) { return S_::occupy(slot, item); }"
    " };"
)
SWAPPED = "s.flag = swapped && !(there && writes);"

BUGS = [
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
        SLOTS_USED_AGAIN,
        batches_that_grow,
        design="slab",
        parameters={"rebucket": False},
    ),
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
        "a value is swapped for an empty pair",
        SWAP,
        # As printed it tries without end, which the emulated device would find out after half a minute.
        "typename S::Item old = compare_exchange(slot, writes ? S::empty() : was,"
        " writes ? s.placement.hand : S::tombstone()); if (there && writes) old = was;",
    ),
    mixed(
        "an erase writes to the slot of another lane",
        SWAP,
        "const typename S::Item old = writes ? compare_exchange(slot, was, s.placement.hand)"
        " : (exchange(slot - seen.hit + lane() % S::kDataSlots, S::tombstone()), was);",
    ),
    mixed(
        "an erased slot is empty",
        "writes ? s.placement.hand : S::tombstone()",
        "writes ? s.placement.hand : S::empty()",
    ),
    mixed(
        "an erased slot is used again",
        "using S = SlabSlots<S_>;",
        SLOTS_USED_AGAIN,
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
    mixed(
        "every element of a run begins a run",
        "return (i == 0 || !continues(b, i)) && Append<D>::start(t, b, i, s);",
        "return Append<D>::start(t, b, i, s);",
        copies_of_lists,
    ),
    mixed(
        "of a run without a node, only the first pair is tried again",
        "} while (go_on(b, s));",
        "} while (false);",
        copies_of_lists,
    ),
    mixed(
        "a pair is taken for the first one though a slot before looked empty",
        "if (there && seen.vacant < seen.hit) return false;",
        "",
        finds_beside_first_inserts,
        multi=True,
    ),
    mixed(
        "an insert of a pair that lost its slot is done",
        "s.flag = old.key == was.key && old.payload() == was.payload();\n      return s.flag;",
        "s.flag = inserts || (old.key == was.key && old.payload() == was.payload());\n      return s.flag;",
        multi=True,
    ),
    mixed(
        "an erase of a pair gives up when its swap is lost",
        "return s.flag;\n",
        "return s.flag || !inserts;\n",
        multi=True,
    ),
    mixed(
        "an erase of a pair writes where it should swap",
        "const typename S::Item old = compare_exchange(slot, was, inserts ? s.placement.hand : S::tombstone());\n"
        "      s.flag",
        "const typename S::Item old = inserts ? compare_exchange(slot, was, s.placement.hand)"
        " : (exchange(slot, S::tombstone()), was);\n      s.flag",
        multi=True,
    ),
    mixed(
        "an insert of a pair swaps at the first slot with its key",
        "there = seen.hit >= 0 && !inserts;",
        "there = seen.hit >= 0 && s.operation != kFindKey;",
        multi=True,
    ),
    mixed(
        "a search for a pair ends with its first node",
        "if (!inserts && (vacant || seen.next == kNoSlab)) return true;",
        "if (!inserts) return true;",
        multi=True,
    ),
    mixed(
        "a pair without room says that it was added",
        "s.flag = kUnplaced;\n    return slab == kNoSlab;",
        "s.flag = kChanged;\n    return slab == kNoSlab;",
        mixed_batches_until_full,
        multi=True,
    ),
    Bug(
        "mixed batches of two lists share a tail",
        "pointer<u32>(t.tails) + list;",
        "pointer<u32>(t.tails) + list / 2;",
        mixed_batches,
        "lock_free_chaining",
        parameters={"buckets": 2},
        multi=True,
    ),
    mixed(
        "two inserts take one erased slot",
        "compare_exchange(node + j, S::tombstone(), p.hand).key == S::kTombstone)",
        "exchange(node + j, p.hand).key == S::kTombstone)",
        erased_slots_used_again,
    ),
    mixed(
        "two inserts of a mixed batch take one erased slot",
        "compare_exchange(node + j, S::tombstone(), p.hand).key == S::kTombstone)",
        "exchange(node + j, p.hand).key == S::kTombstone)",
        parameters={"buckets": 1, "reuse_erased": True},
        multi=True,
    ),
    mixed(
        "an insert that meets an erased slot adds its pair twice",
        "s.flag = kChanged;\n    return true;",
        "s.flag = kChanged;\n    return ExecutePairs<D>::step(t, b, s, seen);",
        parameters={"buckets": 1, "reuse_erased": True},
        multi=True,
    ),
]
