// Applies the elements that passes have brought to ranges (quotient/gpu/partition.cuh), where a range has few of them: a
// block has a set of ranges for itself, so that its threads have an element each.
//
// Layout. A set is 2^k ranges in a row, of one part, so its elements lie in one piece of `brought`. A grid has a block
// for each set, and k follows from the number of blocks.
//
//   `brought`   [ range 16 | range 17 |   range 18   | range 19 | ... ]
//               |       set 8         |        set 9            |          k = 1
//
// Protocol of a block, for as many elements at a time as it has threads. A barrier ends each step.
//   1. Each thread has an element. It adds the key, or combines the value, under locks that the block shares
//      (quotient/gpu/locked.cuh). Some elements are left.
//   2. If there are some, the first thread places these, one after another (quotient/gpu/alone.cuh).
// A range with more than kMostLocked elements is entered into the list `heavy`, and left to `apply`: its elements may
// have one key, and would wait for one lock. The counters of all other ranges become 0. At the end, filters of a range
// are made anew, if guests have left a bucket there, and chance says so.
//
// Why. A block for each range would have too few elements for its threads, or would copy 64 KB for some hundred elements
// (quotient/apply.cuh). Locks of the device would cost more: an operation on them, and the order of memory that they
// bring about, wait for the second-level cache. And the lanes of a warp have elements of one range, whose locks are in
// one sector: 5 M keys took 809 us under such locks, and 570 in the order of the caller (H200).
//
// Memory order. As in quotient/gpu/locked.cuh. In step 2, one thread has the set. Barriers order the steps of a block,
// and no other block has its ranges. The end of the kernel publishes the list `heavy`.
#pragma once
#include "quotient/gpu/alone.cuh"
#include "quotient/gpu/locked.cuh"

namespace warphash {

template <class D>
struct ApplyToSets : OverQuotients {
  using S = typename D::S;
  using Steps = ChangeUnderLocks<D, BlockLocks, FreeOfCrowds>;
  using Element = typename Steps::Element;
  using Alone = PlaceAlone<D>;
  static constexpr bool kWalks = true, kCounts = true;
  static constexpr u32 kThreads = block_threads(256), kBlocks = 6;
  static constexpr u32 kMostLocked = 1024;  // elements of a range
  static constexpr u32 kMostRanges = kBlockLocks / kMostRangeBuckets;
  static constexpr u32 kNone = ~0u;

  struct Memory {
    u32 locks[kBlockLocks / 32];
    u32 left[kThreads];  // places of elements
    u32 n_left;
    u32 renewed;  // a range whose filters are made anew, or kNone
    alignas(16) u8 range[Alone::Range::kMemoryBytes];
  };

  WARPHASH_FN static void run(const QuotientTable& t, const QuotientBatch& b) {
    Memory& m = *static_cast<Memory*>(block_memory<sizeof(Memory)>());
    const u32 block = static_cast<u32>(thread_in_grid() / threads_in_block());
    const u32 blocks = static_cast<u32>(threads_in_grid() / threads_in_block());
    const u32 ranges = static_cast<u32>(t.ranges);
    u32 shift = 0;
    while (((ranges - 1) >> shift) + 1 > blocks) ++shift;
    WARPHASH_ASSERT(1u << shift <= kMostRanges);
    const u32 first = block << shift, next = (block + 1) << shift, end = next < ranges ? next : ranges;
    for (u32 w = thread_in_block(); w < kBlockLocks / 32; w += threads_in_block()) m.locks[w] = 0;
    if (thread_in_block() == 0) m.n_left = 0, m.renewed = kNone;
    block_barrier();
    Tally tally;
    for (u32 range = first; range < end; ++range) {  // mostly once: all of them are light
      if (is_heavy(t, range)) continue;
      const u32 light = range;
      while (range + 1 < end && !is_heavy(t, range + 1)) ++range;
      const u32 start = start_of(t, light), stop = start_of(t, range) + *counter_of(t, range);
      for (u32 at = start; at < stop; at += threads_in_block()) apply(t, b, m, at + thread_in_block(), stop, tally);
    }
    if (m.renewed != kNone) Alone::range_of(t, b, m.renewed, m.range).renew_filters();
    for (u32 range = first + thread_in_block(); range < end; range += threads_in_block()) {
      if (is_heavy(t, range))
        enter_heavy(b, range);
      else
        *counter_of(t, range) = 0;
    }
    flush<ApplyToSets>(b, tally);
  }

 private:
  WARPHASH_FN static bool is_heavy(const QuotientTable& t, u32 range) { return *counter_of(t, range) > kMostLocked; }
  WARPHASH_FN static u32 start_of(const QuotientTable& t, u32 range) { return pointer<const u32>(t.starts)[range]; }
  WARPHASH_FN static void enter_heavy(const QuotientBatch& b, u32 range) {
    const u64 earlier = fetch_add(&report_of(b)->leftover, u64(1));
    pointer<u32>(b.heavy)[earlier] = range;
  }
  WARPHASH_FN static Element element(const QuotientTable& t, const QuotientBatch& b, u32 place) {
    const auto item = pointer<const typename S::Brought>(b.brought)[place];
    return {place, D::home_of(t, S::hash_of(item)), S::value_of(item), false};
  }

  // Steps 1 and 2. All threads of the block call it.
  WARPHASH_FN static void apply(const QuotientTable& t, const QuotientBatch& b, Memory& m, u32 place, u32 stop,
                                Tally& tally) {
    const bool live = place < stop;
    Element e = {};
    if (live) e = element(t, b, place);
    const auto result = Steps::in_turns(t, b, {m.locks}, e, live, tally);
    if (live && result == Steps::kLeft)
      m.left[fetch_add(&m.n_left, 1u)] = place;
    else if (live)
      Steps::enter(b, e, result, tally);
    block_barrier();
    const u32 left = m.n_left;
    block_barrier();
    if (left == 0) return;
    if (thread_in_block() == 0) place_left(t, b, m, left, tally);
    block_barrier();
  }

  WARPHASH_FN static void place_left(const QuotientTable& t, const QuotientBatch& b, Memory& m, u32 left,
                                     Tally& tally) {
    m.n_left = 0;
    for (u32 k = 0; k < left; ++k) {
      const Element e = element(t, b, m.left[k]);
      const u32 number = e.home.bucket / static_cast<u32>(t.range_buckets);
      auto range = Alone::range_of(t, b, number, m.range);
      const u8 with = Alone::place(range, b, e.home, e.operand);
      set_flag(b, e.number, with);
      tally.changed += with == kChanged;
      tally.probes += range.probes;
      if (with == kUnplaced) atomic_add(&report_of(b)->unplaced, u64(1));
      if (Alone::pays_to_renew(range, e.home)) m.renewed = number;
    }
  }
};

}  // namespace warphash
