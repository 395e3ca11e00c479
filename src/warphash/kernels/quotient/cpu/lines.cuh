// How a CPU reads a line, and works on a range: in memory, where they lie. A search of a table for a single key must
// not copy 32 KB.
#pragma once
#include "quotient/bucket.cuh"

namespace warphash {

struct LinesInPlace {
  static constexpr bool kCopiesRanges = false, kLeavesCrowds = false, kIsForCrowds = false;
  static constexpr u32 kThreads = 1;
  template <class Word>
  static constexpr u32 kStrideWords = kLineWords;
  template <class Word>
  struct Range {};

  template <u32 kWords>
  WARPHASH_FN static const u32* read(const Line* line, u32 (&)[kLineWords]) {
    return line->words;
  }
  WARPHASH_FN static void order_warp() {}
  // In memory that the threads of a block share: here, a thread with itself.
  WARPHASH_FN static u32 swap(u32* at, u32 x) {
    const u32 old = *at;
    *at = x;
    return old;
  }
  template <class Word>
  WARPHASH_FN static u32* open(Range<Word>&, Line* lines, u32, u32, u32) {
    return lines->words;
  }
  template <class Word>
  WARPHASH_FN static void close(const Range<Word>&, Line*, u32, u32, u32) {}
};

}  // namespace warphash
