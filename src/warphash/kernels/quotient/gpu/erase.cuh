// An erase of a few elements for each range, in one launch: a lane has an element, and clears the slot of its key.
//
// Protocol of an element.
//   1. Read the line of the home bucket. If the key is there, clear its slot.
//   2. If it is not, and its bit in the filter is set, read the line of the second bucket, and do the same there.
// A slot is cleared by an atomic operation that tells whether it was occupied. A lane that finds it vacant looks again:
// the key may have been in the batch twice, or what it read may have been half of a slot that was being cleared. A slot
// of two words is cleared low word first, and the low word has the bit that tells.
//
// Filters. The bit of a guest stays set when the guest leaves, for other guests may share it. To make the filters of a
// range anew takes a walk over the range. The ranges do this for one of so many guests that leave, by a hash of the key
// (InRange::pays_to_renew). The same guests are left to them here.
//
// Memory order: relaxed. Keys only leave, so a line that was read is at worst too full.
#pragma once
#include "core/gpu/schedule.cuh"
#include "quotient/gpu/abi.cuh"
#include "quotient/gpu/lines.cuh"
#include "quotient/place.cuh"

namespace warphash {

template <class D>
struct EraseAlone {
  using Table = QuotientTable;
  using Batch = OneLaunchBatch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSteps = true, kSuspends = false, kCounts = true;
  static constexpr int kLists = 1;
  enum Result : u8 { kAbsent, kErased, kLeft };
  struct State {
    Home<Word> home;
    Word hash;
    u32 element;
    u32 bucket;  // that the next step reads
    bool guest;  // the key would be a guest there
    Result result;
  };

  WARPHASH_FN static bool start(const QuotientTable& t, const OneLaunchBatch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    s.hash = permuted(t, key_at<S>(b, s.element));
    s.home = D::home_of(t, s.hash);
    s.bucket = s.home.bucket;
    s.guest = false;
    s.result = kAbsent;
    return true;
  }
  WARPHASH_FN static bool step(const QuotientTable& t, const OneLaunchBatch&, State& s) {
    Line* const line = line_at(t, s.bucket);
    u32 words[kLineWords];
    read_shared<S>(line, words);
    if (const u32 hits = S::matches(words, s.home.remainder, s.guest)) {
      const bool renews = s.guest && D::mixed(s.hash) % (2 * static_cast<u32>(t.range_buckets)) == 0;
      if (!renews && !S::vacate(line->words, first_bit(hits))) return false;
      s.result = renews ? kLeft : kErased;
      return true;
    }
    if (s.guest || !(words[0] & D::filter_bit(s.home.remainder))) return true;
    s.guest = true;
    s.bucket = D::second_of(t, D::first_of_range(t, s.home.bucket), s.home);
    return false;
  }
  WARPHASH_FN static const void* next(const QuotientTable& t, const State& s) { return line_at(t, s.bucket); }
  WARPHASH_FN static void finish(const QuotientTable&, const OneLaunchBatch& b, u64, State& s, bool live,
                                 Tally& tally) {
    if (!live) return;
    tally.changed += s.result == kErased;
    if (s.result != kLeft) set_flag(b, s.element, s.result == kErased);
  }
  using Entry = u32;
  WARPHASH_FN static u64* length(const OneLaunchBatch& b, int) { return &report_of(b)->leftover; }
  WARPHASH_FN static bool lists(int, const State& s) { return s.result == kLeft; }
  WARPHASH_FN static Entry entry(const State& s) { return s.element; }
  WARPHASH_FN static void enter(const OneLaunchBatch& b, int, u64 place, Entry element) {
    pointer<u32>(b.left_out)[place] = element;
  }
};

}  // namespace warphash
