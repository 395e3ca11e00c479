// `count` and `scatter` of quotient/bring.cuh by blocks whose threads share additions: for batches that are too small
// for passes (quotient/gpu/partition.cuh), and for listed elements.
//
// A block first adds its elements up in shared memory, by their range, and then adds once to the counter of each range.
// It has room for the sums of kBins ranges in a row, those around the range of its first element: all ranges of a small
// table, and that of a key which is everywhere in the batch. Elements of other ranges add to the counter themselves.
#pragma once
#include "core/gpu/schedule.cuh"
#include "quotient/bring.cuh"

namespace warphash {

template <class D>
struct BringByBlocks : OverQuotients {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kMostBlockThreads, kBlocks = 1;
  static constexpr u32 kBins = 1024;
  struct Memory {
    u32 counts[kBins];
    u32 places[kBins];  // of the first element
    u32 first_range;    // that of bin 0
  };

  // An element of this thread. Neither is set of a thread without one.
  struct Element {
    bool live;
    u32 number, range, bin, rank;
    Word hash;
    WARPHASH_FN bool is_summed() const { return live && bin < kBins; }
    WARPHASH_FN bool is_alone() const { return live && bin >= kBins; }
  };

  WARPHASH_FN static bool has_elements(const QuotientBatch& b) {
    return thread_in_grid() - thread_in_block() < length(b);
  }

  // Adds the elements of a block up. All threads call it, of a block that has elements; a barrier ends it.
  WARPHASH_FN static Element sum_up(const QuotientTable& t, const QuotientBatch& b, Memory& m) {
    const u64 i = thread_in_grid();
    Element e = {i < length(b), 0, 0, 0, 0, 0};
    if (e.live) {
      e.number = element_of(b, i);
      e.hash = permuted(t, key_at<S>(b, e.number));
      e.range = D::range_of(t, e.hash);
    }
    for (u32 k = thread_in_block(); k < kBins; k += threads_in_block()) m.counts[k] = 0;
    if (thread_in_block() == 0) m.first_range = e.range / kBins * kBins;
    block_barrier();
    e.bin = e.range - m.first_range;
    if (e.is_summed()) e.rank = fetch_add(m.counts + e.bin, 1u);
    block_barrier();
    return e;
  }

 private:
  WARPHASH_FN static u64 length(const QuotientBatch& b) { return b.count ? *pointer<const u64>(b.count) : b.n; }
};

template <class D>
struct CountByBlocks : BringByBlocks<D> {
  using Base = BringByBlocks<D>;
  WARPHASH_FN static void run(const QuotientTable& t, const QuotientBatch& b) {
    if (!Base::has_elements(b)) return;
    auto& m = *static_cast<typename Base::Memory*>(block_memory<sizeof(typename Base::Memory)>());
    const auto e = Base::sum_up(t, b, m);
    if (e.is_alone()) add(t, b, e.range, 1);
    for (u32 k = thread_in_block(); k < Base::kBins; k += threads_in_block())
      if (m.counts[k]) add(t, b, m.first_range + k, m.counts[k]);
  }

 private:
  WARPHASH_FN static void add(const QuotientTable& t, const QuotientBatch& b, u32 range, u32 n) {
    if (fetch_add(counter_of(t, range), n) == 0)
      pointer<u32>(b.touched)[fetch_add(&report_of(b)->winners, u64(1))] = range;
  }
};

template <class D>
struct ScatterByBlocks : BringByBlocks<D> {
  using Base = BringByBlocks<D>;
  using Scatter = ScatterToParts<D>;
  WARPHASH_FN static void run(const QuotientTable& t, const QuotientBatch& b) {
    if (!Base::has_elements(b)) return;
    auto& m = *static_cast<typename Base::Memory*>(block_memory<sizeof(typename Base::Memory)>());
    const auto e = Base::sum_up(t, b, m);
    for (u32 k = thread_in_block(); k < Base::kBins; k += threads_in_block())
      if (m.counts[k]) m.places[k] = Scatter::reserve(t, m.first_range + k, m.counts[k]);
    block_barrier();
    if (e.is_summed()) Scatter::put(b, e.number, e.hash, m.places[e.bin] + e.rank);
    if (e.is_alone()) Scatter::put(b, e.number, e.hash, Scatter::reserve(t, e.range, 1));
  }
};

}  // namespace warphash
