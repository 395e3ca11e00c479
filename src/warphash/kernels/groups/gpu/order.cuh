// The order of a batch by its numbers on a GPU (groups/order.cuh): a block orders a tile of elements by one digit.
//
//   count_digits     how many elements of each tile have each digit
//   order_by_digit4  brings numbers, and payloads of 4 bytes, to their places in the order of one digit
//   order_by_digit8  the same for payloads of 8 bytes
//
// Layout. A tile is a chunk of kOrderTile elements in a row, but for the last one. Each warp of its block has a
// contiguous part of the tile, and goes through it 32 elements at a time:
//
//   element  0            512          1024                  4096
//            [   warp 0   |   warp 1   | ... |   warp 7   ]        in a warp: item k of lane r is element 32 k + r
//
//   counters  [ digit 0: tile 0 32 | tile 1 32 | ... ][ digit 1: tile 0 32 | ... ] ...   counters[digit * tiles + tile]
//   byte of what a block shares
//     0         4 or 8 x 4096   + 8192           + 1024        + 32
//     [ staged  | counts        | shifts         | sums        ]
//       staged[place in tile] u32 or u64; counts[warp][digit] u32; shifts[digit] u32; sums[warp] u32
//
// An element is its number and its payload, which move together. The payload is the row of the element, of 4 or 8
// bytes; or, where no rows are asked for, the number of the element in the batch, u32. A batch of one tile has no
// counters: a place in the tile is a place in the output.
//
// Protocol of count_digits, a block and its tile:
//   1. Each thread adds its elements to the block's counters of their digits.
//   2. Thread d writes the counter of digit d to memory, zero or not: nobody clears the counters before.
//
// Protocol of order_by_digit, a block and its tile:
//   1. A warp takes its next 32 elements. Ballots tell each lane its peers, the lanes whose elements have its digit.
//      The rank of an element is the warp's counter of the digit, and the peers before it. The first peer adds them to
//      the counter. All lanes read the counter before it does so: a barrier of the warp lies between, and another one
//      behind.
//   2. Thread d sums the counters of digit d over the warps, and the block sums them over digits. Then the counter of a
//      warp and digit says where these elements begin in the tile; and `shifts` has, for each digit, its place in the
//      output less its place in the tile.
//   3. The numbers go to their places in the tile, and from there to the output: neighbours to neighbouring places.
//   4. The payloads do the same, in the same memory.
// Lanes, warps and tiles are in the order of the batch, so elements of one digit keep their order.
//
// The last tile may have fewer elements. In place of those that it lacks, there are numbers of 32 ones. They have the
// last digit, and come last in the tile. So they come last in its order, too, and nobody writes them.
//
// Bytes, for each element and pass: 4 to count; then 4 + payload read, and 4 + payload written. The first pass does not
// read numbers of elements, and the last one does not write numbers. With 20 bits of numbers, 3 passes: 52 for the
// order of elements, 56 for rows of 4 bytes, 80 for rows of 8 bytes.
//
// Why numbers move along. If only elements moved, each pass would read the number of each at random: a sector of 32
// bytes, once to count and once to move, in place of 12 bytes in a row.
//
// Why rows move along. Rows of 4 bytes are no wider than the numbers of elements would be. Rows of 8 bytes cost 24
// bytes more in three passes, where numbers of elements would end in a random read of each row: a sector of 32 bytes.
// The memory of a block suffices, since payloads are staged where the numbers were.
//
// Why ballots. Ranks by one atomic addition for each element would follow the order in which lanes get their turn. From
// ballots, an element sees how many of its peers are in lanes before its own. There are always as many ballots as a
// digit may have bits: no branch comes between them, so a processor has those of several items under way.
//
// Why payloads are read last. A thread has its numbers in registers while it ranks them, and its payloads while the
// numbers leave. Held at once, they spill (sm_90: 64 registers for 4 blocks, or 80 for 3). Other blocks of the
// processor work while payloads are on their way.
//
// Why tiles of 4096. Elements of a tile with one digit go to places in a row: with 7 bits about 32 of them, or 128
// bytes. A thread has 16 elements in registers, and a processor 4 blocks. The counters of all tiles are a sixteenth of
// those of chunks of 256 elements, which a lane could order by itself.
//
// Memory order. All atomics are relaxed, and only count in the memory of a block. Barriers publish what a warp, or a
// block, writes there to its threads; the end of a kernel publishes its output.
#pragma once
#include "core/gpu/partition.cuh"
#include "core/gpu/schedule.cuh"
#include "groups/order.cuh"

namespace warphash {

constexpr u32 kDigitBits = 8, kDigits = 1 << kDigitBits;  // of a digit, at most
constexpr u32 kOrderThreads = block_threads(256), kOrderItems = 16, kOrderTile = kOrderThreads * kOrderItems;
constexpr u32 kOrderWarps = kOrderThreads / kWarpLanes;
static_assert(kOrderThreads == kDigits, "a thread sums up a digit");
static_assert(kOrderTile <= 1 << 16, "a rank has 16 bits");

// The tile of this block.
struct OrderTile {
  const TileOrderBatch& b;
  const u64 number, first;
  const u32 n;

  WARPHASH_FN explicit OrderTile(const TileOrderBatch& batch)
      : b(batch),
        number(thread_in_grid() / kOrderThreads),
        first(number * kOrderTile),
        n(first < b.n ? (b.n - first < kOrderTile ? static_cast<u32>(b.n - first) : kOrderTile) : 0) {}

  // The place in the tile of item k of this thread.
  WARPHASH_FN static u32 place(u32 k) {
    return thread_in_block() / kWarpLanes * (kOrderItems * kWarpLanes) + k * kWarpLanes + lane();
  }

  // The words of this thread's items, and ones in place of missing ones. A branch around a load would make the thread
  // wait for it before the next one begins. A full tile needs no such branch.
  template <class Word>
  WARPHASH_FN void load(u64 words, Word (&word)[kOrderItems]) const {
    const Word* const from = pointer<const Word>(words) + first + place(0);
    if (n == kOrderTile) {
#pragma unroll
      for (u32 k = 0; k < kOrderItems; ++k) word[k] = load_once(from + k * kWarpLanes);
    } else {
#pragma unroll
      for (u32 k = 0; k < kOrderItems; ++k) word[k] = place(k) < n ? load_once(from + k * kWarpLanes) : ~Word{0};
    }
  }

  WARPHASH_FN u32& counter(u32 digit) const { return pointer<u32>(b.counters)[digit * b.chunks + number]; }
};

struct OverOrderTiles {
  using Table = ValueLists;
  using Batch = TileOrderBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kOrderThreads;
};

struct CountDigits : OverOrderTiles {
  static constexpr u32 kBlocks = 6;

  WARPHASH_FN static void run(const ValueLists&, const TileOrderBatch& b) {
    const OrderTile tile(b);
    if (tile.n == 0) return;  // the whole block
    u32* const counts = static_cast<u32*>(block_memory<kDigits * sizeof(u32)>());
    const u32 digit = thread_in_block();
    u32 number[kOrderItems];
    tile.load(b.numbers, number);
    counts[digit] = 0;
    block_barrier();
#pragma unroll
    for (u32 k = 0; k < kOrderItems; ++k)
      if (OrderTile::place(k) < tile.n) atomic_add(counts + digit_of(b, number[k]), 1u);
    block_barrier();
    if (digit <= b.mask) tile.counter(digit) = counts[digit];
  }
};

template <class Payload>
struct OrderByDigit : OverOrderTiles {
  static constexpr u32 kBlocks = sizeof(Payload) == 4 ? 4 : 3;

  struct Memory {
    alignas(16) Payload staged[kOrderTile];  // numbers, then payloads
    u32 counts[kOrderWarps][kDigits];        // of a warp: elements, then where they begin in the tile
    u32 shifts[kDigits];                     // from the place in the tile to that in the output
    u32 sums[kOrderWarps];
  };
  static_assert(sizeof(Memory) <= 48 << 10, "a kernel has no more of its own");

  WARPHASH_FN static void run(const ValueLists&, const TileOrderBatch& b) {
    const OrderTile tile(b);
    if (tile.n == 0) return;  // the whole block
    Memory& m = *static_cast<Memory*>(block_memory<sizeof(Memory)>());
    u32* const counts = m.counts[thread_in_block() / kWarpLanes];
    u32 number[kOrderItems], pairs[kOrderItems / 2];  // of ranks, of 16 bits
    tile.load(b.numbers, number);
    rank(b, number, counts, pairs);
    block_barrier();
    arrange(tile, m);
#pragma unroll
    for (u32 k = 0; k < kOrderItems; ++k) pairs[k / 2] += counts[digit_of(b, number[k])] << 16 * (k % 2);
    send(tile, m, number, pairs);
  }

 private:
  WARPHASH_FN static u32 half(const u32 (&pairs)[kOrderItems / 2], u32 k) {
    return pairs[k / 2] >> 16 * (k % 2) & 0xffffu;
  }

  WARPHASH_FN static void load_payloads(const OrderTile& tile, Payload (&payload)[kOrderItems]) {
    if (tile.b.payloads) {
      tile.load(tile.b.payloads, payload);
    } else {
#pragma unroll
      for (u32 k = 0; k < kOrderItems; ++k) payload[k] = static_cast<Payload>(tile.first + OrderTile::place(k));
    }
  }

  // The lanes whose elements have the digit of this one. A whole warp calls it.
  WARPHASH_FN static u32 peers_of(u32 digit) {
    u32 peers = ~0u;
#pragma unroll
    for (u32 bit = 0; bit < kDigitBits; ++bit) {
      const u32 bits = static_cast<u32>(static_cast<i32>(digit << (31 - bit)) >> 31);  // 32 copies of the bit
      peers &= ~(ballot(bits != 0) ^ bits);
    }
    return peers;
  }

  // Step 1: the ranks of this thread's items among the elements of their digits that the warp has, and the warp's
  // counts.
  WARPHASH_FN static void rank(const TileOrderBatch& b, const u32 (&number)[kOrderItems], u32* counts,
                               u32 (&pairs)[kOrderItems / 2]) {
    for (u32 digit = lane(); digit < kDigits; digit += kWarpLanes) counts[digit] = 0;
    warp_barrier();
#pragma unroll
    for (u32 k = 0; k < kOrderItems; ++k) {
      const u32 digit = digit_of(b, number[k]), peers = peers_of(digit), before = counts[digit];
      const u32 peers_before = bit_count(peers & ((1u << lane()) - 1));
      warp_barrier();
      if (peers_before == 0) counts[digit] = before + bit_count(peers);
      warp_barrier();
      pairs[k / 2] = k % 2 ? pairs[k / 2] | (before + peers_before) << 16 : before + peers_before;
    }
  }

  // Step 2. All threads call it, behind a barrier, and a barrier ends it.
  WARPHASH_FN static void arrange(const OrderTile& tile, Memory& m) {
    const u32 digit = thread_in_block(), warp = digit / kWarpLanes;
    const bool is_counted = tile.b.counters && digit <= tile.b.mask;
    const u32 place = is_counted ? tile.counter(digit) : 0;
    u32 count = 0;
#pragma unroll
    for (u32 w = 0; w < kOrderWarps; ++w) count += m.counts[w][digit];
    const u32 before = sum_before(count);
    if (lane() == kWarpLanes - 1) m.sums[warp] = before + count;
    block_barrier();
    u32 start = warp_sum(lane() < warp ? m.sums[lane()] : 0u) + before;
    m.shifts[digit] = is_counted ? place - start : 0;
#pragma unroll
    for (u32 w = 0; w < kOrderWarps; ++w) {
      const u32 of_warp = m.counts[w][digit];
      m.counts[w][digit] = start;
      start += of_warp;
    }
    block_barrier();
  }

  // Steps 3 and 4. `pairs` are places in the tile. The output is known to be of global memory, so that no store to it
  // keeps back the next load from the memory of the block.
  WARPHASH_FN static void send(const OrderTile& tile, Memory& m, const u32 (&number)[kOrderItems],
                               const u32 (&pairs)[kOrderItems / 2]) {
    const TileOrderBatch& b = tile.b;
    u32* const numbers = reinterpret_cast<u32*>(m.staged);
#pragma unroll
    for (u32 k = 0; k < kOrderItems; ++k) numbers[half(pairs, k)] = number[k];
    Payload payload[kOrderItems];
    load_payloads(tile, payload);  // on their way while the numbers leave
    block_barrier();
    u32 to[kOrderItems];
#pragma unroll
    for (u32 k = 0; k < kOrderItems; ++k) {
      const u32 at = k * kOrderThreads + thread_in_block(), moved = numbers[at];
      to[k] = m.shifts[digit_of(b, moved)] + at;
      if (b.out_numbers && at < tile.n) in_global(pointer<u32>(b.out_numbers))[to[k]] = moved;
    }
    block_barrier();
#pragma unroll
    for (u32 k = 0; k < kOrderItems; ++k) m.staged[half(pairs, k)] = payload[k];
    block_barrier();
#pragma unroll
    for (u32 k = 0; k < kOrderItems; ++k) {
      const u32 at = k * kOrderThreads + thread_in_block();
      if (at < tile.n) in_global(pointer<Payload>(b.out_payloads))[to[k]] = m.staged[at];
    }
  }
};

}  // namespace warphash
