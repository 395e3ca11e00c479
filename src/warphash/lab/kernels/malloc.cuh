// The heap that the platform itself has for running threads, against which the slab allocator is measured
// (A Dynamic Hash Table for the GPU, section V; lab/allocators.py): device-side malloc on a GPU, the C library's
// on a CPU.
//
//   take       one malloc of kSlabBytes for each element; its address, 0 where there was no room, to `addresses` (u64)
//   give_back  frees the units at `addresses`
//
// Why no counters. take is timed, and whoever reads the addresses can count them.
#pragma once
#include "chains/slab_allocator.cuh"
#include "core/straight.cuh"

namespace warphash {

struct MallocTake : Straight<ChainTable, SlabBatch> {
  WARPHASH_FN static bool start(const ChainTable&, const SlabBatch& b, u64 i, State&) {
    store_once(reinterpret_cast<u64*>(b.addresses) + i, reinterpret_cast<u64>(malloc(kSlabBytes)));
    return false;
  }
};

struct MallocGiveBack : Straight<ChainTable, SlabBatch> {
  WARPHASH_FN static bool start(const ChainTable&, const SlabBatch& b, u64 i, State&) {
    free(reinterpret_cast<void*>(reinterpret_cast<const u64*>(b.addresses)[i]));
    return false;
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES               \
  WARPHASH_ENTRY(take, warphash::MallocTake) \
  WARPHASH_ENTRY(give_back, warphash::MallocGiveBack)
