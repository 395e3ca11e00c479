// What kernels on buckets are given (core/abi.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// A table of buckets, with the parameters of its design.
struct BucketTable : Table {
  u64 early_exit;   // 1: find stops at a bucket that was never full
  u64 chain_limit;  // cuckoo: evictions before a key is given up
  u64 placement;    // bucketed cuckoo: Placement
  u64 threshold;    // iceberg: slots of a primary bucket that are open to every key
  u64 probe_limit;  // linear probing: buckets in a row that a key may be in
};

// The bucket that a key is placed in: the first with a free slot, or the one with the fewest keys.
enum Placement : u64 { kFirst = 0, kLeastLoaded = 1 };

// An operation on a table of buckets.
struct BucketBatch : InsertBatch {
  u64 source_slots;    // migrate: address of the slots of another table
  u64 source_buckets;  // and how many of its hashed buckets begin there
  u64 answer;          // one block: address, in memory of the host, of the outcome (buckets/gpu/one_block.cuh)
  u64 ticket;          // and what its first word becomes
  u64 adopts;          // one block: 1: pairs that find no slot become displaced pairs
};

// The build of a table of buckets on a CPU (buckets/cpu/build.cuh).
struct BuildBatch : Launch {
  u64 keys;            // Word per element
  u64 values;          // Word per element
  u64 left_keys;       // of the pairs that go into no first bucket: room for n words
  u64 left_values;     // likewise
  u64 chunks;          // u64 per part: chunks of it that are given out
  u64 parts;           // at most kMostBuildParts
  u64 part_shift;      // logarithm of the buckets of a part
  u64 source_slots;    // scatter_slots: address of the slots of another table
  u64 source_buckets;  // and how many hashed buckets it has
};

// What a design over buckets takes.
struct OverBuckets {
  using Table = BucketTable;
  using Batch = BucketBatch;
};

}  // namespace warphash
