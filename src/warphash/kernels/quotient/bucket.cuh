// The buckets of a quotient table: lines of 64 bytes, whose slots keep the part of a hash value that the bucket does
// not tell.
//
// Hash values. The hash h of a key is a bijection of its word of w bits (quotient/permutation.cuh). Among B buckets
//   home bucket    the high w bits of h * B                                    (a multiply-high, for any B)
//   remainder      the R highest of the low w bits of h * B
// Two hash values with one home differ by B or more in these low bits. So they differ in the R highest ones whenever
// B >= 2^(w - R), and bucket and remainder tell the key, for any B: h = ceil((home * 2^w + remainder * 2^(w-R)) / B).
// With R = w, the slot keeps h itself.
//
// Layouts, by the number of slots (kSlots), which the host chooses by B (storage/quotient/array.py). A key and a value
// each have a word of 4 or 8 bytes:
//
//   key       slots with a value of 4 bytes, of 8 bytes, without one    R   for B of
//   4 bytes                     10           6             30          14   2^18 and more
//   4 bytes                      9           5             20          22   2^10 and more
//   4 bytes                      7           4             14          32   any
//   8 bytes                      6           4             10          46   2^18 and more
//   8 bytes                      4           3              7          64   any
//
// Marked slots (R < 32), bits of a line, low to high, for maps of 10 and 9 slots of 4 + 4 bytes, and of 6 and 5 of 4 + 8:
//   0           32         48              192          512
//   +--- 32 ----+--- 16 ---+--- ... 10 ----+--- 320 ----+
//   |  filter   | slot 0   | slot 1 …      | 10 values  |
//   +-----------+----------+---------------+------------+
//   0           8          32              224          512
//   +---- 8 ----+--- 24 ---+--- ... 9 -----+--- 288 ----+
//   |  filter   | slot 0   | slot 1 …      |  9 values  |
//   +-----------+----------+---------------+------------+
//   0           32         48              128          512
//   +--- 32 ----+--- 16 ---+--- ... 6 -----+--- 384 ----+
//   |  filter   | slot 0   | slot 1 …      |  6 values  |
//   +-----------+----------+---------------+------------+
//   0           32         56              152          512      bits 152 to 191 are not used
//   +--- 32 ----+--- 24 ---+--- ... 5 -----+--- 320 ----+
//   |  filter   | slot 0   | slot 1 …      |  5 values  |
//   +-----------+----------+---------------+------------+
//   a slot:  [ occupied 1 | guest 1 | remainder R ], all 0 if it is vacant. Sets have a filter of 32 bits and no
//   values.
//
// Split slots (R = 46), for maps of 6 slots of 8 + 4 bytes and of 4 of 8 + 8, and for sets of 10 slots of 8 bytes:
//   0           32         48            128       160       192       224           512
//   +--- 32 ----+--- 16 ---+--- ... 6 ---+-- 32 ---+-- 32 ---+-- 32 ---+--- ... 6 ---+
//   |  filter   | tag 0    | tag 1 …     | rest 0  | value 0 | rest 1  | value 1 …   |
//   +-----------+----------+-------------+---------+---------+---------+-------------+
//   0           32         48            96                  192          448      480
//   +--- 32 ----+--- 16 ---+--- ... 4 ---+------ 96 ---------+--- 256 ----+-- 32 --+-- 32 ---+
//   |  filter   | tag 0    | tag 1 …     | rests 0, 1 and 2  |  4 values  | rest 3 | unused  |
//   +-----------+----------+-------------+-------------------+------------+--------+---------+
//   0           32         48            192       224           512
//   +--- 32 ----+--- 16 ---+--- ... 10 --+-- 32 ---+--- ... 10 --+
//   |  filter   | tag 0    | tag 1 …     | rest 0  | rest 1 …    |
//   +-----------+----------+-------------+---------+-------------+
//   a tag:  [ occupied 1 | guest 1 | low bits of the remainder 14 ];  its rest: the other bits of the remainder 32,
//   anything if the slot is vacant. A find of an absent key reads the first sector of 32 bytes of the line, and no
//   more. This sector also has the first two slots of 8 + 4 bytes, and the first of 8 + 8: a third to a half of the
//   present keys read no more, either.
//
// Whole slots (R = w):
//   0           32           48        64                  512 - values
//   +--- 32 ----+---- 16 ----+--- 16 --+--- w each --- ... +---------+
//   |  filter   |  occupied  |  guest  |  hash values      | values  |     a bit a slot in `occupied` and `guest`
//   +-----------+------------+---------+-------------------+---------+
//
// No key is reserved: whether a slot is taken is a bit, and not a pattern of a key.
//
// Guests. Each key has a second bucket in the range of its home: up to 512 buckets in a row (quotient/place.cuh).
// A key there is a guest. The filter of a bucket has a bit for each of its keys that is a guest elsewhere, chosen by a
// hash of the remainder. A find of an absent key therefore reads one line, unless its bit is set.
//
// Figures of a simulation, lines per present / absent key of pairs of 4 + 4 bytes in 10 slots: 1.035 / 1.008 at 0.9 of
// the bytes (0.72 of the slots). tests/designs/test_quotient_cuckoo.py counts them.
#pragma once
#include "core/slot.cuh"
#include "quotient/abi.cuh"

namespace warphash {

constexpr u32 kMostRangeBuckets = 512;  // a block shares memory for so many (storage/quotient/array.py)
constexpr u32 kApplyingThreads = 256;   // for which a launch counts a range
constexpr u32 kThreadsInPlace = 128;    // and where a GPU works in place: more blocks wait for memory at once
constexpr u32 kLineWords = 16;

struct alignas(64) Line {
  u32 words[kLineWords];
};

// A word of 32 bits, or of 64.
template <bool kLong>
struct UnsignedChosen {
  using type = u32;
};
template <>
struct UnsignedChosen<true> {
  using type = u64;
};
template <bool kLong>
using UnsignedFor = typename UnsignedChosen<kLong>::type;

// One of three numbers, by the bytes of a value: without one, of 4, of 8.
WARPHASH_FN constexpr int by_value(u32 value_bytes, int none, int four, int eight) {
  return value_bytes == 0 ? none : value_bytes == 4 ? four : eight;
}

// Bits of a remainder, by the slots of a bucket.
template <class Word, u32 kValueBytes, int kSlots>
constexpr u32 kRemainderBitsOf = sizeof(Word) == 8 ? (kSlots == by_value(kValueBytes, 10, 6, 4) ? 46 : 64)
                                 : kSlots == by_value(kValueBytes, 30, 10, 6) ? 14
                                 : kSlots == by_value(kValueBytes, 20, 9, 5)  ? 22
                                                                              : 32;

// A key on its way to its range: its hash, with its value. Both have the wider of their two words.
template <class Word, u32 kValueBytes>
using BroughtOf = Slot<UnsignedFor<(sizeof(Word) == 8 || kValueBytes == 8)>, (kValueBytes > 0)>;

// What layouts share. `w` is the address of the words of a line, in memory or in registers.
template <class Word_, u32 kValueBytes, int kSlots_>
struct LineLayout {
  using Table = QuotientTable;
  using Word = Word_;
  using Value = UnsignedFor<(kValueBytes == 8)>;
  using Wide = UnsignedFor<(sizeof(Word) == 8 || kValueBytes == 8)>;  // the wider of the two
  using Brought = BroughtOf<Word, kValueBytes>;
  static constexpr bool kHasValue = kValueBytes > 0;
  static constexpr int kSlots = kSlots_;
  static constexpr u32 kRemainderBits = kRemainderBitsOf<Word, kValueBytes, kSlots>;
  static constexpr u32 kWordBits = 8 * sizeof(Word);
  static constexpr u32 kAllSlots = (1u << kSlots) - 1;
  static constexpr u32 kValueWords = kValueBytes / 4;  // of a slot
  // A slot is filled, and vacated, by one store to one word before the values. So a reader without a lock sees the key of
  // a slot, or none, and never parts of two keys.
  static constexpr bool kFieldIsOneStore = false;
  WARPHASH_FN static Value* value(u32* w, u32 slot) {
    return reinterpret_cast<Value*>(w + kLineWords - kSlots * kValueWords) + slot;
  }
  WARPHASH_FN static const Value* value(const u32* w, u32 slot) { return value(const_cast<u32*>(w), slot); }
  // The value of a slot, in a table that no thread changes, if it is asked for.
  WARPHASH_FN static bool read_value(const u32* line, u32 slot, bool asked, Value& at) {
    if (kHasValue && asked) at = load_slot<true>(value(line, slot));
    return true;
  }
  WARPHASH_FN static Word hash_of(const Brought& item) { return static_cast<Word>(item.key); }
  WARPHASH_FN static Value value_of(const Brought& item) { return static_cast<Value>(item.payload()); }
  // Of an element of a batch.
  WARPHASH_FN static Value value_at(const QuotientBatch& b, u32 element) {
    if constexpr (kHasValue) return load_once(reinterpret_cast<const Value*>(b.values) + element);
    return 0;
  }
};

template <class Word_, u32 kValueBytes, int kSlots_>
struct MarkedSlots : LineLayout<Word_, kValueBytes, kSlots_> {
  using Base = LineLayout<Word_, kValueBytes, kSlots_>;
  using Word = Word_;
  static constexpr u32 kFieldBits = Base::kRemainderBits + 2;
  static_assert(kFieldBits < 32);
  static constexpr u32 kFilterBits = Base::kRemainderBits == 22 && kValueBytes == 4 ? 8 : 32;
  static constexpr u32 kReadWords = (kFilterBits + kSlots_ * kFieldBits + 31) / 32;  // all but the values
  static constexpr u32 kLookWords = kReadWords;
  static constexpr u32 kFieldMask = (1u << kFieldBits) - 1;
  static constexpr bool kFieldIsOneStore = kFieldBits == 16;
  static constexpr u32 kOccupied = 1, kGuest = 2;

  WARPHASH_FN static u32 field(const u32* w, u32 slot) {
    const u32 bit = kFilterBits + slot * kFieldBits, word = bit / 32, shift = bit % 32;
    u32 x = w[word] >> shift;
    if (shift + kFieldBits > 32) x |= w[word + 1] << (32 - shift);
    return x & kFieldMask;
  }
  WARPHASH_FN static u32 field_of(Word remainder, bool guest) {
    return static_cast<u32>(remainder) << 2 | (guest ? kGuest : 0) | kOccupied;
  }
  template <class Test>
  WARPHASH_FN static u32 slots_where(const u32* w, Test&& test) {
    u32 mask = 0;
#pragma unroll
    for (int j = 0; j < kSlots_; ++j) mask |= static_cast<u32>(test(field(w, static_cast<u32>(j)))) << j;
    return mask;
  }
  WARPHASH_FN static u32 matches(const u32* w, Word remainder, bool guest) {
    const u32 wanted = field_of(remainder, guest);
    return slots_where(w, [&](u32 f) { return f == wanted; });
  }
  WARPHASH_FN static u32 candidates(const u32* w, Word remainder, bool guest) { return matches(w, remainder, guest); }
  WARPHASH_FN static bool is_right(const u32* line, u32 slot, Word, bool asked, typename Base::Value& value) {
    return Base::read_value(line, slot, asked, value);
  }
  WARPHASH_FN static u32 occupied(const u32* w) {
    return slots_where(w, [](u32 f) { return (f & kOccupied) != 0; });
  }
  WARPHASH_FN static u32 guests(const u32* w) {
    return slots_where(w, [](u32 f) { return (f & kGuest) != 0; });
  }
  WARPHASH_FN static bool is_occupied(const u32* w, u32 slot) { return field(w, slot) & kOccupied; }
  WARPHASH_FN static bool is_guest(const u32* w, u32 slot) { return field(w, slot) & kGuest; }
  WARPHASH_FN static Word remainder(const u32* w, u32 slot) { return static_cast<Word>(field(w, slot) >> 2); }
  // For a vacant slot of a line that no other thread changes.
  WARPHASH_FN static void put(u32* w, u32 slot, Word remainder, bool guest) {
    const u32 bit = kFilterBits + slot * kFieldBits, word = bit / 32, shift = bit % 32;
    const u32 x = field_of(remainder, guest);
    w[word] |= x << shift;
    if (shift + kFieldBits > 32) w[word + 1] |= x >> (32 - shift);
  }
  // For a vacant slot that no other thread has, while others put to other slots of the line. Only where a field is one
  // store (kFieldIsOneStore) may others read the line before a barrier.
  WARPHASH_FN static void put_beside(u32* w, u32 slot, Word remainder, bool guest = false) {
    const u32 bit = kFilterBits + slot * kFieldBits, word = bit / 32, shift = bit % 32;
    const u32 x = field_of(remainder, guest);
    if constexpr (kFieldIsOneStore) {
      reinterpret_cast<u16*>(w)[bit / 16] = static_cast<u16>(x);
    } else {
      fetch_or(w + word, x << shift);
      if (shift + kFieldBits > 32) fetch_or(w + word + 1, x >> (32 - shift));
    }
  }
  // The field of a slot of a line that others change, and the remainder in it.
  WARPHASH_FN static u32 field_now(const u32* w, u32 slot) {
    const u32 bit = kFilterBits + slot * kFieldBits;
    return load_relaxed(w + bit / 32) >> bit % 32 & kFieldMask;
  }
  WARPHASH_FN static Word remainder_in(u32 field) { return static_cast<Word>(field >> 2); }
  // For a slot that was vacant in the line as it was `seen`, while other threads fill slots: false if one of them has
  // changed the word of the slot.
  WARPHASH_FN static bool try_put(u32* w, const u32 (&seen)[kLineWords], u32 slot, Word remainder, bool guest) {
    static_assert(kFieldIsOneStore, "a swap fills no slot of two words");
    const u32 bit = kFilterBits + slot * kFieldBits, word = bit / 32;
    u32 old = 0;
#pragma unroll
    for (u32 k = 0; k < kReadWords; ++k)
      if (k == word) old = seen[k];
    return compare_exchange_word(w + word, old, old | field_of(remainder, guest) << bit % 32) == old;
  }
  // False if the slot is vacant already. Other threads may vacate slots of the line.
  WARPHASH_FN static bool vacate(u32* w, u32 slot) {
    const u32 bit = kFilterBits + slot * kFieldBits, word = bit / 32, shift = bit % 32;
    const u32 old = fetch_and(w + word, ~(kFieldMask << shift));
    if (shift + kFieldBits > 32) fetch_and(w + word + 1, ~(kFieldMask >> (32 - shift)));
    return old >> shift & kOccupied;
  }
};

template <class Word_, u32 kValueBytes, int kSlots_>
struct SplitSlots : LineLayout<Word_, kValueBytes, kSlots_> {
  using Base = LineLayout<Word_, kValueBytes, kSlots_>;
  using Word = Word_;
  using Value = typename Base::Value;
  static constexpr u32 kTagBits = 16, kTagRemainderBits = kTagBits - 2, kTagMask = (1u << kTagBits) - 1;
  static constexpr u32 kFilterBits = 32, kRests = 1 + kSlots_ / 2;  // the word of rest 0
  static constexpr bool kIsPaired = kValueBytes == 4;               // a value lies behind each rest
  static constexpr bool kHasWideValues = kValueBytes == 8;
  static constexpr u32 kStride = kIsPaired ? 2 : 1;  // words from one rest to the next
  static constexpr u32 kLastRest = kLineWords - 2;   // where values are wide
  static_assert(kSlots_ % 2 == 0 && Base::kRemainderBits == kTagRemainderBits + 32);
  static_assert(kRests % kStride == 0, "a pair is aligned");
  static constexpr u32 kReadWords = kHasWideValues ? kLastRest + 1 : kRests + kStride * kSlots_;  // with all rests
  static constexpr u32 kLookWords = kRests;  // what an absent key needs
  static constexpr u32 kOccupied = 1, kGuest = 2;

  WARPHASH_FN static u32 tag(const u32* w, u32 slot) { return w[1 + slot / 2] >> kTagBits * (slot % 2) & kTagMask; }
  WARPHASH_FN static u32 tag_of(Word remainder, bool guest) {
    return (static_cast<u32>(remainder) << 2 & kTagMask) | (guest ? kGuest : 0) | kOccupied;
  }
  WARPHASH_FN static Value* value(u32* w, u32 slot) {
    if constexpr (kIsPaired) return w + rest_at(slot) + 1;
    if constexpr (kHasWideValues) return reinterpret_cast<Value*>(w + kRests + kSlots_ - 1) + slot;
    return Base::value(w, slot);
  }
  WARPHASH_FN static const Value* value(const u32* w, u32 slot) { return value(const_cast<u32*>(w), slot); }
  // The word of a rest.
  WARPHASH_FN static u32 rest_at(u32 slot) {
    return kHasWideValues && slot + 1 == kSlots_ ? kLastRest : kRests + kStride * slot;
  }
  WARPHASH_FN static u32 rest_of(Word remainder) { return static_cast<u32>(remainder >> kTagRemainderBits); }
  template <class Test>
  WARPHASH_FN static u32 slots_where(const u32* w, Test&& test) {
    u32 mask = 0;
#pragma unroll
    for (int j = 0; j < kSlots_; ++j) mask |= static_cast<u32>(test(tag(w, static_cast<u32>(j)))) << j;
    return mask;
  }
  // By the tags: with another remainder, one slot of 2^14 is a candidate. `w` has kLookWords words.
  WARPHASH_FN static u32 candidates(const u32* w, Word remainder, bool guest) {
    const u32 wanted = tag_of(remainder, guest);
    return slots_where(w, [&](u32 tag) { return tag == wanted; });
  }
  // Whether a candidate has the remainder, in a table that no thread changes; and its value, if that is asked for. All
  // loads are under way before one of them is waited for.
  WARPHASH_FN static bool is_right(const u32* line, u32 slot, Word remainder, bool asked, Value& value) {
    if constexpr (kIsPaired) {
      const u64 pair = load_slot<true>(reinterpret_cast<const u64*>(line + kRests) + slot);
      value = static_cast<Value>(pair >> 32);
      return static_cast<u32>(pair) == rest_of(remainder);
    } else {
      const u32 rest = load_slot<true>(line + rest_at(slot));
      if (Base::kHasValue && asked) value = load_slot<true>(SplitSlots::value(line, slot));
      return rest == rest_of(remainder);
    }
  }
  WARPHASH_FN static u32 matches(const u32* w, Word remainder, bool guest) {
    const u32 wanted = rest_of(remainder);
    u32 mask = 0;
#pragma unroll
    for (int j = 0; j < kSlots_; ++j) mask |= static_cast<u32>(w[rest_at(static_cast<u32>(j))] == wanted) << j;
    return mask & candidates(w, remainder, guest);
  }
  WARPHASH_FN static u32 occupied(const u32* w) {
    return slots_where(w, [](u32 tag) { return (tag & kOccupied) != 0; });
  }
  WARPHASH_FN static u32 guests(const u32* w) {
    return slots_where(w, [](u32 tag) { return (tag & kGuest) != 0; });
  }
  WARPHASH_FN static bool is_occupied(const u32* w, u32 slot) { return tag(w, slot) & kOccupied; }
  WARPHASH_FN static bool is_guest(const u32* w, u32 slot) { return tag(w, slot) & kGuest; }
  WARPHASH_FN static Word remainder(const u32* w, u32 slot) {
    return static_cast<Word>(w[rest_at(slot)]) << kTagRemainderBits | tag(w, slot) >> 2;
  }
  WARPHASH_FN static void put(u32* w, u32 slot, Word remainder, bool guest) {
    w[rest_at(slot)] = rest_of(remainder);
    w[1 + slot / 2] |= tag_of(remainder, guest) << kTagBits * (slot % 2);
  }
  WARPHASH_FN static void put_beside(u32* w, u32 slot, Word remainder, bool guest = false) {
    w[rest_at(slot)] = rest_of(remainder);
    reinterpret_cast<u16*>(w + 1)[slot] = static_cast<u16>(tag_of(remainder, guest));
  }
  WARPHASH_FN static bool vacate(u32* w, u32 slot) {
    const u32 shift = kTagBits * (slot % 2);
    return fetch_and(w + 1 + slot / 2, ~(kTagMask << shift)) >> shift & kOccupied;
  }
};

template <class Word_, u32 kValueBytes, int kSlots_>
struct WholeSlots : LineLayout<Word_, kValueBytes, kSlots_> {
  using Base = LineLayout<Word_, kValueBytes, kSlots_>;
  using Word = Word_;
  static constexpr u32 kFilterBits = 32;
  static constexpr u32 kReadWords = 2 + kSlots_ * sizeof(Word) / 4;
  static constexpr u32 kLookWords = kReadWords;

  WARPHASH_FN static Word* hash(u32* w, u32 slot) { return reinterpret_cast<Word*>(w + 2) + slot; }
  WARPHASH_FN static Word remainder(const u32* w, u32 slot) { return *hash(const_cast<u32*>(w), slot); }
  WARPHASH_FN static u32 occupied(const u32* w) { return w[1] & Base::kAllSlots; }
  WARPHASH_FN static u32 guests(const u32* w) { return w[1] >> 16; }
  WARPHASH_FN static bool is_occupied(const u32* w, u32 slot) { return w[1] >> slot & 1; }
  WARPHASH_FN static bool is_guest(const u32* w, u32 slot) { return w[1] >> (16 + slot) & 1; }
  WARPHASH_FN static u32 matches(const u32* w, Word remainder, bool guest) {
    u32 mask = 0;
#pragma unroll
    for (int j = 0; j < kSlots_; ++j)
      mask |= static_cast<u32>(WholeSlots::remainder(w, static_cast<u32>(j)) == remainder) << j;
    return mask & occupied(w) & (guest ? guests(w) : ~guests(w));
  }
  WARPHASH_FN static u32 candidates(const u32* w, Word remainder, bool guest) { return matches(w, remainder, guest); }
  WARPHASH_FN static bool is_right(const u32* line, u32 slot, Word, bool asked, typename Base::Value& value) {
    return Base::read_value(line, slot, asked, value);
  }
  WARPHASH_FN static void put(u32* w, u32 slot, Word remainder, bool guest) {
    *hash(w, slot) = remainder;
    w[1] |= (guest ? 0x10001u : 1u) << slot;
  }
  WARPHASH_FN static void put_beside(u32* w, u32 slot, Word remainder, bool guest = false) {
    *hash(w, slot) = remainder;
    fetch_or(w + 1, (guest ? 0x10001u : 1u) << slot);
  }
  WARPHASH_FN static bool vacate(u32* w, u32 slot) { return fetch_and(w + 1, ~(0x10001u << slot)) >> slot & 1; }
};

template <class Word, u32 kValueBytes, int kSlots, u32 kRemainderBits>
struct LayoutChosen {
  using type = MarkedSlots<Word, kValueBytes, kSlots>;
};
template <u32 kValueBytes, int kSlots>
struct LayoutChosen<u64, kValueBytes, kSlots, 46> {
  using type = SplitSlots<u64, kValueBytes, kSlots>;
};
template <u32 kValueBytes, int kSlots>
struct LayoutChosen<u32, kValueBytes, kSlots, 32> {
  using type = WholeSlots<u32, kValueBytes, kSlots>;
};
template <u32 kValueBytes, int kSlots>
struct LayoutChosen<u64, kValueBytes, kSlots, 64> {
  using type = WholeSlots<u64, kValueBytes, kSlots>;
};
template <class Word, u32 kValueBytes, int kSlots>
using QuotientSlots =
    typename LayoutChosen<Word, kValueBytes, kSlots, kRemainderBitsOf<Word, kValueBytes, kSlots>>::type;

WARPHASH_FN Line* line_at(const QuotientTable& t, u32 bucket) {
  WARPHASH_ASSERT(bucket < t.buckets);
  return in_global(reinterpret_cast<Line*>(t.slots) + bucket);
}

}  // namespace warphash
