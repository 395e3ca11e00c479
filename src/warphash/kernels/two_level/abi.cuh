// What kernels on a two-level table are given (core/abi.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// A two-level table: a directory, and what its placements may try.
// `slots` is used by scans alone: a bucket's slots lie where the directory says.
struct TwoLevelTable : Table {
  u64 directory;    // address of a Range for each bucket (two_level/ranges.cuh)
  u64 counters;     // address of a u32 for each bucket: the head of a list of elements, or a number of pairs
  u64 reserved;     // address of three slots for the reserved keys
  u64 round_limit;  // rounds of a placement before the bucket draws new seeds
  u64 seed_limit;   // sets of seeds that a placement tries
};

// An operation on a two-level table.
struct TwoLevelBatch : InsertBatch {
  u64 chain;          // u32 per element: the next element of the same bucket
  u64 touched;        // u32 list of buckets
  u64 touched_count;  // address of its length, u64
  u64 source_slots;   // scatter_slots: slots of another table
  u64 source_keys;    // scatter_slots: how many of these slots are no reserved ones
  u64 moves;          // move: address of a Range for each touched bucket
  u64 first_bucket;   // lay_out: the bucket of the first range
  u64 ranges;         // lay_out: address of the first range
  u64 range_slots;    // lay_out: slots of each range
};

// What a two-level design takes.
struct OverRanges {
  using Table = TwoLevelTable;
  using Batch = TwoLevelBatch;
};

}  // namespace warphash
