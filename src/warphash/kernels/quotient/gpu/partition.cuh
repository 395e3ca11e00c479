// A batch in the order of the parts of a quotient table, of as many ranges each (core/gpu/partition.cuh), of keys of 4
// or 8 bytes. `part_shift` is the logarithm of the ranges of a part.
#pragma once
#include "core/gpu/partition.cuh"
#include "quotient/permutation.cuh"

namespace warphash {

struct PartsOfRanges {
  using Table = QuotientTable;
  static constexpr u32 kCountingBlocks = 8, kMovingBlocks = 4;  // on a processor
  template <class Word>
  WARPHASH_FN static u32 of(const Table& t, const PartitionBatch& b, Word key) {
    const Word range = multiply_high(permuted(t, key), static_cast<Word>(t.ranges));
    return static_cast<u32>(range) >> static_cast<u32>(b.part_shift);
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                                                               \
  WARPHASH_ENTRY(count_parts4, warphash::CountParts<warphash::u32, warphash::PartsOfRanges>) \
  WARPHASH_ENTRY(count_parts8, warphash::CountParts<warphash::u64, warphash::PartsOfRanges>) \
  WARPHASH_ENTRY(partition4, warphash::Partition<warphash::u32, warphash::PartsOfRanges>)    \
  WARPHASH_ENTRY(partition8, warphash::Partition<warphash::u64, warphash::PartsOfRanges>)
