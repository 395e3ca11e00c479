// What kernels on a quotient table are given that only a GPU runs (quotient/abi.cuh).
#pragma once
#include "quotient/abi.cuh"

namespace warphash {

// Lists of adopted pairs (quotient/gpu/adopted.cuh).
constexpr u32 kAdoptedLists = 512;

// The pairs that a quotient table has adopted (quotient/gpu/adopted.cuh).
struct AdoptedPairs {
  u64 pairs;                 // those that were erased again included
  u64 lists[kAdoptedLists];  // the last pair of each list: its number plus one; 0 for an empty list
};

// A batch for a quotient table whose elements have a lane each (quotient/gpu/put.cuh, quotient/gpu/locked.cuh,
// quotient/gpu/few.cuh, quotient/gpu/erase.cuh). Its report is all 0 before, and is so again behind the last launch.
struct OneLaunchBatch : QuotientBatch {
  u64 stuck;            // u32 list of the elements that put_alone leaves, its length in Report::winners
  u64 left_out;         // u32 list of the elements that are left by all others, its length in Report::leftover
  u64 adopted;          // address of the AdoptedPairs
  u64 adopted_keys;     // Word per adopted pair; 0 to adopt none. Otherwise every element has a flag
  u64 adopted_values;   // Word per adopted pair
  u64 adopted_next;     // u32 per adopted pair: the one before it in its list
  u64 finishes;         // update_few: 1 behind other launches of this batch, which have counted into the report
  u64 renewed;          // u32 list of buckets, one of each range whose filters an erase has made anew
  u64 renewals;         // address of its length
  u64 renewals_before;  // address of the length of the list of the erase before
  u64 answer;           // five words of host memory
  u64 ticket;           // what the first of them becomes
};

}  // namespace warphash
