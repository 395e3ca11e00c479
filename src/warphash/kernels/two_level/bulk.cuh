// Every bulk operation on a two-level table but those that place keys (two_level/insert.cuh, two_level/place.cuh): what
// an element of a batch does from start to finish.
//
//   lay_out        writes the entries of the directory
//   find           value and presence of each key
//   probe_counts   how many slots find reads for each key
//   combine        applies an upsert to keys that are there
//   erase          turns a key's slot into a tombstone
//   audit          counts slots that break the rules
//
// scan is that of core/bulk.cuh, over the memory of ranges in a row.
#pragma once
#include "core/straight.cuh"
#include "two_level/ranges.cuh"

namespace warphash {

// The members of a task of which each element searches for a key.
struct SearchingRanges : OverRanges {
  static constexpr bool kProbes = false, kSteps = true, kSuspends = false, kCounts = true;
  static constexpr int kLists = 0;
};

// ---- lay_out: the elements are the ranges
template <class D>
struct LayOut : Straight<TwoLevelTable, TwoLevelBatch> {
  using S = typename D::S;
  using typename Straight<TwoLevelTable, TwoLevelBatch>::State;
  WARPHASH_FN static bool start(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i, State&) {
    const u32 bucket = static_cast<u32>(b.first_bucket + i);
    const u64 bytes = b.range_slots * sizeof(typename S::Item);
    *Ranges<S>::entry(t, bucket) = RangeEntry::of(
        {b.ranges + i * bytes, static_cast<u32>(b.range_slots), mix(bucket ^ static_cast<u32>(b.random))});
    return false;
  }
};

// ---- find
template <class D>
struct FindInRange : SearchingRanges {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kCounts = false;
  struct State {
    RangeSearch<D, true> search;
  };
  WARPHASH_FN static bool start(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i, State& s) {
    s.search = RangeSearch<D, true>::start(t, key_at<S>(b, static_cast<u32>(i)));
    return true;
  }
  WARPHASH_FN static bool step(const TwoLevelTable& t, const TwoLevelBatch&, State& s) { return s.search.step(t); }
  WARPHASH_FN static const void* next(const TwoLevelTable& t, const State& s) { return s.search.next(t); }
  WARPHASH_FN static void finish(const TwoLevelTable&, const TwoLevelBatch& b, u64 i, State& s, bool live, Tally&) {
    if (!live) return;
    if (S::kHasValue && b.out_values) {
      const Word absent = static_cast<Word>(b.default_value);
      store_once(pointer<Word>(b.out_values) + i, s.search.found ? s.search.seen.payload() : absent);
    }
    set_flag(b, static_cast<u32>(i), s.search.found);
  }
};

template <class D>
struct RangeProbeCounts : FindInRange<D> {
  using typename FindInRange<D>::State;
  WARPHASH_FN static void finish(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i, State& s, bool live, Tally&) {
    const u32 last = static_cast<u32>(t.hashes) - 1;
    const u32 function = s.search.function < last ? s.search.function : last;
    if (live) store_once(pointer<u32>(b.out_counts) + i, function + 1);
  }
};

// ---- combine, erase
// A search for elements that may be listed, in a table that other threads are changing.
template <class D>
struct SeekInRange : SearchingRanges {
  using S = typename D::S;
  struct State {
    RangeSearch<D, false> search;
    u32 element;
  };
  WARPHASH_FN static bool start(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    s.search = RangeSearch<D, false>::start(t, key_at<S>(b, s.element));
    return true;
  }
  WARPHASH_FN static bool step(const TwoLevelTable& t, const TwoLevelBatch&, State& s) { return s.search.step(t); }
  WARPHASH_FN static const void* next(const TwoLevelTable& t, const State& s) { return s.search.next(t); }
};

template <class S>
WARPHASH_FN void combine_in(const Batch& b, typename S::Item* slot, u32 element) {
  if constexpr (S::kHasValue) combine(S::value_of(in_global(slot)), value_at<S>(b, element), b.op, b.kind);
}

template <class D>
struct CombineInRange : SeekInRange<D> {
  using S = typename D::S;
  using typename SeekInRange<D>::State;
  // A key that is absent is that of a winner that found no room. Both wait for a larger table.
  WARPHASH_FN static void finish(const TwoLevelTable&, const TwoLevelBatch& b, u64, State& s, bool live, Tally&) {
    if (!live) return;
    if (s.search.found) combine_in<S>(b, s.search.slot, s.element);
    set_flag(b, s.element, s.search.found ? kPresent : kUnplaced);
  }
};

template <class D>
struct EraseInRange : SeekInRange<D> {
  using S = typename D::S;
  using typename SeekInRange<D>::State;
  // No value changes while keys are erased, so only another erase of this key can make the swap fail.
  WARPHASH_FN static void finish(const TwoLevelTable&, const TwoLevelBatch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    const bool erased = s.search.found && S::vacate(in_global(s.search.slot), s.search.seen);
    tally.changed += erased;
    set_flag(b, s.element, erased);
  }
};

// ---- audit: the elements are the buckets, and behind them the reserved keys
// A slot is sound if a search for its key comes to the slot, or to a copy of the key, which `assume_unique` may have
// brought in.
template <class D>
struct AuditRanges : Straight<TwoLevelTable, TwoLevelBatch> {
  using S = typename D::S;
  using Item = typename S::Item;
  static constexpr bool kCounts = true;
  struct State {
    u32 broken;
  };
  WARPHASH_FN static bool start(const TwoLevelTable& t, const TwoLevelBatch&, u64 i, State& s) {
    s.broken = 0;
    if (i >= t.buckets) {
      const typename S::Word name = static_cast<typename S::Word>(i - t.buckets);
      const Item item = load_slot<false>(Ranges<S>::reserved_slot(t, name));
      s.broken = S::holds_key(item) && item.key != name;
      return false;
    }
    const u32 bucket = static_cast<u32>(i);
    const Range range = Ranges<S>::entry(t, bucket)->range();
    s.broken = load_relaxed(Ranges<S>::counter(t, bucket)) != kNoElement;
    for (u32 j = 0; j < range.slots; ++j) {
      const Item item = load_slot<false>(Ranges<S>::slots(range) + j);
      if (!S::holds_key(item)) continue;
      if (S::is_reserved(item.key) || D::bucket_of(t, item.key) != bucket) {
        ++s.broken;
        continue;
      }
      auto search = RangeSearch<D, false>::start(t, item.key);
      while (!search.step(t)) {
      }
      s.broken += !search.found;
    }
    return false;
  }
  WARPHASH_FN static void finish(const TwoLevelTable&, const TwoLevelBatch&, u64, State& s, bool live, Tally& tally) {
    if (live) tally.mismatches += s.broken;
  }
};

}  // namespace warphash
