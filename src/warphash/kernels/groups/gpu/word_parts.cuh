// Words in the order of the parts of their cells, and their numbers back (core/gpu/lookup_partition.cuh).
//
//   count_words      how many words each part has
//   move_words       copies words, and the numbers of their elements, in the order of the parts
//   restore_numbers  copies numbers from the order of the parts to that of the elements
//
// Layout. A part has the cells of the words whose hashes begin with the same bits. So it is a piece of the cells, since
// the cell of a word is the product of its hash and the number of cells (groups/gpu/word_cells.cuh).
//
// Why. If the cells are larger than the cache, each word fetches a line of memory, and each new key an atomic's. The
// words that run at one time go to one part, whose lines stay in the cache. For each word of 8 bytes: 8 to count; 8 +
// 12 to move it, and 3 to find the way back; 12 to claim; 4 + 4 to learn the number; 2 + 1 + 4 + 8 for the way back.
#pragma once
#include "core/gpu/lookup_partition.cuh"
#include "groups/gpu/word_cells.cuh"

namespace warphash {

struct PartsOfCells {
  using Table = WordCells;
  static constexpr u32 kCountingBlocks = 4, kMovingBlocks = 3, kRestoringBlocks = 4;  // on a processor
  WARPHASH_FN static u32 of(const WordCells& t, const PartitionBatch& b, u64 key) {
    return static_cast<u32>(hash_of_word(t, key) >> b.part_shift);
  }
};

template <class Word, class Out>
using RestoreNumbers = RestoreOrder<Word, PartsOfCells, u32, Out>;

}  // namespace warphash

// By the bytes of a word, and those of a number.
#define WARPHASH_WORD_PARTS_ENTRIES                                                                 \
  WARPHASH_ENTRY(count_words4, warphash::CountParts<warphash::u32, warphash::PartsOfCells>)         \
  WARPHASH_ENTRY(count_words8, warphash::CountParts<warphash::u64, warphash::PartsOfCells>)         \
  WARPHASH_ENTRY(move_words4, warphash::PartitionKeys<warphash::u32, warphash::PartsOfCells, true>) \
  WARPHASH_ENTRY(move_words8, warphash::PartitionKeys<warphash::u64, warphash::PartsOfCells, true>) \
  WARPHASH_ENTRY(restore_numbers44, warphash::RestoreNumbers<warphash::u32, warphash::u32>)         \
  WARPHASH_ENTRY(restore_numbers48, warphash::RestoreNumbers<warphash::u32, warphash::u64>)         \
  WARPHASH_ENTRY(restore_numbers84, warphash::RestoreNumbers<warphash::u64, warphash::u32>)         \
  WARPHASH_ENTRY(restore_numbers88, warphash::RestoreNumbers<warphash::u64, warphash::u64>)
