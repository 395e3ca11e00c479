// What kernels on a quotient table are given that only a GPU runs (quotient/abi.cuh).
#pragma once
#include "quotient/abi.cuh"

namespace warphash {

// A batch for a quotient table that is one launch, but for elements that it leaves (quotient/gpu/locked.cuh, quotient/gpu/erase.cuh).
struct OneLaunchBatch : QuotientBatch {
  u64 left_out;  // u32 list of the elements that are left to the ranges, its length in Report::leftover
};

// The report of an update of few elements (quotient/gpu/few.cuh).
struct FewReport {
  u64 added;    // keys, as of the last answer
  u64 adopted;  // pairs that the table has adopted
};

// An update of few elements of a quotient table, which leaves none. `report` is a FewReport.
struct FewBatch : OneLaunchBatch {
  u64 adopted_keys;    // Word per adopted pair; 0 to adopt none. Otherwise every element has a flag
  u64 adopted_values;  // Word per adopted pair
  u64 goes_on;         // 1: counts keys behind those of the update before; 0: counts from 0
  u64 answer;          // five words of host memory
  u64 ticket;          // what the first of them becomes
};

}  // namespace warphash
