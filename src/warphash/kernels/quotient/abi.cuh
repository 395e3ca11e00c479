// What kernels on a quotient table are given (core/abi.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// `slots` is the address of the buckets, of 64 bytes each (quotient/bucket.cuh).
struct QuotientTable : Table {
  u64 ranges;         // of range_buckets buckets each
  u64 range_buckets;  // at most kMostRangeBuckets
  u64 inverse;        // of multiplier[0], under the multiplicative family
  u64 counters;       // address of a u32 for each range: elements that a batch brings there; 0 between two operations
  u64 starts;         // address of a u32 for each range: where its elements begin in `brought`
};

struct QuotientBatch : Batch {
  u64 brought;       // Brought per element, in the order of ranges
  u64 numbers;       // u32 per element of `brought`: its number in the batch; in a build, elements left to rounds
  u64 touched;       // u32 list of ranges, its length in Report::winners
  u64 erases;        // apply: 1 to erase the keys, 0 to add them
  u64 part_shift;    // count, scatter: logarithm of the ranges of a part that elements come in the order of
  u64 first_bucket;  // scan: the bucket of the first slot
};

// What a quotient design takes.
struct OverQuotients {
  using Table = QuotientTable;
  using Batch = QuotientBatch;
};

}  // namespace warphash
