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
#define WARPHASH_PLAIN_ENTRIES                                                                              \
  WARPHASH_ENTRY(count_parts4, warphash::CountParts<warphash::u32, warphash::LookupPartsOfSubtables>)       \
  WARPHASH_ENTRY(count_parts8, warphash::CountParts<warphash::u64, warphash::LookupPartsOfSubtables>)       \
  WARPHASH_ENTRY(partition_keys4, warphash::PartitionKeys<warphash::u32, warphash::LookupPartsOfSubtables>) \
  WARPHASH_ENTRY(partition_keys8, warphash::PartitionKeys<warphash::u64, warphash::LookupPartsOfSubtables>) \
  WARPHASH_ENTRY(restore_order4, warphash::RestoreOrder<warphash::u32, warphash::LookupPartsOfSubtables>)   \
  WARPHASH_ENTRY(restore_order8, warphash::RestoreOrder<warphash::u64, warphash::LookupPartsOfSubtables>)
