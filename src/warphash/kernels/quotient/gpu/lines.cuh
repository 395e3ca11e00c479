// How a lane of a GPU reads a line, by 16 bytes, and how a block works on a range: in a copy in the memory that its
// threads share.
#pragma once
#include "quotient/bucket.cuh"

namespace warphash {

struct LinesByQuads {
  static constexpr bool kCopiesRanges = true;
  struct Range {
    Line lines[kMostRangeBuckets];
  };

  // The words before the values, in registers. The loads share sectors, and that of a value may be in one of them: the
  // nearest cache keeps them. Without it, finds of present keys take 1.5 times as long on an H200.
  template <class S>
  WARPHASH_FN static const u32* read(const Line* line, u32 (&w)[kLineWords]) {
#pragma unroll
    for (u32 q = 0; q < (S::kReadWords + 3) / 4; ++q) {
      const Quad quad = load_16_bytes<true, true>(line->words + 4 * q);
#pragma unroll
      for (u32 k = 0; k < 4; ++k) w[4 * q + k] = quad.w[k];
    }
    return w;
  }
  // What a lane wrote to the range is seen by the others of its warp.
  WARPHASH_FN static void order_warp() { warp_barrier(); }
  // In memory that the threads of a block share.
  WARPHASH_FN static u32 swap(u32* at, u32 x) { return exchange(at, x); }
  // All threads of a block call these with the number of lines, their own number and the number of threads.
  WARPHASH_FN static Line* open(Range& range, Line* lines, u32 n, u32 id, u32 threads) {
    copy(range.lines, lines, n, id, threads);
    return range.lines;
  }
  WARPHASH_FN static void close(const Range& range, Line* lines, u32 n, u32 id, u32 threads) {
    copy(lines, range.lines, n, id, threads);
  }

 private:
  WARPHASH_FN static void copy(Line* to, const Line* from, u32 n, u32 id, u32 threads) {
    Quad* const target = reinterpret_cast<Quad*>(to);
    const Quad* const source = reinterpret_cast<const Quad*>(from);
    for (u32 k = id; k < 4 * n; k += threads) target[k] = source[k];
  }
};

}  // namespace warphash
