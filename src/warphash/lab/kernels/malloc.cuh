// Kernels that call the platform's malloc: the device-side malloc on a GPU, the C library's malloc on a CPU.
// lab/figures/allocators.py compares the slab allocator with it (A Dynamic Hash Table for the GPU, section V).
//
//   take       call malloc(kSlabBytes) for each element; store the address in `addresses` (u64; 0 if out of memory)
//   give_back  free the units in `addresses`
//
// Why no counters. take is timed. The host counts the failures afterwards, from the addresses.
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
