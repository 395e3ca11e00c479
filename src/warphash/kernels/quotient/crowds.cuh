// Crowded ranges of a quotient table: those to which a batch brings many times more elements than they have slots, and
// a good part of all its elements.
//
// Why. A block has a range for itself, and does about a hundred million elements a second. So a batch with one key in
// half of its elements would wait for one block: 20 million such inserts took 65 times as long as ones with different
// keys (H200). But most elements of such a range have a key that another element has brought. Once the key is there, any
// thread of any block can do the rest.
// Where all ranges get about as many elements, as when many values are summed into a small table, all blocks work anyway.
// No range is crowded then: a block combines values in its own memory, up to three times as fast.
//
// Protocol, a kernel for each step. The host launches steps 2 to 4 if there are crowded ranges.
//   1. `build` or `apply` enters a crowded range into a list, and leaves it.
//   2. `build_some` or `apply_some` has a block for each range of that list, for a sample of its elements: one of 2^shift,
//      at a random place among these. The sample has kSampledForASlot elements for each slot, or up to twice as many. It
//      has no fewer than kFewestSampled, and no more than twice kMostSampled.
//   3. The blocks of a grid share all other elements of these ranges (quotient/gpu/crowds.cuh). An element is done there if
//      its key is in the table. An element that erases an absent key needs nothing. All others are listed by ranges.
//   4. `apply_some` has a block for each range once more, for its listed elements.
//
// Why other kernels in steps 2 and 4. They find their elements through a list or a sample. A `build` that could do so took 1.2
// times as long for ranges that are not crowded (H100).
//
// Step 4 has few elements: mostly those of keys that are rare in the batch. A key that k elements have is not in a
// sample of one of s with probability (1 - 1/s)^k, and k elements are then left. For any k, that is less than s / e on
// average. A range has as many keys as slots at most. So whatever the keys are, less than a tenth of the elements are
// left, and less than a third in sets of 4 bytes, which have the most slots.
//
// Layout. The list `crowds` has a Crowd for each crowded range. Step 3 goes by chunks of kChunk elements, and a Crowd
// says which chunk is its first. One word counts crowds and chunks together, so their orders agree.
//
//   Report::unused[0]   bit  63      32 31      0
//                           +----------+---------+
//                           | crowds   | chunks  |
//                           +----------+---------+
//
// Between steps 3 and 4, the counter of a range counts its listed elements. Their numbers lie in `rest`, where the range
// has as many places as it has elements.
#pragma once
#include "quotient/bring.cuh"

namespace warphash {

constexpr u32 kSampledForASlot = 4;  // elements
constexpr u32 kFewestSampled = 2048, kMostSampled = 20480;
constexpr u32 kPartOfCrowd = 256;  // of so many elements of a batch, a crowded range has more than one
constexpr u32 kChunk = 4096;       // elements

// One element of every 2^shift.
struct Sampled {
  u32 shift;
  // Of `total` elements of a range.
  WARPHASH_FN static Sampled of(u32 total, u32 slots) {
    const u32 wanted = kSampledForASlot * slots;
    const u32 enough = wanted < kFewestSampled ? kFewestSampled : wanted < kMostSampled ? wanted : kMostSampled;
    u32 shift = 0;
    while (total >> shift >= 2 * enough) ++shift;
    return {shift};
  }
  WARPHASH_FN bool is_part() const { return shift > 0; }
  WARPHASH_FN u32 count(u32 total) const { return total >> shift; }
  // The number in the range of element `k` of the sample.
  WARPHASH_FN u32 place(u32 k) const { return (k << shift) + multiply_high(k * 0x9E3779B9u, 1u << shift); }
  // Whether element `number` of `total` is in the sample.
  WARPHASH_FN bool has(u32 number, u32 total) const {
    const u32 k = number >> shift;
    return k < count(total) && place(k) == number;
  }
};

struct Crowd {
  u32 range;
  u32 total;        // elements of the range
  u32 first_chunk;  // of the range
  u32 unused;
};

// Whether a range with `total` elements and so many slots is crowded.
WARPHASH_FN bool is_crowded(const QuotientBatch& b, u32 total, u32 slots) {
  return u64(total) * kPartOfCrowd > b.n && Sampled::of(total, slots).is_part();
}

WARPHASH_FN u64& crowd_count(const QuotientBatch& b) { return report_of(b)->unused[0]; }
WARPHASH_FN u32 crowds_of(const QuotientBatch& b) { return static_cast<u32>(crowd_count(b) >> 32); }
WARPHASH_FN u32 chunks_of(const QuotientBatch& b) { return static_cast<u32>(crowd_count(b)); }
WARPHASH_FN Crowd& crowd_at(const QuotientBatch& b, u32 number) { return pointer<Crowd>(b.crowds)[number]; }

WARPHASH_FN void enter_crowd(const QuotientBatch& b, u32 range, u32 total) {
  const u64 more = 1ull << 32 | (total + kChunk - 1) / kChunk;
  const u64 before = fetch_add(&crowd_count(b), more);
  crowd_at(b, static_cast<u32>(before >> 32)) = {range, total, static_cast<u32>(before), 0};
}

// The crowd of a chunk.
WARPHASH_FN Crowd crowd_with(const QuotientBatch& b, u32 chunk) {
  u32 first = 0, end = crowds_of(b);
  while (end - first > 1) {
    const u32 middle = (first + end) / 2;
    (crowd_at(b, middle).first_chunk <= chunk ? first : end) = middle;
  }
  return crowd_at(b, first);
}

}  // namespace warphash
