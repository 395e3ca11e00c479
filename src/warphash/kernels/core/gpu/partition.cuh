// The elements of a large batch in the order of the parts of the table that they go to; for storage/batch_order/ordering.py.
//
//   CountParts   how many elements each part has
//   Partition    copies keys, and values if there are any, to out_keys and out_values
//
// Layout. A part is a range of buckets whose number is a power of two: bucket k lies in part k >> part_shift. An
// element goes to the part of the first bucket of its key, as a family's `Parts::of` tells; a reserved key goes where
// it would go if it were any other.
//   part_sizes  [ elements of part 0 64 | of part 1 | … ][ places of part 0 given out 64 | of part 1 | … ], zero before
//               count_parts
//
// Why. If a table is larger than the cache, almost every element fetches a line from memory and writes it back. Behind
// a partition, the elements that run at one time go to one part, whose lines stay in the cache until they are full. The
// price: the batch is read and written once more, and its keys are read a second time, in streams. (The idea is that of
// radix-partitioned hash joins. It helps with the first bucket of a key alone.) A CPU has a way of its own
// (buckets/cpu/build.cuh).
//
// Protocol of partition, a block and its tile of 16 KiB of keys:
//   1. Each thread adds its elements to the tile's counters of their parts, and learns their ranks there.
//   2. The first warp sums up: where a part begins in the tile; where in the output, by one addition a part and tile.
//   3. The elements go to their places in the tile, and from there to the output: neighbours to neighbouring places.
//
// Memory order: relaxed. A counter hands out places and publishes nothing; barriers publish the tile to its block, and
// the end of the kernel the output.
#pragma once
#include "core/abi.cuh"
#include "platform/platform.cuh"

namespace warphash {

constexpr u32 kMostParts = 256;
constexpr u32 kTileThreads = 256;
constexpr u32 kTileBytes = 16 << 10;

// Elements of a thread.
template <class Word>
constexpr u32 kTileItems = kTileBytes / (kTileThreads * sizeof(Word));

// What a block shares.
struct PartsTile {
  u32 counts[kMostParts];  // elements of a part
  u32 starts[kMostParts];  // where they begin in `words`
  u64 shifts[kMostParts];  // from there to the output
  u64 words[kTileBytes / sizeof(u64)];
  u8 parts[kTileBytes / sizeof(u32)];  // of each word
};

// The tile of this block, with nothing counted. All threads call it. (In no template: gcc would not put its storage
// where the blocks of the emulation have theirs.)
WARPHASH_FN PartsTile& empty_tile(const PartitionBatch& b) {
  WARPHASH_BLOCK_SHARED PartsTile tile;
  for (u32 p = thread_in_block(); p < b.parts; p += threads_in_block()) tile.counts[p] = 0;
  block_barrier();
  return tile;
}

// The elements of a block.
struct TileElements {
  u64 first;
  u32 n;

  // Of whole tiles, each block has the next one; n is at most 2^31.
  template <class Word>
  WARPHASH_FN static TileElements of(const PartitionBatch& b) {
    constexpr u32 kMost = kTileThreads * kTileItems<Word>;
    const u64 first = thread_in_grid() / kTileThreads * kMost;
    const u64 left = first < b.n ? b.n - first : 0;
    return {first, left < kMost ? static_cast<u32>(left) : kMost};
  }

  // Element k of this thread: neighbours have neighbouring ones.
  WARPHASH_FN static u32 number(u32 k) { return k * kTileThreads + thread_in_block(); }

  WARPHASH_FN bool has(u32 k) const { return number(k) < n; }
};

// The words of this thread's elements.
template <class Word>
WARPHASH_FN void load_tile(const TileElements& elements, u64 words, Word (&word)[kTileItems<Word>]) {
  const Word* const from = reinterpret_cast<const Word*>(words) + elements.first;
#pragma unroll
  for (u32 k = 0; k < kTileItems<Word>; ++k)
    if (elements.has(k)) word[k] = load_once(from + TileElements::number(k));
}

// The sum over the lanes before this one.
template <class Word>
WARPHASH_FN Word sum_before(Word x) {
  Word sum = x;
#pragma unroll
  for (u32 distance = 1; distance < kWarpLanes; distance *= 2) {
    const Word other = shuffle(sum, lane() - distance, kWarpLanes);
    if (lane() >= distance) sum += other;
  }
  return sum - x;
}

// The `starts` and `shifts` of a tile from its `counts`. A whole warp calls it.
WARPHASH_FN void arrange(const PartitionBatch& b, PartsTile& tile) {
  u64* const sizes = reinterpret_cast<u64*>(b.part_sizes);
  u32 start = 0;
  u64 output = 0;
  for (u32 first = 0; first < b.parts; first += kWarpLanes) {
    const u32 part = first + lane();
    const bool is_part = part < b.parts;
    const u32 count = is_part ? tile.counts[part] : 0;
    const u64 size = is_part ? sizes[part] : 0;
    start += sum_before(count), output += sum_before(size);
    if (is_part) {
      const u64 given = count ? fetch_add(sizes + b.parts + part, static_cast<u64>(count)) : 0;
      tile.starts[part] = start;
      tile.shifts[part] = output + given - start;
    }
    start = shuffle(start + count, kWarpLanes - 1, kWarpLanes);
    output = shuffle(output + size, kWarpLanes - 1, kWarpLanes);
  }
}

template <class Word, class Parts>
struct CountParts {
  using Table = typename Parts::Table;
  using Batch = PartitionBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kTileThreads, kBlocks = Parts::kCountingBlocks;
  WARPHASH_FN static void run(const Table& t, const Batch& b) {
    PartsTile& tile = empty_tile(b);
    const auto elements = TileElements::of<Word>(b);
    Word key[kTileItems<Word>];
    load_tile(elements, b.keys, key);
#pragma unroll
    for (u32 k = 0; k < kTileItems<Word>; ++k)
      if (elements.has(k)) atomic_add(tile.counts + Parts::of(t, b, key[k]), 1u);
    block_barrier();
    for (u32 p = thread_in_block(); p < b.parts; p += threads_in_block())
      if (tile.counts[p]) atomic_add(reinterpret_cast<u64*>(b.part_sizes) + p, static_cast<u64>(tile.counts[p]));
  }
};

template <class Word, class Parts>
struct Partition {
  using Table = typename Parts::Table;
  using Batch = PartitionBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kTileThreads, kBlocks = Parts::kMovingBlocks;
  static constexpr u32 kItems = kTileItems<Word>;
  static constexpr u32 kRankBits = 16;  // of what a thread keeps of an element: [ rank in its part 16 | part 16 ]

  // Copies of words to the output, by way of their places in the tile. All threads call it.
  WARPHASH_FN static void send(const TileElements& elements, PartsTile& tile, const Word (&word)[kItems],
                               const u32 (&place)[kItems], u64 output) {
    Word* const staged = reinterpret_cast<Word*>(tile.words);
#pragma unroll
    for (u32 k = 0; k < kItems; ++k)
      if (elements.has(k)) staged[place[k]] = word[k];
    block_barrier();
    for (u32 at = thread_in_block(); at < elements.n; at += kTileThreads)
      store_once(reinterpret_cast<Word*>(output) + (tile.shifts[tile.parts[at]] + at), staged[at]);
  }

  WARPHASH_FN static void run(const Table& t, const Batch& b) {
    PartsTile& tile = empty_tile(b);
    const auto elements = TileElements::of<Word>(b);
    Word word[kItems];
    u32 place[kItems];
    load_tile(elements, b.keys, word);
#pragma unroll
    for (u32 k = 0; k < kItems; ++k) {
      if (!elements.has(k)) continue;
      const u32 part = Parts::of(t, b, word[k]);
      place[k] = part << kRankBits | fetch_add(tile.counts + part, 1u);
    }
    block_barrier();
    if (thread_in_block() < kWarpLanes) arrange(b, tile);
    block_barrier();
#pragma unroll
    for (u32 k = 0; k < kItems; ++k) {
      if (!elements.has(k)) continue;
      const u32 part = place[k] >> kRankBits;
      place[k] = tile.starts[part] + (place[k] & ((1u << kRankBits) - 1));
      tile.parts[place[k]] = static_cast<u8>(part);
    }
    send(elements, tile, word, place, b.out_keys);
    if (!b.values) return;
    load_tile(elements, b.values, word);
    block_barrier();  // before the keys are written over
    send(elements, tile, word, place, b.out_values);
  }
};

}  // namespace warphash
