// An erase of up to one element a bucket, in two launches that the host need not wait for. In the first, a lane has an
// element, and clears the slot of its key.
//
// Protocol of an element.
//   1. Read the line of the home bucket. If the key is there, clear its slot.
//   2. If it is not, and its bit in the filter is set, read the line of the second bucket, and do the same there.
//   3. If it is in neither, and the table has adopted pairs, look for the key there (quotient/gpu/adopted.cuh).
// A slot is cleared by an atomic operation that tells whether it was occupied. A lane that finds it vacant looks again:
// the key may have been in the batch twice, or what it read may have been half of a slot that was being cleared. A slot
// of two words is cleared low word first, and the low word has the bit that tells.
//
// Filters. The bit of a guest stays set when the guest leaves, for other guests may share it. To make the filters of a
// range anew takes a walk over the range. So the second launch does this for a range with a probability of n / (2 * size)
// for n keys that leave, as in quotient/range.cuh: a hash of each key decides. The lane of such a key enters the range
// into a list, unless another one has done so: the counter of the range, which is 0 between two operations, tells.
//
// The second launch has a few blocks, which take up one range of the list after another. Its first block writes the
// answer, as of update_few (quotient/gpu/few.cuh): word 3 counts the keys that were erased. The counts of the report,
// which it takes, become 0. Other blocks still read the length of the list. So two lengths take turns, and the block
// sets the one of the launches before to 0.
//
// Memory order: relaxed. Keys only leave, so a line that was read is at worst too full.
#pragma once
#include "core/gpu/schedule.cuh"
#include "quotient/gpu/adopted.cuh"
#include "quotient/gpu/lines.cuh"
#include "quotient/range.cuh"

namespace warphash {

template <class D>
struct EraseAlone {
  using Table = QuotientTable;
  using Batch = OneLaunchBatch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSteps = true, kSuspends = false, kCounts = true;
  static constexpr int kLists = 1;
  enum Result : u8 { kAbsent, kErased, kErasedLast };  // the last one: the lane enters the range into the list
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
  WARPHASH_FN static bool step(const QuotientTable& t, const OneLaunchBatch& b, State& s) {
    Line* const line = line_at(t, s.bucket);
    u32 words[kLineWords];
    read_shared<S>(line, words);
    if (const u32 hits = S::matches(words, s.home.remainder, s.guest)) {
      if (!S::vacate(line->words, first_bit(hits))) return false;
      const bool renews = D::mixed(s.hash) % (2 * static_cast<u32>(t.range_buckets)) == 0;
      s.result = renews && fetch_add(counter_of(t, range_of(t, s)), 1u) == 0 ? kErasedLast : kErased;
      return true;
    }
    if (s.guest || !(words[0] & D::filter_bit(s.home.remainder))) {
      const Adopted<D> adopted = {b};
      if (adopted.count() > 0 && adopted.erase(key_at<S>(b, s.element))) s.result = kErased;
      return true;
    }
    s.guest = true;
    s.bucket = D::second_of(t, D::first_of_range(t, s.home.bucket), s.home);
    return false;
  }
  WARPHASH_FN static const void* next(const QuotientTable& t, const State& s) { return line_at(t, s.bucket); }
  WARPHASH_FN static void finish(const QuotientTable&, const OneLaunchBatch& b, u64, State& s, bool live,
                                 Tally& tally) {
    if (!live) return;
    tally.changed += s.result != kAbsent;
    set_flag(b, s.element, s.result != kAbsent);
  }
  using Entry = u32;
  WARPHASH_FN static u64* length(const OneLaunchBatch& b, int) { return pointer<u64>(b.renewals); }
  WARPHASH_FN static bool lists(int, const State& s) { return s.result == kErasedLast; }
  WARPHASH_FN static Entry entry(const State& s) { return s.bucket; }
  WARPHASH_FN static void enter(const OneLaunchBatch& b, int, u64 place, Entry bucket) {
    pointer<u32>(b.renewed)[place] = bucket;
  }

 private:
  WARPHASH_FN static u32 range_of(const QuotientTable& t, const State& s) {
    return s.bucket / static_cast<u32>(t.range_buckets);
  }
};

// The second launch.
template <class D>
struct RenewFilters {
  using Table = QuotientTable;
  using Batch = OneLaunchBatch;
  using Range = InRange<D, LinesInGlobal>;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = LinesInGlobal::kThreads, kBlocks = 1;

  WARPHASH_FN static void run(const QuotientTable& t, const OneLaunchBatch& b) {
    const u64 block = thread_in_grid() / threads_in_block(), blocks = threads_in_grid() / threads_in_block();
    if (thread_in_grid() == 0) answer(b);
    const u64 n = *pointer<const u64>(b.renewals);
    void* const memory = block_memory<Range::kMemoryBytes>();
    for (u64 k = block; k < n; k += blocks) {
      const u32 bucket = pointer<const u32>(b.renewed)[k], number = bucket / static_cast<u32>(t.range_buckets);
      Range range(t, b, number, memory);
      range.lines = line_at(t, range.first_bucket)->words;
      range.renew_filters();
      if (thread_in_block() == 0) *counter_of(t, number) = 0;
    }
  }

 private:
  WARPHASH_FN static void answer(const OneLaunchBatch& b) {
    u64 erased = 0;
    for (CountLine& line : report_of(b)->counts) erased += line.changed, line.changed = 0;
    *pointer<u64>(b.renewals_before) = 0;
    u64* const words = pointer<u64>(b.answer);
    words[1] = Adopted<D>{b}.count();
    words[2] = words[4] = 0;
    words[3] = erased;
    release_to_host(words, b.ticket);
  }
};

}  // namespace warphash
