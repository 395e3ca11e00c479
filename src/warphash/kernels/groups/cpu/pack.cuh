// Rows of integer columns as words that are equal exactly if the rows are, on a CPU.
//
//   bounds  the least and the greatest integer of each column, chunk by chunk, as signed and as unsigned integers
//   pack    columns -> words
//
// Layout. A word is a number whose digits are the integers of its row. Digit c counts from the least integer of column c,
// and its base is how many integers there are from the least to the greatest one of that column:
//
//   word = (… (x0 - low0) * range1 + (x1 - low1)) * range2 + …
//
// The host packs columns whose ranges multiply to 2^63 at most, so no two rows have one word. Differences are taken modulo
// the width of an integer, so low may be negative. An integer outside of its range, which another thread has written since
// the range was found, gives the word of some row; nothing is indexed by a digit.
//
// A thread packs block after block, and keeps the words of a block in its first-level cache until all columns are in.
#pragma once
#include "core/bulk.cuh"
#include "core/cpu/schedule.cuh"
#include "groups/abi.cuh"
#include "groups/cpu/integers.cuh"

namespace warphash {

constexpr u64 kPackBlock = 1024;  // rows whose words are in a cache together: 8 KB

// Calls see.template operator()<Int, kAdjacent>() with the unsigned type of a column's integers, and whether they adjoin.
template <class See>
WARPHASH_FN void with_width(const KeyColumn& column, const See& see) {
  const bool adjacent = column.stride == column.width;
  with_integer(column.width, [&]<class Int>() {
    adjacent ? see.template operator()<Int, true>() : see.template operator()<Int, false>();
  });
}

template <class Int, bool kAdjacent>
WARPHASH_FN Int integer_at(const KeyColumn& column, u64 i) {
  if constexpr (kAdjacent) return pointer<const Int>(column.integers)[i];
  return *pointer<const Int>(column.integers + i * column.stride);
}

// A thread does the chunks that begin in its part of the rows.
struct ColumnBounds {
  using Table = Chunks;
  using Batch = PackBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const PackBatch& b, u64 begin, u64 end) {
    for (u64 chunk = (begin + c.length - 1) / c.length; chunk < c.count && chunk * c.length < end; ++chunk) {
      const u64 first = chunk * c.length, behind = chunk + 1 == c.count ? b.n : first + c.length;
      for (u64 k = 0; k < b.arity; ++k) {
        const KeyColumn column = pointer<const KeyColumn>(b.columns)[k];
        u64* const bounds = pointer<u64>(b.bounds) + 4 * (chunk * b.arity + k);
        with_width(column, [&]<class Int, bool kAdjacent>() { find<Int, kAdjacent>(column, first, behind, bounds); });
      }
    }
  }

 private:
  template <class Int, bool kAdjacent>
  static void find(const KeyColumn& column, u64 begin, u64 end, u64* bounds) {
    using Signed = std::make_signed_t<Int>;
    Int least = integer_at<Int, kAdjacent>(column, begin), greatest = least;
    Signed signed_least = static_cast<Signed>(least), signed_greatest = signed_least;
    for (u64 i = begin; i < end; ++i) {
      const Int x = integer_at<Int, kAdjacent>(column, i);
      const Signed y = static_cast<Signed>(x);
      least = x < least ? x : least;
      greatest = x > greatest ? x : greatest;
      signed_least = y < signed_least ? y : signed_least;
      signed_greatest = y > signed_greatest ? y : signed_greatest;
    }
    bounds[0] = static_cast<u64>(static_cast<i64>(signed_least));
    bounds[1] = static_cast<u64>(static_cast<i64>(signed_greatest));
    bounds[2] = least, bounds[3] = greatest;
  }
};

struct PackColumns {
  using Table = Chunks;
  using Batch = PackBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks&, const PackBatch& batch, u64 begin, u64 end) {
    const PackBatch b = batch;  // a local copy, as in core/cpu/schedule.cuh
    const KeyColumn* const columns = pointer<const KeyColumn>(b.columns);
    u64 words[kPackBlock];
    for (u64 first = begin; first < end; first += kPackBlock) {
      const u64 n = end - first < kPackBlock ? end - first : kPackBlock;
      for (u64 i = 0; i < n; ++i) words[i] = 0;
      for (u64 k = 0; k < b.arity; ++k) {
        const KeyColumn column = columns[k];
        with_width(column, [&]<class Int, bool kAdjacent>() { add<Int, kAdjacent>(column, first, n, words); });
      }
      b.word_bytes == 8 ? put<u64>(b, first, n, words) : put<u32>(b, first, n, words);
    }
  }

 private:
  template <class Int, bool kAdjacent>
  static void add(const KeyColumn& column, u64 first, u64 n, u64* words) {
    const Int low = static_cast<Int>(column.low);
    const u64 range = column.range;
    for (u64 i = 0; i < n; ++i) {
      const Int x = integer_at<Int, kAdjacent>(column, first + i);
      words[i] = words[i] * range + static_cast<Int>(x - low);
    }
  }
  template <class Word>
  static void put(const PackBatch& b, u64 first, u64 n, const u64* words) {
    Word* const to = pointer<Word>(b.words) + first;
    for (u64 i = 0; i < n; ++i) to[i] = static_cast<Word>(words[i]);
  }
};

}  // namespace warphash
