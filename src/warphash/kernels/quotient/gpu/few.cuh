// An update of few elements: one launch of one block, which leaves none. Also the last launch of an update whose others
// have left some elements (quotient/gpu/put.cuh, quotient/gpu/stuck.cuh, quotient/gpu/locked.cuh). The host need not wait for either.
//
// Protocol, for the elements of the batch or for those that were left, as many at a time as there are threads.
//   1. Each thread looks for its key. A key that is there gets its value combined. Only values change in the lines
//      meanwhile, so nobody takes a lock. Absent keys are listed, but for those of pairs that the table has adopted
//      before (quotient/gpu/adopted.cuh).
//   2. Absent keys are added under locks that the block shares (quotient/gpu/locked.cuh). Some elements are left.
//   3. Steps 1 and 2 once more, for the elements that are left. Most of them have the key of an element that was added.
//   4. The first thread takes what is left, one element after another. It combines the value of a key that is there.
//      An absent key gets a vacant slot of its home or of its second bucket, or keys move on until there is one
//      (quotient/range.cuh). The host may go on before the batch has ended, and the caller may change the keys then.
//      So with `adopted_keys`, the table adopts a pair that finds no slot: the host places it later. Elements that
//      follow find the key among the adopted ones. A range in which one search has failed is not searched again.
//   5. The block makes the filters of a range anew, if guests have left a bucket there. Chance decides, as in
//      quotient/range.cuh, since all lines of the range are read.
// A barrier of the block ends each step. Behind the last element, the first thread writes the answer.
//
// The answer lies in host memory, at `answer`: words 1 to 4 count adopted pairs, unplaced elements, keys added and
// lines read. Adopted pairs are all that the table has; the other words count what this batch did, in all of its
// launches. Then, released to the host, word 0 becomes `ticket`, which the host looks for. Several updates may be under
// way, one behind another in a stream, each with an answer of its own.
//
// The launches before the last one count into a Report. The last one adds these counts to its own, and sets the report
// to 0.
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
#include "quotient/gpu/adopted.cuh"
#include "quotient/gpu/lines.cuh"
#include "quotient/gpu/locked.cuh"
#include "quotient/range.cuh"

namespace warphash {

constexpr u32 kMostFew = 1024;  // elements at a time

template <class D>
struct UpdateFew {
  using Table = QuotientTable;
  using Batch = OneLaunchBatch;
  using S = typename D::S;
  using Word = typename S::Word;
  using Steps = ChangeUnderLocks<D, BlockLocks>;
  using Element = typename Steps::Element;
  using Range = InRange<D, LinesInGlobal>;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = block_threads(kMostFew), kBlocks = 1;
  static constexpr u32 kPasses = 2;  // over steps 1 and 2
  static constexpr u32 kNone = ~0u, kMostFull = 64;

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
    u32 adopted, unplaced, changed, probes;
    u32 failures;         // of searches for a slot
    u32 full[kMostFull];  // ranges where the last of them failed
  };

  WARPHASH_FN static void run(const QuotientTable& t, const OneLaunchBatch& b) {
    WARPHASH_ASSERT((b.count || b.n <= kMostFew) && threads_in_grid() == threads_in_block());
    Memory& m = *static_cast<Memory*>(block_memory<sizeof(Memory)>());
    if (thread_in_block() == 0) {
      m.adopted = Adopted<D>{b}.count();
      m.unplaced = m.changed = m.probes = m.failures = 0;
    }
    const u32 n = static_cast<u32>(b.count ? *pointer<const u64>(b.count) : b.n);
    Tally tally;
#pragma unroll 1
    for (u32 first = 0; first < n; first += kMostFew) {
      const u32 few = n - first < kMostFew ? n - first : kMostFew;
      update(t, b, m, first, few, tally);
    }
    block_barrier();
    if (tally.changed) atomic_add(&m.changed, static_cast<u32>(tally.changed));
    if (b.count_probes && tally.probes) atomic_add(&m.probes, static_cast<u32>(tally.probes));
    if (b.finishes) take_counts(b, m);
    block_barrier();
    answer(b, m);
  }

 private:
  // Some elements, from a place on.
  WARPHASH_FN static void update(const QuotientTable& t, const OneLaunchBatch& b, Memory& m, u32 first, u32 few,
                                 Tally& tally) {
    block_barrier();
    for (u32 w = thread_in_block(); w < kBlockLocks / 32; w += threads_in_block()) m.lists.locks[w] = 0;
    if (thread_in_block() == 0) {
      for (u32 pass = 0; pass < kPasses; ++pass) m.absent[pass] = m.left[pass] = 0;
      m.renewed = kNone;
    }
    block_barrier();
    u32 left = few;
#pragma unroll 1
    for (u32 pass = 0; pass < kPasses && left > 0; ++pass) {
      for (u32 place = thread_in_block(); place < left; place += threads_in_block())
        look(t, b, m, pass, first + place, tally);
      block_barrier();
      if (m.absent[pass] > 0) add(t, b, m, pass, first, tally);
      block_barrier();
      left = m.left[pass];
    }
    if (left > 0) {
      if (thread_in_block() == 0) place_left(t, b, m, first, left, tally);
      block_barrier();
      if (m.renewed != kNone) range_of(t, b, m, m.renewed).renew_filters();
    }
  }

  WARPHASH_FN static void look(const QuotientTable& t, const OneLaunchBatch& b, Memory& m, u32 pass, u32 place,
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
    } else if (m.adopted == 0 || !Adopted<D>{b}.has(key_at<S>(b, e.number), e.operand)) {
      m.lists.absent[fetch_add(&m.absent[pass], 1u)] = e.number;
      return;
    }
    set_flag(b, e.number, kPresent);
  }

  WARPHASH_FN static u32 number_of(const OneLaunchBatch& b, u32 pass, u32 place) {
    return pass == 0 ? element_of(b, place) : pointer<const u32>(b.left_out)[place];
  }

  // The elements that it leaves are listed from place `first` on: the list may be the one that the batch is given.
  WARPHASH_FN static void add(const QuotientTable& t, const OneLaunchBatch& b, Memory& m, u32 pass, u32 first,
                              Tally& tally) {
    const BlockLocks locks = {m.lists.locks};
    for (u32 k = thread_in_block(); k - thread_in_block() < m.absent[pass]; k += threads_in_block()) {
      const bool live = k < m.absent[pass];
      Element e = {};
      if (live) e = Steps::element(t, b, m.lists.absent[k]);
      const auto result = Steps::in_turns(t, b, locks, e, live, tally);
      if (!live) continue;
      if (result == Steps::kLeft)
        pointer<u32>(b.left_out)[first + fetch_add(&m.left[pass], 1u)] = e.number;
      else
        Steps::enter(b, e, result, tally);
    }
  }

  WARPHASH_FN static Range range_of(const QuotientTable& t, const OneLaunchBatch& b, Memory& m, u32 number) {
    Range range(t, b, number, m.range);
    range.lines = line_at(t, range.first_bucket)->words;
    return range;
  }

  WARPHASH_FN static void place_left(const QuotientTable& t, const OneLaunchBatch& b, Memory& m, u32 first, u32 left,
                                     Tally& tally) {
    const Adopted<D> adopted = {b};
    const u32 before = m.adopted;  // step 1 has looked for the key among these
    for (u32 k = first; k < first + left; ++k) {
      const Element e = Steps::element(t, b, pointer<const u32>(b.left_out)[k]);
      const Word key = key_at<S>(b, e.number);
      u8 with = kPresent;
      if (m.adopted == before || !adopted.has(key, e.operand, before)) {
        with = place(t, b, m, e, tally);
        if (with == kUnplaced && b.adopted_keys) adopted.add(m.adopted++, key, e.operand), with = kChanged;
      }
      set_flag(b, e.number, with);
      tally.changed += with == kChanged;
      m.unplaced += with == kUnplaced;
    }
  }

  WARPHASH_FN static u8 place(const QuotientTable& t, const OneLaunchBatch& b, Memory& m, const Element& e,
                              Tally& tally) {
    const Home<Word>& home = e.home;
    Range range = range_of(t, b, m, home.bucket / static_cast<u32>(t.range_buckets));
    const auto spot = range.look(home);
    u8 with = spot.found() ? kPresent : kChanged;
    if (spot.found())
      Steps::combine_in(line_at(t, spot.bucket), 1u << spot.slot, b, e);
    else if (!put_near(range, home, e.operand) && (is_full(m, range.range) || !range.make_room(home, e.operand)))
      with = kUnplaced;
    if (with == kUnplaced && !is_full(m, range.range)) m.full[m.failures++ % kMostFull] = range.range;
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

  WARPHASH_FN static bool is_full(const Memory& m, u32 range) {
    const u32 known = m.failures < kMostFull ? m.failures : kMostFull;
    u32 k = 0;
    while (k < known && m.full[k] != range) ++k;
    return k < known;
  }

  // Adds what the launches before have counted to the counts of the block.
  WARPHASH_FN static void take_counts(const OneLaunchBatch& b, Memory& m) {
    for (u32 k = thread_in_block(); k < kReportLines; k += threads_in_block()) {
      CountLine& line = report_of(b)->counts[k];
      if (line.changed) atomic_add(&m.changed, static_cast<u32>(line.changed));
      if (line.probes) atomic_add(&m.probes, static_cast<u32>(line.probes));
      line.changed = line.probes = 0;
    }
  }

  WARPHASH_FN static void answer(const OneLaunchBatch& b, const Memory& m) {
    if (thread_in_block() > 0) return;
    if (b.finishes) report_of(b)->winners = report_of(b)->leftover = 0;
    u64* const words = pointer<u64>(b.answer);
    words[1] = m.adopted;
    words[2] = m.unplaced;
    words[3] = m.changed;
    words[4] = m.probes;
    release_to_host(words, b.ticket);
  }
};

}  // namespace warphash
