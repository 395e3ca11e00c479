// What kernels on a quotient table are given that only a CPU runs (quotient/abi.cuh).
#pragma once
#include "quotient/abi.cuh"

namespace warphash {

// Elements of a launch that stand for a part of a batch: as many as a thread takes at least.
constexpr u32 kPartElements = 1 << 13;

// A build of all lines of a table, from a batch that is cut into parts (quotient/cpu/build.cuh).
struct BuildByGroupsBatch : QuotientBatch {
  u64 parts;         // of the batch
  u64 part_length;   // elements of a part; the last has the rest
  u64 groups;        // of ranges in a row
  u64 group_ranges;  // ranges of a group
  u64 places;        // u32 per part and group, and per group once more: elements of the group in the part; then where
                     // these begin in `brought`, and last where those of the group end
  u64 capacity;      // elements of a group that `brought` has room for; 0 if it has one group right behind another
};

}  // namespace warphash
