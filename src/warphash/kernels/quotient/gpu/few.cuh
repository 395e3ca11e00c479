// An update of few elements that is one launch to its end: the host need not wait for it.
//
// Protocol.
//   1. Each lane has an element, and updates it under locks (quotient/gpu/locked.cuh). Some elements are left.
//   2. The last block to come here brings the elements that are left to their ranges (quotient/bring.cuh), and applies
//      them in place, one range after another (quotient/apply.cuh). All other blocks are done, so no lock is held.
//   3. The host may go on before the batch has ended, and the caller may change the keys then. So with `adopted_keys`,
//      the table adopts pairs that find no slot: the host places them later. One thread does this. Of elements with one
//      key, the first is adopted, and the others find the key there.
//   4. The last block writes the answer, and makes the report ready for the next launch.
//
// The answer lies in host memory, at `answer`: words 1 to 4 count adopted pairs, unplaced elements, keys added and
// lines read. Then, released to the host, word 0 becomes `ticket`, which the host waits for.
//
// The report is a FewReport. Its words are 0 between two launches, but for `adopted`, which the host sets to 0.
//
// Memory order. A block counts itself as finished behind a fence, and the last one has a fence behind its count: so the
// last block sees the lines, the flags and the list of all others. Else as in the steps' own headers.
#pragma once
#include "quotient/apply.cuh"
#include "quotient/gpu/lines.cuh"
#include "quotient/gpu/locked.cuh"

namespace warphash {

// Whether all other blocks have come here before. All threads of the block call it.
WARPHASH_FN bool is_last(FewReport& report) {
  WARPHASH_BLOCK_SHARED u32 last;
  block_barrier();
  if (thread_in_block() == 0) {
    acquire_release_fence();
    const u64 blocks = threads_in_grid() / threads_in_block();
    last = fetch_add(&report.finished, u64(1)) + 1 == blocks;
    acquire_release_fence();
  }
  block_barrier();
  return last != 0;
}

template <class D>
struct UpdateFew {
  using Table = QuotientTable;
  using Batch = FewBatch;
  using S = typename D::S;
  using Word = typename S::Word;
  using Work = ApplyToRange<D, LinesInGlobal>;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = block_threads(kThreadsInPlace);

  WARPHASH_FN static void run(const QuotientTable& t, const FewBatch& b) {
    UpdateLocked<D>::run(t, b);
    FewReport& report = *pointer<FewReport>(b.report);
    if (!is_last(report)) return;
    if (report.leftover > 0) finish_left(t, b, report);
    if (report.unplaced > 0 && b.adopted_keys && thread_in_block() == 0) adopt(b, report);
    block_barrier();
    if (thread_in_block() < kWarpLanes) answer(b, report);
    block_barrier();
    u64* const words = reinterpret_cast<u64*>(&report);
    for (u64 w = thread_in_block(); w < sizeof(Report) / 8; w += threads_in_block()) words[w] = 0;
    if (thread_in_block() == 0) report.finished = 0;
  }

 private:
  template <class Task>
  WARPHASH_FN static void for_all(const QuotientTable& t, const QuotientBatch& b, u64 n) {
    for (u64 i = thread_in_block(); i < n; i += threads_in_block()) {
      typename Task::State state;
      Task::start(t, b, i, state);
    }
    block_barrier();
  }

  WARPHASH_FN static void finish_left(const QuotientTable& t, const FewBatch& batch, FewReport& report) {
    FewBatch b = batch;
    b.indices = b.left_out;
    const u64 n = report.leftover;
    for (u64 i = thread_in_block(); i < n; i += threads_in_block()) {
      typename CountInRanges<D>::State state;
      CountInRanges<D>::start(t, b, i, state);
      if (state.first) pointer<u32>(b.touched)[fetch_add(&report.winners, u64(1))] = state.range;
    }
    block_barrier();
    const u64 ranges = report.winners;
    for_all<ReserveForRanges<D>>(t, b, ranges);
    for_all<ScatterToParts<D>>(t, b, n);
    void* const memory = block_memory<Work::kMemoryBytes>();
    Work::prepare(memory);
    for (u64 k = 0; k < ranges; ++k) {
      Work(t, b, pointer<const u32>(b.touched)[k], memory).run();
      block_barrier();
    }
  }

  WARPHASH_FN static void adopt(const FewBatch& b, FewReport& report) {
    Word* const keys = pointer<Word>(b.adopted_keys);
    typename S::Value* const values = pointer<typename S::Value>(b.adopted_values);
    u8* const flags = pointer<u8>(b.out_flags);
    u64 n = report.adopted;
    for (u64 i = 0; i < report.leftover; ++i) {
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

  WARPHASH_FN static void answer(const FewBatch& b, const FewReport& report) {
    static_assert(kReportLines == 32, "a lane sums up a line");
    const CountLine& line = report.counts[lane()];
    const u64 changed = warp_sum(line.changed), probes = warp_sum(line.probes);
    if (lane() > 0) return;
    u64* const words = pointer<u64>(b.answer);
    words[1] = report.adopted;
    words[2] = report.unplaced;
    words[3] = changed;
    words[4] = probes;
    release_to_host(words, b.ticket);
  }
};

}  // namespace warphash
