// The slab allocator by itself (chains/slab_allocator.cuh), for storage/chains/node_pool.py.
//
//   take       an address for each element, kNoSlab where the pool has none left; Report::changed counts the slabs
//   give_back  wipes and frees slabs by their addresses; Report::changed counts those that were taken, mismatches the
//              addresses that are of no slab
//
// Of the table there is only `pool`; `addresses` are u32.
#pragma once
#include "chains/slab_allocator.cuh"
#include "core/report.cuh"

namespace warphash {

struct Take : TakesSlabs {
  using Table = ChainTable;
  using Batch = SlabBatch;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 0;
  struct State {
    u32 slab;
  };
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const Table&, const Batch&, u64, State&) { return false; }
  WARPHASH_FN static bool wants_slab(const State&) { return true; }
  WARPHASH_FN static bool supply(const Table&, State& s, u32 slab) {
    s.slab = slab;
    return true;
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64 i, State& s, bool live, Tally& tally) {
    if (!live) return;
    tally.changed += s.slab != kNoSlab;
    store_once(reinterpret_cast<u32*>(b.addresses) + i, s.slab);
  }
};

struct GiveBack {
  using Table = ChainTable;
  using Batch = SlabBatch;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 0;
  struct State {
    bool known, was_taken;
  };
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const u32 address = reinterpret_cast<const u32*>(b.addresses)[i];
    s = {is_slab(pool_of(t), address), false};
    if (!s.known) return false;
    wipe_slab(pool_of(t), address);
    s.was_taken = release_slab(pool_of(t), address);
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State& s, bool live, Tally& tally) {
    tally.changed += live && s.was_taken;
    tally.mismatches += live && !s.known;
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES         \
  WARPHASH_ENTRY(take, warphash::Take) \
  WARPHASH_ENTRY(give_back, warphash::GiveBack)
