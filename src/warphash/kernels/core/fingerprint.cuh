// Fingerprints of 64 bits of rows of any width, under a salt.
//
// No two different rows have one fingerprint under every salt. The salt is part of each word that is multiplied, by a constant:
// no row has a factor of zero under every salt, and under a salt that makes one zero, the words behind it count as
// before. Two rows of one word differ under the salt that cancels one of them, since only a factor of zero folds to
// zero. Of longer rows there is no proof. A model with words of 8 bits was tried out: any two of its 2^16 rows of two
// words are told apart by four fifths of the salts.
#pragma once
#include "core/bytes.cuh"
#include "core/hash.cuh"

namespace warphash {

WARPHASH_FN u64 read_word(const u8* p, u64 bytes) {
  u64 x = 0;
  for (u64 j = 0; j < bytes; ++j) x |= static_cast<u64>(p[j]) << (8 * j);
  return x;
}

// The fingerprint of `bytes` bytes under a salt.
WARPHASH_FN u64 fingerprint_of(const u8* row, u64 bytes, u64 salt) {
  const bool aligned = (reinterpret_cast<u64>(row) & 7) == 0;
  u64 x = salt ^ bytes;
  for (u64 j = 0; j < bytes; j += 8) {
    const u64 left = bytes - j;
    const u64 word =
        left >= 8 && aligned ? *reinterpret_cast<const u64*>(row + j) : read_word(row + j, left < 8 ? left : 8);
    const u64 m = (x ^ word) * 0x9fb21c651e98df25ull;
    x = mix(m ^ multiply_high(x ^ word, 0x9fb21c651e98df25ull)) + salt;
  }
  return x;
}

}  // namespace warphash
