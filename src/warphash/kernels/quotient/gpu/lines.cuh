// How a lane of a GPU reads a line, by 16 bytes, and how a block works on a range: in a copy in the memory that its
// threads share, or in place.
//
// A copied line is followed by a word that nothing uses, one as wide as a key. Without it all lines would begin in two
// of the 32 banks of that memory, and lanes that read the same word of their lines would wait for each other.
#pragma once
#include "quotient/bucket.cuh"

namespace warphash {

struct LinesByQuads {
  static constexpr bool kCopiesRanges = true, kLeavesCrowds = true, kIsForCrowds = false;
  static constexpr u32 kThreads = block_threads(kApplyingThreads);  // of a block
  template <class Word>
  static constexpr u32 kStrideWords = kLineWords + sizeof(Word) / 4;
  template <class Word>
  struct Range {
    alignas(16) u32 words[kMostRangeBuckets * kStrideWords<Word>];
  };

  // The first words of a line, in registers. The loads share sectors, and that of a value may be in one of them: the
  // nearest cache keeps them. Without it, finds of present keys take 1.5 times as long on an H200.
  template <u32 kWords>
  WARPHASH_FN static const u32* read(const Line* line, u32 (&w)[kLineWords]) {
#pragma unroll
    for (u32 q = 0; q < (kWords + 3) / 4; ++q) {
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
  WARPHASH_FN static u32 add(u32* at, u32 x) { return fetch_add(at, x); }
  WARPHASH_FN static u32 set_bits(u32* at, u32 x) { return fetch_or(at, x); }
  // Puts the remainder of a key into a slot of its home that no other thread has. Others put to other slots.
  template <class S>
  WARPHASH_FN static void put_at_home(u32* w, u32 slot, typename S::Word remainder) {
    S::put_beside(w, slot, remainder);
  }
  // All threads of a block call these with the number of lines, their own number and the number of threads. The lines
  // as they are; all of them vacant; what became of them. A barrier has to follow the first two.
  template <class Word>
  WARPHASH_FN static u32* open(Range<Word>& range, const Line* lines, u32 n, u32 id, u32 threads) {
    const Quad* const source = reinterpret_cast<const Quad*>(lines);
    for (u32 first = id; first < 4 * n; first += kAtOnce * threads) {
      Quad quads[kAtOnce];
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k)
        if (first + k * threads < 4 * n) quads[k] = source[first + k * threads];
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k) {
        if (first + k * threads >= 4 * n) continue;
        u32* const to = quarter(range, first + k * threads);
#pragma unroll
        for (u32 j = 0; j < 4; ++j) to[j] = quads[k].w[j];
      }
    }
    return range.words;
  }
  template <class Word>
  WARPHASH_FN static u32* open_vacant(Range<Word>& range, const Line*, u32 n, u32 id, u32 threads) {
    Quad* const quads = reinterpret_cast<Quad*>(range.words);
#pragma unroll 4
    for (u32 k = id; 4 * k < n * kStrideWords<Word>; k += threads) quads[k] = {};
    return range.words;
  }
  template <class Word>
  WARPHASH_FN static void close(Range<Word>& range, Line* lines, u32 n, u32 id, u32 threads) {
    Quad* const target = reinterpret_cast<Quad*>(lines);
#pragma unroll 4
    for (u32 k = id; k < 4 * n; k += threads) {
      const u32* const from = quarter(range, k);
      target[k] = {from[0], from[1], from[2], from[3]};
    }
  }

 private:
  static constexpr u32 kAtOnce = 4;  // loads of a thread that are under way
  template <class Word>
  WARPHASH_FN static u32* quarter(Range<Word>& range, u32 k) {
    return range.words + k / 4 * kStrideWords<Word> + k % 4 * 4;
  }
};

// For a range that others leave, since it is crowded (quotient/crowds.cuh).
struct LinesOfCrowds : LinesByQuads {
  static constexpr bool kLeavesCrowds = false, kIsForCrowds = true;
};

// The words before the values of a line that threads of other blocks change meanwhile.
template <class S>
WARPHASH_FN void read_shared(const Line* line, u32 (&w)[kLineWords]) {
#pragma unroll
  for (u32 q = 0; q < (S::kReadWords + 3) / 4; ++q) {
    const Quad quad = load_16_bytes<false>(line->words + 4 * q);
#pragma unroll
    for (u32 k = 0; k < 4; ++k) w[4 * q + k] = quad.w[k];
  }
}

// For a range with few elements: its lines stay where they are. A barrier of the block orders what its threads write
// there, as in memory that they share.
struct LinesInGlobal {
  static constexpr bool kCopiesRanges = false, kLeavesCrowds = false, kIsForCrowds = false;
  static constexpr u32 kThreads = block_threads(kThreadsInPlace);
  template <class Word>
  static constexpr u32 kStrideWords = kLineWords;
  template <class Word>
  struct Range {};

  WARPHASH_FN static void order_warp() { warp_barrier(); }
  WARPHASH_FN static u32 swap(u32* at, u32 x) { return exchange(at, x); }
  WARPHASH_FN static u32 set_bits(u32* at, u32 x) { return fetch_or(at, x); }
  template <class Word>
  WARPHASH_FN static u32* open(Range<Word>&, Line* lines, u32, u32, u32) {
    return lines->words;
  }
  template <class Word>
  WARPHASH_FN static void close(const Range<Word>&, Line*, u32, u32, u32) {}
};

}  // namespace warphash
