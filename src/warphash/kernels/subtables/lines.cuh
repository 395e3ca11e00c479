// The subtables of a table, and the walk of a key through them.
// Source: Dynamic Hash Tables on GPUs, section 4.1.
//
// Layout of a subtable of n buckets, one piece of memory (bytes):
//   [ keys     n lines of 128: 128 / w slots of w bytes, w = 4, 8, 16, 32, 64 or 128 for the width of a key ]
//   [ values   n * (128 / w) of v bytes: 0, 4, 8, or SubtableTable::value_bytes, a multiple of 4 ]
//   [ locks    n words of 32 bits (subtables/bucket_lock.cuh) ]
//   [ filter   n pairs of words of 32 bits: the overflow filter ]
// A key of 128 bytes fills a bucket. The reserved buckets (core/slot.cuh) are one more, small subtable behind the
// others.
//
// Numbers. A bucket is named by 32 bits: [ subtable 4 | bucket of it 28 ].
//
// Hashing. Subtable i has n_i buckets. A key has one bucket there: scale(hash_i, n_i). After n_i has doubled, the keys
// of bucket c are in buckets 2c and 2c + 1: the two halves of a bucket are neighbours, and no two buckets share a half.
// (The paper takes the remainder instead, so its halves are n_i apart: section 5.3.)
//
// Routing. The paper draws the first subtable of a key at random, subtable i with a probability ~ n_i / C(m_i, 2),
// where m_i is the number of its keys (Theorem 1). Here the key itself draws: 32 bits of its hash lie in the stretch of
// one subtable (route_ends). So a find begins where the key most likely is. An evicted key goes from subtable i to
// i + 1, and a find goes the same way. By default the stretches are equal and never move; those of the paper move with
// each resize (`subtable_shares` in storage/policies.py says why).
//
// Which subtables a find leaves out. A key may be outside its first subtable: the bucket there was full, or a resize
// has moved the stretches since. For each subtable, least_begins and most_ends tell how far its stretch has reached
// since its overflow filter was written anew. A find reads the bucket of a subtable if the draw lies in that range.
// Otherwise the find reads the bucket only if the overflow filter says that the key may be there.
//
// The overflow filter works like a Bloom filter. It has two words for each bucket. The hash values that lead to a
// bucket fall into 2^11 parts, in order. The number of a part names one of the two words, and two bits of that word. A
// key that is put into a bucket outside its first subtable sets its bits there. An erase does not clear bits, which
// costs some finds one bucket more. A resize reads all keys of a subtable and writes its filter anew, by the routing of
// that time (subtables/resize.cuh). So a find of an absent key reads 1.25 lines instead of 3 in a table that has often
// grown.
//
// Why a filter at the bucket that holds the key. All filters together have a sixteenth of the bytes of the keys. A GPU
// reads them from its cache, and is told to keep them there. (A mark at the bucket that turned the key away, as in
// Boost's flat tables, is one word to read instead of two. But to write it anew takes the keys of the other subtables.
// Never written anew, it led to 2.7 lines: docs/performance/subtables.md.) A CPU reads no filter: it predicts and
// prefetches all lines of a key, and waits for them no longer than for a word.
//
// While no subtable was resized (early_exit), a first bucket that was never full (core/slot.cuh) has sent no key away.
#pragma once
#include "core/bucket.cuh"
#include "core/bytes.cuh"
#include "core/hash.cuh"
#include "core/value.cuh"
#include "core/wide.cuh"
#include "subtables/abi.cuh"
#include "subtables/bucket_lock.cuh"
#include "subtables/row_copy.cuh"

namespace warphash {

// Whether a find reads a word of an overflow filter to save a bucket.
constexpr bool kReadsFilters = !kPrefetches;
constexpr u32 kSubtableShift = 28;
constexpr u32 kReservedSubtable = kMostSubtables;  // the number of the one with the reserved buckets

WARPHASH_FN u32 subtable_of(u32 bucket) { return bucket >> kSubtableShift; }
WARPHASH_FN u32 bucket_named(u32 subtable, u32 number) { return subtable << kSubtableShift | number; }
WARPHASH_FN u32 number_of(u32 bucket) { return bucket & ((1u << kSubtableShift) - 1); }
WARPHASH_FN u32 subtable_after(const SubtableTable& t, u32 subtable) {
  return subtable + 1 < t.subtables ? subtable + 1 : 0;
}

// Element `subtable` of an array of the table. A GPU selects the element, because an indexed parameter would go through
// local memory. A CPU indexes the array: finds are 1.3 times as fast so.
template <u32 kLength>
WARPHASH_FN u64 of_subtable(const SubtableTable& t, const u64 (&array)[kLength], u32 subtable) {
  if constexpr (kPrefetches) return array[subtable];
  u64 x = array[kLength - 1];
#pragma unroll
  for (u32 j = 0; j < kMostSubtables; ++j)
    if (j < t.subtables) x = subtable == j ? array[j] : x;
  return x;
}

// What the slots of subtables are; for `BucketView` and the schedules, a bucket of keys alone.
template <class Word_, int kValueBytes_>
struct Lines {
  using Table = SubtableTable;
  using Word = Word_;
  using Item = Slot<Word, false>;
  static constexpr int kValueBytes = kValueBytes_;
  static constexpr bool kHasValue = false, kLinked = false, kFar = true;
  static constexpr bool kWide = sizeof(Word) > 8, kSpread = sizeof(Word) <= 16;
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
  WARPHASH_FN static Word reserved_name(const Word& key) { return name_of_mark(key); }
  WARPHASH_FN static u32 reserved_bucket(const Word& name) {
    return bucket_named(kReservedSubtable, kSlots >= 3 ? 0 : number_of_name(name));
  }
  WARPHASH_FN static u32 next_in(const Item&) { return kNowhere; }

  WARPHASH_FN static u64 value_bytes(const SubtableTable& t) {
    return kValueBytes == kRow ? t.value_bytes : static_cast<u64>(kValueBytes);
  }
  WARPHASH_FN static Item* at(const SubtableTable& t, u32 bucket) {
    WARPHASH_ASSERT(subtable_of(bucket) < t.subtables || subtable_of(bucket) == kReservedSubtable);
    WARPHASH_ASSERT(number_of(bucket) < of_subtable(t, t.sizes, subtable_of(bucket)));
    Item* const lines = reinterpret_cast<Item*>(of_subtable(t, t.bases, subtable_of(bucket)));
    return in_global(lines + static_cast<u64>(number_of(bucket)) * kSlots);
  }
  WARPHASH_FN static u8* value_at(const SubtableTable& t, u32 bucket, u32 slot) {
    const u32 subtable = subtable_of(bucket);
    const u64 values = of_subtable(t, t.bases, subtable) + of_subtable(t, t.sizes, subtable) * kBucketBytes;
    const u64 number = static_cast<u64>(number_of(bucket)) * kSlots + slot;
    return in_global(reinterpret_cast<u8*>(values) + number * value_bytes(t));
  }
  WARPHASH_FN static u32* lock_at(const SubtableTable& t, u32 bucket) {
    return in_global(reinterpret_cast<u32*>(of_subtable(t, t.bucket_words, subtable_of(bucket))) + number_of(bucket));
  }
  WARPHASH_FN static u32* filter_at(const SubtableTable& t, u32 subtable, u32 number) {
    const u64 words = of_subtable(t, t.bucket_words, subtable);
    return in_global(reinterpret_cast<u32*>(words) + of_subtable(t, t.sizes, subtable) + 2ull * number);
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
    exchange_row(at, reinterpret_cast<const u8*>(value), spare, bytes);
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

// The digest of a key in a table.
template <class Word>
WARPHASH_FN auto digest(const SubtableTable& t, const Word& key) {
  return digest(t.digest_point, key);
}

WARPHASH_FN u32 hash_with(const SubtableTable& t, u32 digest, u64 salt, u64 addend) {
  if (t.family == kUniversal) return static_cast<u32>(universal(digest, salt, addend));
  return mix(digest ^ static_cast<u32>(salt));
}
WARPHASH_FN u64 hash_with(const SubtableTable& t, u64 digest, u64 salt, u64 addend) {
  if (t.family == kUniversal) return universal(digest, salt, addend) << 3;  // a product below 2^61
  return mix(digest ^ salt);
}

// Hash of a digest in a subtable.
template <class Digest>
WARPHASH_FN Digest hash_in(const SubtableTable& t, u32 subtable, Digest digest) {
  const u64 salt = of_subtable(t, t.salts, subtable);
  if constexpr (kPrefetches) return hash_with(t, digest, salt, t.addend[subtable % kMaxHashes]);
  u64 addend = t.addend[0];
#pragma unroll
  for (u32 j = 1; j < kMaxHashes; ++j) addend = subtable % kMaxHashes == j ? t.addend[j] : addend;
  return hash_with(t, digest, salt, addend);
}

// Bucket of a digest in a subtable.
template <class Digest>
WARPHASH_FN u32 bucket_in(const SubtableTable& t, u32 subtable, Digest digest) {
  return bucket_named(subtable, scale(hash_in(t, subtable, digest), of_subtable(t, t.sizes, subtable)));
}

// The place of a digest in the overflow filter of a subtable: a word of its bucket, and two bits of the word.
struct OverflowFilter {
  u32* word;
  u32 bits;

  template <class S, class Digest>
  WARPHASH_FN static OverflowFilter of(const SubtableTable& t, u32 subtable, Digest digest) {
    const Digest hash = hash_in(t, subtable, digest);
    const u64 buckets = of_subtable(t, t.sizes, subtable);
    const u32 part = part_of_2048(hash, buckets);  // [ word 1 | bit 5 | bit 5 ]
    return {S::filter_at(t, subtable, scale(hash, buckets)) + (part >> 10),
            1u << (part >> 5 & 31u) | 1u << (part & 31u)};
  }
  WARPHASH_FN bool may_hold(u32 read) const { return (read & bits) == bits; }
  // Relaxed: nobody relies on the bits before the next launch.
  WARPHASH_FN void add() const { fetch_or(word, bits); }
};

// The subtable that a key goes to first, and the set of those that have been its first: a bit of `possible` each.
struct Route {
  u32 subtable;
  u32 possible;

  template <class Digest>
  WARPHASH_FN static Route of(const SubtableTable& t, Digest hashed) {
    const u32 draw = static_cast<u32>(mix(static_cast<u64>(hashed) ^ t.routing_salt) >> 32);
    Route route = {0, 0};
#pragma unroll
    for (u32 j = 0; j < kMostSubtables; ++j) {
      if (j >= t.subtables) continue;
      if (j + 1 < t.subtables) route.subtable += draw >= t.route_ends[j];
      route.possible |= static_cast<u32>(draw >= t.least_begins[j] && draw < t.most_ends[j]) << j;
    }
    return route;
  }
};

// A key has come into a bucket: enters it into the overflow filter, if its first subtable is another.
template <class S, class Digest>
WARPHASH_FN void receive(const SubtableTable& t, u32 bucket, Digest digest) {
  if (Route::of(t, digest).subtable != subtable_of(bucket)) OverflowFilter::of<S>(t, subtable_of(bucket), digest).add();
}

// The number of a bucket among those of all subtables, one behind the other.
WARPHASH_FN u64 number_of_all(const SubtableTable& t, u32 bucket) {
  u64 before = 0;
#pragma unroll
  for (u32 j = 0; j < kMostSubtables; ++j) before += j < subtable_of(bucket) ? t.sizes[j] : 0;
  return before + number_of(bucket);
}

// The walk of a lookup: the key's first subtable, then those that it may be in. From each, the one after it in turn.
template <class S>
struct SubtableProbe {
  using Word = typename S::Word;
  Named<S> named;
  u32 bucket;
  u32 wanted : 8;  // subtables to look at after this one
  u32 left : 8;    // and those that nobody has looked at
  u32 asked : 1;   // whether `wanted` has those, too, that the overflow filters tell

  WARPHASH_FN static SubtableProbe start(const SubtableTable& t, const Word& key) {
    SubtableProbe p{Named<S>::of(key), 0, 0, 0, true};
    if (p.named.reserved) {
      p.bucket = S::reserved_bucket(p.named.key);
      return p;
    }
    const auto hashed = digest(t, p.named.key);
    const Route route = Route::of(t, hashed);
    p.wanted = route.possible;
    p.left = (1u << t.subtables) - 1;
    p.asked = false;
    p.move_to(t, route.subtable, hashed);
    return p;
  }
  WARPHASH_FN bool at_first(const SubtableTable& t) const {
    return named.reserved || bit_count(left) + 1 == t.subtables;
  }
  // Also wants the subtables whose overflow filters say that the key may be there.
  WARPHASH_FN void ask(const SubtableTable& t) {
    if (asked) return;
    asked = true;
    if constexpr (!kReadsFilters) {
      wanted = left;
      return;
    }
    const auto hashed = digest(t, named.key);
    const u32 unsure = left & ~wanted;
    OverflowFilter filters[kMostSubtables];
    u32 words[kMostSubtables];
#pragma unroll
    for (u32 j = 0; j < kMostSubtables; ++j) {  // all are asked for before one is waited for
      if (j >= t.subtables) continue;
      filters[j] = OverflowFilter::of<S>(t, j, hashed);
      words[j] = unsure >> j & 1 ? load_kept(filters[j].word) : 0;
    }
#pragma unroll
    for (u32 j = 0; j < kMostSubtables; ++j)
      if (j < t.subtables && filters[j].may_hold(words[j])) wanted |= 1u << j;
  }
  // The key is in no subtable: it only looks for room.
  WARPHASH_FN void want_room_alone() {
    wanted = 0;
    asked = true;
  }
  // And that in any subtable but this one.
  WARPHASH_FN void leave_for_good(const SubtableTable& t) {
    want_room_alone();
    left = ((1u << t.subtables) - 1) & ~(1u << subtable_of(bucket));
  }
  // The key is not in the bucket that was seen: moves on to the next subtable that it wants; or, as long as it has seen
  // no room, to the next one that is left. False if there is none.
  WARPHASH_FN bool advance(const SubtableTable& t, const BucketView<S>& seen, bool seeks_room = false) {
    if (!(t.early_exit && seen.open)) ask(t);
    const u32 among = seeks_room ? left : wanted;
    if (!among) return false;
    const u32 behind = among & ~((2u << subtable_of(bucket)) - 1);
    move_to(t, first_bit(behind ? behind : among), digest(t, named.key));
    return true;
  }

 private:
  template <class Digest>
  WARPHASH_FN void move_to(const SubtableTable& t, u32 subtable, Digest hashed) {
    wanted &= ~(1u << subtable);
    left &= ~(1u << subtable);
    bucket = bucket_in(t, subtable, hashed);
  }
};

}  // namespace warphash
