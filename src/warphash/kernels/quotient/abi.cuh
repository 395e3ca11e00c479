// What kernels on a quotient table are given (core/abi.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// A quotient table: how its buckets form ranges, and what a batch keeps of each range.
// `slots` is the address of the buckets, of 64 bytes each (quotient/bucket.cuh).
struct QuotientTable : Table {
  u64 ranges;         // of range_buckets buckets each
  u64 range_buckets;  // at most kMostRangeBuckets
  u64 inverse;        // of multiplier[0], under the multiplicative family
  u64 counters;       // address of a u32 for each range: elements that a batch brings there; 0 between two operations
  u64 starts;         // address of a u32 for each range: where its elements begin in `brought`; on a GPU, locks follow
                      // (quotient/gpu/locked.cuh)
};

// An operation on a quotient table.
struct QuotientBatch : Batch {
  u64 brought;  // Brought per element, or the hash of each key to erase, in the order of ranges
  u64 numbers;  // u32 per element of `brought`: its number in the batch; 0 if flags go in the order of `brought`
  u64 left;     // build: u32 per element of `brought`, for a list of those left to rounds
  u64 touched;  // u32 list of ranges, its length in Report::winners; build on a GPU: 0 for all ranges
  u64 erases;   // apply: 0 to add the keys; to erase them, the bytes of an element of `brought`, which then may have
                // no value
  u64 first_bucket;  // scan: the bucket of the first slot
  u64 heavy;         // u32 list of ranges that apply_in_place leaves to apply, its length in Report::leftover; or 0
  u64 unique;        // build: whether no key repeats
  u64 crowds;        // Crowd per range, for the crowded ones, which Report::unused[0] counts; on a GPU
  u64 rest;          // u32 per element of `brought`, for the elements of crowded ranges that are listed; apply_some and
                     // build_some: 0 for a sample of the elements
};

// The buckets of a quotient table that another one takes over (quotient/gpu/take_over.cuh).
// The two have the same hash constants.
struct TakeOverBatch : QuotientBatch {
  u64 source_slots;          // their address
  u64 source_buckets;        // their number
  u64 source_range_buckets;  // of each of their ranges
};

// A pass over the elements of a large batch (quotient/gpu/partition.cuh).
struct PassBatch : Launch {
  u64 keys;        // Word per element, in the order of the caller
  u64 values;      // Word per element, or 0
  u64 source;      // what a pass reads: Brought per element, in the order of parts; restore_flags: u8 per element
  u64 target;      // what it writes: the same in its new order
  u64 places;      // u32 per element: where the pass puts it in `target`; 0 if nobody asks
  u64 touched;     // u32 list of ranges, its length in Report::winners
  u64 parts;       // of the table
  u64 part_shift;  // logarithm of the ranges of a part
  u64 given;       // u32 per part, zero before count: its elements, if parts are counted; then the places of it given
                   // out; behind them, the number of tiles
  u64 tiles;       // u64 per tile of a part, zero before parts are arranged; 0 if parts are ranges
  u64 most_tiles;  // that it has room for
  u64 share;       // count: elements of a block, at most kMostCounted
  u64 bin_ranges;  // count: ranges that it counts together: one, or those of a part
};

// What a quotient design takes.
struct OverQuotients {
  using Table = QuotientTable;
  using Batch = QuotientBatch;
};

}  // namespace warphash
