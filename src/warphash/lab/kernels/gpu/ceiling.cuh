// The ceiling kernels of places.cuh on a GPU, and their entry points.
#pragma once
#include "places.cuh"

namespace warphash {

// A lane has kUnrolled reads in flight at once, and makes kUnrolled * kRounds reads in all, so that starting a block is
// cheap compared to its work. The product is _GATHERS_PER_GROUP in lab/bench/ceilings.py, which sizes the launch.
constexpr u32 kUnrolled = 4, kRounds = 4;

template <int kBytes>
struct VectorOf {
  using type = Quad;
};
template <>
struct VectorOf<8> {
  using type = u64;
};
template <>
struct VectorOf<4> {
  using type = u32;
};

template <bool kFrozen>
WARPHASH_FN Quad load_vector(const Quad* p) {
  return load_16_bytes<kFrozen>(p);  // not load_slot, which waits for the slot's lock on devices without 128-bit swaps
}
template <bool kFrozen, class Word>
WARPHASH_FN Word load_vector(const Word* p) {
  return load_slot<kFrozen>(p);
}
WARPHASH_FN u64 low_word(const Quad& q) { return static_cast<u64>(q.w[1]) << 32 | q.w[0]; }
WARPHASH_FN u64 low_word(u64 x) { return x; }
WARPHASH_FN u32 low_word(u32 x) { return x; }
WARPHASH_FN u64 folded(const Quad& q) { return low_word(q) ^ (static_cast<u64>(q.w[3]) << 32 | q.w[2]); }
WARPHASH_FN u64 folded(u64 x) { return x; }

template <int kBytes, Access kAccess>
WARPHASH_FN void walk(const Region& r, const Launch& b) {
  using Vector = typename VectorOf<(kBytes < 16 ? kBytes : 16)>::type;
  using Word = decltype(low_word(Vector()));
  constexpr u32 kLanes = kBytes / sizeof(Vector);
  const u64 first = thread_in_grid() / kLanes * (kUnrolled * kRounds);
  const u32 rank = lane() % kLanes;
  if (first >= b.n) return;
  Vector* const base = reinterpret_cast<Vector*>(r.address) + rank;
  const u32 places = static_cast<u32>(r.places);
  u32 number = static_cast<u32>(first + b.random);
  u64 fold = 0;
#pragma unroll 1
  for (u32 round = 0; round < kRounds; ++round) {
    Vector* at[kUnrolled];
    Vector read[kUnrolled];
#pragma unroll
    for (u32 j = 0; j < kUnrolled; ++j) at[j] = base + static_cast<u64>(place_of(number + j, places)) * kLanes;
#pragma unroll
    for (u32 j = 0; j < kUnrolled; ++j) read[j] = load_vector<kAccess == Access::kRead>(at[j]);
#pragma unroll
    for (u32 j = 0; j < kUnrolled; ++j) {
      fold ^= folded(read[j]);
      if (rank == j % kLanes) write<kAccess>(reinterpret_cast<Word*>(at[j]), low_word(read[j]));
    }
    number += kUnrolled;
  }
  if (never(fold)) store_once(reinterpret_cast<u32*>(r.address), 0u);
}

}  // namespace warphash

#include "gathers.cuh"
