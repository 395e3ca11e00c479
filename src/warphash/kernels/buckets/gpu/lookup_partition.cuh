// A large lookup in the order of the parts of a table of buckets (core/gpu/lookup_partition.cuh), of keys of 4 or 8
// bytes.
#pragma once
#include "buckets/gpu/partition.cuh"
#include "core/gpu/lookup_partition.cuh"

namespace warphash {

struct LookupPartsOfBuckets : PartsOfBuckets {
  static constexpr u32 kRestoringBlocks = 5;  // on a processor
};

}  // namespace warphash

#undef WARPHASH_PLAIN_ENTRIES  // of a unit that partitions updates
#define WARPHASH_PLAIN_ENTRIES WARPHASH_LOOKUP_PARTITION_ENTRIES(warphash::LookupPartsOfBuckets)
