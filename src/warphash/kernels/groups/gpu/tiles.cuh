// How blocks of a GPU go through a batch in tiles of kRoundTile elements, a block each, in rounds of neighbours.
//
// Why tiles. A kernel with one element for each thread is bound by the start of its blocks: 100 M elements take 0.95 ms
// (H200), whatever a thread does.
#pragma once
#include "core/gpu/schedule.cuh"

namespace warphash {

constexpr u32 kRoundThreads = block_threads(512), kRoundTile = 8192;

struct OverTilesOfRounds {
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kRoundThreads;
  WARPHASH_FN static u64 block() { return thread_in_grid() / kRoundThreads; }
  WARPHASH_FN static u64 blocks() { return threads_in_grid() / kRoundThreads; }
};

}  // namespace warphash
