// A pool of units, slabs of 128 bytes or smaller nodes of a list, that lanes of a running kernel take and give back.
// Source: A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), section V: SlabAlloc.
//
// Layout
//   pool          [ memory blocks in a super block 64 | super blocks 64 | bytes of a unit 64 | exhausted 64 |
//                   address of the counts 64 | address of super block 0 64 | of 1 | … ]
//   counts        32 lines of 64 bytes; the first 32 bits of line c: taken units of the memory blocks b with b % 32 = c
//   super block   [ bitmaps: 32 words of 32 bits for each memory block ][ units: 1024 for each ]
//                 bit u of word w: unit 32 w + u of that memory block is free
//   address       [ super block 8 | memory block 14 | unit 10 ], of a slab; all ones is none, so there are 255 super blocks
//   SlabAlloc-light has one super block, whose address is in the Table: a slab is found without a look at the pool.
//
// Protocol, allocate. All lanes of a warp call it, those that want a slab say so.
//   1. The warp has a resident memory block; lane l keeps word l of its bitmap as it was when last seen.
//   2. A lane whose word has free units serves. One atomic clears as many bits as lanes are waiting; the units that
//      were still free are taken, and go to the waiting lanes in order. The other lanes wait for the next round.
//   3. If no word has a free unit, another block becomes resident, chosen by a hash of the warp and of its number of moves.
//   4. The number of taken units is added to the count of their block. The host sums the counts to know what is left.
//   5. After kHashedMoves moves without a slab, the warp walks over all blocks, one by one. Then it gives up and marks
//      the pool as exhausted, which later warps read. So no warp spins, and no warp gives up while a unit stays free.
// Release sets the bit, lowers the count, and clears the word that says exhausted.
//
// Why. One atomic serves up to 32 lanes, where the paper's serves one. The paper's resident blocks and hashed moves
// keep warps out of each other's way. The paper does not speak of a full pool; here step 5 ends the search. Counts save
// the host a kernel over all bitmaps. They are spread over lines, since all warps would meet at a single one.
//
// Memory order: relaxed. A bit publishes nothing. Free slabs are all ones: a super block is filled with ones when it is
// made, bitmaps included. A kernel that wipes a slab and gives it back allocates none.
#pragma once
#include "chains/abi.cuh"
#include "core/hash.cuh"

namespace warphash {

constexpr u32 kSlabBytes = 128;
constexpr u32 kBlockUnits = 1024;
constexpr u32 kBitmapWords = kBlockUnits / 32;
constexpr u32 kNoSlab = ~0u;
constexpr u32 kHashedMoves = 16;
constexpr u32 kCountLines = 32;
constexpr u32 kCountWords = 64 / sizeof(u32);  // a line each

struct Pool {
  u64 blocks;  // in a super block, 1 to 2^14
  u64 super_blocks;
  u64 unit_bytes;
  u64 exhausted;  // 1: a warp has looked everywhere since the last release
  u64 counts;
  u64 bases[255];
};

WARPHASH_FN Pool& pool_of(const ChainTable& t) { return *reinterpret_cast<Pool*>(t.pool); }

// A memory block of a pool.
struct MemoryBlock {
  u32* bitmap;
  u32 address;  // of its unit 0

  // Block `number` of all, counted over the super blocks.
  WARPHASH_FN static MemoryBlock of(const Pool& pool, u32 number) {
    const u32 super_block = number / static_cast<u32>(pool.blocks), block = number % static_cast<u32>(pool.blocks);
    return {reinterpret_cast<u32*>(pool.bases[super_block]) + block * kBitmapWords, super_block << 24 | block << 10};
  }
};

// The units of a super block lie behind its bitmaps; blocks have as many as their field of an address counts.
WARPHASH_FN void* unit_at(u64 units, u32 address, u64 unit_bytes) {
  return reinterpret_cast<char*>(units) + (address & 0xffffffu) * unit_bytes;
}

WARPHASH_FN void* slab_at(const Pool& pool, u32 address, u64 unit_bytes) {
  return unit_at(pool.bases[address >> 24] + pool.blocks * kBitmapWords * sizeof(u32), address, unit_bytes);
}

WARPHASH_FN bool is_slab(const Pool& pool, u32 address) {
  return address >> 24 < pool.super_blocks && (address >> 10 & 0x3fffu) < pool.blocks;
}

// Count units of the memory block of an address that were taken, or, negative, given back.
WARPHASH_FN void count_taken(const Pool& pool, u32 address, int units) {
  atomic_add(reinterpret_cast<u32*>(pool.counts) + (address >> 10) % kCountLines * kCountWords,
             static_cast<u32>(units));
}

// All ones, as a slab must be that is given back.
WARPHASH_FN void wipe_slab(const Pool& pool, u32 address) {
  u64* words = static_cast<u64*>(slab_at(pool, address, pool.unit_bytes));
  for (u32 w = 0; w < pool.unit_bytes / sizeof(u64); ++w) words[w] = ~0ull;
}

// False if it was free.
WARPHASH_FN bool release_slab(Pool& pool, u32 address) {
  WARPHASH_ASSERT(is_slab(pool, address));
  u32* bitmap = reinterpret_cast<u32*>(pool.bases[address >> 24]) + (address >> 10 & 0x3fffu) * kBitmapWords;
  const u32 unit = address & (kBlockUnits - 1), bit = 1u << unit % 32;
  const bool was_taken = !(fetch_or(bitmap + unit / 32, bit) & bit);
  if (was_taken) count_taken(pool, address, -1);
  if (load_relaxed(&pool.exhausted)) store_relaxed(&pool.exhausted, u64(0));
  return was_taken;
}

// The lowest `count` bits of `set`, or all of them.
WARPHASH_FN u32 lowest_bits(u32 set, u32 count) {
  u32 rest = set;
  for (u32 c = 0; c < count && rest; ++c) rest &= rest - 1;
  return set & ~rest;
}

// The number of bit `rank` of `set`, counted from its lowest.
WARPHASH_FN u32 bit_of_rank(u32 set, u32 rank) {
  for (u32 r = 0; r < rank; ++r) set &= set - 1;
  return first_bit(set);
}

// The source of a warp's slabs.
class ResidentBlock {
  static constexpr u32 kWords = kBitmapWords / kWarpLanes;  // of the bitmap, a lane: word k * kWarpLanes + lane()

  u32 warp_;
  u32 number_ = 0, address_ = 0;
  u32 moves_ = 0;
  u32 barren_ = 0;  // moves since the last slab
  u32* bitmap_ = nullptr;
  u32 free_[kWords];

  WARPHASH_FN bool move(Pool& pool) {
    const u32 blocks = static_cast<u32>(pool.blocks * pool.super_blocks);
    if (blocks == 0 || ballot(load_relaxed(&pool.exhausted))) return false;  // all lanes of the warp, or none
    if (barren_ >= kHashedMoves + blocks) {
      store_relaxed(&pool.exhausted, u64(1));
      return false;
    }
    const bool hashed = barren_ < kHashedMoves;
    number_ = hashed ? scale(mix(warp_ * 0x9e3779b9u + moves_), blocks) : (number_ + 1) % blocks;
    ++moves_;
    ++barren_;
    const MemoryBlock block = MemoryBlock::of(pool, number_);
    bitmap_ = block.bitmap;
    address_ = block.address;
    for (u32 k = 0; k < kWords; ++k) free_[k] = load_relaxed(bitmap_ + k * kWarpLanes + lane());
    return true;
  }

 public:
  WARPHASH_FN explicit ResidentBlock(u32 warp) : warp_(warp) {
    for (u32& word : free_) word = 0;
  }

  WARPHASH_FN u32 allocate(const ChainTable& t, bool wanted) { return allocate(pool_of(t), wanted); }

  // Address of a slab for each lane that wants one, kNoSlab for the others and where the pool has none left.
  WARPHASH_FN u32 allocate(Pool& pool, bool wanted) {
    u32 slab = kNoSlab;
    for (u32 waiting = ballot(wanted); waiting; waiting = ballot(wanted && slab == kNoSlab)) {
      u32 k = 0;
      while (k + 1 < kWords && !free_[k]) ++k;
      const u32 servers = ballot(free_[k] != 0);
      if (!servers) {
        if (!move(pool)) break;
        continue;
      }
      const u32 behind = servers & ~0u << warp_ % kWarpLanes;  // warps of one resident block start at different words
      const u32 server = first_bit(behind ? behind : servers);
      u32 got = 0;
      if (lane() == server) {
        const u32 asked = lowest_bits(free_[k], bit_count(waiting));
        const u32 before = fetch_and(bitmap_ + k * kWarpLanes + lane(), ~asked);
        got = asked & before;
        free_[k] = before & ~asked;
        if (got) count_taken(pool, address_, bit_count(got));
      }
      got = shuffle(got, server, kWarpLanes);
      if (got) barren_ = 0;
      const u32 rank = bit_count(waiting & ((1u << lane()) - 1));
      if (wanted && slab == kNoSlab && rank < bit_count(got))
        slab = address_ | (k * kWarpLanes + server) * 32 | bit_of_rank(got, rank);
    }
    return slab;
  }
};

// The members of a task that takes slabs from the pool of its table (core/concepts.cuh).
struct TakesSlabs {
  using Allocator = ResidentBlock;
  static constexpr bool kAllocates = true;
};

}  // namespace warphash
