// The last steps of groups/number.cuh on a GPU.
//
//   list_firsts           32 bits -> the elements whose bits are set
//   spread, spread_words  each element -> the number in its cell; counts the elements of each key
//
// Layout of the memory of a block that spreads: kOwnCounts counts, u32, of the keys with the least numbers.
//
// Protocol of list_firsts: a lane reads a word of bits. The warp goes from word to word, and each lane writes its bit's
// element: neighbours write to neighbouring places.
//
// Protocol of spread, a block and its share of the elements:
//   1. A thread reads kAtOnce places, and then the numbers in these cells.
//   2. It adds one to the count of each number: to the block's own one if the number is small, and else in memory.
//   3. Behind a barrier, the threads add the block's own counts to those in memory.
//
// Why own counts. All elements of a key add to one word. In memory such additions are a queue: 100 M elements of one key
// took 82 ms (H200). A key that has a share f of the elements first appears behind some 1 / f others, so at most so many
// keys have lesser numbers. The keys with the least numbers are those that may be frequent.
//
// Memory order: relaxed, since a count publishes nothing; barriers order the steps of a block.
#pragma once
#include "core/gpu/schedule.cuh"
#include "groups/gpu/word_cells.cuh"

namespace warphash {

struct ListFirstsByWarps {
  using Table = FirstsTable;
  using Batch = NumberBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = 256;

  WARPHASH_FN static void run(const FirstsTable&, const NumberBatch& b) {
    const u64 word = thread_in_grid();
    const u32 mine = word < b.n ? reinterpret_cast<const u32*>(b.bits)[word] : 0;
    const u32 place = mine ? reinterpret_cast<const u32*>(b.starts)[word] : 0;
    for (u32 having = ballot(mine != 0); having; having &= having - 1) {
      const u32 source = first_bit(having), bits = shuffle(mine, source, kWarpLanes);
      const u32 to = shuffle(place, source, kWarpLanes) + bit_count(bits & ((1u << lane()) - 1));
      const u64 first = 32 * (word - lane() + source);
      if (bits >> lane() & 1) reinterpret_cast<u32*>(b.firsts)[to] = static_cast<u32>(first + lane());
    }
  }
};

template <class Cells>
struct SpreadInBlocks {
  using Table = typename Cells::Table;
  using Batch = NumberBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = 1024, kAtOnce = 4, kOwnCounts = 12 << 10;

  WARPHASH_FN static void run(const Table& t, const NumberBatch& b) {
    u32* const own = static_cast<u32*>(block_memory<4 * kOwnCounts>());
    u32* const counts = in_global(reinterpret_cast<u32*>(b.counts));
    if (b.counts) {
      for (u32 k = thread_in_block(); k < kOwnCounts; k += threads_in_block()) own[k] = 0;
      block_barrier();
    }
    for (u64 first = thread_in_grid(); first < b.n; first += kAtOnce * threads_in_grid()) {
      u32 number[kAtOnce];
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k)
        if (first + k * threads_in_grid() < b.n) number[k] = place_of(b, first + k * threads_in_grid());
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k)
        if (first + k * threads_in_grid() < b.n) number[k] = Cells::first(t, number[k]);
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k) {
        const u64 i = first + k * threads_in_grid();
        if (i >= b.n) continue;
        if (b.numbers) set_number(b, i, number[k]);
        if (b.counts) number[k] < kOwnCounts ? atomic_add(own + number[k], 1u) : atomic_add(counts + number[k], 1u);
      }
    }
    if (!b.counts) return;
    block_barrier();
    for (u32 k = thread_in_block(); k < kOwnCounts; k += threads_in_block())
      if (own[k]) atomic_add(counts + k, own[k]);
  }
};

}  // namespace warphash

#define WARPHASH_SPREAD_ENTRIES                                        \
  WARPHASH_ENTRY(list_firsts, warphash::ListFirstsByWarps)             \
  WARPHASH_ENTRY(spread, warphash::SpreadInBlocks<warphash::RowCells>) \
  WARPHASH_ENTRY(spread_words, warphash::SpreadInBlocks<warphash::InWordCells>)
