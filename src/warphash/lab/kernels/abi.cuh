// What the kernels of the ceilings are given (core/abi.cuh); lab/ceilings.py mirrors it. Their batch is a Launch.
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Memory of which random places are read.
struct Region {
  u64 address;
  u64 places;
  u64 place_bytes;  // 4 to 512, a power of two
};

}  // namespace warphash
