"""Bugs planted in quotient tables."""

from __future__ import annotations

from typing import Any

from emulated.planted import Bug
from emulated.scenarios import (
    Scenario,
    adopted_pairs,
    adopted_pairs_are_erased,
    adopted_pairs_that_come_again,
    builds,
    by_ranges,
    churned,
    churned_and_left,
    copies_under_locks,
    crowded_range,
    crowds_of_few,
    crowds_of_one_home,
    crowds_under_locks,
    erased_alone,
    erased_in_passes,
    guests_that_come_again,
    left_by_the_locks,
    many_behind_adopted_pairs,
    moves,
    moves_to_one_slot,
    puts_without_locks,
)

__all__ = ["BUGS"]


def bug(
    name: str, right: str, wrong: str, scenario: Scenario, word: str = "u4", among: str = "", **parameters: Any
) -> Bug:
    return Bug(name, right, wrong, scenario, "quotient_cuckoo", word, parameters, among=among)


BUGS = [
    bug(
        "equal keys are all placed",
        "m.rounds.states[x] = copy ? kWaiting :",
        "copy = false; m.rounds.states[x] = copy ? kWaiting :",
        by_ranges,
    ),
    bug(
        "the values of equal keys are forgotten",
        "if (spot.found()) with = kPresent, combine_at(spot, item);",
        "if (spot.found()) with = kPresent;",
        by_ranges,
    ),
    bug(
        "two lanes have one lock",
        "return !(set(word_of(number), bit) & bit);",
        "return set(word_of(number), bit), true;",
        copies_under_locks,
    ),
    bug(
        "the lock of a second bucket is not asked for",
        "if (!locks.try_lock(bucket)) return ++refusals, kAgain;",
        "",
        crowds_under_locks,
    ),
    bug(
        "a lock is not given back",
        "if (second != kNone) locks.unlock(second);",
        "",
        crowds_under_locks,
    ),
    bug(
        "a key moves and its filter is not told",
        "fetch_or(line->words, D::filter_bit(other.home.remainder));",
        "",
        crowds_under_locks,
    ),
    bug(
        "a key moves without its value",
        "if constexpr (S::kHasValue) return load_relaxed(S::value(line->words, slot));",
        "",
        crowds_under_locks,
    ),
    bug(
        "a key is sought in its home alone",
        "if (vacant && !(first[0] & D::filter_bit(home.remainder))) return put(first_line, vacant, false, e);",
        "if (vacant) return put(first_line, vacant, false, e);",
        guests_that_come_again,
    ),
    bug(
        "a guest is marked behind its slot",
        "return compare_exchange_word(w + word, old, old | field_of(remainder, guest) << bit % 32) == old;",
        "const bool done = compare_exchange_word(w + word, old, old | field_of(remainder, false) << bit % 32) == old;"
        " if (done && guest) fetch_or(w + word, kGuest << bit % 32); return done;",
        puts_without_locks,
    ),
    bug(
        "a slot is filled in two steps",
        "return compare_exchange_word(w + word, old, old | field_of(remainder, guest) << bit % 32) == old;",
        "if (load_relaxed(w + word) != old) return false;"
        " store_relaxed(w + word, old | field_of(remainder, guest) << bit % 32); return true;",
        puts_without_locks,
    ),
    bug(
        "a lane whose swap has failed goes on",
        "if (!S::try_put(line->words, seen, slot, s.home.remainder, guest)) return false;",
        "S::try_put(line->words, seen, slot, s.home.remainder, guest);",
        puts_without_locks,
    ),
    bug(
        "a lane fills any vacant slot",
        "const u32 slot = first_bit(free);\n    if (!S::try_put(",
        "const u32 slot = s.element % 2 ? first_bit(free) : 31 - __builtin_clz(free);\n    if (!S::try_put(",
        puts_without_locks,
    ),
    bug(
        "a guest is not sought without locks",
        "if (free && !(words[0] & D::filter_bit(s.home.remainder))) return put(",
        "if (free) return put(",
        puts_without_locks,
    ),
    bug(
        "a guest that was put without locks is not in the filter",
        "fetch_or(line->words, D::filter_bit(s.home.remainder));\n    return true;",
        "return true;",
        puts_without_locks,
    ),
    bug(
        "a key without a slot is not left to the locks",
        "if (!room) return true;",
        "if (!room) return s.result = kFound, true;",
        puts_without_locks,
    ),
    bug(
        "a stuck key is not sought again under the locks",
        "if (const u32 hits = S::matches(here, e.home.remainder, false)) return Steps::combine_in(home, hits, b, e);\n"
        "    if (const u32 hits = S::matches(there,",
        "if (const u32 hits = S::matches(there,",
        puts_without_locks,
    ),
    bug(
        "another key is in the slot than the one that was chosen",
        "if (other_bucket(t, e.home.bucket, move.slot) != move.to) return Steps::kAgain;",
        "",
        puts_without_locks,
    ),
    bug(
        "a key moves to a full bucket",
        "if (!free) return Steps::kAgain;\n    const Word remainder",
        "const Word remainder",
        moves_to_one_slot,
    ),
    bug(
        "a key moves for a stuck one and its filter is not told",
        "fetch_or(home->words, D::filter_bit(remainder));",
        "",
        puts_without_locks,
    ),
    bug(
        "a lock of two is not given back",
        "locks.unlock(high);",
        "",
        puts_without_locks,
    ),
    bug(
        "a replaced value is forgotten without locks",
        "if (b.op == kReplace) store_relaxed(S::value(line->words, first_bit(hits)), s.operand);",
        "",
        puts_without_locks,
    ),
    bug(
        "two lanes erase one key",
        "if (!S::vacate(line->words, first_bit(hits))) return false;",
        "S::vacate(line->words, first_bit(hits));",
        erased_alone,
    ),
    bug(
        "erases in lanes leave the filters as they are",
        "s.result = renews && fetch_add(",
        "s.result = false && fetch_add(",
        churned_and_left,
    ),
    bug(
        "a range whose filters are made anew keeps its counter",
        "if (thread_in_block() == 0) *counter_of(t, number) = 0;",
        "",
        churned_and_left,
    ),
    bug(
        "the list of ranges grows from erase to erase",
        "*pointer<u64>(b.renewals_before) = 0;",
        "",
        churned_and_left,
    ),
    bug(
        "keys that were erased in lanes are counted again",
        "erased += line.changed, line.changed = 0;",
        "erased += line.changed;",
        erased_alone,
    ),
    bug(
        "an adopted pair stays when its key is erased",
        "if (adopted.count() > 0 && adopted.erase(key_at<S>(b, s.element))) s.result = kErased;",
        "",
        adopted_pairs_are_erased,
    ),
    bug(
        "two lanes erase one adopted pair",
        "if (!(fetch_or(nexts() + at, kErasedPair) & kErasedPair)) return true;",
        "fetch_or(nexts() + at, kErasedPair); return true;",
        adopted_pairs_are_erased,
        among="kAdoptedLists = 512",
    ),
    bug(
        "an erased pair is found among the adopted ones",
        "if (!(next & kErasedPair) && pointer<const Word>",
        "if (pointer<const Word>",
        adopted_pairs_are_erased,
        among="kAdoptedLists = 512",
    ),
    bug(
        "keys are added before all are sought",
        "block_barrier();\n      if (m.absent[pass] > 0) add(t, b, m, pass, first, tally);",
        "if (m.absent[pass] > 0) add(t, b, m, pass, first, tally);",
        crowds_of_few,
    ),
    bug(
        "adopted pairs are not sought",
        "m.adopted == 0 || !Adopted<D>{b}.has(key_at<S>(b, e.number), e.operand)",
        "true",
        adopted_pairs_that_come_again,
    ),
    bug(
        "an adopted pair keeps its value",
        "S::kHasValue && b.op == kReplace",
        "false",
        adopted_pairs_that_come_again,
    ),
    bug(
        "a pair is adopted twice",
        "m.adopted == before || !adopted.has(key, e.operand, before)",
        "true",
        adopted_pairs,
    ),
    bug(
        "an adopted pair has no value",
        "if constexpr (S::kHasValue) pointer<Value>(b.adopted_values)[number] = value;",
        "",
        adopted_pairs,
    ),
    bug(
        "keys are added under locks beside adopted pairs",
        "waits = Adopted<D>{b}.count() > 0;",
        "waits = false;",
        adopted_pairs_that_come_again,
    ),
    bug(
        "a list of adopted pairs ends too soon",
        "at = next & ~kErasedPair;",
        "at = 0;",
        adopted_pairs_that_come_again,
        among="kAdoptedLists = 512",
    ),
    bug(
        "what is left again is listed at the start",
        "pointer<u32>(b.left_out)[first + fetch_add(&m.left[pass], 1u)] = e.number;",
        "pointer<u32>(b.left_out)[fetch_add(&m.left[pass], 1u)] = e.number;",
        many_behind_adopted_pairs,
    ),
    bug(
        "the first of many elements that are left are done again and again",
        "look(t, b, m, pass, first + place, tally);",
        "look(t, b, m, pass, place, tally);",
        left_by_the_locks,
    ),
    bug(
        "keys that were added under locks are not counted",
        "if (b.finishes) take_counts(b, m);",
        "",
        left_by_the_locks,
    ),
    bug(
        "keys that were added under locks are counted again",
        "line.changed = line.probes = 0;",
        "",
        left_by_the_locks,
    ),
    bug(
        "elements that were left are left again",
        "if (b.finishes) report_of(b)->winners = report_of(b)->leftover = 0;",
        "",
        left_by_the_locks,
    ),
    bug(
        "elements that are left are not looked for again",
        "return pass == 0 ? element_of(b, place) : pointer<const u32>(b.left_out)[place];",
        "return element_of(b, place);",
        crowds_of_few,
    ),
    bug(
        "a key that is left is put beside its copy",
        "const auto spot = range.look(home);\n    u8 with",
        "const typename Range::Spot spot = {0, Range::kNoSlot, false};\n    u8 with",
        crowds_of_few,
    ),
    bug(
        "a guest of a key that is left is not in the filter",
        "range.put_stuck(bucket, first_bit(slots), home, !free, value);",
        "range.put(bucket, first_bit(slots), home.remainder, !free, value);",
        crowds_of_one_home,
    ),
    bug(
        "a list is opened in two steps",
        "const u32 old = Lines::swap(m.heads + (bucket - first_bucket), kIsListed | id);",
        "u32* const at = m.heads + (bucket - first_bucket); const u32 old = load_relaxed(at);"
        " store_relaxed(at, kIsListed | id);",
        by_ranges,
    ),
    bug(
        "a guest is not in the filter of its home",
        "fetch_or(words(home.bucket), D::filter_bit(home.remainder));",
        "static_cast<void>(home);",
        by_ranges,
        word="u8",
    ),
    bug(
        "two erase one key",
        "if (!S::vacate(words(spot.bucket), spot.slot)) continue;",
        "S::vacate(words(spot.bucket), spot.slot);",
        by_ranges,
    ),
    bug(
        "values are combined in two steps",
        "const Word seen = compare_exchange_word(at, old, wanted);",
        "const Word seen = old; store_relaxed(at, wanted);",
        by_ranges,
    ),
    bug(
        "elements of a block count themselves in two steps",
        "if (e.is_summed()) e.rank = fetch_add(m.counts + e.bin, 1u);",
        "if (e.is_summed()) e.rank = load_relaxed(m.counts + e.bin), store_relaxed(m.counts + e.bin, e.rank + 1);",
        by_ranges,
    ),
    bug(
        "elements of a tile learn their ranks in two steps",
        "ranks[k] = has(tile, k) ? fetch_add(counts + tile.bin(item[k]), 1u) : 0;",
        "{ ranks[k] = 0; if (has(tile, k)) { u32* const at = counts + tile.bin(item[k]); "
        "ranks[k] = load_relaxed(at); store_relaxed(at, ranks[k] + 1); } }",
        erased_in_passes,
        among="struct PassTile",
    ),
    bug(
        "ranges of another part are counted",
        "return counter_of(t, first_range);",
        "return counter_of(t, 0);",
        erased_in_passes,
        among="struct PassTile",
    ),
    bug(
        "a range with many elements is left to nobody",
        "pointer<u32>(b.heavy)[fetch_add(&report_of(b)->leftover, u64(1))] = range;",
        "fetch_add(&report_of(b)->leftover, u64(0));",
        crowded_range,
    ),
    bug(
        "small batches leave the filters as they are",
        "D::mixed(brought_hash(0)) % (2 * size) < elements",
        "size == 0",
        churned,
    ),
    bug(
        "a range keeps its counter",
        "*counter_of(t, range) = 0;",
        "",
        by_ranges,
    ),
    bug(
        "every lane that can move a key does",
        "if (own == first_bit(guests ? guests : can))",
        "if (free != 0)",
        by_ranges,
        word="u8",
    ),
    bug(
        "two stuck keys claim one bucket",
        "return !(Lines::set_bits(m.claimed + bucket / 32, bit) & bit);",
        "Lines::set_bits(m.claimed + bucket / 32, bit); return true;",
        by_ranges,
        word="u8",
    ),
    bug(
        "a key on a path is forgotten",
        "for (; at > 1; at = m.rounds.steps[at].from) {",
        "for (; at > 1; at = 0) {",
        by_ranges,
        word="u8",
        load_factor=0.92,
    ),
    bug(
        "two equal keys both see that they are the first",
        "old[j] = Lines::set_bits(m.before.words + at / 32, bits[j]);",
        "u32* const word = m.before.words + at / 32; old[j] = load_relaxed(word);"
        " store_relaxed(word, old[j] | bits[j]);",
        builds,
    ),
    bug(
        "two keys are given one slot",
        "slots[j] = Lines::add(m.heads + home_of(S::hash_of(items[j])), is_first[j]);",
        "{ u32* const at = m.heads + home_of(S::hash_of(items[j])); slots[j] = load_relaxed(at);"
        " store_relaxed(at, slots[j] + is_first[j]); }",
        builds,
    ),
    bug(
        "slots of a line are marked in two steps",
        "*hash(w, slot) = remainder;\n    fetch_or(w + 1, (guest ? 0x10001u : 1u) << slot);",
        "*hash(w, slot) = remainder; const u32 old = load_relaxed(w + 1); store_relaxed(w + 1, old | 1u << slot);",
        builds,
    ),
    bug(
        "keys whose home is full are not left to rounds",
        "placed |= 1u << j;\n      }",
        "placed |= 1u << j;\n      }\n      if (is_first[j]) placed |= 1u << j;",
        by_ranges,
    ),
    bug(
        "rounds begin before the slots are handed out",
        "block_barrier();\n    settle_many();",
        "",
        builds,
    ),
    bug(
        "two keys that move are given one slot",
        "slots[j] = Lines::add(m.heads + number, 1u);",
        "{ u32* const at = m.heads + number; slots[j] = load_relaxed(at); store_relaxed(at, slots[j] + 1); }",
        moves,
    ),
    bug(
        "guests far from home are left behind",
        "others = size_of_old - (to - from);",
        "others = 0;",
        moves,
    ),
    bug(
        "keys that move are listed in one place",
        "const u32 place = Lines::add(&m.listed, 1u);",
        "const u32 place = load_relaxed(&m.listed); store_relaxed(&m.listed, place + 1);",
        moves,
    ),
    bug(
        "rounds begin while keys are moving",
        "take_keys();\n    block_barrier();",
        "take_keys();",
        moves,
    ),
    bug(
        "keys of a neighbouring range are taken, too",
        "live &= ~(1u << j);",
        "slots[j] = Lines::add(m.heads + number % size, 1u);",
        moves,
    ),
]
