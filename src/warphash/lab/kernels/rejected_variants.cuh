// What the variants need that the authors of HH Hash tried and gave up, on tables of two_level_cuckoo with pairs of 4 + 4
// bytes. Source: HH Hash, the two attempts before the final implementation. lab/figures/rejected.py measures them.
//
//   bucket_ids      write the bucket of each key; the host sorts a batch by them before a build
//   layout_rounds   a block for each bucket: does the bucket find a layout in round_limit rounds? As two_level/place.cuh:
//                   round r under function r mod m
//   layout_random   the same, but each pair in hand draws its function anew in each round
//
// The layout kernels read the pairs that `scatter` (two_level/insert.cuh) has brought to the front of each range, and
// write to no range, so one scatter serves many of them. They draw no new seeds. They count the buckets that have a
// layout in `changed`, the others in `unplaced`, and the rounds that were needed in `probes`.
#pragma once
#include "core/straight.cuh"
#include "designs/two_level_cuckoo.cuh"
#include "two_level/place.cuh"

namespace warphash {

using PlainPairs = TwoLevelCuckoo<Slots<u32, true, 1>>;

struct BucketIds : Straight<TwoLevelTable, TwoLevelBatch> {
  WARPHASH_FN static bool start(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i, State&) {
    store_once(pointer<u32>(b.out_counts) + i, PlainPairs::bucket_of(t, pointer<const u32>(b.keys)[i]));
    return false;
  }
};

template <bool kRandom>
struct FindLayout : OverRanges {
  using Memory = Placing<PlainPairs>::Memory;
  static constexpr u64 kMemoryBytes = sizeof(Memory);
  static constexpr u16 kNone = Placing<PlainPairs>::kNone;

  WARPHASH_FN static void run_block(const TwoLevelTable& t, const TwoLevelBatch& b, u64 number, void* memory) {
    if (number >= t.buckets) return;
    const u32 bucket = static_cast<u32>(number);
    const Range range = Ranges<PlainPairs::S>::entry(t, bucket)->range();
    Placing<PlainPairs> placing(t, b, memory);
    const u32 brought = *Ranges<PlainPairs::S>::counter(t, bucket);
    const u32 n = brought < range.slots ? brought : range.slots;
    for (u32 i = placing.id; i < n; i += placing.threads) {
      placing.m.pairs[i] = load_slot<false>(Ranges<PlainPairs::S>::slots(range) + i);
      placing.m.hand[i] = static_cast<u16>(i);
    }
    placing.vacate(range);
    if (placing.id == 0) placing.m.left[0] = 0;
    block_barrier();
    const u32 rounds = count_rounds(t, b, placing, range, n);
    if (placing.id != 0) return;
    atomic_add(&count_line(b, bucket).changed, static_cast<u64>(rounds != 0));
    atomic_add(&count_line(b, bucket).probes, static_cast<u64>(rounds));
    atomic_add(&report_of(b)->unplaced, static_cast<u64>(rounds == 0));
  }

 private:
  // 0 if a pair is in hand after the last round.
  WARPHASH_FN static u32 count_rounds(const TwoLevelTable& t, const TwoLevelBatch& b, Placing<PlainPairs>& placing,
                                      const Range& range, u32 n) {
    auto& m = placing.m;
    const u32 hashes = static_cast<u32>(t.hashes), end = range.slots / hashes;
    for (u32 r = 0; r < t.round_limit; ++r) {
      bool holds = false;
      for (u32 i = placing.id; i < n; i += placing.threads) {
        if (m.hand[i] == kNone) continue;
        const u32 pair = m.hand[i];
        const u32 drawn = mix(static_cast<u32>(b.random) ^ (r << 16 | pair));
        const u32 function = kRandom ? scale(drawn, hashes) : r % hashes;
        const u32 at = function * end + PlainPairs::slot_of(t, m.pairs[pair].key, range.seed, function, end);
        const u32 other = exchange(m.slots + at, Placing<PlainPairs>::Number{pair}).pair;
        const bool displaced = other != Placing<PlainPairs>::kNobody;
        m.hand[i] = displaced ? static_cast<u16>(other) : kNone;
        holds |= displaced;
      }
      if (ballot(holds) && lane() == 0) fetch_or(m.left + r % 3, 1u);
      if (placing.id == 0) m.left[(r + 1) % 3] = 0;
      block_barrier();
      if (!m.left[r % 3]) return r + 1;
    }
    return 0;
  }
};

}  // namespace warphash

// BLOCKS is the schedule of kernels with a block for each bucket.
#define WARPHASH_REJECTED_ENTRIES(BLOCKS)                            \
  WARPHASH_ENTRY(bucket_ids, warphash::BucketIds)                    \
  WARPHASH_ENTRY(layout_rounds, BLOCKS<warphash::FindLayout<false>>) \
  WARPHASH_ENTRY(layout_random, BLOCKS<warphash::FindLayout<true>>)
