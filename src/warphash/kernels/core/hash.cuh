// From a key to the buckets it may live in.
//
// kMixer (the default): a bijective mixer of two multiplications over key ^ constant_i, then a multiply-high to the
// number of buckets. No division; every input bit reaches every output bit.
// kUniversal: the seed's family, ((a k + b) mod p) mod buckets with random a, b (Better GPU Hash Tables, section VII;
// S4-11). p = 4294967291 for 4-byte keys as there; 8-byte keys take p = 2^61 - 1, the first Mersenne prime that leaves
// their products exact in 128 bits.
#pragma once
#include "core/slot.cuh"

namespace warphash {

WARPHASH_FN u32 mix(u32 x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

WARPHASH_FN u64 mix(u64 x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  return x ^ (x >> 32);
}

WARPHASH_FN u32 scale(u32 hash, u64 buckets) { return multiply_high(hash, static_cast<u32>(buckets)); }
WARPHASH_FN u32 scale(u64 hash, u64 buckets) { return static_cast<u32>(multiply_high(hash, buckets)); }

// Of the hash values that `scale` brings to one bucket, in order: which of 2^11 equal parts a hash lies in.
WARPHASH_FN u32 part_of_2048(u32 hash, u64 buckets) { return (hash * static_cast<u32>(buckets)) >> 21; }
WARPHASH_FN u32 part_of_2048(u64 hash, u64 buckets) { return static_cast<u32>((hash * buckets) >> 53); }

WARPHASH_FN u64 universal(u32 key, u64 a, u64 b) { return (a * key + b) % 4294967291ull; }

WARPHASH_FN u64 universal(u64 key, u64 a, u64 b) {
  constexpr u64 p = (1ull << 61) - 1;
  const u64 k = key % p;
  const u64 low = a * k, high = multiply_high(a, k);  // a, k < 2^61: high < 2^58
  u64 r = (low & p) + ((high << 3) | (low >> 61));
  r = (r & p) + (r >> 61) + b;
  return r % p;
}

// Bucket of a hashed key under the function with constants a and b.
template <class Word>
WARPHASH_FN u32 bucket_with(const Table& t, Word key, u64 a, u64 b) {
  if (t.family == kUniversal) return static_cast<u32>(universal(key, a, b) % t.buckets);
  return scale(mix(static_cast<Word>(key ^ static_cast<Word>(a))), t.buckets);
}

// Bucket of a key under function i. Keys of the annex have one bucket under every function.
template <class S>
WARPHASH_FN u32 bucket_of(const Table& t, const Named<S>& named, u32 i) {
  if (named.reserved) return S::annex_bucket(t, named.key);
  u64 a = t.multiplier[0], b = t.addend[0];
#pragma unroll
  for (u32 j = 1; j < kMaxHashes; ++j) {  // selects: an indexed parameter would go through local memory
    a = i == j ? t.multiplier[j] : a;
    b = i == j ? t.addend[j] : b;
  }
  return bucket_with(t, named.key, a, b);
}

// Where a hashed key goes that is thrown out of bucket `from`: the function after the lowest one that has it there.
template <class S>
WARPHASH_FN u32 bucket_after(const Table& t, typename S::Word key, u32 from) {
  const u32 first = bucket_with(t, key, t.multiplier[0], t.addend[0]);
  u32 next = first, after = first;  // the last function's successor is the first
#pragma unroll
  for (u32 j = kMaxHashes; j-- > 0;) {  // unrolled: constants then come from fixed places, without selects
    if (j >= t.hashes) continue;
    const u32 bucket = j == 0 ? first : bucket_with(t, key, t.multiplier[j], t.addend[j]);
    if (bucket == from) next = after;
    after = bucket;
  }
  return next;
}

// Marsaglia's xorshift, for the victims of an eviction (section V-B of the seed).
WARPHASH_FN u32 next_random(u32& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

// Not mixed further: the xorshift brings the upper bits down, and few elements ever draw.
WARPHASH_FN u32 random_start(u64 seed, u32 element) { return (static_cast<u32>(seed) ^ (element * 0x9e3779b9u)) | 1u; }

}  // namespace warphash
