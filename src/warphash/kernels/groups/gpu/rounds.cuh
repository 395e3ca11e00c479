// The last steps of groups/number.cuh on a GPU.
//
//   mark_firsts, mark_words  each cell -> the bit of the element that it keeps
//   list_firsts              32 bits -> the elements whose bits are set
//   number_all               each element has a key of its own
//   spread                   each element -> the number of its cell; counts the elements of each key
//
// Layout of the memory of a block that spreads: kOwnCounts counts, u32, of the keys with the least numbers.
//
// Protocol. A block goes through a tile of kRoundTile elements, in rounds of neighbours (core/gpu/batch_tiles.cuh);
// `spread` goes through several tiles.
//
// Protocol of list_firsts: a lane reads a word of bits. The warp goes from word to word, and each lane writes its bit's
// element: neighbours write to neighbouring places.
//
// Protocol of spread:
//   1. A thread reads kAtOnce places, and then the numbers of these cells.
//   2. It adds one to the count of each number: to the block's own one if the number is small, and else in memory.
//   3. Behind a barrier, the threads add the block's own counts to those in memory.
//
// Why numbers beside the cells. A cell has 16 bytes, and its number 4, so more of these stay in the cache.
//
// Why own counts. All elements of a key add to one word. In memory such additions are a queue: 100 M elements of one
// key took 82 ms (H200). A key that has a share f of the elements first appears behind some 1 / f others, so at most so
// many keys have lesser numbers. The keys with the least numbers are those that may be frequent.
//
// Memory order: relaxed, since counts and bits publish nothing; barriers order the steps of a block.
#pragma once
#include "core/gpu/batch_tiles.cuh"
#include "groups/number.cuh"

namespace warphash {

struct ListFirstsByWarps : OverTilesOfRounds {
  using Table = FirstsTable;
  using Batch = NumberBatch;
  WARPHASH_FN static void run(const FirstsTable&, const NumberBatch& b) {
    for (u32 round = 0; round < kRoundTile; round += kRoundThreads) {
      const u64 word = block() * kRoundTile + round + thread_in_block();
      const u32 mine = word < b.n ? reinterpret_cast<const u32*>(b.bits)[word] : 0;
      const u32 place = mine ? reinterpret_cast<const u32*>(b.starts)[word] : 0;
      for (u32 having = ballot(mine != 0); having; having &= having - 1) {
        const u32 source = first_bit(having), bits = shuffle(mine, source, kWarpLanes);
        const u32 to = shuffle(place, source, kWarpLanes) + bit_count(bits & ((1u << lane()) - 1));
        const u64 first = 32 * (word - lane() + source);
        if (bits >> lane() & 1) reinterpret_cast<u32*>(b.firsts)[to] = static_cast<u32>(first + lane());
      }
    }
  }
};

struct SpreadInRounds : OverTilesOfRounds {
  using Table = FirstsTable;
  using Batch = NumberBatch;
  static constexpr u32 kBlocks = 4, kAtOnce = 4, kOwnCounts = 12 << 10;

  WARPHASH_FN static void run(const FirstsTable& t, const NumberBatch& b) {
    u32* const own = static_cast<u32*>(block_memory<4 * kOwnCounts>());
    u32* const counts = in_global(reinterpret_cast<u32*>(b.counts));
    if (b.counts) {
      for (u32 k = thread_in_block(); k < kOwnCounts; k += kRoundThreads) own[k] = 0;
      block_barrier();
    }
    for (u64 tile = block() * kRoundTile; tile < b.n; tile += blocks() * kRoundTile)
      for (u32 round = 0; round < kRoundTile; round += kAtOnce * kRoundThreads)
        spread(t, b, tile + round + thread_in_block(), own, counts);
    if (!b.counts) return;
    block_barrier();
    for (u32 k = thread_in_block(); k < kOwnCounts; k += kRoundThreads)
      if (own[k]) atomic_add(counts + k, own[k]);
  }

 private:
  WARPHASH_FN static void spread(const FirstsTable& t, const NumberBatch& b, u64 first, u32* own, u32* counts) {
    u32 number[kAtOnce];
    const auto has = [&](u32 k) { return first + k * kRoundThreads < b.n; };
#pragma unroll
    for (u32 k = 0; k < kAtOnce; ++k)
      if (has(k)) number[k] = load_once(&place_of(b, first + k * kRoundThreads));
#pragma unroll
    for (u32 k = 0; k < kAtOnce; ++k)
      if (has(k)) number[k] = cells_of(t)[number[k]];
#pragma unroll
    for (u32 k = 0; k < kAtOnce; ++k) {
      if (!has(k)) continue;
      if (b.numbers) set_number(b, first + k * kRoundThreads, number[k]);
      if (b.counts) number[k] < kOwnCounts ? atomic_add(own + number[k], 1u) : atomic_add(counts + number[k], 1u);
    }
  }
};

}  // namespace warphash

#define WARPHASH_ROUND_ENTRIES                                                              \
  WARPHASH_ENTRY(mark_firsts, warphash::InRounds<warphash::MarkFirsts<warphash::RowCells>>) \
  WARPHASH_ENTRY(list_firsts, warphash::ListFirstsByWarps)                                  \
  WARPHASH_ENTRY(number_all, warphash::InRounds<warphash::NumberAll>)                       \
  WARPHASH_ENTRY(spread, warphash::SpreadInRounds)
