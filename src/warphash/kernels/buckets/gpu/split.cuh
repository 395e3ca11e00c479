// An empty table in columns (buckets/columns.cuh) built in two passes: all pairs are placed as if slots were whole,
// then keys and values are moved into their columns.
//
//   place_pairs   place (core/insert.cuh), with pairs of 16 bytes for slots
//   split         the pairs of each bucket -> its columns, in the same memory
//
// Why. To place a pair in columns takes a swap of the key and a write of the value elsewhere, each into a sector that
// memory has to read and to write back: 8.2 ms for 50 M pairs of the power of two choices, 3.1 of them for the values.
// To place whole pairs takes 6.6 ms, though looks read twice as much, and the second pass, a stream, 0.5 ms. That pays
// if the batch fills a third of the table; otherwise the stream is for nothing.
//
// Protocol of split: a lane has a slot, and a warp has whole buckets. A barrier keeps the writes of all lanes behind
// their reads.
#pragma once
#include "buckets/insert.cuh"

namespace warphash {

template <class S>
struct Split : OverBuckets {
  using Pair = typename S::Pair;
  static_assert(32 % S::kSlots == 0, "a warp has whole buckets");
  static constexpr bool kProbes = false, kSuspends = false, kCounts = false;
  static constexpr int kLists = 0;
  struct State {
    Pair pair;
  };
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const Table& t, const Batch&, u64 i, State& s) {
    s.pair = load_slot<false>(pointer<const Pair>(t.slots) + i);
    return false;
  }
  WARPHASH_FN static void finish(const Table& t, const Batch&, u64 i, State& s, bool live, Tally&) {
    warp_barrier();
    if (live) S::put(S::at(t, static_cast<u32>(i / S::kSlots)) + i % S::kSlots, s.pair);
  }
};

}  // namespace warphash

#define WARPHASH_SPLIT_ENTRIES(D, WORD, N)                                                  \
  WARPHASH_ENTRY(place_pairs, warphash::Place<warphash::D<warphash::Slots<WORD, true, N>>>) \
  WARPHASH_ENTRY(split, warphash::Split<warphash::TableOf<warphash::D, WORD, true, N>::S>)
