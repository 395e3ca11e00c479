// The entry points of a two-level design on a GPU: a block of threads is a block.
#pragma once
#include "two_level/entries.cuh"

namespace warphash {

template <class Work>
struct BlocksOfThreads : OverRanges {
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kPlacingThreads;
  WARPHASH_FN static void run(const TwoLevelTable& t, const TwoLevelBatch& b) {
    Work::run_block(t, b, thread_in_grid() / kPlacingThreads, block_memory<Work::kMemoryBytes>());
  }
};

}  // namespace warphash

#define WARPHASH_ENTRIES(D, WORD, VALUED, N) \
  WARPHASH_TWO_LEVEL_ENTRIES(warphash::BlocksOfThreads, WARPHASH_DESIGN(D, WORD, VALUED, N))
