// What kernels on a quotient table are given that only a GPU runs (quotient/abi.cuh).
#pragma once
#include "quotient/abi.cuh"

namespace warphash {

// A batch that is one launch, but for elements that it leaves (quotient/gpu/locked.cuh, quotient/gpu/erase.cuh).
struct OneLaunchBatch : QuotientBatch {
  u64 locks;     // a bit for each bucket, in u32 words; all 0 between two kernels
  u64 left_out;  // u32 list of the elements that are left to the ranges, its length in Report::leftover
};

}  // namespace warphash
