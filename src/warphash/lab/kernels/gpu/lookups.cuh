// The kernels of lookup_ceiling.cuh on a GPU. As many lanes as a place has words of 16 bytes look a key up together. At each
// step, the groups of a warp have consecutive keys, so a warp reads its keys, and writes its answers, in order.
#pragma once
#include "gpu/ceiling.cuh"

namespace warphash {

// The caller gives a multiple of 32 * kUnrolled * kRounds keys, so no group is without a key.
template <int kBytes, class Key>
WARPHASH_FN void look_up(const Region& r, const Batch& b) {
  using Vector = typename VectorOf<(kBytes < 16 ? kBytes : 16)>::type;
  constexpr u32 kLanes = kBytes / sizeof(Vector), kAbreast = kWarpLanes / kLanes;
  const u64 first = thread_in_grid() / kWarpLanes * (kAbreast * kUnrolled * kRounds);
  if (first >= b.n) return;
  const u32 rank = lane() % kLanes;
  const Key* keys = reinterpret_cast<const Key*>(b.keys) + first + lane() / kLanes;
  Key* answers = reinterpret_cast<Key*>(b.out_values) + first + lane() / kLanes;
  const Vector* const base = reinterpret_cast<const Vector*>(r.address) + rank;
  const u32 places = static_cast<u32>(r.places), random = static_cast<u32>(b.random);
  u64 fold = 0;
#pragma unroll 1
  for (u32 round = 0; round < kRounds; ++round) {
    Key key[kUnrolled];
    Vector read[kUnrolled];
#pragma unroll
    for (u32 j = 0; j < kUnrolled; ++j) key[j] = load_once(keys + j * kAbreast);
#pragma unroll
    for (u32 j = 0; j < kUnrolled; ++j)
      read[j] =
          load_vector<true>(base + static_cast<u64>(place_of(static_cast<u32>(key[j]) + random, places)) * kLanes);
#pragma unroll
    for (u32 j = 0; j < kUnrolled; ++j) {
      fold ^= folded(read[j]);
      if (rank == j % kLanes) store_once(answers + j * kAbreast, static_cast<Key>(key[j] ^ low_word(read[j])));
    }
    keys += kUnrolled * kAbreast;
    answers += kUnrolled * kAbreast;
  }
  if (never(fold)) store_once(reinterpret_cast<u32*>(r.address), 0u);
}

}  // namespace warphash

#include "lookup_ceiling.cuh"
