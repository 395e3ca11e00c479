// A large lookup in the order of the parts of a table of subtables (core/gpu/lookup_partition.cuh), of keys of 4 or 8
// bytes.
#pragma once
#include "core/gpu/lookup_partition.cuh"
#include "subtables/gpu/partition.cuh"

namespace warphash {

struct LookupPartsOfSubtables : PartsOfSubtables {
  static constexpr u32 kRestoringBlocks = 5;  // on a processor
};

}  // namespace warphash

#undef WARPHASH_PLAIN_ENTRIES  // of a unit that partitions updates
#define WARPHASH_PLAIN_ENTRIES WARPHASH_LOOKUP_PARTITION_ENTRIES(warphash::LookupPartsOfSubtables)
