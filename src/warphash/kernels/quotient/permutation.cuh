// Hash functions that can be undone: a bucket stores part of a hash value, and a scan needs the key.
//
//   kMixer       mix(key ^ multiplier) of core/hash.cuh. Both halves of each step, x ^= x >> s and x *= odd, are
//                bijections of a word.
//   kUniversal   multiplier * key + addend modulo 2^w, with an odd multiplier. The high bits of this product, which
//                choose the bucket, are a universal family (Dietzfelbinger, Hagerup, Katajainen and Penttonen, A
//                Reliable Randomized Algorithm for the Closest-Pair Problem, 1997). The family ((a k + b) mod p) mod
//                buckets of core/hash.cuh gives two keys one value, so it cannot be undone.
#pragma once
#include "core/hash.cuh"
#include "quotient/abi.cuh"

namespace warphash {

// Undoes mix (core/hash.cuh).
WARPHASH_FN u32 unmix(u32 x) {
  x ^= x >> 16;
  x *= 0x43021123u;
  x ^= x >> 15 ^ x >> 30;
  x *= 0x1d69e2a5u;
  return x ^ x >> 16;
}

WARPHASH_FN u64 unmix(u64 x) {
  x ^= x >> 32;
  x *= 0xcfee444d8b59a89bull;
  x ^= x >> 32;
  x *= 0xcfee444d8b59a89bull;
  return x ^ x >> 32;
}

template <class Word>
WARPHASH_FN Word permuted(const QuotientTable& t, Word key) {
  const Word a = static_cast<Word>(t.multiplier[0]);
  if (t.family == kUniversal) return static_cast<Word>((a | 1) * key + static_cast<Word>(t.addend[0]));
  return mix(static_cast<Word>(key ^ a));
}

template <class Word>
WARPHASH_FN Word unpermuted(const QuotientTable& t, Word hash) {
  if (t.family == kUniversal)
    return static_cast<Word>(static_cast<Word>(hash - static_cast<Word>(t.addend[0])) * static_cast<Word>(t.inverse));
  return static_cast<Word>(unmix(hash) ^ static_cast<Word>(t.multiplier[0]));
}

}  // namespace warphash
