// The kernels of lookup_ceiling.cuh on a CPU: a ring of places whose lines are prefetched, as in cpu/ceiling.cuh.
#pragma once
#include "cpu/ceiling.cuh"

namespace warphash {

template <int kBytes, class Key>
inline void look_up(const Region& r, const Batch& b, u64 begin, u64 end) {
  using Word = typename WholeOf<kBytes == 4 ? 4 : 8>::type;
  constexpr int kLines = kBytes < 64 ? 1 : kBytes / 64;
  constexpr u64 kAhead = kLinesAhead / kLines;
  constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
  const bool far = r.places * kBytes > kNearBytes;
  const Key* const keys = reinterpret_cast<const Key*>(b.keys);
  Key* const answers = reinterpret_cast<Key*>(b.out_values);
  const Word* ring[kAhead];
  const auto board = [&](u64 i) {
    const u32 place = place_of(static_cast<u32>(keys[i < end ? i : end - 1] + b.random), static_cast<u32>(r.places));
    const Word* const at = reinterpret_cast<const Word*>(r.address) + u64{place} * kWords;
    prefetch_bytes<kBytes>(at, far);
    ring[(i - begin) % kAhead] = at;
  };
  for (u64 i = begin; i < begin + kAhead; ++i) board(i);
  u64 fold = 0;
  for (u64 i = begin; i < end; ++i) {
    const Word* const at = ring[(i - begin) % kAhead];
    for (int j = 0; j < kWords; ++j) fold ^= at[j];
    answers[i] = static_cast<Key>(keys[i] ^ at[0]);
    board(i + kAhead);
  }
  if (never(fold)) store_relaxed(reinterpret_cast<u32*>(r.address), 0u);
}

}  // namespace warphash

#include "lookup_ceiling.cuh"
