// From a key to the buckets it may live in.
//
// kMixer (the default): a bijective mixer of two multiplications over key ^ constant_i, then a multiply-high to the
// number of buckets. No division; every input bit reaches every output bit.
//
// kUniversal: the family of the papers, ((a k + b) mod p) mod buckets with random a, b (Better GPU Hash Tables, section
// VII). p = 4294967291 for 4-byte keys as there. 8-byte keys take p = 2^61 - 1, the first Mersenne prime that leaves
// their products exact in 128 bits. They are longer than p, so a k + b alone would lose k div p: the nine keys q p
// would have one hash value under all constants. The family is therefore that of vectors of two numbers:
//
//   k = q p + r, r < p:   h(k) = (a r + b (q + 1)) mod p
//
// For q = 0 this is a k + b. Keys of one r and different q differ by a multiple of b, so they share no hash value
// unless b = 0. Of any other two keys, b being given, a single a makes the hash values equal.
//
// Which keys can be refused under every set of constants? None. A table that grows draws new constants at each size.
//   1. One function tells any two keys apart. The mixer gives different keys different hash values under every
//      constant; the universal family gives them equal ones with probability 1/p. So two keys share one of m buckets
//      with probability about 1/m (mixer) or at most 2/m (universal), and never under all constants. For the mixer this
//      was measured. Of 4-byte keys, a table of two buckets parts each difference within 34 random constants. Of 8-byte
//      keys, a quarter of the constants and more part each difference of up to three bits.
//   2. So n keys have, on average, at most n^2 / m pairs that share one of m buckets. Once m exceeds n^2, some
//      constants give each key a bucket of its own under the first function alone, and every design takes such keys. A
//      table grows to 2^18 slots at least before it gives up (storage/buckets/store.py): enough for some hundred keys
//      of whatever pattern.
//   3. More keys have 256 slots each by then, and a key may live in many slots: 32 with linear probing, 16 with MegaKV
//      and the power of two, 24 with iceberg, 16 with bucketed cuckoo, 2 with cuckoo, as many as there are subtables
//      with these; or more. Keys are refused only if more of them share all these slots than there are, under several
//      sets of constants in a row. That does not happen by chance: such keys can be found only with the seed.
//   4. Of 4-byte keys, k and k + p, k < 5, have one hash value under all constants. A key is congruent to at most one
//      other, and every design has two slots for both: cuckoo too, if two of its functions differ.
// The digest of a wide key is hashed in place of the key. The digest depends on a constant of the table, too
// (core/wide.cuh).
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

// The hash values that `scale` brings to one bucket fall into 2^11 equal parts, in order. The number of the part of a
// hash.
WARPHASH_FN u32 part_of_2048(u32 hash, u64 buckets) { return (hash * static_cast<u32>(buckets)) >> 21; }
WARPHASH_FN u32 part_of_2048(u64 hash, u64 buckets) { return static_cast<u32>((hash * buckets) >> 53); }

WARPHASH_FN u64 universal(u32 key, u64 a, u64 b) { return (a * key + b) % 4294967291ull; }

WARPHASH_FN u64 universal(u64 key, u64 a, u64 b) {
  constexpr u64 p = (1ull << 61) - 1;
  u64 q = key >> 61, r = (key & p) + q;  // 2^61 is p + 1
  if (r >= p) ++q, r -= p;
  const u64 low = a * r, high = multiply_high(a, r);  // a, r < 2^61, so high < 2^58
  const u64 second = b * q;                           // q <= 8, b < p: no overflow
  const u64 first = (low & p) + (high << 3 | low >> 61);
  return (first + (second & p) + (second >> 61) + b) % p;  // a sum below 2^63
}

// Bucket of a hashed key under the function with constants a and b.
template <class Word>
WARPHASH_FN u32 bucket_with(const Table& t, Word key, u64 a, u64 b) {
  if (t.family == kUniversal) return static_cast<u32>(universal(key, a, b) % t.buckets);
  return scale(mix(static_cast<Word>(key ^ static_cast<Word>(a))), t.buckets);
}

// Bucket of a key under function i. A reserved key has one bucket under every function.
template <class S>
WARPHASH_FN u32 bucket_of(const Table& t, const Named<S>& named, u32 i) {
  if (named.reserved) return S::reserved_bucket(t, named.key);
  u64 a = t.multiplier[0], b = t.addend[0];
#pragma unroll
  for (u32 j = 1; j < kMaxHashes; ++j) {  // selects: an indexed parameter would go through local memory
    a = i == j ? t.multiplier[j] : a;
    b = i == j ? t.addend[j] : b;
  }
  return bucket_with(t, named.key, a, b);
}

// The bucket that a hashed key goes to when it is evicted from bucket `from`: that of the function after the lowest one
// that has the key there.
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

// Marsaglia's xorshift, for the victims of an eviction (Better GPU Hash Tables, section V-B).
WARPHASH_FN u32 next_random(u32& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

// Not mixed further: the xorshift brings the upper bits down, and few elements ever draw.
WARPHASH_FN u32 random_start(u64 seed, u32 element) { return (static_cast<u32>(seed) ^ (element * 0x9e3779b9u)) | 1u; }

}  // namespace warphash
