// A batch in the order of the parts of a table of buckets (core/gpu/partition.cuh), of keys of 4 or 8 bytes.
#pragma once
#include "buckets/abi.cuh"
#include "core/gpu/partition.cuh"
#include "core/hash.cuh"

namespace warphash {

struct PartsOfBuckets {
  using Table = BucketTable;
  static constexpr u32 kCountingBlocks = 8, kMovingBlocks = 4;  // on a processor
  template <class Word>
  WARPHASH_FN static u32 of(const Table& t, const PartitionBatch& b, Word key) {
    return bucket_with(t, key, t.multiplier[0], t.addend[0]) >> static_cast<u32>(b.part_shift);
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                                                                \
  WARPHASH_ENTRY(count_parts4, warphash::CountParts<warphash::u32, warphash::PartsOfBuckets>) \
  WARPHASH_ENTRY(count_parts8, warphash::CountParts<warphash::u64, warphash::PartsOfBuckets>) \
  WARPHASH_ENTRY(partition4, warphash::Partition<warphash::u32, warphash::PartsOfBuckets>)    \
  WARPHASH_ENTRY(partition8, warphash::Partition<warphash::u64, warphash::PartsOfBuckets>)
