// A batch in the order of the parts of a table of subtables, which follow each other (core/gpu/partition.cuh), of keys
// of 4 or 8 bytes.
#pragma once
#include "core/gpu/partition.cuh"
#include "subtables/lines.cuh"

namespace warphash {

struct PartsOfSubtables {
  using Table = SubtableTable;
  static constexpr u32 kCountingBlocks = 4, kMovingBlocks = 3;  // on a processor
  template <class Word>
  WARPHASH_FN static u32 of(const Table& t, const PartitionBatch& b, Word key) {
    return static_cast<u32>(number_of_all(t, bucket_in(t, Route::of(t, key).subtable, key)) >> b.part_shift);
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                                                                  \
  WARPHASH_ENTRY(count_parts4, warphash::CountParts<warphash::u32, warphash::PartsOfSubtables>) \
  WARPHASH_ENTRY(count_parts8, warphash::CountParts<warphash::u64, warphash::PartsOfSubtables>) \
  WARPHASH_ENTRY(partition4, warphash::Partition<warphash::u32, warphash::PartsOfSubtables>)    \
  WARPHASH_ENTRY(partition8, warphash::Partition<warphash::u64, warphash::PartsOfSubtables>)
