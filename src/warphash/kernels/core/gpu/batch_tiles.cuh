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

// A task of one straight step for each element, in rounds.
template <class Task>
struct InRounds : OverTilesOfRounds {
  using Table = typename Task::Table;
  using Batch = typename Task::Batch;
  WARPHASH_FN static void run(const Table& t, const Batch& b) {
    const u64 begin = block() * kRoundTile + thread_in_block();
    typename Task::State state;
    for (u64 i = begin; i < begin - thread_in_block() + kRoundTile && i < b.n; i += kRoundThreads)
      Task::start(t, b, i, state);
  }
};

}  // namespace warphash
