// Lookups, scans and checks of a quotient table.
//
//   find           value and presence of each key
//   probe_counts   how many lines find reads for each key
//   scan           copies all pairs out
//   audit          counts slots and ranges that break the rules
#pragma once
#include "core/bulk.cuh"
#include "core/straight.cuh"
#include "quotient/place.cuh"

namespace warphash {

// ---- find
// A step reads a line. `Lines` says how.
template <class D, class Lines>
struct FindInLines : OverQuotients {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSteps = true, kSuspends = false, kCounts = false;
  static constexpr int kLists = 0;
  struct State {
    Home<Word> home;
    u32 bucket;  // that the next step reads
    bool guest;  // the key would be a guest there
    bool found;
    typename S::Value value;
  };
  WARPHASH_FN static bool start(const QuotientTable& t, const QuotientBatch& b, u64 i, State& s) {
    s.home = D::home_of(t, permuted(t, key_at<S>(b, static_cast<u32>(i))));
    s.bucket = s.home.bucket;
    s.guest = s.found = false;
    s.value = static_cast<typename S::Value>(b.default_value);
    return true;
  }
  WARPHASH_FN static bool step(const QuotientTable& t, const QuotientBatch& b, State& s) {
    const Line* const line = line_at(t, s.bucket);
    u32 words[kLineWords];
    const u32* const w = Lines::template read<S::kLookWords>(line, words);
    for (u32 left = S::candidates(w, s.home.remainder, s.guest); left; left &= left - 1) {
      const u32 slot = first_bit(left);
      typename S::Value value = 0;
      if (!S::is_right(line->words, slot, s.home.remainder, b.out_values != 0, value)) continue;
      s.found = true;
      s.value = value;
      return true;
    }
    if (s.guest || !(w[0] & D::filter_bit(s.home.remainder))) return true;
    s.guest = true;
    s.bucket = D::second_of(t, D::first_of_range(t, s.home.bucket), s.home);
    return false;
  }
  WARPHASH_FN static const void* next(const QuotientTable& t, const State& s) { return line_at(t, s.bucket); }
  WARPHASH_FN static void finish(const QuotientTable&, const QuotientBatch& b, u64 i, State& s, bool live, Tally&) {
    if (!live) return;
    if (S::kHasValue && b.out_values) store_once(pointer<typename S::Value>(b.out_values) + i, s.value);
    set_flag(b, static_cast<u32>(i), s.found);
  }
};

template <class D, class Lines>
struct LineCounts : FindInLines<D, Lines> {
  using typename FindInLines<D, Lines>::State;
  WARPHASH_FN static void finish(const QuotientTable&, const QuotientBatch& b, u64 i, State& s, bool live, Tally&) {
    if (live) store_once(pointer<u32>(b.out_counts) + i, s.guest ? 2u : 1u);
  }
};

// ---- scan: the elements are the slots from `first_bucket` on
template <class D>
struct ScanLines : Straight<QuotientTable, QuotientBatch> {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kCounts = true;
  static constexpr int kLists = 1;
  struct State {
    Word key;
    typename S::Value value;
    bool holds_key;
  };
  WARPHASH_FN static bool start(const QuotientTable& t, const QuotientBatch& b, u64 i, State& s) {
    const u32 bucket = static_cast<u32>(b.first_bucket + i / S::kSlots), slot = static_cast<u32>(i % S::kSlots);
    const u32* const w = line_at(t, bucket)->words;
    s.key = 0, s.value = 0;
    s.holds_key = S::is_occupied(w, slot);
    if (!s.holds_key) return false;
    s.key = unpermuted(t, D::hash_of(t, D::home_in(t, D::first_of_range(t, bucket), w, bucket, slot)));
    if constexpr (S::kHasValue) s.value = *S::value(w, slot);
    return false;
  }
  WARPHASH_FN static void finish(const QuotientTable&, const QuotientBatch&, u64, State&, bool, Tally&) {}
  using Entry = State;
  WARPHASH_FN static u64* length(const QuotientBatch& b, int) { return &report_of(b)->winners; }
  WARPHASH_FN static bool lists(int, const State& s) { return s.holds_key; }
  WARPHASH_FN static Entry entry(const State& s) { return s; }
  WARPHASH_FN static void enter(const QuotientBatch& b, int, u64 place, const Entry& e) {
    if (place >= b.room) return;
    if (b.out_keys) store_once(pointer<Word>(b.out_keys) + place, e.key);
    if (S::kHasValue && b.out_values) store_once(pointer<typename S::Value>(b.out_values) + place, e.value);
  }
};

// ---- audit: the elements are the buckets
// A slot is sound if a search for its key ends there: no other slot has the key, and a guest has its bit in the filter.
// A range is sound if no batch has left elements in its counter.
template <class D>
struct AuditLines : Straight<QuotientTable, QuotientBatch> {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kCounts = true;
  struct State {
    u32 broken;
  };
  WARPHASH_FN static bool start(const QuotientTable& t, const QuotientBatch&, u64 i, State& s) {
    const u32 bucket = static_cast<u32>(i);
    const u32* const w = line_at(t, bucket)->words;
    const u32 occupied = S::occupied(w), range = D::first_of_range(t, bucket);
    s.broken = (S::guests(w) & ~occupied) != 0;
    if (bucket < t.ranges) s.broken += pointer<const u32>(t.counters)[bucket] != 0;
    for (u32 left = occupied; left; left &= left - 1) {
      const u32 slot = first_bit(left);
      const Home<Word> home = D::home_in(t, range, w, bucket, slot);
      const bool guest = S::is_guest(w, slot);
      const u32* const first = line_at(t, home.bucket)->words;
      const u32* const second = line_at(t, D::second_of(t, range, home))->words;
      const u32 copies =
          bit_count(S::matches(first, home.remainder, false)) + bit_count(S::matches(second, home.remainder, true));
      const bool hidden = guest && !(first[0] & D::filter_bit(home.remainder));
      const auto again = D::home_of(t, D::hash_of(t, home));
      s.broken += copies != 1 || hidden || again.bucket != home.bucket || again.remainder != home.remainder;
    }
    return false;
  }
  WARPHASH_FN static void finish(const QuotientTable&, const QuotientBatch&, u64, State& s, bool live, Tally& tally) {
    if (live) tally.mismatches += s.broken;
  }
};

}  // namespace warphash
