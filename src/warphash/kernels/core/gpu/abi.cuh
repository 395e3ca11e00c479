// What the kernels that only a GPU runs, and that all families share, are given (core/abi.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// The keys of a large lookup in the order of the parts of a table, and its answers in the order of the caller
// (core/gpu/lookup_partition.cuh).
struct LookupPartitionBatch : PartitionBatch {
  u64 places;     // u16 per element: its place in its tile, in the order of the parts
  u64 runs;       // [ place of a run in its tile 32 | in the output 32 ] for each part of each tile
  u64 flags;      // u8 per element, in the order of the parts
  u64 out_flags;  // the same in the order of the caller
  u64 out_rows;   // u32 per element, in the order of the parts: its number
};

}  // namespace warphash
