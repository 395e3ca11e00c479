// The keys of a large lookup in the order of the parts of a table, and its answers in the order of the caller; for
// storage/batch_order/lookups.py.
//
//   PartitionKeys   copies keys to out_keys in the order of the parts, and notes where each element went
//   RestoreOrder    copies values, and flags, from the order of the parts to that of the caller
//
// Layout. Parts and tiles are those of core/gpu/partition.cuh, whose CountParts runs first. In the order of the parts,
// the elements that a tile has of one part are neighbours: a run.
//
//   the caller's order   [      tile 0       |      tile 1       | ... ]    16 KiB of keys each
//   places               [ 16 | 16 | ...     | ...               | ... ]    of each element in its tile, sorted by part
//   runs                 [ part 0 64 | part 1 64 | ... ] for tile 0, then for tile 1, ...
//                          = [ place of the run in the tile 32 | in the output 32 ]
//   the order of parts   [ part 0: run of one tile | run of another | ... | part 1: ... ]
//
// Protocol of restore_order, a block and its tile:
//   1. A thread reads the run of a part. Warps write, for each place of the tile, the part that it belongs to.
//   2. Each thread reads answers at the places of the tile, values and flags: neighbours read neighbours in a run.
//   3. The answers meet in shared memory, where each element of the tile finds its own by its place. A flag takes the
//      room of the part of its place.
//
// Why. A table may be larger than the memory that a processor can reach without waiting for the translation of an
// address. Behind a partition, all processors are in one or two parts at a time, whose translations stay known. In a
// table of 100 GB, 100 M keys of 8 bytes were found at 13.9 G/s, and at 10.3 in the order of the caller (H200). In
// smaller tables the lines of a part could stay in the second-level cache. That saves less than the way costs
// (docs/performance/find.md).
//
// The price is bytes in streams. For each key of 4 bytes with a value of 4: 4 to count; 4 + 4 for the copy, 2 for its
// place, and at most 0.5 for the runs; 4 + 5 for the lookup itself, as without a partition; 2 + 0.5 + 5 + 5 for the way
// back. So 27 bytes are added to the 9 of a direct lookup.
//
// Answers could also be written to their elements one by one. Each would then be a sector of its own: 0.48 ms for 50 M
// flags, and 0.20 ms in two steps (prototype, H200). A number of 32 bits for each element would save the runs and the
// shared memory. It would cost 4 bytes more for each element, and loads whose lanes lie in 32 lines. The places could be
// computed again from the keys. That would read 4 or 8 bytes for each element instead of 2, and need ranks without
// atomics.
//
// Memory order: as in core/gpu/partition.cuh.
#pragma once
#include "core/gpu/abi.cuh"
#include "core/gpu/partition.cuh"

namespace warphash {

WARPHASH_FN u64* runs_of_tile(const LookupPartitionBatch& b) {
  return reinterpret_cast<u64*>(b.runs) + thread_in_grid() / kTileThreads * b.parts;
}

// Calls one of two functions of a tile: that of a full tile, or that of any. A branch around an element would make a
// thread wait for its load or atomic before the next one begins. The function of a full tile needs no such branch.
template <class Word, class OfFull, class OfAny>
WARPHASH_FN void by_fullness(const TileElements& elements, const OfFull& of_full, const OfAny& of_any) {
  if (elements.n == kTileThreads * kTileItems<Word>)
    of_full();
  else
    of_any();
}

// kRows: out_rows gets the numbers of the elements in the order of the parts, and places are not always asked for.
template <class Word, class Parts, bool kRows = false>
struct PartitionKeys {
  using Table = typename Parts::Table;
  using Batch = LookupPartitionBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kTileThreads, kBlocks = Parts::kMovingBlocks;
  static constexpr u32 kItems = kTileItems<Word>;
  static constexpr u32 kRankBits = Partition<Word, Parts>::kRankBits;
  static constexpr u32 kAtOnce = 8;  // keys of a thread that leave together: more would not fit into registers

  template <bool kFull>
  WARPHASH_FN static void move(const Table& t, const Batch& b, const TileElements& elements, PartsTile& tile) {
    const auto has = [&](u32 k) { return kFull || elements.has(k); };
    Word key[kItems];
    u32 place[kItems];
    const Word* const keys = reinterpret_cast<const Word*>(b.keys) + elements.first;
#pragma unroll
    for (u32 k = 0; k < kItems; ++k)
      if (has(k)) key[k] = load_once(keys + TileElements::number(k));
#pragma unroll
    for (u32 k = 0; k < kItems; ++k)
      if (has(k)) place[k] = Parts::of(t, b, key[k]);
#pragma unroll
    for (u32 k = 0; k < kItems; ++k)
      if (has(k)) place[k] = place[k] << kRankBits | fetch_add(tile.counts + place[k], 1u);
    block_barrier();
    if (thread_in_block() < kWarpLanes) arrange(b, tile);
    block_barrier();
    const bool returns = !kRows || b.places;
    for (u32 p = thread_in_block(); returns && p < b.parts; p += kTileThreads) {
      const u64 start = tile.starts[p];
      store_once(runs_of_tile(b) + p, start << 32 | (tile.shifts[p] + start));
    }
    const auto in_tile = [&](u32 place) { return tile.starts[place >> kRankBits] + (place & ((1u << kRankBits) - 1)); };
    u16* const places = reinterpret_cast<u16*>(b.places) + elements.first;
    Word* const staged = reinterpret_cast<Word*>(tile.words);
#pragma unroll
    for (u32 k = 0; k < kItems; ++k) {
      if (!has(k)) continue;
      const u32 to = in_tile(place[k]);
      tile.parts[to] = static_cast<u8>(place[k] >> kRankBits);
      staged[to] = key[k];
      if (returns) store_once(places + TileElements::number(k), static_cast<u16>(to));
    }
    block_barrier();
    send<kFull>(elements, tile, staged, reinterpret_cast<Word*>(b.out_keys));
    if constexpr (kRows) {
      block_barrier();  // before the keys are written over
      u32* const rows = reinterpret_cast<u32*>(tile.words);
#pragma unroll
      for (u32 k = 0; k < kItems; ++k)
        if (has(k)) rows[in_tile(place[k])] = static_cast<u32>(elements.first) + TileElements::number(k);
      block_barrier();
      send<kFull>(elements, tile, rows, reinterpret_cast<u32*>(b.out_rows));
    }
  }

  // Copies what is staged to the output.
  template <bool kFull, class T>
  WARPHASH_FN static void send(const TileElements& elements, const PartsTile& tile, const T* staged, T* out) {
#pragma unroll 1
    for (u32 first = 0; first < kItems; first += kAtOnce) {
#pragma unroll
      for (u32 k = first; k < first + kAtOnce; ++k) {
        if (!kFull && !elements.has(k)) continue;
        const u32 at = TileElements::number(k);
        store_once(out + (tile.shifts[tile.parts[at]] + at), staged[at]);
      }
    }
  }

  WARPHASH_FN static void run(const Table& t, const Batch& b) {
    PartsTile& tile = empty_tile(b);
    const auto elements = TileElements::of<Word>(b);
    by_fullness<Word>(elements, [&] { move<true>(t, b, elements, tile); }, [&] { move<false>(t, b, elements, tile); });
  }
};

// The answers of elements whose keys are Words. Values are no larger than Words; they are written as Out.
template <class Word, class Parts, class Value = Word, class Out = Value>
struct RestoreOrder {
  static_assert(sizeof(Value) <= sizeof(Word));
  using Table = typename Parts::Table;
  using Batch = LookupPartitionBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kTileThreads, kBlocks = Parts::kRestoringBlocks;
  static constexpr u32 kItems = kTileItems<Word>;
  static constexpr u32 kAtOnce = 8;  // answers of a thread that are on their way: more would not fit into registers

  // The `starts`, `shifts` and `parts` of the tile, from its runs. All threads call it.
  WARPHASH_FN static void read_runs(const Batch& b, const TileElements& elements, PartsTile& tile) {
    for (u32 p = thread_in_block(); p < b.parts; p += kTileThreads) {
      const u64 run = load_once(runs_of_tile(b) + p);
      const u32 start = static_cast<u32>(run >> 32);
      tile.starts[p] = start;
      tile.shifts[p] = static_cast<u64>(static_cast<u32>(run)) - start;
    }
    block_barrier();
    const u32 parts = static_cast<u32>(b.parts);
    for (u32 p = thread_in_block() / kWarpLanes; p < parts; p += kTileThreads / kWarpLanes) {
      const u32 end = p + 1 < parts ? tile.starts[p + 1] : elements.n;
      for (u32 at = tile.starts[p] + lane(); at < end; at += kWarpLanes) tile.parts[at] = static_cast<u8>(p);
    }
    block_barrier();
  }

  // Copies the answers at the places of the tile: values to `words`, flags to `parts`. One thread has each place. It
  // reads the part there, and then writes the flag.
  template <bool kFull>
  WARPHASH_FN static void gather(const Batch& b, const TileElements& elements, PartsTile& tile) {
    const auto has = [&](u32 k) { return kFull || elements.has(k); };
    Value* const words = reinterpret_cast<Value*>(tile.words);
    const Value* const values = reinterpret_cast<const Value*>(b.values);
    const u8* const flags = reinterpret_cast<const u8*>(b.flags);
#pragma unroll 1
    for (u32 first = 0; first < kItems; first += kAtOnce) {
      u64 source[kAtOnce];
      Value value[kAtOnce];
      u8 flag[kAtOnce];
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k) {
        const u32 at = TileElements::number(first + k);
        if (has(first + k)) source[k] = tile.shifts[tile.parts[at]] + at;
      }
      if (b.out_values) {
#pragma unroll
        for (u32 k = 0; k < kAtOnce; ++k)
          if (has(first + k)) value[k] = load_once(values + source[k]);
      }
      if (b.out_flags) {
#pragma unroll
        for (u32 k = 0; k < kAtOnce; ++k)
          if (has(first + k)) flag[k] = load_once(flags + source[k]);
      }
      if (b.out_values) {
#pragma unroll
        for (u32 k = 0; k < kAtOnce; ++k)
          if (has(first + k)) words[TileElements::number(first + k)] = value[k];
      }
      if (b.out_flags) {
#pragma unroll
        for (u32 k = 0; k < kAtOnce; ++k)
          if (has(first + k)) tile.parts[TileElements::number(first + k)] = flag[k];
      }
    }
  }

  template <bool kFull>
  WARPHASH_FN static void restore(const Batch& b, const TileElements& elements, PartsTile& tile) {
    const auto has = [&](u32 k) { return kFull || elements.has(k); };
    read_runs(b, elements, tile);
    gather<kFull>(b, elements, tile);
    const u16* const places = reinterpret_cast<const u16*>(b.places) + elements.first;
    Out* const values = reinterpret_cast<Out*>(b.out_values) + elements.first;
    u8* const flags = reinterpret_cast<u8*>(b.out_flags) + elements.first;
    u32 place[kItems];
#pragma unroll
    for (u32 k = 0; k < kItems; ++k)
      if (has(k)) place[k] = load_once(places + TileElements::number(k));
    block_barrier();
    if (b.out_values) {
#pragma unroll
      for (u32 k = 0; k < kItems; ++k)
        if (has(k))
          store_once(values + TileElements::number(k), Out{reinterpret_cast<const Value*>(tile.words)[place[k]]});
    }
    if (b.out_flags) {
#pragma unroll
      for (u32 k = 0; k < kItems; ++k)
        if (has(k)) store_once(flags + TileElements::number(k), tile.parts[place[k]]);
    }
  }

  WARPHASH_FN static void run(const Table&, const Batch& b) {
    PartsTile& tile = empty_tile(b);
    const auto elements = TileElements::of<Word>(b);
    by_fullness<Word>(elements, [&] { restore<true>(b, elements, tile); }, [&] { restore<false>(b, elements, tile); });
  }
};

}  // namespace warphash

// Of a family's parts, by the bytes of a key.
#define WARPHASH_LOOKUP_PARTITION_ENTRIES(PARTS)                                 \
  WARPHASH_ENTRY(count_parts4, warphash::CountParts<warphash::u32, PARTS>)       \
  WARPHASH_ENTRY(count_parts8, warphash::CountParts<warphash::u64, PARTS>)       \
  WARPHASH_ENTRY(partition_keys4, warphash::PartitionKeys<warphash::u32, PARTS>) \
  WARPHASH_ENTRY(partition_keys8, warphash::PartitionKeys<warphash::u64, PARTS>) \
  WARPHASH_ENTRY(restore_order4, warphash::RestoreOrder<warphash::u32, PARTS>)   \
  WARPHASH_ENTRY(restore_order8, warphash::RestoreOrder<warphash::u64, PARTS>)
