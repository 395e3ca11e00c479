// A key of 16, 32, 64 or 128 bytes, and what keys of any width have in common: marks, a digest, a swap of nothing.
//
// Layout: words of 64 bits, low to high; shorter keys of the caller are extended with zeros.
//
// Marks. Three patterns of a key's word have a meaning in a slot (core/slot.cuh); a wide key's mark stands in its
// lowest word, and all its other words are ones. `distance` is how far a pattern is from all ones: 0 empty, 1
// tombstone, 2 busy.
//
// A wide key is written word by word. A thread that reads a slot without the lock of its bucket may see some words of a
// key and some words of the mark that the key replaces. Where slots only fill, such a mixture equals the key that is
// sought only if that key has a word like a mark's (is_like_mark). Such a hit is therefore confirmed under the lock. A
// miss is reliable: a key that was in the table before the kernel started cannot be missed.
#pragma once
#include "core/bytes.cuh"

namespace warphash {

template <int kBytes>
struct alignas(16) Wide {
  static constexpr int kWords = kBytes / 8;
  u64 words[kWords];

  WARPHASH_FN static constexpr Wide mark(u64 low) {
    Wide w{};
    for (int j = 0; j < kWords; ++j) w.words[j] = j ? ~0ull : low;
    return w;
  }
  WARPHASH_FN bool operator==(const Wide& other) const {
    u64 differs = 0;
#pragma unroll
    for (int j = 0; j < kWords; ++j) differs |= words[j] ^ other.words[j];
    return differs == 0;
  }
};

template <class Word>
WARPHASH_FN constexpr Word mark(u64 distance) {
  if constexpr (sizeof(Word) > 8)
    return Word::mark(~distance);
  else
    return static_cast<Word>(~distance);
}

// Whether a key word is one of the marks up to `distance`.
template <class Word>
WARPHASH_FN bool is_mark(const Word& key, u32 distance) {
  if constexpr (sizeof(Word) > 8) {
    u64 rest = ~0ull;
#pragma unroll
    for (int j = 1; j < Word::kWords; ++j) rest &= key.words[j];
    return rest == ~0ull && ~key.words[0] <= distance;
  } else {
    return static_cast<Word>(~key) <= distance;
  }
}

// Whether a wide key has a word that marks have too.
template <int kBytes>
WARPHASH_FN bool is_like_mark(const Wide<kBytes>& key) {
  bool like = key.words[0] >= ~1ull;
#pragma unroll
  for (int j = 1; j < Wide<kBytes>::kWords; ++j) like |= key.words[j] == ~0ull;
  return like;
}
template <class Word>
WARPHASH_FN bool is_like_mark(const Word&) {
  return false;
}

// The names 0, 1 and 2 under which keys that equal a mark live in the reserved buckets, and back.
template <class Word>
WARPHASH_FN Word name_of_mark(const Word& key) {
  if constexpr (sizeof(Word) > 8) {
    Word name{};
    name.words[0] = key.words[0] - ~2ull;
    return name;
  } else {
    return static_cast<Word>(key - static_cast<Word>(~2ull));
  }
}
template <class Word>
WARPHASH_FN u32 number_of_name(const Word& name) {
  if constexpr (sizeof(Word) > 8)
    return static_cast<u32>(name.words[0]);
  else
    return static_cast<u32>(name);
}
template <class Word>
WARPHASH_FN Word mark_of_name(const Word& name) {
  return mark<Word>(2 - number_of_name(name));
}

// The digest of a key is what is hashed: the key itself, or 64 bits of a wide key. Two keys of one digest have the same
// buckets.
//
// The digest of a wide key is a polynomial modulo p = 2^61 - 1, taken at a random `point`, which is a constant of the
// table. Its coefficients are the bits of the key, 60 at a time, the lowest ones first. Keys that differ have
// coefficients that differ modulo p, so at most 17 of the 2^60 points give both one digest: a polynomial has no more
// zeros than its degree. New constants therefore tell any two keys apart, and nobody can make keys of one digest
// without knowing the point. (A digest that takes no constant would be the same in every table: keys of one digest can
// be worked out, and no table could then hold more of them than their buckets have slots.)
//
// x is kept below 2^64, not below p: it is one of several numbers that are congruent. As point < 2^60, x * point has at
// most 124 bits, and the three summands are below 2^61, 2^63 and 2^60.
WARPHASH_FN u32 digest(u64, u32 key) { return key; }
WARPHASH_FN u64 digest(u64, u64 key) { return key; }
template <int kBytes>
WARPHASH_FN u64 digest(u64 constant, const Wide<kBytes>& key) {
  constexpr u64 p = (1ull << 61) - 1, kSixtyBits = (1ull << 60) - 1;
  constexpr int kTerms = (8 * kBytes + 59) / 60;
  const u64 point = constant & kSixtyBits;
  u64 x = 0;
#pragma unroll
  for (int j = 0; j < kTerms; ++j) {
    const int word = 60 * j / 64, shift = 60 * j % 64;
    u64 bits = key.words[word] >> shift;
    if (shift > 4 && word + 1 < Wide<kBytes>::kWords) bits |= key.words[word + 1] << (64 - shift);
    const u64 low = x * point, high = multiply_high(x, point);
    x = (low & p) + (high << 3 | low >> 61) + (bits & kSixtyBits);
  }
  return x;
}

template <int kBytes>
WARPHASH_FN Wide<kBytes> shuffle(const Wide<kBytes>& x, u32 source, int width) {
  Wide<kBytes> y;
#pragma unroll
  for (int j = 0; j < Wide<kBytes>::kWords; ++j) y.words[j] = shuffle(x.words[j], source, width);
  return y;
}

// A key by its 16 bytes, each of which `load` reads.
template <int kBytes, class Load>
WARPHASH_FN Wide<kBytes> load_halves(const Wide<kBytes>* p, const Load& load) {
  Wide<kBytes> x;
#pragma unroll
  for (int j = 0; j < Wide<kBytes>::kWords; j += 2) {
    const Halves read = load(reinterpret_cast<const Halves*>(p->words + j));
    x.words[j] = read.low, x.words[j + 1] = read.high;
  }
  return x;
}
template <int kBytes>
WARPHASH_FN Wide<kBytes> load_once(const Wide<kBytes>* p) {
  return load_halves(p, [](const Halves* half) { return load_once(half); });
}
// To an array of the caller, which may be aligned less than keys are.
template <int kBytes>
WARPHASH_FN void store_once(Wide<kBytes>* p, const Wide<kBytes>& x) {
#pragma unroll
  for (int j = 0; j < Wide<kBytes>::kWords; ++j) store_once(p->words + j, x.words[j]);
}

// Word by word.
template <int kBytes>
WARPHASH_FN Wide<kBytes> load_relaxed(const Wide<kBytes>* p) {
  return load_halves(p, [](const Halves* half) { return load_relaxed(half); });
}
template <int kBytes>
WARPHASH_FN void store_relaxed(Wide<kBytes>* p, const Wide<kBytes>& x) {
#pragma unroll
  for (int j = 0; j < Wide<kBytes>::kWords; j += 2)
    store_relaxed(reinterpret_cast<Halves*>(p->words + j), Halves{x.words[j], x.words[j + 1]});
}

}  // namespace warphash
