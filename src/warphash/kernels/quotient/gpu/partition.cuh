// Brings the elements of a large batch to their ranges in passes over tiles, and their flags back.
//
//   count              counts the elements of each range; or of each part, if there are many ranges
//   arrange_parts      gives each part its places, and cuts it into tiles
//   arrange_ranges     gives each range its places in `brought`, and lists the ranges that have elements
//   arrange            both at once
//   to_parts           copies hashes and values to the places of their parts
//   count_ranges       counts the elements of each range, tile by tile of the parts
//   to_ranges          copies them from there to the places of their ranges
//   scatter_to_ranges  copies each straight to its place, where a part has more ranges than a tile is arranged by
//   restore_flags      copies flags from the order that a pass has made to the order that it found
//
// It does the work of count, reserve and scatter (quotient/bring.cuh), and leaves what they leave: the elements in the
// order of ranges, and for each range its start, its number of elements and, if it has some, its place in the list.
// storage/quotient/passes.py launches it, in one of four ways:
//
//   few ranges    count, arrange, to_parts
//   more          count, arrange, to_parts, to_ranges
//   many          count, arrange_parts, to_parts, count_ranges, arrange_ranges, to_ranges
//   very many     count, arrange_parts, to_parts, count_ranges, arrange_ranges, scatter_to_ranges
//
// Layout. A part is 2^part_shift ranges in a row. A batch has the elements of a part in one piece, and in that piece
// those of a range. A table of few ranges has parts of one range, and to_parts is the only pass.
//
//   the caller's order   [   tile 0   |   tile 1   | ... ]     kPassTileBytes of elements each
//   order of parts       [ part 5            | part 0    | ... ]
//   `tiles`              [ tile | tile | til | tile | ti | ... ]   each a u64: [ part 16 | elements 16 | first 32 ]
//   `brought`            [ range 42 | range 40 |...| range 3 |... ]
//
// Protocol of a pass, a block and its tile:
//   1. Each thread takes kItems elements. It adds each to the tile's counter of its bin, a part or a range of the
//      tile's part, and learns its rank there.
//   2. The threads sum up: where a bin begins in the tile; where in the output, by one addition a bin and tile.
//   3. The elements go to their places in the tile, and from there to the output: neighbours to neighbouring places.
//
// Protocol of a count, a block and its share of the caller's keys, or its tile of a part:
//   1. Each thread adds its elements to the block's counters of their bins.
//   2. The threads add each of these that is not zero to the counter of its bin in memory.
// Keys of 8 bytes may have more ranges than a block has room for counters of 16 bits. Then its counters have 8 bits at
// first. If one of them has overflowed, they do not sum up to the number of elements, and the block counts again, twice:
// half of the bins with 16 bits each time.
//
// The counter of a range counts its elements, starts again when ranges are arranged, and hands out places to the last
// pass. So it is the number of elements again when `apply` reads it. If parts are counted, the counter of a part does
// the same for to_parts.
//
// Why passes. Elements that go to their ranges one by one each write to a sector of 32 bytes of their own. A tile has
// about 40 elements for each of 107 parts, and then for each of 128 ranges: whole sectors but for their ends.
// No part of memory has a fixed capacity, so all elements may go to one range.
//
// Bytes, for each pair of 4 + 4: 4 to count, 8 + 8 for the first pass and 8 + 8 for the second. The hash of a key is
// computed to count and again in the first pass; to write it down would cost more. With many ranges, 8 more to count
// these.
//
// Why many ranges are counted behind the first pass. A block has room for the counters of kMostCountedBins ranges. Of
// 271,000 ranges, all keys were read once for each of 12 slices of them: 22.5 ms for 1 G pairs, longer than both passes
// (H200). The elements of a tile go to the ranges of one part, so they are read once more instead. Of keys of 8 bytes, the
// counters of up to kMostNarrowBins ranges have 8 bits.
//
// Why very many ranges have no arranged tiles. Two passes tell apart 2^20 ranges, 34 GB of lines. In a larger table, a
// part has about as many ranges as a tile has elements, or more. Few elements of a tile would go to one range, so an
// arranged tile would have few neighbours to write. But all elements of a part go to a few megabytes of `brought`. These
// stay in the second-level cache until their sectors are whole. Without parts, each element reads and writes a sector of
// memory: 42 of the 86 ms of 2^28 pairs (H200, 3 M ranges).
//
// Why flags go back in steps. `apply` knows the number of an element only if it travels along: 4 bytes to write and to
// read in each pass. Its flag would then be a sector of the second-level cache, read and written for one byte; 50 M of
// them took `apply` from 1.6 to 2.7 ms (H200). So each pass notes where it put each element instead (`places`, 4 bytes,
// in the order of its input, so neighbours write to neighbours), `apply` writes flags in the order of `brought`, and
// restore_flags reads them by `places` once for each pass. The elements of a tile went to one run for each bin, so a
// block reads few sectors, which its first-level cache keeps. For each element: 8 bytes written and read again, 4 bytes
// of flags. (Prototype, H200, 50 M flags: 0.13 ms for the places and 0.20 ms for the way back; in one step from the
// order of `brought`, where every flag is a sector, 0.48 ms.) Places of 2 bytes in a tile would save 8 of these 20
// bytes. They cost a list of the runs of each tile, and memory that blocks share (core/gpu/lookup_partition.cuh).
//
// Memory order: relaxed. A counter hands out places and publishes nothing; barriers publish a tile to its block, and
// the end of a kernel its output.
#pragma once
#include "core/gpu/partition.cuh"
#include "core/gpu/schedule.cuh"
#include "quotient/bring.cuh"

namespace warphash {

constexpr u32 kPassTileBytes = 32 << 10;  // of elements
constexpr u32 kMostBins = 1024;           // that a tile is arranged by: parts of a table, or ranges of a part
constexpr u32 kMostRanges = 8192;         // of a part
constexpr u32 kPassThreads = block_threads(512);
constexpr u32 kMostCountedBins = 24576;  // of 16 bits: they fill the 48 KB that a kernel may have of its own
constexpr u32 kMostNarrowBins = 49136;   // of 8 bits
constexpr u32 kMostCounted = 65535;      // elements of a block that counts, so that no 16 bits overflow
constexpr u32 kRestoringThreads = block_threads(256), kRestoringItems = 8;

template <class Word, u32 kValueBytes>
constexpr u32 kPassTile = kPassTileBytes / sizeof(BroughtOf<Word, kValueBytes>);  // elements

struct OverPasses {
  using Table = QuotientTable;
  using Batch = PassBatch;
  static constexpr bool kWalks = true;
  WARPHASH_FN static u32 block() { return static_cast<u32>(thread_in_grid() / threads_in_block()); }
};

// ---- count, count_ranges
// The bins of `count`: ranges, or parts. The counters of parts then hand out their places.
WARPHASH_FN u32 bin_shift(const PassBatch& b) { return first_bit(static_cast<u32>(b.bin_ranges)); }
WARPHASH_FN u32 bins_of(const QuotientTable& t, const PassBatch& b) {
  return (static_cast<u32>(t.ranges - 1) >> bin_shift(b)) + 1;
}
WARPHASH_FN u32* counters_of(const QuotientTable& t, const PassBatch& b) {
  return in_global(pointer<u32>(b.bin_ranges > 1 ? b.given : t.counters));
}

// A share of the caller's keys.
template <class Word>
struct CallersShare {
  static constexpr u32 kThreads = block_threads(1024), kBlocks = 2, kBins = kMostCountedBins;
  static constexpr bool kIsNarrow = sizeof(Word) == 8;  // 8 bits are tried first
  const QuotientTable& t;
  const PassBatch& b;
  u64 first;
  u32 n;
  WARPHASH_FN CallersShare(const QuotientTable& table, const PassBatch& batch, u32 block) : t(table), b(batch) {
    first = block * b.share;
    n = first < b.n ? static_cast<u32>(b.n - first < b.share ? b.n - first : b.share) : 0;
    WARPHASH_ASSERT(b.share <= kMostCounted);
  }
  WARPHASH_FN Word load(u32 k) const { return load_once(pointer<const Word>(b.keys) + first + k); }
  WARPHASH_FN u32 bin(Word key) const { return range_of_hash(t, permuted(t, key)) >> bin_shift(b); }
  WARPHASH_FN u32 bins() const { return bins_of(t, b); }
  WARPHASH_FN u32* counters() const { return counters_of(t, b); }
};

// A block counts the elements of a source in its bins, and adds what it has of each bin to the counter of that bin.
template <class Source>
struct Count : OverPasses {
  static constexpr u32 kThreads = Source::kThreads, kBlocks = Source::kBlocks;
  using Item = decltype(static_cast<const Source*>(nullptr)->load(0));
  static constexpr u32 kWords = Source::kBins / 2;
  struct Memory {
    u32 counts[kWords];
  };
  WARPHASH_FN static void run(const QuotientTable& t, const PassBatch& b) {
    const Source source(t, b, block());
    if (source.n == 0) return;  // the whole block
    const u32 bins = source.bins();
    u32* const counts = static_cast<Memory*>(block_memory<sizeof(Memory)>())->counts;
    if (Source::kIsNarrow && bins > Source::kBins && count<8>(source, counts, 0, bins)) return;
    for (u32 first = 0; first < bins; first += Source::kBins)
      count<16>(source, counts, first, bins - first < Source::kBins ? bins - first : Source::kBins);
  }

 private:
  // Counts the elements of some bins with so many bits for each. False, and nothing is counted, if these were too few.
  template <u32 kBits>
  WARPHASH_FN static bool count(const Source& source, u32* counts, u32 first_bin, u32 bins) {
    constexpr u32 kAtOnce = 32 / sizeof(Item);  // elements of a thread that are on their way
    constexpr u32 kInWord = 32 / kBits, kMask = (1u << kBits) - 1;
    for (u32 k = thread_in_block(); k * kInWord < bins; k += threads_in_block()) counts[k] = 0;
    block_barrier();
    for (u32 at = thread_in_block(); at < source.n; at += kAtOnce * threads_in_block()) {
      Item item[kAtOnce];
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k)
        if (at + k * threads_in_block() < source.n) item[k] = source.load(at + k * threads_in_block());
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k) {
        if (at + k * threads_in_block() >= source.n) continue;
        const u32 bin = source.bin(item[k]) - first_bin;
        if (bin < bins) atomic_add(counts + bin / kInWord, 1u << kBits * (bin % kInWord));
      }
    }
    block_barrier();
    if constexpr (kBits == 8) {
      const bool overflowed = sum_of_bytes(counts, bins) != source.n;
      block_barrier();  // all have read the sum
      if (overflowed) return false;
    }
    for (u32 bin = thread_in_block(); bin < bins; bin += threads_in_block())
      if (const u32 count = counts[bin / kInWord] >> kBits * (bin % kInWord) & kMask)
        atomic_add(source.counters() + first_bin + bin, count);
    block_barrier();
    return true;
  }

  // The sum of all counts of 8 bits. One of them that overflows is 256 less, and the next one at most 1 more: then the sum
  // is not the number of elements. Barriers begin and end it.
  WARPHASH_FN static u32 sum_of_bytes(u32* counts, u32 bins) {
    u32* const sum = counts + kWords - 1;
    if (thread_in_block() == 0) *sum = 0;
    u32 mine = 0;
    for (u32 k = thread_in_block(); 4 * k < bins; k += threads_in_block()) {
      const u32 x = counts[k], pairs = (x & 0xff00ffu) + (x >> 8 & 0xff00ffu);
      mine += (pairs & 0xffffu) + (pairs >> 16);
    }
    block_barrier();
    mine = warp_sum(mine);
    if (lane() == 0) atomic_add(sum, mine);
    block_barrier();
    return *sum;
  }
};

// ---- arrange_parts, arrange_ranges, arrange
// Elements of a part, at most a tile.
struct PartTile {
  u32 first, n, part;
  WARPHASH_FN static PartTile of(u64 word) {
    return {static_cast<u32>(word), static_cast<u32>(word >> 32) & 0xffffu, static_cast<u32>(word >> 48)};
  }
  WARPHASH_FN u64 word() const { return static_cast<u64>(part) << 48 | static_cast<u64>(n) << 32 | first; }
};

// A warp arranges a part.
struct ByParts : OverPasses {
  static constexpr u32 kThreads = block_threads(256);
  WARPHASH_FN static u64 part() { return thread_in_grid() / kWarpLanes; }
};

// Gives a part its places, and cuts it into tiles of kTile elements.
template <u32 kTile>
struct ArrangeParts : ByParts {
  static_assert(kTile < 1u << 16);

  WARPHASH_FN static void run(const QuotientTable& t, const PassBatch& b) {
    const u64 part = ByParts::part();
    if (part >= b.parts) return;
    const u32 shift = static_cast<u32>(b.part_shift) - bin_shift(b), bins = bins_of(t, b);
    const u32 first = static_cast<u32>(part << shift), next = static_cast<u32>((part + 1) << shift);
    u32 elements = 0;
    for (u32 bin = first + lane(); bin < (next < bins ? next : bins); bin += kWarpLanes)
      elements += counters_of(t, b)[bin];
    elements = warp_sum(elements);
    const u32 tiles = b.tiles ? elements / kTile + (elements % kTile != 0) : 0;
    u32 start = 0, tile = 0;
    if (lane() == 0) {
      start = static_cast<u32>(fetch_add(&report_of(b)->losers, static_cast<u64>(elements)));
      if (tiles) tile = fetch_add(pointer<u32>(b.given) + b.parts, tiles);
      pointer<u32>(t.starts)[part << b.part_shift] = start;
      if (b.bin_ranges > 1) pointer<u32>(b.given)[part] = 0;
    }
    start = shuffle(start, 0, kWarpLanes), tile = shuffle(tile, 0, kWarpLanes);
    for (u32 k = lane(); k < tiles; k += kWarpLanes) {
      const u32 before = k * kTile, left = elements - before;
      store_once(pointer<u64>(b.tiles) + tile + k,
                 PartTile{start + before, left < kTile ? left : kTile, static_cast<u32>(part)}.word());
    }
  }
};

// Gives the ranges of a part their places, and lists those that have elements.
struct ArrangeRanges : ByParts {
  WARPHASH_FN static void run(const QuotientTable& t, const PassBatch& b) {
    const u64 part = ByParts::part();
    if (part >= b.parts) return;
    const u32 first = static_cast<u32>(part << b.part_shift), next = static_cast<u32>((part + 1) << b.part_shift);
    const u32 end = next < t.ranges ? next : static_cast<u32>(t.ranges);
    u32 listed = 0;
    for (u32 range = first + lane(); range < end; range += kWarpLanes) listed += *counter_of(t, range) != 0;
    listed = warp_sum(listed);
    u32 start = 0, list = 0;
    if (lane() == 0) {
      start = pointer<const u32>(t.starts)[first];
      list = static_cast<u32>(fetch_add(&report_of(b)->winners, static_cast<u64>(listed)));
    }
    start = shuffle(start, 0, kWarpLanes), list = shuffle(list, 0, kWarpLanes);
    for (u32 range = first + lane(); range - lane() < end; range += kWarpLanes) {
      const u32 count = range < end ? *counter_of(t, range) : 0;
      const u32 before = sum_before(count), having = ballot(count != 0);
      if (range < end) {
        pointer<u32>(t.starts)[range] = start + before;
        *counter_of(t, range) = 0;
      }
      if (count) pointer<u32>(b.touched)[list + bit_count(having & ((1u << lane()) - 1))] = range;
      start += shuffle(before + count, kWarpLanes - 1, kWarpLanes);
      list += bit_count(having);
    }
  }
};

// Both at once, where `count` has counted ranges. (The first lane reads the start that it has written.)
template <u32 kTile>
struct Arrange : ByParts {
  WARPHASH_FN static void run(const QuotientTable& t, const PassBatch& b) {
    ArrangeParts<kTile>::run(t, b);
    ArrangeRanges::run(t, b);
  }
};

// ---- to_parts, to_ranges, scatter_to_ranges
// What a block shares.
struct PassTile {
  alignas(16) u8 elements[kPassTileBytes];
  u32 starts[kMostBins];  // of a bin: elements, then where they begin in the tile
  u32 shifts[kMostBins];  // from there to the output
  u32 sums[kPassThreads / kWarpLanes];
};

template <class Brought>
constexpr u32 kPassItems = kPassTileBytes / sizeof(Brought) / kPassThreads;  // of a thread

// Blocks on a processor. A thread has 16 elements of 4 bytes, and needs 64 registers for them.
template <class Brought>
constexpr u32 kPassBlocks = sizeof(Brought) == 4 ? 2 : 3;

template <class Brought>
WARPHASH_FN Brought load_brought(const Brought* p) {
  if constexpr (sizeof(Brought) == 16)
    return load_once(p);
  else if constexpr (sizeof(Brought) == 8)
    return __builtin_bit_cast(Brought, load_once(reinterpret_cast<const u64*>(p)));
  else
    return __builtin_bit_cast(Brought, load_once(reinterpret_cast<const u32*>(p)));
}

// From the caller's arrays to parts.
template <class Word, u32 kValueBytes>
struct CallersTile {
  using Brought = BroughtOf<Word, kValueBytes>;
  using Value = UnsignedFor<(kValueBytes == 8)>;
  static constexpr u32 kTile = kPassTile<Word, kValueBytes>;
  const QuotientTable& t;
  const PassBatch& b;
  const u32 first, n;
  WARPHASH_FN CallersTile(const QuotientTable& table, const PassBatch& batch, u32 block)
      : t(table),
        b(batch),
        first(block * kTile),
        n(first < b.n ? (b.n - first < kTile ? static_cast<u32>(b.n - first) : kTile) : 0) {}
  struct Loaded {
    Word key;
    Value value;
  };
  WARPHASH_FN Loaded load(u32 k) const {
    Value value = 0;
    if constexpr (kValueBytes > 0)
      if (b.values) value = load_once(pointer<const Value>(b.values) + first + k);
    return {load_once(pointer<const Word>(b.keys) + first + k), value};
  }
  WARPHASH_FN Brought brought(const Loaded& x) const { return Brought::make(permuted(t, x.key), x.value); }
  WARPHASH_FN u32 bin(const Brought& x) const { return range_of_hash(t, static_cast<Word>(x.key)) >> b.part_shift; }
  // The first of `count` places for elements of a bin.
  WARPHASH_FN u32 reserve(u32 bin, u32 count) const {
    const u32 first_range = bin << b.part_shift;
    return pointer<const u32>(t.starts)[first_range] + fetch_add(in_global(pointer<u32>(b.given)) + bin, count);
  }
};

// From a part to its ranges. There are as many blocks as there could be tiles; those behind the last one find zeros.
template <class Word, u32 kValueBytes>
struct TileOfPart {
  using Brought = BroughtOf<Word, kValueBytes>;
  using Loaded = Brought;
  static constexpr u32 kTile = kPassTile<Word, kValueBytes>;
  static constexpr u32 kThreads = kPassThreads, kBlocks = 3, kBins = kMostRanges;
  static constexpr bool kIsNarrow = false;
  const QuotientTable& t;
  const PassBatch& b;
  u32 first, n, first_range;
  WARPHASH_FN TileOfPart(const QuotientTable& table, const PassBatch& batch, u32 block)
      : t(table), b(batch), first(0), n(0), first_range(0) {
    if (block >= b.most_tiles) return;
    const PartTile tile = PartTile::of(load_once(pointer<const u64>(b.tiles) + block));
    first = tile.first, n = tile.n, first_range = tile.part << b.part_shift;
  }
  WARPHASH_FN Brought load(u32 k) const { return load_brought(pointer<const Brought>(b.source) + first + k); }
  WARPHASH_FN static const Brought& brought(const Brought& x) { return x; }
  WARPHASH_FN u32 bin(const Brought& x) const { return range_of_hash(t, static_cast<Word>(x.key)) - first_range; }
  WARPHASH_FN u32 bins() const { return 1u << b.part_shift; }
  WARPHASH_FN u32* counters() const { return counter_of(t, first_range); }
  WARPHASH_FN u32 reserve(u32 bin, u32 count) const {
    return pointer<const u32>(t.starts)[first_range + bin] + fetch_add(counter_of(t, first_range + bin), count);
  }
};

// The elements of a tile that this thread has, and their ranks among those of their bins. kWhole: of a tile that is full.
// A branch around an element would make a thread wait for its load or atomic before the next one begins. Elements of a
// full tile need no such branch.
template <class Tile, bool kWhole>
struct Ranked {
  using Brought = typename Tile::Brought;
  static constexpr u32 kItems = kPassItems<Brought>;
  Brought item[kItems];

  WARPHASH_FN static u32 number(u32 k) { return k * kPassThreads + thread_in_block(); }
  WARPHASH_FN static bool has(const Tile& tile, u32 k) { return kWhole || number(k) < tile.n; }

  // Counts the elements of each bin. All threads call it; a barrier ends it.
  WARPHASH_FN Ranked(const Tile& tile, u32* counts, u32 bins) {
    typename Tile::Loaded loaded[kItems];
#pragma unroll
    for (u32 k = 0; k < kItems; ++k)
      if (has(tile, k)) loaded[k] = tile.load(number(k));
    for (u32 bin = thread_in_block(); bin < bins; bin += kPassThreads) counts[bin] = 0;
    block_barrier();
#pragma unroll
    for (u32 k = 0; k < kItems; ++k)
      if (has(tile, k)) item[k] = tile.brought(loaded[k]);
    u32 ranks[kItems];
#pragma unroll
    for (u32 k = 0; k < kItems; ++k) ranks[k] = has(tile, k) ? fetch_add(counts + tile.bin(item[k]), 1u) : 0;
#pragma unroll
    for (u32 k = 0; k < kItems; k += 2) ranks_[k / 2] = ranks[k] | ranks[k + 1] << 16;
    block_barrier();
  }
  WARPHASH_FN u32 rank(u32 k) const { return ranks_[k / 2] >> 16 * (k % 2) & 0xffffu; }

 private:
  u32 ranks_[kItems / 2];  // two in a word
};

template <class Tile>
struct Pass : OverPasses {
  using Brought = typename Tile::Brought;
  static constexpr u32 kThreads = kPassThreads, kBlocks = kPassBlocks<Brought>;

  WARPHASH_FN static void run(const QuotientTable& t, const PassBatch& b) {
    const Tile tile(t, b, block());
    if (tile.n == 0) return;  // the whole block
    PassTile& m = *static_cast<PassTile*>(block_memory<sizeof(PassTile)>());
    if (tile.n == Tile::kTile)
      move<true>(b, tile, m);
    else
      move<false>(b, tile, m);
  }

 private:
  template <bool kWhole>
  WARPHASH_FN static void move(const PassBatch& b, const Tile& tile, PassTile& m) {
    using Elements = Ranked<Tile, kWhole>;
    const Elements elements(tile, m.starts, kMostBins);
    arrange_bins(tile, m);
    Brought* const staged = reinterpret_cast<Brought*>(m.elements);
#pragma unroll
    for (u32 k = 0; k < Elements::kItems; ++k) {
      if (!Elements::has(tile, k)) continue;
      const u32 number = Elements::number(k);
      const u32 bin = tile.bin(elements.item[k]), place = m.starts[bin] + elements.rank(k);
      staged[place] = elements.item[k];
      if (b.places) store_once(pointer<u32>(b.places) + tile.first + number, m.shifts[bin] + place);
    }
    block_barrier();
#pragma unroll
    for (u32 k = 0; k < Elements::kItems; ++k) {
      if (!Elements::has(tile, k)) continue;
      const u32 number = Elements::number(k);
      const Brought x = staged[number];
      pointer<Brought>(b.target)[m.shifts[tile.bin(x)] + number] = x;
    }
  }

  // The starts and shifts of a tile from its counts. All threads call it, behind a barrier, and a barrier ends it.
  WARPHASH_FN static void arrange_bins(const Tile& tile, PassTile& m) {
    constexpr u32 kMine = kMostBins / kPassThreads;
    const u32 first = kMine * thread_in_block();
    u32 mine = 0;
#pragma unroll
    for (u32 k = 0; k < kMine; ++k) {
      const u32 count = m.starts[first + k];
      if (count) m.shifts[first + k] = tile.reserve(first + k, count);
      mine += count;
    }
    const u32 before = sum_before(mine), warp = thread_in_block() / kWarpLanes;
    if (lane() == kWarpLanes - 1) m.sums[warp] = before + mine;
    block_barrier();
    const u32 of_warp = lane() < warp ? m.sums[lane()] : 0;
    u32 start = warp_sum(of_warp) + before;
#pragma unroll
    for (u32 k = 0; k < kMine; ++k) {
      const u32 count = m.starts[first + k];
      m.starts[first + k] = start;
      if (count) m.shifts[first + k] -= start;
      start += count;
    }
    block_barrier();
  }
};

// A pass that does not arrange its tile: step 3 copies elements from registers to the output.
template <class Tile>
struct Scatter : OverPasses {
  using Brought = typename Tile::Brought;
  static constexpr u32 kThreads = kPassThreads, kBlocks = kPassBlocks<Brought>;
  struct Memory {
    u32 bins[kMostRanges];  // elements of a bin, then the place of the first
  };

  WARPHASH_FN static void run(const QuotientTable& t, const PassBatch& b) {
    const Tile tile(t, b, block());
    if (tile.n == 0) return;  // the whole block
    u32* const bins = static_cast<Memory*>(block_memory<sizeof(Memory)>())->bins;
    if (tile.n == Tile::kTile)
      move<true>(b, tile, bins);
    else
      move<false>(b, tile, bins);
  }

 private:
  template <bool kWhole>
  WARPHASH_FN static void move(const PassBatch& b, const Tile& tile, u32* bins) {
    using Elements = Ranked<Tile, kWhole>;
    const Elements elements(tile, bins, tile.bins());
    for (u32 bin = thread_in_block(); bin < tile.bins(); bin += kPassThreads)
      if (const u32 count = bins[bin]) bins[bin] = tile.reserve(bin, count);
    block_barrier();
#pragma unroll
    for (u32 k = 0; k < Elements::kItems; ++k) {
      if (!Elements::has(tile, k)) continue;
      const u32 number = Elements::number(k);
      const u32 place = bins[tile.bin(elements.item[k])] + elements.rank(k);
      pointer<Brought>(b.target)[place] = elements.item[k];
      if (b.places) store_once(pointer<u32>(b.places) + tile.first + number, place);
    }
  }
};

// ---- restore_flags
// The elements of a block are neighbours in the order that the pass found, so they are of one tile or of a few. Plain
// loads of their flags leave the sectors in the first-level cache. (Read-only loads may come too early: see
// load_16_bytes in platform/cuda.cuh.)
struct RestoreFlags : OverPasses {
  static constexpr u32 kThreads = kRestoringThreads, kItems = kRestoringItems, kInARow = 4;

  WARPHASH_FN static void run(const QuotientTable&, const PassBatch& b) {
    const u64 first = static_cast<u64>(block()) * kThreads * kItems + kInARow * thread_in_block();
    const u32* const places = pointer<const u32>(b.places);
    const u8* const source = pointer<const u8>(b.source);
    u8* const target = pointer<u8>(b.target);
    u32 place[kItems];
#pragma unroll
    for (u32 row = 0; row < kItems; row += kInARow) {
      const u64 at = first + row * kThreads;
      if (at + kInARow <= b.n) {
        const Quad quad = load_once(reinterpret_cast<const Quad*>(places + at));
#pragma unroll
        for (u32 k = 0; k < kInARow; ++k) place[row + k] = quad.w[k];
      } else {
#pragma unroll
        for (u32 k = 0; k < kInARow; ++k)
          if (at + k < b.n) place[row + k] = load_once(places + at + k);
      }
    }
    u8 flag[kItems];
#pragma unroll
    for (u32 row = 0; row < kItems; row += kInARow)
#pragma unroll
      for (u32 k = 0; k < kInARow; ++k)
        if (first + row * kThreads + k < b.n) flag[row + k] = source[place[row + k]];
#pragma unroll
    for (u32 row = 0; row < kItems; row += kInARow) {
      const u64 at = first + row * kThreads;
      if (at + kInARow <= b.n && (b.target & (kInARow - 1)) == 0) {
        const u32 four = flag[row] | flag[row + 1] << 8 | flag[row + 2] << 16 | static_cast<u32>(flag[row + 3]) << 24;
        store_once(reinterpret_cast<u32*>(target + at), four);
      } else {
#pragma unroll
        for (u32 k = 0; k < kInARow; ++k)
          if (at + k < b.n) target[at + k] = flag[row + k];
      }
    }
  }
};

}  // namespace warphash

// By the bytes of a key and of a value.
#define WARPHASH_PASS_ENTRIES(BYTES, WORD, VALUE)                                                \
  WARPHASH_ENTRY(to_parts##BYTES, warphash::Pass<warphash::CallersTile<WORD, VALUE>>)            \
  WARPHASH_ENTRY(count_ranges##BYTES, warphash::Count<warphash::TileOfPart<WORD, VALUE>>)        \
  WARPHASH_ENTRY(to_ranges##BYTES, warphash::Pass<warphash::TileOfPart<WORD, VALUE>>)            \
  WARPHASH_ENTRY(scatter_to_ranges##BYTES, warphash::Scatter<warphash::TileOfPart<WORD, VALUE>>) \
  WARPHASH_ENTRY(arrange##BYTES, warphash::Arrange<warphash::kPassTile<WORD, VALUE>>)            \
  WARPHASH_ENTRY(arrange_parts##BYTES, warphash::ArrangeParts<warphash::kPassTile<WORD, VALUE>>)
#define WARPHASH_PLAIN_ENTRIES                                                   \
  WARPHASH_ENTRY(count4, warphash::Count<warphash::CallersShare<warphash::u32>>) \
  WARPHASH_ENTRY(count8, warphash::Count<warphash::CallersShare<warphash::u64>>) \
  WARPHASH_PASS_ENTRIES(40, warphash::u32, 0)                                    \
  WARPHASH_PASS_ENTRIES(44, warphash::u32, 4)                                    \
  WARPHASH_PASS_ENTRIES(48, warphash::u32, 8)                                    \
  WARPHASH_PASS_ENTRIES(80, warphash::u64, 0)                                    \
  WARPHASH_PASS_ENTRIES(84, warphash::u64, 4)                                    \
  WARPHASH_PASS_ENTRIES(88, warphash::u64, 8)                                    \
  WARPHASH_ENTRY(arrange_ranges, warphash::ArrangeRanges)                        \
  WARPHASH_ENTRY(restore_flags, warphash::RestoreFlags)
