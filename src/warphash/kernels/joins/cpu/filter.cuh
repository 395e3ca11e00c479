// Which words of a batch may be among others, on a CPU: a filter has bits of the others.
//
//   add_to_filter  words -> their bits
//   list_likely    each chunk of words -> those whose bits are all set, and their elements
//   gather_likely  the lists of all chunks, one behind the other
//
// Layout. A filter has `size` cells of 64 bits, 0 at first. A word has two bits of one cell. Its hash names all three:
//
//   bit   63                                 12        6         0
//         [ cell: the product with `size`     |  bit 1  |  bit 0  ]
//
// The list of a chunk begins in `listed`, and in `listed_words`, where its elements do in the batch.
//
// Protocol.
//   1. add_to_filter: a thread sets the bits of a word by a fetch-or (relaxed), unless a relaxed load shows them. The
//      end of the launch orders them before list_likely.
//   2. list_likely: a thread writes the list of each chunk that begins in its part of the batch, and how long it is.
//   3. The host sums up the lengths, and takes as much memory as there are likely words.
//   4. gather_likely: a thread copies the lists of its chunks to their places.
//
// Why. A lookup in a table reads a line of 64 bytes, whether the word is there or not. Where few are there, most lookups
// can be left out by two bits of a word that lies in a near cache. With 16 bits of the filter for each word, one in 50
// of the absent words is likely: a cell has the bits of 4 words on average (Putze, Sanders and Singler, Cache-, hash-
// and space-efficient Bloom filters, 2007, section 3: blocked filters, here with blocks of a word).
//
// Words are listed, too: they are at hand. To fetch them later would read most lines of the batch again.
//
// An element is listed before it is known whether it is likely: the next one overwrites it. A branch would often be
// foretold badly.
//
// Cells are asked for 64 words ahead of their use. While a join reads a file beside it, 100 M words took 1.5 to 2.0 s
// without that, and take 0.9 to 1.1 s (a filter of 10 M words). Where a cache has the whole filter, a word takes 2.3 ns
// in place of 1.8.
#pragma once
#include "core/hash.cuh"
#include "groups/cpu/number.cuh"
#include "joins/abi.cuh"

namespace warphash {

// Where the bits of a word are.
struct FilterBits {
  u64 cell, bits;
  template <class Word>
  FilterBits(const FilterBatch& b, Word word) {
    const u64 mixed = static_cast<u64>(word) ^ b.salt;
    bits = mixed * kFactor ^ multiply_high(mixed, kFactor);
    cell = multiply_high(bits, b.size);
  }
  u64 mask() const { return 1ull << (bits & 63) | 1ull << (bits >> 6 & 63); }
  u64 are_in(u64 seen) const { return are_in(bits, seen); }  // 1 or 0
  static u64 are_in(u64 bits, u64 seen) { return seen >> (bits & 63) & seen >> (bits >> 6 & 63) & 1; }

 private:
  static constexpr u64 kFactor = 0x9fb21c651e98df25ull;
};

template <class Word>
struct AddToFilter {
  static bool run(const Chunks&, const FilterBatch& given, u64, u64 begin, u64 end) {
    const FilterBatch b = given;
    const Word* const words = pointer<const Word>(b.keys);
    for (u64 i = begin; i < end; ++i) {
      const FilterBits word(b, words[i]);
      u64* const cell = pointer<u64>(b.cells) + word.cell;
      if (!word.are_in(load_relaxed(cell))) fetch_or(cell, word.mask());
    }
    return true;
  }
};

template <class Word>
struct ListLikely {
  static bool run(const Chunks&, const FilterBatch& given, u64 chunk, u64 begin, u64 end) {
    const FilterBatch b = given;
    const Word* const words = pointer<const Word>(b.keys);
    const u64* const cells = pointer<const u64>(b.cells);
    u32* const listed = pointer<u32>(b.listed) + begin;
    Word* const listed_words = pointer<Word>(b.listed_words) + begin;
    u64 count = 0, found[kAsked], bits[kAsked];
    for (u64 first = begin; first < end; first += kAsked) {
      const u64 n = end - first < kAsked ? end - first : kAsked;
      for (u64 k = 0; k < n; ++k) {
        const FilterBits word(b, words[first + k]);
        prefetch(cells + word.cell);
        found[k] = word.cell;
        bits[k] = word.bits;
      }
      for (u64 k = 0; k < n; ++k) {
        listed[count] = static_cast<u32>(first + k);
        listed_words[count] = words[first + k];
        count += FilterBits::are_in(bits[k], cells[found[k]]);
      }
    }
    pointer<u64>(b.sums)[chunk] = count;
    return true;
  }

 private:
  static constexpr u64 kAsked = 64;  // cells that are asked for together
};

template <class Word>
struct GatherLikely {
  static bool run(const Chunks&, const FilterBatch& b, u64 chunk, u64 begin, u64) {
    const u64* const sums = pointer<const u64>(b.sums);
    const u64 to = sums[chunk], count = sums[chunk + 1] - to;
    copy(pointer<u32>(b.out_elements) + to, pointer<const u32>(b.listed) + begin, count);
    copy(pointer<Word>(b.out_words) + to, pointer<const Word>(b.listed_words) + begin, count);
    return true;
  }

 private:
  template <class T>
  static void copy(T* to, const T* from, u64 count) {
    for (u64 i = 0; i < count; ++i) to[i] = from[i];
  }
};

template <class Of4, class Of8>
using OverFilters = OverChunks<FilterBatch, Of4, Of8>;

}  // namespace warphash
