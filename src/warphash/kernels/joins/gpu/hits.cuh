// The elements of a batch that have one row each, or a flag, on a GPU: in order, without gaps.
//
//   count_codes, count_flags  each segment -> how many of its elements are hits
//   emit_codes, emit_flags    each hit -> its element, and its code
//
// Layout. A segment is kSegment elements in a row, of which a warp takes 32 at a time, one a lane. A hit is an element
// whose code is not negative, or whose flag is set.
//
// Protocol. The host sums up the counts of the segments, takes as much memory as there are hits, and launches emit. A
// warp begins where the hits of earlier segments end. A ballot tells each lane how many hits its neighbours have before
// its own. Both kernels read what earlier launches wrote, and write places of their own. Nothing is atomic.
//
// Why. Counts of single elements would be four bytes more to write and to read for each, and their sums eight.
#pragma once
#include "core/gpu/schedule.cuh"
#include "joins/abi.cuh"
#include "joins/gpu/abi.cuh"

namespace warphash {

WARPHASH_FN i32 code_at(const PairBatch& b, u64 i) { return load_once(reinterpret_cast<const i32*>(b.codes) + i); }

struct HitsOfCodes {
  using Word = i32;
  static constexpr bool kHasRows = true;
  WARPHASH_FN static bool is_hit(i32 code) { return code >= 0; }
};
struct HitsOfFlags {
  using Word = u8;
  static constexpr bool kHasRows = false;
  WARPHASH_FN static bool is_hit(u8 flag) { return flag != 0; }
};

// The elements of a segment that this lane has.
template <class Hits>
struct SegmentOfWarp {
  static constexpr u32 kRounds = kSegment / kWarpLanes;
  u64 first;
  typename Hits::Word words[kRounds];
  bool hits[kRounds];

  WARPHASH_FN SegmentOfWarp(const PairBatch& b, u64 segment) : first(segment * kSegment + lane()) {
#pragma unroll
    for (u32 k = 0; k < kRounds; ++k) words[k] = has(b, k) ? load_once(pointer_to(b) + element(k)) : 0;
#pragma unroll
    for (u32 k = 0; k < kRounds; ++k) hits[k] = has(b, k) && Hits::is_hit(words[k]);
  }
  WARPHASH_FN u64 element(u32 k) const { return first + k * kWarpLanes; }

 private:
  WARPHASH_FN bool has(const PairBatch& b, u32 k) const { return element(k) < b.n; }
  WARPHASH_FN static const typename Hits::Word* pointer_to(const PairBatch& b) {
    return reinterpret_cast<const typename Hits::Word*>(b.codes);
  }
};

struct OverSegments {
  using Table = RowLists;
  using Batch = PairBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = 256;
  template <class See>
  WARPHASH_FN static void for_each(const PairBatch& b, const See& see) {
    const u64 warps = threads_in_grid() / kWarpLanes;
    for (u64 segment = thread_in_grid() / kWarpLanes; segment * kSegment < b.n; segment += warps) see(segment);
  }
};

template <class Hits>
struct CountHits : OverSegments {
  WARPHASH_FN static void run(const RowLists&, const PairBatch& b) {
    for_each(b, [&](u64 segment) {
      const SegmentOfWarp<Hits> mine(b, segment);
      u32 count = 0;
#pragma unroll
      for (u32 k = 0; k < mine.kRounds; ++k) count += bit_count(ballot(mine.hits[k]));
      if (lane() == 0) reinterpret_cast<u64*>(b.sums)[segment] = count;
    });
  }
};

template <class Hits, class Out>
struct EmitHits : OverSegments {
  WARPHASH_FN static void run(const RowLists&, const PairBatch& b) {
    for_each(b, [&](u64 segment) {
      const SegmentOfWarp<Hits> mine(b, segment);
      u64 begin = reinterpret_cast<const u64*>(b.sums)[segment];
#pragma unroll
      for (u32 k = 0; k < mine.kRounds; ++k) {
        const u32 hits = ballot(mine.hits[k]);
        const u64 place = begin + bit_count(hits & ((1u << lane()) - 1));
        if (mine.hits[k]) {
          store_once(reinterpret_cast<Out*>(b.out_left) + place, static_cast<Out>(mine.element(k)));
          if constexpr (Hits::kHasRows)
            store_once(reinterpret_cast<Out*>(b.out_right) + place, static_cast<Out>(mine.words[k]));
        }
        begin += bit_count(hits);
      }
    });
  }
};

}  // namespace warphash
