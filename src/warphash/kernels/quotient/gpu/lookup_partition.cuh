// A large lookup in the order of the parts of a quotient table (core/gpu/lookup_partition.cuh), of keys of 4 or 8 bytes.
//
// A part is a power of two of buckets in a row. A key goes to the part of its home; its second bucket, in the same
// range, is at most kMostRangeBuckets buckets away.
#pragma once
#include "core/gpu/lookup_partition.cuh"
#include "quotient/permutation.cuh"

namespace warphash {

struct LookupPartsOfRanges {
  using Table = QuotientTable;
  static constexpr u32 kCountingBlocks = 8, kMovingBlocks = 4, kRestoringBlocks = 5;  // on a processor
  template <class Word>
  WARPHASH_FN static u32 of(const Table& t, const PartitionBatch& b, Word key) {
    const Word home = multiply_high(permuted(t, key), static_cast<Word>(t.buckets));
    return static_cast<u32>(home) >> static_cast<u32>(b.part_shift);
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES WARPHASH_LOOKUP_PARTITION_ENTRIES(warphash::LookupPartsOfRanges)
