// Arguments of the ceiling kernels (core/abi.cuh): a Region, which lab/bench/ceilings.py mirrors, and a Launch as the batch.
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Memory that the kernels read at random places.
struct Region {
  u64 address;
  u64 places;
  u64 place_bytes;  // 4 to 512, a power of two
};

}  // namespace warphash
