// The entry points of a two-level design on a CPU: a thread takes one bucket after another.
#pragma once
#include "two_level/entries.cuh"

namespace warphash {

template <class Work>
struct OneThreadEach : OverRanges {
  static constexpr bool kWalks = true;
  static void run(const TwoLevelTable& t, const TwoLevelBatch& b, u64 begin, u64 end) {
    const TwoLevelTable table = t;  // a local copy, as in core/cpu/schedule.cuh
    alignas(64) u8 memory[Work::kMemoryBytes];
    for (u64 number = (begin + kPlacingThreads - 1) / kPlacingThreads; number * kPlacingThreads < end; ++number)
      Work::run_block(table, b, number, memory);
  }
};

}  // namespace warphash

#define WARPHASH_ENTRIES(D, WORD, VALUED, N) \
  WARPHASH_TWO_LEVEL_ENTRIES(warphash::OneThreadEach, WARPHASH_DESIGN(D, WORD, VALUED, N))
