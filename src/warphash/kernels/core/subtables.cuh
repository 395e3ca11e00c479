// The subtables of a table, and a key's way through them.
//
// Layout of a subtable of n buckets, one piece of memory (bytes):
//   [ keys     n lines of 128: 128 / w slots of w bytes, w = 4, 8, 16, 32, 64 or 128 for the width of a key ]
//   [ values   n * (128 / w) of v bytes: 0, 4, 8, or Table::value_bytes, a multiple of 4 ]
//   [ locks    n words of 32 bits (core/bucket_lock.cuh) ]
// A key of 128 bytes fills a bucket. The annex (core/slot.cuh) is one more, small subtable behind the others.
// Source: Dynamic Hash Tables on GPUs (the seed), section IV-A (S0-07, S0-08).
//
// Numbers. A bucket is named by 32 bits: [ subtable 4 | bucket of it 28 ].
//
// Hashing. Subtable i has n_i buckets and takes a key to scale(hash_i, n_i) of them. After n_i has doubled, the bucket is
// twice what it was, or that and one: the two halves of a bucket lie side by side, and no two buckets share one (S0-22; the
// seed takes the remainder instead, so that its halves are n_i apart: S0-13).
//
// First subtable. The seed draws it at random with probability ~ n_i / C(m_i, 2), m_i the keys of subtable i, which makes
// conflicts fewest (Theorem 1, S0-12). Here the key itself draws: 32 bits of its hash lie in the share of one subtable. A find
// can so begin where the key most likely is; an evicted key goes from subtable i to i + 1 (S0-10), and a find goes the same way.
// Shares move as subtables fill and grow. A key whose draw no border of shares ever passed (least_shares, most_shares) has had
// one first subtable since the table was empty; if its bucket there was never full, it is nowhere else, and a find ends.
// "Never full" is seen from the last slot (core/slot.cuh), and resizing preserves it (resize.cuh).
#pragma once
#include "core/bucket.cuh"
#include "core/bucket_lock.cuh"
#include "core/bytes.cuh"
#include "core/hash.cuh"
#include "core/row_copy.cuh"
#include "core/value.cuh"
#include "core/wide.cuh"

namespace warphash {

constexpr int kRow = -1;  // width of a value: what Table::value_bytes says
constexpr u32 kSubtableShift = 28;
constexpr u32 kAnnex = kMostSubtables;

WARPHASH_FN u32 subtable_of(u32 bucket) { return bucket >> kSubtableShift; }
WARPHASH_FN u32 bucket_named(u32 subtable, u32 number) { return subtable << kSubtableShift | number; }
WARPHASH_FN u32 number_of(u32 bucket) { return bucket & ((1u << kSubtableShift) - 1); }
WARPHASH_FN u32 subtable_after(const Table& t, u32 subtable) { return subtable + 1 < t.hashes ? subtable + 1 : 0; }

// Element `subtable` of an array of the table: selects, as an indexed parameter would go through local memory.
WARPHASH_FN u64 of_subtable(const Table& t, const u64 (&array)[kMostSubtables + 1], u32 subtable) {
  u64 x = array[kAnnex];
#pragma unroll
  for (u32 j = 0; j < kMostSubtables; ++j)
    if (j < t.hashes) x = subtable == j ? array[j] : x;
  return x;
}

// What the slots of subtables are; for `Seen` and the schedules, a bucket of keys alone.
template <class Word_, int kValueBytes_>
struct Lines {
  using Word = Word_;
  using Item = Slot<Word, false>;
  static constexpr int kValueBytes = kValueBytes_;
  static constexpr bool kHasValue = false, kLinked = false;
  static constexpr bool kWide = sizeof(Word) > 8;
  static constexpr int kBucketBytes = 128, kLookBytes = kBucketBytes;
  static constexpr int kSlots = kBucketBytes / static_cast<int>(sizeof(Word));
  static constexpr int kDataSlots = kSlots;
  static constexpr u32 kAllSlots = kSlots == 32 ? ~0u : (1u << kSlots) - 1;
  static constexpr Word kEmpty = mark<Word>(0);
  static constexpr Word kTombstone = mark<Word>(1);
  static constexpr Word kVacantFrom = kTombstone;

  WARPHASH_FN static Item empty() { return {kEmpty}; }
  WARPHASH_FN static bool is_vacant(const Item& s) { return is_mark(s.key, 1); }
  WARPHASH_FN static bool is_empty(const Item& s) { return is_mark(s.key, 0); }
  WARPHASH_FN static bool holds_key(const Item& s) { return !is_mark(s.key, 1); }
  WARPHASH_FN static bool is_reserved(const Word& key) { return is_mark(key, 2); }
  WARPHASH_FN static Word annex_name(const Word& key) { return name_of_mark(key); }
  WARPHASH_FN static u32 annex_bucket(const Word& name) {
    return bucket_named(kAnnex, kSlots >= 3 ? 0 : number_of_name(name));
  }
  WARPHASH_FN static u32 next_in(const Item&) { return kNowhere; }

  WARPHASH_FN static u64 value_bytes(const Table& t) {
    return kValueBytes == kRow ? t.value_bytes : static_cast<u64>(kValueBytes);
  }
  WARPHASH_FN static Item* at(const Table& t, u32 bucket) {
    Item* const lines = reinterpret_cast<Item*>(of_subtable(t, t.bases, subtable_of(bucket)));
    return in_global(lines + static_cast<u64>(number_of(bucket)) * kSlots);
  }
  WARPHASH_FN static u8* value_at(const Table& t, u32 bucket, u32 slot) {
    const u32 subtable = subtable_of(bucket);
    const u64 values = of_subtable(t, t.bases, subtable) + of_subtable(t, t.sizes, subtable) * kBucketBytes;
    const u64 number = static_cast<u64>(number_of(bucket)) * kSlots + slot;
    return in_global(reinterpret_cast<u8*>(values) + number * value_bytes(t));
  }
  WARPHASH_FN static u32* lock_at(const Table& t, u32 bucket) {
    const u32 subtable = subtable_of(bucket);
    const u64 bytes = of_subtable(t, t.sizes, subtable) * (kBucketBytes + kSlots * value_bytes(t));
    return in_global(reinterpret_cast<u32*>(of_subtable(t, t.bases, subtable) + bytes) + number_of(bucket));
  }
};

// A value under way: the word itself or, of wider ones, where it lies.
template <int kBytes>
struct Carried {
  using Word = u64;  // address
  WARPHASH_FN static Word of(const Batch& b, u64 element, u64 bytes) { return b.values + element * bytes; }
  WARPHASH_FN static void put(u8* at, Word value, u64 bytes) {
    copy_row(at, reinterpret_cast<const u8*>(value), bytes);
  }
  // Takes the value at `at` for `value`; the one taken lies at `spare`, where `value` may lie already.
  WARPHASH_FN static Word swap(u8* at, Word value, u8* spare, u64 bytes) {
    const u8* from = reinterpret_cast<const u8*>(value);
    for (u64 j = 0; j < bytes; j += 4) {
      u32* word = reinterpret_cast<u32*>(at + j);
      const u32 old = *word;
      *word = *reinterpret_cast<const u32*>(from + j);
      *reinterpret_cast<u32*>(spare + j) = old;
    }
    return reinterpret_cast<u64>(spare);
  }
};
template <class W>
struct CarriedWord {
  using Word = W;
  WARPHASH_FN static Word of(const Batch& b, u64 element, u64) {
    return load_once(reinterpret_cast<const Word*>(b.values) + element);
  }
  WARPHASH_FN static void put(u8* at, Word value, u64) { store_relaxed(reinterpret_cast<Word*>(at), value); }
  WARPHASH_FN static Word swap(u8* at, Word value, u8*, u64) {
    const Word old = load_relaxed(reinterpret_cast<const Word*>(at));
    store_relaxed(reinterpret_cast<Word*>(at), value);
    return old;
  }
};
template <>
struct Carried<4> : CarriedWord<u32> {};
template <>
struct Carried<8> : CarriedWord<u64> {};
template <>
struct Carried<0> {
  using Word = u32;
  WARPHASH_FN static Word of(const Batch&, u64, u64) { return 0; }
  WARPHASH_FN static void put(u8*, Word, u64) {}
  WARPHASH_FN static Word swap(u8*, Word, u8*, u64) { return 0; }
};

WARPHASH_FN u32 spread(const Table& t, u32 digest, u64 salt, u64 addend, u64 buckets) {
  if (t.family == kUniversal) return scale(static_cast<u32>(universal(digest, salt, addend)), buckets);
  return scale(mix(digest ^ static_cast<u32>(salt)), buckets);
}
WARPHASH_FN u32 spread(const Table& t, u64 digest, u64 salt, u64 addend, u64 buckets) {
  if (t.family == kUniversal) return scale(universal(digest, salt, addend) << 3, buckets);  // a product below 2^61
  return scale(mix(digest ^ salt), buckets);
}

// Bucket of a digest in a subtable.
template <class Digest>
WARPHASH_FN u32 bucket_in(const Table& t, u32 subtable, Digest digest) {
  const u64 salt = of_subtable(t, t.salts, subtable);
  u64 addend = t.addend[0];
#pragma unroll
  for (u32 j = 1; j < kMaxHashes; ++j) addend = subtable % kMaxHashes == j ? t.addend[j] : addend;
  return bucket_named(subtable, spread(t, digest, salt, addend, of_subtable(t, t.sizes, subtable)));
}

// The subtable that a key goes to first, and whether it has always been that one.
struct First {
  u32 subtable;
  bool settled;

  template <class Digest>
  WARPHASH_FN static First of(const Table& t, Digest hashed) {
    const u32 draw = static_cast<u32>(mix(static_cast<u64>(hashed) ^ t.salts[kAnnex]) >> 32);
    First first = {0, true};
#pragma unroll
    for (u32 j = 0; j + 1 < kMostSubtables; ++j) {
      if (j + 1 >= t.hashes) continue;
      first.subtable += draw >= t.shares[j];
      first.settled &= draw < t.least_shares[j] || draw >= t.most_shares[j];
    }
    return first;
  }
};

// The number of a bucket among those of all subtables, one behind the other.
WARPHASH_FN u64 number_of_all(const Table& t, u32 bucket) {
  u64 before = 0;
#pragma unroll
  for (u32 j = 0; j < kMostSubtables; ++j) before += j < subtable_of(bucket) ? t.sizes[j] : 0;
  return before + number_of(bucket);
}

// The walk of a lookup.
template <class S>
struct SubtableProbe {
  using Word = typename S::Word;
  Named<S> named;
  u32 looked;  // subtables before this one
  u32 bucket;
  bool settled;  // the first subtable has always been this one

  WARPHASH_FN static SubtableProbe start(const Table& t, const Word& key) {
    SubtableProbe p{Named<S>::of(key), 0, 0, true};
    if (p.named.reserved) {
      p.bucket = S::annex_bucket(p.named.key);
      return p;
    }
    const auto hashed = digest(p.named.key);
    const First first = First::of(t, hashed);
    p.settled = first.settled;
    p.bucket = bucket_in(t, first.subtable, hashed);
    return p;
  }
  // The key is not in the bucket that was seen: moves on; false if it is nowhere.
  WARPHASH_FN bool advance(const Table& t, const Seen<S>& seen) {
    if (named.reserved || (looked == 0 && settled && seen.open) || ++looked == t.hashes) return false;
    bucket = bucket_in(t, subtable_after(t, subtable_of(bucket)), digest(named.key));
    return true;
  }
};

}  // namespace warphash
