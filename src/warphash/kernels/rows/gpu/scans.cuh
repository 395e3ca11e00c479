// Sums of counts and flags on a GPU: chunk_sums, offsets, flag_sums and list_chunks of rows/rows.cuh.
//
// Layout. A chunk of kChunk counts or flags belongs to a warp, whose lanes have neighbours.
//
// Protocol. A warp goes through its chunk 32 at a time. Lanes add up what lies before them by shuffles, or count the
// flags before them in a ballot. A warp alone reads and writes what belongs to its chunk, so nothing is atomic. Offsets may
// be written over counts of as many bytes: a warp has read 32 counts before it writes their offsets.
//
// Why. A thread with a chunk of its own reads and writes a line for each count: the offsets of 100 M counts took 6 ms so
// (H200).
#pragma once
#include "core/gpu/partition.cuh"
#include "core/gpu/schedule.cuh"
#include "rows/rows.cuh"

namespace warphash {

struct OverChunksOfWarps {
  using Table = StoredRows;
  using Batch = CountBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = 256;

  // Calls work(j, is there) for what this lane has of a chunk, and all lanes at once.
  template <class Work>
  WARPHASH_FN static void walk(const CountBatch& b, u64 chunk, const Work& work) {
    for (u64 first = chunk * kChunk; first < (chunk + 1) * kChunk && first < b.length; first += kWarpLanes)
      work(first + lane(), first + lane() < b.length);
  }
  WARPHASH_FN static u64 chunk() { return thread_in_grid() / kWarpLanes; }
  WARPHASH_FN static bool is_listed(const CountBatch& b, u64 j, bool there) {
    return there && reinterpret_cast<const u8*>(b.flags)[j] == b.listed_flag;
  }
};

struct WarpChunkSums : OverChunksOfWarps {
  WARPHASH_FN static void run(const StoredRows&, const CountBatch& b) {
    if (chunk() >= b.n) return;
    u64 sum = 0;
    walk(b, chunk(), [&](u64 j, bool there) { sum += there ? count_at(b, j) : 0; });
    sum = warp_sum(sum);
    if (lane() == 0) reinterpret_cast<u64*>(b.sums)[chunk()] = sum;
  }
};

struct WarpOffsets : OverChunksOfWarps {
  WARPHASH_FN static void run(const StoredRows&, const CountBatch& b) {
    if (chunk() >= b.n) return;
    u64 at = reinterpret_cast<const u64*>(b.starts)[chunk()];
    walk(b, chunk(), [&](u64 j, bool there) {
      const u64 count = there ? count_at(b, j) : 0, before = sum_before(count);
      if (there) set_offset(b, j, at + before);
      at += shuffle(before + count, kWarpLanes - 1, kWarpLanes);
    });
  }
};

struct WarpFlagSums : OverChunksOfWarps {
  WARPHASH_FN static void run(const StoredRows&, const CountBatch& b) {
    if (chunk() >= b.n) return;
    u64 sum = 0;
    walk(b, chunk(), [&](u64 j, bool there) { sum += bit_count(ballot(is_listed(b, j, there))); });
    if (lane() == 0) reinterpret_cast<u64*>(b.sums)[chunk()] = sum;
  }
};

struct WarpListChunks : OverChunksOfWarps {
  WARPHASH_FN static void run(const StoredRows&, const CountBatch& b) {
    if (chunk() >= b.n) return;
    u32* out = reinterpret_cast<u32*>(b.list) + reinterpret_cast<const u64*>(b.starts)[chunk()];
    walk(b, chunk(), [&](u64 j, bool there) {
      const bool listed = is_listed(b, j, there);
      const u32 votes = ballot(listed);
      if (listed) out[bit_count(votes & ((1u << lane()) - 1))] = static_cast<u32>(j);
      out += bit_count(votes);
    });
  }
};

}  // namespace warphash

#undef WARPHASH_PLAIN_ENTRIES  // of rows/rows.cuh, of which the counts are taken
#define WARPHASH_PLAIN_ENTRIES                        \
  WARPHASH_ENTRY(chunk_sums, warphash::WarpChunkSums) \
  WARPHASH_ENTRY(offsets, warphash::WarpOffsets)      \
  WARPHASH_ENTRY(flag_sums, warphash::WarpFlagSums)   \
  WARPHASH_ENTRY(list_chunks, warphash::WarpListChunks)
