// An update of few elements for each range, without locks: a lane has an element. Keys for which both buckets are full are
// left to groups of lanes with locks (quotient/gpu/stuck.cuh). For slots that one store fills (kFieldIsOneStore of
// quotient/bucket.cuh), and for values that are kept or replaced.
//
// Protocol of an element.
//   1. Read the line of the home bucket. If the key is there, the element is done: its value is kept, or replaced.
//   2. If the line has no vacant slot, or the filter says that the key may be a guest, read the line of the second
//      bucket. If the key is there, the element is done.
//   3. Put an absent key into the first vacant slot of its home. A compare-and-swap of the word with that slot expects the
//      word that was read.
//   4. If the home has none, put it into the first vacant slot of the second bucket in the same way, and set its bit in
//      the filter of its home.
//   5. If both are full, the element is left.
//   A lane whose swap fails goes back to step 1. A lane that has put a key stores the value.
//
// Why a key is never doubled. This kernel takes no key away, and moves none: a slot that is filled stays as it is. So of
// two reads of a line, the later one sees a later state of each slot. Let two lanes put one key, A into slot
// a, B into slot b of a line, where A's swap comes first. A saw all slots before a filled, and b < a was vacant when B's
// swap came, later: so b is not below a. B saw slot a filled, as b > a was the first vacant one, or b = a and B's swap
// failed. What B saw in slot a was A's key, since nothing else was ever put there. If A puts the key into its second
// bucket, its home was full before; B cannot have put it to the home later. If A puts it to its home, B did not see the
// home full without A's key in it.
//
// Values. The field of a slot is there before its value. Nobody reads values meanwhile. A lane that replaces the value of
// a key that was put just now may come before the store of the lane that put it: then the value of that element stays.
// Any element of a key may have the last word. Operations that combine values need both, so they take locks.
//
// Why no locks. A lock costs two atomic operations, and the second one waits until all stores ahead of it have come to
// the second-level cache. On an H200, 5 M new keys in a table of 45 M took 655 us with locks, and known keys, which store
// nothing, 271 (docs/performance/quotient.md).
//
// Adopted pairs. While the table has any, all elements are left: their keys may be among those.
//
// Memory order: relaxed. A swap tells by its expected word all that its lane has relied on.
#pragma once
#include "core/gpu/schedule.cuh"
#include "quotient/gpu/adopted.cuh"
#include "quotient/gpu/lines.cuh"

namespace warphash {

template <class D>
struct PutAlone {
  using Table = QuotientTable;
  using Batch = OneLaunchBatch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSteps = true, kSuspends = false, kCounts = true;
  static constexpr int kLists = 1;
  enum Result : u8 { kFound, kPut, kLeft };
  struct State {
    Home<Word> home;
    typename S::Value operand;
    u32 element, probes;
    Result result;
  };

  WARPHASH_FN static bool start(const QuotientTable& t, const OneLaunchBatch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    s.home = D::home_of(t, permuted(t, key_at<S>(b, s.element)));
    s.operand = S::value_at(b, s.element);
    s.probes = 0;
    s.result = kLeft;
    return S::kFieldIsOneStore && Adopted<D>{b}.count() == 0;
  }
  // True if the element is done, or left.
  WARPHASH_FN static bool step(const QuotientTable& t, const OneLaunchBatch& b, State& s) {
    if constexpr (S::kFieldIsOneStore) return look_and_put(t, b, s);
    return true;
  }
  WARPHASH_FN static const void* next(const QuotientTable& t, const State& s) { return line_at(t, s.home.bucket); }
  WARPHASH_FN static void finish(const QuotientTable&, const OneLaunchBatch& b, u64, State& s, bool live,
                                 Tally& tally) {
    if (!live) return;
    tally.probes += s.probes;
    if (s.result == kLeft) return;
    tally.changed += s.result == kPut;
    set_flag(b, s.element, s.result == kPut ? kChanged : kPresent);
  }
  using Entry = u32;
  WARPHASH_FN static u64* length(const OneLaunchBatch& b, int) { return &report_of(b)->winners; }
  WARPHASH_FN static bool lists(int, const State& s) { return s.result == kLeft; }
  WARPHASH_FN static Entry entry(const State& s) { return s.element; }
  WARPHASH_FN static void enter(const OneLaunchBatch& b, int, u64 place, Entry element) {
    pointer<u32>(b.stuck)[place] = element;
  }

 private:
  WARPHASH_FN static bool look_and_put(const QuotientTable& t, const OneLaunchBatch& b, State& s) {
    Line* const line = line_at(t, s.home.bucket);
    u32 words[kLineWords];
    read_shared<S>(line, words);
    ++s.probes;
    if (const u32 hits = S::matches(words, s.home.remainder, false)) return found(line, hits, b, s);
    const u32 free = ~S::occupied(words) & S::kAllSlots;
    if (free && !(words[0] & D::filter_bit(s.home.remainder))) return put(line, words, free, false, s);
    Line* const second = line_at(t, D::second_of(t, D::first_of_range(t, s.home.bucket), s.home));
    u32 others[kLineWords];
    read_shared<S>(second, others);
    ++s.probes;
    if (const u32 hits = S::matches(others, s.home.remainder, true)) return found(second, hits, b, s);
    if (free) return put(line, words, free, false, s);
    const u32 room = ~S::occupied(others) & S::kAllSlots;
    if (!room) return true;
    if (!put(second, others, room, true, s)) return false;
    fetch_or(line->words, D::filter_bit(s.home.remainder));
    return true;
  }
  WARPHASH_FN static bool found(Line* line, u32 hits, const OneLaunchBatch& b, State& s) {
    if constexpr (S::kHasValue)
      if (b.op == kReplace) store_relaxed(S::value(line->words, first_bit(hits)), s.operand);
    s.result = kFound;
    return true;
  }
  WARPHASH_FN static bool put(Line* line, const u32 (&seen)[kLineWords], u32 free, bool guest, State& s) {
    const u32 slot = first_bit(free);
    if (!S::try_put(line->words, seen, slot, s.home.remainder, guest)) return false;
    if constexpr (S::kHasValue) *S::value(line->words, slot) = s.operand;
    s.result = kPut;
    return true;
  }
};

}  // namespace warphash
