// An update of few elements: one launch of one block, which leaves none. The host need not wait for it.
//
// Protocol.
//   1. Each thread looks for its keys. A key that is there gets its value combined. Only values change in the lines
//      meanwhile. So nobody takes a lock, and the loads of several elements are under way together. Absent keys are
//      listed, but for those of pairs that the table has adopted before.
//   2. Absent keys are added under locks that the block shares (quotient/gpu/locked.cuh). Some elements are left.
//   3. Elements that are left are brought to their ranges (quotient/bring.cuh), and applied in place, one range after
//      another (quotient/apply.cuh).
//   4. The host may go on before the batch has ended, and the caller may change the keys then. So with `adopted_keys`,
//      the table adopts pairs that find no slot: the host places them later. One thread does this. Of elements with one
//      key, the first is adopted, and the others find the key there.
//   5. The first warp writes the answer, and the block makes the report ready for the next launch.
// A barrier of the block ends each step.
//
// The answer lies in host memory, at `answer`: words 1 to 4 count adopted pairs, unplaced elements, keys added and
// lines read. Then, released to the host, word 0 becomes `ticket`, which the host waits for.
//
// Several updates may be under way, one behind another in a stream. With `goes_on`, an update counts the keys that it
// adds behind those of the update before. So the host waits for the last update alone. If the last update was never
// launched, the answer is still right for the updates that were.
//
// The report is a FewReport. Its words are 0 between two launches, but for `added`, and for `adopted`, which the host
// sets to 0.
//
// Why one block. Its threads share memory that is nearer than that of the device, so a lock, a count and a barrier cost
// little. Few elements wait for single loads: more processors would not end them sooner.
//
// Memory order. In step 1, lines are read and values combined by relaxed operations (core/value.cuh). Else as in the
// headers of the steps.
#pragma once
#include "quotient/apply.cuh"
#include "quotient/gpu/lines.cuh"
#include "quotient/gpu/locked.cuh"

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
  using Work = ApplyToRange<D, LinesInGlobal>;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = block_threads(kApplyingThreads), kBlocks = 1;
  static constexpr u32 kAtOnce = 4;  // elements of a thread whose loads are under way

  struct Memory {
    union {
      struct {
        u32 locks[kBlockLocks / 32];
        u32 absent[kMostFew];  // elements
      } lists;
      alignas(16) u8 work[Work::kMemoryBytes];
    };
    u32 absent, left;  // elements
    u32 changed, probes;
  };

  WARPHASH_FN static void run(const QuotientTable& t, const FewBatch& b) {
    WARPHASH_ASSERT(b.n <= kMostFew && threads_in_grid() == threads_in_block());
    Memory& m = *static_cast<Memory*>(block_memory<sizeof(Memory)>());
    FewReport& report = *pointer<FewReport>(b.report);
    const u64 adopted = load_relaxed(&report.adopted), added = b.goes_on ? load_relaxed(&report.added) : 0;
    for (u32 w = thread_in_block(); w < kBlockLocks / 32; w += threads_in_block()) m.lists.locks[w] = 0;
    if (thread_in_block() == 0) m.absent = m.left = m.changed = m.probes = 0;
    block_barrier();
    Tally tally;
    for (u32 first = 0; first < b.n; first += kAtOnce * threads_in_block()) look(t, b, m, first, adopted, tally);
    block_barrier();
    if (m.absent > 0) add(t, b, m, tally);
    if (tally.changed) atomic_add(&m.changed, static_cast<u32>(tally.changed));
    if (b.count_probes && tally.probes) atomic_add(&m.probes, static_cast<u32>(tally.probes));
    block_barrier();
    if (m.left == 0) return answer(b, report, {adopted, 0, added + m.changed, m.probes});
    finish_left(t, b, m, report);
    if (report.unplaced > 0 && b.adopted_keys && thread_in_block() == 0) adopt(b, m.left, report);
    block_barrier();
    if (thread_in_block() < kWarpLanes) {
      const CountLine& line = report.counts[lane()];
      const u64 changed = warp_sum(line.changed), probes = warp_sum(line.probes);
      answer(b, report, {report.adopted, report.unplaced, added + m.changed + changed, m.probes + probes});
    }
    block_barrier();
    u64* const words = reinterpret_cast<u64*>(&report);
    for (u64 w = thread_in_block(); w < sizeof(Report) / 8; w += threads_in_block()) words[w] = 0;
  }

 private:
  static_assert(kReportLines == kWarpLanes, "a lane sums up a line");

  // Of kAtOnce elements of each thread, from `first` on. An element behind the last one is the last one again.
  WARPHASH_FN static void look(const QuotientTable& t, const FewBatch& b, Memory& m, u32 first, u64 adopted,
                               Tally& tally) {
    const u32 n = static_cast<u32>(b.n);
    u32 numbers[kAtOnce], words[kAtOnce][kLineWords], hits[kAtOnce];
    Word keys[kAtOnce];
    Element e[kAtOnce];
    const auto place = [&](u32 j) { return first + j * threads_in_block() + thread_in_block(); };
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) numbers[j] = element_of(b, place(j) < n ? place(j) : n - 1);
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) keys[j] = key_at<S>(b, numbers[j]);
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) e[j].operand = S::value_at(b, numbers[j]);
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) e[j].home = D::home_of(t, permuted(t, keys[j]));
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) read_shared<S>(line_at(t, e[j].home.bucket), words[j]);
    bool may_be_guests = false;
    u32 buckets[kAtOnce];
    bool guest[kAtOnce];
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      hits[j] = S::matches(words[j], e[j].home.remainder, false);
      guest[j] = !hits[j] && (words[j][0] & D::filter_bit(e[j].home.remainder));
      buckets[j] = guest[j] ? Steps::second_of(t, e[j].home) : e[j].home.bucket;
      may_be_guests |= guest[j];
    }
    if (may_be_guests) {
#pragma unroll
      for (u32 j = 0; j < kAtOnce; ++j) read_shared<S>(line_at(t, buckets[j]), words[j]);
#pragma unroll
      for (u32 j = 0; j < kAtOnce; ++j) hits[j] = S::matches(words[j], e[j].home.remainder, guest[j]);
    }
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      if (place(j) >= n) continue;
      tally.probes += 1 + guest[j];
      if (hits[j] > 0) {
        Steps::combine_in(line_at(t, buckets[j]), hits[j], b, e[j]);
      } else if (adopted == 0 || !is_adopted(b, adopted, keys[j], e[j].operand)) {
        m.lists.absent[fetch_add(&m.absent, 1u)] = numbers[j];
        continue;
      }
      set_flag(b, numbers[j], kPresent);
    }
  }

  WARPHASH_FN static void add(const QuotientTable& t, const FewBatch& b, Memory& m, Tally& tally) {
    const BlockLocks locks = {m.lists.locks};
    for (u32 first = 0; first < m.absent; first += threads_in_block()) {
      const bool live = first + thread_in_block() < m.absent;
      Element e = {};
      if (live) e = Steps::element(t, b, m.lists.absent[first + thread_in_block()]);
      const auto result = Steps::in_turns(t, b, locks, e, live, tally);
      if (!live) continue;
      if (result == Steps::kLeft)
        pointer<u32>(b.left_out)[fetch_add(&m.left, 1u)] = e.number;
      else
        Steps::enter(b, e, result, tally);
    }
  }

  template <class Task>
  WARPHASH_FN static void for_all(const QuotientTable& t, const QuotientBatch& b, u64 n) {
    for (u64 i = thread_in_block(); i < n; i += threads_in_block()) {
      typename Task::State state;
      Task::start(t, b, i, state);
    }
    block_barrier();
  }

  WARPHASH_FN static void finish_left(const QuotientTable& t, const FewBatch& batch, Memory& m, FewReport& report) {
    FewBatch b = batch;
    b.indices = b.left_out;
    const u64 n = m.left;
    for (u64 i = thread_in_block(); i < n; i += threads_in_block()) {
      typename CountInRanges<D>::State state;
      CountInRanges<D>::start(t, b, i, state);
      if (state.first) pointer<u32>(b.touched)[fetch_add(&report.winners, u64(1))] = state.range;
    }
    block_barrier();
    const u64 ranges = report.winners;
    for_all<ReserveForRanges<D>>(t, b, ranges);
    for_all<ScatterToParts<D>>(t, b, n);
    Work::prepare(m.work);
    for (u64 k = 0; k < ranges; ++k) {
      Work(t, b, pointer<const u32>(b.touched)[k], m.work).run();
      block_barrier();
    }
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

  WARPHASH_FN static void adopt(const FewBatch& b, u32 left, FewReport& report) {
    Word* const keys = pointer<Word>(b.adopted_keys);
    typename S::Value* const values = pointer<typename S::Value>(b.adopted_values);
    u8* const flags = pointer<u8>(b.out_flags);
    u64 n = report.adopted;
    for (u32 i = 0; i < left; ++i) {
      const u32 element = pointer<const u32>(b.left_out)[i];
      if (flags[element] != kUnplaced) continue;
      const Word key = key_at<S>(b, element);
      u64 at = 0;
      while (at < n && keys[at] != key) ++at;
      const bool is_new = at == n;
      keys[at] = key;
      if constexpr (S::kHasValue)
        if (is_new || b.op == kReplace) values[at] = S::value_at(b, element);
      flags[element] = is_new ? kChanged : kPresent;
      n += is_new;
      report.counts[0].changed += is_new;
    }
    report.adopted = n;
    report.unplaced = 0;
  }

  struct Answer {
    u64 adopted, unplaced, added, probes;
  };
  WARPHASH_FN static void answer(const FewBatch& b, FewReport& report, const Answer& a) {
    if (thread_in_block() > 0) return;
    report.added = a.added;
    u64* const words = pointer<u64>(b.answer);
    words[1] = a.adopted;
    words[2] = a.unplaced;
    words[3] = a.added;
    words[4] = a.probes;
    release_to_host(words, b.ticket);
  }
};

}  // namespace warphash
