// An update of few elements: one launch of one block, which leaves none. The host need not wait for it.
//
// Protocol.
//   1. Each thread looks for its key. A key that is there gets its value combined. Only values change in the lines
//      meanwhile, so nobody takes a lock. Absent keys are listed, but for those of pairs that the table has adopted
//      before.
//   2. Absent keys are added under locks that the block shares (quotient/gpu/locked.cuh). Some elements are left.
//   3. Steps 1 and 2 once more, for the elements that are left. Most of them have the key of an element that was added.
//   4. The first thread takes what is left, one element after another. It combines the value of a key that is there.
//      An absent key gets a vacant slot of its home or of its second bucket, or keys move on until there is one
//      (quotient/range.cuh). The host may go on before the batch has ended, and the caller may change the keys then.
//      So with `adopted_keys`, the table adopts a pair that finds no slot: the host places it later. Elements that
//      follow find the key among the adopted ones.
//   5. The block makes the filters of a range anew, if guests have left a bucket there. Chance decides, as in
//      quotient/range.cuh, since all lines of the range are read. The first thread writes the answer.
// A barrier of the block ends each step.
//
// The answer lies in host memory, at `answer`: words 1 to 4 count adopted pairs, unplaced elements, keys added and
// lines read. Then, released to the host, word 0 becomes `ticket`, which the host waits for.
//
// Several updates may be under way, one behind another in a stream. With `goes_on`, an update counts the keys that it
// adds behind those of the update before. So the host waits for the last update alone. If the last update was never
// launched, the answer is still right for the updates that were.
//
// The report is a FewReport. The host sets `adopted` to 0.
//
// Why one block, with a thread for each element. Its threads share memory that is nearer than that of the device, so a
// lock, a count and a barrier cost little. Few elements wait for single loads: more processors would not end them
// sooner.
//
// Why one thread in step 4. It comes to keys both of whose buckets are full, and of these to the few that no single
// move helps. The rounds of quotient/range.cuh would place them side by side. But all tables wait for the compiler at
// their first small update, and those rounds are more than half of its time.
//
// Memory order. In step 1, lines are read and values combined by relaxed operations (core/value.cuh). In step 4, one
// thread has the table, and reads and writes plainly. Else as in the headers of the steps.
#pragma once
#include "quotient/gpu/lines.cuh"
#include "quotient/gpu/locked.cuh"
#include "quotient/range.cuh"

namespace warphash {

constexpr u32 kMostFew = 1024;  // elements of such an update

template <class D>
struct UpdateFew {
  using Table = QuotientTable;
  using Batch = FewBatch;
  using S = typename D::S;
  using Word = typename S::Word;
  using Steps = ChangeUnderLocks<D, BlockLocks>;
  using Element = typename Steps::Element;
  using Range = InRange<D, LinesInGlobal>;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = block_threads(kMostFew), kBlocks = 1;
  static constexpr u32 kPasses = 2;  // over steps 1 and 2
  static constexpr u32 kNone = ~0u;

  struct Memory {
    union {
      struct {
        u32 locks[kBlockLocks / 32];
        u32 absent[kMostFew];  // elements
      } lists;
      alignas(16) u8 range[Range::kMemoryBytes];
    };
    u32 absent[kPasses], left[kPasses];  // elements of each pass
    u32 renewed;                         // a range whose filters are made anew, or kNone
    u32 changed, probes;
  };

  WARPHASH_FN static void run(const QuotientTable& t, const FewBatch& b) {
    WARPHASH_ASSERT(b.n <= kMostFew && threads_in_grid() == threads_in_block());
    Memory& m = *static_cast<Memory*>(block_memory<sizeof(Memory)>());
    FewReport& report = *pointer<FewReport>(b.report);
    Answer a = {load_relaxed(&report.adopted), 0, b.goes_on ? load_relaxed(&report.added) : 0, 0};
    for (u32 w = thread_in_block(); w < kBlockLocks / 32; w += threads_in_block()) m.lists.locks[w] = 0;
    if (thread_in_block() == 0) {
      for (u32 pass = 0; pass < kPasses; ++pass) m.absent[pass] = m.left[pass] = 0;
      m.changed = m.probes = 0;
      m.renewed = kNone;
    }
    block_barrier();
    Tally tally;
    u32 left = static_cast<u32>(b.n);
#pragma unroll 1
    for (u32 pass = 0; pass < kPasses && left > 0; ++pass) {
      for (u32 place = thread_in_block(); place < left; place += threads_in_block())
        look(t, b, m, pass, place, a.adopted, tally);
      block_barrier();
      if (m.absent[pass] > 0) add(t, b, m, pass, tally);
      block_barrier();
      left = m.left[pass];
    }
    if (left > 0) {
      if (thread_in_block() == 0) place_left(t, b, m, left, a, tally);
      block_barrier();
      if (m.renewed != kNone) range_of(t, b, m, m.renewed).renew_filters();
    }
    if (tally.changed) atomic_add(&m.changed, static_cast<u32>(tally.changed));
    if (b.count_probes && tally.probes) atomic_add(&m.probes, static_cast<u32>(tally.probes));
    block_barrier();
    a.added += m.changed, a.probes = m.probes;
    answer(b, report, a);
  }

 private:
  struct Answer {
    u64 adopted, unplaced, added, probes;
  };

  WARPHASH_FN static void look(const QuotientTable& t, const FewBatch& b, Memory& m, u32 pass, u32 place, u64 adopted,
                               Tally& tally) {
    const Element e = Steps::element(t, b, number_of(b, pass, place));
    const Word remainder = e.home.remainder;
    u32 bucket = e.home.bucket, words[kLineWords];
    read_shared<S>(line_at(t, bucket), words);
    u32 hits = S::matches(words, remainder, false);
    const bool may_be_guest = !hits && (words[0] & D::filter_bit(remainder));
    if (may_be_guest) {
      bucket = Steps::second_of(t, e.home);
      read_shared<S>(line_at(t, bucket), words);
      hits = S::matches(words, remainder, true);
    }
    tally.probes += 1 + may_be_guest;
    if (hits > 0) {
      Steps::combine_in(line_at(t, bucket), hits, b, e);
    } else if (adopted == 0 || !is_adopted(b, adopted, key_at<S>(b, e.number), e.operand)) {
      m.lists.absent[fetch_add(&m.absent[pass], 1u)] = e.number;
      return;
    }
    set_flag(b, e.number, kPresent);
  }

  WARPHASH_FN static u32 number_of(const FewBatch& b, u32 pass, u32 place) {
    return pass == 0 ? element_of(b, place) : pointer<const u32>(b.left_out)[place];
  }

  WARPHASH_FN static void add(const QuotientTable& t, const FewBatch& b, Memory& m, u32 pass, Tally& tally) {
    const BlockLocks locks = {m.lists.locks};
    for (u32 first = 0; first < m.absent[pass]; first += threads_in_block()) {
      const bool live = first + thread_in_block() < m.absent[pass];
      Element e = {};
      if (live) e = Steps::element(t, b, m.lists.absent[first + thread_in_block()]);
      const auto result = Steps::in_turns(t, b, locks, e, live, tally);
      if (!live) continue;
      if (result == Steps::kLeft)
        pointer<u32>(b.left_out)[fetch_add(&m.left[pass], 1u)] = e.number;
      else
        Steps::enter(b, e, result, tally);
    }
  }

  WARPHASH_FN static Range range_of(const QuotientTable& t, const FewBatch& b, Memory& m, u32 number) {
    Range range(t, b, number, m.range);
    range.lines = line_at(t, range.first_bucket)->words;
    return range;
  }

  WARPHASH_FN static void place_left(const QuotientTable& t, const FewBatch& b, Memory& m, u32 left, Answer& a,
                                     Tally& tally) {
    for (u32 k = 0; k < left; ++k) {
      const Element e = Steps::element(t, b, pointer<const u32>(b.left_out)[k]);
      const Word key = key_at<S>(b, e.number);
      u8 with = kPresent;
      if (a.adopted == 0 || !is_adopted(b, a.adopted, key, e.operand)) {
        with = place(t, b, m, e, tally);
        if (with == kUnplaced && b.adopted_keys) adopt(b, a.adopted++, key, e.operand), with = kChanged;
      }
      set_flag(b, e.number, with);
      tally.changed += with == kChanged;
      a.unplaced += with == kUnplaced;
    }
  }

  WARPHASH_FN static u8 place(const QuotientTable& t, const FewBatch& b, Memory& m, const Element& e, Tally& tally) {
    const Home<Word>& home = e.home;
    Range range = range_of(t, b, m, home.bucket / static_cast<u32>(t.range_buckets));
    const auto spot = range.look(home);
    u8 with = spot.found() ? kPresent : kChanged;
    if (spot.found())
      Steps::combine_in(line_at(t, spot.bucket), 1u << spot.slot, b, e);
    else if (!put_near(range, home, e.operand) && !range.make_room(home, e.operand))
      with = kUnplaced;
    tally.probes += range.probes;
    if (range.m.stale && D::mixed(home.remainder) % (2 * range.size) == 0) m.renewed = range.range;
    return with;
  }

  // Puts a new key into a vacant slot of its home or of its second bucket; false if there is none.
  WARPHASH_FN static bool put_near(Range& range, const Home<Word>& home, typename S::Value value) {
    const u32 second = D::second_of(range.t, range.first_bucket, home), free = range.vacant(home.bucket);
    const u32 bucket = free ? home.bucket : second, slots = free ? free : range.vacant(second);
    if (slots) range.put_stuck(bucket, first_bit(slots), home, !free, value);
    return slots != 0;
  }

  // Whether the table has adopted a pair with this key, whose value is then combined.
  WARPHASH_FN static bool is_adopted(const FewBatch& b, u64 adopted, Word key, typename S::Value operand) {
    const Word* const keys = pointer<const Word>(b.adopted_keys);
    u64 at = 0;
    while (at < adopted && keys[at] != key) ++at;
    if (at == adopted) return false;
    if (S::kHasValue && b.op == kReplace) store_relaxed(pointer<typename S::Value>(b.adopted_values) + at, operand);
    return true;
  }

  WARPHASH_FN static void adopt(const FewBatch& b, u64 at, Word key, typename S::Value value) {
    pointer<Word>(b.adopted_keys)[at] = key;
    if constexpr (S::kHasValue) pointer<typename S::Value>(b.adopted_values)[at] = value;
  }

  WARPHASH_FN static void answer(const FewBatch& b, FewReport& report, const Answer& a) {
    if (thread_in_block() > 0) return;
    report.added = a.added;
    report.adopted = a.adopted;
    u64* const words = pointer<u64>(b.answer);
    words[1] = a.adopted;
    words[2] = a.unplaced;
    words[3] = a.added;
    words[4] = a.probes;
    release_to_host(words, b.ticket);
  }
};

}  // namespace warphash
