// Where a key may be: its home bucket, its second bucket, and the bit that it has in a filter.
//
// A table of B buckets is R ranges of K buckets in a row, B = R * K and K <= 512. As the home bucket is the high word
// of h * B, its range is the high word of h * R.
//
// The second bucket lies in the range of the home, 1 to K - 1 buckets behind it in a circle of the K buckets. The
// distance is a function of the remainder, so a guest tells its home. All that an update does to a key therefore
// happens in one range.
#pragma once
#include "quotient/bucket.cuh"
#include "quotient/permutation.cuh"

namespace warphash {

template <class Word>
struct Home {
  u32 bucket;
  Word remainder;
};

// hash * n in two parts. `n` has 32 bits: two products of 32 bits do, where that of two words of 64 bits takes a GPU four.
template <class Word>
struct Product {
  u32 high;
  Word low;
};
WARPHASH_FN Product<u32> product(u32 hash, u32 n) {
  const u64 x = static_cast<u64>(hash) * n;
  return {static_cast<u32>(x >> 32), static_cast<u32>(x)};
}
WARPHASH_FN Product<u64> product(u64 hash, u32 n) {
  const u64 low = (hash & 0xffffffffu) * n, high = (hash >> 32) * n + (low >> 32);
  return {static_cast<u32>(high >> 32), high << 32 | (low & 0xffffffffu)};
}

template <class Word>
WARPHASH_FN u32 range_of_hash(const QuotientTable& t, Word hash) {
  return product(hash, static_cast<u32>(t.ranges)).high;
}

template <class S>
struct Places {
  using Word = typename S::Word;
  static constexpr u32 kDroppedBits = S::kWordBits - S::kRemainderBits;  // of the low half of h * B

  WARPHASH_FN static Home<Word> home_of(const QuotientTable& t, Word hash) {
    const Product<Word> at = product(hash, static_cast<u32>(t.buckets));
    if constexpr (kDroppedBits == 0) return {at.high, hash};
    return {at.high, static_cast<Word>(at.low >> kDroppedBits)};
  }
  WARPHASH_FN static u32 range_of(const QuotientTable& t, Word hash) { return range_of_hash(t, hash); }
  // Undoes home_of.
  WARPHASH_FN static Word hash_of(const QuotientTable& t, const Home<Word>& home) {
    if constexpr (kDroppedBits == 0) return home.remainder;
    const u64 low = static_cast<u64>(home.remainder) << kDroppedBits;
    if constexpr (sizeof(Word) == 4) {
      return static_cast<Word>(divided_up(static_cast<u64>(home.bucket) << 32 | low, t.buckets));
    } else {  // digits of 32 bits, as by hand: the first is rounded down
      const u64 first = static_cast<u64>(home.bucket) << 32 | low >> 32, digit = divided_up(first + 1, t.buckets) - 1;
      const u64 rest = first - digit * t.buckets;
      return static_cast<Word>((digit << 32) + divided_up(rest << 32 | (low & 0xffffffffu), t.buckets));
    }
  }
  // x / by, rounded up, for a result of 32 bits: a division of 64 bits takes a GPU a hundred instructions. A loop
  // computes the reciprocal once. The product of doubles is off by less than 2^-19, so its whole part may be the next
  // integer, or one too few.
  WARPHASH_FN static u64 divided_up(u64 x, u64 by) {
    const u64 whole = static_cast<u64>(static_cast<double>(x) * (1.0 / static_cast<double>(by)));
    const i64 rest = static_cast<i64>(x - whole * by);
    return whole + (rest > 0) + (rest > static_cast<i64>(by));
  }

  WARPHASH_FN static u32 mixed(Word remainder) {
    if constexpr (sizeof(Word) == 8) return mix(static_cast<u32>(remainder) ^ static_cast<u32>(remainder >> 32));
    return mix(static_cast<u32>(remainder));
  }
  WARPHASH_FN static u32 distance(const QuotientTable& t, Word remainder) {
    return 1 + multiply_high(mixed(remainder), static_cast<u32>(t.range_buckets) - 1);
  }
  // The first bucket of the range of a bucket.
  WARPHASH_FN static u32 first_of_range(const QuotientTable& t, u32 bucket) {
    return bucket - bucket % static_cast<u32>(t.range_buckets);
  }
  // The second bucket of a key, and the home of a guest, in the range that begins at `first`.
  WARPHASH_FN static u32 second_of(const QuotientTable& t, u32 first, const Home<Word>& home) {
    const u32 size = static_cast<u32>(t.range_buckets), to = home.bucket - first + distance(t, home.remainder);
    return first + (to < size ? to : to - size);
  }
  WARPHASH_FN static u32 home_of_guest(const QuotientTable& t, u32 first, u32 bucket, Word remainder) {
    const u32 size = static_cast<u32>(t.range_buckets), from = bucket - first + size - distance(t, remainder);
    return first + (from < size ? from : from - size);
  }
  // The home and the remainder of the key in a slot.
  WARPHASH_FN static Home<Word> home_in(const QuotientTable& t, u32 first, const u32* w, u32 bucket, u32 slot) {
    const Word remainder = S::remainder(w, slot);
    return {S::is_guest(w, slot) ? home_of_guest(t, first, bucket, remainder) : bucket, remainder};
  }
  // Of the first word of a line.
  WARPHASH_FN static u32 filter_bit(Word remainder) { return 1u << (mixed(remainder) % S::kFilterBits); }
};

}  // namespace warphash
