// Which keys leave a bounded table: ranks of keys, and the keys of least rank.
//
//   record        counts accesses of keys in a frequency sketch
//   age           halves all counters of a sketch
//   by_frequency  the rank of each key: how often the sketch has seen it
//   at_random     the rank of each key: a random number that depends on the key and the seed
//   touch         sets, or raises, the ranks of stored rows
//   order         scores of the caller's -> ranks, in the same order
//   histogram     how many ranks have which bits
//   choose        the keys of the k least ranks
//   compare       the keys beside numbers that are less than a bound, equal to it, ...
//
// A rank is a word of 64 bits. The key of least rank leaves first (storage/bounded/).
//
// Frequency sketch. A count-min sketch (Cormode and Muthukrishnan, 2005) with ageing (Einziger, Friedman, Manes,
// TinyLFU, 2017): counters of 8 bits. The fingerprint of a key leads to one line, and in each quarter of the line to one
// counter. The least of the four is the estimate, so another key must share all four to be taken for this one.
//
//   byte  0           16           32           48           64
//         +-----------+------------+------------+------------+
//         | . . a . . | . . . b .  | c . . . .  | . . . d .  |   one line: four quarters of 16 counters
//         +-----------+------------+------------+------------+
//
// record, for one access:
//   1. Read the four counters. If the least one is 255, return: the count is full, and a hot key costs no swap.
//   2. Raise the first of the least counters by one: a compare-and-swap (relaxed) of the word of 4 counters that it is in.
//      If another thread changed the word, go to 1.
//   3. Raise the other counters to the same count, if they are lower: by compare-and-swap (relaxed), too.
// Only the least counters are raised (conservative update). Of simulated streams of Zipf 1.0 over ten times more keys
// than the bound, with 16 bytes of counters and a sample of 64 accesses for each key of the bound, 0.91 of the most
// frequent keys stay so, and 0.82 if all four counters are raised. Two threads that
// record one key at one moment may count one access: an estimate decides who leaves, and nothing else.
//
// Selection of the k least ranks. A radix select from the most significant bits on: a histogram of the next 11 bits of
// those ranks that have the bits known so far. The host reads the histogram and learns the next bits of the k-th rank.
// An element of the kernel counts many ranks, and adds up equal bins on its way, because the first bits of all ranks may
// be equal and one counter would be a queue. There are several copies of a histogram, for the same reason.
//
// All accesses are relaxed: these publish nothing, and the end of a kernel orders one step before the next.
#pragma once
#include "bounded/abi.cuh"
#include "core/fingerprint.cuh"
#include "core/straight.cuh"

namespace warphash {

// ---- frequencies
struct CountersOfKey {
  u32* line;
  u32 places;  // of the four counters: 4 bits each
  u64 fingerprint;
  WARPHASH_FN u32* word(u32 j) const { return line + 4 * j + ((places >> (4 * j + 2)) & 3); }
  WARPHASH_FN u32 shift(u32 j) const { return 8 * ((places >> (4 * j)) & 3); }
  WARPHASH_FN u32 count(u32 j, u32 word) const { return (word >> shift(j)) & 255; }
};

constexpr u32 kQuarters = 4, kWordsOfLine = 16, kFullCount = 255;

WARPHASH_FN CountersOfKey counters_of(const FrequencySketch& s, const AccessBatch& b, u64 i) {
  const u64 print = fingerprint_of(reinterpret_cast<const u8*>(b.keys) + i * b.key_bytes, b.key_bytes, s.seed);
  u32* const line = reinterpret_cast<u32*>(s.counters) + kWordsOfLine * multiply_high(print, s.lines);
  return {line, static_cast<u32>(mix(print)), print};
}

// A CPU fetches the line of a key beforehand, at the price of a second fingerprint.
struct OnCounters : Straight<FrequencySketch, AccessBatch> {
  WARPHASH_FN static const void* hint(const FrequencySketch& t, const AccessBatch& b, u64 i) {
    return counters_of(t, b, i).line;
  }
};

struct Record : OnCounters {
  WARPHASH_FN static void raise(u32* at, u32 seen, u32 shift, u32 least) {
    while (((seen >> shift) & 255) < least) {
      const u32 before = compare_exchange_word(at, seen, (seen & ~(255u << shift)) | least << shift);
      if (before == seen) return;
      seen = before;
    }
  }
  WARPHASH_FN static bool start(const FrequencySketch& t, const AccessBatch& b, u64 i, State&) {
    if (b.flags && reinterpret_cast<const u8*>(b.flags)[i] != kChanged) return false;
    const CountersOfKey key = counters_of(t, b, i);
    for (;;) {
      u32 words[kQuarters], least = kFullCount, first = 0;
      for (u32 j = 0; j < kQuarters; ++j) {
        words[j] = load_relaxed(key.word(j));
        const u32 count = key.count(j, words[j]);
        if (count < least) least = count, first = j;
      }
      if (least == kFullCount) return false;
      const u32 raised = words[first] + (1u << key.shift(first));
      if (compare_exchange_word(key.word(first), words[first], raised) != words[first]) continue;
      for (u32 j = 0; j < kQuarters; ++j)
        if (j != first) raise(key.word(j), words[j], key.shift(j), least + 1);
      return false;
    }
  }
};

// An element is a word of four counters.
struct Age : Straight<FrequencySketch, AccessBatch> {
  WARPHASH_FN static bool start(const FrequencySketch& t, const AccessBatch&, u64 i, State&) {
    u32* const at = reinterpret_cast<u32*>(t.counters) + i;
    u32 seen = load_relaxed(at);
    while (seen) {
      const u32 before = compare_exchange_word(at, seen, (seen >> 1) & 0x7f7f7f7fu);
      if (before == seen) return false;
      seen = before;
    }
    return false;
  }
};

// Keys of one frequency are ranked by their fingerprints: always the same ones leave, so their places do not change
// hands with each batch.
struct ByFrequency : OnCounters {
  WARPHASH_FN static bool start(const FrequencySketch& t, const AccessBatch& b, u64 i, State&) {
    const CountersOfKey key = counters_of(t, b, i);
    u64 least = kFullCount;
    for (u32 j = 0; j < kQuarters; ++j) {
      const u64 count = key.count(j, load_relaxed(key.word(j)));
      least = count < least ? count : least;
    }
    reinterpret_cast<u64*>(b.out_ranks)[i] = least << 56 | mix(key.fingerprint ^ t.seed) >> 8;
    return false;
  }
};

struct AtRandom : Straight<FrequencySketch, AccessBatch> {
  WARPHASH_FN static bool start(const FrequencySketch& t, const AccessBatch& b, u64 i, State&) {
    const u8* const key = reinterpret_cast<const u8*>(b.keys) + i * b.key_bytes;
    reinterpret_cast<u64*>(b.out_ranks)[i] = mix(fingerprint_of(key, b.key_bytes, t.seed));
    return false;
  }
};

// ---- ranks of rows
constexpr u64 kUnresolvedRow = 1ull << 62, kTouchedRow = kUnresolvedRow - 1;  // kSharesRow of rows/rows.cuh

// The elements of several finds may touch one row at one time: a rank that only rises is as if one came after another.
struct Touch : Straight<Ranks, TouchBatch> {
  WARPHASH_FN static const void* hint(const Ranks& t, const TouchBatch& b, u64 i) {
    return reinterpret_cast<const u64*>(t.ranks) + (reinterpret_cast<const u64*>(b.numbers)[i] & kTouchedRow);
  }
  WARPHASH_FN static bool start(const Ranks& t, const TouchBatch& b, u64 i, State&) {
    const u64 number = reinterpret_cast<const u64*>(b.numbers)[i];
    if (reinterpret_cast<const u8*>(b.flags)[i] != b.flag || number & kUnresolvedRow) return false;
    u64* const at = reinterpret_cast<u64*>(t.ranks) + (number & kTouchedRow);
    const u64 rank = b.given ? reinterpret_cast<const u64*>(b.given)[i] : b.clock;
    if (!b.renews) {
      store_relaxed(at, rank);
      return false;
    }
    u64 seen = load_relaxed(at);
    while (seen < rank) {
      const u64 before = compare_exchange_word(at, seen, rank);
      if (before == seen) break;
      seen = before;
    }
    return false;
  }
};

// The rank of a number: ranks are in the order of numbers. -0.0 has the rank of 0.0, and NaN has rank 0, which no other
// float has.
WARPHASH_FN u64 rank_of(u64 bits, u64 kind) {
  const u64 width = kind >> 8, sign = 1ull << (width - 1);
  const u64 mask = sign | (sign - 1);
  if ((kind & 255) == kUnsigned) return bits;
  if ((kind & 255) == kSigned) return bits ^ sign;
  const u64 fraction_bits = width == 64 ? 52 : width == 32 ? 23 : 10;
  const u64 magnitude = bits & ~sign, infinity = (sign - 1) >> fraction_bits << fraction_bits;
  if (magnitude > infinity) return 0;
  if (magnitude == 0) return sign;
  return bits & sign ? ~bits & mask : bits | sign;
}

struct Order : Straight<Ranks, ScoreBatch> {
  WARPHASH_FN static bool start(const Ranks& t, const ScoreBatch& b, u64 i, State&) {
    const u8* const row = reinterpret_cast<const u8*>(b.rows) + i * b.row_bytes;
    reinterpret_cast<u64*>(t.ranks)[i] = rank_of(read_word(row, b.row_bytes), b.kind);
    return false;
  }
};

// ---- the least ranks
constexpr u32 kHistogramCopies = 8;

// Element i counts the ranks i, i + n, i + 2 n, ...: neighbouring lanes read neighbouring words.
struct Histogram : Straight<Ranks, SelectBatch> {
  WARPHASH_FN static bool start(const Ranks& t, const SelectBatch& b, u64 i, State&) {
    u32* const histogram = reinterpret_cast<u32*>(b.histogram) + (i / 32 % kHistogramCopies) * b.bins;
    const u64* const ranks = reinterpret_cast<const u64*>(t.ranks);
    u64 bin = 0;
    u32 run = 0;
    for (u64 at = i; at < b.length; at += b.n) {
      const u64 rank = ranks[at];
      if (b.prefix_shift < 64 && rank >> b.prefix_shift != b.prefix) continue;
      const u64 next = (rank >> b.shift) & (b.bins - 1);
      if (next != bin && run) {
        atomic_add(&histogram[bin], run);
        run = 0;
      }
      bin = next;
      ++run;
    }
    if (run) atomic_add(&histogram[bin], run);
    return false;
  }
};

// A task that copies the keys of some of its elements behind each other, and counts these in Report::winners.
template <class Batch_>
struct TakesKeys : Straight<Ranks, Batch_> {
  static constexpr int kLists = 1;
  struct State {
    u32 element;
    bool listed;
  };
  using Entry = u32;
  WARPHASH_FN static u64* length(const Batch_& b, int) { return &report_of(b)->winners; }
  WARPHASH_FN static bool lists(int, const State& s) { return s.listed; }
  WARPHASH_FN static Entry entry(const State& s) { return s.element; }
  WARPHASH_FN static void enter(const Batch_& b, int, u64 place, Entry e) {
    if (!b.out_keys) return;
    copy_row(reinterpret_cast<u8*>(b.out_keys) + place * b.key_bytes,
             reinterpret_cast<const u8*>(b.keys) + e * b.key_bytes, b.key_bytes);
  }
  WARPHASH_FN static void finish(const Ranks&, const Batch_&, u64, State&, bool, Tally&) {}
};

// Of the elements of the greatest chosen rank, each that may be chosen takes a ticket.
struct Choose : TakesKeys<SelectBatch> {
  WARPHASH_FN static bool start(const Ranks& t, const SelectBatch& b, u64 i, State& s) {
    const u64 rank = reinterpret_cast<const u64*>(t.ranks)[i];
    u64* const ticket = reinterpret_cast<u64*>(b.ticket);
    s.element = static_cast<u32>(i);
    s.listed = rank < b.last;
    if (rank == b.last) s.listed = load_relaxed(ticket) < b.ties && fetch_add(ticket, u64(1)) < b.ties;
    return false;
  }
};

enum Comparison : u64 { kLess = 0, kLessEqual, kEqual, kUnequal, kGreaterEqual, kGreater };

WARPHASH_FN bool compares(u64 a, u64 b, u64 comparison) {
  switch (comparison) {
    case kLess:
      return a < b;
    case kLessEqual:
      return a <= b;
    case kEqual:
      return a == b;
    case kUnequal:
      return a != b;
    case kGreaterEqual:
      return a >= b;
    default:
      return a > b;
  }
}

// NaN is unequal to every number, and neither less nor greater.
struct Compare : TakesKeys<CompareBatch> {
  WARPHASH_FN static bool start(const Ranks&, const CompareBatch& b, u64 i, State& s) {
    const u64 bits = read_word(reinterpret_cast<const u8*>(b.rows) + i * b.row_bytes, b.row_bytes);
    const u64 rank = b.ranked ? bits : rank_of(bits, b.kind);
    const bool unordered = (b.kind & 255) == kFloat && (rank == 0 || b.bound == 0);
    s.element = static_cast<u32>(i);
    s.listed = unordered ? b.comparison == kUnequal : compares(rank, b.bound, b.comparison);
    return false;
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                        \
  WARPHASH_ENTRY(record, warphash::Record)            \
  WARPHASH_ENTRY(age, warphash::Age)                  \
  WARPHASH_ENTRY(by_frequency, warphash::ByFrequency) \
  WARPHASH_ENTRY(at_random, warphash::AtRandom)       \
  WARPHASH_ENTRY(touch, warphash::Touch)              \
  WARPHASH_ENTRY(order, warphash::Order)              \
  WARPHASH_ENTRY(histogram, warphash::Histogram)      \
  WARPHASH_ENTRY(choose, warphash::Choose)            \
  WARPHASH_ENTRY(compare, warphash::Compare)
